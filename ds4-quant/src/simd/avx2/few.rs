//! Few rows of activations: packed blocks are expanded in registers and used at once.
//!
//! A step takes as many neighbouring blocks of one matrix row as the format has accumulators, so that sums across
//! lanes and float chains are shared, and the packed bytes are read as one stream. What is left of a row of 256-weight
//! blocks is taken from four rows at once.

use std::arch::x86_64::*;

use bytemuck::Pod;

use super::reg::{
    fold8, half_sums8, halves4, lanes, load, load_codes, load_floats, load_four, load_words,
    prefetch, sums4, transpose4,
};
use super::{Codes, Correction, Parts, Scales, Small, Super};
use crate::Matrix;
use crate::accumulate::{SMALL_CHAINS, SUPER_CHAINS};
use crate::activations::QuantizedRow;

/// Products of bytes, summed in pairs.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn pairs(codes: Codes, q: __m256i, x: __m256i) -> __m256i {
    match codes {
        Codes::Unsigned => _mm256_maddubs_epi16(q, x),
        Codes::Signed => _mm256_maddubs_epi16(_mm256_abs_epi8(q), _mm256_sign_epi8(x, q)),
    }
}

/// A step's part of a row of activations: `C` codes, `C / 16` sums, `S` scales.
pub(in crate::simd) struct Step<'a, const C: usize, const G: usize, const S: usize> {
    pub(in crate::simd) codes: &'a [i8; C],
    pub(in crate::simd) sums: &'a [i16; G],
    scales: &'a [f32; S],
}

impl<const C: usize, const G: usize, const S: usize> Clone for Step<'_, C, G, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<const C: usize, const G: usize, const S: usize> Copy for Step<'_, C, G, S> {}

impl<'a, const C: usize, const G: usize, const S: usize> Step<'a, C, G, S> {
    #[inline(always)]
    fn new(x: QuantizedRow<'a>, i: usize) -> Self {
        const WHOLE: &str = "a whole step is left of the row";
        Self {
            codes: x.codes[C * i..].first_chunk().expect(WHOLE),
            sums: x.sums[G * i..].first_chunk().expect(WHOLE),
            scales: x.scales[S * i..].first_chunk().expect(WHOLE),
        }
    }
}

/// The end of a row that is less than a step, zeros behind it.
struct Tail<const C: usize, const G: usize, const S: usize> {
    codes: [i8; C],
    sums: [i16; G],
    scales: [f32; S],
    /// Sign bit set where there is a block.
    mask: [f32; S],
}

impl<const C: usize, const G: usize, const S: usize> Tail<C, G, S> {
    fn new(x: QuantizedRow<'_>) -> Self {
        let scales = padded(x.scales.as_chunks::<S>().1);
        let mut mask = [0.0; S];
        mask[..x.scales.len() % S].fill(-1.0);
        Self {
            codes: padded(x.codes.as_chunks::<C>().1),
            sums: padded(x.sums.as_chunks::<G>().1),
            scales,
            mask,
        }
    }

    fn step(&self) -> Step<'_, C, G, S> {
        Step {
            codes: &self.codes,
            sums: &self.sums,
            scales: &self.scales,
        }
    }
}

/// `from`, then zeros.
pub(super) fn padded<T: Pod, const N: usize>(from: &[T]) -> [T; N] {
    let mut to = [T::zeroed(); N];
    to[..from.len()].copy_from_slice(from);
    to
}

/// What one 256-weight block meets.
pub(in crate::simd) type SuperStep<'a> = Step<'a, 256, 16, 1>;

