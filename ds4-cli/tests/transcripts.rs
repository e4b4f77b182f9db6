//! What the program says, word by word: `tests/transcripts/*.trycmd`. `TRYCMD=overwrite` writes them anew.

use std::path::PathBuf;

#[test]
fn transcripts_are_what_is_said() {
    trycmd::TestCases::new()
        .env("NO_COLOR", "1")
        .register_bin("ds4", PathBuf::from(env!("CARGO_BIN_EXE_ds4")))
        .register_bin(
            "ds4-server",
            PathBuf::from(env!("CARGO_BIN_EXE_ds4-server")),
        )
        .register_bin("ds4-bench", PathBuf::from(env!("CARGO_BIN_EXE_ds4-bench")))
        .register_bin("ds4-eval", PathBuf::from(env!("CARGO_BIN_EXE_ds4-eval")))
        .register_bin("ds4-agent", PathBuf::from(env!("CARGO_BIN_EXE_ds4-agent")))
        .case("tests/transcripts/*.trycmd");
}
