//! A bar with bytes and time left, and Ctrl-C as a request to stop.

use std::ops::ControlFlow;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use indicatif::{ProgressBar, ProgressStyle};

/// Set by Ctrl-C.
static STOP: AtomicBool = AtomicBool::new(false);

/// A bar on standard error, hidden where that is no terminal. Made once for each stage of a work.
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Show `what` is being done, and hear Ctrl-C from now on.
    pub(crate) fn new(what: &'static str) -> Self {
        static HANDLER: Once = Once::new();
        HANDLER.call_once(|| {
            // Without a handler Ctrl-C ends the program at once, which every file survives.
            let _ = ctrlc::set_handler(|| STOP.store(true, Ordering::Relaxed));
        });
        let bar = ProgressBar::new(0).with_prefix(what);
        let style = ProgressStyle::with_template(
            "{prefix} {bar:20} {bytes}/{total_bytes} {bytes_per_sec} {eta} left  {wide_msg}",
        );
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
        if STOP.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