/// An instruction set's way from packed blocks to their terms.
pub(in crate::simd) trait Terms {
    /// The weight's side `t` of four blocks, each with its part of each row of activations.
    ///
    /// # Safety
    /// The processor has the instructions of the implementation.
    unsafe fn of<B: Super, const N: usize>(
        four: [&B; SUPER_CHAINS],
        x: &[[SuperStep<'_>; SUPER_CHAINS]; N],
    ) -> [__m128; N];
}

/// [`Terms`] in AVX2.
pub(in crate::simd) struct Avx2;

/// For each chunk of 32 weights, which two scales of [`Parts::scale`] belong to it: a byte pattern for a shuffle.
const SPREAD: [[u8; 32]; 8] = {
    let mut spread = [[0; 32]; 8];
    let mut i = 0;
    while i < 8 * 32 {
        spread[i / 32][i % 32] = (2 * (i / 32) + i % 2) as u8;
        i += 1;
    }
    spread
};

/// Any number of rows of activations with a matrix of 256-weight blocks, four at a time.
///
/// * `x`: gives row t · `y`: `[tokens]` slices of `[rows]`
#[target_feature(enable = "avx2,fma,f16c")]
pub(in crate::simd) fn super_<'x, B: Super, T: Terms>(
    w: Matrix<'_>,
    x: impl Fn(usize) -> QuantizedRow<'x>,
    y: &mut [&mut [f32]],
) {
    for (i, y) in y.chunks_mut(4).enumerate() {
        let x = |t| x(4 * i + t);
        match y.len() {
            1 => super_rows::<B, T, 1>(w, [x(0)], y),
            2 => super_rows::<B, T, 2>(w, [x(0), x(1)], y),
            3 => super_rows::<B, T, 4>(w, [x(0), x(1), x(2), x(2)], y),
            _ => super_rows::<B, T, 4>(w, [x(0), x(1), x(2), x(3)], y),
        }
    }
}

/// `N` rows of activations with a matrix of 256-weight blocks, four of its rows at a time.
///
/// * `x`: `N` rows · `y`: at most `N` slices of `[rows]`
#[target_feature(enable = "avx2,fma,f16c")]
fn super_rows<B: Super, T: Terms, const N: usize>(
    w: Matrix<'_>,
    x: [QuantizedRow<'_>; N],
    y: &mut [&mut [f32]],
) {
    let blocks: &[B] = bytemuck::cast_slice(w.bytes());
    let n = w.cols() / 256;
    let Some(last) = n.checked_sub(1) else {
        return y.iter_mut().for_each(|y| y.fill(0.0));
    };
    // Steps to be overwritten: a closure that made each array anew would be a call.
    let ends = x.map(|x| [SuperStep::new(x, last); 4]);
    for first in (0..w.rows()).step_by(4) {
        let have = (w.rows() - first).min(4);
        let row = |r: usize| &blocks[(first + r.min(have - 1)) * n..][..n];
        // Lane = accumulator: four neighbouring blocks of one row.
        let mut chains = [[_mm_setzero_ps(); 4]; N];
        for r in 0..have {
            let mut acc = [_mm_setzero_ps(); N];
            for (i, four) in row(r).as_chunks::<SUPER_CHAINS>().0.iter().enumerate() {
                prefetch(four);
                let mut steps = ends;
                for c in 0..N {
                    for (k, step) in steps[c].iter_mut().enumerate() {
                        *step = SuperStep::new(x[c], SUPER_CHAINS * i + k);
                    }
                }
                // SAFETY: the instruction set was chosen for this processor.
                let t = unsafe { T::of(four.each_ref(), &steps) };
                for c in 0..N {
                    let scales = &x[c].scales.as_chunks().0[i];
                    acc[c] = _mm_fmadd_ps(load_four(scales), t[c], acc[c]);
                }
            }
            for (chains, acc) in chains.iter_mut().zip(acc) {
                chains[r] = acc;
            }
        }
        // Lane = row: what is left of the four rows.
        for chains in &mut chains {
            *chains = transpose4(*chains);
        }
        for b in n - n % SUPER_CHAINS..n {
            let mut steps = ends;
            for c in 0..N {
                steps[c] = [SuperStep::new(x[c], b); 4];
            }
            let four = [&row(0)[b], &row(1)[b], &row(2)[b], &row(3)[b]];
            // SAFETY: as above.
            let t = unsafe { T::of(four, &steps) };
            for c in 0..N {
                let chain = &mut chains[c][b % SUPER_CHAINS];
                *chain = _mm_fmadd_ps(_mm_set1_ps(x[c].scales[b]), t[c], *chain);
            }
        }
        for (chains, y) in chains.into_iter().zip(y.iter_mut()) {
            let sums: [f32; 4] = lanes(_mm_add_ps(
                _mm_add_ps(chains[0], chains[2]),
                _mm_add_ps(chains[1], chains[3]),
            ));
            y[first..][..have].copy_from_slice(&sums[..have]);
        }
    }
}

impl Terms for Avx2 {
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn of<B: Super, const N: usize>(
        four: [&B; SUPER_CHAINS],
        x: &[[SuperStep<'_>; SUPER_CHAINS]; N],
    ) -> [__m128; N] {
        let mut sums = Sums::new();
        // Known patterns would be replaced by two cheaper-looking shuffles each.
        let spread = std::hint::black_box(&SPREAD);
        for (k, block) in four.into_iter().enumerate() {
            // SAFETY: this function is compiled for, and called with, the same features.
            let parts = unsafe { block.parts() };
            sums.put::<B>(k, products(block, &parts, x, k, spread), &parts, x);
        }
        sums.terms(four)
    }
}

/// Sums over each of four blocks with each of `N` rows of activations, spread over eight lanes.
pub(in crate::simd) struct Sums<const N: usize> {
    products: [[__m256i; SUPER_CHAINS]; N],
    minima: [[__m256i; SUPER_CHAINS]; N],
}

impl<const N: usize> Sums<N> {
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::simd) fn new() -> Self {
        Self {
            products: [[_mm256_setzero_si256(); SUPER_CHAINS]; N],
            minima: [[_mm256_setzero_si256(); SUPER_CHAINS]; N],
        }
    }

    /// Block number `k`: its products, and what the format takes off them.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::simd) fn put<B: Super>(
        &mut self,
        k: usize,
        products: [__m256i; N],
        parts: &Parts,
        x: &[[SuperStep<'_>; SUPER_CHAINS]; N],
    ) {
        for c in 0..N {
            self.products[c][k] = products[c];
            if B::CORRECTION != Correction::None {
                let offset = _mm256_madd_epi16(load_words(x[c][k].sums), parts.min);
                match B::CORRECTION {
                    Correction::Offset => {
                        self.products[c][k] = _mm256_sub_epi32(products[c], offset);
                    }
                    _ => self.minima[c][k] = offset,
                }
            }
        }
    }

    /// The weight's side `t` of the four blocks.
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    pub(in crate::simd) fn terms<B: Super>(self, four: [&B; SUPER_CHAINS]) -> [__m128; N] {
        let [a, b, c, d] = four;
        let dmin = halves4([a.dmin(), b.dmin(), c.dmin(), d.dmin()]);
        let d = _mm_mul_ps(
            halves4([a.d(), b.d(), c.d(), d.d()]),
            _mm_set1_ps(B::FACTOR),
        );
        let mut t = [_mm_setzero_ps(); N];
        for ((t, products), minima) in t.iter_mut().zip(self.products).zip(self.minima) {
            *t = _mm_mul_ps(d, _mm_cvtepi32_ps(sums4(products)));
            if B::CORRECTION == Correction::Minimum {
                *t = _mm_fnmadd_ps(dmin, _mm_cvtepi32_ps(sums4(minima)), *t);
            }
        }
        t
    }
}

/// `Σ scale · code · x` over the k-th of four blocks, spread over the lanes.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn products<B: Super, const N: usize>(
    block: &B,
    parts: &Parts,
    x: &[[SuperStep<'_>; SUPER_CHAINS]; N],
    k: usize,
    spread: &[[u8; 32]; 8],
) -> [__m256i; N] {
    let mut sum = [_mm256_setzero_si256(); N];
    // SAFETY: this function is compiled for, and called with, the same features.
    let open = unsafe { block.open() };
    macro_rules! chunks {
        ($($c:literal)*) => {$(
            // SAFETY: as above.
            let q = unsafe { block.codes::<$c>(&open) };
            let scale = _mm256_shuffle_epi8(parts.scale, load(&spread[$c]));
            for (sum, x) in sum.iter_mut().zip(x) {
                let x = load_codes(&x[k].codes.as_chunks().0[$c]);
                let pairs = pairs(B::CODES, q, x);
                *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(pairs, scale));
            }
        )*};
    }
    chunks!(0 1 2 3 4 5 6 7);
    sum
}

/// Steps over 32-weight blocks.
type SmallStep<'a> = Step<'a, { 32 * SMALL_CHAINS }, { 2 * SMALL_CHAINS }, SMALL_CHAINS>;
type SmallTail = Tail<{ 32 * SMALL_CHAINS }, { 2 * SMALL_CHAINS }, SMALL_CHAINS>;

/// Any number of rows of activations with a matrix of 32-weight blocks, four at a time.
///
/// * `x`: gives row t · `y`: `[tokens]` slices of `[rows]`
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn small<'x, B: Small>(
    w: Matrix<'_>,
    x: impl Fn(usize) -> QuantizedRow<'x>,
    y: &mut [&mut [f32]],
) {
    for (i, y) in y.chunks_mut(4).enumerate() {
        let x = |t| x(4 * i + t);
        match y.len() {
            1 => small_rows::<B, 1>(w, [x(0)], y),
            2 => small_rows::<B, 2>(w, [x(0), x(1)], y),
            3 => small_rows::<B, 4>(w, [x(0), x(1), x(2), x(2)], y),
            _ => small_rows::<B, 4>(w, [x(0), x(1), x(2), x(3)], y),
        }
    }
}

/// `N` rows of activations with a matrix of 32-weight blocks.
///
/// * `x`: `N` rows · `y`: at most `N` slices of `[rows]`
#[target_feature(enable = "avx2,fma,f16c")]
fn small_rows<B: Small, const N: usize>(
    w: Matrix<'_>,
    x: [QuantizedRow<'_>; N],
    y: &mut [&mut [f32]],
) {
    let blocks: &[B] = bytemuck::cast_slice(w.bytes());
    let (n, per_step) = (w.cols() / B::LEN, 32 * SMALL_CHAINS / B::LEN);
    let tails = x.map(SmallTail::new);
    for r in 0..w.rows() {
        let steps = blocks[r * n..][..n].chunks_exact(per_step);
        let rest = steps.remainder();
        let mut acc = [_mm256_setzero_ps(); N];
        for (i, group) in steps.enumerate() {
            let x = x.map(|x| SmallStep::new(x, i));
            let t = small_terms(group, x);
            for c in 0..N {
                acc[c] = _mm256_fmadd_ps(load_floats(x[c].scales), t[c], acc[c]);
            }
        }
        if !rest.is_empty() {
            let x = tails.each_ref().map(Tail::step);
            let group: [B; SMALL_CHAINS] = padded(rest);
            let t = small_terms(&group[..per_step], x);
            for c in 0..N {
                let next = _mm256_fmadd_ps(load_floats(x[c].scales), t[c], acc[c]);
                acc[c] = _mm256_blendv_ps(acc[c], next, load_floats(&tails[c].mask));
            }
        }
        for (acc, y) in acc.into_iter().zip(y.iter_mut()) {
            y[r] = fold8(acc);
        }
    }
}

/// The weight's side `t` of eight blocks, for each row of activations.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn small_terms<B: Small, const N: usize>(group: &[B], x: [SmallStep<'_>; N]) -> [__m256; N] {
    let ones = _mm256_set1_epi16(1);
    let mut v = [[_mm256_setzero_si256(); SMALL_CHAINS]; N];
    prefetch(group);
    macro_rules! chunks {
        ($($k:literal)*) => {$(
            // SAFETY: this function is compiled for, and called with, the same features.
            let q = unsafe { B::codes(group, $k) };
            for c in 0..N {
                let x = load_codes(&x[c].codes.as_chunks().0[$k]);
                v[c][$k] = _mm256_madd_epi16(pairs(B::CODES, q, x), ones);
            }
        )*};
    }
    chunks!(0 1 2 3 4 5 6 7);
    // SAFETY: as above.
    let scales = unsafe { B::scales(group) };
    let mut t = [_mm256_setzero_ps(); N];
    for c in 0..N {
        let [low, high] = half_sums8(v[c]);
        t[c] = scales.term(low, high, load_words(x[c].sums), B::OFFSET);
    }
    t
}

impl Scales {
    /// `t` from the sums of products of each half block, the sums of activations of each, and the codes' offset.
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    pub(super) fn term(self, low: __m256i, high: __m256i, sums: __m256i, offset: i16) -> __m256 {
        match self {
            Self::One(d) => {
                let mut all = _mm256_add_epi32(low, high);
                if offset != 0 {
                    let offset = _mm256_madd_epi16(sums, _mm256_set1_epi16(offset));
                    all = _mm256_sub_epi32(all, offset);
                }
                _mm256_mul_ps(d, _mm256_cvtepi32_ps(all))
            }
            Self::Affine(d, subtracted) => {
                let all = _mm256_cvtepi32_ps(_mm256_add_epi32(low, high));
                let sums = _mm256_madd_epi16(sums, _mm256_set1_epi16(1));
                let term = _mm256_mul_ps(d, all);
                _mm256_fnmadd_ps(subtracted, _mm256_cvtepi32_ps(sums), term)
            }
            Self::Halves(d0, d1) => {
                let even = _mm256_srai_epi32::<16>(_mm256_slli_epi32::<16>(sums));
                let odd = _mm256_srai_epi32::<16>(sums);
                let offset = _mm256_set1_epi32(i32::from(offset));
                let low = _mm256_sub_epi32(low, _mm256_mullo_epi32(even, offset));
                let high = _mm256_sub_epi32(high, _mm256_mullo_epi32(odd, offset));
                let first = _mm256_mul_ps(d0, _mm256_cvtepi32_ps(low));
                _mm256_fmadd_ps(d1, _mm256_cvtepi32_ps(high), first)
            }
        }
    }
}
