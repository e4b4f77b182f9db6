//! Developer commands of ds4.
fn main() {}
