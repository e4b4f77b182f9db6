//! Ctrl-C and SIGTERM: nothing is left but what can be gone on with.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use ds4_gguf::{Metadata, Plan, TensorType};
use tempfile::TempDir;

use super::{DEMO, command, failed, mxfp4, names, said};

/// Wait for `condition`, while the child lives.
fn wait(child: &mut Child, condition: impl Fn() -> bool) {
    while !condition() {
        assert!(child.try_wait().unwrap().is_none(), "ended too early");
        std::thread::yield_now();
    }
}

fn signal(child: &Child, signal: &str) {
    let pid = child.id().to_string();
    assert!(
        Command::new("kill")
            .args([signal, &pid])
            .status()
            .unwrap()
            .success()
    );
}

/// A model whose one tensor is a hole of four gigabytes: a copy of it takes longer than a signal.
fn hole(path: &Path) {
    let mut plan = Plan::new(Metadata::new()).unwrap();
    plan.add("hole", &[1 << 30], TensorType::F32).unwrap();
    let file = std::fs::File::create(path).unwrap();
    std::io::Write::write_all(&mut &file, &plan.header().unwrap()).unwrap();
    file.set_len(plan.file_bytes().unwrap()).unwrap();
}

#[test]
fn ctrl_c_and_sigterm_leave_no_file() {
    let folder = TempDir::new().unwrap();
    hole(&folder.path().join("m.gguf"));
    let before = names(&folder);
    for (arguments, partial) in [
        (
            &["quantize", DEMO, "out.gguf", "-r", "q4k", "-t", "1"] as &[&str],
            "out.gguf.partial",
        ),
        (
            &["split", "m.gguf", "out", "--max-size", "1G"],
            "out-00001-of-00001.gguf.partial",
        ),
        (&["merge", "m.gguf", "out.gguf"], "out.gguf.partial"),
        (
            &["edit", "m.gguf", "--set", "general.name=string:x"],
            "m.gguf.partial",
        ),
    ] {
        for name in ["-INT", "-TERM"] {
            let mut child = command(&folder, arguments)
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            wait(&mut child, || folder.path().join(partial).exists());
            signal(&child, name);
            let output = child.wait_with_output().unwrap();
            let errors = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{arguments:?}: {errors}");
            assert!(errors.contains("stopped"), "{arguments:?}: {errors}");
            assert_eq!(names(&folder), before, "{arguments:?} {name}");
        }
    }
}

#[test]
fn ctrl_c_and_sigterm_in_place_can_be_resumed() {
    for name in ["-INT", "-TERM"] {
        in_place_can_be_resumed(name);
    }
}

fn in_place_can_be_resumed(name: &str) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("m.gguf");
    mxfp4(&path, 60_000);
    said(&folder, &["requant", "m.gguf", "new.gguf"]);
    let mut child = command(&folder, &["requant", "m.gguf", "--in-place", "-t", "1"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let marked = || {
        let mut magic = [0; 4];
        let mut file = std::fs::File::open(&path).unwrap();
        std::io::Read::read_exact(&mut file, &mut magic).unwrap();
        &magic == b"GGRQ"
    };
    wait(&mut child, marked);
    signal(&child, name);
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("--resume"), "{errors}");
    let (code, errors) = failed(&folder, &["inspect", "m.gguf"]);
    assert_eq!(code, 3);
    assert!(errors.contains("ds4 requant --resume"), "{errors}");
    let (code, errors) = failed(&folder, &["requant", "m.gguf", "--in-place"]);
    assert_eq!(code, 3);
    assert!(errors.contains("unfinished"), "{errors}");
    said(&folder, &["requant", "m.gguf", "--resume"]);
    let read = |name| std::fs::read(folder.path().join(name)).unwrap();
    assert!(read("new.gguf") == read("m.gguf"));
    assert_eq!(names(&folder), ["m.gguf", "new.gguf"]);
}
