//! A loaded code object: its image in memory, its instructions, its kernels.

use std::collections::HashMap;
use std::sync::Arc;

use crate::decode::{self, text};
use crate::descriptor::{self, Descriptor};
use crate::elf::{self, Elf};
use crate::exec::{Inst, Kind};
use crate::memory::{Block, Part};
use crate::note::{self, Argument, KernelNote};
use crate::options::Class;
use crate::{Error, Tools};

/// The instructions of a module, in the order of their addresses.
pub(crate) struct Code {
    pub(crate) insts: Vec<Inst>,
    addresses: Vec<u64>,
    texts: Vec<Box<str>>,
    index: HashMap<u64, usize>,
    /// Index of the first instruction of each function, ascending.
    functions: Vec<usize>,
}

impl Code {
    /// The address of instruction `index`; of the one after the last, the address of the last.
    pub(crate) fn address(&self, index: usize) -> u64 {
        let last = self.addresses.len().saturating_sub(1);
        self.addresses.get(index.min(last)).copied().unwrap_or(0)
    }

    /// The instruction that starts at `address`.
    pub(crate) fn index(&self, address: u64) -> Option<usize> {
        self.index.get(&address).copied()
    }

    /// An instruction as the disassembler writes it.
    pub(crate) fn text(&self, index: usize) -> &str {
        self.texts.get(index).map_or("", |t| t)
    }
}

/// Code and data of a module as the kernels see them.
pub(crate) struct Image {
    block: Block,
    /// Address within the code object, bytes, writable.
    segments: Vec<(u64, u64, bool)>,
}

impl Image {
    /// The address where the code object's address 0 is.
    pub(crate) fn base(&self) -> u64 {
        self.block.address()
    }

    /// The segments, for a launch.
    pub(crate) fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        self.segments
            .iter()
            .filter_map(|&(address, bytes, writable)| self.block.part(address, bytes, writable))
    }
}

/// A kernel of a module. Keeps the module's code and data alive.
pub struct Kernel {
    pub(crate) code: Arc<Code>,
    pub(crate) image: Arc<Image>,
    pub(crate) descriptor: Descriptor,
    pub(crate) note: KernelNote,
    pub(crate) entry: usize,
}

impl Kernel {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.note.name
    }

    /// The arguments that the caller passes, in order; `offset` and `bytes` place them in the argument block.
    pub fn args(&self) -> impl Iterator<Item = &Argument> {
        self.note.args.iter().filter(|a| !is_hidden(a))
    }

    /// Bytes of the argument block that the caller fills.
    pub fn args_bytes(&self) -> usize {
        self.args()
            .map(|a| (a.offset + a.bytes) as usize)
            .max()
            .unwrap_or(0)
    }

    /// Static LDS of a block, in bytes.
    pub fn lds_bytes(&self) -> u32 {
        self.descriptor.lds_bytes
    }

    /// Vector registers a lane, as the compiler counted.
    pub fn vgprs(&self) -> u32 {
        self.note.vgprs
    }

    /// Scalar registers a wave, as the compiler counted.
    pub fn sgprs(&self) -> u32 {
        self.note.sgprs
    }

    /// Its instructions in the order of their addresses: address within the code object, text, class. The padding behind the last
    /// `s_endpgm` is left out.
    pub fn instructions(&self) -> impl Iterator<Item = (u64, &str, Class)> {
        let code = &*self.code;
        let next = code.functions.partition_point(|&f| f <= self.entry);
        let end = code
            .functions
            .get(next)
            .copied()
            .unwrap_or(code.insts.len());
        let last = (self.entry..end)
            .rev()
            .find(|&k| matches!(code.insts[k].kind, Kind::End))
            .map_or(end, |k| k + 1);
        (self.entry..last).map(|k| (code.address(k), code.text(k), code.insts[k].class))
    }

    /// The most work-items a block may have.
    pub fn max_block(&self) -> u32 {
        self.note.max_block
    }
}

/// Whether the runtime fills the argument.
pub(crate) fn is_hidden(argument: &Argument) -> bool {
    argument.kind.starts_with("hidden_")
}

/// A loaded code object.
pub struct Module {
    kernels: Vec<Kernel>,
    globals: HashMap<String, (u64, u64)>,
}

