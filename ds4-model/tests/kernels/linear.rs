//! Mat-vec over packed weights, against the codecs.

use ds4_gguf::TensorType;
use ds4_model::hip::linear::{MAX_COLS, PACKED, Variant};
use ds4_quant::codec;

use crate::place::{Place, Rng, packed, product};

/// Activations as the kernel makes them, in Rust: codes and scales.
pub(crate) fn quantized(x: &[f32]) -> (Vec<i8>, Vec<f32>) {
    let (mut codes, mut scales) = (Vec::new(), Vec::new());
    for group in x.chunks(32) {
        let max = group.iter().fold(0f32, |m, v| m.max(v.abs()));
        scales.push(max / 127.0);
        let by = if max > 0.0 { 127.0 / max } else { 0.0 };
        codes.extend(group.iter().map(|v| (v * by).round_ties_even() as i8));
    }
    (codes, scales)
}

/// Whether `y` is the product of the decoded weights with the same bytes, but for the rounding of f32 sums.
///
/// Each lane adds `cols / 32 / 16` terms at most, the trees 7 more, and a term is rounded four times; a term is no larger than
/// its largest weight, or that and its minimum, times the activations.
pub(crate) fn check(ty: TensorType, w: &[u8], x: &[f32], y: &[f32], rows: usize, cols: usize) {
    let row_bytes = cols / ty.block_len() * ty.block_bytes();
    let decoder = codec(ty).unwrap();
    let mut decoded = vec![0f32; cols];
    for r in 0..rows {
        decoder
            .decode(&w[r * row_bytes..(r + 1) * row_bytes], &mut decoded)
            .unwrap();
        for (c, x) in x.chunks(cols).enumerate() {
            let (codes, scales) = quantized(x);
            let (mut want, mut size) = (0f64, 0f64);
            for (k, &w) in decoded.iter().enumerate() {
                let x = f64::from(codes[k]) * f64::from(scales[k / 32]);
                want += f64::from(w) * x;
                let near = &decoded[k / 32 * 32..k / 32 * 32 + 32];
                let largest = near.iter().fold(0f32, |m, v| m.max(v.abs()));
                size += 3.0 * f64::from(largest) * x.abs();
            }
            let got = f64::from(y[c * rows + r]);
            let bound = size * (cols as f64 / 512.0 + 12.0) * f64::from(f32::EPSILON) / 2.0;
            assert!(
                (got - want).abs() <= bound,
                "{} {rows} x {cols}, row {r}, column {c}: {got} is not {want} within {bound:e}",
                ty.name()
            );
        }
    }
}

/// Every type, one to four columns, both variants: all that came out.
pub(crate) fn every_type(place: &Place, shapes: &[(usize, usize)]) -> Vec<f32> {
    let mut rng = Rng(5);
    let mut results = Vec::new();
    for (ty, _) in PACKED {
        for &(rows, cols) in shapes {
            let cols = cols.next_multiple_of(ty.block_len().max(64));
            let w = packed(&mut rng, ty, rows, cols);
            let x = rng.floats(MAX_COLS * cols);
            for variant in Variant::ALL {
                let mut all = Vec::new();
                for n in 1..=MAX_COLS {
                    let y = product(place, variant, ty, &w, &x[..n * cols], rows, cols);
                    check(ty, &w, &x[..n * cols], &y, rows, cols);
                    all.push(y);
                }
                // A column does not depend on those beside it.
                for y in &all[..MAX_COLS - 1] {
                    assert_eq!(y[..], all[MAX_COLS - 1][..y.len()], "{}", ty.name());
                }
                results.extend_from_slice(&all[MAX_COLS - 1]);
            }
        }
    }
    results
}
