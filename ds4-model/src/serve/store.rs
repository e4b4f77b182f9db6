//! Timelines on disk: a folder of snapshots, found again by the longest prefix of a prompt.
//!
//! ```text
//! 0   "DS4KV\0\0\0"
//! 8   version                       u32
//! 12  n, tokens of the timeline     u32
//! 16  fingerprint of the model      u64
//! 24  tokens                        n × u32
//!     CRC-32 of all before          u32
//!     snapshot                      (with its own checksum)
//! ```
//! A file is `MODEL-TEXT-N.kv` by hashes of the model and of the timeline, its text and its tokens. It is written as `….partial`, brought to
//! the disk, and then renamed: whoever opens the folder sees whole entries or none, whatever was interrupted. An entry that
//! is damaged all the same is deleted and missed; one that cannot be read now is only missed, and what it claims to hold is compared token by token, so no hash
//! can give a wrong answer. One process uses a folder at a time, which a lock sees to that ends with the process.

use std::fs::{self, File, TryLockError};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use crate::engine::Engine;
use crate::error::Error;
use crate::fnv::Fnv;
use crate::session::Session;
use crate::snapshot::SnapshotError;
use crate::tokenizer::Token;

const MAGIC: &[u8; 8] = b"DS4KV\0\0\0";
const VERSION: u32 = 1;
const HEADER: usize = 24;
const ENDING: &str = "kv";
const PARTIAL: &str = "partial";

/// Why a folder cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// It cannot be made, read or cleaned.
    #[error("cannot use the cache folder {}", path.display())]
    Folder {
        /// The folder, or the file in it.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Another process uses it.
    #[error("the cache folder {} is in use by another process", path.display())]
    Busy {
        /// The folder.
        path: PathBuf,
    },
}