impl Module {
    /// Load a bare gfx1151 code object (ELF, version 5).
    ///
    /// # Errors
    /// Whatever keeps one of its kernels from being executed; see [`Error`].
    pub fn load(object: &[u8], tools: &Tools) -> Result<Self, Error> {
        let elf = elf::read(object)?;
        let notes = note::read(elf.metadata)?;
        let image = Arc::new(load_image(&elf)?);
        let found: Vec<(KernelNote, Descriptor)> = notes
            .into_iter()
            .map(|note| describe(&elf, note))
            .collect::<Result<_, _>>()?;
        let code = Arc::new(decode_all(&tools.disassemble(object)?)?);
        let mut kernels = Vec::new();
        for (note, descriptor) in found {
            let entry = code.index(descriptor.entry).ok_or(Error::Metadata {
                what: "a kernel's entry is no instruction",
            })?;
            kernels.push(Kernel {
                code: Arc::clone(&code),
                image: Arc::clone(&image),
                descriptor,
                note,
                entry,
            });
        }
        let globals = elf
            .symbols
            .iter()
            .filter(|s| s.defined && s.bytes > 0 && !s.name.ends_with(".kd"))
            .map(|s| {
                (
                    s.name.clone(),
                    (image.base().wrapping_add(s.address), s.bytes),
                )
            })
            .collect();
        Ok(Self { kernels, globals })
    }

    /// The kernel `name`.
    pub fn kernel(&self, name: &str) -> Option<&Kernel> {
        self.kernels.iter().find(|k| k.name() == name)
    }

    /// All kernels.
    pub fn kernels(&self) -> &[Kernel] {
        &self.kernels
    }

    /// Address and bytes of a global variable or constant.
    pub fn global(&self, name: &str) -> Option<(u64, u64)> {
        self.globals.get(name).copied()
    }
}

/// Segments at their addresses, relocated.
fn load_image(elf: &Elf<'_>) -> Result<Image, Error> {
    const LIMIT: u64 = 1 << 28;
    let end = elf
        .segments
        .iter()
        .map(|s| s.address.saturating_add(s.bytes));
    let bytes = end.max().unwrap_or(0);
    if bytes > LIMIT {
        return Err(Error::NotElf {
            what: "its segments span more than 256 MiB",
        });
    }
    let mut data = vec![0; bytes as usize];
    for s in &elf.segments {
        let at = s.address as usize;
        data[at..at + s.data.len()].copy_from_slice(s.data);
    }
    // Relocations hold addresses, so the block must have its place before they are applied.
    let block = Block::new(&data);
    let base = block.address();
    for r in &elf.relocations {
        const ABS64: u32 = 3;
        const RELATIVE64: u32 = 13;
        let cannot = Error::Relocation {
            kind: r.kind,
            address: r.address,
        };
        let value = match (r.kind, r.symbol) {
            (ABS64, Some(symbol)) => base.wrapping_add(symbol).wrapping_add_signed(r.addend),
            (RELATIVE64, _) => base.wrapping_add_signed(r.addend),
            _ => return Err(cannot),
        };
        if !block.write(r.address, value.to_le_bytes()) {
            return Err(cannot);
        }
    }
    Ok(Image {
        block,
        segments: elf
            .segments
            .iter()
            .map(|s| (s.address, s.bytes, s.writable))
            .collect(),
    })
}

/// The descriptor of a kernel of the note.
fn describe(elf: &Elf<'_>, note: KernelNote) -> Result<(KernelNote, Descriptor), Error> {
    let symbol = elf
        .symbols
        .iter()
        .find(|s| s.name == note.symbol && s.defined)
        .ok_or(Error::Metadata {
            what: "a kernel's descriptor symbol is missing",
        })?;
    let bytes = elf
        .segments
        .iter()
        .find_map(|s| {
            let at = usize::try_from(symbol.address.checked_sub(s.address)?).ok()?;
            s.data.get(at..at.checked_add(64)?)
        })
        .ok_or(Error::Metadata {
            what: "a kernel's descriptor lies outside the file",
        })?;
    let bytes = std::array::from_fn(|i| bytes[i]);
    if note.wavefront != 32 {
        return Err(Error::Wave64 { kernel: note.name });
    }
    if note.scratch_bytes != 0 || note.dynamic_stack {
        return Err(Error::Scratch {
            kernel: note.name,
            bytes: note.scratch_bytes,
        });
    }
    let descriptor = descriptor::read(&note.name, &bytes, symbol.address)?;
    Ok((note, descriptor))
}

fn decode_all(listing: &str) -> Result<Code, Error> {
    let mut code = Code {
        insts: Vec::new(),
        addresses: Vec::new(),
        texts: Vec::new(),
        index: HashMap::new(),
        functions: Vec::new(),
    };
    let mut function = "";
    for line in text::lines(listing) {
        let inst = decode::decode(&line).map_err(|why| Error::UnknownInstruction {
            function: line.function.to_owned(),
            address: line.address,
            text: line.text.to_owned(),
            why,
        })?;
        if line.function != function {
            function = line.function;
            code.functions.push(code.insts.len());
        }
        code.index.insert(line.address, code.insts.len());
        code.addresses.push(line.address);
        code.texts.push(line.text.into());
        code.insts.push(inst);
    }
    for inst in &mut code.insts {
        if let Kind::Branch(branch) = &mut inst.kind {
            branch.target = code.index.get(&branch.address).copied();
        }
    }
    Ok(code)
}
