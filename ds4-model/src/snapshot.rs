//! A session on disk: tokens and state rows, checked before anything is taken over.
//!
//! The layout is in the documentation of [`Session::save`]. A change of it raises the version.

use std::io::{self, Read, Write};
use std::sync::Arc;

use ds4_gguf::Gguf;

use crate::arch::deepseek4::CacheRounding;
use crate::config::Config;
use crate::error::Error;
use crate::exec::{CopyDir, Token};
use crate::fnv::Fnv;
use crate::graph::{Graph, StateId, StateKind};
use crate::session::{Checkpoint, Session, least_missed};

const MAGIC: &[u8; 8] = b"DS4SNAP\0";
const VERSION: u32 = 3;
/// Rows are moved in pieces of about this many f32, so that memory stays bounded.
const PIECE: usize = 1 << 16;
/// Lengths in between that a snapshot can be cut at, at most: each takes as many bytes as the rings do.
const CUTS: usize = 3;

/// Why a snapshot cannot be written or taken over. The session is unchanged after a failed load.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// Reading or writing failed.
    #[error("snapshot cannot be read or written")]
    Io(#[from] io::Error),
    /// The bytes are no snapshot.
    #[error("not a snapshot: it starts with {found:02x?}")]
    Magic {
        /// First eight bytes.
        found: [u8; 8],
    },
    /// The snapshot was written in another layout.
    #[error("snapshot version is {found}, expected {VERSION}")]
    Version {
        /// Version in the file.
        found: u32,
    },
    /// The snapshot belongs to another model, or to other rounding of cached rows.
    #[error("snapshot belongs to model {found:016x}, this model is {expected:016x}")]
    Model {
        /// Fingerprint in the file.
        found: u64,
        /// Fingerprint of the open model.
        expected: u64,
    },
    /// More tokens than the context holds.
    #[error("snapshot has {found} tokens, the context holds {limit}")]
    Tokens {
        /// Tokens in the file.
        found: usize,
        /// Tokens of the context.
        limit: usize,
    },
    /// A field has a value that no writer produces.
    #[error("snapshot field `{field}` is {found}, expected {expected}")]
    Field {
        /// Name of the field.
        field: &'static str,
        /// Value in the file.
        found: u32,
        /// Value wanted.
        expected: u32,
    },
    /// The checksum does not match: the bytes were damaged.
    #[error("snapshot checksum is {found:08x}, expected {expected:08x}")]
    Checksum {
        /// Checksum in the file.
        found: u32,
        /// Checksum of what was read.
        expected: u32,
    },
}

/// What a snapshot must agree on with the model it is loaded into: all numbers of its configuration, names, types and
/// shapes of all tensors, the first kilobyte of up to 48 of them, names and widths of the states, and the rounding of
/// cached rows. 64 bits of FNV-1a: it finds mistakes, not intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint(u64);

impl Fingerprint {
    /// Hash of the configuration, of the tensor directory, of the graph's states, and of the first bytes of some tensors.
    ///
    /// Reading all weights would cost a minute; a different fine-tune of the same recipe differs in almost every block.
    pub(crate) fn of(gguf: &Gguf, config: &Config, graph: &Graph, rounding: CacheRounding) -> Self {
        const SAMPLED: usize = 48;
        const SAMPLE_BYTES: usize = 1024;
        let mut hash = Fnv::default();
        // Rows depend on numbers that no tensor shows: rotary bases, epsilons, how many experts are used. The debug form
        // has every field, and a new one cannot be forgotten; floats are printed so that they read back the same.
        let numbers = Config {
            name: None,
            ..config.clone()
        };
        hash.write(format!("{numbers:?}").as_bytes());
        let tensors = gguf.tensors();
        for info in tensors {
            hash.write(info.name.as_bytes());
            hash.write(&info.ty.id().to_le_bytes());
            info.dims
                .as_slice()
                .iter()
                .for_each(|d| hash.write(&d.to_le_bytes()));
        }
        for index in (0..tensors.len()).step_by(tensors.len().div_ceil(SAMPLED).max(1)) {
            let bytes = gguf.tensor_at(index).bytes;
            hash.write(&bytes[..bytes.len().min(SAMPLE_BYTES)]);
        }
        for spec in &graph.states().specs {
            hash.write(spec.name.as_bytes());
            hash.write(&spec.cols.to_le_bytes());
        }
        hash.write(&[match rounding {
            CacheRounding::Reference => 0,
            CacheRounding::None => 1,
        }]);
        Self(hash.value())
    }

