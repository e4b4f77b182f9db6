//! The thread that writes: what waits for it, and the index of what is on disk, which it keeps.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::StoreEvent;
use super::file::{self, Content, ENDING};
use crate::engine::Engine;
use crate::fnv::Fnv;
use crate::tokenizer::Token;

/// Timelines that may wait to be written, besides the one that is being written.
const WAITING: usize = 4;
/// Bytes of all that are not written yet. One alone may be larger.
const WAITING_BYTES: u64 = 1 << 30;
/// How often somebody who waits for the thread looks whether it still lives.
const LOOK: Duration = Duration::from_millis(100);

/// An entry on disk.
pub(super) struct Entry {
    pub(super) path: PathBuf,
    pub(super) content: Content,
    bytes: u64,
    /// When it was last written or read, counted in uses.
    used: u64,
    /// Cloned by whoever needs the file: it is not deleted meanwhile.
    pub(super) held: Arc<()>,
}

impl Entry {
    pub(super) fn new(path: PathBuf, content: Content, bytes: u64) -> Self {
        Self {
            path,
            content,
            bytes,
            used: 0,
            held: Arc::new(()),
        }
    }

    fn is_held(&self) -> bool {
        Arc::strong_count(&self.held) > 1
    }
}

/// What is on disk.
pub(super) struct Index {
    pub(super) entries: Vec<Entry>,
    pub(super) limit: u64,
    uses: u64,
}

impl Index {
    pub(super) fn bytes(&self) -> u64 {
        self.entries.iter().map(|e| e.bytes).sum()
    }

    /// The entry that has most of `prompt`, of those the smallest file; none of `tried`.
    pub(super) fn best(&self, prompt: &[Token], tried: &[PathBuf]) -> Option<&Entry> {
        let fresh = self.entries.iter().filter(|e| !tried.contains(&e.path));
        fresh
            .map(|entry| (entry.content.usable(prompt), entry))
            .filter(|(usable, _)| *usable > 0)
            .max_by_key(|(usable, entry)| (*usable, std::cmp::Reverse(entry.bytes)))
            .map(|(_, entry)| entry)
    }

    /// The entry with just these tokens is used now; whether there is one.
    pub(super) fn touch(&mut self, tokens: &[Token]) -> bool {
        self.uses += 1;
        let mut entries = self.entries.iter_mut();
        let entry = entries.find(|e| e.content.tokens == tokens);
        entry.map(|entry| entry.used = self.uses).is_some()
    }

    fn add(&mut self, mut entry: Entry) {
        self.uses += 1;
        entry.used = self.uses;
        self.entries.push(entry);
    }

    /// Forget the entries unused for longest until `more` bytes fit; prefixes of `tokens` go last, and those held never.
    /// `None` when they are too many.
    fn make_room(&mut self, more: u64, tokens: &[Token]) -> Option<Vec<Entry>> {
        let held = self.entries.iter().filter(|e| e.is_held());
        if held.map(|e| e.bytes).sum::<u64>() + more > self.limit {
            return None;
        }
        let mut gone = Vec::new();
        while self.bytes() + more > self.limit {
            let free = (0..self.entries.len()).filter(|&at| !self.entries[at].is_held());
            let victim = free.min_by_key(|&at| {
                let entry = &self.entries[at];
                (tokens.starts_with(&entry.content.tokens), entry.used)
            });
            gone.push(self.entries.swap_remove(victim?));
        }
        Some(gone)
    }

    /// Forget the entries that `tokens` begins with and has more than, but for those of `shared` lengths.
    fn replace(&mut self, tokens: &[Token], shared: &[usize]) -> Vec<Entry> {
        let is_old = |entry: &mut Entry| {
            let old = &entry.content.tokens;
            old.len() < tokens.len()
                && tokens.starts_with(old)
                && !shared.contains(&old.len())
                && !entry.is_held()
        };
        self.entries.extract_if(.., is_old).collect()
    }
}

