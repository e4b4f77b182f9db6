//! The command line of `ds4`.

use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;

use ds4_model::forecast::Forecast;

use crate::reading::Reading;
use crate::threads::Threads;

/// Talk to a DeepSeek-V4 model in a GGUF file; or look at such files, make and change them.
///
/// Without a command: a conversation, or one answer to a prompt. The answer alone goes to standard output; reasoning,
/// progress and speed go to standard error. Ctrl-C stops an answer.
#[derive(clap::Parser)]
#[command(name = "ds4", version, args_conflicts_with_subcommands = true)]
#[command(
    override_usage = "ds4 [-m FILE] [-p TEXT | --prompt-file FILE] [OPTIONS]\n       ds4 <COMMAND>"
)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) chat: crate::chat::args::Chat,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Show what is in a GGUF: metadata, tensors, sizes, bytes a decoded token reads, what cannot be decoded.
    Inspect(Inspect),
    /// Measure tokens a second of prompt and answer, on token ids without meaning.
    Bench(Bench),
    /// Make a GGUF from a Hugging Face checkpoint. An error or Ctrl-C removes what was written.
    Convert(Convert),
    /// Write a new file with every tensor in the type that a recipe gives it.
    Quantize(Quantize),
    /// Measure which columns of each matrix matter while the model reads a text.
    Imatrix(Imatrix),
    /// Compare two models: their weights and, with --text, what they say.
    Compare(Compare),
    /// Make tensors smaller, in a new file or in place.
    Requant(Requant),
    /// Cut a model into several files.
    Split(Split),
    /// Make one file of a split model.
    Merge(Merge),
    /// Change metadata.
    Edit(Edit),
    /// Say what a model needs of memory and whether this machine has it; exit code 1 when it has not.
    Fit(Fit),
    /// List the environment variables that ds4 reads.
    Env,
    /// Write a script that completes command lines of ds4 in a shell.
    Completions(Completions),
    /// Write manual pages into a folder.
    Man(Man),
}

#[derive(clap::Args)]
pub(crate) struct Fit {
    /// The model; of a split one, the first file.
    pub(crate) model: PathBuf,
    /// Longest conversation in tokens, answer included; more than the model can is what it can.
    #[arg(short, long = "ctx", default_value = "32768")]
    pub(crate) context: NonZeroUsize,
    /// Tokens of a prompt computed in one step.
    #[arg(long, default_value = "512")]
    pub(crate) prefill_chunk: NonZeroUsize,
    /// Conversations at a time, as of a server.
    #[arg(long, default_value = "1")]
    pub(crate) sessions: NonZeroUsize,
    /// Where to compute: cpu or auto.
    #[arg(long, default_value = "auto", value_parser = crate::running::backend)]
    pub(crate) backend: String,
    /// A machine with so much memory instead of this one: a number of bytes, or one with k, M or G.
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub(crate) memory: Option<u64>,
    /// A JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(clap::Args)]
pub(crate) struct Completions {
    /// The shell.
    pub(crate) shell: clap_complete::Shell,
    /// The program.
    #[arg(default_value = "ds4", value_parser = ["ds4", "ds4-server", "ds4-bench", "ds4-eval", "ds4-agent"])]
    pub(crate) program: String,
}

#[derive(clap::Args)]
pub(crate) struct Man {
    /// The folder; made if it is not there.
    pub(crate) folder: PathBuf,
}

#[derive(clap::Args)]
pub(crate) struct Inspect {
    /// The files; the first part of a split model stands for all of them.
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// One JSON document a file.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(clap::Args)]
pub(crate) struct Bench {
    /// The model.
    #[arg(short, long)]
    pub(crate) model: PathBuf,
    #[command(flatten)]
    pub(crate) threads: Threads,
    /// Tokens of the prompt.
    #[arg(short, long, default_value = "256")]
    pub(crate) prompt: NonZeroUsize,
    /// Tokens computed one by one after it.
    #[arg(short, long = "gen", default_value = "32")]
    pub(crate) generate: NonZeroUsize,
    /// A JSON document instead of two lines.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What `quantize` and `requant` share.
#[derive(clap::Args)]
pub(crate) struct Encoding {
    /// Importance of columns, as `ds4 imatrix` and other tools write it.
    #[arg(long, value_name = "FILE")]
    pub(crate) imatrix: Option<PathBuf>,
    /// Make NaN 0 and clamp everything beyond ±65504, instead of stopping with an error.
    #[arg(long)]
    pub(crate) allow_nonfinite: bool,
    #[command(flatten)]
    pub(crate) threads: Threads,
    /// Say what would come out and what it would read at each decoded token; write nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Memory bandwidth in GB/s for the ceiling that --dry-run names.
    #[arg(long, default_value_t = Forecast::STRIX_HALO / 1e9, value_parser = bandwidth)]
    pub(crate) bandwidth: f64,
    /// Replace the output when it exists.
    #[arg(long)]
    pub(crate) force: bool,
}

/// More than that are no help anywhere, and may be all that a machine can start.
pub(crate) fn threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(threads) if threads <= 1024 => Ok(threads),
        _ => Err("expected a number from 0 to 1024".to_owned()),
    }
}

fn bandwidth(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(n) if n.is_finite() && n > 0.0 => Ok(n),
        _ => Err("expected a positive number".to_owned()),
    }
}

