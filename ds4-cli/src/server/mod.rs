//! `ds4-server`: one model over HTTP, in the dialects of OpenAI and Anthropic.
//!
//! ```text
//! http.rs ── a route's module (chat, completions, messages, responses) ── state.rs ── worker.rs ── ds4_model::serve
//!    ▲                         │ request → Ask                                          │ one thread owns the model
//!    └── reply.rs ◀── Dialect ─┘ ◀───────────────── updates, one bounded channel a request ┘
//! ```

mod args;
mod body;
mod chat;
mod completions;
mod connections;
mod error;
mod fields;
mod http;
mod kind;
mod messages;
mod metrics;
mod params;
mod reply;
mod responses;
mod state;
mod stats;
mod tokens;
mod trace;
#[cfg(test)]
mod walk;
mod worker;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::CommandFactory;
use ds4_model::Engine;
use ds4_model::serve::{Scheduler, Settings, Store, StoreError};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use crate::exit::{self, Exit};
use crate::{lock, refused};
use args::Args;
use connections::Limit;
use state::{App, Shared};

/// How long clients that do not read their last words are waited for.
const GRACE: Duration = Duration::from_secs(5);

/// How long a folder in use is waited for.
const RESTART: Duration = Duration::from_secs(10);

/// The command line, for completions and manual pages.
pub(crate) fn command() -> clap::Command {
    Args::command()
}

/// Parse the command line and serve until told to stop.
pub fn run(arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> Exit {
    match refused::parse(arguments) {
        Ok(args) => exit::report(serve(args)),
        Err(exit) => exit,
    }
}

/// A line for whoever runs the server.
pub(crate) fn log(line: std::fmt::Arguments<'_>) {
    // When nobody reads the log there is nowhere to say so.
    let _ = writeln!(io::stderr(), "ds4-server: {line}");
}

fn serve(mut args: Args) -> Result<()> {
    if args.api_key.is_none() {
        args.api_key = std::env::var(crate::env::API_KEY)
            .ok()
            .filter(|k| !k.is_empty());
    }
    if let Some(folder) = &args.chdir {
        let name = || format!("cannot go to {}", folder.display());
        std::env::set_current_dir(folder).with_context(name)?;
    }
    let _lock = lock::take()?;
    let trace = args.trace.as_deref().map(trace::Trace::open).transpose()?;
    let engine = args.running.open(Some(args.context.get()))?;
    let name = args.alias.clone().unwrap_or_else(|| {
        let stem = args.running.model.file_stem().unwrap_or_default();
        stem.to_string_lossy().into_owned()
    });
    let mut settings = Settings::default();
    settings.slots = args.sessions.get();
    settings.queue = match args.max_queue {
        0 => usize::MAX,
        most => most,
    };
    settings.slice = args.mixed_prefill_quantum.get();
    settings.store_from = args.kv_cache_min_tokens;
    let (folder, limit) = (args.kv_disk_dir.clone(), args.kv_disk_space_mb << 20);
    let own = engine.clone();
    let make = move || {
        let store = folder
            .as_deref()
            .map(|folder| open_store(folder, limit, &own));
        Ok(Scheduler::new(own.clone(), settings, store.transpose()?)?)
    };
    let metrics = metrics::Metrics::new();
    let trace = trace.map(|trace| (trace, engine.tokenizer().clone()));
    let (worker, thread) = worker::Worker::start(make, metrics.clone(), trace)?;
    let app = Arc::new(App::new(engine, args, name, worker, metrics));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("cannot start the network's threads")?;
    let served = runtime.block_on(listen(app));
    // The runtime lives on meanwhile, for a second signal.
    let engine_ended = thread.join();
    // Requests that are still being answered when the grace is over, or read, are cut off here.
    runtime.shutdown_background();
    match engine_ended {
        Ok(ended) => ended.and(served),
        Err(_) => anyhow::bail!("the engine's thread panicked"),
    }
}

/// Open the folder of timelines. Who starts a server again at once may find the old one still writing: that takes seconds.
fn open_store(folder: &Path, limit: u64, engine: &Engine) -> Result<Store, StoreError> {
    let from = Instant::now();
    loop {
        match Store::open(folder, limit, engine) {
            Err(StoreError::Busy { .. }) if from.elapsed() < RESTART => {
                std::thread::sleep(Duration::from_millis(100));
            }
            done => return done,
        }
    }
}

async fn listen(app: Shared) -> Result<()> {
    let address = (app.args.host.as_str(), app.args.port);
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("cannot listen on {}:{}", address.0, address.1))?;
    let at = listener.local_addr().context("cannot tell the address")?;
    log(format_args!(
        "{} ({} tokens of context) on http://{at}",
        app.model,
        app.engine.context()
    ));
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot catch SIGINT")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot catch SIGTERM")?;
    let worker = app.worker.clone();
    let (stopping, stopped) = oneshot::channel();
    let told = async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            // Without it there is nothing to serve.
            () = worker.gone() => {}
        }
        log(format_args!("stopping; a second signal stops at once"));
        tokio::spawn(async move {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            std::process::exit(i32::from(Exit::Failed as u8));
        });
        worker.stop().await;
        let _ = stopping.send(());
    };
    let over = async {
        let _ = stopped.await;
        tokio::time::sleep(GRACE).await;
    };
    let limit = Limit {
        most: app.args.max_connections,
        open: app.metrics.connections.clone(),
    };
    tokio::select! {
        () = connections::serve(listener, http::router(app), limit, told) => {}
        () = over => {}
    }
    Ok(())
}
