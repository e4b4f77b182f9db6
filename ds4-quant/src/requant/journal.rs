//! The journal: everything that is needed to finish, whatever happens to the model in between.
//!
//! ```text
//! 0      "ds4rqjnl"          8 bytes
//! 8      version             u32     1
//! 12     length of the body  u64
//! 20     checksum of it      u32     CRC-32
//! 24     body: what the file was, what it becomes, the importance used (see `Body`)
//! then   records:
//!        kind                u32     1 redo, 2 done
//!        step                u64     steps count from 0
//!        length of payload   u64     0 for done
//!        checksum            u32     CRC-32 of the 20 bytes before and the payload
//!        payload                     redo: the bytes that the step writes
//! ```
//! all little endian. The room for all records is written with zeros before the model is touched, so that a full disk
//! is found then. A record that is torn, or was never synced, has a wrong checksum and counts as absent.

use ds4_gguf::{Dims, TensorType};

use super::layout::Move;
use super::{Part, RequantError, Storage};

const MAGIC: [u8; 8] = *b"ds4rqjnl";
const VERSION: u32 = 1;
const HEAD: usize = 24;
const RECORD: usize = 24;

/// More than any plan needs: a body holds the header of the model, a line a tensor, and importance.
const MAX_BODY: u64 = 8 << 30;

/// What the file was and what it becomes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Body {
    /// Bytes of the file before.
    pub(super) old_len: u64,
    /// Bytes of its header, and their checksum.
    pub(super) old_header: (u64, u32),
    /// Bytes of the file after.
    pub(super) new_len: u64,
    pub(super) alignment: u64,
    /// Bytes a step, and a small step.
    pub(super) step: (u64, u64),
    /// Whether weights that are no numbers are clamped.
    pub(super) clamp: bool,
    /// The whole new header, padded.
    pub(super) header: Vec<u8>,
    pub(super) moves: Vec<Move>,
}

/// A record, as its first 20 bytes have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Redo = 1,
    Done = 2,
}

/// How far the records have come.
pub(super) struct State {
    /// Steps that are done.
    pub(super) done: usize,
    /// The result of the next step, when it was journaled.
    pub(super) redo: Option<Vec<u8>>,
    /// Where the next record goes.
    pub(super) end: u64,
}

impl Body {
    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for n in [
            self.old_len,
            self.old_header.0,
            u64::from(self.old_header.1),
            self.new_len,
            self.alignment,
            self.step.0,
            self.step.1,
            u64::from(self.clamp),
            self.header.len() as u64,
        ] {
            out.extend(n.to_le_bytes());
        }
        out.extend(&self.header);
        out.extend((self.moves.len() as u64).to_le_bytes());
        for m in &self.moves {
            for text in [&*m.name, m.from.name(), m.to.name()] {
                out.extend((text.len() as u64).to_le_bytes());
                out.extend(text.as_bytes());
            }
            let ne = m.dims.as_slice();
            out.extend((ne.len() as u64).to_le_bytes());
            for n in ne
                .iter()
                .chain(&[m.read, m.write, m.importance.len() as u64])
            {
                out.extend(n.to_le_bytes());
            }
            out.extend(m.importance.iter().flat_map(|a| a.to_le_bytes()));
        }
        out
    }

    /// `None` when the bytes are no body.
    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        let old_len = reader.u64()?;
        let old_header = (reader.u64()?, u32::try_from(reader.u64()?).ok()?);
        let new_len = reader.u64()?;
        let alignment = reader.u64().filter(|n| n.is_power_of_two())?;
        let step = (reader.u64()?, reader.u64()?);
        let clamp = reader.u64()? != 0;
        let header = reader.sized()?.to_vec();
        let count = reader.u64()?;
        let moves = (0..count)
            .map(|_| reader.tensor())
            .collect::<Option<Vec<_>>>()?;
        reader.0.is_empty().then_some(Self {
            old_len,
            old_header,
            new_len,
            alignment,
            step,
            clamp,
            header,
            moves,
        })
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, n: u64) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(usize::try_from(n).ok()?)?;
        self.0 = rest;
        Some(head)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take(8)?.first_chunk().map(|b| u64::from_le_bytes(*b))
    }

    fn sized(&mut self) -> Option<&'a [u8]> {
        let n = self.u64()?;
        self.take(n)
    }

    fn text(&mut self) -> Option<&'a str> {
        str::from_utf8(self.sized()?).ok()
    }

    fn tensor(&mut self) -> Option<Move> {
        let name = self.text()?.into();
        let from: TensorType = self.text()?.parse().ok()?;
        let to: TensorType = self.text()?.parse().ok()?;
        let rank = self.u64().filter(|n| *n <= Dims::MAX as u64)?;
        let ne = (0..rank).map(|_| self.u64()).collect::<Option<Vec<_>>>()?;
        let dims = Dims::new(&ne)?;
        let (read, write) = (self.u64()?, self.u64()?);
        let n = self.u64()?;
        let importance = self.take(n.checked_mul(4)?)?;
        let importance = importance.as_chunks().0;
        Some(Move {
            name,
            dims,
            from,
            to,
            read,
            write,
            importance: importance.iter().map(|b| f32::from_le_bytes(*b)).collect(),
        })
    }
}

