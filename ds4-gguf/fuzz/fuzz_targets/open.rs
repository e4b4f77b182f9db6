//! Any bytes at all: opened, read, written again and read again, or refused with an error.
#![no_main]

#[path = "../../tests/gguf/exercise.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let exercise::Outcome::Refused(error) = exercise::exercise(bytes) {
        std::hint::black_box(error);
    }
});
