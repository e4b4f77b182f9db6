//! What the program says, word by word: `tests/transcripts/*.trycmd`. `TRYCMD=overwrite` writes them anew.

#[test]
fn transcripts_are_what_is_said() {
    trycmd::TestCases::new()
        .env("NO_COLOR", "1")
        .register_bin("ds4", std::path::PathBuf::from(env!("CARGO_BIN_EXE_ds4")))
        .case("tests/transcripts/*.trycmd");
}
