//! Hyper-connections: mixing weights, collapse, expand. One row (token) at a time.

/// Numerically safe logistic function.
pub(super) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

/// `m [2N + N²]` → pre, post, comb in place; comb is `[source, destination]`, Sinkhorn-normalised.
pub(super) fn weights(
    m: &mut [f32],
    scale: &[f32],
    base: &[f32],
    n: usize,
    iterations: usize,
    eps: f32,
) {
    let (pre, rest) = m.split_at_mut(n);
    let (post, comb) = rest.split_at_mut(n);
    for (i, p) in pre.iter_mut().enumerate() {
        *p = sigmoid(scale[0] * *p + base[i]) + eps;
    }
    for (i, p) in post.iter_mut().enumerate() {
        *p = 2.0 * sigmoid(scale[1] * *p + base[n + i]);
    }
    for (i, a) in comb.iter_mut().enumerate() {
        *a = scale[2] * *a + base[2 * n + i];
    }
    for row in comb.chunks_exact_mut(n) {
        let top = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        row.iter_mut().for_each(|a| *a = (*a - top).exp());
        let sum: f32 = row.iter().sum();
        row.iter_mut().for_each(|a| *a = *a / sum + eps);
    }
    columns(comb, n, eps);
    for _ in 1..iterations {
        for row in comb.chunks_exact_mut(n) {
            let sum = row.iter().sum::<f32>() + eps;
            row.iter_mut().for_each(|a| *a /= sum);
        }
        columns(comb, n, eps);
    }
}

fn columns(comb: &mut [f32], n: usize, eps: f32) {
    for b in 0..n {
        let sum = comb[b..].iter().step_by(n).sum::<f32>() + eps;
        comb[b..].iter_mut().step_by(n).for_each(|a| *a /= sum);
    }
}

/// `h ← Σ_i pre_i · x_i`.
///
/// * `x`: `[N, D]` · `pre`: `[≥ N]` · `h`: `[D]`
pub(super) fn collapse(x: &[f32], pre: &[f32], h: &mut [f32]) {
    let dim = h.len();
    h.iter_mut().zip(x).for_each(|(h, x)| *h = pre[0] * x);
    for (stream, p) in x.chunks_exact(dim).zip(pre).skip(1) {
        h.iter_mut().zip(stream).for_each(|(h, x)| *h += p * x);
    }
}

/// `out_b ← post_b · y + Σ_a comb[a, b] · x_a`.
///
/// * `x`, `out`: `[N, D]` · `y`: `[D]` · `m`: pre, post, comb
pub(super) fn expand(x: &[f32], y: &[f32], m: &[f32], n: usize, out: &mut [f32]) {
    let dim = y.len();
    let (post, comb) = m[n..].split_at(n);
    for (b, out) in out.chunks_exact_mut(dim).enumerate() {
        out.iter_mut().zip(y).for_each(|(o, y)| *o = post[b] * y);
        for (a, x) in x.chunks_exact(dim).enumerate() {
            let c = comb[a * n + b];
            out.iter_mut().zip(x).for_each(|(o, x)| *o += c * x);
        }
    }
}
