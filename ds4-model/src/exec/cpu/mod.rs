//! The CPU executor: walks the list one node at a time with plain loops over slices.
//!
//! It is the reference for every other executor, and the default: it runs anywhere. Results do not depend on the number
//! of threads nor on how a prompt is cut into steps: every reduction has a fixed order.

mod attend;
mod compress;
mod experts;
mod hyper;
mod index;
mod linear;
mod norm;
mod rope;
mod round;
mod route;
mod run;
mod state;

use std::sync::Arc;

use ds4_quant::{Pool, Precision};

use self::state::CpuState;
use crate::exec::{CopyDir, ExecError, Executor, PlanId, StateSet, Step, Tap, Token};
use crate::graph::{Graph, Plan, StateId, StateLayout};
use crate::weights::Weights;

/// Interprets graphs on the host.
pub struct CpuExecutor {
    weights: Arc<Weights>,
    pool: Pool,
    precision: Precision,
    plans: Vec<Prepared>,
    states: Vec<Option<CpuState>>,
    arena: Vec<f32>,
    angles: rope::Angles,
    experts: experts::Scratch,
}

struct Prepared {
    graph: Graph,
    plan: Plan,
}

impl CpuExecutor {
    /// An executor over `weights` with `threads` worker threads (0 = one a core).
    ///
    /// # Errors
    /// [`ExecError::Quant`] when threads cannot be started.
    pub fn new(
        weights: Arc<Weights>,
        threads: usize,
        precision: Precision,
    ) -> Result<Self, ExecError> {
        Ok(Self {
            weights,
            pool: Pool::new(threads)?,
            precision,
            plans: Vec::new(),
            states: Vec::new(),
            arena: Vec::new(),
            angles: rope::Angles::default(),
            experts: experts::Scratch::default(),
        })
    }

    fn state(&mut self, set: &StateSet) -> Result<&mut CpuState, ExecError> {
        let slot = self.states.get_mut(set.0).and_then(Option::as_mut);
        slot.ok_or(ExecError::Foreign {
            what: "state set",
            index: set.0,
        })
    }
}

impl Executor for CpuExecutor {
    fn prepare(
        &mut self,
        graph: &Graph,
        rows: usize,
        all_logits: bool,
    ) -> Result<PlanId, ExecError> {
        let plan = Plan::new(graph, rows, all_logits);
        if plan.arena() > self.arena.len() {
            let more = plan.arena() - self.arena.len();
            let bytes = plan.arena() as u64 * 4;
            self.arena
                .try_reserve(more)
                .map_err(|_| ExecError::Memory {
                    what: "intermediate values",
                    bytes,
                })?;
            self.arena.resize(plan.arena(), 0.0);
        }
        self.plans.push(Prepared {
            graph: graph.clone(),
            plan,
        });
        Ok(PlanId(self.plans.len() - 1))
    }

    fn new_state(&mut self, layout: &StateLayout, rows: usize) -> Result<StateSet, ExecError> {
        let state = Some(CpuState::new(layout, rows)?);
        let free = self.states.iter().position(Option::is_none);
        let index = free.unwrap_or(self.states.len());
        match free {
            Some(index) => self.states[index] = state,
            None => self.states.push(state),
        }
        Ok(StateSet(index))
    }

    fn free_state(&mut self, set: StateSet) {
        if let Some(slot) = self.states.get_mut(set.0) {
            *slot = None;
        }
    }

    fn run(
        &mut self,
        plan: PlanId,
        set: &StateSet,
        step: &Step,
        tokens: &[Token],
        tap: &mut dyn Tap,
    ) -> Result<&[f32], ExecError> {
        run::run(self, plan, set, step, tokens, tap)
    }

    fn copy_state(
        &mut self,
        set: &StateSet,
        id: StateId,
        first: usize,
        dir: CopyDir<'_>,
    ) -> Result<(), ExecError> {
        self.state(set)?.copy(id, first, dir)
    }
}
