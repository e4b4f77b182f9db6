//! Horizontal bar charts as SVG text.

use std::fmt::Write;

/// One bar.
pub(crate) struct Bar {
    /// What was measured.
    pub(crate) label: String,
    /// Its value, in the chart's unit; not negative.
    pub(crate) value: f64,
    /// Bars of one series share a colour.
    pub(crate) series: usize,
}

const ROW: usize = 22;
const LEFT: usize = 330;
const WIDTH: usize = 460;
const RIGHT: usize = 110;
const TOP: usize = 48;
const COLOURS: [&str; 4] = ["#3b6ea8", "#c8743c", "#5a9a5a", "#8a6aa8"];

/// A chart of `bars` under `title`, values in `unit`, scaled so that the longest bar fills the width.
pub(crate) fn chart(title: &str, unit: &str, bars: &[Bar]) -> String {
    let height = TOP + ROW * bars.len() + 16;
    let longest = bars
        .iter()
        .map(|b| b.value)
        .fold(f64::MIN_POSITIVE, f64::max);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{height}\" viewBox=\"0 0 {0} {height}\" font-family=\"sans-serif\" font-size=\"13\">\n",
        LEFT + WIDTH + RIGHT
    );
    svg.push_str("<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n");
    let mut text = |x: usize, y: usize, style: &str, words: &str| {
        // Writing to a String cannot fail.
        let _ = writeln!(
            svg,
            "<text x=\"{x}\" y=\"{y}\" {style}>{}</text>",
            escape(words)
        );
    };
    text(
        16,
        26,
        "font-size=\"16\" font-weight=\"bold\"",
        &format!("{title} ({unit})"),
    );
    for (row, bar) in bars.iter().enumerate() {
        text(
            LEFT - 8,
            TOP + ROW * row + 15,
            "text-anchor=\"end\"",
            &bar.label,
        );
        let end = LEFT + (bar.value / longest * WIDTH as f64).round() as usize;
        text(end + 6, TOP + ROW * row + 15, "", &significant(bar.value));
    }
    for (row, bar) in bars.iter().enumerate() {
        let (y, length) = (TOP + ROW * row + 3, bar.value / longest * WIDTH as f64);
        let colour = COLOURS[bar.series % COLOURS.len()];
        let _ = writeln!(
            svg,
            "<rect x=\"{LEFT}\" y=\"{y}\" width=\"{length:.1}\" height=\"{}\" fill=\"{colour}\"/>",
            ROW - 6
        );
    }
    svg.push_str("</svg>\n");
    svg
}

/// Three digits that matter.
pub(crate) fn significant(value: f64) -> String {
    let digits = if value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.digits$}")
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_bar_fills_the_width_and_others_are_in_proportion() {
        let bar = |label: &str, value| Bar {
            label: label.into(),
            value,
            series: 0,
        };
        let svg = chart("a < b", "tok/s", &[bar("x", 10.0), bar("y & z", 2.5)]);
        assert!(
            svg.contains("width=\"460.0\"") && svg.contains("width=\"115.0\""),
            "{svg}"
        );
        assert!(
            svg.contains("a &lt; b (tok/s)") && svg.contains("y &amp; z"),
            "{svg}"
        );
        assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
    }

    #[test]
    fn no_bars_and_zero_bars_make_a_chart_without_nonsense() {
        for bars in [
            vec![],
            vec![Bar {
                label: "x".into(),
                value: 0.0,
                series: 0,
            }],
        ] {
            let svg = chart("t", "u", &bars);
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }

    #[test]
    fn numbers_keep_three_digits() {
        assert_eq!(
            [
                significant(1234.5),
                significant(12.345),
                significant(1.2345)
            ],
            ["1234", "12.3", "1.23"]
        );
    }
}
