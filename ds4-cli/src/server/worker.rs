//! The engine thread: it owns the scheduler with all sessions; requests come in by a bounded channel, updates go out by one
//! bounded channel a request. A receiver that is dropped ends its answer at the next turn, while a prompt is read too.
//!
//! A panic in there ends the answers in progress with an error, and the scheduler is made anew: what its sessions hold may be
//! half a step.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use ds4_model::Tokenizer;
use ds4_model::chat::{Parsed, Replay};
use ds4_model::serve::{
    Answer, Busy, Clients, End, Ended, Id, Readiness, Scheduler, StoreEvent, Turn, Update, Usage,
};
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{mpsc, oneshot};

use super::error::ApiError;
use super::metrics::Metrics;
use super::trace::Trace;

/// Updates that may wait for a slow client; then its answer pauses.
const UPDATES: usize = 64;
/// A client that takes nothing for so long is gone.
const STALLED: Duration = Duration::from_secs(60);
/// How long to sleep when all answers in progress wait for slow clients.
const PAUSE: Duration = Duration::from_millis(2);

/// What the engine thread is told.
enum Command {
    Answer(Job),
    Stop,
}

struct Job {
    answer: Box<Answer>,
    updates: mpsc::Sender<Update>,
    taken: oneshot::Sender<Result<(), ApiError>>,
}

/// What the thread gives turns to: a [`Scheduler`], and in tests something worse.
pub(crate) trait Turns {
    fn submit(&mut self, id: Id, answer: Answer) -> Result<(), Busy>;
    fn turn(&mut self, clients: &mut dyn Clients) -> Turn;
    fn take_events(&mut self) -> Vec<StoreEvent>;
    fn shut_down(&mut self, clients: &mut dyn Clients);
}

impl Turns for Scheduler {
    fn submit(&mut self, id: Id, answer: Answer) -> Result<(), Busy> {
        self.submit(id, answer)
    }

    fn turn(&mut self, clients: &mut dyn Clients) -> Turn {
        self.turn(clients)
    }

    fn take_events(&mut self) -> Vec<StoreEvent> {
        self.take_events()
    }

    fn shut_down(&mut self, clients: &mut dyn Clients) {
        self.shut_down(clients);
    }
}

/// The way to the engine thread.
#[derive(Clone)]
pub(crate) struct Worker {
    commands: mpsc::Sender<Command>,
}

impl Worker {
    /// Start the thread with what `make` makes, now and after a bug. It ends, timelines kept, when it is told to or when the
    /// last `Worker` is gone.
    ///
    /// # Errors
    /// Those of `make`, here the first time and as the thread's result later.
    pub(crate) fn start<T: Turns + Send + 'static>(
        mut make: impl FnMut() -> Result<T> + Send + 'static,
        metrics: Metrics,
        trace: Option<(Trace, Tokenizer)>,
    ) -> Result<(Self, JoinHandle<Result<()>>)> {
        let (commands, inbox) = mpsc::channel(64);
        let first = make()?;
        let thread = std::thread::Builder::new()
            .name("engine".to_owned())
            .spawn(move || work(first, make, inbox, metrics, trace))
            .context("cannot start the engine's thread")?;
        Ok((Self { commands }, thread))
    }

    /// Ask; the updates come out of the receiver.
    pub(crate) async fn ask(&self, answer: Answer) -> Result<mpsc::Receiver<Update>, ApiError> {
        let (updates, out) = mpsc::channel(UPDATES);
        let (taken, is_taken) = oneshot::channel();
        let job = Job {
            answer: Box::new(answer),
            updates,
            taken,
        };
        self.commands
            .send(Command::Answer(job))
            .await
            .map_err(|_| ApiError::ShuttingDown)?;
        is_taken.await.map_err(|_| ApiError::ShuttingDown)??;
        Ok(out)
    }

    /// Whether the thread takes requests.
    pub(crate) fn is_running(&self) -> bool {
        !self.commands.is_closed()
    }

    /// When the thread is gone, told to or not.
    pub(crate) async fn gone(&self) {
        self.commands.closed().await;
    }

    /// End the thread after the token that is being computed. Answers in progress end without their last update.
    pub(crate) async fn stop(&self) {
        // A thread that is gone has stopped.
        let _ = self.commands.send(Command::Stop).await;
    }
}

struct Client {
    updates: mpsc::Sender<Update>,
    asked: Instant,
    first: Option<Instant>,
    stalled: Option<Instant>,
    ended: bool,
}

struct Connected {
    clients: HashMap<Id, Client>,
    metrics: Metrics,
    trace: Option<(Trace, Tokenizer)>,
}

impl Connected {
    fn report(&mut self, events: &[StoreEvent]) {
        for what in events.iter().map(words) {
            super::log(format_args!("{what}"));
            if let Some((trace, _)) = &mut self.trace {
                trace.store(&what);
            }
        }
    }

