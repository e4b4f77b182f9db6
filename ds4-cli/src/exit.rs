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
    if let Some(error) = cause.downcast_ref() {
        return of_model(error);
    }
    if let Some(error) = cause.downcast_ref() {
        return of_compare(error);
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
    if cause.is::<ImatrixError>() || cause.is::<ConvertError>() {
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

fn of_model(error: &Error) -> Option<Exit> {
    match error {
        Error::Gguf(_)
        | Error::Config(_)
        | Error::Weights(_)
        | Error::Tokenizer(_)
        | Error::Chat(_)
        | Error::Importance { .. } => Some(Exit::ModelFile),
        Error::Exec(ExecError::Memory { .. }) => Some(Exit::Memory),
        Error::Option { .. } => Some(Exit::Usage),
        _ => None,
    }
}

fn of_compare(error: &CompareError) -> Option<Exit> {
    match error {
        // Transparent: it is no cause of its own in the chain.
        CompareError::Model(error) => of_model(error),
        CompareError::Codec { .. }
        | CompareError::Tokens { .. }
        | CompareError::Vocabulary { .. }
        | CompareError::Logit { .. } => Some(Exit::ModelFile),
        _ => None,
    }
}

fn of_gguf(error: &ds4_gguf::Error) -> Exit {
    use ds4_gguf::Error;
    match error {
        Error::Exists { .. }
        | Error::NotAFile { .. }
        | Error::Edit { .. }
        | Error::Parts { .. }
        | Error::MissingKey { .. } => Exit::Usage,
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
        RequantError::Open { source, .. } => match source.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Exit::Failed,
            _ => Exit::ModelFile,
        },
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_the_code_of_what_it_hands_on() {
        let memory = || ExecError::Memory {
            what: "scratch",
            bytes: 1,
        };
        let option = || Error::Option {
            option: "chunk",
            found: 1,
            expected: "at least 2 tokens",
        };
        let gguf = || ds4_gguf::Error::MissingShards {
            count: 2,
            missing: Vec::new(),
        };
        for (error, code) in [
            (Error::from(memory()), Exit::Memory),
            (option(), Exit::Usage),
            (gguf().into(), Exit::ModelFile),
            (Error::NoLogits, Exit::Failed),
        ] {
            let shown = error.to_string();
            let handed_on = anyhow::Error::new(CompareError::Model(error)).context("a.gguf");
            assert_eq!(Exit::of(&handed_on), code, "{shown}");
        }
        let requant = RequantError::from(QuantizeError::from(gguf()));
        assert_eq!(Exit::of(&requant.into()), Exit::ModelFile);
        for (kind, code) in [
            (io::ErrorKind::NotFound, Exit::ModelFile),
            (io::ErrorKind::ReadOnlyFilesystem, Exit::Failed),
            (io::ErrorKind::PermissionDenied, Exit::Failed),
        ] {
            let open = RequantError::Open {
                path: "a.gguf".into(),
                source: kind.into(),
            };
            assert_eq!(Exit::of(&open.into()), code, "{kind}");
        }
    }
}
