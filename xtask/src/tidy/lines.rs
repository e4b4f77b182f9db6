//! File sizes: 800 lines at most, a warning above 500. One concept a file is what the limit asks for.

use super::Finding;
use super::source::Source;

const LIMIT: usize = 800;
const WARNING: usize = 500;

/// Folders of generated files, exempt from the limit.
const GENERATED: [&str; 2] = ["/generated/", "ds4-hip/src/sys/"];

/// Problems and warnings.
pub(crate) fn check(sources: &[Source]) -> (Vec<Finding>, Vec<Finding>) {
    let (mut findings, mut warnings) = (Vec::new(), Vec::new());
    for source in sources
        .iter()
        .filter(|s| !GENERATED.iter().any(|g| s.path.contains(g)))
    {
        if source.lines > LIMIT {
            findings.push(Finding::new(
                &source.path,
                format!(
                    "{} lines, at most {LIMIT}; split it by concept",
                    source.lines
                ),
            ));
        } else if source.lines > WARNING {
            warnings.push(Finding::new(
                &source.path,
                format!(
                    "{} lines; above {WARNING} look for the second concept",
                    source.lines
                ),
            ));
        }
    }
    (findings, warnings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::File;

    fn file(path: &str, lines: usize) -> Source {
        Source::new(File {
            path: path.into(),
            text: "//\n".repeat(lines),
        })
    }

    #[test]
    fn the_limit_itself_is_allowed_and_one_more_is_not() {
        let (findings, warnings) =
            check(&[file("a.rs", 800), file("b.rs", 801), file("c.rs", 500)]);
        assert_eq!(
            findings
                .iter()
                .map(|f| f.place.as_str())
                .collect::<Vec<_>>(),
            ["b.rs"]
        );
        assert_eq!(
            warnings
                .iter()
                .map(|f| f.place.as_str())
                .collect::<Vec<_>>(),
            ["a.rs"]
        );
    }

    #[test]
    fn generated_files_are_exempt() {
        let (findings, warnings) = check(&[
            file("ds4-hip/src/sys/hip.rs", 9000),
            file("ds4-model/kernels/generated/blocks.hpp", 9000),
        ]);
        assert!(findings.is_empty() && warnings.is_empty());
    }
}
