//! The crate from outside: files of other writers, files of ours, broken files, split files.

mod cases;
mod corrupt;
mod exercise;
mod interop;
mod mutate;
mod mutation;
mod raw;
#[cfg(feature = "mmap")]
mod rewrite;
mod rocmfp2;
mod roundtrip;
#[cfg(feature = "mmap")]
mod split;
mod types;
