//! How many threads compute: `-t`, else the environment.

use anyhow::Result;

use crate::env::THREADS;
use crate::exit::Usage;

/// The flag. The variable is looked at only where threads are started and the flag does not say.
#[derive(clap::Args, Clone, Copy, Debug)]
pub(crate) struct Threads {
    /// Threads, at most 1024; 0 is one a core [default: the variable DS4_THREADS, else 0].
    #[arg(short, long, value_name = "N", value_parser = crate::args::threads)]
    threads: Option<usize>,
}

impl Threads {
    /// The number; 0 is one a core.
    ///
    /// # Errors
    /// [`Usage`] when the variable counts and is no number from 0 to 1024.
    pub(crate) fn count(self) -> Result<usize> {
        match (self.threads, std::env::var_os(THREADS)) {
            (Some(threads), _) => Ok(threads),
            (None, None) => Ok(0),
            (None, Some(text)) => {
                let text = text.to_string_lossy();
                let wrong = |why| Usage(format!("{THREADS} is `{text}`, {why}"));
                Ok(crate::args::threads(&text).map_err(wrong)?)
            }
        }
    }
}
