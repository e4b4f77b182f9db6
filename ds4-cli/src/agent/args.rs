//! The command line of `ds4-agent`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use crate::running::Running;
use crate::sampling::Sampling;
use crate::thinking::ThinkingFlags;

/// Work in a folder with a model that can read, search and edit files and run commands.
#[derive(clap::Parser, Clone, Debug)]
#[command(name = "ds4-agent", version)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) running: Running,
    /// One task, instead of a conversation.
    #[arg(short, long, value_name = "TEXT")]
    pub(crate) prompt: Option<String>,
    /// Ask nothing: without -p the task is all of standard input, and calls need --yes.
    #[arg(long)]
    pub(crate) non_interactive: bool,
    /// Do what the model calls for without asking. It is shown all the same.
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// The folder to work in; file tools do not leave it.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) root: PathBuf,
    /// Instructions (also -sys); empty for none [default: what an agent is told here].
    #[arg(long, value_name = "TEXT")]
    pub(crate) system: Option<String>,
    /// Built-in tools: some of read, list, search, edit, write, bash, bash_status, bash_stop; or none.
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "read,list,search,edit,write,bash,bash_status,bash_stop"
    )]
    pub(crate) builtin: Vec<String>,
    /// More tools: a JSON array of declarations, each with a shell `command`.
    #[arg(long, value_name = "FILE")]
    pub(crate) tools: Option<PathBuf>,
    /// Append the conversation to this file, one JSON object a line [default: ~/.ds4/agent/TIME-PID.jsonl].
    #[arg(long, value_name = "FILE")]
    pub(crate) transcript: Option<PathBuf>,
    /// Folder of saved conversations [default: ~/.ds4/agent/sessions].
    #[arg(long, value_name = "DIR")]
    pub(crate) session_dir: Option<PathBuf>,
    /// Go on with a saved conversation: its name, the beginning of that, or `last`.
    #[arg(long, value_name = "ID")]
    pub(crate) resume: Option<String>,
    /// Keep no transcript.
    #[arg(long, conflicts_with = "transcript")]
    pub(crate) no_transcript: bool,
    /// Tokens of context.
    #[arg(short, long, value_name = "N", default_value = "100000")]
    pub(crate) ctx: NonZeroUsize,
    /// Most tokens of an answer.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50_000)]
    pub(crate) tokens: usize,
    /// Most answers with calls, one after the other, before a person is asked again.
    #[arg(long, value_name = "N", default_value = "100")]
    pub(crate) max_steps: NonZeroUsize,
    /// Seconds of a command, when the call does not say.
    #[arg(long, value_name = "S", default_value_t = 120)]
    pub(crate) bash_timeout: u64,
    /// Most bytes of a call's result; of longer ones the middle is left out.
    #[arg(long, value_name = "N", default_value = "16384")]
    pub(crate) max_output: NonZeroUsize,
    #[command(flatten)]
    pub(crate) sampling: Sampling,
    #[command(flatten)]
    pub(crate) thinking: ThinkingFlags,
}
