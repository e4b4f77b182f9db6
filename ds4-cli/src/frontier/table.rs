//! What was measured, as CSV, JSON and SVG.

use std::io::{self, Write};
use std::time::Duration;

use ds4_model::measure::chart::{self, Line};
use ds4_model::measure::{Decode, Prefill};
use serde::Serialize;

/// Most tokens that a step of antirez/ds4's speculative decoding accepts: its table has a column for each number.
const ACCEPTED: usize = 17;

/// A frontier, in the columns of antirez/ds4's table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Row {
    /// Tokens of the timeline.
    pub(super) ctx_tokens: usize,
    /// Tokens read since the row before.
    pub(super) prefill_tokens: usize,
    pub(super) prefill_tps: f64,
    pub(super) gen_tokens: usize,
    pub(super) gen_tps: f64,
    pub(super) gen_first_ms: f64,
    /// Tokens after the first step.
    pub(super) gen_steady_tokens: usize,
    pub(super) gen_steady_tps: f64,
    /// Bytes of the snapshot; 0 without one.
    pub(super) kvcache_bytes: u64,
    /// Steps that tokens were drawn in.
    pub(super) gen_cycles: usize,
    /// 16 hexadecimal digits.
    pub(super) gen_token_fnv64: String,
}

impl Row {
    pub(super) fn new(frontier: usize, read: Prefill, drawn: &Decode) -> Self {
        let tokens = drawn.tokens.len();
        let steady = tokens.saturating_sub(1);
        Self {
            ctx_tokens: frontier,
            prefill_tokens: read.tokens,
            prefill_tps: speed(read.tokens, read.took),
            gen_tokens: tokens,
            gen_tps: speed(tokens, drawn.took()),
            gen_first_ms: drawn.first.as_secs_f64() * 1e3,
            gen_steady_tokens: steady,
            gen_steady_tps: speed(steady, drawn.steady),
            kvcache_bytes: drawn.snapshot.unwrap_or(0),
            gen_cycles: tokens,
            gen_token_fnv64: format!("{:016x}", drawn.hash()),
        }
    }

    /// A line of the table. One step accepts one token here.
    pub(super) fn csv(&self, out: &mut dyn Write) -> io::Result<()> {
        write!(
            out,
            "{},{},{:.2},{},{:.2},{:.3},{},{:.2},{},{},{},{}",
            self.ctx_tokens,
            self.prefill_tokens,
            self.prefill_tps,
            self.gen_tokens,
            self.gen_tps,
            self.gen_first_ms,
            self.gen_steady_tokens,
            self.gen_steady_tps,
            self.kvcache_bytes,
            self.gen_cycles,
            self.gen_token_fnv64,
            self.gen_cycles,
        )?;
        writeln!(out, "{}", ",0".repeat(ACCEPTED - 1))
    }
}

/// The names of the columns.
pub(super) fn header(out: &mut dyn Write) -> io::Result<()> {
    write!(
        out,
        "ctx_tokens,prefill_tokens,prefill_tps,gen_tokens,gen_tps,gen_first_ms,gen_steady_tokens,gen_steady_tps,\
         kvcache_bytes,gen_cycles,gen_token_fnv64"
    )?;
    (1..=ACCEPTED).try_for_each(|n| write!(out, ",accept_len_{n}"))?;
    writeln!(out)
}

/// Both speeds over the context.
pub(super) fn svg(title: &str, rows: &[Row]) -> String {
    let line = |label: &str, speed: fn(&Row) -> f64| Line {
        label: label.to_owned(),
        points: rows
            .iter()
            .map(|row| (row.ctx_tokens as f64, speed(row)))
            .collect(),
    };
    let mut lines = vec![line("prefill, tok/s", |row| row.prefill_tps)];
    if rows.iter().any(|row| row.gen_tokens > 0) {
        lines.push(line("decode, tok/s", |row| row.gen_tps));
    }
    chart::lines(title, "tokens", &lines)
}

/// Tokens a second; 0 for no tokens.
fn speed(tokens: usize, took: Duration) -> f64 {
    let seconds = took.as_secs_f64();
    if tokens == 0 || seconds == 0.0 {
        0.0
    } else {
        tokens as f64 / seconds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The header and form of numbers are what scripts for antirez/ds4 read.
    #[test]
    fn a_row_is_written_in_the_columns_of_the_reference() {
        let read = Prefill {
            tokens: 8,
            took: Duration::from_millis(500),
        };
        let drawn = Decode {
            tokens: vec![7, 1, 3],
            first: Duration::from_millis(100),
            steady: Duration::from_millis(400),
            snapshot: Some(99),
        };
        let mut text = Vec::new();
        header(&mut text).unwrap();
        Row::new(16, read, &drawn).csv(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let (names, values) = text.trim_end().split_once('\n').unwrap();
        assert!(
            names.starts_with(
                "ctx_tokens,prefill_tokens,prefill_tps,gen_tokens,gen_tps,gen_first_ms,"
            )
        );
        assert!(names.ends_with(",gen_token_fnv64,accept_len_1,accept_len_2,accept_len_3,accept_len_4,accept_len_5,accept_len_6,accept_len_7,accept_len_8,accept_len_9,accept_len_10,accept_len_11,accept_len_12,accept_len_13,accept_len_14,accept_len_15,accept_len_16,accept_len_17"));
        let hash = format!("{:016x}", drawn.hash());
        assert_eq!(
            values,
            format!(
                "16,8,16.00,3,6.00,100.000,2,5.00,99,3,{hash},3{}",
                ",0".repeat(16)
            )
        );
        assert_eq!(names.split(',').count(), values.split(',').count());
    }

    #[test]
    fn nothing_drawn_is_no_speed_and_no_line_of_the_picture() {
        let read = Prefill {
            tokens: 8,
            took: Duration::from_millis(500),
        };
        let drawn = Decode {
            tokens: vec![],
            first: Duration::ZERO,
            steady: Duration::ZERO,
            snapshot: None,
        };
        let row = Row::new(8, read, &drawn);
        assert_eq!((row.gen_tps, row.gen_steady_tps), (0.0, 0.0));
        assert!(!svg("m", &[row]).contains("decode"));
    }
}
