//! Every dependency's licence is a permissive one from a list.

use cargo_metadata::Metadata;

use super::Finding;

/// SPDX names that may be used without asking anybody.
const ALLOWED: [&str; 12] = [
    "MIT",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "0BSD",
    "BSL-1.0",
    "CC0-1.0",
    "Unlicense",
    "Unicode-3.0",
    "MIT-0",
];

/// Exceptions that only add permissions.
const EXCEPTIONS: [&str; 1] = ["LLVM-exception"];

/// Packages whose licence is missing or not allowed.
pub(crate) fn check(metadata: &Metadata) -> Vec<Finding> {
    let used = |package: &&cargo_metadata::Package| {
        metadata
            .resolve
            .as_ref()
            .is_none_or(|graph| graph.nodes.iter().any(|node| node.id == package.id))
    };
    let mut findings = Vec::new();
    for package in metadata.packages.iter().filter(used) {
        let place = format!("{} {}", package.name, package.version);
        match &package.license {
            Some(expression) if allowed(expression) => {}
            Some(expression) => findings.push(Finding::new(
                place,
                format!("licence `{expression}` is not in the list of xtask/src/tidy/licences.rs"),
            )),
            None => findings.push(Finding::new(place, "states no licence")),
        }
    }
    findings
}

/// Whether an SPDX expression can be satisfied with allowed licences. The old spelling `A/B` means `A OR B`.
fn allowed(expression: &str) -> bool {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    any(&mut rest) == Some(true) && rest.is_empty()
}

/// `all (OR all)*`; `None` for an expression that cannot be read.
fn any(words: &mut &[&str]) -> Option<bool> {
    let mut holds = all(words)?;
    while let ["OR", rest @ ..] = *words {
        *words = rest;
        holds |= all(words)?;
    }
    Some(holds)
}

/// `one (AND one)*`.
fn all(words: &mut &[&str]) -> Option<bool> {
    let mut holds = one(words)?;
    while let ["AND", rest @ ..] = *words {
        *words = rest;
        holds &= one(words)?;
    }
    Some(holds)
}

/// A name, a name `WITH` an exception, or an expression in parentheses.
fn one(words: &mut &[&str]) -> Option<bool> {
    match *words {
        ["(", rest @ ..] => {
            *words = rest;
            let holds = any(words)?;
            let [")", rest @ ..] = *words else {
                return None;
            };
            *words = rest;
            Some(holds)
        }
        [name, "WITH", exception, rest @ ..] => {
            *words = rest;
            Some(ALLOWED.contains(name) && EXCEPTIONS.contains(exception))
        }
        [name, rest @ ..] => {
            *words = rest;
            Some(ALLOWED.contains(name))
        }
        [] => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissive_expressions_pass() {
        for good in [
            "MIT",
            "MIT OR Apache-2.0",
            "MIT/Apache-2.0",
            "Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "MIT OR Apache-2.0 OR LGPL-2.1-or-later",
            "MIT AND (GPL-3.0-only OR ISC)",
        ] {
            assert!(allowed(good), "{good}");
        }
    }

    #[test]
    fn others_and_unreadable_ones_do_not() {
        for bad in [
            "GPL-3.0-only",
            "MIT AND GPL-3.0-only",
            "Apache-2.0 WITH Other-exception",
            "",
            "MIT OR",
            "(MIT",
            "MIT)",
            "MIT Apache-2.0",
        ] {
            assert!(!allowed(bad), "{bad}");
        }
    }
}