    /// As a number.
    pub fn value(self) -> u64 {
        self.0
    }
}

impl Session {
    /// Write the timeline, its logits and its state. Returns the bytes written; all numbers are little endian:
    ///
    /// ```text
    /// 0   magic "DS4SNAP\0"            8 bytes
    /// 8   version                      u32 = 3
    /// 12  fingerprint of the model     u64
    /// 20  tokens n                     u32
    /// 24  logits stored                u32: 0 or the vocabulary
    /// 28  cuts                         u32
    /// 32  tokens                       n × u32
    ///     logits                       f32
    ///     for each state: the rows that a timeline of n tokens needs, f32
    ///     for each cut, ascending:
    ///       tokens m < n               u32
    ///       logits stored              u32: 0 or the vocabulary
    ///       logits                     f32
    ///       for each ring: the rows that a timeline of m tokens needs, f32
    ///     CRC-32 of everything before  u32
    /// ```
    /// Cuts are lengths that the timeline can be shortened to without computing it again; rows of closed windows are
    /// those of the whole.
    ///
    /// # Errors
    /// [`Error::Snapshot`] when `out` fails, [`Error::Exec`] when rows cannot be read back.
    pub fn save(&self, out: &mut impl Write) -> Result<u64, Error> {
        let mut out = Summed::new(out);
        self.put(&mut out)?;
        let crc = out.crc.clone().finalize();
        put_bytes(&crc.to_le_bytes(), &mut out)?;
        Ok(out.bytes)
    }

    /// What [`Session::save`] writes, but for the checksum at the end: copying only, so that the rest can be done elsewhere.
    ///
    /// # Errors
    /// [`Error::Exec`] when rows cannot be read back.
    pub(crate) fn copied(&self) -> Result<Vec<u8>, Error> {
        let mut out = Vec::with_capacity(self.saved_bytes() as usize);
        self.put(&mut out)?;
        Ok(out)
    }

    /// Lengths that a snapshot made now can be cut at, ascending.
    pub(crate) fn cuts(&self) -> Vec<usize> {
        self.kept().iter().map(|c| c.len).collect()
    }

    /// The checkpoints that go into a snapshot.
    fn kept(&self) -> Vec<&Arc<Checkpoint>> {
        let len = self.tokens().len();
        let mut kept: Vec<_> = self.checkpoints().iter().collect();
        kept.retain(|c| c.len < len);
        while kept.len() > CUTS {
            let lens: Vec<usize> = kept.iter().map(|c| c.len).collect();
            kept.remove(least_missed(&lens, len));
        }
        kept
    }

    fn put(&self, out: &mut impl Write) -> Result<(), Error> {
        let (tokens, kept) = (self.tokens(), self.kept());
        put_bytes(MAGIC, out)?;
        put_bytes(&VERSION.to_le_bytes(), out)?;
        put_bytes(&self.engine().shared().fingerprint.0.to_le_bytes(), out)?;
        for count in [tokens.len(), self.logits().len(), kept.len()] {
            put_bytes(&(count as u32).to_le_bytes(), out)?;
        }
        put_numbers(tokens, Token::to_le_bytes, out)?;
        put_numbers(self.logits(), f32::to_le_bytes, out)?;
        let mut rows = Vec::new();
        for piece in self.pieces(tokens.len()) {
            rows.resize(piece.rows * piece.cols, 0.0);
            let mut executor = self.engine().shared().executor();
            executor.copy_state(self.set(), piece.id, piece.first, CopyDir::Out(&mut rows))?;
            drop(executor);
            put_numbers(&rows, f32::to_le_bytes, out)?;
        }
        for cut in kept {
            for count in [cut.len, cut.logits.len()] {
                put_bytes(&(count as u32).to_le_bytes(), out)?;
            }
            put_numbers(&cut.logits, f32::to_le_bytes, out)?;
            for (_, _, rows) in &cut.rings {
                put_numbers(rows, f32::to_le_bytes, out)?;
            }
        }
        Ok(())
    }

