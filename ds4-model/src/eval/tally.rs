//! How many were right, and how sure that is.

/// The normal deviate of a 95 % interval.
const Z: f64 = 1.959_963_984_540_054;

/// Right answers among questions asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Right answers.
    pub correct: usize,
    /// Questions asked.
    pub asked: usize,
}

impl Tally {
    /// Count one answer.
    pub fn add(&mut self, correct: bool) {
        self.correct += usize::from(correct);
        self.asked += 1;
    }

    /// Share of right answers, 0 to 1; 0 for no questions.
    #[must_use]
    pub fn accuracy(&self) -> f64 {
        if self.asked == 0 {
            0.0
        } else {
            self.correct as f64 / self.asked as f64
        }
    }

    /// Wilson's interval of 95 %: the true shares under which what was seen is no great surprise,
    /// `(p + z²/2n ± z·√(p(1−p)/n + z²/4n²)) / (1 + z²/n)`. Never beyond 0 and 1; all of it for no questions.
    ///
    /// Source: E. B. Wilson, "Probable inference, the law of succession, and statistical inference", 1927.
    #[must_use]
    pub fn interval(&self) -> (f64, f64) {
        if self.asked == 0 {
            return (0.0, 1.0);
        }
        let (n, p) = (self.asked as f64, self.accuracy());
        let spread = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
        let (middle, scale) = (p + Z * Z / (2.0 * n), 1.0 + Z * Z / n);
        let low = ((middle - spread) / scale).max(0.0);
        let high = ((middle + spread) / scale).min(1.0);
        // None or all right: the formula's end is exact, its floating point need not be.
        (
            if self.correct == 0 { 0.0 } else { low },
            if self.correct == self.asked {
                1.0
            } else {
                high
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of R's `prop.test(x, n, correct = FALSE)`, which is Wilson's interval, to four digits.
    #[test]
    fn intervals_are_those_of_the_textbook() {
        for (correct, asked, low, high) in [
            (0, 10, 0.0, 0.2775),
            (10, 10, 0.7225, 1.0),
            (5, 10, 0.2366, 0.7634),
            (81, 263, 0.2553, 0.3662),
        ] {
            let (l, h) = Tally { correct, asked }.interval();
            assert!(
                (l - low).abs() < 5e-5 && (h - high).abs() < 5e-5,
                "{correct} of {asked}: {l} {h}"
            );
        }
        assert_eq!(Tally::default().interval(), (0.0, 1.0));
    }
}
