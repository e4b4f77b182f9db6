//! A conversation line by line.

use std::fs;
use std::io::Write;

use anyhow::{Context, Result};

use super::about;
use super::command::{HELP, Line, parse};
use super::talk::Talk;
use crate::interrupt;
use crate::prompt::{AGAIN, Input, Interruptions, Prompt};
use crate::thinking::Thinking;

/// With a terminal: an editor with history, which takes what is pasted as one question.
pub(super) fn on_terminal(mut talk: Talk) -> Result<()> {
    interrupt::at_prompt();
    let mut prompt = Prompt::on_terminal("ds4> ")?.context("standard input is no terminal")?;
    talk.screen.note("/help lists commands")?;
    converse(&mut talk, &mut || prompt.read())
}

/// Answer what `read` brings until it ends. What goes wrong with one line is said, and the conversation goes on.
pub(super) fn converse(talk: &mut Talk, read: &mut dyn FnMut() -> Result<Input>) -> Result<()> {
    let mut interruptions = Interruptions::default();
    loop {
        let line = match read()? {
            Input::End => return Ok(()),
            Input::Interrupt if interruptions.pressed() => return Ok(()),
            Input::Interrupt => {
                talk.screen.note(AGAIN)?;
                continue;
            }
            Input::Line(line) => line,
        };
        interrupt::clear();
        match parse(&line) {
            Ok(Line::Quit) => return Ok(()),
            Ok(line) => {
                if let Err(error) = carry_out(talk, &line) {
                    talk.screen.note(&format!("error: {error:#}"))?;
                }
            }
            Err(why) => talk.screen.note(&why)?,
        }
        interruptions.other(interrupt::is_set());
        interrupt::clear();
    }
}

fn carry_out(talk: &mut Talk, line: &Line<'_>) -> Result<()> {
    match line {
        Line::Empty | Line::Quit => Ok(()),
        Line::Ask(question) => talk.answer(question),
        Line::Help => Ok(talk.screen.errors.write_all(HELP.as_bytes())?),
        Line::Think => think(talk, Thinking::On),
        Line::ThinkMax => think(talk, Thinking::Max),
        Line::NoThink => think(talk, Thinking::Off),
        Line::Context(tokens) => {
            talk.set_context(tokens.get())?;
            let about = about(talk.dialogue.engine());
            Ok(talk.screen.note(&about)?)
        }
        Line::Read(path) => {
            let read = || super::limited(fs::File::open(path)?);
            let question = read().with_context(|| (*path).to_owned())?;
            talk.answer(&question)
        }
        Line::Status => status(talk),
        Line::Reset => {
            talk.dialogue.reset();
            Ok(talk.screen.note("forgotten")?)
        }
    }
}

fn think(talk: &mut Talk, thinking: Thinking) -> Result<()> {
    talk.think(thinking)?;
    let now = talk.thinking().name();
    Ok(talk.screen.note(&format!("thinking: {now}"))?)
}