    /// All answers in progress end with `error`.
    fn fail(&mut self, error: &ApiError) {
        for (id, client) in self.clients.drain() {
            if client.ended {
                continue;
            }
            self.metrics.count("failed");
            self.metrics.requests.over(id);
            let took = client.asked.elapsed().as_secs_f64();
            super::log(format_args!("request {id}: finish=failed {took:.3} s"));
            let end = End {
                ended: Ended::Failed(error.to_string()),
                parsed: Parsed::default(),
                text: String::new(),
                replay: Replay::default(),
                usage: Usage::default(),
            };
            // One that reads so slowly that there is no room learns it from the end of its stream.
            let _ = client.updates.try_send(Update {
                end: Some(end),
                ..Update::default()
            });
        }
        self.metrics.load(0, 0);
    }
}

impl Clients for Connected {
    fn readiness(&mut self, id: Id) -> Readiness {
        let Some(client) = self.clients.get_mut(&id) else {
            return Readiness::Gone;
        };
        if client.updates.is_closed() {
            return Readiness::Gone;
        }
        if client.updates.capacity() > 0 {
            client.stalled = None;
            return Readiness::Ready;
        }
        let since = client.stalled.get_or_insert_with(Instant::now);
        if since.elapsed() > STALLED {
            return Readiness::Gone;
        }
        Readiness::Wait
    }

    fn update(&mut self, id: Id, update: Update) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        self.metrics.requests.update(id, &update);
        if let Some((trace, _)) = &mut self.trace {
            trace.update(id, &update);
        }
        if client.first.is_none() && (!update.deltas.is_empty() || update.end.is_some()) {
            client.first = Some(Instant::now());
            self.metrics.first_token(client.asked.elapsed());
        }
        if let Some(end) = &update.end {
            client.ended = true;
            let took = client.asked.elapsed();
            self.metrics.answered(end, took);
            let Usage {
                prompt,
                cached,
                completion,
                ..
            } = end.usage;
            super::log(format_args!(
                "request {id}: ctx={cached}..{prompt}:{} gen={completion} finish={} {:.3} s",
                prompt - cached,
                how(&end.ended),
                took.as_secs_f64(),
            ));
        }
        // Room was seen before the turn, and a receiver that is gone needs nothing.
        let _ = client.updates.try_send(update);
    }

    fn over(&mut self, id: Id) {
        let Some(client) = self.clients.remove(&id) else {
            return;
        };
        self.metrics.requests.over(id);
        if !client.ended {
            self.metrics.count("gone");
            if let Some((trace, _)) = &mut self.trace {
                trace.gone(id);
            }
            let took = client.asked.elapsed().as_secs_f64();
            super::log(format_args!("request {id}: finish=gone {took:.3} s"));
        }
    }
}

/// Give turns until told to stop; begin anew after a panic.
fn work<T: Turns>(
    mut scheduler: T,
    mut make: impl FnMut() -> Result<T>,
    inbox: mpsc::Receiver<Command>,
    metrics: Metrics,
    trace: Option<(Trace, Tokenizer)>,
) -> Result<()> {
    let connected = Connected {
        clients: HashMap::new(),
        metrics,
        trace,
    };
    let mut engine = Engine {
        inbox,
        connected,
        next: 0,
        stopping: false,
    };
    loop {
        let turns = AssertUnwindSafe(|| engine.run(&mut scheduler));
        let Err(panic) = catch_unwind(turns) else {
            return Ok(());
        };
        let bug = ApiError::bug(&*panic);
        engine.connected.fail(&bug);
        anyhow::ensure!(!engine.stopping, "a bug while stopping");
        // A folder of timelines has one owner at a time.
        drop(scheduler);
        scheduler = make().context("cannot go on after a bug")?;
    }
}

struct Engine {
    inbox: mpsc::Receiver<Command>,
    connected: Connected,
    next: Id,
    stopping: bool,
}

impl Engine {
    /// Give turns until told to stop.
    fn run(&mut self, scheduler: &mut impl Turns) {
        let mut active = 0;
        loop {
            let command = if active == 0 {
                let command = self.inbox.blocking_recv();
                command.ok_or(TryRecvError::Disconnected)
            } else {
                self.inbox.try_recv()
            };
            let job = match command {
                Ok(Command::Answer(job)) => Some(job),
                Err(TryRecvError::Empty) => None,
                Ok(Command::Stop) | Err(TryRecvError::Disconnected) => break,
            };
            if let Some(job) = job {
                self.next += 1;
                take(scheduler, &mut self.connected, self.next, job);
                active += 1;
                // All that came meanwhile, before anything is computed.
                if !self.inbox.is_empty() {
                    continue;
                }
            }
            let turn = scheduler.turn(&mut self.connected);
            self.connected.metrics.load(turn.active, turn.waiting);
            self.connected.report(&scheduler.take_events());
            active = turn.active + turn.waiting;
            if active > 0 && !turn.worked {
                std::thread::sleep(PAUSE);
            }
        }
        self.stopping = true;
        scheduler.shut_down(&mut self.connected);
        self.connected.report(&scheduler.take_events());
    }
}

