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
const STRIX: &str = "assets/ds4-demo-strix.gguf";

const QUESTION: &str = "What is the capital of France?";
const ANSWER: &str = "The capital of France is Paris.";

/// Every example of the workspace; `cargo xtask tidy` fails when one is missing here.
pub(crate) const EXAMPLES: [Example; 11] = [
    Example {
        name: "hip_vector_add",
        runs: &[Run {
            args: &[],
            // "all right", or what there is not.
            stdout: &["all"],
            writes: &[],
        }],
    },
    Example {
        name: "embed",
        runs: &[Run {
            args: &[],
            stdout: &[ANSWER],
            writes: &[],
        }],
    },
    Example {
        name: "chat",
        runs: &[
            Run {
                args: &[QUESTION],
                stdout: &[ANSWER],
                writes: &[],
            },
            Run {
                args: &["-m", STRIX, QUESTION],
                stdout: &[ANSWER],
                writes: &[],
            },
            Run {
                args: &[
                    "-m",
                    DEMO,
                    "-t",
                    "1",
                    "-c",
                    "512",
                    "-n",
                    "200",
                    "--think",
                    "--temp",
                    "0.5",
                    "--seed",
                    "1",
                    "What is 12 plus 30?",
                ],
                stdout: &["42"],
                writes: &[],
            },
        ],
    },
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
    Example {
        name: "quantize",
        runs: &[
            Run {
                args: &[],
                stdout: &["Q2_0_ROCMFP2", "Q2_K", "IQ2_XXS"],
                writes: &[],
            },
            Run {
                args: &[DEMO, "blk.0.attn_q_b.weight"],
                stdout: &["128 × 768 of Q8_0", "rows of 128 do not fit its blocks"],
                writes: &[],
            },
        ],
    },
    Example {
        name: "requantize",
        runs: &[Run {
            args: &["--out", "{out}/smaller.gguf"],
            stdout: &["MXFP4 → Q2_K", "7 tensors changed, 205 copied"],
            writes: &[("smaller.gguf", 15_728_448)],
        }],
    },
    Example {
        name: "tokenize",
        runs: &[
            Run {
                args: &[DEMO, QUESTION],
                stdout: &["[", "\"What\""],
                writes: &[],
            },
            Run {
                args: &[DEMO, "--special", "<think>"],
                stdout: &["[3057]"],
                writes: &[],
            },
            Run {
                args: &[DEMO, "--decode", "[3057, 3058]"],
                stdout: &["<think></think>"],
                writes: &[],
            },
        ],
    },
    Example {
        name: "logits",
        runs: &[Run {
            args: &[
                DEMO,
                "--tokens",
                "0,3054,300,400,500",
                "--chunk",
                "2",
                "--threads",
                "1",
                "--out",
                "{out}/logits.f32",
            ],
            stdout: &["[5, 3072]"],
            writes: &[("logits.f32", 5 * 3072 * 4)],
        }],
    },
    Example {
        name: "tap_layers",
        runs: &[Run {
            args: &[],
            stdout: &["l00.attn.out", "l06.attn.out", "7 values seen"],
            writes: &[],
        }],
    },
    Example {
        name: "dump_graph",
        runs: &[
            Run {
                args: &[],
                stdout: &["digraph", "l06.ffn.experts"],
                writes: &[],
            },
            Run {
                args: &["--json", "--unfused"],
                stdout: &["\"nodes\"", "\"RouteHash\""],
                writes: &[],
            },
        ],
    },
];