/// A timeline to be written.
pub(super) struct Job {
    pub(super) content: Content,
    /// Lengths at which shorter entries stay.
    pub(super) shared: Vec<usize>,
    /// The snapshot, without its checksum.
    pub(super) body: Vec<u8>,
    /// Bytes of the file.
    pub(super) bytes: u64,
}

/// What waits.
#[derive(Default)]
pub(super) struct Queue {
    jobs: VecDeque<Job>,
    /// Bytes and tokens of the one that is being written.
    writing: Option<(u64, Vec<Token>)>,
    closed: bool,
}

impl Queue {
    /// Whether there is room for a job of so many bytes.
    pub(super) fn takes(&self, bytes: u64) -> bool {
        let waiting: u64 = self.jobs.iter().map(|job| job.bytes).sum();
        let pending = waiting + self.writing.as_ref().map_or(0, |(bytes, _)| *bytes);
        self.jobs.len() < WAITING && (pending == 0 || pending + bytes <= WAITING_BYTES)
    }

    /// Whether just these tokens wait, or are being written.
    pub(super) fn has(&self, tokens: &[Token]) -> bool {
        let waiting = self.jobs.iter().map(|job| &job.content.tokens);
        let writing = self.writing.iter().map(|(_, tokens)| tokens);
        waiting.chain(writing).any(|known| known == tokens)
    }

    fn is_idle(&self) -> bool {
        self.jobs.is_empty() && self.writing.is_none()
    }
}

/// What both threads see.
pub(super) struct State {
    pub(super) index: Index,
    pub(super) queue: Queue,
    pub(super) events: Vec<StoreEvent>,
    /// Whether a timeline that cannot be kept has been reported.
    pub(super) too_large: bool,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    folder: PathBuf,
    fingerprint: u64,
    engine: Engine,
}

/// The thread, as its owner sees it. Dropped, it waits until all is written.
pub(super) struct Writer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Start it, with what is on disk: the entry unused for longest first.
    pub(super) fn start(
        folder: &Path,
        limit: u64,
        engine: &Engine,
        entries: Vec<Entry>,
        events: Vec<StoreEvent>,
    ) -> io::Result<Self> {
        let mut index = Index {
            entries: Vec::new(),
            limit,
            uses: 0,
        };
        entries.into_iter().for_each(|entry| index.add(entry));
        let mut state = State {
            index,
            queue: Queue::default(),
            events,
            too_large: false,
        };
        // Nothing is held yet, so there is room.
        let gone = state.index.make_room(0, &[]).unwrap_or_default();
        state.events.extend(delete(&gone));
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            changed: Condvar::new(),
            folder: folder.to_owned(),
            fingerprint: engine.shared().fingerprint.value(),
            engine: engine.clone(),
        });
        let writer = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("kept timelines".to_owned())
            .spawn(move || writer.work())?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.lock()
    }

    /// Hand over a job that [`Queue::takes`]; false, and a report, when the thread is gone.
    pub(super) fn give(&self, job: Job) -> bool {
        let mut state = self.lock();
        if self.is_gone() {
            let reason = "the thread that writes has ended".to_owned();
            state.events.push(StoreEvent::Failed { reason });
            return false;
        }
        state.queue.jobs.push_back(job);
        self.shared.changed.notify_all();
        true
    }

    /// Wait until nothing waits, or nobody would write it.
    pub(super) fn settle(&self) {
        let mut state = self.lock();
        while !state.queue.is_idle() && !self.is_gone() {
            let waited = self.shared.changed.wait_timeout(state, LOOK);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn is_gone(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.lock().queue.closed = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::warn!("the thread that writes kept timelines has panicked");
        }
    }
}

