//! ROCmFP3-mix (id 105) and ROCmFP2-mix (id 106): the blocks of ROCmFP3 and of two-scale ROCmFP2, whose levels each
//! expert may bring along in two codebooks. Decoded here, not written.
//!
//! ```text
//! mode 0   w = fixed level[code] · sc(e[i/16])
//! mode 1   w = book[e[i/16] >> 7][code] · sc(e[i/16] & 0x7f)        levels are bf16
//! ```
//! Modes and books lie beside the tensors: in the file's metadata as an array of bytes, or in a file of the same name
//! with a suffix ([`MixTables`]).
//!
//! ```text
//! 8 bytes   magic      "GUMIXs1\0" for gate and up, "P4MIXv1\0" for down
//! u32       entries;   u32 reserved
//! each      u32 layer; gate and up: u32 surface (0 gate, 1 up); u32 experts, rows, columns, books (2), levels (4 or 8)
//!           u8 mode[experts]; down: u8 rotation[experts] (0); u16 book[experts][2][levels]
//! ```
//! Source: Luce-Org/lucebox:server/src/deepseek4/deepseek4_loader.cpp.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use ds4_gguf::{Gguf, TensorInfo, TensorType};
use half::bf16;

use super::rocmfp2::{BlockTwoScale, halves};
use super::rocmfp3::{self, BlockRocmFp3};
use crate::Error;
use crate::codebook::ue4m3;

/// Why the codebooks of a file could not be used. Every variant names the place.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "said by the messages")]
pub enum MixError {
    /// A table of another kind or age.
    #[error("the codebooks of {what} begin with {found:?}; expected {want:?}")]
    Magic {
        what: &'static str,
        found: String,
        want: &'static str,
    },

    /// The table stops inside something.
    #[error("the codebooks of {what} end at byte {len}; entry {entry} needs bytes up to {need}")]
    End {
        what: &'static str,
        entry: u32,
        need: u64,
        len: usize,
    },

