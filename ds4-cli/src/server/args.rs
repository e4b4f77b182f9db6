//! The command line of `ds4-server`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use crate::running::{Running, temperature};

/// Serve a DeepSeek-V4 model over HTTP, in the dialects of OpenAI and Anthropic.
#[derive(clap::Parser, Clone, Debug)]
#[command(name = "ds4-server", version, args_override_self = true)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) running: Running,
    /// Go to this folder first; other paths count from there.
    #[arg(long, value_name = "DIR")]
    pub(crate) chdir: Option<PathBuf>,
    /// Address to listen on: a name or an address.
    #[arg(long, default_value = "127.0.0.1")]
    pub(crate) host: String,
    /// Port; 0 takes a free one. The address is printed.
    #[arg(long, default_value_t = 8000)]
    pub(crate) port: u16,
    /// Name of the model for clients [default: the file's name].
    #[arg(long)]
    pub(crate) alias: Option<String>,
    /// Clients must send this key, as a bearer token or as x-api-key [default: the variable DS4_API_KEY].
    #[arg(long)]
    pub(crate) api_key: Option<String>,
    /// A name under which clients may reach a server that listens on this machine alone; may be repeated.
    #[arg(long, value_name = "NAME")]
    pub(crate) allowed_host: Vec<String>,
    /// Let pages of other origins use the server.
    #[arg(long)]
    pub(crate) cors: bool,
    /// Longest conversation in tokens, answer included.
    #[arg(short, long = "ctx", default_value = "32768")]
    pub(crate) context: NonZeroUsize,
    /// Most tokens of an answer, when the request does not say.
    #[arg(short = 'n', long, default_value_t = 393_216)]
    pub(crate) tokens: usize,
    /// Answers at a time, each with a timeline of its own that later requests go on from.
    #[arg(long, visible_alias = "batched-session", default_value = "4")]
    pub(crate) sessions: NonZeroUsize,
    /// Tokens of a prompt in a turn while others are answered.
    #[arg(long, default_value = "128")]
    pub(crate) mixed_prefill_quantum: NonZeroUsize,
    /// Requests that may wait; more are answered with 429. 0 is no limit.
    #[arg(long, default_value_t = 256)]
    pub(crate) max_queue: usize,
    /// Connections at a time; more are answered with 503.
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_connections: u32,
    /// Temperature, when the request has none.
    #[arg(long, default_value_t = 1.0, value_parser = temperature, allow_negative_numbers = true)]
    pub(crate) default_temperature: f32,
    /// Answer at once, when the request does not say.
    #[arg(long)]
    pub(crate) nothink: bool,
    /// Largest request body, in MiB.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) max_body_mb: u32,
    /// Keep timelines in this folder, over restarts.
    #[arg(long, value_name = "DIR")]
    pub(crate) kv_disk_dir: Option<PathBuf>,
    /// Most MiB of them.
    #[arg(long, default_value_t = 4096, value_parser = clap::value_parser!(u64).range(..=1 << 40))]
    pub(crate) kv_disk_space_mb: u64,
    /// Shortest timeline worth keeping on disk, in tokens.
    #[arg(long, default_value_t = 512)]
    pub(crate) kv_cache_min_tokens: usize,
    /// Calls whose text is remembered, so that it can be put back as it was.
    #[arg(long, default_value_t = 100_000)]
    pub(crate) tool_memory_max_ids: usize,
    /// Calls come back to the model as clients send them, not as it wrote them.
    #[arg(long)]
    pub(crate) disable_exact_dsml_tool_replay: bool,
    /// Kept timelines of the very same weights alone; that is always so here.
    #[arg(long)]
    pub(crate) kv_cache_reject_different_quant: bool,
    /// Add what happens to this file: prompts, what was known of them, what the model wrote and how it was read; JSON, a line each.
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
}