/// Bytes of a record with this payload.
pub(super) fn record_bytes(payload: u64) -> u64 {
    RECORD as u64 + payload
}

/// Make the journal and room for `records` bytes of records; durable on return. Returns where records begin.
pub(super) fn create(
    storage: &mut dyn Storage,
    body: &Body,
    records: u64,
) -> Result<u64, RequantError> {
    static ZEROS: [u8; 1 << 16] = [0; 1 << 16];
    let fail = |source| disk("create", Part::Journal, source);
    let body = body.encode();
    let mut bytes = MAGIC.to_vec();
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend((body.len() as u64).to_le_bytes());
    bytes.extend(crc32fast::hash(&body).to_le_bytes());
    bytes.extend(body);
    storage.create_journal().map_err(fail)?;
    storage.write_at(Part::Journal, 0, &bytes).map_err(fail)?;
    let start = bytes.len() as u64;
    let mut at = start;
    while at < start + records {
        let n = (start + records - at).min(ZEROS.len() as u64);
        storage
            .write_at(Part::Journal, at, &ZEROS[..n as usize])
            .map_err(fail)?;
        at += n;
    }
    storage.sync(Part::Journal).map_err(fail)?;
    Ok(start)
}

/// Write a record at `at`; durable on return. Returns where the next one goes.
pub(super) fn append(
    storage: &mut dyn Storage,
    at: u64,
    kind: Kind,
    step: usize,
    payload: &[u8],
) -> Result<u64, RequantError> {
    let fail = |source| disk("write", Part::Journal, source);
    let mut record = (kind as u32).to_le_bytes().to_vec();
    record.extend((step as u64).to_le_bytes());
    record.extend((payload.len() as u64).to_le_bytes());
    let mut checksum = crc32fast::Hasher::new();
    checksum.update(&record);
    checksum.update(payload);
    record.extend(checksum.finalize().to_le_bytes());
    record.extend(payload);
    storage.write_at(Part::Journal, at, &record).map_err(fail)?;
    storage.sync(Part::Journal).map_err(fail)?;
    Ok(at + record.len() as u64)
}

/// Read the body, and where records begin; `None` when there is no journal or it was not written to its end.
pub(super) fn read(storage: &mut dyn Storage) -> Result<Option<(Body, u64)>, RequantError> {
    let fail = |source| disk("read", Part::Journal, source);
    let Some(len) = storage.len(Part::Journal).map_err(fail)? else {
        return Ok(None);
    };
    if len < HEAD as u64 {
        return Ok(None);
    }
    let mut head = [0; HEAD];
    storage.read_at(Part::Journal, 0, &mut head).map_err(fail)?;
    let mut reader = Reader(&head);
    if reader.take(8) != Some(&MAGIC) {
        return Ok(None);
    }
    let version = reader.take(4).map(|b| [b[0], b[1], b[2], b[3]]);
    let body_len = reader.u64().unwrap_or(u64::MAX);
    let checksum = reader.take(4).map(|b| [b[0], b[1], b[2], b[3]]);
    if body_len > MAX_BODY || len - (HEAD as u64) < body_len {
        return Ok(None);
    }
    let mut bytes = vec![0; body_len as usize];
    storage
        .read_at(Part::Journal, HEAD as u64, &mut bytes)
        .map_err(fail)?;
    if checksum.map(u32::from_le_bytes) != Some(crc32fast::hash(&bytes)) {
        return Ok(None);
    }
    // From here on the journal is what was written: what cannot be read is of another program.
    if version != Some(VERSION.to_le_bytes()) {
        return Err(RequantError::Journal {
            what: format!(
                "version {}, expected {VERSION}",
                version.map_or(0, u32::from_le_bytes)
            )
            .into(),
        });
    }
    let body = Body::decode(&bytes).ok_or_else(|| RequantError::Journal {
        what: "its plan makes no sense".into(),
    })?;
    Ok(Some((body, HEAD as u64 + body_len)))
}

