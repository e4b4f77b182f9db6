//! The tools: what the model is told about each, and what a call does.

mod bounded;
mod declared;
mod edit;
mod files;
mod jobs;
mod search;
mod shell;

use std::cell::RefCell;

use anyhow::{Context, Result, bail, ensure};
use ds4_model::chat::Tool;
use serde_json::{Map, Value};

use super::sandbox::Sandbox;
use crate::exit::Usage;
pub(super) use bounded::Limits;
pub(super) use declared::Declared;
use jobs::Jobs;

/// Arguments of a call.
pub(super) type Arguments = Map<String, Value>;

type Run = fn(&Toolbox, &Arguments) -> Result<String>;

/// A tool of this program: its name, what the model is told, and what it does.
const BUILT_IN: [(&str, &str, Run); 8] = [
    ("read", files::READ, files::read),
    ("list", files::LIST, files::list),
    ("search", search::SEARCH, search::search),
    ("edit", edit::EDIT, edit::edit),
    ("write", files::WRITE, files::write),
    ("bash", shell::BASH, shell::bash),
    ("bash_status", shell::STATUS, shell::status),
    ("bash_stop", shell::STOP, shell::stop),
];

/// The tools that a model may call.
pub(super) struct Toolbox {
    pub(super) sandbox: Sandbox,
    pub(super) limits: Limits,
    built_in: Vec<(&'static str, Run)>,
    declared: Vec<Declared>,
    tools: Vec<Tool>,
    jobs: RefCell<Jobs>,
}

impl Toolbox {
    /// The built-in tools `names`, and `declared` ones.
    pub(super) fn new(
        sandbox: Sandbox,
        limits: Limits,
        names: &[String],
        declared: Vec<Declared>,
    ) -> Result<Self> {
        let (mut built_in, mut tools) = (Vec::new(), Vec::<Tool>::new());
        for name in names.iter().filter(|name| *name != "none") {
            let (name, json, run) = BUILT_IN.iter().find(|(n, ..)| n == name).ok_or_else(|| {
                let known = BUILT_IN.map(|(name, ..)| name).join(", ");
                let wrong = format!("there is no tool `{name}`, expected some of {known}, or none");
                Usage(wrong)
            })?;
            built_in.push((*name, *run));
            tools.push(Tool::new(json).context("a built-in declaration")?);
        }
        tools.extend(declared.iter().map(|d| d.tool.clone()));
        for (at, tool) in tools.iter().enumerate() {
            let twice = tools[..at].iter().any(|t| t.name() == tool.name());
            ensure!(!twice, "two tools are called `{}`", tool.name());
        }
        Ok(Self {
            sandbox,
            limits,
            built_in,
            declared,
            tools,
            jobs: RefCell::default(),
        })
    }

    /// What the model is told.
    pub(super) fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// Do what a call says; a failure is a result too, for the model to read.
    pub(super) fn call(&self, name: &str, arguments: &str) -> String {
        let result = self.run(name, arguments);
        let text = result.unwrap_or_else(|error| format!("error: {error:#}"));
        self.limits.cut(&text)
    }

    fn run(&self, name: &str, arguments: &str) -> Result<String> {
        let arguments: Arguments = serde_json::from_str(arguments).context("the arguments")?;
        if let Some((_, run)) = self.built_in.iter().find(|(n, _)| *n == name) {
            return run(self, &arguments);
        }
        if let Some(declared) = self.declared.iter().find(|d| d.tool.name() == name) {
            return declared.run(self, &arguments);
        }
        let known: Vec<&str> = self.tools.iter().map(Tool::name).collect();
        bail!("there is no tool `{name}`; there are {}", known.join(", "))
    }
}

/// A text that must be there.
fn text<'a>(arguments: &'a Arguments, name: &str) -> Result<&'a str> {
    match arguments.get(name) {
        Some(Value::String(text)) => Ok(text),
        Some(other) => bail!("`{name}` is {other}, expected a text"),
        None => bail!("`{name}` is missing"),
    }
}

