//! Files generated from the definition of the command line: completions for shells, and pages for `man`.

use crate::agent;
use crate::cli::Shell;
use crate::cli::help::{command, shown};
use crate::terminal::{print, print_exactly};
use anyhow::{Context as _, Result};
use clap::Command;
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
    print_exactly(&String::from_utf8_lossy(&text))?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the `--help` of a command.
pub(crate) fn help(words: &[String]) -> Result<ExitCode> {
    let mut command = shown();
    for word in words {
        let below = command.find_subcommand(word).cloned();
        command = below.with_context(|| {
            format!("there is no command `{}`; see `skidder --help`", words.join(" "))
        })?;
    }
    print(&command.render_help().to_string())?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the page of the program; or writes one for it and for each of its commands into a directory.
pub(crate) fn man(directory: Option<&Path>) -> Result<ExitCode> {
    let Some(directory) = directory else {
        let mut page = Vec::new();
        clap_mangen::Man::new(visible()).render(&mut page).context("cannot make the page")?;
        print_exactly(&String::from_utf8_lossy(&page))?;
        return Ok(ExitCode::SUCCESS);
    };
    std::fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(visible(), directory))
        .with_context(|| format!("cannot write pages into `{}`", directory.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// The command line without the commands that are not shown.
fn visible() -> Command {
    let whole = command();
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
