//! The engine thread: it owns the scheduler with all sessions; requests come in by a bounded channel, updates go out by one
//! bounded channel a request. A receiver that is dropped ends its answer at the next turn, while a prompt is read too.

use std::collections::HashMap;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ds4_model::serve::{
    Answer, Clients, Ended, Id, Readiness, Scheduler, StoreEvent, Update, Usage,
};
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{mpsc, oneshot};

use super::error::ApiError;
use super::metrics::Metrics;

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

/// The way to the engine thread.
#[derive(Clone)]
pub(crate) struct Worker {
    commands: mpsc::Sender<Command>,
}

impl Worker {
    /// Start the thread. It ends, timelines kept, when it is told to or when the last `Worker` is gone.
    pub(crate) fn start(
        scheduler: Scheduler,
        metrics: Metrics,
    ) -> std::io::Result<(Self, JoinHandle<()>)> {
        let (commands, inbox) = mpsc::channel(64);
        let thread = std::thread::Builder::new()
            .name("engine".to_owned())
            .spawn(move || work(scheduler, inbox, metrics))?;
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
        if !client.ended {
            self.metrics.count("gone");
            let took = client.asked.elapsed().as_secs_f64();
            super::log(format_args!("request {id}: finish=gone {took:.3} s"));
        }
    }
}

fn work(mut scheduler: Scheduler, mut inbox: mpsc::Receiver<Command>, metrics: Metrics) {
    let mut connected = Connected {
        clients: HashMap::new(),
        metrics: metrics.clone(),
    };
    let (mut next, mut active) = (0, 0);
    loop {
        let command = if active == 0 {
            inbox.blocking_recv().ok_or(TryRecvError::Disconnected)
        } else {
            inbox.try_recv()
        };
        let job = match command {
            Ok(Command::Answer(job)) => Some(job),
            Err(TryRecvError::Empty) => None,
            Ok(Command::Stop) | Err(TryRecvError::Disconnected) => break,
        };
        if let Some(job) = job {
            next += 1;
            take(&mut scheduler, &mut connected, next, job);
            active += 1;
            // All that came meanwhile, before anything is computed.
            if !inbox.is_empty() {
                continue;
            }
        }
        let turn = scheduler.turn(&mut connected);
        metrics.load(turn.active, turn.waiting);
        scheduler.take_events().iter().for_each(report);
        active = turn.active + turn.waiting;
        if active > 0 && !turn.worked {
            std::thread::sleep(PAUSE);
        }
    }
    scheduler.shut_down(&mut connected);
    scheduler.take_events().iter().for_each(report);
}

fn take(scheduler: &mut Scheduler, connected: &mut Connected, id: Id, job: Job) {
    let client = Client {
        updates: job.updates,
        asked: Instant::now(),
        first: None,
        stalled: None,
        ended: false,
    };
    connected.clients.insert(id, client);
    let taken = scheduler.submit(id, *job.answer).map_err(|busy| {
        connected.clients.remove(&id);
        connected.metrics.count("refused");
        ApiError::Busy(busy.to_string())
    });
    // Whoever asked may be gone by now; the next turn notices.
    let _ = job.taken.send(taken);
}

fn report(event: &StoreEvent) {
    match event {
        StoreEvent::Saved { tokens, bytes } => {
            super::log(format_args!("kept {tokens} tokens on disk, {bytes} bytes"));
        }
        StoreEvent::Loaded { tokens } => super::log(format_args!("took up {tokens} kept tokens")),
        StoreEvent::Evicted { tokens } => super::log(format_args!("made room: {tokens} tokens")),
        StoreEvent::Dropped { path, reason } => {
            super::log(format_args!("dropped {}: {reason}", path.display()));
        }
        StoreEvent::Skipped { path, reason } => {
            super::log(format_args!("skipped {}: {reason}", path.display()));
        }
        StoreEvent::Behind { tokens } => {
            super::log(format_args!(
                "{tokens} tokens not kept: too much waits to be written"
            ));
        }
        StoreEvent::Failed { reason } => super::log(format_args!("nothing kept: {reason}")),
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
