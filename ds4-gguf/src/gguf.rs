//! `Gguf`: an open model file, or all files of a split model.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use crate::bytes::Bytes;
use crate::directory::{Directory, Limits};
use crate::error::{FileName, Malformed};
use crate::rocmfp2::{self, DecidedBy, RocmFp2Decision, Verdict};
use crate::shard::{self, Shard};
use crate::tensor::{self, Reason, Tensor, TensorInfo, Unsupported};
use crate::ty::ROCMFP2_ID;
use crate::{Error, Metadata, RocmFp2Layout, TensorType};

/// How to open a file.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenOptions {
    /// Read type id 107 in this layout whatever the file's key or weights say.
    pub rocmfp2_layout: Option<RocmFp2Layout>,
    /// What to accept before the file has proved anything.
    pub limits: Limits,
}

/// An open GGUF model: metadata, tensor table, and the bytes behind them.
///
/// Cloning copies a pointer. Everything was checked when it was opened: every tensor of a known type lies inside its
/// file and shares no byte with another.
#[derive(Clone)]
pub struct Gguf(Arc<Model>);

struct Model {
    shards: Vec<Shard>,
    version: u32,
    alignment: u64,
    metadata: Metadata,
    tensors: Vec<TensorInfo>,
    index: HashMap<Box<str>, u32>,
    rocmfp2: Rocmfp2,
}

/// What is known of type id 107.
enum Rocmfp2 {
    Absent,
    Decided(RocmFp2Decision),
    /// Too few blocks to tell.
    Undecided {
        blocks: u64,
    },
}

