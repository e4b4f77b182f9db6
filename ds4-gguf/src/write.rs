//! Writing: plan first (metadata, names, shapes, types), then stream the data in the same order.
//!
//! The header holds every tensor's offset, so all shapes and types are known before the first byte of data; data may
//! then be produced piece by piece and never has to be in memory. Version 3; every tensor, the last included, is
//! padded with zeros to the alignment, as ggml's writers do: a file of theirs, read and written, has the same bytes.

use std::collections::HashSet;
use std::io::Write;

use crate::array::Array;
use crate::convert::Item;
use crate::cursor::{MAX_DEPTH, MAX_NAME};
use crate::directory;
use crate::error::quoted;
use crate::tensor::tensor_bytes;
use crate::value::encode_string;
use crate::{Dims, Error, Extent, Metadata, RocmFp2Layout, TensorInfo, TensorType};

/// The version that is written.
const VERSION: u32 = 3;

/// What a file will contain: metadata, and tensors in order.
///
/// ```
/// use ds4_gguf::{Gguf, Metadata, Plan, TensorType, Writer};
/// let mut metadata = Metadata::new();
/// metadata.set("general.architecture", "demo");
/// let mut plan = Plan::new(metadata)?;
/// plan.add("a", &[2, 3], TensorType::F32)?;
/// plan.add("b", &[32], TensorType::Q8_0)?;
///
/// let mut writer = Writer::new(Vec::new(), plan)?;
/// writer.tensor("a", &[0; 24])?;
/// writer.write(&[1; 2])?; // "b" in two pieces
/// writer.write(&[2; 32])?;
/// let file = Gguf::from_vec(writer.finish()?)?;
/// assert_eq!(file.tensor("b")?.bytes[..3], [1, 1, 2]);
/// # Ok::<(), ds4_gguf::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Plan {
    metadata: Metadata,
    alignment: u64,
    /// Offsets count from the start of the data until the header's length is known.
    tensors: Vec<TensorInfo>,
    names: HashSet<Box<str>>,
    data_bytes: u64,
}

impl Plan {
    /// A file with this metadata and no tensors yet. Tensors are aligned to its `general.alignment`, 32 without.
    ///
    /// # Errors
    /// [`Error::Unwritable`] when that key is not a power of two up to 16 MiB.
    pub fn new(metadata: Metadata) -> Result<Self, Error> {
        let alignment =
            directory::alignment(&metadata).map_err(|fault| unwritable("the metadata", fault))?;
        Ok(Self {
            metadata,
            alignment,
            tensors: Vec::new(),
            names: HashSet::new(),
            data_bytes: 0,
        })
    }

    /// The next tensor: its shape, fastest extent first, and the type of its blocks.
    ///
    /// A type of id 107 puts its layout into the metadata under [`RocmFp2Layout::KEY`].
    ///
    /// # Errors
    /// [`Error::Unwritable`] for a name that is empty, too long or used before, a shape or type that cannot be
    /// stored, and a second layout of id 107.
    pub fn add(&mut self, name: &str, dims: &[u64], ty: TensorType) -> Result<(), Error> {
        let tensor = || format!("tensor {}", quoted(name));
        check_name(name).map_err(|why| unwritable(&tensor(), why))?;
        if self.names.contains(name) {
            return Err(unwritable(&tensor(), "the plan has one of this name"));
        }
        let Some(shape) = Dims::new(dims) else {
            let why = format!(
                "dimensions {dims:?}, expected 1 to 4 of at least 1 and a product below 2^63"
            );
            return Err(unwritable(&tensor(), why));
        };
        if let TensorType::Unknown(id) = ty {
            return Err(unwritable(
                &tensor(),
                format!("type {id} has no known size"),
            ));
        }
        let bytes = tensor_bytes(name, &shape, ty).map_err(|fault| unwritable(&tensor(), fault))?;
        let end = self
            .data_bytes
            .checked_add(bytes)
            .and_then(|end| end.checked_next_multiple_of(self.alignment))
            .filter(|&end| end <= i64::MAX as u64)
            .ok_or_else(|| unwritable(&tensor(), "the file would pass 2^63 bytes"))?;
        if let Some(layout) = ty.rocmfp2_layout() {
            self.name_layout(layout)
                .map_err(|why| unwritable(&tensor(), why))?;
        }
        let extent = Extent {
            offset: self.data_bytes,
            bytes,
        };
        self.tensors.push(TensorInfo {
            name: name.into(),
            dims: shape,
            ty,
            extent,
            shard: 0,
        });
        self.names.insert(name.into());
        self.data_bytes = end;
        Ok(())
    }