#[derive(clap::Args)]
pub(crate) struct Quantize {
    /// The model; of a split one, any file.
    pub(crate) model: PathBuf,
    /// The new file. It gets its name when it is complete; Ctrl-C or a failure leaves nothing of it.
    #[arg(required_unless_present = "dry_run")]
    pub(crate) output: Option<PathBuf>,
    /// A named recipe (native, strix, q4k, q8, f16, q2k-down), or a file with rules.
    #[arg(short, long)]
    pub(crate) recipe: PathBuf,
    /// With --dry-run: a JSON document.
    #[arg(long, requires = "dry_run")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) encoding: Encoding,
}

#[derive(clap::Args)]
pub(crate) struct Convert {
    /// The folder with config.json, tokenizer.json and the safetensors files.
    pub(crate) folder: PathBuf,
    /// The new file. It gets its name when it is complete; Ctrl-C or a failure leaves nothing of it.
    #[arg(required_unless_present = "dry_run")]
    pub(crate) output: Option<PathBuf>,
    /// A named recipe (native, strix, q4k, q8, f16), or a file with rules. FP8 weights are BF16 to it, FP4 experts MXFP4,
    /// and a rule with type "keep" keeps them so. Vectors are F32 under every recipe.
    #[arg(short, long)]
    pub(crate) recipe: PathBuf,
    /// The name that the result says it has; by default that of the folder.
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Which programs the file is made for.
    #[arg(long, value_enum, default_value_t = Readers::Ds4)]
    pub(crate) dialect: Readers,
    /// With --dry-run: a JSON document.
    #[arg(long, requires = "dry_run")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) encoding: Encoding,
}

/// Programs that read a file.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum Readers {
    /// antirez/ds4, and this one.
    Ds4,
    /// llama.cpp.
    LlamaCpp,
}

#[derive(clap::Args)]
pub(crate) struct Imatrix {
    /// The model that reads.
    pub(crate) model: PathBuf,
    /// The text.
    pub(crate) text: PathBuf,
    /// The new file. Ctrl-C ends the work after the piece at hand: the file is of what was read until then (a GGUF says how
    /// many tokens in `imatrix.token_count`), and the exit code is 1.
    pub(crate) output: PathBuf,
    /// Write the older kind of file (.dat) instead of a GGUF.
    #[arg(long)]
    pub(crate) legacy: bool,
    #[command(flatten)]
    pub(crate) reading: Reading,
    /// Measure the output matrix too: as dear as the rest on small models.
    #[arg(long)]
    pub(crate) output_matrix: bool,
    /// Replace the output when it exists.
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(clap::Args)]
pub(crate) struct Compare {
    /// The model that counts as right.
    pub(crate) first: PathBuf,
    /// The model that is measured against it.
    pub(crate) second: PathBuf,
    /// Let both read this text and compare what they expect to follow.
    #[arg(long, value_name = "FILE")]
    pub(crate) text: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) reading: Reading,
    /// A JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(clap::Args)]
