//! Products of packed weights with activations.
//!
//! A call is cut into tasks of some rows of one matrix, whatever the number of threads, and all tasks of all jobs
//! share one fork and join. Every element of a result is the same chain of operations ([`crate::accumulate`]) in
//! whatever call, tile or thread it is computed.

use crate::{Activations, Error, Isa, Matrix, Pool};

/// One product of [`matmul_many`]: `y[t, r] = Σ w[r, i]·x[t, i]`.
#[derive(Debug)]
pub struct Job<'a> {
    /// Weights `[rows, cols]`.
    pub w: Matrix<'a>,
    /// Activations `[tokens, cols]`.
    pub x: &'a Activations,
    /// Results `[tokens, rows]`, overwritten.
    pub y: &'a mut [f32],
}

/// Multiply one matrix: `y[t, r] = Σ w[r, i]·x[t, i]`.
///
/// * `w`: `[rows, cols]` packed · `x`: `[tokens, cols]` · `y`: `[tokens, rows]`
///
/// # Errors
/// [`Error::Inner`] when the columns differ, [`Error::Length`] when `y` has another size; nothing is written then.
pub fn matmul(pool: &Pool, w: Matrix<'_>, x: &Activations, y: &mut [f32]) -> Result<(), Error> {
    matmul_many(pool, &mut [Job { w, x, y }])
}

/// Multiply several matrices with one fork and join: all projections of one input, all experts of one layer.
///
/// # Errors
/// As [`matmul`], for the first job that is wrong; nothing is written then.
pub fn matmul_many(pool: &Pool, jobs: &mut [Job<'_>]) -> Result<(), Error> {
    matmul_with(Isa::best(), pool, jobs)
}

/// [`matmul_many`] on a chosen instruction set, for tests and benches: the results are the same.
///
/// # Errors
/// As [`matmul_many`].
pub fn matmul_with(isa: Isa, pool: &Pool, jobs: &mut [Job<'_>]) -> Result<(), Error> {
    for job in jobs.iter() {
        check(job)?;
    }
    let mut tasks = Vec::new();
    let mut work = 0usize;
    for job in jobs.iter_mut() {
        work = work.saturating_add(job.y.len().saturating_mul(job.w.cols()));
        job.x.prepare(job.w.ty(), pool);
        split(job, &mut tasks);
    }
    // A small product is done before another thread is awake.
    let together = if work < ALONE { tasks.len().max(1) } else { 1 };
    pool.for_chunks(&mut tasks, together, |_, tasks| {
        for task in tasks {
            isa.kernel(task.w.ty(), task.x.precision())(task.w, task.x, &mut task.y);
        }
    });
    Ok(())
}

/// Products of pairs below which a call stays on its thread: some 10 µs.
const ALONE: usize = 1 << 18;
/// Products of pairs a task should have: some 50 µs.
const TASK: usize = 1 << 20;
/// A task has a multiple of so many rows, which fill the tiles of every kernel.
const TASK_ROWS: usize = 16;

/// Some rows of one job: `y[t]` is their part of token t's results.
struct Task<'a> {
    w: Matrix<'a>,
    x: &'a Activations,
    y: Vec<&'a mut [f32]>,
}

fn check(job: &Job<'_>) -> Result<(), Error> {
    if job.w.cols() != job.x.cols() {
        return Err(Error::Inner {
            weights: job.w.cols(),
            activations: job.x.cols(),
        });
    }
    let (rows, cols) = (job.x.rows(), job.w.rows());
    let want = rows.checked_mul(cols).ok_or(Error::TooLarge {
        what: "a result",
        rows,
        cols,
    })?;
    if job.y.len() != want {
        return Err(Error::Length {
            what: "results",
            got: job.y.len(),
            want,
        });
    }
    Ok(())
}

/// Cut a job into tasks of some rows, by its shape alone.
fn split<'t>(job: &'t mut Job<'_>, tasks: &mut Vec<Task<'t>>) {
    let (w, x) = (job.w, job.x);
    if x.rows() == 0 || w.rows() == 0 {
        return;
    }
    let row_work = w.cols().saturating_mul(x.rows()).max(1);
    let rows = (TASK / row_work).next_multiple_of(TASK_ROWS).max(TASK_ROWS);
    let first = tasks.len();
    for from in (0..w.rows()).step_by(rows) {
        let to = w.rows().min(from + rows);
        tasks.push(Task {
            w: w.part(from, to),
            x,
            y: Vec::with_capacity(x.rows()),
        });
    }
    for token in job.y.chunks_exact_mut(w.rows()) {
        for (task, part) in tasks[first..].iter_mut().zip(token.chunks_mut(rows)) {
            task.y.push(part);
        }
    }
}
