//! Timelines on disk: a folder of snapshots, found again by the longest beginning they share with a prompt.
//!
//! ```text
//! 0   "DS4KV\0\0\0"
//! 8   version                       u32 = 2
//! 12  n, tokens of the timeline     u32
//! 16  fingerprint of the model      u64
//! 24  k, lengths it can be cut at   u32
//! 28  tokens                        n × u32
//!     lengths                       k × u32
//!     CRC-32 of all before          u32
//!     snapshot                      (with its own checksum)
//! ```
//! A file is `MODEL-TEXT-N.kv` by hashes of the model and of the timeline, its text and its tokens. It is written as `….partial`, brought to
//! the disk, and then renamed: whoever opens the folder sees whole entries or none, whatever was interrupted. An entry that
//! is damaged all the same is deleted and missed; one that cannot be read now is only missed, and what it claims to hold is compared token by token, so no hash
//! can give a wrong answer. One process uses a folder at a time, which a lock sees to that ends with the process.
//!
//! The caller's thread copies a timeline and goes on; checksums, writing and deleting are done by a thread of the store.

mod file;
mod writer;

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::engine::Engine;
use crate::error::Error;
use crate::session::Session;
use crate::tokenizer::Token;

use file::Content;
use writer::{Entry, Job, Writer};

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
    /// There is no thread that could write.
    #[error("cannot start the thread that writes to the cache folder")]
    Thread {
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
    /// A timeline was not written, because too many wait to be.
    Behind {
        /// Its tokens.
        tokens: usize,
    },
    /// A timeline could not be written.
    Failed {
        /// Why.
        reason: String,
    },
}

