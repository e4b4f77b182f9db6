//! From an error to an exit code and a message.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Result;
use ds4_model::Error;
use ds4_model::compare::CompareError;
use ds4_model::convert::ConvertError;
use ds4_model::exec::ExecError;
use ds4_quant::recipe::RecipeError;
use ds4_quant::requant::RequantError;
use ds4_quant::{ImatrixError, QuantizeError};

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// It did what was asked.
    Ok = 0,
    /// It failed for a reason that none of the others names.
    Failed = 1,
    /// The command line makes no sense.
    Usage = 2,
    /// A model file is missing, damaged or not supported.
    ModelFile = 3,
    /// A device is missing or refuses.
    Device = 4,
    /// There is not enough memory.
    Memory = 5,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// A command line that makes no sense, beyond what its parser can tell.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Usage(pub(crate) String);

impl Exit {
    /// The code for an error: the first cause in the chain that one of the codes is for.
    pub fn of(error: &anyhow::Error) -> Self {
        error.chain().find_map(code_of).unwrap_or(Self::Failed)
    }
}

/// The code for one cause, if one of the codes is for it.
fn code_of(cause: &(dyn std::error::Error + 'static)) -> Option<Exit> {
    if let Some(error) = cause.downcast_ref::<ds4_model::Error>() {
        return match error {
            Error::Gguf(_)
            | Error::Config(_)
            | Error::Weights(_)
            | Error::Tokenizer(_)
            | Error::Chat(_) => Some(Exit::ModelFile),
            Error::Exec(ExecError::Memory { .. }) => Some(Exit::Memory),
            Error::Option { .. } => Some(Exit::Usage),
            _ => None,
        };
    }
    if let Some(error) = cause.downcast_ref() {
        return Some(of_gguf(error));
    }
    if let Some(error) = cause.downcast_ref() {
        return Some(of_quantize(error));
    }
    if let Some(error) = cause.downcast_ref() {
        return Some(of_requant(error));
    }
    if cause.is::<ImatrixError>() || cause.is::<ConvertError>() || is_mismatch(cause) {
        return Some(Exit::ModelFile);
    }
    if cause.is::<RecipeError>() || cause.is::<Usage>() {
        return Some(Exit::Usage);
    }
    let memory = |e: &&io::Error| e.kind() == io::ErrorKind::OutOfMemory;
    cause
        .downcast_ref::<io::Error>()
        .filter(memory)
        .map(|_| Exit::Memory)
}

/// Two models that cannot be compared.
fn is_mismatch(cause: &(dyn std::error::Error + 'static)) -> bool {
    matches!(
        cause.downcast_ref(),
        Some(
            CompareError::Codec { .. }
                | CompareError::Tokens { .. }
                | CompareError::Vocabulary { .. }
        )
    )
}

fn of_gguf(error: &ds4_gguf::Error) -> Exit {
    use ds4_gguf::Error;
    match error {
        Error::Exists { .. } | Error::Edit { .. } | Error::MissingKey { .. } => Exit::Usage,
        Error::Busy { .. } | Error::File { .. } | Error::Write(_) | Error::Stopped => Exit::Failed,
        _ => Exit::ModelFile,
    }
}

fn of_quantize(error: &QuantizeError) -> Exit {
    match error {
        QuantizeError::Gguf(error) => of_gguf(error),
        QuantizeError::Cancelled | QuantizeError::Write { .. } => Exit::Failed,
        _ => Exit::ModelFile,
    }
}

fn of_requant(error: &RequantError) -> Exit {
    match error {
        RequantError::Quantize(error) => of_quantize(error),
        RequantError::Busy { .. }
        | RequantError::Nothing
        | RequantError::Disk { .. }
        | RequantError::Cancelled => Exit::Failed,
        _ => Exit::ModelFile,
    }
}

/// What clap had to say: help and version are no failures.
pub(crate) fn usage(error: &clap::Error) -> Exit {
    // When the message cannot be written there is nowhere left to say so.
    let _ = error.print();
    if error.use_stderr() {
        Exit::Usage
    } else {
        Exit::Ok
    }
}

/// Print a failure with its causes. A reader that has gone away (`ds4 inspect … | head`) is no failure.
pub(crate) fn report(result: Result<()>) -> Exit {
    report_as(result.map(|()| Exit::Ok))
}

/// As [`report`], for a success that has more than one code.
pub(crate) fn report_as(result: Result<Exit>) -> Exit {
    let error = match result {
        Ok(exit) => return exit,
        Err(error) => error,
    };
    let closed = |cause: &(dyn std::error::Error + 'static)| {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
    };
    if error.chain().any(closed) {
        return Exit::Ok;
    }
    let _ = writeln!(io::stderr(), "error: {error:#}");
    Exit::of(&error)
}
