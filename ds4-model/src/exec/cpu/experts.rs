//! Routed experts: (row, expert) pairs sorted by expert, so that each packed expert is decoded once a step.

use ds4_quant::{Activations, Job, Pool, matmul_many};

use crate::exec::ExecError;
use crate::weights::{MatrixId, Weights};

/// `silu(min(g, c)) · clamp(u, ±c)` into `gate`.
///
/// * `gate`, `up`: same length; `clamp`: c, or none
pub(super) fn swiglu(gate: &mut [f32], up: &[f32], clamp: Option<f32>) {
    let limit = clamp.unwrap_or(f32::INFINITY);
    for (g, u) in gate.iter_mut().zip(up) {
        let a = g.min(limit);
        *g = a / (1.0 + (-a).exp()) * u.clamp(-limit, limit);
    }
}

/// Matrices of one layer's experts.
pub(super) struct Experts {
    pub(super) gate: MatrixId,
    pub(super) up: MatrixId,
    pub(super) down: MatrixId,
    pub(super) clamp: Option<f32>,
}

/// Scratch kept between steps.
#[derive(Default)]
pub(super) struct Scratch {
    gate: Vec<f32>,
    up: Vec<f32>,
    down: Vec<f32>,
}

/// The pairs of one step, sorted by expert: `rows` of each expert and where each pair's result lies.
struct Sorted {
    /// (expert, rows that use it), ascending.
    groups: Vec<(usize, Vec<u32>)>,
    /// Place of pair `row · k + slot` in the sorted order.
    place: Vec<usize>,
}

impl Sorted {
    fn new(ids: &[i32], used: usize) -> Self {
        let mut order: Vec<usize> = (0..ids.len()).collect();
        order.sort_by_key(|&pair| (ids[pair], pair));
        let mut place = vec![0; ids.len()];
        let mut groups: Vec<(usize, Vec<u32>)> = Vec::new();
        for (at, &pair) in order.iter().enumerate() {
            place[pair] = at;
            let (expert, row) = (ids[pair] as usize, (pair / used) as u32);
            match groups.last_mut() {
                Some((last, rows)) if *last == expert => rows.push(row),
                _ => groups.push((expert, vec![row])),
            }
        }
        Sorted { groups, place }
    }
}

/// Rows and the experts chosen for them.
pub(super) struct Routed<'a> {
    /// `[rows, D]`
    pub(super) x: &'a Activations,
    /// `[rows, used]`
    pub(super) ids: &'a [i32],
    /// `[rows, used]`
    pub(super) weights: &'a [f32],
}

/// `out_row = Σ_slot w · down_e(act(gate_e x, up_e x))`, summed in slot order for every row.
///
/// * `out`: `[rows, D]`
pub(super) fn run(
    pool: &Pool,
    model: &Weights,
    experts: &Experts,
    routed: Routed<'_>,
    scratch: &mut Scratch,
    out: &mut [f32],
) -> Result<(), ExecError> {
    let Routed { x, ids, weights } = routed;
    let rows = x.rows();
    let used = ids.len() / rows;
    let (width, dim) = (model.info(experts.gate).rows, model.info(experts.down).rows);
    let sorted = Sorted::new(ids, used);
    scratch.gate.resize(ids.len() * width, 0.0);
    scratch.up.resize(ids.len() * width, 0.0);
    scratch.down.resize(ids.len() * dim, 0.0);

    let inputs: Vec<Activations> = sorted
        .groups
        .iter()
        .map(|(_, rows)| x.select(rows))
        .collect::<Result<_, _>>()?;
    let mut jobs = Vec::with_capacity(2 * inputs.len());
    let (mut gate, mut up) = (&mut scratch.gate[..], &mut scratch.up[..]);
    for ((expert, _), input) in sorted.groups.iter().zip(&inputs) {
        let len = input.rows() * width;
        jobs.push(Job {
            w: model.slice(experts.gate, *expert),
            x: input,
            y: take(&mut gate, len),
        });
        jobs.push(Job {
            w: model.slice(experts.up, *expert),
            x: input,
            y: take(&mut up, len),
        });
    }
    matmul_many(pool, &mut jobs)?;

    let up = &scratch.up;
    pool.for_chunks(&mut scratch.gate, width, |pair, gate| {
        swiglu(gate, &up[pair * width..(pair + 1) * width], experts.clamp);
    });

    let mut gate = &scratch.gate[..];
    let inner: Vec<Activations> = inputs
        .iter()
        .map(|input| {
            let (mine, rest) = gate.split_at(input.rows() * width);
            gate = rest;
            Activations::new(mine, input.rows(), width, x.precision())
        })
        .collect::<Result<_, _>>()?;
    let mut down = &mut scratch.down[..];
    let mut jobs: Vec<Job<'_>> = sorted
        .groups
        .iter()
        .zip(&inner)
        .map(|((expert, _), x)| Job {
            w: model.slice(experts.down, *expert),
            x,
            y: take(&mut down, x.rows() * dim),
        })
        .collect();
    matmul_many(pool, &mut jobs)?;

    let down = &scratch.down;
    pool.for_chunks(out, dim, |row, out| {
        out.fill(0.0);
        let slots = row * used..(row + 1) * used;
        for (w, place) in weights[slots.clone()].iter().zip(&sorted.place[slots]) {
            let at = place * dim;
            out.iter_mut()
                .zip(&down[at..at + dim])
                .for_each(|(o, d)| *o += w * d);
        }
    });
    Ok(())
}

/// What each expert read in the call of [`run`] that has just ended: its number, its rows of `x`, and the rows of its
/// down projection.
pub(super) fn each(
    x: &[f32],
    ids: &[i32],
    rows: usize,
    scratch: &Scratch,
    mut see: impl FnMut(usize, &[&[f32]], &[&[f32]]),
) {
    let (dim, width) = (x.len() / rows, scratch.gate.len() / ids.len());
    let mut inner = scratch.gate.chunks_exact(width);
    for (expert, rows) in Sorted::new(ids, ids.len() / rows).groups {
        let input: Vec<&[f32]> = rows
            .iter()
            .map(|&row| &x[row as usize * dim..][..dim])
            .collect();
        let inner: Vec<&[f32]> = inner.by_ref().take(rows.len()).collect();
        see(expert, &input, &inner);
    }
}

/// Cut the first `len` elements off a slice.
fn take<'a>(from: &mut &'a mut [f32], len: usize) -> &'a mut [f32] {
    let (mine, rest) = std::mem::take(from).split_at_mut(len);
    *from = rest;
    mine
}
