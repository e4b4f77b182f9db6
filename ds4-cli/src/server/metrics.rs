//! Counters: `/metrics` has them for Prometheus, `/stats` as JSON.

use std::sync::Arc;
use std::time::Duration;

use ds4_model::serve::End;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use serde_json::{Map, Value, json};

use super::stats::Requests;

/// All of them; clones share the numbers.
#[derive(Clone)]
pub(crate) struct Metrics {
    registry: Arc<Registry>,
    answers: Family<[(&'static str, &'static str); 1], Counter>,
    prompt: Counter,
    cached: Counter,
    completion: Counter,
    /// Those that are being answered.
    pub(crate) requests: Requests,
    /// Connections that are open.
    pub(crate) connections: Gauge,
    active: Gauge,
    waiting: Gauge,
    first: Histogram,
    whole: Histogram,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("ds4");
        let buckets = || exponential_buckets(0.005, 2.0, 16);
        let metrics = Self {
            registry: Arc::default(),
            answers: Family::default(),
            prompt: Counter::default(),
            cached: Counter::default(),
            completion: Counter::default(),
            requests: Requests::default(),
            connections: Gauge::default(),
            active: Gauge::default(),
            waiting: Gauge::default(),
            first: Histogram::new(buckets()),
            whole: Histogram::new(buckets()),
        };
        registry.register(
            "answers",
            "Answers, by how they ended",
            metrics.answers.clone(),
        );
        registry.register("prompt_tokens", "Tokens of prompts", metrics.prompt.clone());
        registry.register(
            "cached_tokens",
            "Tokens of prompts that were known already",
            metrics.cached.clone(),
        );
        registry.register(
            "completion_tokens",
            "Tokens of answers",
            metrics.completion.clone(),
        );
        registry.register(
            "connections",
            "Open connections",
            metrics.connections.clone(),
        );
        registry.register(
            "active_answers",
            "Answers in progress",
            metrics.active.clone(),
        );
        registry.register(
            "waiting_requests",
            "Requests waiting",
            metrics.waiting.clone(),
        );
        registry.register(
            "first_token_seconds",
            "From request to first text",
            metrics.first.clone(),
        );
        registry.register(
            "answer_seconds",
            "From request to end",
            metrics.whole.clone(),
        );
        Self {
            registry: Arc::new(registry),
            ..metrics
        }
    }

    pub(crate) fn first_token(&self, after: Duration) {
        self.first.observe(after.as_secs_f64());
    }

    /// One more answer that ended so; `gone` and `refused` have no end of their own.
    pub(crate) fn count(&self, ended: &'static str) {
        self.answers.get_or_create(&[("ended", ended)]).inc();
    }

    pub(crate) fn answered(&self, end: &End, after: Duration) {
        self.count(super::worker::how(&end.ended));
        self.prompt.inc_by(end.usage.prompt as u64);
        self.cached.inc_by(end.usage.cached as u64);
        self.completion.inc_by(end.usage.completion as u64);
        self.whole.observe(after.as_secs_f64());
    }

    pub(crate) fn load(&self, active: usize, waiting: usize) {
        self.active.set(active as i64);
        self.waiting.set(waiting as i64);
    }

    /// The counters as JSON: those of answers that are over, but for the first two.
    pub(crate) fn json(&self) -> Value {
        let mut answers = Map::new();
        answers.insert("active".to_owned(), json!(self.active.get()));
        answers.insert("waiting".to_owned(), json!(self.waiting.get()));
        for ended in ["stop", "length", "failed", "gone", "refused"] {
            let count = self.answers.get_or_create(&[("ended", ended)]).get();
            answers.insert(ended.to_owned(), json!(count));
        }
        json!({
            "connections": self.connections.get(),
            "answers": answers,
            "tokens": {
                "prompt": self.prompt.get(),
                "cached": self.cached.get(),
                "completion": self.completion.get(),
            },
            "requests": self.requests.json(),
        })
    }

    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("a string takes any text");
        text
    }
}
