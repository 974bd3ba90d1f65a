//! `skidder top`: the running program in the terminal, refreshed in place.
//!
//! One thread queries its endpoint, this one draws and reads keys, so that a slow answer does not delay a key.

mod screen;

use crate::cli::{Global, Top};
use crate::logging;
use crate::status::{Look, NOT_RUNNING, Sample, not_running, running};
use crate::system::System;
use crate::terminal::print;
use anyhow::{Context as _, Result, bail};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use screen::Screen;
use skidder_observe::HttpConfig;
use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;
use tracing::Level;

/// How long to wait for a key before checking for an answer.
const KEY_PATIENCE: Duration = Duration::from_millis(50);

/// Shows it until a key ends it.
pub(crate) fn top(what: Top, global: &Global, system: &System) -> Result<ExitCode> {
    // A log would tear the screen.
    logging::start(Level::ERROR);
    if !(std::io::stdin().is_terminal() && std::io::stdout().is_terminal()) {
        bail!("`top` needs a terminal; `skidder status` does not");
    }
    let program = match running(global, system)? {
        Ok(program) => program,
        Err(data) => {
            print(&not_running(&data))?;
            return Ok(ExitCode::from(NOT_RUNNING));
        }
    };
    let (send, answers) = channel();
    // It ends when the receiver is gone.
    let (stop, stopped) = channel::<()>();
    let http = program.http.clone();
    let asker = std::thread::Builder::new()
        .name("asker".to_owned())
        .spawn(move || ask(&http, what, &send, &stopped))
        .context("cannot start a thread")?;
    let mut terminal = ratatui::try_init().context("cannot draw in this terminal")?;
    let shown = show(&mut terminal, &answers);
    ratatui::try_restore().context("cannot restore the terminal")?;
    drop(stop);
    // It may be waiting for an answer, which is not needed any more.
    drop(asker);
    shown?;
    Ok(ExitCode::SUCCESS)
}

/// Queries again and again, and sends the results.
fn ask(http: &HttpConfig, what: Top, send: &Sender<Result<Look>>, stopped: &Receiver<()>) {
    let mut last = None;
    loop {
        let answer = Sample::ask(http, what.every, what.behind).map(|sample| {
            let look = Look::of(last.as_ref().unwrap_or(&sample), &sample);
            last = Some(sample);
            look
        });
        if send.send(answer).is_err()
            || stopped.recv_timeout(what.every) != Err(RecvTimeoutError::Timeout)
        {
            return;
        }
    }
}

fn show(terminal: &mut DefaultTerminal, answers: &Receiver<Result<Look>>) -> Result<()> {
    let mut screen = Screen::default();
    let mut changed = true;
    loop {
        while let Ok(answer) = answers.try_recv() {
            screen.take(answer);
            changed = true;
        }
        if changed {
            terminal.draw(|frame| screen.draw(frame)).context("cannot draw in this terminal")?;
        }
        changed = false;
        if event::poll(KEY_PATIENCE).context("cannot read from this terminal")? {
            changed = true;
            match event::read().context("cannot read from this terminal")? {
                Event::Key(key) if key.kind != KeyEventKind::Release => {
                    if is_end(key) {
                        return Ok(());
                    }
                    screen.key(key.code);
                }
                // A new size is drawn again.
                _ => {}
            }
        }
    }
}

fn is_end(key: KeyEvent) -> bool {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    matches!(key.code, KeyCode::Char('q') | KeyCode::Esc)
        || (control && key.code == KeyCode::Char('c'))
}
