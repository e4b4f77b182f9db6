//! Who works next: requests that wait, slots with a session each, and turns between reading prompts and drawing tokens.
//!
//! A round gives every answer in progress one token, then one of the prompts in progress a slice. A long prompt therefore
//! delays others by one slice a token, and never waits for them.

use std::collections::VecDeque;

use crate::engine::Engine;
use crate::error::Error;
use crate::serve::answer::{Answer, Request, Update};
use crate::serve::store::{Hold, Store, StoreEvent};
use crate::session::Session;
use crate::tokenizer::Token;

/// The caller's name for a request.
pub type Id = u64;

/// Whether a client can take an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// Yes.
    Ready,
    /// Not now: its answer takes no turn meanwhile.
    Wait,
    /// Never again: its answer is dropped.
    Gone,
}

/// Where updates go.
pub trait Clients {
    /// Asked before each turn, and of those that wait for a slot.
    fn readiness(&mut self, id: Id) -> Readiness;
    /// An update for a client that was ready.
    fn update(&mut self, id: Id, update: Update);
    /// The request is over: answered, failed or dropped.
    fn over(&mut self, id: Id);
}

/// How much is done at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// Sessions, so many answers at a time.
    pub slots: usize,
    /// Requests that may wait for a slot.
    pub queue: usize,
    /// Tokens of a prompt in a turn while others draw tokens. Alone, a prompt takes the engine's whole step.
    pub slice: usize,
    /// Shortest timeline worth keeping on disk, in tokens.
    pub store_from: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            slots: 4,
            queue: 64,
            slice: 128,
            store_from: 512,
        }
    }
}

/// Too many requests wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{waiting} requests wait already, the limit is {limit}; try again later")]
pub struct Busy {
    /// Requests waiting.
    pub waiting: usize,
    /// The limit.
    pub limit: usize,
}

/// What a round did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// Whether anything was computed.
    pub worked: bool,
    /// Answers in progress.
    pub active: usize,
    /// Requests waiting.
    pub waiting: usize,
}

struct Slot {
    session: Session,
    job: Option<(Id, Answer)>,
    /// When it was last given a request, in requests.
    used: u64,
    /// Length up to which the timeline is on disk.
    stored: usize,
    /// [`Answer::marks`] of the last prompt.
    marks: Vec<usize>,
    /// Length of the last prompt, up to the answer: what follows is of little use to anybody else.
    asked: usize,
}

impl Slot {
    /// Tokens of conversations that would be lost to `prompt`.
    fn lost(&self, prompt: &[Token]) -> usize {
        let worth = self.asked.min(self.session.tokens().len());
        worth.saturating_sub(self.session.common(prompt))
    }
}

/// So many tokens may be lost to a prompt that begins the same: a question asked otherwise.
const FEW: usize = 32;

/// Requests, slots, and the store.
pub struct Scheduler {
    engine: Engine,
    settings: Settings,
    slots: Vec<Slot>,
    /// Each with a hold on the entry that it will take up.
    waiting: VecDeque<(Id, Answer, Option<Hold>)>,
    store: Option<Store>,
    given: u64,
    /// The slot whose prompt had the last slice.
    last_read: usize,
    events: Vec<StoreEvent>,
}

impl Scheduler {
    /// With all its sessions.
    ///
    /// # Errors
    /// [`Error::Exec`] when their memory cannot be had, [`Error::Option`] for no slot or no slice.
    pub fn new(engine: Engine, settings: Settings, store: Option<Store>) -> Result<Self, Error> {
        for (option, found) in [("slots", settings.slots), ("slice", settings.slice)] {
            if found == 0 {
                return Err(Error::Option {
                    option,
                    found,
                    expected: "at least 1",
                });
            }
        }
        let slot = |_| {
            Ok(Slot {
                session: engine.session()?,
                job: None,
                used: 0,
                stored: 0,
                marks: Vec::new(),
                asked: 0,
            })
        };
        let slots = (0..settings.slots)
            .map(slot)
            .collect::<Result<_, Error>>()?;
        Ok(Self {
            engine,
            settings,
            slots,
            waiting: VecDeque::new(),
            store,
            given: 0,
            last_read: 0,
            events: Vec::new(),
        })
    }