impl Shared {
    /// A thread that panicked has left nothing half done that others could see: files count when they are renamed.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        while let Some(job) = self.next() {
            let done = self.write(&job);
            // The memory is free before anybody takes the place.
            drop(job);
            let mut state = self.lock();
            state.events.extend(done);
            state.queue.writing = None;
            drop(state);
            self.changed.notify_all();
        }
    }

    /// The next job; `None` when there will be none.
    fn next(&self) -> Option<Job> {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.queue.jobs.pop_front() {
                state.queue.writing = Some((job.bytes, job.content.tokens.clone()));
                return Some(job);
            }
            if state.queue.closed {
                return None;
            }
            let woken = self.changed.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn write(&self, job: &Job) -> Vec<StoreEvent> {
        let tokens = &job.content.tokens;
        let gone = self.lock().index.make_room(job.bytes, tokens);
        let Some(gone) = gone else {
            let reason = "prompts that wait need what is there".to_owned();
            return vec![StoreEvent::Failed { reason }];
        };
        let mut events = delete(&gone);
        let path = self.folder.join(self.name(tokens));
        match file::write(&path, &job.content, self.fingerprint, &job.body) {
            Ok(bytes) => {
                let mut state = self.lock();
                let old = state.index.replace(tokens, &job.shared);
                let entry = Entry::new(path, job.content.clone(), bytes);
                state.index.add(entry);
                drop(state);
                for old in old {
                    let _ = fs::remove_file(&old.path);
                }
                let tokens = tokens.len();
                events.push(StoreEvent::Saved { tokens, bytes });
            }
            Err(error) => {
                let reason = format!("cannot write {}: {error}", path.display());
                events.push(StoreEvent::Failed { reason });
            }
        }
        events
    }

    fn name(&self, tokens: &[Token]) -> String {
        // Different tokens can spell one text, so both count.
        let mut hash = Fnv::default();
        hash.write(self.engine.tokenizer().decode(tokens).as_bytes());
        tokens.iter().for_each(|t| hash.write(&t.to_le_bytes()));
        let (model, hash, count) = (self.fingerprint, hash.value(), tokens.len());
        format!("{model:016x}-{hash:016x}-{count}.{ENDING}")
    }
}

/// Delete the files of entries that are out of the index.
fn delete(gone: &[Entry]) -> Vec<StoreEvent> {
    let mut events = Vec::new();
    for entry in gone {
        let _ = fs::remove_file(&entry.path);
        let tokens = entry.content.tokens.len();
        events.push(StoreEvent::Evicted { tokens });
    }
    events
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(bytes: u64, token: Token) -> Job {
        Job {
            content: Content {
                tokens: vec![token],
                cuts: Vec::new(),
            },
            shared: Vec::new(),
            body: Vec::new(),
            bytes,
        }
    }

    #[test]
    fn a_queue_takes_so_many_and_so_many_bytes_but_any_one_alone() {
        let mut queue = Queue::default();
        assert!(queue.takes(8 * WAITING_BYTES));
        queue.writing = Some((WAITING_BYTES / 2, vec![9]));
        assert!(queue.takes(WAITING_BYTES / 2));
        assert!(!queue.takes(WAITING_BYTES / 2 + 1));
        for token in 0..WAITING as Token {
            assert!(queue.takes(1));
            queue.jobs.push_back(job(1, token));
        }
        assert!(!queue.takes(1));
        assert!(queue.has(&[9]) && queue.has(&[0]) && !queue.has(&[8]));
    }

    #[test]
    fn what_is_held_is_not_deleted_for_something_else() {
        let mut index = Index {
            entries: Vec::new(),
            limit: 30,
            uses: 0,
        };
        for token in 1..=3 {
            let content = job(0, token).content;
            index.add(Entry::new(PathBuf::new(), content, 10));
        }
        let first = Arc::clone(&index.entries[0].held);
        let gone = index.make_room(20, &[7]).unwrap();
        let gone: Vec<Token> = gone.iter().map(|e| e.content.tokens[0]).collect();
        assert_eq!(gone, [2, 3]);
        assert!(index.make_room(21, &[7]).is_none());
        assert!(index.replace(&[1, 2], &[]).is_empty());
        drop(first);
        assert_eq!(index.make_room(21, &[7]).unwrap().len(), 1);
    }
}