    /// The metadata that will be written.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The tensors so far; offsets count from the start of the data.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    /// Bytes of the file, header and padding included.
    ///
    /// # Errors
    /// As [`Writer::new`].
    pub fn file_bytes(&self) -> Result<u64, Error> {
        let header = self.header()?.len() as u64;
        header
            .checked_add(self.data_bytes)
            .ok_or_else(|| unwritable("the file", "it would pass 2^64 bytes"))
    }

    /// Record which layout id 107 has, once and for the whole file.
    fn name_layout(&mut self, layout: RocmFp2Layout) -> Result<(), String> {
        match self.metadata.value(RocmFp2Layout::KEY) {
            None => {
                self.metadata.set(RocmFp2Layout::KEY, layout.name());
                Ok(())
            }
            Some(value) if value.item() == Item::String(layout.name().as_bytes()) => Ok(()),
            Some(value) => Err(format!(
                "layout {layout}, but {} is {value}",
                RocmFp2Layout::KEY
            )),
        }
    }

    /// Everything before the data, padded to the alignment; the first tensor follows.
    ///
    /// # Errors
    /// [`Error::Unwritable`] when a key is empty or too long or arrays nest deeper than eight.
    pub fn header(&self) -> Result<Vec<u8>, Error> {
        let mut out = b"GGUF".to_vec();
        out.extend(VERSION.to_le_bytes());
        out.extend((self.tensors.len() as u64).to_le_bytes());
        out.extend((self.metadata.len() as u64).to_le_bytes());
        for (key, value) in self.metadata.iter() {
            let what = || format!("metadata key {}", quoted(key));
            check_name(key).map_err(|why| unwritable(&what(), why))?;
            if let Item::Array(array) = value.item() {
                check_depth(&array).map_err(|why| unwritable(&what(), why))?;
            }
            encode_string(key.as_bytes(), &mut out);
            out.extend(value.ty().id().to_le_bytes());
            value.encode(&mut out);
        }
        for info in &self.tensors {
            encode_string(info.name.as_bytes(), &mut out);
            out.extend((info.dims.as_slice().len() as u32).to_le_bytes());
            for n in info.dims.as_slice() {
                out.extend(n.to_le_bytes());
            }
            out.extend(info.ty.id().to_le_bytes());
            out.extend(info.extent.offset.to_le_bytes());
        }
        out.resize(out.len().next_multiple_of(self.alignment as usize), 0);
        Ok(out)
    }
}

fn unwritable(what: &str, why: impl ToString) -> Error {
    Error::Unwritable {
        what: what.into(),
        why: why.to_string().into(),
    }
}

fn check_name(name: &str) -> Result<(), String> {
    let len = name.len() as u64;
    if (1..=MAX_NAME).contains(&len) {
        Ok(())
    } else {
        Err(format!("{len} bytes long, names have 1 to {MAX_NAME}"))
    }
}

fn check_depth(array: &Array<'_>) -> Result<(), String> {
    let depth = array.depth();
    if depth <= MAX_DEPTH {
        Ok(())
    } else {
        Err(format!("arrays nested {depth} deep, at most {MAX_DEPTH}"))
    }
}

