//! `ds4 completions` and `ds4 man`, for all programs, from the definitions of their command lines.

use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use clap::{Command, CommandFactory};
use ds4_gguf::NewFile;

use crate::args::{Args, Completions, Man};
use crate::{agent, eval, frontier, server};

/// The command lines of all programs. `ds4-bench` is a page of `ds4 bench` too; that of the program, which comes later, stays.
fn programs() -> [Command; 5] {
    [
        Args::command(),
        server::command(),
        frontier::command(),
        eval::command(),
        agent::command(),
    ]
}

pub(crate) fn completions(args: &Completions) -> Result<()> {
    let mut script = Vec::new();
    let is_wanted = |command: &Command| command.get_name() == args.program;
    // The parser of the command line knows the same names.
    if let Some(mut command) = programs().into_iter().find(is_wanted) {
        clap_complete::generate(args.shell, &mut command, &args.program, &mut script);
    }
    std::io::stdout().lock().write_all(&script)?;
    Ok(())
}

pub(crate) fn man(args: &Man) -> Result<()> {
    let folder = &args.folder;
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    for command in programs() {
        let mut command = command.disable_help_subcommand(true);
        // Gives commands the names that manuals have them by: `ds4-inspect`.
        command.build();
        page(&command, folder)?;
    }
    Ok(())
}

/// The page of `command`, and those of its commands.
fn page(command: &Command, folder: &Path) -> Result<()> {
    let page = clap_mangen::Man::new(command.clone());
    let mut text = Vec::new();
    page.render(&mut text)?;
    let mut file = NewFile::create(&folder.join(page.get_filename()), true)?;
    file.write_all(&text)?;
    file.publish()?;
    command
        .get_subcommands()
        .try_for_each(|command| self::page(command, folder))
}
