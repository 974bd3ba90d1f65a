//! What is made of the definition of the command line: completions for shells, and pages for `man`.

use crate::agent;
use crate::cli::{CommandLine, Shell};
use crate::commands::print;
use anyhow::{Context as _, Result};
use clap::{Command, CommandFactory as _};
use std::path::Path;
use std::process::ExitCode;

/// The program's name on the command line.
const NAME: &str = "skidder";

/// Prints the completions for a shell.
pub(crate) fn completion(shell: Shell) -> Result<ExitCode> {
    let shell = match shell {
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Zsh => clap_complete::Shell::Zsh,
        Shell::Fish => clap_complete::Shell::Fish,
    };
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut visible(), NAME, &mut text);
    print(&String::from_utf8_lossy(&text))?;
    Ok(ExitCode::SUCCESS)
}

/// Writes a page for the program and for each of its commands into a directory.
pub(crate) fn man(directory: &Path) -> Result<ExitCode> {
    clap_mangen::generate_to(visible(), directory)
        .with_context(|| format!("cannot write pages into `{}`", directory.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// The command line without the commands that are not shown.
fn visible() -> Command {
    let whole = CommandLine::command();
    let shown: Vec<Command> =
        whole.get_subcommands().filter(|command| !command.is_hide_set()).cloned().collect();
    let mut visible = Command::new(NAME);
    if let Some(about) = whole.get_about() {
        visible = visible.about(about.clone());
    }
    let arguments: Vec<clap::Arg> = whole.get_arguments().cloned().collect();
    visible
        .version(agent::VERSION_TEXT)
        .disable_help_subcommand(true)
        .args(arguments)
        .subcommands(shown)
}
