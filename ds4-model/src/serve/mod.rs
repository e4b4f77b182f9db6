//! Many answers at once: requests, answers in progress, who works next, and timelines kept for later.
//!
//! ```text
//! Request ──▶ Scheduler ──▶ slot (a Session and an Answer) ──▶ Update, Update, …, the last with its End
//!                 │              ▲
//!                 └── Store ─────┘   timelines on disk, taken up by the next prompt that begins like them
//! ```
//! Nothing here knows clocks or sockets, and but for the writing of timelines no threads: the caller gives turns
//! ([`Scheduler::turn`]) and carries the updates.

mod answer;
mod listed;
mod replay;
mod scheduler;
mod store;

pub use answer::{Answer, End, Ended, Logprob, Reading, Request, Update, Usage};
pub use replay::Replays;
pub use scheduler::{Busy, Clients, Id, Readiness, Scheduler, Settings, Turn};
pub use store::{Hold, Store, StoreError, StoreEvent};
