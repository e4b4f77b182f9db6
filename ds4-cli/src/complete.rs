//! `ds4 completions` and `ds4 man`, from the definition of the command line.

use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use clap::{Command, CommandFactory};
use ds4_gguf::NewFile;

use crate::args::{Args, Completions, Man};

pub(crate) fn completions(args: &Completions) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "ds4", &mut script);
    std::io::stdout().lock().write_all(&script)?;
    Ok(())
}

pub(crate) fn man(args: &Man) -> Result<()> {
    let folder = &args.folder;
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let mut command = Args::command().disable_help_subcommand(true);
    // Gives commands the names that manuals have them by: `ds4-inspect`.
    command.build();
    page(&command, folder)
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
