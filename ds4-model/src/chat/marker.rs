//! The markers of the DeepSeek-V4 format. The bars are U+FF5C, the low lines U+2581.

use super::Task;

pub(super) const BOS: &str = "<｜begin▁of▁sentence｜>";
pub(super) const EOS: &str = "<｜end▁of▁sentence｜>";
pub(super) const USER: &str = "<｜User｜>";
pub(super) const ASSISTANT: &str = "<｜Assistant｜>";
pub(super) const THINK: &str = "<think>";
pub(super) const THINK_END: &str = "</think>";
pub(super) const DSML: &str = "｜DSML｜";
pub(super) const LATEST_REMINDER: &str = "<｜latest_reminder｜>";

/// Without these there is no chat.
pub(super) const REQUIRED: [&str; 7] = [BOS, EOS, USER, ASSISTANT, THINK, THINK_END, DSML];

/// The marker of a quick instruction.
pub(super) fn task(task: Task) -> &'static str {
    match task {
        Task::Action => "<｜action｜>",
        Task::Query => "<｜query｜>",
        Task::Authority => "<｜authority｜>",
        Task::Domain => "<｜domain｜>",
        Task::Title => "<｜title｜>",
        Task::ReadUrl => "<｜read_url｜>",
    }
}