/// Keeps the entry that a prompt will want from being deleted, as long as it lives.
#[derive(Debug)]
#[must_use]
pub struct Hold(#[expect(dead_code, reason = "counted, not read")] Option<Arc<()>>);

/// A folder of timelines of one model. Dropped, it writes what waits to be written.
pub struct Store {
    // Before the lock: dropped in this order, the last write is done when the folder is given up.
    writer: Writer,
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
        file::make_private(folder).map_err(failed(folder))?;
        let path = folder.join("lock");
        let lock = file::create_private(&path).map_err(failed(&path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let path = folder.to_owned();
                return Err(StoreError::Busy { path });
            }
            Err(TryLockError::Error(source)) => return Err(failed(&path)(source)),
        }
        let fingerprint = engine.shared().fingerprint.value();
        let mut files = Vec::new();
        for file in fs::read_dir(folder).map_err(failed(folder))? {
            let path = file.map_err(failed(folder))?.path();
            match path.extension().and_then(|e| e.to_str()) {
                Some(file::PARTIAL) if file::is_leftover(&path) => {
                    fs::remove_file(&path).map_err(failed(&path))?
                }
                Some(file::ENDING) if is_of(fingerprint, &path) => {
                    let modified = fs::metadata(&path).and_then(|m| m.modified()).ok();
                    files.push((modified, path));
                }
                _ => {}
            }
        }
        files.sort();
        let (mut entries, mut events) = (Vec::new(), Vec::new());
        for (_, path) in files {
            match file::read_header(&path, fingerprint) {
                Ok((content, bytes)) => entries.push(Entry::new(path, content, bytes)),
                Err(error) if file::is_damage(&error) => {
                    let _ = fs::remove_file(&path);
                    let reason = error.to_string();
                    events.push(StoreEvent::Dropped { path, reason });
                }
                Err(error) => {
                    let reason = error.to_string();
                    events.push(StoreEvent::Skipped { path, reason });
                }
            }
        }
        let writer = Writer::start(folder, limit, engine, entries, events)
            .map_err(|source| StoreError::Thread { source })?;
        Ok(Self {
            writer,
            _lock: lock,
        })
    }

    /// Entries on disk.
    #[must_use]
    pub fn len(&self) -> usize {
        self.writer.lock().index.entries.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of all entries on disk.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.writer.lock().index.bytes()
    }

    /// How much of `prompt` an entry has: the whole entry where the prompt begins with it, else up to one of the lengths
    /// that it can be cut at.
    #[must_use]
    pub fn longest(&self, prompt: &[Token]) -> Option<usize> {
        let state = self.writer.lock();
        let best = state.index.best(prompt, &[]);
        best.map(|entry| entry.content.usable(prompt))
    }

    /// Keep what [`Store::load`] would take up for `prompt` from being deleted meanwhile.
    pub fn hold(&self, prompt: &[Token]) -> Hold {
        let state = self.writer.lock();
        let best = state.index.best(prompt, &[]);
        Hold(best.map(|entry| Arc::clone(&entry.held)))
    }

    /// Take up the longest beginning of `prompt` that an entry has; false when there is none that can be used. The session
    /// is unchanged then, or empty if there was no memory for its rows.
    pub fn load(&mut self, prompt: &[Token], session: &mut Session) -> bool {
        let mut tried = Vec::new();
        loop {
            let state = self.writer.lock();
            let Some(entry) = state.index.best(prompt, &tried) else {
                return false;
            };
            let (path, content) = (entry.path.clone(), entry.content.clone());
            let held = Arc::clone(&entry.held);
            drop(state);
            let read = file::read_snapshot(&path, &content, session);
            let read = read.and_then(|()| session.cut(prompt));
            let mut state = self.writer.lock();
            match read {
                Ok(tokens) => {
                    state.index.touch(&content.tokens);
                    state.events.push(StoreEvent::Loaded { tokens });
                    return true;
                }
                Err(Error::Snapshot(error)) if file::shows_damage(&error) => {
                    state.index.entries.retain(|entry| entry.path != path);
                    let _ = fs::remove_file(&path);
                    let reason = error.to_string();
                    state.events.push(StoreEvent::Dropped { path, reason });
                }
                // Too many open files, a disk that fails, no memory: that says nothing about the entry.
                Err(error) => {
                    tried.push(path.clone());
                    let reason = error.to_string();
                    state.events.push(StoreEvent::Skipped { path, reason });
                }
            }
            drop(held);
        }
    }

    /// Keep the session's timeline; whether it is on disk, or copied and on its way. Kept timelines that it begins with are
    /// deleted, except those whose lengths are in `shared`, where others may go on differently. A failure, or that too
    /// many wait to be written, is reported by [`Store::take_events`] and hurts nobody.
    pub fn save(&mut self, session: &Session, shared: &[usize]) -> bool {
        let tokens = session.tokens();
        if tokens.is_empty() {
            return false;
        }
        let content = Content::of(session);
        let header = Content::header_bytes(tokens.len(), content.cuts.len());
        let bytes = header + session.saved_bytes();
        let mut state = self.writer.lock();
        if state.index.touch(tokens) || state.queue.has(tokens) {
            return true;
        }
        let limit = state.index.limit;
        if bytes > limit {
            // Said once: a conversation that is too long grows with every turn.
            if !std::mem::replace(&mut state.too_large, true) {
                let reason =
                    format!("{bytes} bytes are more than the whole cache may have, {limit}");
                state.events.push(StoreEvent::Failed { reason });
            }
            return false;
        }
        if !state.queue.takes(bytes) {
            let tokens = tokens.len();
            state.events.push(StoreEvent::Behind { tokens });
            return false;
        }
        drop(state);
        let body = match session.copied() {
            Ok(body) => body,
            Err(error) => {
                let reason = error.to_string();
                let mut state = self.writer.lock();
                state.events.push(StoreEvent::Failed { reason });
                return false;
            }
        };
        self.writer.give(Job {
            content,
            shared: shared.to_vec(),
            body,
            bytes,
        })
    }

    /// Wait until all that was saved is on disk.
    pub fn settle(&self) {
        self.writer.settle();
    }

    /// What happened since the last call.
    pub fn take_events(&mut self) -> Vec<StoreEvent> {
        std::mem::take(&mut self.writer.lock().events)
    }
}

/// Whether a file is of the model with that fingerprint.
fn is_of(fingerprint: u64, path: &Path) -> bool {
    path.file_name()
        .and_then(|name| name.to_str())
        .is_some_and(|name| name.starts_with(&format!("{fingerprint:016x}-")))
}
