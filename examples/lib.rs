//! Runnable examples of ds4.