    /// Bytes that [`Session::save`] writes.
    pub fn saved_bytes(&self) -> u64 {
        let rows = self.pieces(self.tokens().len()).map(|p| p.rows * p.cols);
        let cuts = self.kept().into_iter().map(|cut| {
            let rows = cut.rings.iter().map(|(_, _, rows)| rows.len());
            2 + cut.logits.len() + rows.sum::<usize>()
        });
        let numbers = [self.tokens().len(), self.logits().len()];
        let numbers = numbers.into_iter().chain(rows).chain(cuts).sum::<usize>();
        (32 + 4) + 4 * numbers as u64
    }

    /// Replace the timeline, and its logits where they were saved, by one written by [`Session::save`]. Model, layout and
    /// rounding of cached rows must be the same: see [`Fingerprint`].
    ///
    /// # Errors
    /// [`Error::Snapshot`] says what is wrong with the bytes, and the session is as it was; [`Error::Exec`] when there is no
    /// memory for its rows, and the session is empty then.
    pub fn load(&mut self, from: &mut impl Read) -> Result<(), Error> {
        let loaded = self.read(from)?;
        // From here only memory can fail; the timeline is empty then, and the session still usable.
        self.restored(Vec::new(), Vec::new(), Vec::new());
        let mut executor = self.engine().shared().executor();
        for (piece, rows) in &loaded.rows {
            executor.copy_state(self.set(), piece.id, piece.first, CopyDir::In(rows))?;
        }
        drop(executor);
        self.restored(loaded.tokens, loaded.logits, loaded.cuts);
        Ok(())
    }

    fn read(&self, from: &mut impl Read) -> Result<Loaded, SnapshotError> {
        let mut from = Summed::new(from);
        let magic: [u8; 8] = from.get()?;
        if magic != *MAGIC {
            return Err(SnapshotError::Magic { found: magic });
        }
        let version = u32::from_le_bytes(from.get()?);
        if version != VERSION {
            return Err(SnapshotError::Version { found: version });
        }
        let (found, expected) = (
            u64::from_le_bytes(from.get()?),
            self.engine().shared().fingerprint.0,
        );
        if found != expected {
            return Err(SnapshotError::Model { found, expected });
        }
        let [count, logits, cuts] = [from.number()?, from.number()?, from.number()?];
        let (found, limit) = (count as usize, self.engine().context());
        if found > limit {
            return Err(SnapshotError::Tokens { found, limit });
        }
        let vocab = self.engine().config().vocab as u32;
        if logits != 0 && logits != vocab {
            return Err(field("logits", logits, vocab));
        }
        if cuts as usize > CUTS {
            return Err(field("cuts", cuts, CUTS as u32));
        }
        // Buffers grow as bytes arrive: a short file cannot ask for more memory than it has bytes.
        let tokens = from.numbers(found, Token::from_le_bytes)?;
        if let Some(&token) = tokens.iter().find(|&&t| t >= vocab) {
            return Err(field("token", token, vocab - 1));
        }
        let logits = from.numbers(logits as usize, f32::from_le_bytes)?;
        let mut rows = Vec::new();
        for piece in self.pieces(found) {
            let values = from.numbers(piece.rows * piece.cols, f32::from_le_bytes)?;
            rows.push((piece, values));
        }
        let mut kept: Vec<Arc<Checkpoint>> = Vec::new();
        for _ in 0..cuts {
            let above = kept.last().map_or(0, |c| c.len as u32 + 1);
            let cut = self.read_cut(&mut from, above, count, vocab)?;
            kept.push(Arc::new(cut));
        }
        let expected = from.crc.clone().finalize();
        let found = u32::from_le_bytes(from.get()?);
        match found == expected {
            true => Ok(Loaded {
                tokens,
                logits,
                rows,
                cuts: kept,
            }),
            false => Err(SnapshotError::Checksum { found, expected }),
        }
    }