impl Gguf {
    /// Map a file and read its directory; of a split model, any of its files opens all.
    ///
    /// The files are mapped, not read. As long as a clone of this lives, nobody may shorten or overwrite them: a later read
    /// of a shortened file faults (`SIGBUS`), and bytes that are overwritten change under the reader. A new file under another
    /// name that is renamed over the old one does no harm; [`NewFile`](crate::NewFile) does that.
    /// An unknown tensor type is no error here: see [`Self::unsupported_tensors`].
    ///
    /// # Errors
    /// [`Error::Io`] when a file cannot be mapped, [`Error::Malformed`] when one breaks a rule of the format,
    /// [`Error::MissingShards`], [`Error::ShardMismatch`] and [`Error::ShardName`] for split models,
    /// [`Error::RocmFp2Disagree`] when tensors of type 107 look like different layouts.
    #[cfg(feature = "mmap")]
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_with(path, &OpenOptions::default())
    }

    /// As [`Self::open`], with options.
    ///
    /// # Errors
    /// As [`Self::open`].
    #[cfg(feature = "mmap")]
    pub fn open_with(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Self, Error> {
        let first = map(path.as_ref())?;
        let directory = read(&first, options)?;
        let count = shard::count(&directory.metadata, &first.file)?;
        if count == 1 {
            return Self::assemble(vec![first], vec![directory], options);
        }
        let paths = shard::siblings(path.as_ref(), &directory.metadata, count)?;
        let shards = paths
            .iter()
            .map(|path| map(path))
            .collect::<Result<Vec<_>, _>>()?;
        Self::from_parts(shards, options)
    }

    /// Read a model from memory.
    ///
    /// # Errors
    /// [`Error::Malformed`] when the bytes break a rule of the format, [`Error::ShardMismatch`] when they are one part of
    /// a split model, [`Error::RocmFp2Disagree`] when tensors of type 107 look like different layouts.
    pub fn from_vec(bytes: Vec<u8>) -> Result<Self, Error> {
        Self::from_vec_with(bytes, &OpenOptions::default())
    }

    /// As [`Self::from_vec`], with options.
    ///
    /// # Errors
    /// As [`Self::from_vec`].
    pub fn from_vec_with(bytes: Vec<u8>, options: &OpenOptions) -> Result<Self, Error> {
        Self::from_vecs(vec![bytes], options)
    }

    /// Read a split model from memory, its files in order.
    ///
    /// # Errors
    /// As [`Self::from_vec`]; [`Error::ShardMismatch`] when the files are not the parts of one model, in order.
    pub fn from_vecs(files: Vec<Vec<u8>>, options: &OpenOptions) -> Result<Self, Error> {
        if files.is_empty() {
            return Self::from_vec_with(Vec::new(), options);
        }
        let shards = files
            .into_iter()
            .enumerate()
            .map(|(i, bytes)| Shard {
                file: FileName::Memory(i),
                bytes: Bytes::from(bytes),
            })
            .collect();
        Self::from_parts(shards, options)
    }

    /// Keys and values; of a split model, those of its first file without the `split.*` keys, since it is whole here.
    pub fn metadata(&self) -> &Metadata {
        &self.0.metadata
    }

    /// The tensor table in file order.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.0.tensors
    }

    /// Where the tensor called `name` stands in [`Gguf::tensors`].
    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.0.index.get(name).map(|&index| index as usize)
    }

    /// The tensor at `index` of [`Gguf::tensors`], with its bytes.
    ///
    /// # Panics
    /// When there are not that many tensors.
    pub fn tensor_at(&self, index: usize) -> Tensor<'_> {
        let info = &self.0.tensors[index];
        Tensor {
            info,
            bytes: bytes(&self.0.shards, info),
        }
    }

    /// The tensor called `name`, with its bytes.
    pub fn find(&self, name: &str) -> Option<Tensor<'_>> {
        Some(self.tensor_at(self.index_of(name)?))
    }

    /// The tensor called `name`, with its bytes.
    ///
    /// # Errors
    /// [`Error::MissingTensor`] when there is none.
    pub fn tensor(&self, name: &str) -> Result<Tensor<'_>, Error> {
        self.find(name)
            .ok_or_else(|| Error::MissingTensor { name: name.into() })
    }

    /// The file, or the first file of a split model; `None` for a model in memory.
    pub fn path(&self) -> Option<&Path> {
        self.0.shards[0].path()
    }

    /// Version of the (first) file: 2 or 3.
    pub fn version(&self) -> u32 {
        self.0.version
    }

    /// Alignment of tensors in the (first) file, in bytes.
    pub fn alignment(&self) -> u64 {
        self.0.alignment
    }

    /// The files of the model, one unless it is split.
    pub fn shards(&self) -> &[Shard] {
        &self.0.shards
    }

    /// Every tensor whose type has no known layout, with the reason.
    pub fn unsupported_tensors(&self) -> Vec<Unsupported<'_>> {
        let undecided = match self.0.rocmfp2 {
            Rocmfp2::Undecided { blocks } => blocks,
            Rocmfp2::Absent | Rocmfp2::Decided(_) => 0,
        };
        let unknown = |info: &TensorInfo| matches!(info.ty, TensorType::Unknown(_));
        let tensors = self.0.tensors.iter().filter(|info| unknown(info));
        tensors
            .map(|info| Unsupported {
                name: &info.name,
                id: info.ty.id(),
                reason: Reason::of(info.ty.id(), undecided),
            })
            .collect()
    }

    /// Which layout type id 107 has in this file and how that was found; `None` when no tensor has the id, or when
    /// nothing could decide it.
    pub fn rocmfp2_layout(&self) -> Option<&RocmFp2Decision> {
        match &self.0.rocmfp2 {
            Rocmfp2::Decided(decision) => Some(decision),
            Rocmfp2::Absent | Rocmfp2::Undecided { .. } => None,
        }
    }

    /// Check that the files belong together, and make one model of them.
    fn from_parts(shards: Vec<Shard>, options: &OpenOptions) -> Result<Self, Error> {
        let directories = shards
            .iter()
            .map(|shard| read(shard, options))
            .collect::<Result<Vec<_>, _>>()?;
        Self::assemble(shards, directories, options)
    }

    /// As [`Self::from_parts`], with the directories already read; there is at least one file.
    fn assemble(
        shards: Vec<Shard>,
        mut directories: Vec<Directory>,
        options: &OpenOptions,
    ) -> Result<Self, Error> {
        let first = &directories[0];
        let (version, alignment) = (first.version, first.alignment);
        let split = shards.len() > 1 || shard::count(&first.metadata, &shards[0].file)? > 1;
        if split {
            shard::check(&shards, &directories)?;
        }
        let mut metadata = std::mem::take(&mut directories[0].metadata);
        if split {
            shard::forget(&mut metadata);
        }
        let mut tensors = Vec::new();
        for ((number, shard), directory) in (0u32..).zip(&shards).zip(directories) {
            let len = shard.bytes.len() as u64;
            let resolved = tensor::resolve(directory.entries, len, number)
                .map_err(|fault| fault.within(&shard.file))?;
            tensors.extend(resolved);
        }
        let index = index(&shards, &tensors)?;
        let rocmfp2 = decide(&shards, &metadata, &tensors, options)?;
        for info in tensors.iter_mut().filter(|info| info.ty.id() == ROCMFP2_ID) {
            match &rocmfp2 {
                Rocmfp2::Decided(decision) => info.ty = decision.layout.ty(),
                Rocmfp2::Absent | Rocmfp2::Undecided { .. } => {
                    info.ty = TensorType::Unknown(ROCMFP2_ID);
                    info.extent.bytes = 0;
                }
            }
        }
        Ok(Self(Arc::new(Model {
            shards,
            version,
            alignment,
            metadata,
            tensors,
            index,
            rocmfp2,
        })))
    }
}

