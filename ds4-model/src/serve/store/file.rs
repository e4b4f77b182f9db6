//! The file of a kept timeline: layout, reading, and a writing that leaves whole files or none.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use crate::error::Error;
use crate::session::Session;
use crate::snapshot::SnapshotError;
use crate::tokenizer::Token;

const MAGIC: &[u8; 8] = b"DS4KV\0\0\0";
const VERSION: u32 = 2;
const HEADER: usize = 28;
pub(super) const ENDING: &str = "kv";
pub(super) const PARTIAL: &str = "partial";

/// What a file says it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) tokens: Vec<Token>,
    /// Lengths it can be cut at, ascending, besides its own.
    pub(super) cuts: Vec<usize>,
}

impl Content {
    pub(super) fn of(session: &Session) -> Self {
        Self {
            tokens: session.tokens().to_vec(),
            cuts: session.cuts(),
        }
    }

    /// Bytes of the part before the snapshot.
    pub(super) fn header_bytes(tokens: usize, cuts: usize) -> u64 {
        (HEADER + 4 * (tokens + cuts) + 4) as u64
    }

    /// How many tokens of `prompt` a session that takes it up has.
    pub(super) fn usable(&self, prompt: &[Token]) -> usize {
        let pairs = self.tokens.iter().zip(prompt);
        let common = pairs.take_while(|(a, b)| a == b).count();
        if common == self.tokens.len() {
            return common;
        }
        let cut = self.cuts.iter().rfind(|&&cut| cut <= common);
        cut.copied().unwrap_or(0)
    }

    fn header(&self, fingerprint: u64) -> Vec<u8> {
        let (tokens, cuts) = (self.tokens.len(), self.cuts.len());
        let mut out = Vec::with_capacity(Self::header_bytes(tokens, cuts) as usize);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&(tokens as u32).to_le_bytes());
        out.extend_from_slice(&fingerprint.to_le_bytes());
        out.extend_from_slice(&(cuts as u32).to_le_bytes());
        let cuts = self.cuts.iter().map(|&cut| cut as u32);
        for number in self.tokens.iter().copied().chain(cuts) {
            out.extend_from_slice(&number.to_le_bytes());
        }
        let crc = crc32fast::hash(&out);
        out.extend_from_slice(&crc.to_le_bytes());
        out
    }
}

/// Write a file whose snapshot is `body`, without its checksum, and bring it to the disk under its name. Returns its bytes;
/// after an error there is nothing.
pub(super) fn write(
    path: &Path,
    content: &Content,
    fingerprint: u64,
    body: &[u8],
) -> io::Result<u64> {
    let partial = path.with_extension(PARTIAL);
    let written = (|| {
        let mut file = create_private(&partial)?;
        let header = content.header(fingerprint);
        file.write_all(&header)?;
        file.write_all(body)?;
        file.write_all(&crc32fast::hash(body).to_le_bytes())?;
        file.sync_all()?;
        fs::rename(&partial, path)?;
        path.parent().map_or(Ok(()), sync_folder)?;
        Ok((header.len() + body.len() + 4) as u64)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&partial);
    }
    written
}

/// What a file claims to hold, and its bytes.
pub(super) fn read_header(path: &Path, fingerprint: u64) -> io::Result<(Content, u64)> {
    let file = File::open(path)?;
    let bytes = file.metadata()?.len();
    let content = header_of(&mut BufReader::new(file), bytes, fingerprint)?;
    Ok((content, bytes))
}

fn header_of(from: &mut impl Read, bytes: u64, fingerprint: u64) -> io::Result<Content> {
    let mut start = [0; HEADER];
    from.read_exact(&mut start)?;
    let number =
        |at: usize| u32::from_le_bytes([start[at], start[at + 1], start[at + 2], start[at + 3]]);
    if &start[..8] != MAGIC {
        return Err(damaged("it does not start like a kept timeline"));
    }
    if number(8) != VERSION {
        return Err(damaged("it has another version"));
    }
    let (tokens, cuts) = (u64::from(number(12)), u64::from(number(24)));
    let numbers = tokens + cuts;
    if HEADER as u64 + 4 * numbers + 4 > bytes {
        return Err(damaged("it is cut short"));
    }
    let mut rest = vec![0; 4 * numbers as usize + 4];
    from.read_exact(&mut rest)?;
    let numbers = rest[..rest.len() - 4].chunks_exact(4);
    let mut numbers = numbers.map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
    let content = Content {
        tokens: numbers.by_ref().take(tokens as usize).collect(),
        cuts: numbers.map(|cut| cut as usize).collect(),
    };
    if content.header(fingerprint)[..] != [&start[..], &rest[..]].concat()[..] {
        return Err(damaged("its tokens are damaged, or of another model"));
    }
    Ok(content)
}

/// Take up the whole timeline of a file.
pub(super) fn read_snapshot(
    path: &Path,
    content: &Content,
    session: &mut Session,
) -> Result<(), Error> {
    let file = File::open(path).map_err(snapshot)?;
    let bytes = file.metadata().map_err(snapshot)?.len();
    let mut from = BufReader::new(file);
    let fingerprint = session.engine().shared().fingerprint.value();
    let found = header_of(&mut from, bytes, fingerprint).map_err(snapshot)?;
    if found != *content {
        return Err(snapshot(damaged("it has changed since it was opened")));
    }
    session.load(&mut from)?;
    if session.tokens() == content.tokens {
        return Ok(());
    }
    // A sound snapshot of something else: whoever wrote it broke the rules of this format.
    session.rewind(0)?;
    Err(snapshot(damaged("its snapshot is of other tokens")))
}

fn snapshot(error: io::Error) -> Error {
    SnapshotError::from(error).into()
}

fn damaged(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

/// Whether an error is the file's own: it is cut short, or not what it should be.
pub(super) fn is_damage(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof
    )
}

pub(super) fn shows_damage(error: &SnapshotError) -> bool {
    match error {
        SnapshotError::Io(error) => is_damage(error),
        // Another context may hold it.
        SnapshotError::Tokens { .. } => false,
        _ => true,
    }
}

/// Whether a `….partial` has a name that this store gives: others are somebody else's.
pub(super) fn is_leftover(path: &Path) -> bool {
    let name = path.file_stem().and_then(|name| name.to_str());
    let parts: Vec<&str> = name.unwrap_or_default().split('-').collect();
    let hash = |part: &str| {
        part.len() == 16 && part.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    };
    match parts[..] {
        [model, text, count] => {
            let digits = !count.is_empty() && count.bytes().all(|b| b.is_ascii_digit());
            hash(model) && hash(text) && digits
        }
        _ => false,
    }
}

/// An empty file for its owner alone.
pub(super) fn create_private(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Conversations are nobody else's business: a folder that is made here is for its owner alone.
pub(super) fn make_private(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// A rename is on the disk when its folder is.
fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}