pub(crate) struct Requant {
    /// The model.
    pub(crate) model: PathBuf,
    /// The new file, unless --in-place. Ctrl-C or a failure leaves nothing of it.
    #[arg(required_unless_present_any = ["in_place", "resume", "dry_run"], conflicts_with_all = ["in_place", "resume"])]
    pub(crate) output: Option<PathBuf>,
    /// A named recipe, or a file with rules. By default MXFP4 and IQ3_XXS down experts become Q2_K.
    #[arg(short, long, default_value = "q2k-down")]
    pub(crate) recipe: PathBuf,
    /// Rewrite the file itself, with a journal beside it (the same name and `.requant`). No reader can open the file
    /// meanwhile; after any interruption it is as it was or goes on with --resume.
    #[arg(long)]
    pub(crate) in_place: bool,
    /// Finish what was interrupted in place. Recipe and importance are those of the beginning.
    #[arg(long, conflicts_with_all = ["recipe", "imatrix", "dry_run", "allow_nonfinite"])]
    pub(crate) resume: bool,
    #[command(flatten)]
    pub(crate) encoding: Encoding,
}

#[derive(clap::Args)]
pub(crate) struct Split {
    /// The model.
    pub(crate) model: PathBuf,
    /// The path of the new files up to `-00001-of-00003.gguf`.
    pub(crate) prefix: PathBuf,
    /// Most bytes of tensors in a file: a number, or one with k, M or G.
    #[arg(long, value_parser = bytes, required_unless_present = "max_tensors", conflicts_with = "max_tensors")]
    pub(crate) max_size: Option<u64>,
    /// Most tensors in a file.
    #[arg(long)]
    pub(crate) max_tensors: Option<NonZeroU64>,
    /// Say which files there would be; write nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Replace files that exist.
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(clap::Args)]
pub(crate) struct Merge {
    /// Any file of the split model.
    pub(crate) model: PathBuf,
    /// The new file.
    pub(crate) output: PathBuf,
    /// Say how large it would be; write nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Replace the output when it exists.
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(clap::Args)]
pub(crate) struct Edit {
    /// The model.
    pub(crate) model: PathBuf,
    /// The new file; without it the model is replaced by its edited copy.
    pub(crate) output: Option<PathBuf>,
    /// KEY=VALUE with the type that the key has, KEY=TYPE:VALUE, or KEY=TYPE[]:A,B,C.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// A key to take out.
    #[arg(long, value_name = "KEY")]
    pub(crate) remove: Vec<String>,
    /// A key to give another name.
    #[arg(long, value_name = "OLD=NEW")]
    pub(crate) rename: Vec<String>,
    /// Show the metadata that would be written; write nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Replace the output when it exists.
    #[arg(long)]
    pub(crate) force: bool,
}

/// `50G` and its smaller brothers, in powers of 1000.
fn bytes(text: &str) -> Result<u64, String> {
    let (digits, unit) = match text.strip_suffix(['k', 'K', 'M', 'G']) {
        Some(digits) => (digits, &text[digits.len()..]),
        None => (text, ""),
    };
    let unit = match unit {
        "k" | "K" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        _ => 1,
    };
    digits
        .parse::<u64>()
        .ok()
        .and_then(|n| n.checked_mul(unit))
        .filter(|n| *n > 0)
        .ok_or_else(|| "expected a number of bytes such as 500M or 50G".to_owned())
}
