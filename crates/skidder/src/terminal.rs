//! Output to stdout and to the terminal.

use crate::plain;
use anyhow::{Context as _, Result};

/// Writes lines for people, or JSON, to stdout; a closed pipe is an error like any other.
pub(crate) fn print(text: &str) -> Result<()> {
    print_exactly(&plain::lines(text))
}

/// Writes a text to stdout unchanged, byte by byte.
pub(crate) fn print_exactly(text: &str) -> Result<()> {
    use std::io::Write;
    match std::io::stdout().write_all(text.as_bytes()) {
        // `| head` has seen enough.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write to the standard output"),
    }
}

/// Writes to stderr, for the user at the terminal.
#[expect(clippy::print_stderr, reason = "this is what it is for")]
pub(crate) fn eprint(text: &str) {
    eprint!("{}", plain::lines(text));
}

/// Writes to stdout, or to stderr if stdout is where the events of this kind of output go.
pub(crate) fn print_beside(output: &str, text: &str) -> Result<()> {
    if output == "console" {
        eprint(text);
        return Ok(());
    }
    print(text)
}
