//! Activations as integer products take them.
#![expect(unsafe_code, reason = "launches kernels")]

use ds4_hip::{Stream, View, ViewMut};

use super::error::{extent, same};
use super::{Error, Kernels};

/// Bytes of `rows` rows of `cols` activations: a signed byte each, f32 a scale for each 32, i16 a sum for each 16.
pub const fn bytes(rows: usize, cols: usize) -> usize {
    rows * (cols + cols / 4)
}

/// Bring rows into the form of [`linear`](super::linear): `code = round(x · 127/max)`, to even at a half, `scale = max/127`,
/// with the maximum of each 32.
///
/// * `x`: `[rows, cols]` · `y`: [`bytes`]`(rows, cols)` · `cols`: a multiple of 64
///
/// # Errors
/// [`Error::Shape`] for columns that are no multiple of 64, [`Error::Length`] where lengths disagree, [`Error::Hip`].
pub fn quantize(
    k: &Kernels,
    s: &Stream,
    x: &View<'_, f32>,
    cols: usize,
    y: &mut ViewMut<'_, u8>,
) -> Result<(), Error> {
    const NAME: &str = "quantize_activations";
    if cols == 0 || !cols.is_multiple_of(64) {
        return Err(Error::Shape {
            kernel: NAME,
            what: "cols",
            found: cols,
            must: "a multiple of 64",
        });
    }
    let rows = x.len() / cols;
    same(NAME, "x", x.len(), rows * cols)?;
    same(NAME, "y", y.len(), bytes(rows, cols))?;
    let groups = extent(NAME, "rows · cols / 32", rows * cols / 32)?;
    let launch = k
        .quantize_activations
        .launch(groups.div_ceil(4), 128)
        .arg(x)
        .arg_mut(y)
        .scalar(extent(NAME, "rows", rows)?)
        .scalar(extent(NAME, "cols", cols)?);
    // SAFETY: arguments and lengths are those stated above the kernel, checked here.
    Ok(unsafe { launch.run(s) }?)
}