fn take(scheduler: &mut impl Turns, connected: &mut Connected, id: Id, job: Job) {
    let client = Client {
        updates: job.updates,
        asked: Instant::now(),
        first: None,
        stalled: None,
        ended: false,
    };
    connected.clients.insert(id, client);
    let prompt = job.answer.prompt();
    connected.metrics.requests.begin(id, prompt.len());
    if let Some((trace, tokenizer)) = &mut connected.trace {
        trace.prompt(id, prompt.len(), &tokenizer.decode(prompt));
    }
    let taken = scheduler.submit(id, *job.answer).map_err(|busy| {
        connected.clients.remove(&id);
        connected.metrics.count("refused");
        connected.metrics.requests.over(id);
        ApiError::Busy(busy.to_string())
    });
    // Whoever asked may be gone by now; the next turn notices.
    let _ = job.taken.send(taken);
}

/// What happened to kept timelines, in words.
fn words(event: &StoreEvent) -> String {
    match event {
        StoreEvent::Saved { tokens, bytes } => {
            format!("kept {tokens} tokens on disk, {bytes} bytes")
        }
        StoreEvent::Loaded { tokens } => format!("took up {tokens} kept tokens"),
        StoreEvent::Evicted { tokens } => format!("made room: {tokens} tokens"),
        StoreEvent::Dropped { path, reason } => format!("dropped {}: {reason}", path.display()),
        StoreEvent::Skipped { path, reason } => format!("skipped {}: {reason}", path.display()),
        StoreEvent::Behind { tokens } => {
            format!("{tokens} tokens not kept: too much waits to be written")
        }
        StoreEvent::Failed { reason } => format!("nothing kept: {reason}"),
    }
}

/// A word for how an answer ended, in logs and metrics.
pub(crate) fn how(ended: &Ended) -> &'static str {
    match ended {
        Ended::Stop | Ended::StopString(_) => "stop",
        Ended::Length => "length",
        Ended::Failed(_) | Ended::Grammar(_) => "failed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ds4_model::serve::{Reading, Request, Settings};
    use ds4_model::tokenizer::Special;
    use ds4_model::{Engine as Model, Options};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// A scheduler, the first of which meets a bug in its third turn.
    struct Faulty {
        inner: Scheduler,
        turns: Option<usize>,
    }

    impl Turns for Faulty {
        fn submit(&mut self, id: Id, answer: Answer) -> Result<(), Busy> {
            self.inner.submit(id, answer)
        }

        fn turn(&mut self, clients: &mut dyn Clients) -> Turn {
            if let Some(left) = &mut self.turns {
                assert!(*left > 0, "a fault of the test");
                *left -= 1;
            }
            self.inner.turn(clients)
        }

        fn take_events(&mut self) -> Vec<StoreEvent> {
            self.inner.take_events()
        }

        fn shut_down(&mut self, clients: &mut dyn Clients) {
            self.inner.shut_down(clients);
        }
    }

    #[test]
    fn a_panic_in_the_engine_ends_the_answers_and_not_the_server() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/ds4-demo.gguf");
        let model = Model::open(file, Options::default()).unwrap();
        let made = Arc::new(AtomicUsize::new(0));
        let (engine, count) = (model.clone(), made.clone());
        let make = move || {
            let inner = Scheduler::new(engine.clone(), Settings::default(), None)?;
            let first = count.fetch_add(1, Ordering::Relaxed) == 0;
            let turns = first.then_some(2);
            Ok(Faulty { inner, turns })
        };
        let (worker, thread) = Worker::start(make, Metrics::new(), None).unwrap();
        let ask = || {
            let mut request = Request::new(Reading::Text);
            request.prompt = model.tokenizer().encode("The capital", Special::None);
            request.limit = 6;
            Answer::new(&model, request).unwrap()
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let ends = runtime.block_on(async {
            let mut ends = Vec::new();
            for _ in 0..2 {
                let mut updates = worker.ask(ask()).await.unwrap();
                let mut last = None;
                while let Some(update) = updates.recv().await {
                    last = update.end.or(last);
                }
                ends.push(last.expect("an end").ended);
            }
            worker.stop().await;
            ends
        });
        assert!(
            matches!(&ends[0], Ended::Failed(why) if why.contains("a bug")),
            "{ends:?}"
        );
        assert_eq!(ends[1], Ended::Length);
        assert_eq!(made.load(Ordering::Relaxed), 2);
        thread.join().unwrap().unwrap();
    }
}
