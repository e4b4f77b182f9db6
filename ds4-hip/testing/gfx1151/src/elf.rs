//! The ELF container of a code object: segments, symbols, relocations, the metadata note.
//!
//! Source: LLVM, "User Guide for AMDGPU Backend", sections ELF Code Object and Relocation Records.

use crate::Error;

const MACHINE_AMDGPU: u64 = 0xe0;
const OS_AMDHSA: u64 = 64;
const ABI_V5: u64 = 3;
const MACH_GFX1151: u64 = 0x4a;
const PT_LOAD: u32 = 1;
const PT_NOTE: u32 = 4;
const SHT_SYMTAB: u32 = 2;
const SHT_RELA: u32 = 4;
const SHT_DYNSYM: u32 = 11;
const NOTE_METADATA: u32 = 32;

/// A part of the file that is mapped.
pub(crate) struct Segment<'a> {
    pub(crate) address: u64,
    /// Bytes in memory, at least `data.len()`; the rest is zero.
    pub(crate) bytes: u64,
    pub(crate) data: &'a [u8],
    pub(crate) writable: bool,
}

/// A named address.
pub(crate) struct Symbol {
    pub(crate) name: String,
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    pub(crate) defined: bool,
}

/// One `Elf64_Rela`.
pub(crate) struct Relocation {
    pub(crate) address: u64,
    pub(crate) kind: u32,
    /// Address of the symbol it names; none for symbol 0.
    pub(crate) symbol: Option<u64>,
    pub(crate) addend: i64,
}

/// What is read from the file.
pub(crate) struct Elf<'a> {
    pub(crate) segments: Vec<Segment<'a>>,
    pub(crate) symbols: Vec<Symbol>,
    pub(crate) relocations: Vec<Relocation>,
    /// The description of the AMDGPU metadata note.
    pub(crate) metadata: &'a [u8],
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes(&self, at: u64, count: u64) -> Result<&'a [u8], Error> {
        let end = at.checked_add(count);
        let range = usize::try_from(at)
            .ok()
            .zip(end.and_then(|e| usize::try_from(e).ok()));
        range
            .and_then(|(a, e)| self.0.get(a..e))
            .ok_or(Error::NotElf {
                what: "it ends before its tables do",
            })
    }

    fn array<const N: usize>(&self, at: u64) -> Result<[u8; N], Error> {
        let bytes = self.bytes(at, N as u64)?;
        Ok(std::array::from_fn(|i| bytes[i]))
    }

    fn u16(&self, at: u64) -> Result<u64, Error> {
        Ok(u16::from_le_bytes(self.array(at)?).into())
    }

    fn u32(&self, at: u64) -> Result<u32, Error> {
        Ok(u32::from_le_bytes(self.array(at)?))
    }

    fn u64(&self, at: u64) -> Result<u64, Error> {
        Ok(u64::from_le_bytes(self.array(at)?))
    }
}

/// Read a code object.
///
/// # Errors
/// [`Error::NotElf`], [`Error::Target`], [`Error::Metadata`] when there is no metadata note.
pub(crate) fn read(object: &[u8]) -> Result<Elf<'_>, Error> {
    let file = Reader(object);
    check_header(&file)?;
    let (mut segments, mut metadata) = (Vec::new(), None);
    let (phoff, phsize, phnum) = (file.u64(32)?, file.u16(54)?, file.u16(56)?);
    for i in 0..phnum {
        let at = phoff.saturating_add(i * phsize);
        let (kind, flags) = (file.u32(at)?, file.u32(at.saturating_add(4))?);
        let [offset, address, _, in_file, bytes] = [8, 16, 24, 32, 40].map(|o| file.u64(at + o));
        let (offset, address, in_file, bytes) = (offset?, address?, in_file?, bytes?);
        match kind {
            PT_LOAD => {
                if in_file > bytes {
                    return Err(Error::NotElf {
                        what: "a segment is longer in the file than in memory",
                    });
                }
                segments.push(Segment {
                    address,
                    bytes,
                    data: file.bytes(offset, in_file)?,
                    writable: flags & 2 != 0,
                });
            }
            PT_NOTE => metadata = metadata.or(find_note(file.bytes(offset, in_file)?)?),
            _ => {}
        }
    }
    let metadata = metadata.ok_or(Error::Metadata {
        what: "there is none",
    })?;
    let (symbols, relocations) = tables(&file)?;
    Ok(Elf {
        segments,
        symbols,
        relocations,
        metadata,
    })
}

