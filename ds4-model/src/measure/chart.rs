//! Charts as SVG text: horizontal bars, and lines over a common axis.

use std::fmt::Write;

/// One bar.
pub struct Bar {
    /// What was measured.
    pub label: String,
    /// Its value, in the chart's unit; not negative.
    pub value: f64,
    /// Bars of one series share a colour.
    pub series: usize,
}

const ROW: usize = 22;
const LEFT: usize = 330;
const WIDTH: usize = 460;
const RIGHT: usize = 110;
const TOP: usize = 48;
const COLOURS: [&str; 4] = ["#3b6ea8", "#c8743c", "#5a9a5a", "#8a6aa8"];

/// A chart of `bars` under `title`, values in `unit`, scaled so that the longest bar fills the width.
#[must_use]
pub fn bars(title: &str, unit: &str, bars: &[Bar]) -> String {
    let height = TOP + ROW * bars.len() + 16;
    let longest = bars
        .iter()
        .map(|b| b.value)
        .fold(f64::MIN_POSITIVE, f64::max);
    let mut svg = open(LEFT + WIDTH + RIGHT, height, &format!("{title} ({unit})"));
    for (row, bar) in bars.iter().enumerate() {
        text(
            &mut svg,
            LEFT - 8,
            TOP + ROW * row + 15,
            "text-anchor=\"end\"",
            &bar.label,
        );
        let end = LEFT + (bar.value / longest * WIDTH as f64).round() as usize;
        text(
            &mut svg,
            end + 6,
            TOP + ROW * row + 15,
            "",
            &significant(bar.value),
        );
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

/// A line of [`lines`].
pub struct Line {
    /// What was measured, with its unit.
    pub label: String,
    /// Places on the common axis, ascending, with what was measured there; not negative.
    pub points: Vec<(f64, f64)>,
}

/// Height of a line's own panel, and of the space between two.
const PANEL: usize = 180;
const GAP: usize = 56;
/// Room for the numbers beside a panel.
const SCALE: usize = 80;
/// Lines across a panel.
const STEPS: usize = 4;

/// A chart of `series` under `title`: one above the other, each in its own scale that begins at 0, over the axis `along`.
#[must_use]
pub fn lines(title: &str, along: &str, series: &[Line]) -> String {
    let height = TOP + (PANEL + GAP) * series.len() + 16;
    let most = |values: &mut dyn Iterator<Item = f64>| values.fold(f64::MIN_POSITIVE, f64::max);
    let end = most(&mut series.iter().flat_map(|l| l.points.iter().map(|p| p.0)));
    let mut svg = open(SCALE + WIDTH + RIGHT, height, title);
    for (at, line) in series.iter().enumerate() {
        let top = TOP + GAP / 2 + (PANEL + GAP) * at;
        let colour = COLOURS[at % COLOURS.len()];
        text(
            &mut svg,
            SCALE,
            top - 10,
            "font-weight=\"bold\"",
            &line.label,
        );
        let highest = most(&mut line.points.iter().map(|p| p.1));
        for step in 0..=STEPS {
            let (share, y) = (
                step as f64 / STEPS as f64,
                top + PANEL - PANEL * step / STEPS,
            );
            // Writing to a String cannot fail.
            let _ = writeln!(
                svg,
                "<line x1=\"{SCALE}\" y1=\"{y}\" x2=\"{}\" y2=\"{y}\" stroke=\"#dddddd\"/>",
                SCALE + WIDTH
            );
            let label = significant(highest * share);
            text(&mut svg, SCALE - 8, y + 4, "text-anchor=\"end\"", &label);
            let (x, label) = (SCALE + WIDTH * step / STEPS, format!("{:.0}", end * share));
            text(
                &mut svg,
                x,
                top + PANEL + 18,
                "text-anchor=\"middle\"",
                &label,
            );
        }
        text(&mut svg, SCALE + WIDTH + 24, top + PANEL + 18, "", along);
        let mut path = String::new();
        for (x, y) in &line.points {
            let x = SCALE as f64 + x / end * WIDTH as f64;
            let y = (top + PANEL) as f64 - y / highest * PANEL as f64;
            let _ = write!(path, "{x:.1},{y:.1} ");
            let _ = writeln!(
                svg,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>"
            );
        }
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            path.trim_end()
        );
    }
    svg.push_str("</svg>\n");
    svg
}

/// The beginning of a document, up to its title.
fn open(width: usize, height: usize, title: &str) -> String {
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"13\">\n"
    );
    svg.push_str("<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n");
    text(
        &mut svg,
        16,
        26,
        "font-size=\"16\" font-weight=\"bold\"",
        title,
    );
    svg
}

fn text(svg: &mut String, x: usize, y: usize, style: &str, words: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(
        svg,
        "<text x=\"{x}\" y=\"{y}\" {style}>{}</text>",
        escape(words)
    );
}

/// Three digits that matter.
#[must_use]
pub fn significant(value: f64) -> String {
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
        let svg = bars("a < b", "tok/s", &[bar("x", 10.0), bar("y & z", 2.5)]);
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
            let svg = super::bars("t", "u", &bars);
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }

    #[test]
    fn every_line_has_its_own_scale_and_all_have_the_same_axis() {
        let line = |label: &str, points: &[(f64, f64)]| Line {
            label: label.into(),
            points: points.to_vec(),
        };
        let svg = lines(
            "m",
            "tokens",
            &[
                line("a & b", &[(50.0, 10.0), (100.0, 5.0)]),
                line("c", &[(100.0, 0.5)]),
            ],
        );
        // The whole width is 100, the height of the first panel 10.
        assert!(svg.contains("points=\"310.0,76.0 540.0,166.0\""), "{svg}");
        assert!(svg.contains("points=\"540.0,312.0\""), "{svg}");
        assert!(svg.contains("a &amp; b") && !svg.contains("a & b"), "{svg}");
    }

    #[test]
    fn lines_without_points_make_a_chart_without_nonsense() {
        let line = |points: &[(f64, f64)]| Line {
            label: "x".into(),
            points: points.to_vec(),
        };
        for series in [vec![], vec![line(&[])], vec![line(&[(0.0, 0.0)])]] {
            let svg = lines("t", "u", &series);
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
