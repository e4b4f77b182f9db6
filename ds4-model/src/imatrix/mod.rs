//! Importance of columns, measured: how large the numbers are that each column of a matrix meets when the model reads a text.
//!
//! A tap on the CPU executor sees what every matrix reads and adds up its squares by column; for routed experts, expert by
//! expert with the number of tokens that reached each. The embedding reads nothing; the output matrix is left out
//! unless asked for, because logits of every token are dear and its types need no importance.
//!
//! ```
//! use std::ops::ControlFlow;
//! use ds4_model::imatrix::{Collected, CollectOptions};
//! use ds4_model::{Engine, Options};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/ds4-demo.gguf");
//! let engine = Engine::open(path, Options::default())?;
//! let options = CollectOptions::default();
//! let text = "The capital of France is Paris.";
//! let collected = Collected::over(&engine, text, &options, |_, _| ControlFlow::Continue(()))?;
//! let file = collected.to_gguf(Vec::new(), "capitals.txt")?;
//! let matrix = ds4_quant::Imatrix::parse(file)?;
//! assert!(matrix.get("blk.0.attn_kv.weight", 0, 1, 256)?.is_some());
//! assert!(!collected.unreached().is_empty(), "one sentence does not reach every expert");
//! # Ok(()) }
//! ```

mod collect;
mod file;

use std::ops::ControlFlow;

use crate::engine::Engine;
use crate::error::Error;
use crate::exec::Token;
use crate::session::Logits;
use crate::tokenizer::Special;

use collect::Collector;

/// How a text is read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CollectOptions {
    /// Tokens of a piece; each piece is read from an empty timeline.
    pub chunk: usize,
    /// Most pieces; `None` reads the whole text.
    pub chunks: Option<usize>,
    /// Whether the output matrix is measured too.
    pub output: bool,
    /// Whether control tokens that the text spells out are control tokens.
    pub special: Special,
}

impl Default for CollectOptions {
    fn default() -> Self {
        Self {
            chunk: 512,
            chunks: None,
            output: false,
            special: Special::None,
        }
    }
}

/// Sums of squares for the matrices that read one value.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Names of the matrices: gate and up experts read the same rows.
    pub tensors: Vec<Box<str>>,
    /// Columns of each.
    pub cols: usize,
    /// `Σ x²` by column, `[experts, cols]`; a plain matrix is one expert.
    pub sums: Vec<f32>,
    /// Rows that each expert read, `[experts]`.
    pub counts: Vec<u64>,
}

/// Experts that no token of the text was sent to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreached {
    /// The first of their tensors.
    pub tensor: Box<str>,
    /// Their numbers.
    pub experts: Vec<usize>,
    /// How many experts there are.
    pub of: usize,
}

impl std::fmt::Display for Unreached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (few, of) = (self.experts.len(), self.of);
        write!(
            f,
            "{few} of {of} experts of `{}` saw no token: {:?}",
            self.tensor, self.experts
        )
    }
}

/// What a model met while it read a text.
#[derive(Clone, Debug)]
pub struct Collected {
    entries: Vec<Entry>,
    chunk: usize,
    chunks: usize,
    tokens: usize,
}

impl Collected {
    /// Let `engine` read `text`. `progress(done, total)` hears of tokens after every piece and may stop the work.
    ///
    /// # Errors
    /// [`Error::Option`] for a piece of no tokens or a text of none, [`Error::Context`] for a piece that is longer than
    /// the context, [`Error::Stopped`], [`Error::Exec`].
    pub fn over(
        engine: &Engine,
        text: &str,
        options: &CollectOptions,
        mut progress: impl FnMut(usize, usize) -> ControlFlow<()>,
    ) -> Result<Self, Error> {
        let positive = |option, found, expected| match found {
            0 => Err(Error::Option {
                option,
                found,
                expected,
            }),
            _ => Ok(()),
        };
        positive("chunk", options.chunk, "at least 1 token")?;
        let tokens = engine.tokenizer().encode(text, options.special);
        let pieces: Vec<&[Token]> = tokens
            .chunks(options.chunk)
            .take(options.chunks.unwrap_or(usize::MAX))
            .collect();
        let total = pieces.iter().map(|piece| piece.len()).sum();
        positive("text", total, "at least 1 token")?;
        let want = if options.output {
            Logits::All
        } else {
            Logits::None
        };
        let mut collector = Collector::new(engine.graph(), engine.weights());
        let mut done = 0;
        for piece in &pieces {
            let mut session = engine.session()?;
            session.run(piece, want, &mut collector, &mut |_| {})?;
            done += piece.len();
            if progress(done, total).is_break() && done < total {
                return Err(Error::Stopped { done, total });
            }
        }
        Ok(Self {
            entries: collector.finish(),
            chunk: options.chunk,
            chunks: pieces.len(),
            tokens: total,
        })
    }

    /// The sums, in the order in which the model reads.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Tokens that were read.
    pub fn tokens(&self) -> usize {
        self.tokens
    }

    /// Experts without a measurement, which count as equally important in all columns: a longer or more varied text
    /// reaches more.
    pub fn unreached(&self) -> Vec<Unreached> {
        let unreached = |entry: &Entry| {
            let none = |(expert, &count): (usize, &u64)| (count == 0).then_some(expert);
            let experts: Vec<usize> = entry.counts.iter().enumerate().filter_map(none).collect();
            (!experts.is_empty()).then(|| Unreached {
                tensor: entry.tensors[0].clone(),
                experts,
                of: entry.counts.len(),
            })
        };
        self.entries.iter().filter_map(unreached).collect()
    }
}
