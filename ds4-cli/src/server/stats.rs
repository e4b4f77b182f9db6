//! What is being answered now, for `/stats`: how far each request is, told at every token.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use ds4_model::serve::{Id, Update};
use serde_json::{Value, json};

/// Requests that wait or are being answered; clones share them.
#[derive(Clone, Default)]
pub(crate) struct Requests(Arc<Mutex<BTreeMap<Id, Progress>>>);

struct Progress {
    since: Instant,
    prompt: usize,
    read: usize,
    drawn: usize,
}

impl Requests {
    fn all(&self) -> MutexGuard<'_, BTreeMap<Id, Progress>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `id` waits, with a prompt of so many tokens.
    pub(crate) fn begin(&self, id: Id, prompt: usize) {
        let progress = Progress {
            since: Instant::now(),
            prompt,
            read: 0,
            drawn: 0,
        };
        self.all().insert(id, progress);
    }

    /// `id` went on.
    pub(crate) fn update(&self, id: Id, update: &Update) {
        if let Some(progress) = self.all().get_mut(&id) {
            // Every update after that with the end of the prompt is a token.
            progress.drawn += usize::from(progress.read == progress.prompt);
            progress.read = update.read;
        }
    }

    pub(crate) fn over(&self, id: Id) {
        self.all().remove(&id);
    }

    /// A list, oldest first.
    pub(crate) fn json(&self) -> Value {
        let one = |(id, p): (&Id, &Progress)| {
            json!({
                "request": id,
                "seconds": p.since.elapsed().as_secs_f64(),
                "prompt_tokens": p.prompt,
                "read_tokens": p.read,
                "completion_tokens": p.drawn,
            })
        };
        self.all().iter().map(one).collect()
    }
}
