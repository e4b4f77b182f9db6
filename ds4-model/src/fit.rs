//! What a model needs of memory, and whether a machine has it. Nothing is allocated to find out.
//!
//! ```
//! use ds4_gguf::Gguf;
//! use ds4_model::Options;
//! use ds4_model::fit::{Fit, Machine, Need};
//!
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/ds4-demo.gguf");
//! let need = Need::of(&Gguf::open(path)?, Options::default(), 1)?;
//! let fit = Fit { need, machine: Machine { total: 8 << 30, available: 4 << 30 } };
//! assert!(fit.fits() && fit.need.weights > 10_000_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt;

use ds4_gguf::Gguf;
use serde_json::{Value, json};

use crate::engine::Recorded;
use crate::error::Error;
use crate::graph::{Plan, StateKind};
use crate::inspect::human_bytes;
use crate::options::Options;
use crate::session::CHECKPOINTS;

/// Bytes of memory, by what they are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Need {
    /// Packed matrices. They stay in the mapped file: with less memory than this they are read from disk again and again.
    pub weights: u64,
    /// Vectors and tables, decoded once.
    pub decoded: u64,
    /// Values between the operations of one step.
    pub arena: u64,
    /// Inner values of the routed experts of one step.
    pub experts: u64,
    /// What one session remembers of a full context.
    pub session: u64,
    /// What one session keeps aside to rewind to.
    pub checkpoints: u64,
    /// Sessions.
    pub sessions: u64,
    /// Tokens of their context.
    pub context: usize,
    /// Tokens of a prompt in one step.
    pub rows: usize,
}

impl Need {
    /// What `sessions` sessions of the model in `gguf` need, opened with `options`.
    ///
    /// # Errors
    /// As for [`Engine::from_gguf`](crate::Engine::from_gguf): a model that cannot be run needs nothing.
    pub fn of(gguf: &Gguf, options: Options, sessions: usize) -> Result<Self, Error> {
        const F32: u64 = 4;
        let model = Recorded::of(gguf, options)?;
        let (config, rows) = (&model.config, model.options.prefill_rows);
        let arena = |rows| Plan::new(&model.graph, rows, false).arena() as u64;
        // Gate, up and down of every expert that a row is sent to.
        let pairs = rows as u64 * config.experts_used as u64;
        let inner = 2 * config.expert_width as u64 + config.dim as u64;
        let states = model.graph.states();
        let rings = states.specs.iter().filter_map(|spec| match spec.kind {
            StateKind::Ring { keep } => Some(u64::from(keep.most()) * u64::from(spec.cols)),
            StateKind::Windows { .. } => None,
        });
        Ok(Self {
            weights: model.weights.mapped_bytes(),
            decoded: model.weights.decoded_bytes(),
            arena: arena(rows).max(arena(1)) * F32,
            experts: pairs * inner * F32,
            session: states.bytes(model.context as u64, rows as u64),
            // Each may have its logits.
            checkpoints: CHECKPOINTS as u64 * (rings.sum::<u64>() + config.vocab as u64) * F32,
            sessions: sessions as u64,
            context: model.context,
            rows,
        })
    }

    /// All of it.
    #[must_use]
    pub fn total(&self) -> u64 {
        let sessions =
            (self.session.saturating_add(self.checkpoints)).saturating_mul(self.sessions);
        [self.decoded, self.arena, self.experts, sessions]
            .into_iter()
            .fold(self.weights, u64::saturating_add)
    }
}

/// Memory of a machine, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// All that this process may have.
    pub total: u64,
    /// What is free now, files cached in memory included: they make room.
    pub available: u64,
}

/// A need against a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fit {
    /// What is needed.
    pub need: Need,
    /// What there is.
    pub machine: Machine,
}

impl Fit {
    /// Whether it fits now.
    #[must_use]
    pub fn fits(&self) -> bool {
        self.need.total() <= self.machine.available.min(self.machine.total)
    }

    /// In one sentence.
    #[must_use]
    pub fn verdict(&self) -> String {
        let (total, machine) = (self.need.total(), self.machine);
        if self.fits() {
            let left = machine.available.min(machine.total) - total;
            format!("fits, with {} to spare", human_bytes(left))
        } else if total <= machine.total {
            let lacking = total - machine.available;
            format!(
                "would not fit now: other programs hold {} too much",
                human_bytes(lacking)
            )
        } else {
            let lacking = total - machine.total;
            format!("would not fit: {} too much", human_bytes(lacking))
        }
    }

    /// Everything as JSON, in bytes.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let Self { need, machine } = self;
        json!({
            "weights": need.weights,
            "decoded": need.decoded,
            "arena": need.arena,
            "experts": need.experts,
            "session": need.session,
            "checkpoints": need.checkpoints,
            "sessions": need.sessions,
            "context": need.context,
            "prefill_chunk": need.rows,
            "total": need.total(),
            "machine": { "total": machine.total, "available": machine.available },
            "fits": self.fits(),
            "verdict": self.verdict(),
        })
    }
}

impl fmt::Display for Fit {
    /// The table, then the verdict.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Need {
            sessions, context, ..
        } = self.need;
        let rows = [
            ("weights, mapped from the file", self.need.weights),
            ("vectors and tables", self.need.decoded),
            ("values of a step", self.need.arena),
            ("experts of a step", self.need.experts),
            ("state", self.need.session.saturating_mul(sessions)),
            (
                "checkpoints",
                self.need.checkpoints.saturating_mul(sessions),
            ),
            ("needed", self.need.total()),
            ("this machine has", self.machine.total),
            ("free now", self.machine.available),
        ];
        writeln!(
            f,
            "{sessions} session(s) of {context} tokens, {} tokens of a prompt in a step",
            self.need.rows
        )?;
        for (what, bytes) in rows {
            writeln!(f, "  {what:<30} {:>12}", human_bytes(bytes))?;
        }
        write!(f, "{}", self.verdict())
    }
}
