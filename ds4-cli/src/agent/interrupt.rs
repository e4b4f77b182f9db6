//! Ctrl-C: the first one stops what is being done, a second one before that has happened ends the program.

use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);

/// Hear Ctrl-C from now on.
pub(super) fn listen() {
    // Without a handler Ctrl-C ends the program at once, which every file survives.
    let _ = ctrlc::set_handler(|| {
        if ASKED.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    });
}

/// Whether somebody wants to stop.
pub(super) fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}

/// Whether somebody wanted to stop; from now on nobody does.
pub(super) fn take() -> bool {
    ASKED.swap(false, Ordering::Relaxed)
}