fn check_header(file: &Reader<'_>) -> Result<(), Error> {
    if file.0.len() < 64 || &file.0[..4] != b"\x7fELF" {
        return Err(Error::NotElf {
            what: "the magic number is missing",
        });
    }
    if file.0[4] != 2 || file.0[5] != 1 {
        return Err(Error::NotElf {
            what: "it is not 64 bits, little endian",
        });
    }
    let fields = [
        ("e_machine", file.u16(18)?, MACHINE_AMDGPU),
        ("OS ABI", file.0[7].into(), OS_AMDHSA),
        ("machine", u64::from(file.u32(48)?) & 0xff, MACH_GFX1151),
        ("ABI version", file.0[8].into(), ABI_V5),
    ];
    for (field, found, expected) in fields {
        if found != expected {
            return Err(Error::Target {
                field,
                found,
                expected,
            });
        }
    }
    Ok(())
}

/// The metadata among the records of a note segment.
fn find_note(notes: &[u8]) -> Result<Option<&[u8]>, Error> {
    let file = Reader(notes);
    let mut at = 0;
    while at + 12 <= notes.len() as u64 {
        let (name, desc, kind) = (file.u32(at)?, file.u32(at + 4)?, file.u32(at + 8)?);
        let name_at = at + 12;
        let desc_at = name_at + u64::from(name).next_multiple_of(4);
        let body = file.bytes(desc_at, desc.into())?;
        if kind == NOTE_METADATA && file.bytes(name_at, name.into())? == b"AMDGPU\0" {
            return Ok(Some(body));
        }
        at = desc_at + u64::from(desc).next_multiple_of(4);
    }
    Ok(None)
}

fn tables(file: &Reader<'_>) -> Result<(Vec<Symbol>, Vec<Relocation>), Error> {
    let (shoff, shsize, shnum) = (file.u64(40)?, file.u16(58)?, file.u16(60)?);
    let header = |i: u64| shoff.saturating_add(i * shsize);
    let section = |i: u64| -> Result<(u32, u64, u64, u64), Error> {
        if i >= shnum {
            return Err(Error::NotElf {
                what: "a section names another that is not there",
            });
        }
        let at = header(i);
        let link = file.u32(at.saturating_add(40))?;
        Ok((
            file.u32(at.saturating_add(4))?,
            file.u64(at + 24)?,
            file.u64(at + 32)?,
            link.into(),
        ))
    };
    let symbol = |table: u64, names: u64, index: u64| -> Result<Symbol, Error> {
        let at = table.saturating_add(index.saturating_mul(24));
        let name_at = names.saturating_add(file.u32(at)?.into());
        let tail = file.bytes(name_at, (file.0.len() as u64).saturating_sub(name_at))?;
        let name = tail.split(|&b| b == 0).next().unwrap_or_default();
        Ok(Symbol {
            name: String::from_utf8_lossy(name).into_owned(),
            address: file.u64(at + 8)?,
            bytes: file.u64(at + 16)?,
            defined: file.u16(at + 6)? != 0,
        })
    };
    let (mut symbols, mut relocations) = (Vec::new(), Vec::new());
    for i in 0..shnum {
        let (kind, offset, bytes, link) = section(i)?;
        match kind {
            SHT_DYNSYM | SHT_SYMTAB => {
                let (_, names, _, _) = section(link)?;
                for index in 1..bytes / 24 {
                    symbols.push(symbol(offset, names, index)?);
                }
            }
            SHT_RELA => {
                let (_, table, _, names) = section(link)?;
                let (_, names, _, _) = section(names)?;
                for index in 0..bytes / 24 {
                    let at = offset.saturating_add(index * 24);
                    let info = file.u64(at.saturating_add(8))?;
                    let named = match info >> 32 {
                        0 => None,
                        n => Some(symbol(table, names, n)?),
                    };
                    relocations.push(Relocation {
                        address: file.u64(at)?,
                        kind: info as u32,
                        symbol: named.filter(|s| s.defined).map(|s| s.address),
                        addend: file.u64(at + 16)? as i64,
                    });
                }
            }
            _ => {}
        }
    }
    Ok((symbols, relocations))
}