/// Follow the records from `start` on, as far as they are whole and in order. `sizes`: bytes that each step writes.
pub(super) fn replay(
    storage: &mut dyn Storage,
    start: u64,
    sizes: &[u64],
) -> Result<State, RequantError> {
    let mut state = State {
        done: 0,
        redo: None,
        end: start,
    };
    while let Some(&size) = sizes.get(state.done) {
        let Some((kind, payload)) = record(storage, state.end, state.done, size)? else {
            break;
        };
        state.end += record_bytes(payload.len() as u64);
        match kind {
            Kind::Redo => state.redo = Some(payload),
            Kind::Done => {
                state.done += 1;
                state.redo = None;
            }
        }
    }
    Ok(state)
}

/// The record at `at`, when it is a whole one of step `step`.
fn record(
    storage: &mut dyn Storage,
    at: u64,
    step: usize,
    size: u64,
) -> Result<Option<(Kind, Vec<u8>)>, RequantError> {
    let fail = |source| disk("read", Part::Journal, source);
    let len = storage.len(Part::Journal).map_err(fail)?.unwrap_or(0);
    if len.saturating_sub(at) < RECORD as u64 {
        return Ok(None);
    }
    let mut head = [0; RECORD];
    storage
        .read_at(Part::Journal, at, &mut head)
        .map_err(fail)?;
    let (fields, checksum) = head.split_at(RECORD - 4);
    let kind = match fields[0] {
        1 => Kind::Redo,
        2 => Kind::Done,
        _ => return Ok(None),
    };
    let mut reader = Reader(&fields[4..]);
    let want = if kind == Kind::Redo { size } else { 0 };
    if fields[1..4] != [0; 3]
        || reader.u64() != Some(step as u64)
        || reader.u64() != Some(want)
        || len - at < record_bytes(want)
    {
        return Ok(None);
    }
    let mut payload = vec![0; want as usize];
    storage
        .read_at(Part::Journal, at + RECORD as u64, &mut payload)
        .map_err(fail)?;
    let mut found = crc32fast::Hasher::new();
    found.update(fields);
    found.update(&payload);
    Ok((found.finalize().to_le_bytes() == checksum).then_some((kind, payload)))
}

/// A refusal of the disk.
pub(super) fn disk(doing: &'static str, part: Part, source: std::io::Error) -> RequantError {
    RequantError::Disk {
        doing,
        part,
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_read_as_it_was_written_and_no_prefix_is_one() {
        let body = Body {
            old_len: 1 << 40,
            old_header: (99, 7),
            new_len: 5,
            alignment: 32,
            step: (6, 7),
            clamp: true,
            header: b"GGUF and so on".to_vec(),
            moves: vec![Move {
                name: "blk.0.x".into(),
                dims: Dims::new(&[256, 3, 2]).unwrap(),
                from: TensorType::RocmFp2S40,
                to: TensorType::RocmFp2TwoScale,
                read: 64,
                write: 32,
                importance: vec![0.5, 2.0],
            }],
        };
        let bytes = body.encode();
        assert_eq!(Body::decode(&bytes).as_ref(), Some(&body));
        for len in 0..bytes.len() {
            assert_eq!(Body::decode(&bytes[..len]), None, "{len}");
        }
    }
}
