//! Importance of columns, measured: how large the numbers are that each column of a matrix meets when the model reads a text.
//!
//! A tap on the CPU executor sees what every matrix reads and adds up its squares by column, once for all matrices that read
//! the same; for routed experts, expert by expert with the number of tokens that reached each. The embedding reads
//! nothing; the output matrix is left out unless asked for, because logits of every token are dear and its types
//! need no importance.
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
use crate::reading::Reading;
use crate::session::Logits;
use crate::tokenizer::Special;

use collect::Collector;

/// What is measured, and on what.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CollectOptions {
    /// How the text is read.
    pub reading: Reading,
    /// Whether the output matrix is measured too; by default it is not.
    pub output: bool,
}

/// Sums of squares for the matrices that read one value.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Names of the matrices: gate and up experts read the same rows, and so do the matrices behind a norm.
    pub tensors: Vec<Box<str>>,
    /// Columns of each.
    pub cols: usize,
    /// `Σ x²` by column, `[experts, cols]`; a plain matrix is one expert.
    pub sums: Vec<f32>,
    /// Rows that each expert read, `[experts]`.
    pub counts: Vec<u64>,
    /// Whether these are the rows inside routed experts: as many as the experts read, in the entry before.
    inner: bool,
}

/// Experts of a layer that no token of the text was sent to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreached {
    /// The first of the layer's tensors with experts.
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
            "{few} of {of} experts of the layer of `{}` saw no token: {:?}",
            self.tensor, self.experts
        )
    }
}

/// The line that comes before each prompt of a data set, with words of its author's behind it.
const MARKER: &str = "===== DS4_IMATRIX_PROMPT";

/// The prompts of a data set of antirez/ds4: rendered chats, each behind a line that begins with `===== DS4_IMATRIX_PROMPT`. A
/// text without such a line is one prompt. What comes before the first line and line breaks at the end are left out.
pub fn prompts(dataset: &str) -> impl Iterator<Item = &str> {
    let mut starts: Vec<(usize, usize)> = Vec::new();
    let mut at = 0;
    for line in dataset.split_inclusive('\n') {
        if line.starts_with(MARKER) {
            starts.push((at, at + line.len()));
        }
        at += line.len();
    }
    if starts.is_empty() {
        starts.push((0, 0));
    }
    let ends: Vec<usize> = starts[1..]
        .iter()
        .map(|(marker, _)| *marker)
        .chain([at])
        .collect();
    let prompts = starts.into_iter().zip(ends);
    prompts
        .map(move |((_, start), end)| dataset[start..end].trim_end_matches(['\n', '\r']))
        .filter(|prompt| !prompt.is_empty())
}

/// What a model met while it read a text.
#[derive(Clone, Debug)]
pub struct Collected {
    entries: Vec<Entry>,
    chunk: usize,
    chunks: usize,
    tokens: usize,
    total: usize,
}

impl Collected {
    /// Let `engine` read `text`. `progress(done, total)` hears of tokens after every piece and may stop the work: the result
    /// is of the pieces that were read, see [`Self::is_complete`].
    ///
    /// # Errors
    /// [`Error::Option`] and [`Error::Text`] for pieces or a text below [`Reading::LEAST`], [`Error::Context`] for a piece
    /// that is longer than the context; [`Error::Importance`] after the first piece that leaves a sum which is no number;
    /// [`Error::Exec`].
    pub fn over(
        engine: &Engine,
        text: &str,
        options: &CollectOptions,
        progress: impl FnMut(usize, usize) -> ControlFlow<()>,
    ) -> Result<Self, Error> {
        let reading = &options.reading;
        let tokens = engine.tokenizer().encode(text, reading.special);
        let pieces = reading.pieces(&tokens)?;
        let want = if options.output {
            Logits::All
        } else {
            Logits::None
        };
        Self::of_pieces(engine, &pieces, reading.chunk, want, progress)
    }

    /// As [`Self::over`], of a data set of prompts as antirez/ds4 has them (see [`prompts`]), each read from an empty timeline
    /// and at most as long as the context. Control tokens that they spell out are control tokens; the output matrix is left
    /// out. At most `most_prompts` of them, and `most_tokens` in all; prompts below [`Reading::LEAST`] tokens are not read.
    ///
    /// # Errors
    /// As for [`Self::over`]; [`Error::Text`] when no prompt is long enough.
    pub fn over_prompts(
        engine: &Engine,
        dataset: &str,
        most_prompts: usize,
        most_tokens: usize,
        progress: impl FnMut(usize, usize) -> ControlFlow<()>,
    ) -> Result<Self, Error> {
        let mut left = most_tokens;
        let mut read: Vec<Vec<Token>> = Vec::new();
        let mut longest = 0;
        for prompt in prompts(dataset).take(most_prompts) {
            let mut tokens = engine.tokenizer().encode(prompt, Special::All);
            tokens.truncate(engine.context().min(left));
            longest = longest.max(tokens.len());
            if tokens.len() >= Reading::LEAST {
                left -= tokens.len();
                read.push(tokens);
            }
        }
        if read.is_empty() {
            return Err(Error::Text {
                found: longest,
                expected: Reading::LEAST,
            });
        }
        let pieces: Vec<&[Token]> = read.iter().map(Vec::as_slice).collect();
        Self::of_pieces(engine, &pieces, longest, Logits::None, progress)
    }

    fn of_pieces(
        engine: &Engine,
        pieces: &[&[Token]],
        chunk: usize,
        want: Logits,
        mut progress: impl FnMut(usize, usize) -> ControlFlow<()>,
    ) -> Result<Self, Error> {
        let total = pieces.iter().map(|piece| piece.len()).sum();
        let mut collector = Collector::new(engine.graph(), engine.weights());
        let (mut done, mut chunks) = (0, 0);
        for piece in pieces {
            let mut session = engine.session()?;
            session.run(piece, want, &mut collector, &mut |_| {})?;
            done += piece.len();
            chunks += 1;
            collector.check(done)?;
            if progress(done, total).is_break() {
                break;
            }
        }
        Ok(Self {
            entries: collector.finish(),
            chunk,
            chunks,
            tokens: done,
            total,
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

    /// Tokens that were to be read.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Whether the caller let all of them be read.
    pub fn is_complete(&self) -> bool {
        self.tokens == self.total
    }

    /// Experts without a measurement, once a layer; they count as equally important in all columns. A longer or more
    /// varied text reaches more.
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
        let outer = self.entries.iter().filter(|entry| !entry.inner);
        outer.filter_map(unreached).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_are_what_stands_between_the_marked_lines() {
        let dataset = "notes\n\n===== DS4_IMATRIX_PROMPT 1 code =====\none\ntwo\n\n===== DS4_IMATRIX_PROMPT 2\n\n\n\
                       ===== DS4_IMATRIX_PROMPT 3 =====\r\nx ===== DS4_IMATRIX_PROMPT y\r\n";
        let found: Vec<&str> = prompts(dataset).collect();
        assert_eq!(found, ["one\ntwo", "x ===== DS4_IMATRIX_PROMPT y"]);
        assert_eq!(prompts("all of it\n").collect::<Vec<_>>(), ["all of it"]);
        assert_eq!(prompts("").count(), 0);
        assert_eq!(prompts("===== DS4_IMATRIX_PROMPT").count(), 0);
    }
}
