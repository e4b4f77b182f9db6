//! Where `unsafe` may stand: a file listed here, and nowhere else.

use super::Finding;
use super::source::Source;

/// Files, or folders when they end in `/`, that may contain `unsafe`, each for one reason.
pub(crate) const ALLOWED: [&str; 18] = [
    "examples/hip_vector_add.rs",       // launches a kernel
    "ds4-gguf/src/map.rs",              // maps a file
    "ds4-quant/src/simd/",              // vector instructions
    "ds4-hip/src/buffer.rs",            // owns device memory
    "ds4-hip/src/call.rs",              // reads texts of the HIP library
    "ds4-hip/src/device.rs",            // calls the HIP library
    "ds4-hip/src/event.rs",             // owns a HIP handle
    "ds4-hip/src/graph.rs",             // owns HIP handles
    "ds4-hip/src/host.rs",              // lends pinned memory
    "ds4-hip/src/launch.rs",            // hands arguments to kernels
    "ds4-hip/src/load.rs",              // loads the HIP library
    "ds4-hip/src/module.rs",            // owns a HIP handle
    "ds4-hip/src/stream.rs",            // owns a HIP handle
    "ds4-hip/src/sys/",                 // bindings
    "ds4-hip/tests/",                   // launches kernels; look-alikes
    "ds4-hip/testing/",                 // look-alikes: C interfaces and memory by address
    "ds4-model/src/hip/activations.rs", // launches kernels
    "ds4-model/src/hip/linear.rs",      // launches kernels
];

/// `unsafe` outside the list, and rows of the list that no longer need to be there.
pub(crate) fn check(sources: &[Source], allowed: &[&str]) -> Vec<Finding> {
    let covers = |rule: &str, path: &str| {
        if rule.ends_with('/') {
            path.starts_with(rule)
        } else {
            path == rule
        }
    };
    let with_unsafe: Vec<(&str, usize)> = sources
        .iter()
        .filter_map(|s| Some((s.path.as_str(), s.line_of_word("unsafe")?)))
        .collect();
    let mut findings: Vec<Finding> = with_unsafe
        .iter()
        .filter(|(path, _)| !allowed.iter().any(|rule| covers(rule, path)))
        .map(|(path, line)| {
            Finding::new(
                format!("{path}:{line}"),
                "`unsafe` outside the files listed in xtask/src/tidy/unsafe_files.rs",
            )
        })
        .collect();
    for rule in allowed {
        if !with_unsafe.iter().any(|(path, _)| covers(rule, path)) {
            findings.push(Finding::new(*rule, "is listed in xtask/src/tidy/unsafe_files.rs but contains no `unsafe`; remove the row"));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::File;

    fn file(path: &str, text: &str) -> Source {
        Source::new(File {
            path: path.into(),
            text: text.into(),
        })
    }

    #[test]
    fn unsafe_is_found_only_outside_the_list() {
        let sources = [
            file("a/map.rs", "unsafe {}"),
            file("a/simd/avx2.rs", "unsafe {}"),
            file("a/other.rs", "\nunsafe {}"),
        ];
        let findings = check(&sources, &["a/map.rs", "a/simd/"]);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].place, "a/other.rs:2");
    }

    #[test]
    fn a_row_without_unsafe_is_reported() {
        assert_eq!(check(&[file("a.rs", "fn f() {}")], &["a.rs"]).len(), 1);
    }
}