/// Streams the data of a planned file into `W`.
///
/// Nothing is valid until [`Self::finish`] has returned: write to another name and rename. The sink is written from
/// its current position, in order and in pieces as small as the caller's; wrap a file in a
/// [`BufWriter`](std::io::BufWriter) when they are small.
#[derive(Debug)]
pub struct Writer<W: Write> {
    sink: W,
    tensors: Vec<TensorInfo>,
    file_bytes: u64,
    alignment: u64,
    /// Tensors complete.
    done: usize,
    /// Bytes written of the tensor that is not.
    part: u64,
}

impl<W: Write> Writer<W> {
    /// Write the header.
    ///
    /// # Errors
    /// [`Error::Unwritable`] when a key is empty or too long or arrays nest deeper than eight, [`Error::Write`] when
    /// the sink fails.
    pub fn new(mut sink: W, plan: Plan) -> Result<Self, Error> {
        let header = plan.header()?;
        let data = header.len() as u64;
        let file_bytes = data
            .checked_add(plan.data_bytes)
            .ok_or_else(|| unwritable("the file", "it would pass 2^64 bytes"))?;
        sink.write_all(&header).map_err(Error::Write)?;
        let mut tensors = plan.tensors;
        tensors
            .iter_mut()
            .for_each(|info| info.extent.offset += data);
        Ok(Self {
            sink,
            tensors,
            file_bytes,
            alignment: plan.alignment,
            done: 0,
            part: 0,
        })
    }

    /// The planned tensors with their places in the file.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    /// Bytes of the finished file.
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// The tensor that the next bytes belong to; `None` when all are written.
    pub fn current(&self) -> Option<&TensorInfo> {
        self.tensors.get(self.done)
    }

    /// A whole tensor, which must be the next one.
    ///
    /// # Errors
    /// [`Error::OffPlan`] when another tensor or another number of bytes is planned here, and nothing is written
    /// then; [`Error::Write`] when the sink fails.
    pub fn tensor(&mut self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let planned = self
            .current()
            .is_some_and(|info| *info.name == *name && info.extent.bytes == bytes.len() as u64);
        if !planned || self.part != 0 {
            return Err(self.off_plan(format!("{} bytes of tensor {}", bytes.len(), quoted(name))));
        }
        self.write(bytes)
    }

    /// The next bytes of the current tensor.
    ///
    /// # Errors
    /// [`Error::OffPlan`] when they are more than the current tensor lacks, and nothing is written then;
    /// [`Error::Write`] when the sink fails.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let left = self
            .current()
            .map_or(0, |info| info.extent.bytes - self.part);
        let len = bytes.len() as u64;
        if len > left {
            return Err(self.off_plan(format!("{len} bytes")));
        }
        self.sink.write_all(bytes).map_err(Error::Write)?;
        self.part += len;
        if len == left && len > 0 {
            let padding = self.part.next_multiple_of(self.alignment) - self.part;
            self.done += 1;
            self.part = 0;
            std::io::copy(
                &mut std::io::Read::take(std::io::repeat(0), padding),
                &mut self.sink,
            )
            .map_err(Error::Write)?;
        }
        Ok(())
    }

    /// Flush and give the sink back.
    ///
    /// # Errors
    /// [`Error::OffPlan`] when a planned tensor is not written, [`Error::Write`] when the sink fails.
    pub fn finish(mut self) -> Result<W, Error> {
        if self.current().is_some() {
            return Err(self.off_plan("the end".to_owned()));
        }
        self.sink.flush().map_err(Error::Write)?;
        Ok(self.sink)
    }

    fn off_plan(&self, found: String) -> Error {
        let expected = match self.current() {
            Some(info) => format!(
                "{} bytes of tensor {}",
                info.extent.bytes - self.part,
                quoted(&info.name)
            ),
            None => "the end".to_owned(),
        };
        Error::OffPlan {
            expected: expected.into(),
            found: found.into(),
        }
    }
}
