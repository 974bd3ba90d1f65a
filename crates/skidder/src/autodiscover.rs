//! `skidder autodiscover explain`: every container or pod that was seen, the rules that matched it and why, and the inputs
//! that came of it. Asks the running program.

use crate::cli::{AutodiscoverCommand, Global};
use crate::endpoint;
use crate::logging;
use crate::plain::plain;
use crate::status::{NOT_RUNNING, not_running, running};
use crate::system::System;
use crate::terminal::{eprint, print};
use anyhow::{Context as _, Result};
use skidder_autodiscover::Explanation;
use std::process::ExitCode;
use tracing::Level;

/// Nothing that was seen has the name.
const NOTHING: u8 = 1;

/// Runs a command of `skidder autodiscover`.
pub(crate) fn dispatch(
    what: &AutodiscoverCommand,
    global: &Global,
    system: &System,
) -> Result<ExitCode> {
    let AutodiscoverCommand::Explain { names, json } = what;
    logging::start(Level::WARN);
    let program = match running(global, system)? {
        Ok(program) => program,
        Err(data) => {
            eprint(&not_running(&data));
            return Ok(ExitCode::from(NOT_RUNNING));
        }
    };
    let answer = endpoint::get(&program.http, "/autodiscover")?;
    let mut explanation: Explanation =
        serde_json::from_value(answer).context("the running skidder is of another version")?;
    if !names.is_empty() {
        for provider in &mut explanation.providers {
            provider.objects.retain(|object| {
                names.iter().any(|name| object.id.starts_with(name) || object.name.contains(name))
            });
        }
    }
    let is_empty = explanation.providers.iter().all(|provider| provider.objects.is_empty());
    if is_empty && !names.is_empty() && !json {
        eprint("nothing that was seen has this name\n");
    } else if *json {
        print(&format!("{:#}\n", serde_json::to_value(&explanation)?))?;
    } else {
        print(&plain_lines(&explanation.to_string()))?;
    }
    Ok(if is_empty && !names.is_empty() { ExitCode::from(NOTHING) } else { ExitCode::SUCCESS })
}

/// What others wrote, such as annotations, controls no terminal.
fn plain_lines(text: &str) -> String {
    text.lines().flat_map(|line| [plain(line), "\n".into()]).collect()
}
