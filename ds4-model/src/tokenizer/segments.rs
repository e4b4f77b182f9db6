//! A rendered prompt that remembers which of its characters are markers.
//!
//! Only markers that the renderer wrote may become control tokens; the same characters inside a message are text.
//! Neighbouring text stays one run across message borders, because that is what the models were trained on.

use std::ops::Range;

/// Text with marked ranges.
///
/// ```
/// use ds4_model::tokenizer::Segments;
/// let mut prompt = Segments::default();
/// prompt.marker("<｜User｜>");
/// prompt.text("what does <｜User｜> mean?");
/// assert_eq!(prompt.as_str(), "<｜User｜>what does <｜User｜> mean?");
/// assert_eq!(prompt.markers().count(), 1);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segments {
    text: String,
    markers: Vec<Range<usize>>,
}

/// A part of [`Segments`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segment<'s> {
    /// Written by the renderer: one control token.
    Marker(&'s str),
    /// Everything else: text, whatever it looks like.
    Text(&'s str),
}

impl Segments {
    /// Append text.
    pub fn text(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Append one marker.
    pub fn marker(&mut self, marker: &str) {
        let start = self.text.len();
        self.text.push_str(marker);
        if !marker.is_empty() {
            self.markers.push(start..self.text.len());
        }
    }

    /// Append a part of other segments.
    pub fn part(&mut self, part: Segment<'_>) {
        match part {
            Segment::Marker(marker) => self.marker(marker),
            Segment::Text(text) => self.text(text),
        }
    }

    /// Append text in which every occurrence of one of `markers` is a marker: for wording of the format itself,
    /// never for text that came from outside. The leftmost occurrence is taken first, then the longest.
    pub fn template(&mut self, mut text: &str, markers: &[&str]) {
        while let Some((at, marker)) = markers
            .iter()
            .filter(|m| !m.is_empty())
            .filter_map(|m| text.find(m).map(|at| (at, *m)))
            .min_by_key(|(at, m)| (*at, usize::MAX - m.len()))
        {
            self.text(&text[..at]);
            self.marker(marker);
            text = &text[at + marker.len()..];
        }
        self.text(text);
    }

    /// The whole prompt as text, markers included.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The markers, in order.
    pub fn markers(&self) -> impl Iterator<Item = &str> {
        self.markers.iter().map(|range| &self.text[range.clone()])
    }

    /// Markers and the text between them, in order; no text is empty.
    pub fn iter(&self) -> impl Iterator<Item = Segment<'_>> {
        let mut from = 0;
        let ends = self.markers.iter().cloned().map(Some).chain([None]);
        ends.flat_map(move |marker| {
            let start = marker.as_ref().map_or(self.text.len(), |m| m.start);
            let text = &self.text[from..start];
            from = marker.as_ref().map_or(start, |m| m.end);
            let text = (!text.is_empty()).then_some(Segment::Text(text));
            text.into_iter()
                .chain(marker.map(|m| Segment::Marker(&self.text[m])))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_joins_across_borders_and_markers_stay_apart() {
        let mut s = Segments::default();
        s.marker("<b>");
        s.text("one ");
        s.text("two");
        s.template("x<b><b>y", &["<b>"]);
        s.marker("<e>");
        let got: Vec<_> = s.iter().collect();
        use Segment::{Marker, Text};
        assert_eq!(
            got,
            [
                Marker("<b>"),
                Text("one twox"),
                Marker("<b>"),
                Marker("<b>"),
                Text("y"),
                Marker("<e>")
            ]
        );
    }
}