/// What happened, for a log: one line each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreEvent {
    /// A timeline was written.
    Saved {
        /// Its tokens.
        tokens: usize,
        /// Bytes of the file.
        bytes: u64,
    },
    /// A timeline was taken up.
    Loaded {
        /// Its tokens.
        tokens: usize,
    },
    /// An entry was deleted to make room.
    Evicted {
        /// Its tokens.
        tokens: usize,
    },
    /// An entry could not be used and was deleted.
    Dropped {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// An entry could not be read now and was left alone.
    Skipped {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A timeline could not be written.
    Failed {
        /// Why.
        reason: String,
    },
}

struct Entry {
    path: PathBuf,
    tokens: Vec<Token>,
    bytes: u64,
    /// When it was last written or read, counted in uses.
    used: u64,
}

/// A folder of timelines of one model.
pub struct Store {
    folder: PathBuf,
    fingerprint: u64,
    engine: Engine,
    limit: u64,
    uses: u64,
    entries: Vec<Entry>,
    events: Vec<StoreEvent>,
    /// Whether a timeline that cannot be kept has been reported.
    too_large: bool,
    /// Held open for its lock.
    _lock: File,
}

impl Store {
    /// Open or make `folder`, for at most `limit` bytes of timelines of the engine's model. Leftovers of interrupted writes
    /// are removed; entries of other models are left alone and not counted.
    ///
    /// # Errors
    /// [`StoreError`]. A damaged entry is no error: it is deleted, and reported by [`Store::take_events`].
    pub fn open(folder: &Path, limit: u64, engine: &Engine) -> Result<Self, StoreError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| StoreError::Folder { path, source }
        };
        make_private(folder).map_err(failed(folder))?;
        let path = folder.join("lock");
        let lock = create_private(&path).map_err(failed(&path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let path = folder.to_owned();
                return Err(StoreError::Busy { path });
            }
            Err(TryLockError::Error(source)) => return Err(failed(&path)(source)),
        }
        let mut store = Self {
            folder: folder.to_owned(),
            fingerprint: engine.shared().fingerprint.value(),
            engine: engine.clone(),
            limit,
            uses: 0,
            entries: Vec::new(),
            events: Vec::new(),
            too_large: false,
            _lock: lock,
        };
        let mut files = Vec::new();
        for file in fs::read_dir(folder).map_err(failed(folder))? {
            let path = file.map_err(failed(folder))?.path();
            match path.extension().and_then(|e| e.to_str()) {
                Some(PARTIAL) if is_leftover(&path) => {
                    fs::remove_file(&path).map_err(failed(&path))?
                }
                Some(ENDING) if store.is_ours(&path) => {
                    let modified = fs::metadata(&path).and_then(|m| m.modified()).ok();
                    files.push((modified, path));
                }
                _ => {}
            }
        }
        files.sort();
        for (_, path) in files {
            match read_header(&path, store.fingerprint) {
                Ok((tokens, bytes)) => {
                    store.uses += 1;
                    let used = store.uses;
                    store.entries.push(Entry {
                        path,
                        tokens,
                        bytes,
                        used,
                    });
                }
                Err(error) if is_damage(&error) => store.forget(path, error.to_string()),
                Err(error) => store.skip(path, error.to_string()),
            }
        }
        store.make_room(0, &[]);
        Ok(store)
    }

    /// Entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes of all entries.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.entries.iter().map(|e| e.bytes).sum()
    }

    /// Length of the longest timeline that `prompt` begins with.
    #[must_use]
    pub fn longest(&self, prompt: &[Token]) -> Option<usize> {
        let best = self.best(prompt, usize::MAX);
        best.map(|at| self.entries[at].tokens.len())
    }

    /// The longest entry of fewer than `below` tokens that fits.
    fn best(&self, prompt: &[Token], below: usize) -> Option<usize> {
        let fits = |e: &Entry| e.tokens.len() < below && prompt.starts_with(&e.tokens);
        (0..self.entries.len())
            .filter(|&at| fits(&self.entries[at]))
            .max_by_key(|&at| self.entries[at].tokens.len())
    }

    /// Take up the longest timeline that `prompt` begins with; false when there is none that can be used. The session is
    /// unchanged then, or empty if there was no memory for its rows.
    pub fn load(&mut self, prompt: &[Token], session: &mut Session) -> bool {
        let mut below = usize::MAX;
        while let Some(at) = self.best(prompt, below) {
            let entry = &self.entries[at];
            match read_snapshot(&entry.path, &entry.tokens, session) {
                Ok(()) => {
                    self.uses += 1;
                    self.entries[at].used = self.uses;
                    let tokens = self.entries[at].tokens.len();
                    self.events.push(StoreEvent::Loaded { tokens });
                    return true;
                }
                Err(Error::Snapshot(error)) if shows_damage(&error) => {
                    let entry = self.entries.swap_remove(at);
                    self.forget(entry.path, error.to_string());
                }
                // Too many open files, a disk that fails, no memory: that says nothing about the entry.
                Err(error) => {
                    below = entry.tokens.len();
                    let path = entry.path.clone();
                    self.skip(path, error.to_string());
                }
            }
        }
        false
    }

    /// Keep the session's timeline; whether it is on disk now. Kept timelines that it begins with are deleted, except those
    /// whose lengths are in `shared`, where others may go on differently. A failure is reported by [`Store::take_events`]
    /// and hurts nobody.
    pub fn save(&mut self, session: &Session, shared: &[usize]) -> bool {
        let tokens = session.tokens();
        if tokens.is_empty() {
            return false;
        }
        self.uses += 1;
        if let Some(at) = self.entries.iter().position(|e| e.tokens == tokens) {
            self.entries[at].used = self.uses;
            return true;
        }
        let path = self.folder.join(self.name(tokens));
        let bytes = (HEADER + 4 * tokens.len() + 4) as u64 + session.saved_bytes();
        if bytes > self.limit {
            // Said once: a conversation that is too long grows with every turn.
            if !std::mem::replace(&mut self.too_large, true) {
                self.events.push(StoreEvent::Failed {
                    reason: format!(
                        "{bytes} bytes are more than the whole cache may have, {}",
                        self.limit
                    ),
                });
            }
            return false;
        }
        self.make_room(bytes, tokens);
        match self.write(&path, session) {
            Ok(bytes) => {
                self.replace(tokens, shared);
                self.events.push(StoreEvent::Saved {
                    tokens: tokens.len(),
                    bytes,
                });
                self.entries.push(Entry {
                    path,
                    tokens: tokens.to_vec(),
                    bytes,
                    used: self.uses,
                });
                true
            }
            Err(error) => {
                self.events.push(StoreEvent::Failed {
                    reason: error.to_string(),
                });
                false
            }
        }
    }

    /// What happened since the last call.
    pub fn take_events(&mut self) -> Vec<StoreEvent> {
        std::mem::take(&mut self.events)
    }

    fn write(&self, path: &Path, session: &Session) -> Result<u64, crate::Error> {
        let partial = path.with_extension(PARTIAL);
        let written = (|| {
            let file = create_private(&partial).map_err(snapshot)?;
            let mut out = BufWriter::new(file);
            let header = header(session.tokens(), self.fingerprint);
            out.write_all(&header).map_err(snapshot)?;
            let bytes = header.len() as u64 + session.save(&mut out)?;
            let file = out.into_inner().map_err(|e| snapshot(e.into_error()))?;
            file.sync_all().map_err(snapshot)?;
            fs::rename(&partial, path).map_err(snapshot)?;
            sync_folder(&self.folder).map_err(snapshot)?;
            Ok(bytes)
        })();
        if written.is_err() {
            let _ = fs::remove_file(&partial);
        }
        written
    }

    /// Delete the entries unused for longest until `more` bytes fit; prefixes of `tokens` go last.
    fn make_room(&mut self, more: u64, tokens: &[Token]) {
        while self.bytes() + more > self.limit {
            let victim = (0..self.entries.len()).min_by_key(|&at| {
                let entry = &self.entries[at];
                (tokens.starts_with(&entry.tokens), entry.used)
            });
            let Some(at) = victim else { return };
            let entry = self.entries.swap_remove(at);
            let _ = fs::remove_file(&entry.path);
            let tokens = entry.tokens.len();
            self.events.push(StoreEvent::Evicted { tokens });
        }
    }

    /// Delete the entries that `tokens` begins with and has more than.
    fn replace(&mut self, tokens: &[Token], shared: &[usize]) {
        let is_old = |e: &mut Entry| {
            e.tokens.len() < tokens.len()
                && tokens.starts_with(&e.tokens)
                && !shared.contains(&e.tokens.len())
        };
        for old in self.entries.extract_if(.., is_old) {
            let _ = fs::remove_file(&old.path);
        }
    }

    fn skip(&mut self, path: PathBuf, reason: String) {
        self.events.push(StoreEvent::Skipped { path, reason });
    }

    fn forget(&mut self, path: PathBuf, reason: String) {
        let _ = fs::remove_file(&path);
        self.events.push(StoreEvent::Dropped { path, reason });
    }

    fn is_ours(&self, path: &Path) -> bool {
        path.file_name()
            .and_then(|name| name.to_str())
            .is_some_and(|name| name.starts_with(&format!("{:016x}-", self.fingerprint)))
    }

    fn name(&self, tokens: &[Token]) -> String {
        // Different tokens can spell one text, so both count.
        let mut hash = Fnv::default();
        hash.write(self.engine.tokenizer().decode(tokens).as_bytes());
        tokens.iter().for_each(|t| hash.write(&t.to_le_bytes()));
        let hash = hash.value();
        format!(
            "{:016x}-{hash:016x}-{}.{ENDING}",
            self.fingerprint,
            tokens.len()
        )
    }
}

