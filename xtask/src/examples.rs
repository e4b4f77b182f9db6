//! How continuous integration runs each example: small arguments, and what the output must contain.

/// One example and the ways it is run.
pub(crate) struct Example {
    /// Name of the `[[example]]` target.
    pub(crate) name: &'static str,
    /// At least one.
    pub(crate) runs: &'static [Run],
}

/// One run that must succeed.
pub(crate) struct Run {
    /// Arguments; `{out}` stands for a fresh folder under `target/`.
    pub(crate) args: &'static [&'static str],
    /// Words that standard output must contain.
    pub(crate) stdout: &'static [&'static str],
    /// Files it must write into `{out}`, with their size in bytes.
    pub(crate) writes: &'static [(&'static str, u64)],
}

const DEMO: &str = "assets/ds4-demo.gguf";

/// Every example of the workspace; `cargo xtask tidy` fails when one is missing here.
pub(crate) const EXAMPLES: [Example; 2] = [
    Example {
        name: "inspect",
        runs: &[
            Run {
                args: &[DEMO],
                stdout: &[
                    "general.architecture",
                    "routed experts",
                    "bytes per decoded token",
                    "every tensor type is supported",
                ],
                writes: &[],
            },
            Run {
                args: &["--json", DEMO],
                stdout: &["\"bytes_per_token\":", "\"unsupported\": []"],
                writes: &[],
            },
        ],
    },
    Example {
        name: "dequantize",
        runs: &[Run {
            args: &[
                DEMO,
                "blk.3.ffn_gate_exps.weight",
                "--out",
                "{out}/weights.f32",
            ],
            stdout: &["256 × 256 × 16 of IQ2_XXS"],
            writes: &[("weights.f32", 256 * 256 * 16 * 4)],
        }],
    },
];
