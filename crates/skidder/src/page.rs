//! The command that opens a browser with the page, and its token.

use crate::cli::{Global, PageArguments};
use crate::page_token::{TOKEN_FILE, asks_for_token, read, write_new};
use crate::system::System;
use crate::terminal::{eprint, print};
use anyhow::{Context as _, Result, bail};
use skidder_observe::Endpoint;
use skidder_os::Fs;
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// Name of a page beside it that redirects the browser: other users cannot read it, unlike a command line.
const DOOR_FILE: &str = "page.html";

/// `skidder page`.
pub(crate) fn page(what: PageArguments, global: &Global, system: &System) -> Result<ExitCode> {
    let program = match crate::status::running(global, system)? {
        Ok(program) => program,
        Err(data) => bail!(
            "{}hint: give the same `-c` and `--path.data` as it has",
            crate::status::not_running(&data)
        ),
    };
    let (host, port) = match &program.http.endpoint {
        Endpoint::Tcp { host, port } => (browsable(host), port),
        Endpoint::Unix(path) => {
            let path = path.display();
            bail!(
                "the page is on the Unix socket `{path}`, which no browser opens\nhint: `ssh -L 5066:{path} HOST` \
                 leads http://localhost:5066/ui/ there, or set `http.host: localhost`"
            );
        }
    };
    let scheme = if program.http.tls.is_some() { "https" } else { "http" };
    let mut url = format!("{scheme}://{host}:{port}/ui/");
    if asks_for_token(&program.http) {
        let path = program.data.join(TOKEN_FILE);
        let token = read(&*system.fs, &path, None).with_context(|| {
            let path = path.display();
            format!(
                "cannot read `{path}`, the token that opens the page\nhint: run this as the user that runs skidder, or set `http.auth.token`"
            )
        })?;
        // The part after `#` is never sent, so it is in no log.
        url = format!("{url}#token={}", token.reveal());
    }
    print(&format!("{url}\n"))?;
    if !what.print && io::stdout().is_terminal() {
        match open_browser(&*system.fs, &program.data, &url) {
            Ok(true) => {}
            Ok(false) => eprint("there is no desktop here: open this address in a browser\n"),
            Err(error) => eprint(&format!("no browser was opened ({error}): open this address\n")),
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A host name for the browser, from the address of the listener.
fn browsable(host: &str) -> String {
    match host {
        "0.0.0.0" | "::" => "localhost".to_owned(),
        host if host.contains(':') => format!("[{host}]"),
        host => host.to_owned(),
    }
}

/// Opens the address in a browser; `false` if there is no desktop.
fn open_browser(fs: &dyn Fs, data: &Path, url: &str) -> io::Result<bool> {
    let has_desktop =
        ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    if !has_desktop {
        return Ok(false);
    }
    let door: PathBuf = data.join(DOOR_FILE);
    let text = format!(
        "<!doctype html><meta charset=\"utf-8\"><meta name=\"referrer\" content=\"no-referrer\"><title>skidder</title>\
         <meta http-equiv=\"refresh\" content=\"0;url={url}\">\n"
    );
    write_new(fs, &door, text.as_bytes())?;
    let door = fs.canonicalize(&door)?;
    let mut opener = Command::new("xdg-open");
    let quiet = opener.arg(&door).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let status = quiet.status()?;
    if status.success() { Ok(true) } else { Err(io::Error::other(format!("xdg-open: {status}"))) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skidder_os::RealFs;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    #[test]
    fn the_door_of_a_browser_is_for_its_owner_alone() {
        let place = tempfile::tempdir().unwrap();
        let door = place.path().join(DOOR_FILE);
        std::fs::write(&door, "old").unwrap();
        std::fs::set_permissions(&door, std::fs::Permissions::from_mode(0o644)).unwrap();
        write_new(&RealFs, &door, b"new").unwrap();
        assert_eq!(
            (
                std::fs::metadata(&door).unwrap().mode() & 0o777,
                std::fs::read_to_string(&door).unwrap().as_str()
            ),
            (0o600, "new")
        );
        assert_eq!(browsable("::1"), "[::1]");
    }
}
