//! Command line programs of ds4.
