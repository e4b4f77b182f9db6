//! Ctrl-C, and the end that others ask for (SIGTERM), as requests to stop.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Once};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::exit::Exit;

/// Whether a stop was asked for and not yet heeded.
static STOP: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);
/// Whether SIGTERM ends the program at once again.
static AT_PROMPT: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Hear Ctrl-C from now on. A second one, before the first was heeded, ends the program at once: every file survives that.
pub(crate) fn hear() {
    static HANDLER: Once = Once::new();
    HANDLER.call_once(|| hear_signal(SIGINT));
}

/// Hear SIGTERM too, in the same way: for work that has to take away what it has begun.
pub(crate) fn hear_termination() {
    static HANDLER: Once = Once::new();
    HANDLER.call_once(|| {
        // Before the flag, which nobody looks at then.
        let _ = flag::register_conditional_default(SIGTERM, Arc::clone(&AT_PROMPT));
        hear_signal(SIGTERM);
    });
    hear();
}

/// From now on a person is waited for, who may not answer: SIGTERM ends the program at once.
pub(crate) fn at_prompt() {
    AT_PROMPT.store(true, Ordering::Relaxed);
}

fn hear_signal(signal: i32) {
    // Without a handler a signal ends the program at once. The first of them sees what the second has set before.
    let _ = flag::register_conditional_shutdown(signal, Exit::Failed as i32, Arc::clone(&STOP));
    let _ = flag::register(signal, Arc::clone(&STOP));
}

/// Whether it was pressed.
pub(crate) fn is_set() -> bool {
    STOP.load(Ordering::Relaxed)
}

/// Whether it was pressed; from now on it is not.
pub(crate) fn take() -> bool {
    STOP.swap(false, Ordering::Relaxed)
}

/// It was heeded.
pub(crate) fn clear() {
    STOP.store(false, Ordering::Relaxed);
}

/// Whether to go on.
pub(crate) fn flow() -> ControlFlow<()> {
    if is_set() {
        ControlFlow::Break(())
    } else {
        ControlFlow::Continue(())
    }
}

/// Press it.
#[cfg(test)]
pub(crate) fn press() {
    STOP.store(true, Ordering::Relaxed);
}