impl fmt::Debug for Gguf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gguf")
            .field("file", &format_args!("{}", self.0.shards[0].file))
            .field("shards", &self.0.shards.len())
            .field("keys", &self.0.metadata.len())
            .field("tensors", &self.0.tensors.len())
            .finish_non_exhaustive()
    }
}

#[cfg(feature = "mmap")]
fn map(path: &Path) -> Result<Shard, Error> {
    let map = crate::map::Map::open(path).map_err(|source| Error::Io {
        path: path.to_owned(),
        source,
    })?;
    Ok(Shard {
        file: FileName::Path(path.to_owned()),
        bytes: Bytes::mapped(map),
    })
}

fn read(shard: &Shard, options: &OpenOptions) -> Result<Directory, Error> {
    Directory::read(&shard.bytes, &options.limits).map_err(|fault| fault.within(&shard.file))
}

/// The bytes of a tensor whose extent was checked against its file.
fn bytes<'a>(shards: &'a [Shard], info: &TensorInfo) -> &'a [u8] {
    let start = info.extent.offset as usize;
    &shards[info.shard as usize].bytes[start..start + info.extent.bytes as usize]
}

/// Names to positions. One file's names are known to differ; those of several may not.
fn index(shards: &[Shard], tensors: &[TensorInfo]) -> Result<HashMap<Box<str>, u32>, Error> {
    let mut index = HashMap::with_capacity(tensors.len());
    for (at, info) in (0u32..).zip(tensors) {
        match index.entry(info.name.clone()) {
            Slot::Vacant(slot) => slot.insert(at),
            Slot::Occupied(_) => {
                let fault = Malformed::DuplicateTensor {
                    name: info.name.clone(),
                };
                return Err(fault.within(&shards[info.shard as usize].file));
            }
        };
    }
    Ok(index)
}

/// Which layout type id 107 has: the caller, the key, the weights, in this order.
fn decide(
    shards: &[Shard],
    metadata: &Metadata,
    tensors: &[TensorInfo],
    options: &OpenOptions,
) -> Result<Rocmfp2, Error> {
    let of_107: Vec<&TensorInfo> = tensors
        .iter()
        .filter(|info| info.ty.id() == ROCMFP2_ID)
        .collect();
    if of_107.is_empty() {
        return Ok(Rocmfp2::Absent);
    }
    let decided = |layout, by| Ok(Rocmfp2::Decided(RocmFp2Decision { layout, by }));
    if let Some(layout) = options.rocmfp2_layout {
        return decided(layout, DecidedBy::User);
    }
    if let Some(value) = metadata.value(RocmFp2Layout::KEY) {
        let named = metadata
            .find::<&str>(RocmFp2Layout::KEY)
            .and_then(RocmFp2Layout::from_name);
        return match named {
            Some(layout) => decided(layout, DecidedBy::Key),
            None => Err(Malformed::Key {
                key: RocmFp2Layout::KEY.into(),
                expected: "\"s40\", \"two-scale\" or \"affine\"".into(),
                found: value.to_string().into(),
            }
            .within(&shards[0].file)),
        };
    }
    let samples: Vec<&[u8]> = of_107.iter().map(|info| bytes(shards, info)).collect();
    match rocmfp2::examine(&samples) {
        Verdict::Layout(layout, statistics) => decided(layout, DecidedBy::Statistics(statistics)),
        Verdict::TooFew(blocks) => Ok(Rocmfp2::Undecided { blocks }),
        Verdict::Disagree {
            tensor,
            single,
            pooled,
        } => Err(Error::RocmFp2Disagree {
            file: shards[of_107[tensor].shard as usize].file.clone(),
            tensor: of_107[tensor].name.clone(),
            single,
            pooled,
        }),
    }
}

const _: fn() = || {
    fn shared<T: Clone + Send + Sync + 'static>() {}
    shared::<Gguf>();
    shared::<Metadata>();
};
