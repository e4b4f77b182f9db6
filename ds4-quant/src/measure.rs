//! `Difference`: how far decoded weights are from those they stand for.

use std::fmt;

use crate::Error;

/// Sums over pairs of weights, from which the usual measures follow. Rows can be added in any number of pieces.
///
/// A pair without a difference, because one of the two is NaN or both are the same infinity, makes every measure that
/// it enters NaN.
///
/// ```
/// use ds4_quant::Difference;
///
/// let mut difference = Difference::default();
/// difference.add(&[1.0, -2.0, 2.0, 0.0], &[1.0, -2.0, 1.0, 0.0], None)?;
/// assert_eq!(difference.rmse(), 0.5);
/// assert_eq!(difference.max_error(), 1.0);
/// # Ok::<(), ds4_quant::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Difference {
    count: u64,
    squares: f64,
    weight: f64,
    weighted_squares: f64,
    max: f32,
    energy: [f64; 2],
    product: f64,
}

impl Difference {
    /// Add weights `x` and what they became, `y`; `importance` is 1 where not given.
    ///
    /// # Errors
    /// [`Error::Length`] when the lengths differ; nothing is added then.
    pub fn add(&mut self, x: &[f32], y: &[f32], importance: Option<&[f32]>) -> Result<(), Error> {
        for (what, got) in [
            ("decoded weights", y.len()),
            ("importance", importance.map_or(x.len(), <[f32]>::len)),
        ] {
            if got != x.len() {
                return Err(Error::Length {
                    what,
                    got,
                    want: x.len(),
                });
            }
        }
        self.count += x.len() as u64;
        for (i, (&x, &y)) in x.iter().zip(y).enumerate() {
            let a = importance.map_or(1.0, |a| f64::from(a[i]));
            let (x, y) = (f64::from(x), f64::from(y));
            let square = (x - y) * (x - y);
            self.squares += square;
            self.weight += a;
            self.weighted_squares += a * square;
            self.max = larger(self.max, (x - y).abs() as f32);
            self.energy[0] += x * x;
            self.energy[1] += y * y;
            self.product += x * y;
        }
        Ok(())
    }

    /// Add what another one has seen.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.squares += other.squares;
        self.weight += other.weight;
        self.weighted_squares += other.weighted_squares;
        self.max = larger(self.max, other.max);
        self.energy[0] += other.energy[0];
        self.energy[1] += other.energy[1];
        self.product += other.product;
    }

    /// How many weights were compared.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// `sqrt(mean (x − y)²)`; 0 of nothing.
    pub fn rmse(&self) -> f64 {
        root(self.squares, self.count as f64)
    }

    /// `sqrt(Σ a·(x − y)² / Σ a)` with importance `a`; 0 of nothing.
    pub fn weighted_rmse(&self) -> f64 {
        root(self.weighted_squares, self.weight)
    }

    /// [`Self::rmse`] as a share of `sqrt(mean x²)`; 0 where all `x` are 0 and nothing was lost.
    pub fn relative_rmse(&self) -> f64 {
        root(self.squares, self.energy[0])
    }

    /// Largest `|x − y|`.
    pub fn max_error(&self) -> f32 {
        self.max
    }

    /// `Σ xy / (|x| |y|)`; 1 where both are all 0, 0 where one is.
    pub fn cosine(&self) -> f64 {
        match self.energy {
            _ if self.product.is_nan() => f64::NAN,
            [0.0, 0.0] => 1.0,
            [0.0, _] | [_, 0.0] => 0.0,
            [x, y] => self.product / (x.sqrt() * y.sqrt()),
        }
    }
}

/// The measures as people read them, on one line.
impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "rmse {:.3e}  relative {:.4}  cosine {:.6}  max {:.3e}",
            self.rmse(),
            self.relative_rmse(),
            self.cosine(),
            self.max_error()
        )
    }
}

/// The larger of two errors; NaN when one is, unlike [`f32::max`].
fn larger(a: f32, b: f32) -> f32 {
    if a.is_nan() || a > b { a } else { b }
}

fn root(sum: f64, of: f64) -> f64 {
    match (sum, of) {
        (0.0, _) => 0.0,
        _ => (sum / of).sqrt(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_and_merged_parts_measure_like_the_whole() {
        let x: Vec<f32> = (0..100).map(|i| (i as f32).sin()).collect();
        let y: Vec<f32> = x.iter().map(|x| (x * 8.0).round() / 8.0).collect();
        let a: Vec<f32> = (0..100).map(|i| 1.0 + (i % 7) as f32).collect();
        let mut whole = Difference::default();
        whole.add(&x, &y, Some(&a)).unwrap();
        let (mut left, mut right) = (Difference::default(), Difference::default());
        left.add(&x[..37], &y[..37], Some(&a[..37])).unwrap();
        right.add(&x[37..], &y[37..], Some(&a[37..])).unwrap();
        left.merge(&right);
        // f64 sums of 100 terms in another order.
        assert!((left.weighted_rmse() - whole.weighted_rmse()).abs() < 1e-14);
        assert!((left.cosine() - whole.cosine()).abs() < 1e-14);
        assert_eq!((left.max_error(), left.count()), (whole.max_error(), 100));
        assert!(whole.max_error() <= 1.0 / 16.0, "half a step");
    }

    #[test]
    fn what_has_no_difference_is_never_none() {
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        for (x, y) in [(nan, 1.0), (1.0, nan), (nan, nan), (inf, inf)] {
            for at in 0..3 {
                let mut pairs = [(1.0, 1.0), (2.0, 2.5), (3.0, 3.0)];
                pairs[at] = (x, y);
                let (a, b): (Vec<f32>, Vec<f32>) = pairs.into_iter().unzip();
                let mut whole = Difference::default();
                whole.add(&a, &b, None).unwrap();
                let mut merged = Difference::default();
                merged.add(&[1.0], &[0.5], None).unwrap();
                let mut before = whole;
                before.merge(&merged);
                merged.merge(&whole);
                for d in [whole, merged, before] {
                    let measures = [
                        d.rmse(),
                        d.weighted_rmse(),
                        d.relative_rmse(),
                        d.cosine(),
                        f64::from(d.max_error()),
                    ];
                    assert!(measures.iter().all(|m| m.is_nan()), "{x}, {y}: {d}");
                }
                assert_eq!(
                    whole.to_string(),
                    "rmse NaN  relative NaN  cosine NaN  max NaN"
                );
            }
        }
        let mut d = Difference::default();
        d.add(&[nan, 1.0], &[0.0, 0.0], None).unwrap();
        assert!(d.cosine().is_nan());
        let mut d = Difference::default();
        d.add(&[1.0], &[inf], None).unwrap();
        assert_eq!((d.rmse(), d.max_error()), (f64::INFINITY, inf));
    }

    #[test]
    fn nothing_and_zeros_have_measures_too() {
        let mut d = Difference::default();
        assert_eq!((d.rmse(), d.weighted_rmse(), d.cosine()), (0.0, 0.0, 1.0));
        d.add(&[0.0; 4], &[0.0; 4], None).unwrap();
        assert_eq!((d.rmse(), d.relative_rmse(), d.cosine()), (0.0, 0.0, 1.0));
        d.add(&[0.0; 4], &[1.0; 4], None).unwrap();
        assert_eq!((d.cosine(), d.max_error()), (0.0, 1.0));
        let found = d.add(&[0.0; 4], &[0.0; 3], None);
        assert_eq!(
            found,
            Err(Error::Length {
                what: "decoded weights",
                got: 3,
                want: 4
            })
        );
    }
}