    /// Take a request. Its updates come out of later turns.
    ///
    /// # Errors
    /// [`Busy`] when the queue is full.
    pub fn submit(&mut self, id: Id, answer: Answer) -> Result<(), Busy> {
        let idle = self.slots.iter().filter(|s| s.job.is_none()).count();
        let (waiting, limit) = (self.waiting.len(), self.settings.queue);
        if waiting >= limit.saturating_add(idle) {
            return Err(Busy { waiting, limit });
        }
        let hold = self.store.as_ref().map(|s| s.hold(answer.prompt()));
        self.waiting.push_back((id, answer, hold));
        Ok(())
    }

    /// As [`Scheduler::submit`], from a request.
    ///
    /// # Errors
    /// The outer one when the request cannot be answered, the inner one when it cannot be taken now.
    pub fn ask(&mut self, id: Id, request: Request) -> Result<Result<(), Busy>, Error> {
        let answer = Answer::new(&self.engine, request)?;
        Ok(self.submit(id, answer))
    }

    /// One round.
    pub fn turn(&mut self, clients: &mut dyn Clients) -> Turn {
        self.drop_gone(clients);
        self.assign();
        let mut worked = false;
        for at in 0..self.slots.len() {
            let decoding = |(_, answer): &(Id, Answer)| answer.is_decoding();
            if self.slots[at].job.as_ref().is_some_and(decoding) {
                worked |= self.work(at, 1, clients);
            }
        }
        // After the draws, so that a prompt that is read draws its first token in the next round.
        let drawing = worked;
        let count = self.slots.len();
        for step in 1..=count {
            let at = (self.last_read + step) % count;
            let reading = |(_, answer): &(Id, Answer)| !answer.is_decoding();
            if self.slots[at].job.as_ref().is_some_and(reading) {
                let rows = if drawing {
                    self.settings.slice
                } else {
                    self.engine.options().prefill_rows
                };
                if self.work(at, rows, clients) {
                    self.last_read = at;
                    worked = true;
                    break;
                }
            }
        }
        Turn {
            worked,
            active: self.slots.iter().filter(|s| s.job.is_some()).count(),
            waiting: self.waiting.len(),
        }
    }

    /// What happened to kept timelines since the last call.
    pub fn take_events(&mut self) -> Vec<StoreEvent> {
        let mut events = std::mem::take(&mut self.events);
        events.extend(self.store.iter_mut().flat_map(Store::take_events));
        events
    }

    /// Write every timeline that is worth it to the store. Answers in progress are dropped.
    pub fn shut_down(&mut self, clients: &mut dyn Clients) {
        for (id, ..) in self.waiting.drain(..) {
            clients.over(id);
        }
        for at in 0..self.slots.len() {
            if let Some((id, _)) = self.slots[at].job.take() {
                clients.over(id);
            }
            // Nothing is left out because too much waits.
            self.settle();
            self.keep(at);
        }
        self.settle();
    }

    fn settle(&mut self) {
        if let Some(store) = &mut self.store {
            store.settle();
            self.events.extend(store.take_events());
        }
    }

    /// A turn for one slot; whether it did anything.
    fn work(&mut self, at: usize, rows: usize, clients: &mut dyn Clients) -> bool {
        let slot = &mut self.slots[at];
        let Some((id, answer)) = &mut slot.job else {
            return false;
        };
        let id = *id;
        match clients.readiness(id) {
            Readiness::Wait => return false,
            Readiness::Gone => {
                slot.job = None;
                clients.over(id);
                return false;
            }
            Readiness::Ready => {}
        }
        let was_reading = !answer.is_decoding();
        let update = answer.turn(&mut slot.session, rows);
        let len = slot.session.tokens().len();
        let at_mark = was_reading && answer.marks().contains(&len);
        let read = was_reading && answer.is_decoding();
        let over = answer.is_over();
        clients.update(id, update);
        if over {
            slot.job = None;
            clients.over(id);
        }
        if read || at_mark {
            self.keep(at);
        }
        true
    }