    /// A cut of at least `above` and less than `below` tokens.
    fn read_cut<R: Read>(
        &self,
        from: &mut Summed<&mut R>,
        above: u32,
        below: u32,
        vocab: u32,
    ) -> Result<Checkpoint, SnapshotError> {
        let [len, logits] = [from.number()?, from.number()?];
        if len < above {
            return Err(field("cut", len, above));
        }
        if len >= below {
            return Err(field("cut", len, below.saturating_sub(1)));
        }
        if logits != 0 && logits != vocab {
            return Err(field("logits of a cut", logits, vocab));
        }
        let logits = from.numbers(logits as usize, f32::from_le_bytes)?;
        let layout = self.engine().graph().states();
        let rings = self.rings().map(|(id, keep)| {
            let first = keep.first(len);
            let count = (len - first) as usize * layout.spec(id).cols as usize;
            Ok((id, first as usize, from.numbers(count, f32::from_le_bytes)?))
        });
        Ok(Checkpoint {
            len: len as usize,
            logits,
            rings: rings.collect::<Result<_, SnapshotError>>()?,
        })
    }

    /// The rows that a timeline of `len` tokens needs, in pieces of bounded size.
    pub(crate) fn pieces(&self, len: usize) -> impl Iterator<Item = Piece> {
        let specs = self.engine().graph().states().specs.iter().enumerate();
        specs.flat_map(move |(i, spec)| {
            let (first, end) = match spec.kind {
                StateKind::Ring { keep } => (keep.first(len as u32) as usize, len),
                StateKind::Windows { ratio } => (0, len / ratio as usize),
            };
            let (id, cols) = (StateId(i as u32), spec.cols as usize);
            let step = (PIECE / cols).max(1);
            (first..end).step_by(step).map(move |first| Piece {
                id,
                first,
                rows: step.min(end - first),
                cols,
            })
        })
    }
}

fn field(field: &'static str, found: u32, expected: u32) -> SnapshotError {
    SnapshotError::Field {
        field,
        found,
        expected,
    }
}

fn put_bytes(bytes: &[u8], out: &mut impl Write) -> Result<(), SnapshotError> {
    Ok(out.write_all(bytes)?)
}

/// Numbers of four bytes, little endian, many at a time.
fn put_numbers<T: Copy>(
    numbers: &[T],
    encode: impl Fn(T) -> [u8; 4],
    out: &mut impl Write,
) -> Result<(), SnapshotError> {
    let mut buffer = [0; 4096];
    for numbers in numbers.chunks(buffer.len() / 4) {
        for (bytes, &number) in buffer.chunks_exact_mut(4).zip(numbers) {
            bytes.copy_from_slice(&encode(number));
        }
        put_bytes(&buffer[..4 * numbers.len()], out)?;
    }
    Ok(())
}

struct Loaded {
    tokens: Vec<Token>,
    logits: Vec<f32>,
    rows: Vec<(Piece, Vec<f32>)>,
    cuts: Vec<Arc<Checkpoint>>,
}

/// Some rows of one state.
pub(crate) struct Piece {
    pub(crate) id: StateId,
    pub(crate) first: usize,
    pub(crate) rows: usize,
    pub(crate) cols: usize,
}

/// A stream with a running checksum.
struct Summed<T> {
    inner: T,
    crc: crc32fast::Hasher,
    bytes: u64,
}

impl<T> Summed<T> {
    fn new(inner: T) -> Self {
        Self {
            inner,
            crc: crc32fast::Hasher::new(),
            bytes: 0,
        }
    }
}

impl<W: Write> Write for Summed<&mut W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.crc.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<R: Read> Summed<&mut R> {
    fn get<const N: usize>(&mut self) -> Result<[u8; N], SnapshotError> {
        let mut bytes = [0; N];
        self.inner.read_exact(&mut bytes)?;
        self.crc.update(&bytes);
        Ok(bytes)
    }

    fn number(&mut self) -> Result<u32, SnapshotError> {
        self.get().map(u32::from_le_bytes)
    }

    fn numbers<T>(
        &mut self,
        count: usize,
        decode: impl Fn([u8; 4]) -> T,
    ) -> Result<Vec<T>, SnapshotError> {
        let mut out = Vec::new();
        let mut buffer = [0; 4096];
        let mut left = count * 4;
        while left > 0 {
            let bytes = &mut buffer[..left.min(4096)];
            self.inner.read_exact(bytes)?;
            self.crc.update(bytes);
            out.extend(
                bytes
                    .chunks_exact(4)
                    .map(|b| decode([b[0], b[1], b[2], b[3]])),
            );
            left -= bytes.len();
        }
        Ok(out)
    }
}