fn snapshot(error: io::Error) -> crate::Error {
    crate::SnapshotError::from(error).into()
}

fn header(tokens: &[Token], fingerprint: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER + 4 * tokens.len() + 4);
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&(tokens.len() as u32).to_le_bytes());
    out.extend_from_slice(&fingerprint.to_le_bytes());
    tokens
        .iter()
        .for_each(|t| out.extend_from_slice(&t.to_le_bytes()));
    let crc = crc32fast::hash(&out);
    out.extend_from_slice(&crc.to_le_bytes());
    out
}

fn damaged(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

/// The tokens an entry claims to hold, and the bytes of its file.
fn read_header(path: &Path, fingerprint: u64) -> io::Result<(Vec<Token>, u64)> {
    let file = File::open(path)?;
    let bytes = file.metadata()?.len();
    Ok((
        header_of(&mut BufReader::new(file), bytes, fingerprint)?,
        bytes,
    ))
}

fn header_of(from: &mut impl Read, bytes: u64, fingerprint: u64) -> io::Result<Vec<Token>> {
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
    let count = u64::from(number(12));
    if HEADER as u64 + 4 * count + 4 > bytes {
        return Err(damaged("it is cut short"));
    }
    let mut rest = vec![0; 4 * count as usize + 4];
    from.read_exact(&mut rest)?;
    let tokens: Vec<Token> = rest[..rest.len() - 4]
        .chunks_exact(4)
        .map(|b| Token::from_le_bytes([b[0], b[1], b[2], b[3]]))
        .collect();
    if header(&tokens, fingerprint)[..] != [&start[..], &rest[..]].concat()[..] {
        return Err(damaged("its tokens are damaged, or of another model"));
    }
    Ok(tokens)
}

fn read_snapshot(path: &Path, tokens: &[Token], session: &mut Session) -> Result<(), crate::Error> {
    let file = File::open(path).map_err(snapshot)?;
    let bytes = file.metadata().map_err(snapshot)?.len();
    let mut from = BufReader::new(file);
    let fingerprint = session.engine().shared().fingerprint.value();
    let found = header_of(&mut from, bytes, fingerprint).map_err(snapshot)?;
    if found != tokens {
        return Err(snapshot(damaged("it has changed since it was opened")));
    }
    session.load(&mut from)?;
    if session.tokens() == tokens {
        return Ok(());
    }
    // A sound snapshot of something else: whoever wrote it broke the rules of this format.
    session.rewind(0)?;
    Err(snapshot(damaged("its snapshot is of other tokens")))
}

/// Whether an error is the file's own: it is cut short, or not what it should be.
fn is_damage(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof
    )
}

fn shows_damage(error: &SnapshotError) -> bool {
    match error {
        SnapshotError::Io(error) => is_damage(error),
        // Another context may hold it.
        SnapshotError::Tokens { .. } => false,
        _ => true,
    }
}

/// Whether a `….partial` has a name that this store gives: others are somebody else's.
fn is_leftover(path: &Path) -> bool {
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
fn create_private(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Conversations are nobody else's business: a folder that is made here is for its owner alone.
fn make_private(folder: &Path) -> io::Result<()> {
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
