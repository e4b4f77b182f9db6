//! Accuracy by category, as a table and as JSON.

use std::io::{self, Write};

use ds4_model::eval::Tally;
use serde_json::{Value, json};

use super::trace::Entry;

/// What all answers come to.
pub(super) struct Report {
    total: Tally,
    /// In the order in which they were first asked about.
    categories: Vec<(String, Tally)>,
    cut_off: usize,
    tokens: usize,
    seconds: f64,
}

impl Report {
    pub(super) fn of(entries: &[Entry]) -> Self {
        let mut report = Self {
            total: Tally::default(),
            categories: Vec::new(),
            cut_off: 0,
            tokens: 0,
            seconds: 0.0,
        };
        for entry in entries {
            let correct = entry.grade.correct;
            report.total.add(correct);
            let name = &entry.case.category;
            match report.categories.iter_mut().find(|(n, _)| n == name) {
                Some((_, tally)) => tally.add(correct),
                None => {
                    let mut tally = Tally::default();
                    tally.add(correct);
                    report.categories.push((name.clone(), tally));
                }
            }
            report.cut_off += usize::from(!entry.answered.complete);
            report.tokens += entry.answered.tokens;
            report.seconds += entry.seconds;
        }
        report
    }

    /// For people.
    pub(super) fn table(&self, out: &mut dyn Write) -> io::Result<()> {
        let rows = self.categories.iter().map(|(n, t)| (n.as_str(), t));
        let names = self.categories.iter().map(|(n, _)| n.chars().count());
        let width = names.max().unwrap_or(0).max("category".len());
        writeln!(
            out,
            "{:width$}  {:>9}  {:>8}  95 % interval",
            "category", "right", "accuracy"
        )?;
        for (name, tally) in rows.chain([("all", &self.total)]) {
            let (low, high) = tally.interval();
            let right = format!("{}/{}", tally.correct, tally.asked);
            writeln!(
                out,
                "{name:width$}  {right:>9}  {:>6.1} %  {:.1} – {:.1} %",
                tally.accuracy() * 100.0,
                low * 100.0,
                high * 100.0
            )?;
        }
        if self.cut_off > 0 {
            writeln!(out, "{} answers were cut off by their limit", self.cut_off)?;
        }
        Ok(())
    }

    /// For programs.
    pub(super) fn to_json(&self, asked: &Value) -> Value {
        let tally = |tally: &Tally| {
            let (low, high) = tally.interval();
            json!({
                "correct": tally.correct,
                "asked": tally.asked,
                "accuracy": tally.accuracy(),
                "low": low,
                "high": high,
            })
        };
        let categories: serde_json::Map<String, Value> = self
            .categories
            .iter()
            .map(|(name, t)| (name.clone(), tally(t)))
            .collect();
        json!({
            "source": "ds4-eval",
            "version": env!("CARGO_PKG_VERSION"),
            "asked": asked,
            "all": tally(&self.total),
            "categories": categories,
            "cut_off": self.cut_off,
            "tokens": self.tokens,
            "seconds": self.seconds,
        })
    }
}
