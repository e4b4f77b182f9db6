//! Executors: what runs a recorded graph.
//!
//! In this order: [`Executor::prepare`] a graph, once for each number of rows; [`Executor::new_state`] for each session;
//! [`Executor::run`] steps; [`Executor::free_state`]. [`cpu::CpuExecutor`] is the only one so far, and the reference for
//! others. A [`Tap`] sees the values in between.

pub mod cpu;
mod step;
mod tap;

pub use step::Step;
pub(crate) use tap::Both;
pub use tap::{NoTap, Tap, Values};

use crate::graph::{Graph, StateId, StateLayout};
pub use crate::tokenizer::Token;

/// A prepared graph inside an executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PlanId(pub(crate) usize);

/// The persistent memory of one session inside an executor.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct StateSet(pub(crate) usize);

/// Direction of a state copy; rows are those of the state's own indexing (token positions, or windows).
pub enum CopyDir<'a> {
    /// Executor to caller.
    Out(&'a mut [f32]),
    /// Caller to executor.
    In(&'a [f32]),
}

/// Why a step could not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExecError {
    /// More tokens than the plan was made for.
    #[error("the step has {rows} tokens, the plan holds {most}")]
    Rows {
        /// Tokens of the step.
        rows: usize,
        /// Tokens of the plan.
        most: usize,
    },
    /// A token id outside the vocabulary.
    #[error("token {token} at position {position} is outside the vocabulary of {vocab}")]
    Token {
        /// The id.
        token: Token,
        /// Its position.
        position: u32,
        /// Rows of the embedding.
        vocab: usize,
    },
    /// A plan or state of another executor, or one already released.
    #[error("{what} {index} does not belong to this executor")]
    Foreign {
        /// `plan` or `state set`.
        what: &'static str,
        /// Its number.
        index: usize,
    },
    /// Rows that the state does not hold (any more).
    #[error("state `{state}` does not hold rows {first}..{end}")]
    StateRows {
        /// Name of the state.
        state: Box<str>,
        /// First row asked for.
        first: usize,
        /// Row after the last.
        end: usize,
    },
    /// Packed arithmetic refused an operand.
    #[error(transparent)]
    Quant(#[from] ds4_quant::Error),
    /// Memory for states or scratch could not be had.
    #[error("not enough memory for {what}: {bytes} bytes")]
    Memory {
        /// What it was for.
        what: &'static str,
        /// Bytes asked for.
        bytes: u64,
    },
}

/// Runs graphs over weights it holds. One step at a time.
pub trait Executor: Send {
    /// Make `graph` runnable for steps of up to `rows` tokens (logits of all of them with `all_logits`, else of one).
    ///
    /// # Errors
    /// [`ExecError::Memory`] when scratch cannot be had.
    fn prepare(
        &mut self,
        graph: &Graph,
        rows: usize,
        all_logits: bool,
    ) -> Result<PlanId, ExecError>;

    /// Memory for one session, for steps of up to `rows` tokens.
    ///
    /// # Errors
    /// [`ExecError::Memory`] when it cannot be had.
    fn new_state(&mut self, layout: &StateLayout, rows: usize) -> Result<StateSet, ExecError>;

    /// Release the memory of a session.
    fn free_state(&mut self, set: StateSet);

    /// Run one step: `tokens.len() == step.rows`. Returns logits, `[rows − head_row, vocab]`.
    ///
    /// # Errors
    /// [`ExecError::Rows`] when `tokens` are not `step.rows` or more than the plan holds, [`ExecError::Foreign`] for a plan
    /// or set of another executor; both before anything is written. After any other the state is to be rewound to `step.pos`
    /// (rows of older positions are intact).
    fn run(
        &mut self,
        plan: PlanId,
        set: &StateSet,
        step: &Step,
        tokens: &[Token],
        tap: &mut dyn Tap,
    ) -> Result<&[f32], ExecError>;

    /// Copy rows `first..` of one state; the slice length, a whole number of rows, says how many.
    ///
    /// A ring places row `i` by `i` modulo its length: a row that it has overwritten is not noticed, and the row that took its
    /// place is copied. The caller knows what is still there: see [`Keep::first`](crate::graph::Keep::first).
    ///
    /// # Errors
    /// [`ExecError::StateRows`] for a part of a row, for more rows than a ring holds, and for windows not yet written (out);
    /// [`ExecError::Foreign`] for a set of another executor, [`ExecError::Memory`] when a table cannot grow.
    fn copy_state(
        &mut self,
        set: &StateSet,
        id: StateId,
        first: usize,
        dir: CopyDir<'_>,
    ) -> Result<(), ExecError>;
}