    fn drop_gone(&mut self, clients: &mut dyn Clients) {
        self.waiting.retain(|(id, ..)| {
            let gone = clients.readiness(*id) == Readiness::Gone;
            if gone {
                clients.over(*id);
            }
            !gone
        });
        for slot in &mut self.slots {
            if let Some((id, _)) = slot.job
                && clients.readiness(id) == Readiness::Gone
            {
                slot.job = None;
                clients.over(id);
            }
        }
    }

    /// Give waiting requests to idle slots.
    fn assign(&mut self) {
        while let Some((id, answer, hold)) = self.waiting.pop_front() {
            let Some(at) = self.choose(&answer) else {
                self.waiting.push_front((id, answer, hold));
                return;
            };
            self.prepare(at, &answer);
            drop(hold);
            self.given += 1;
            let slot = &mut self.slots[at];
            slot.used = self.given;
            slot.marks = answer.marks().to_vec();
            slot.asked = slot.marks.last().copied().unwrap_or(answer.prompt().len());
            slot.job = Some((id, answer));
        }
    }

    /// The idle slot that has most of the prompt, if hardly anything else is lost in it; else an empty one; else the one
    /// unused for longest. Conversations that only begin the same so keep their own slots.
    fn choose(&self, answer: &Answer) -> Option<usize> {
        let idle = || {
            self.slots
                .iter()
                .enumerate()
                .filter(|(_, s)| s.job.is_none())
        };
        let common = |slot: &Slot| slot.session.common(answer.prompt());
        let best = idle()
            .filter(|(_, s)| common(s) > 0 && s.lost(answer.prompt()) <= FEW)
            .max_by_key(|(_, s)| common(s));
        let oldest = |(_, s): &(usize, &Slot)| (!s.session.tokens().is_empty(), s.used);
        best.or_else(|| idle().min_by_key(oldest)).map(|(at, _)| at)
    }

    /// Bring into the slot what another slot or the store has of the prompt, when that is more than the slot has itself.
    fn prepare(&mut self, at: usize, answer: &Answer) {
        let prompt = answer.prompt();
        let slot = &self.slots[at];
        let cut = slot.session.tokens().len() - slot.session.common(prompt);
        if cut > self.settings.store_from && slot.lost(prompt) > 0 {
            self.keep(at);
        }
        let slot = &mut self.slots[at];
        slot.stored = slot.stored.min(slot.session.common(prompt));
        self.copy_beginning(at, prompt);
        let slot = &mut self.slots[at];
        let Some(store) = &mut self.store else { return };
        let found = store.longest(prompt);
        if found.is_some_and(|found| found > slot.session.reusable(prompt))
            && store.load(prompt, &mut slot.session)
        {
            slot.stored = slot.session.tokens().len();
        }
        slot.stored = slot.stored.min(slot.session.tokens().len());
        self.events.extend(store.take_events());
    }

    /// Copy the beginning of the prompt from the slot that has most of it, busy or not, when that is more than this one has.
    fn copy_beginning(&mut self, at: usize, prompt: &[Token]) {
        let has = |slot: &Slot| slot.session.reusable(prompt);
        let others = (0..self.slots.len()).filter(|&other| other != at);
        let Some(most) = others.max_by_key(|&other| has(&self.slots[other])) else {
            return;
        };
        let found = has(&self.slots[most]);
        let kept = self.store.as_ref().and_then(|s| s.longest(prompt));
        if found <= has(&self.slots[at]) || kept.is_some_and(|kept| kept > found) {
            return;
        }
        let Ok([to, from]) = self.slots.get_disjoint_mut([at, most]) else {
            return;
        };
        match to.session.copy_from(&from.session, prompt) {
            Ok(len) => to.stored = from.stored.min(len),
            // The session is empty now, and the prompt is computed from its start.
            Err(error) => {
                tracing::warn!(%error, "a beginning could not be copied");
                to.stored = 0;
            }
        }
    }

    /// Give the slot's timeline to the store, if it has grown enough since it was last kept.
    fn keep(&mut self, at: usize) {
        let slot = &mut self.slots[at];
        let (len, from) = (slot.session.tokens().len(), self.settings.store_from.max(1));
        let Some(store) = &mut self.store else { return };
        if len >= slot.stored + from {
            if store.save(&slot.session, &slot.marks) {
                slot.stored = len;
            }
            self.events.extend(store.take_events());
        }
    }
}
