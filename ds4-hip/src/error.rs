//! What can go wrong between this program and the HIP runtime.

use std::fmt;
use std::path::PathBuf;

use crate::Version;

/// What can go wrong between this program and the HIP runtime.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No library of the right name was found anywhere; [`Search`](crate::Search) says where to look. Ordinary on machines
    /// without an AMD GPU.
    #[error(
        "no HIP runtime found (tried {}); install ROCm 6 or newer, or name its library folder",
        list(tried)
    )]
    NotInstalled {
        /// What was tried, in order.
        tried: Vec<Attempt>,
    },
    /// A runtime is there, older than this crate understands.
    #[error("the HIP runtime {} is {}, at least {need} is needed; update ROCm", path.display(), found_version(*found))]
    TooOld {
        /// The library as it was opened.
        path: PathBuf,
        /// Its version, when it can say.
        found: Option<Version>,
        /// The oldest major version that is understood.
        need: u32,
    },
    /// A library is there but the system cannot load it, most often because something it needs is missing.
    #[error("the HIP runtime {} cannot be loaded", path.display())]
    Load {
        /// The library.
        path: PathBuf,
        /// The loader's own words.
        #[source]
        source: libloading::Error,
    },
    /// The library lacks a function.
    #[error("the HIP runtime {} has no function `{symbol}`", path.display())]
    NoSymbol {
        /// The library.
        path: PathBuf,
        /// The function.
        symbol: &'static str,
        /// The loader's own words.
        #[source]
        source: libloading::Error,
    },
    /// A call failed.
    #[error("{call} failed with HIP error {code}")]
    Call {
        /// The function.
        call: &'static str,
        /// `hipError_t` as a number.
        code: i32,
    },
    /// A call succeeded and returned a value that has no meaning.
    #[error("{call} returned {value}, expected a number that is not negative")]
    Value {
        /// The function.
        call: &'static str,
        /// What it returned.
        value: i32,
    },
}

/// One library that was looked for and not found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// A full path, or a bare name for the system's loader to find.
    pub path: PathBuf,
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.display().fmt(f)
    }
}

fn list(tried: &[Attempt]) -> String {
    tried
        .iter()
        .map(Attempt::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

fn found_version(found: Option<Version>) -> String {
    found.map_or_else(|| "of version 5".to_owned(), |v| v.to_string())
}
