//! A bar with bytes and time left.

use std::ops::ControlFlow;

use indicatif::{ProgressBar, ProgressStyle};

use crate::interrupt;

/// A bar on standard error, hidden where that is no terminal. Made once for each stage of a work.
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Show `what` is being done in bytes, and hear Ctrl-C and SIGTERM from now on.
    pub(crate) fn new(what: &'static str) -> Self {
        Self::with(
            what,
            "{prefix} {bar:20} {bytes}/{total_bytes} {bytes_per_sec} {eta} left  {wide_msg}",
        )
    }

    /// As [`Self::new`], counting something else than bytes.
    pub(crate) fn counting(what: &'static str) -> Self {
        Self::with(
            what,
            "{prefix} {bar:20} {human_pos}/{human_len} {eta} left  {wide_msg}",
        )
    }

    fn with(what: &'static str, template: &str) -> Self {
        interrupt::hear_termination();
        let bar = ProgressBar::new(0).with_prefix(what);
        let style = ProgressStyle::with_template(template);
        if let Ok(style) = style {
            bar.set_style(style);
        }
        Self { bar }
    }

    /// Show how far it is; whether to go on.
    pub(crate) fn at(&self, tensor: &str, done: u64, total: u64) -> ControlFlow<()> {
        self.bar.set_length(total);
        self.bar.set_position(done);
        if self.bar.message() != tensor {
            self.bar.set_message(tensor.to_owned());
        }
        interrupt::flow()
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
