//! `Layers`: the layers a rule is for.
//!
//! ```text
//! "7"   "20-25"   "40-"   "first 3"   "last 6"   "first 3, 20-25, last 6"
//! ```
//! Numbers count from 0, both ends belong to a range. `last` needs the number of layers of the model; in a file that
//! does not say it, `last` is for no layer.

use std::str::FromStr;

/// A union of ranges of layers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layers(Vec<Range>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Range {
    Between(u64, u64),
    First(u64),
    Last(u64),
}

impl Layers {
    /// Whether `layer` of a model of `count` layers is among them.
    pub(super) fn contain(&self, layer: u64, count: Option<u64>) -> bool {
        self.0.iter().any(|range| match *range {
            Range::Between(first, last) => (first..=last).contains(&layer),
            Range::First(n) => layer < n,
            Range::Last(n) => {
                count.is_some_and(|count| layer < count && layer >= count.saturating_sub(n))
            }
        })
    }
}

impl FromStr for Layers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.split(',')
            .map(|part| {
                range(part.trim()).ok_or_else(|| {
                    format!(
                        "{part:?} is no range of layers; expected one such as \"7\", \"20-25\", \"40-\", \"first 3\" or \"last 6\""
                    )
                })
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

fn range(text: &str) -> Option<Range> {
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let some = |n: &u64| *n > 0;
    if let Some(n) = text.strip_prefix("first ") {
        return number(n).filter(some).map(Range::First);
    }
    if let Some(n) = text.strip_prefix("last ") {
        return number(n).filter(some).map(Range::Last);
    }
    let Some((first, last)) = text.split_once('-') else {
        return number(text).map(|n| Range::Between(n, n));
    };
    let first = number(first)?;
    let last = if last.trim().is_empty() {
        u64::MAX
    } else {
        number(last)?
    };
    (first <= last).then_some(Range::Between(first, last))
}

/// The layer that a tensor called `name` belongs to.
pub(super) fn layer_of(name: &str) -> Option<u64> {
    let (layer, _) = name.strip_prefix("blk.")?.split_once('.')?;
    layer.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn among(text: &str, count: Option<u64>) -> Vec<u64> {
        let layers: Layers = text.parse().unwrap();
        (0..10).filter(|&i| layers.contain(i, count)).collect()
    }

    #[test]
    fn ranges_hold_both_ends_and_lists_unite() {
        assert_eq!(among("7", None), [7]);
        assert_eq!(among("2-4", None), [2, 3, 4]);
        assert_eq!(among("8-", None), [8, 9]);
        assert_eq!(among("first 2, 5, last 3", Some(9)), [0, 1, 5, 6, 7, 8]);
        assert_eq!(among("last 20", Some(3)), [0, 1, 2]);
        assert!(among("last 3", None).is_empty());
    }

    #[test]
    fn other_words_are_refused() {
        for text in ["", "x", "4-2", "-3", "first 0", "last", "1,,2", "1..2"] {
            assert!(text.parse::<Layers>().is_err(), "{text}");
        }
    }
}
