//! Loading without a GPU: a small look-alike library, built here by `rustc`, stands in for AMD's.

#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::Command;

use ds4_hip::{Error, Hip, Search, Version};
use tempfile::TempDir;

const ROCM_7: &str = "70125424";
const ROCM_6: &str = "60443483";
const ROCM_5: &str = "50221153";

/// What a look-alike returns.
struct Lookalike {
    version: &'static str,
    devices: &'static str,
    status: &'static str,
    flags: &'static [&'static str],
}

impl Lookalike {
    const fn new(version: &'static str) -> Self {
        Self {
            version,
            devices: "2",
            status: "0",
            flags: &[],
        }
    }

    /// Compile it as `folder/name`.
    fn build(&self, folder: &Path, name: &str) {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/lookalike.rs");
        let built = Command::new("rustc")
            .args([
                "--edition",
                "2024",
                "--crate-type",
                "cdylib",
                "-C",
                "panic=abort",
                "--cap-lints",
                "allow",
            ])
            .args(self.flags)
            .arg("-o")
            .arg(folder.join(name))
            .arg(source)
            .env("LOOKALIKE_VERSION", self.version)
            .env("LOOKALIKE_DEVICES", self.devices)
            .env("LOOKALIKE_STATUS", self.status)
            .output()
            .expect("rustc is there where cargo test runs");
        assert!(
            built.status.success(),
            "{}",
            String::from_utf8_lossy(&built.stderr)
        );
    }
}

fn only_in(folders: &[&Path]) -> Search {
    Search {
        library: None,
        folders: folders.iter().map(PathBuf::from).collect(),
        system: false,
    }
}

#[test]
fn a_runtime_is_found_and_answers() {
    let folder = TempDir::new().unwrap();
    Lookalike::new(ROCM_7).build(folder.path(), "libamdhip64.so.7");
    let hip = Hip::load_with(&only_in(&[folder.path()])).unwrap();
    assert_eq!(hip.path(), folder.path().join("libamdhip64.so.7"));
    assert_eq!(
        hip.version().unwrap(),
        Version {
            major: 7,
            minor: 1,
            patch: 25424
        }
    );
    assert_eq!(hip.device_count().unwrap(), 2);
}

#[test]
fn the_first_folder_wins_and_in_a_folder_the_newest() {
    let (first, second) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    Lookalike::new(ROCM_6).build(first.path(), "libamdhip64.so.6");
    Lookalike::new(ROCM_6).build(first.path(), "libamdhip64.so");
    Lookalike::new(ROCM_7).build(second.path(), "libamdhip64.so.7");
    let found = |folders: &[&Path]| {
        Hip::load_with(&only_in(folders))
            .unwrap()
            .path()
            .to_path_buf()
    };
    assert_eq!(
        found(&[first.path(), second.path()]),
        first.path().join("libamdhip64.so.6")
    );
    assert_eq!(
        found(&[second.path(), first.path()]),
        second.path().join("libamdhip64.so.7")
    );
}

#[test]
fn a_machine_without_the_runtime_gets_the_list_of_what_was_tried() {
    let folder = TempDir::new().unwrap();
    let error = Hip::load_with(&only_in(&[folder.path()])).unwrap_err();
    let Error::NotInstalled { tried } = &error else {
        panic!("{error}")
    };
    let names: Vec<_> = tried
        .iter()
        .map(|t| t.path.file_name().unwrap().to_str().unwrap())
        .collect();
    assert_eq!(
        names,
        ["libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so"]
    );
    assert!(error.to_string().contains("install ROCm 6"), "{error}");
}

#[test]
fn an_old_runtime_is_reported_with_its_version_under_either_name() {
    for name in ["libamdhip64.so.5", "libamdhip64.so"] {
        let folder = TempDir::new().unwrap();
        Lookalike::new(ROCM_5).build(folder.path(), name);
        let error = Hip::load_with(&only_in(&[folder.path()])).unwrap_err();
        assert!(
            matches!(
                &error,
                Error::TooOld {
                    found: Some(Version {
                        major: 5,
                        minor: 2,
                        ..
                    }),
                    need: 6,
                    ..
                }
            ),
            "{error}"
        );
        assert!(error.to_string().contains("5.2.21153"), "{error}");
    }
}

#[test]
fn a_file_that_is_no_library_is_named() {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("libamdhip64.so.7"), "no library").unwrap();
    let error = Hip::load_with(&only_in(&[folder.path()])).unwrap_err();
    assert!(
        matches!(&error, Error::Load { path, .. } if path.ends_with("libamdhip64.so.7")),
        "{error}"
    );
}

#[test]
fn a_library_named_by_its_path_is_the_only_one_tried() {
    let folder = TempDir::new().unwrap();
    Lookalike::new(ROCM_7).build(folder.path(), "libamdhip64.so.7");
    Lookalike::new(ROCM_6).build(folder.path(), "mine.so");
    let named = |name: &str| {
        Hip::load_with(&Search {
            library: Some(folder.path().join(name)),
            folders: vec![folder.path().to_path_buf()],
            system: true,
        })
    };
    assert_eq!(named("mine.so").unwrap().version().unwrap().major, 6);
    let error = named("other.so").unwrap_err();
    let Error::NotInstalled { tried } = &error else {
        panic!("{error}")
    };
    assert_eq!(tried.len(), 1);
    assert!(tried[0].path.ends_with("other.so"));
}

#[test]
fn a_missing_function_is_named_when_it_is_called() {
    let folder = TempDir::new().unwrap();
    Lookalike {
        flags: &["--cfg", "without_device_count"],
        ..Lookalike::new(ROCM_7)
    }
    .build(folder.path(), "libamdhip64.so.7");
    let hip = Hip::load_with(&only_in(&[folder.path()])).unwrap();
    let error = hip.device_count().unwrap_err();
    assert!(
        matches!(
            &error,
            Error::NoSymbol {
                symbol: "hipGetDeviceCount",
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn no_device_is_a_count_of_zero_and_other_statuses_are_errors() {
    let count = |status| {
        let folder = TempDir::new().unwrap();
        Lookalike {
            status,
            devices: "0",
            ..Lookalike::new(ROCM_7)
        }
        .build(folder.path(), "libamdhip64.so.7");
        Hip::load_with(&only_in(&[folder.path()]))
            .unwrap()
            .device_count()
    };
    for no_device in ["100", "101"] {
        assert_eq!(count(no_device).unwrap(), 0);
    }
    assert!(matches!(
        count("3").unwrap_err(),
        Error::Call {
            call: "hipGetDeviceCount",
            code: 3,
            ..
        }
    ));
}

#[test]
fn the_system_loader_answers_or_says_not_installed() {
    match Hip::load() {
        Ok(hip) => assert!(hip.version().unwrap().major >= 6),
        Err(error) => assert!(
            matches!(&error, Error::NotInstalled { .. } | Error::TooOld { .. }),
            "{error}"
        ),
    }
}