fn status(talk: &mut Talk) -> Result<()> {
    let dialogue = &talk.dialogue;
    let sampler = &dialogue.sampler;
    let lines = format!(
        "{}\n{} messages, {} tokens known of {}\nthinking: {}; temperature {}, top-p {}, min-p {}, top-k {}; at most {} tokens an answer",
        about(dialogue.engine()),
        dialogue.messages().len(),
        dialogue.tokens(),
        dialogue.engine().context(),
        talk.thinking().name(),
        sampler.temperature,
        sampler.top_p,
        sampler.min_p,
        sampler.top_k,
        dialogue.limit,
    );
    Ok(talk.screen.note(&lines)?)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::io;
    use std::rc::Rc;
    use std::sync::{Mutex, PoisonError};

    use clap::Parser;

    use super::super::screen::Screen;
    use super::*;
    use crate::args::Args;

    const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/ds4-demo.gguf");

    /// Ctrl-C is one for the whole process.
    static ALONE: Mutex<()> = Mutex::new(());

    /// A stream that can be looked at, and that presses Ctrl-C when `press` says so.
    #[derive(Clone)]
    struct Shown {
        text: Rc<RefCell<Vec<u8>>>,
        press: fn(&str) -> bool,
    }

    impl Shown {
        fn new(press: fn(&str) -> bool) -> Self {
            let text = Rc::default();
            Self { text, press }
        }

        fn take(&self) -> String {
            String::from_utf8(self.text.take()).unwrap()
        }
    }

    impl io::Write for Shown {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.text.borrow_mut().extend_from_slice(bytes);
            if (self.press)(&String::from_utf8_lossy(&self.text.borrow())) {
                interrupt::press();
            }
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What a conversation of `inputs` shows: answers, and the rest. All inputs but the last must be taken.
    fn conversation(flags: &[&str], press: fn(&str) -> bool, inputs: Vec<Input>) -> [String; 2] {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        interrupt::clear();
        let line = [&["ds4", "-m", DEMO, "--temp", "0"], flags].concat();
        let args = Args::try_parse_from(line).unwrap().chat;
        let engine = super::super::open(&args, args.running.prefill_chunk.get()).unwrap();
        let (out, errors) = (Shown::new(press), Shown::new(|_| false));
        let screen = Screen::into(Box::new(out.clone()), Box::new(errors.clone()));
        let mut talk = Talk::new(&engine, &args, screen).unwrap();
        let mut inputs = inputs.into_iter();
        converse(&mut talk, &mut || Ok(inputs.next().unwrap_or(Input::End))).unwrap();
        assert_eq!(inputs.count(), 0);
        interrupt::clear();
        [out.take(), errors.take()]
    }

    fn lines(lines: &[&str]) -> Vec<Input> {
        let line = |line: &&str| Input::Line((*line).to_owned());
        lines.iter().map(line).collect()
    }

    #[test]
    fn a_conversation_goes_its_way() {
        let folder = tempfile::TempDir::new().unwrap();
        let file = folder.path().join("italy");
        fs::write(&file, "What is the capital of Italy?").unwrap();
        let inputs = lines(&[
            "What is the capital of France?",
            "/nothink",
            &format!("/read {}", file.display()),
            "/status",
            "/ctx 64",
            "/think-max",
            "/reset",
            "/status",
            "/dance",
            "/read /no/where",
            "",
            "/help",
            "/quit",
        ]);
        let [answers, rest] = conversation(&[], |_| false, inputs);
        assert_eq!(
            answers,
            "The capital of France is Paris.\nThe capital of Italy is Rome.\n"
        );
        for words in [
            "<think>The user asks for the capital of France.",
            "</think>\n[prompt 16 tokens",
            "thinking: off",
            "4 messages",
            "64 tokens of context",
            "needs a context of 393216 tokens, this one has 64",
            "forgotten",
            "0 messages",
            "no command `/dance`",
            "error: /no/where",
            HELP,
        ] {
            assert!(rest.contains(words), "{words}: {rest}");
        }
    }

    #[test]
    fn ctrl_c_stops_an_answer_and_a_second_one_leaves() {
        let inputs = || {
            let mut inputs = lines(&["What is the capital of France?"]);
            inputs.push(Input::Interrupt);
            inputs
        };
        let pressed = |text: &str| text.contains("capital");
        let [answers, rest] = conversation(&["--nothink"], pressed, inputs());
        assert_eq!(answers, "The capital\n");
        assert!(!rest.contains("again leaves"), "{rest}");
        // Without an answer to stop it takes two.
        let mut more = inputs();
        more.push(Input::Interrupt);
        let [answers, rest] = conversation(&["--nothink"], |_| false, more);
        assert_eq!(answers, "The capital of France is Paris.\n");
        assert!(rest.ends_with("Ctrl-C again leaves\n"), "{rest}");
        // What is typed between them counts.
        let inputs = vec![
            Input::Interrupt,
            Input::Line("/nothink".to_owned()),
            Input::Interrupt,
            Input::Line("/quit".to_owned()),
        ];
        let [_, rest] = conversation(&[], |_| false, inputs);
        assert_eq!(rest.matches("again leaves").count(), 2, "{rest}");
    }

    #[test]
    fn what_has_no_room_is_said_and_forgotten() {
        let long = "What is the capital of France? ".repeat(20);
        let inputs = lines(&[&long, "/status"]);
        let [answers, rest] = conversation(&["-c", "64"], |_| false, inputs);
        assert_eq!(answers, "");
        assert!(
            rest.contains("do not fit the context of 64") && rest.contains("0 messages"),
            "{rest}"
        );
    }
}
