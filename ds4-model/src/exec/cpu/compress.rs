//! Gated pooling of closed windows.

use super::state::Rows;

/// The pooled entry of window `index`: per channel, `Σ softmax(s) · v` over the window's members.
///
/// With two halves, members are the first halves of the window before and the second halves of this one;
/// the first window has no predecessor.
///
/// * `out`: `[dim]`
pub(super) fn pool(
    values: &Rows,
    gates: &Rows,
    index: usize,
    ratio: usize,
    halves: usize,
    out: &mut [f32],
) {
    let dim = out.len();
    let start = index * ratio;
    let second = (halves - 1) * dim;
    let before = if halves == 2 {
        start.saturating_sub(ratio)..start
    } else {
        0..0
    };
    let members = || {
        before
            .clone()
            .map(|p| (p, 0))
            .chain((start..start + ratio).map(|p| (p, second)))
    };

    let mut top = vec![f32::NEG_INFINITY; dim];
    for (position, half) in members() {
        let s = &gates.row(position)[half..half + dim];
        top.iter_mut().zip(s).for_each(|(t, s)| *t = t.max(*s));
    }
    let mut sum = vec![0.0; dim];
    out.fill(0.0);
    for (position, half) in members() {
        let s = &gates.row(position)[half..half + dim];
        let v = &values.row(position)[half..half + dim];
        for c in 0..dim {
            let e = (s[c] - top[c]).exp();
            sum[c] += e;
            out[c] += e * v[c];
        }
    }
    out.iter_mut().zip(&sum).for_each(|(o, s)| *o /= s);
}
