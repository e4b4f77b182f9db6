//! The whole way on a real file.

use std::ops::ControlFlow;
use std::path::Path;

use ds4_gguf::{Gguf, is_unfinished};

use super::{FileStorage, Requant, RequantError, magic, resume};
use crate::quantize::{Importance, Progress, QuantizeError, Report};
use crate::recipe::Recipe;
use crate::{NonFinite, Pool};

/// [`Requant::new`], [`Requant::check_weights`] and [`Requant::run`] on the file at `path`.
///
/// # Errors
/// As those; [`RequantError::Open`] and [`RequantError::Busy`].
pub fn requant_file(
    path: &Path,
    recipe: &Recipe,
    importance: Option<Importance<'_>>,
    nonfinite: NonFinite,
    pool: &Pool,
    mut on: impl FnMut(Stage, Progress<'_>) -> ControlFlow<()>,
) -> Result<(Requant, Report), RequantError> {
    let mut storage = FileStorage::open(path)?;
    if is_unfinished(magic(&mut storage)?) {
        return Err(RequantError::Unfinished);
    }
    let source = open(storage.path())?;
    let requant = Requant::new(&source, recipe, importance, nonfinite)?;
    requant.check_weights(&source, pool, |progress| on(Stage::Check, progress))?;
    // The mapping must not see what follows.
    drop(source);
    let report = requant.run(&mut storage, pool, |progress| on(Stage::Write, progress))?;
    Ok((requant, report))
}

/// [`resume`] on the file at `path`.
///
/// # Errors
/// As that; [`RequantError::Open`] and [`RequantError::Busy`].
pub fn resume_file(
    path: &Path,
    pool: &Pool,
    mut on: impl FnMut(Stage, Progress<'_>) -> ControlFlow<()>,
) -> Result<Report, RequantError> {
    let mut storage = FileStorage::open(path)?;
    resume(&mut storage, pool, |progress| on(Stage::Write, progress))
}

/// What is being done to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Its weights are looked at; nothing is written.
    Check,
    /// It is being rewritten.
    Write,
}

fn open(path: &Path) -> Result<Gguf, RequantError> {
    Ok(Gguf::open(path).map_err(QuantizeError::from)?)
}