    /// Bytes behind the last entry.
    #[error("the codebooks of {what} have {extra} bytes behind their last entry")]
    Extra { what: &'static str, extra: usize },

    /// A number in an entry's header that cannot be.
    #[error("layer {layer}: {field} of the codebooks is {found}; expected {want}")]
    Field {
        layer: u32,
        field: &'static str,
        found: u32,
        want: &'static str,
    },

    /// An expert whose mode, rotation or levels cannot be.
    #[error("layer {layer}, expert {expert}: {what}")]
    Expert {
        layer: u32,
        expert: u32,
        what: &'static str,
    },

    /// Two entries for one tensor.
    #[error("the codebooks of `{name}` are there twice")]
    Twice { name: Box<str> },

    /// A tensor without codebooks.
    #[error("`{name}` is of type {ty} and has no codebooks")]
    Missing { name: Box<str>, ty: TensorType },

    /// Codebooks for a tensor of another shape.
    #[error("`{name}` is {found}, its codebooks are for {want}")]
    Shape {
        name: Box<str>,
        found: Box<str>,
        want: Box<str>,
    },

    /// A metadata key of the wrong type.
    #[error("the codebooks in the file's metadata cannot be read")]
    Gguf(#[from] ds4_gguf::Error),

    /// The file of codebooks exists and cannot be read.
    #[error("cannot read {}", path.display())]
    Io { path: Box<Path>, source: io::Error },
}

/// The codebooks of one expert tensor.
#[derive(Debug)]
pub struct MixTable {
    ty: TensorType,
    rows: u32,
    cols: u32,
    /// Two books of 4 or 8 levels for every expert, or `None` where it has the fixed levels.
    experts: Box<[Option<Box<[f32]>>]>,
}

impl MixTable {
    /// Expand whole blocks of one expert.
    ///
    /// * `blocks`: `n · 10` (id 106) or `n · 14` bytes (id 105) · `out`: `[32 · n]`
    ///
    /// # Errors
    /// [`Error::Length`] when the lengths do not belong together; nothing is written then.
    ///
    /// # Panics
    /// When the tensor has no such expert.
    pub fn decode(&self, expert: usize, blocks: &[u8], out: &mut [f32]) -> Result<(), Error> {
        self.check(blocks, out.len())?;
        let books = self.experts[expert].as_deref();
        match self.ty {
            TensorType::RocmFp3Mix => {
                let blocks: &[BlockRocmFp3] = bytemuck::cast_slice(blocks);
                for (block, out) in blocks.iter().zip(out.chunks_exact_mut(32)) {
                    let codes = block.codes();
                    match books {
                        None => {
                            let q = codes.map(|code| rocmfp3::LEVELS[usize::from(code)]);
                            halves(&q, block.scales(), out);
                        }
                        Some(books) => from_books(books, 8, &codes, block.e, out),
                    }
                }
            }
            _ => {
                let blocks: &[BlockTwoScale] = bytemuck::cast_slice(blocks);
                for (BlockTwoScale(block), out) in blocks.iter().zip(out.chunks_exact_mut(32)) {
                    let codes = block.codes();
                    match books {
                        None => halves(&codes.map(|code| code - 1), block.scales(), out),
                        Some(books) => from_books(books, 4, &codes.map(|c| c as u8), block.e, out),
                    }
                }
            }
        }
        Ok(())
    }

    /// Check the scale bytes of one expert's blocks.
    ///
    /// # Errors
    /// [`Error::InvalidScale`] naming the first offending block and byte, [`Error::Length`] for a partial block.
    ///
    /// # Panics
    /// When the tensor has no such expert.
    pub fn validate(&self, expert: usize, blocks: &[u8]) -> Result<(), Error> {
        let bytes = self.ty.block_bytes();
        self.check(blocks, blocks.len() / bytes * 32)?;
        // With books bit 7 chooses one of them.
        let mask = if self.experts[expert].is_some() {
            0x7f
        } else {
            0xff
        };
        for (block, part) in blocks.chunks_exact(bytes).enumerate() {
            if let Some(&byte) = part[bytes - 2..].iter().find(|&&byte| byte & mask > 0x7e) {
                return Err(Error::InvalidScale {
                    ty: self.ty,
                    block,
                    byte,
                });
            }
        }
        Ok(())
    }

    /// How many experts the tensor has.
    pub fn experts(&self) -> usize {
        self.experts.len()
    }

    fn check(&self, blocks: &[u8], weights: usize) -> Result<(), Error> {
        let bytes = self.ty.block_bytes();
        if !blocks.len().is_multiple_of(bytes) {
            let want = blocks.len() / bytes * bytes;
            return Err(Error::Length {
                what: "packed bytes",
                got: blocks.len(),
                want,
            });
        }
        let want = blocks.len() / bytes * 32;
        if weights != want {
            return Err(Error::Length {
                what: "decoded weights",
                got: weights,
                want,
            });
        }
        Ok(())
    }
}

fn from_books(books: &[f32], levels: usize, codes: &[u8; 32], e: [u8; 2], out: &mut [f32]) {
    for ((half, codes), out) in e
        .iter()
        .zip(codes.chunks_exact(16))
        .zip(out.chunks_exact_mut(16))
    {
        let (scale, book) = (
            ue4m3(half & 0x7f),
            &books[usize::from(half >> 7) * levels..][..levels],
        );
        for (w, &code) in out.iter_mut().zip(codes) {
            *w = scale * book[usize::from(code)];
        }
    }
}

/// The codebooks of a whole file, by tensor name.
#[derive(Debug, Default)]
pub struct MixTables(HashMap<Box<str>, MixTable>);

/// The two kinds of table: what it is for, metadata key, suffix of a file, magic, levels, type of its tensors.
struct Kind {
    what: &'static str,
    key: &'static str,
    suffix: &'static str,
    magic: &'static str,
    levels: u32,
    ty: TensorType,
}

const KINDS: [Kind; 2] = [
    Kind {
        what: "gate and up experts",
        key: "deepseek4.gumix.sidecar",
        suffix: ".gumix.bin",
        magic: "GUMIXs1\0",
        levels: 4,
        ty: TensorType::RocmFp2Mix,
    },
    Kind {
        what: "down experts",
        key: "deepseek4.p4mix.sidecar",
        suffix: ".p4mix.bin",
        magic: "P4MIXv1\0",
        levels: 8,
        ty: TensorType::RocmFp3Mix,
    },
];

impl MixTables {
    /// Find the codebooks of `model`, and check that every tensor that needs some has exactly one entry of its shape.
    ///
    /// | type of tensor | metadata key, an array of bytes | file beside the model |
    /// |---|---|---|
    /// | ROCmFP2-mix (106): gate, up | `deepseek4.gumix.sidecar` | its name and `.gumix.bin` |
    /// | ROCmFP3-mix (105): down | `deepseek4.p4mix.sidecar` | its name and `.p4mix.bin` |
    ///
    /// Where the key is missing, `read` gets the path of that file and answers [`io::ErrorKind::NotFound`] where there is
    /// none; `|path| std::fs::read(path)` does. A model in memory has no such file; a model without such tensors has no
    /// tables. Source: Luce-Org/lucebox:server/src/deepseek4/deepseek4_loader.cpp.
    ///
    /// # Errors
    /// See [`MixError`].
    pub fn find(
        model: &Gguf,
        mut read: impl FnMut(&Path) -> io::Result<Vec<u8>>,
    ) -> Result<Self, MixError> {
        let mut tables = Self::default();
        for kind in &KINDS {
            if !model.tensors().iter().any(|info| info.ty == kind.ty) {
                continue;
            }
            if let Some(array) = model.metadata().try_find::<Vec<u8>>(kind.key)? {
                tables.add(kind, &array)?;
            } else if let Some(path) = model.path() {
                let mut name = path.as_os_str().to_owned();
                name.push(kind.suffix);
                match read(Path::new(&name)) {
                    Ok(bytes) => tables.add(kind, &bytes)?,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(source) => {
                        return Err(MixError::Io {
                            path: Path::new(&name).into(),
                            source,
                        });
                    }
                }
            }
        }
        for info in model.tensors() {
            if KINDS.iter().any(|kind| kind.ty == info.ty) {
                tables.cover(info)?;
            }
        }
        Ok(tables)
    }

    /// The codebooks of a tensor.
    pub fn get(&self, name: &str) -> Option<&MixTable> {
        self.0.get(name)
    }

    fn cover(&self, info: &TensorInfo) -> Result<(), MixError> {
        let name = || info.name.clone();
        let table = self.get(&info.name).filter(|table| table.ty == info.ty);
        let table = table.ok_or_else(|| MixError::Missing {
            name: name(),
            ty: info.ty,
        })?;
        let want = [
            u64::from(table.cols),
            u64::from(table.rows),
            table.experts.len() as u64,
            1,
        ];
        if (0..4).any(|i| info.dims.get(i) != want[i]) {
            let [cols, rows, experts, _] = want;
            let want = format!("{cols} × {rows} × {experts}").into();
            return Err(MixError::Shape {
                name: name(),
                found: info.dims.to_string().into(),
                want,
            });
        }
        Ok(())
    }

    fn add(&mut self, kind: &Kind, bytes: &[u8]) -> Result<(), MixError> {
        let what = kind.what;
        let mut reader = Reader {
            what,
            entry: 0,
            bytes,
            at: 0,
        };
        let magic = reader.take(8)?;
        if magic != kind.magic.as_bytes() {
            let found = String::from_utf8_lossy(magic).into_owned();
            return Err(MixError::Magic {
                what,
                found,
                want: kind.magic,
            });
        }
        let entries = reader.number()?;
        let _reserved = reader.number()?;
        for entry in 0..entries {
            reader.entry = entry;
            let (name, table) = read_table(kind, &mut reader)?;
            if self.0.insert(name.clone(), table).is_some() {
                return Err(MixError::Twice { name });
            }
        }
        match bytes.len() - reader.at {
            0 => Ok(()),
            extra => Err(MixError::Extra { what, extra }),
        }
    }
}

/// One entry: the name of its tensor, and its books.
fn read_table(kind: &Kind, reader: &mut Reader<'_>) -> Result<(Box<str>, MixTable), MixError> {
    let layer = reader.number()?;
    let surface = if kind.ty == TensorType::RocmFp2Mix {
        match reader.number()? {
            0 => "gate",
            1 => "up",
            found => {
                let (field, want) = ("the surface", "0 (gate) or 1 (up)");
                return Err(MixError::Field {
                    layer,
                    field,
                    found,
                    want,
                });
            }
        }
    } else {
        "down"
    };
    let (experts, rows, cols) = (reader.number()?, reader.number()?, reader.number()?);
    let expect = |field, found, expected, want| {
        if found == expected {
            Ok(())
        } else {
            Err(MixError::Field {
                layer,
                field,
                found,
                want,
            })
        }
    };
    expect("the number of books", reader.number()?, 2, "2")?;
    let want = if kind.levels == 4 { "4" } else { "8" };
    expect("the number of levels", reader.number()?, kind.levels, want)?;

    let modes = reader.take(u64::from(experts))?;
    let rotations: &[u8] = if kind.ty == TensorType::RocmFp3Mix {
        reader.take(u64::from(experts))?
    } else {
        &[]
    };
    if let Some(expert) = rotations.iter().position(|&rotation| rotation != 0) {
        let what = "the levels are rotated, which no published file needs";
        return Err(MixError::Expert {
            layer,
            expert: expert as u32,
            what,
        });
    }
    let levels = kind.levels as usize;
    let books = reader.take(u64::from(experts) * u64::from(kind.levels) * 4)?;
    let mut tables = Vec::with_capacity(modes.len());
    for (expert, (&mode, books)) in modes.iter().zip(books.chunks_exact(4 * levels)).enumerate() {
        let fail = |what| {
            Err(MixError::Expert {
                layer,
                expert: expert as u32,
                what,
            })
        };
        tables.push(match mode {
            0 => None,
            1 => {
                let books: Box<[f32]> = books
                    .as_chunks()
                    .0
                    .iter()
                    .map(|b| bf16::from_le_bytes(*b).to_f32())
                    .collect();
                if books.iter().any(|level| !(-1.0..=1.0).contains(level)) {
                    return fail("a level is not within −1 and 1");
                }
                if books
                    .chunks_exact(levels)
                    .any(|book| !book.is_sorted_by(|a, b| a < b))
                {
                    return fail("the levels do not ascend");
                }
                Some(books)
            }
            _ => return fail("the mode is neither 0 nor 1"),
        });
    }
    let name = format!("blk.{layer}.ffn_{surface}_exps.weight").into();
    Ok((
        name,
        MixTable {
            ty: kind.ty,
            rows,
            cols,
            experts: tables.into(),
        },
    ))
}

/// Where reading has come to.
struct Reader<'a> {
    what: &'static str,
    entry: u32,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, need: u64) -> Result<&'a [u8], MixError> {
        let (what, entry, len) = (self.what, self.entry, self.bytes.len());
        let end = (self.at as u64).saturating_add(need);
        if end > len as u64 {
            return Err(MixError::End {
                what,
                entry,
                need: end,
                len,
            });
        }
        let part = &self.bytes[self.at..end as usize];
        self.at = end as usize;
        Ok(part)
    }

    fn number(&mut self) -> Result<u32, MixError> {
        let bytes = self.take(4)?;
        Ok(bytes.first_chunk().map_or(0, |b| u32::from_le_bytes(*b)))
    }
}