/// A whole number that may be there; models also write it as a text.
fn number(arguments: &Arguments, name: &str) -> Result<Option<usize>> {
    let value = match arguments.get(name) {
        None | Some(Value::Null) => return Ok(None),
        Some(value) => value,
    };
    let number = match value {
        Value::String(text) => text.trim().parse().ok(),
        other => other.as_u64().map(|n| n as usize),
    };
    number
        .map(Some)
        .with_context(|| format!("`{name}` is {value}, expected a whole number"))
}

/// A yes or no that may be there.
fn flag(arguments: &Arguments, name: &str) -> Result<bool> {
    match arguments.get(name) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(Value::String(text)) if text == "true" || text == "false" => Ok(text == "true"),
        Some(other) => bail!("`{name}` is {other}, expected true or false"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::time::{Duration, Instant};

    fn toolbox() -> (tempfile::TempDir, Toolbox) {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.txt"), "one\ntwo\nthree\ntwo\n").unwrap();
        fs::create_dir(folder.path().join("sub")).unwrap();
        fs::write(folder.path().join("sub/b.rs"), "fn Two() {}\n").unwrap();
        fs::write(folder.path().join("sub/c.bin"), b"two\0two").unwrap();
        let names = BUILT_IN.map(|(name, ..)| name.to_owned());
        let limits = Limits {
            output: 2000,
            seconds: 20,
        };
        let sandbox = Sandbox::new(folder.path()).unwrap();
        let toolbox = Toolbox::new(sandbox, limits, &names, Vec::new()).unwrap();
        (folder, toolbox)
    }

    fn call(toolbox: &Toolbox, name: &str, arguments: Value) -> String {
        toolbox.call(name, &arguments.to_string())
    }

    use serde_json::json;

    #[test]
    fn every_declaration_names_its_tool_and_parameters() {
        let (_folder, toolbox) = toolbox();
        for (tool, (name, ..)) in toolbox.tools().iter().zip(BUILT_IN) {
            assert_eq!(tool.name(), name);
            let json: Value = serde_json::from_str(tool.json()).unwrap();
            for required in json["parameters"]["required"].as_array().unwrap() {
                let name = required.as_str().unwrap();
                assert!(!tool.parameter_types(name).is_empty(), "{json}");
            }
        }
    }

    #[test]
    fn files_are_read_listed_and_written() {
        let (folder, toolbox) = toolbox();
        assert_eq!(
            call(
                &toolbox,
                "read",
                json!({"path": "a.txt", "start_line": 2, "max_lines": 2})
            ),
            "lines 2 to 3 of 4\ntwo\nthree\n"
        );
        assert_eq!(
            call(&toolbox, "read", json!({"path": "a.txt"})),
            "one\ntwo\nthree\ntwo\n"
        );
        assert_eq!(call(&toolbox, "list", json!({})), "a.txt  18\nsub/\n");
        let said = call(
            &toolbox,
            "write",
            json!({"path": "x/y/new.txt", "content": "hi"}),
        );
        assert_eq!(said, "wrote 2 bytes to x/y/new.txt");
        assert_eq!(
            fs::read_to_string(folder.path().join("x/y/new.txt")).unwrap(),
            "hi"
        );
        for (name, arguments, words) in [
            ("read", json!({"path": "../a"}), "error: "),
            ("read", json!({"path": "sub"}), "is a folder"),
            ("read", json!({"path": "sub/c.bin"}), "is no text"),
            ("read", json!({"path": 1}), "`path` is 1, expected a text"),
            (
                "read",
                json!({"path": "a.txt", "start_line": 9}),
                "has 4 lines",
            ),
            ("list", json!({"path": "/"}), "is outside of"),
            (
                "write",
                json!({"path": "../new", "content": ""}),
                "is outside of",
            ),
            (
                "write",
                json!({"path": "sub", "content": ""}),
                "is a folder",
            ),
            ("fly", json!({}), "there is no tool `fly`"),
        ] {
            let said = call(&toolbox, name, arguments);
            assert!(
                said.starts_with("error: ") && said.contains(words),
                "{said}"
            );
        }
    }

    #[test]
    fn an_edit_needs_exactly_one_place() {
        let (folder, toolbox) = toolbox();
        let edit = |old: &str, new: &str| {
            call(
                &toolbox,
                "edit",
                json!({"path": "a.txt", "old": old, "new": new}),
            )
        };
        assert!(edit("two", "2").contains("is there 2 times"));
        assert!(edit("four", "4").contains("is not there"));
        assert!(edit("", "4").contains("is empty"));
        let read = || fs::read_to_string(folder.path().join("a.txt")).unwrap();
        assert_eq!(read(), "one\ntwo\nthree\ntwo\n");
        assert_eq!(edit("one\ntwo", "1\n2"), "changed lines 1 to 2 of a.txt");
        assert_eq!(read(), "1\n2\nthree\ntwo\n");
        // Places that overlap are two places.
        fs::write(folder.path().join("a.txt"), "aaa").unwrap();
        assert!(edit("aa", "b").contains("is there 2 times"));
    }

    #[test]
    fn texts_are_searched_for_in_files_that_are_text() {
        let (_folder, toolbox) = toolbox();
        let search = |arguments| call(&toolbox, "search", arguments);
        assert_eq!(
            search(json!({"query": "two"})),
            "a.txt:2: two\na.txt:4: two\nsub/b.rs:1: fn Two() {}\n"
        );
        assert_eq!(
            search(json!({"query": "two", "case_sensitive": true, "glob": "*.rs"})),
            "nothing found"
        );
        assert_eq!(
            search(json!({"query": "^t.o$", "regex": true, "max_results": 1})),
            "a.txt:2: two\n(more was left out)\n"
        );
        assert!(search(json!({"query": "(", "regex": true})).starts_with("error: "));
        assert!(search(json!({"query": "x", "path": ".."})).contains("is outside of"));
    }

    #[test]
    fn commands_run_in_the_folder_with_their_output_bounded() {
        let (_folder, toolbox) = toolbox();
        let bash = |command: &str| call(&toolbox, "bash", json!({"command": command}));
        assert_eq!(bash("cat a.txt | head -1; echo err >&2"), "one\nerr\n");
        assert_eq!(bash("true"), "(no output)");
        assert_eq!(bash("echo no; exit 3"), "no\n(exit code 3)\n");
        let long = bash("yes 0123456789 | head -c 100000");
        assert!(long.len() < 2200, "{}", long.len());
        assert!(long.contains("bytes left out"), "{long}");
    }

    /// Not gone, nor a zombie that nobody has collected yet; a killed process needs a moment for either.
    fn lives(pid: &str) -> bool {
        let status = fs::read_to_string(format!("/proc/{}/status", pid.trim()));
        let status = status.unwrap_or_default();
        let state = status.lines().find(|l| l.starts_with("State:"));
        state.is_some_and(|l| !l.contains('Z') && !l.contains('X'))
    }

    /// The child of a child sleeps longer than anybody waits; its output ends when it does.
    #[test]
    fn a_timeout_ends_the_whole_process_group() {
        let (folder, toolbox) = toolbox();
        let command = "sh -c 'echo $$ > pid; exec sleep 1000' & wait";
        let start = Instant::now();
        let said = call(
            &toolbox,
            "bash",
            json!({"command": command, "timeout_sec": 1}),
        );
        assert!(said.contains("stopped after 1 s"), "{said}");
        assert!(start.elapsed() < Duration::from_secs(15));
        let pid = fs::read_to_string(folder.path().join("pid")).unwrap();
        while lives(&pid) {
            assert!(start.elapsed() < Duration::from_secs(15), "{pid} lives");
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_command_becomes_a_job_that_is_looked_at_and_ends() {
        let (folder, toolbox) = toolbox();
        let command = "echo one; while [ ! -e go ]; do sleep 0.02; done; echo two; exit 3";
        let arguments = json!({"command": command, "refresh_sec": 1});
        let said = call(&toolbox, "bash", arguments);
        assert!(said.starts_with("one\n(job 1 is still running"), "{said}");
        let said = call(&toolbox, "bash_status", json!({"job": 1}));
        assert!(said.starts_with("(job 1 is running, "), "{said}");
        fs::write(folder.path().join("go"), "").unwrap();
        let said = call(
            &toolbox,
            "bash_status",
            json!({"job": 1, "refresh_sec": 20}),
        );
        assert_eq!(said, "two\n(job 1 has ended: exit code 3)\n");
        let said = call(&toolbox, "bash_status", json!({"job": 1}));
        assert_eq!(said, "error: there is no job 1; none is running");
        // One that ends in time is none.
        let said = call(
            &toolbox,
            "bash",
            json!({"command": "echo a", "refresh_sec": 20}),
        );
        assert_eq!(said, "a\n");
    }

    #[test]
    fn a_job_ends_when_it_is_told_to_or_its_time_is_over() {
        let (_folder, toolbox) = toolbox();
        let bash = |command: &str, seconds: u64| {
            let arguments = json!({"command": command, "refresh_sec": 0, "timeout_sec": seconds});
            call(&toolbox, "bash", arguments)
        };
        let start = Instant::now();
        assert!(bash("echo a; sleep 1000", 600).contains("job 1 is still running"));
        assert!(bash("sleep 1000", 1).contains("job 2 is still running"));
        // The model may write numbers as texts.
        let said = call(&toolbox, "bash_stop", json!({"job": "1"}));
        assert!(said.ends_with("(job 1 has ended: stopped)\n"), "{said}");
        let said = call(&toolbox, "bash_stop", json!({"job": 1}));
        assert_eq!(said, "error: there is no job 1; there are 2");
        let said = call(
            &toolbox,
            "bash_status",
            json!({"job": 2, "refresh_sec": 20}),
        );
        assert_eq!(said, "(job 2 has ended: stopped after 1 s)\n");
        assert!(start.elapsed() < Duration::from_secs(15));
    }

    #[test]
    fn jobs_end_with_the_agent_and_are_not_too_many() {
        let (folder, toolbox) = toolbox();
        let command = json!({"command": "echo $$ >> pids; sleep 1000", "refresh_sec": 0});
        for _ in 0..16 {
            assert!(call(&toolbox, "bash", command.clone()).contains("is still running"));
        }
        let said = call(&toolbox, "bash", command);
        assert!(said.contains("16 jobs are running"), "{said}");
        let lines = || {
            let text = fs::read_to_string(folder.path().join("pids"));
            text.unwrap_or_default()
                .lines()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let start = Instant::now();
        while lines().len() < 16 {
            assert!(start.elapsed() < Duration::from_secs(15), "{:?}", lines());
            std::thread::yield_now();
        }
        drop(toolbox);
        while lines().iter().any(|pid| lives(pid)) {
            assert!(start.elapsed() < Duration::from_secs(15), "{:?}", lines());
            std::thread::yield_now();
        }
    }

    /// What a command leaves in the background holds its output open, and must not hold up the agent.
    #[test]
    fn what_a_command_leaves_behind_is_ended_with_it() {
        let (_folder, toolbox) = toolbox();
        let start = Instant::now();
        let said = call(
            &toolbox,
            "bash",
            json!({"command": "sleep 1000 & echo done"}),
        );
        assert_eq!(said, "done\n");
        assert!(start.elapsed() < Duration::from_secs(15));
    }
}
