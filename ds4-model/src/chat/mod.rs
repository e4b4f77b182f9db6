//! Messages to prompt segments, completions to messages.
