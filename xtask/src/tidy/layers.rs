//! The layer table as code: which crate may use which.
//!
//! Internal edges are exact: one that is missing here fails, and so does a row that is no longer true.
//! The lists of outside crates are what a layer may use; it need not use all of them. Development dependencies are free.

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, Metadata};

use super::Finding;

/// One row of the table.
pub(crate) struct Layer {
    /// The package.
    pub(crate) name: &'static str,
    /// Exactly the workspace packages it depends on.
    pub(crate) ours: &'static [&'static str],
    /// The outside packages it may depend on.
    pub(crate) outside: &'static [&'static str],
}

/// From the bottom up.
pub(crate) const LAYERS: [Layer; 13] = [
    Layer {
        name: "ds4-gguf",
        ours: &[],
        outside: &["bytemuck", "memmap2", "thiserror"],
    },
    Layer {
        name: "ds4-quant",
        ours: &["ds4-gguf"],
        outside: &[
            "bytemuck",
            "crc32fast",
            "globset",
            "half",
            "rayon",
            "serde",
            "thiserror",
            "toml",
        ],
    },
    Layer {
        name: "ds4-hip",
        ours: &[],
        outside: &["bytemuck", "libloading", "thiserror", "tracing"],
    },
    Layer {
        name: "ds4-hip-compile",
        ours: &[],
        outside: &["thiserror"],
    },
    Layer {
        name: "ds4-hip-testing",
        ours: &["ds4-hip"],
        outside: &["libc"],
    },
    Layer {
        name: "ds4-hip-cpu",
        ours: &["ds4-hip-testing"],
        outside: &["libloading"],
    },
    Layer {
        name: "ds4-hip-cuda",
        ours: &["ds4-hip"],
        outside: &["libloading"],
    },
    Layer {
        name: "ds4-hip-gfx1151",
        ours: &["ds4-hip-testing"],
        outside: &["thiserror"],
    },
    Layer {
        name: "ds4-stream",
        ours: &["ds4-gguf"],
        outside: &["io-uring", "rustix", "thiserror", "tracing"],
    },
    Layer {
        name: "ds4-model",
        ours: &["ds4-gguf", "ds4-hip", "ds4-quant"],
        outside: &[
            "bytemuck",
            "crc32fast",
            "half",
            "llguidance",
            "minijinja",
            "minijinja-contrib",
            "rayon",
            "regex",
            "serde",
            "serde_json",
            "thiserror",
            "tokenizers",
            "tracing",
        ],
    },
    Layer {
        name: "ds4-cli",
        ours: &["ds4-gguf", "ds4-model", "ds4-quant"],
        outside: &[
            "anyhow",
            "axum",
            "clap",
            "clap_complete",
            "clap_mangen",
            "futures-util",
            "globset",
            "hyper",
            "hyper-util",
            "indicatif",
            "prometheus-client",
            "regex",
            "rustix",
            "rustyline",
            "serde",
            "serde_json",
            "signal-hook",
            "thiserror",
            "tokio",
            "tower-http",
            "ureq",
        ],
    },
    Layer {
        name: "ds4-examples",
        ours: &[
            "ds4-gguf",
            "ds4-hip",
            "ds4-hip-compile",
            "ds4-model",
            "ds4-quant",
        ],
        outside: &[
            "anyhow",
            "clap",
            "ctrlc",
            "indicatif",
            "rustyline",
            "serde_json",
        ],
    },
    Layer {
        name: "xtask",
        ours: &["ds4-gguf", "ds4-hip-compile", "ds4-model", "ds4-quant"],
        outside: &[
            "anyhow",
            "cargo_metadata",
            "clap",
            "half",
            "regex",
            "serde",
            "serde_json",
            "toml",
        ],
    },
];

/// For each workspace package: the packages it depends on in a build, ours and outside.
pub(crate) type Edges = BTreeMap<String, (BTreeSet<String>, BTreeSet<String>)>;

/// The edges as the manifests declare them, all features included.
pub(crate) fn edges(metadata: &Metadata) -> Edges {
    let packages = metadata.workspace_packages();
    let members: BTreeSet<&str> = packages.iter().map(|p| p.name.as_str()).collect();
    let mut edges = Edges::new();
    for package in &packages {
        let used = package
            .dependencies
            .iter()
            .filter(|d| d.kind != DependencyKind::Development)
            .map(|d| d.name.clone());
        let (ours, outside) = used.partition(|name| members.contains(name.as_str()));
        edges.insert(package.name.to_string(), (ours, outside));
    }
    edges
}

/// Where the manifests and the table disagree.
pub(crate) fn check(edges: &Edges, layers: &[Layer]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, (ours, outside)) in edges {
        let Some(layer) = layers.iter().find(|l| l.name == name) else {
            findings.push(Finding::new(name, "has no row in xtask/src/tidy/layers.rs"));
            continue;
        };
        for other in ours.iter().filter(|o| !layer.ours.contains(&o.as_str())) {
            findings.push(Finding::new(
                name,
                format!("must not depend on {other}: the layer table has no such edge"),
            ));
        }
        for other in layer.ours.iter().filter(|o| !ours.contains(**o)) {
            findings.push(Finding::new(
                name,
                format!("does not depend on {other}, the layer table says it does"),
            ));
        }
        for other in outside
            .iter()
            .filter(|o| !layer.outside.contains(&o.as_str()))
        {
            findings.push(Finding::new(
                name,
                format!("must not depend on {other}: not in its list of outside crates"),
            ));
        }
    }
    for layer in layers.iter().filter(|l| !edges.contains_key(l.name)) {
        findings.push(Finding::new(
            layer.name,
            "has a row in the layer table but is no package of the workspace",
        ));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: [Layer; 2] = [
        Layer {
            name: "low",
            ours: &[],
            outside: &["half"],
        },
        Layer {
            name: "high",
            ours: &["low"],
            outside: &[],
        },
    ];

    fn graph(rows: &[(&str, &[&str], &[&str])]) -> Edges {
        let set = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect();
        rows.iter()
            .map(|(name, ours, outside)| ((*name).to_owned(), (set(ours), set(outside))))
            .collect()
    }

    #[test]
    fn the_table_as_it_is_passes_with_or_without_the_outside_crates() {
        assert!(
            check(
                &graph(&[("low", &[], &["half"]), ("high", &["low"], &[])]),
                &TABLE
            )
            .is_empty()
        );
        assert!(
            check(
                &graph(&[("low", &[], &[]), ("high", &["low"], &[])]),
                &TABLE
            )
            .is_empty()
        );
    }

    #[test]
    fn every_disagreement_is_one_finding() {
        let upward = graph(&[("low", &["high"], &[]), ("high", &["low"], &[])]);
        let stale = graph(&[("low", &[], &[]), ("high", &[], &[])]);
        let outside = graph(&[("low", &[], &["tokio"]), ("high", &["low"], &[])]);
        let unknown = graph(&[
            ("low", &[], &[]),
            ("high", &["low"], &[]),
            ("new", &[], &[]),
        ]);
        let gone = graph(&[("low", &[], &[])]);
        for edges in [upward, stale, outside, unknown, gone] {
            assert_eq!(check(&edges, &TABLE).len(), 1, "{edges:?}");
        }
    }
}
