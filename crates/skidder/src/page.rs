//! The token that opens the page, and the command that opens a browser with it.
//!
//! The page shows events, and the loopback is open to every user of the machine. So whoever wants to see them proves that they
//! may read the data directory: a token is kept there, for its owner only. It outlives a restart, so that an open page goes on;
//! without the file the next start makes another.

use crate::cli::{Global, PageArguments};
use crate::commands::{World, print, tell};
use anyhow::{Context as _, Result, bail};
use ring::rand::{SecureRandom as _, SystemRandom};
use skidder_config::Secret;
use skidder_observe::{Endpoint, HttpConfig};
use skidder_os::{FileKind, Fs, OpenMode, read_to_end, write_all_at};
use std::fmt::Write as _;
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// Name of the file with the token, in the data directory.
const TOKEN_FILE: &str = "page.token";
/// Name of a page beside it that leads a browser on: no other user sees what is in it, as they do on a command line.
const DOOR_FILE: &str = "page.html";
/// Random bytes of a token; it is written in hexadecimal digits.
const TOKEN_BYTES: usize = 32;
/// The owner alone may read it.
const FILE_MODE: u32 = 0o600;

/// The token of the data directory, where events need one: without `http.auth`, on a port. It is made if there is none that can
/// be trusted. If it cannot be written events are not shown, and the log says why.
pub(crate) fn token(fs: &dyn Fs, data: &Path, http: &HttpConfig) -> Option<Secret> {
    if !asks_for_token(http) {
        return None;
    }
    let path = data.join(TOKEN_FILE);
    let owner = rustix::process::geteuid().as_raw();
    match read(fs, &path, Some(owner)).map_or_else(|_| make(fs, &path), Ok) {
        Ok(token) => Some(token),
        Err(error) => {
            tracing::warn!(
                path = %path.display(), %error,
                "the token that opens the page cannot be written: events are not shown there; mend that, or set `http.auth.token`"
            );
            None
        }
    }
}

/// The token that is kept, for who may read it.
pub(crate) fn kept_token(fs: &dyn Fs, data: &Path) -> Option<Secret> {
    read(fs, &data.join(TOKEN_FILE), None).ok()
}

fn asks_for_token(http: &HttpConfig) -> bool {
    http.enabled && !http.auth.is_set() && matches!(http.endpoint, Endpoint::Tcp { .. })
}

/// The token in a file, if nobody but its owner can have read or written it, who is `owner` if that is given.
fn read(fs: &dyn Fs, path: &Path, owner: Option<u32>) -> io::Result<Secret> {
    let file = fs.open(path)?;
    let metadata = file.metadata()?;
    let wrong = |what: &str| Err(io::Error::new(io::ErrorKind::InvalidData, what.to_owned()));
    let is_owned = owner.is_none_or(|owner| owner == metadata.uid);
    if metadata.kind != FileKind::Regular || metadata.mode & 0o077 != 0 || !is_owned {
        return wrong("others than its owner may have read it");
    }
    let text = String::from_utf8_lossy(&read_to_end(&*file, 2 * TOKEN_BYTES + 1)?).into_owned();
    let token = text.trim_end();
    if token.len() != 2 * TOKEN_BYTES || !token.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return wrong("it is no token");
    }
    Ok(Secret::new(token))
}

/// Makes another.
fn make(fs: &dyn Fs, path: &Path) -> io::Result<Secret> {
    let mut bytes = [0; TOKEN_BYTES];
    SystemRandom::new().fill(&mut bytes).map_err(|_| io::Error::other("no random bytes"))?;
    let mut token = String::new();
    for byte in bytes {
        write!(token, "{byte:02x}").expect("a string takes everything");
    }
    write_new(fs, path, format!("{token}\n").as_bytes())?;
    Ok(Secret::new(token))
}

/// Writes a file that nobody else can have made, nor a link put there.
fn write_new(fs: &dyn Fs, path: &Path, bytes: &[u8]) -> io::Result<()> {
    match fs.remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = fs.open_write(path, OpenMode::New, FILE_MODE)?;
    write_all_at(&*file, bytes, 0)?;
    file.sync()
}

/// `skidder page`.
pub(crate) fn page(what: PageArguments, global: &Global, world: &World) -> Result<ExitCode> {
    let parts = match crate::status::running(global, world)? {
        Ok(parts) => parts,
        Err(data) => bail!(
            "{}hint: give the same `-c` and `--path.data` as it has",
            crate::status::not_running(&data)
        ),
    };
    let (host, port) = match &parts.http.endpoint {
        Endpoint::Tcp { host, port } => (browsable(host), port),
        Endpoint::Unix(path) => {
            let path = path.display();
            bail!(
                "the page is on the Unix socket `{path}`, which no browser opens\nhint: `ssh -L 5066:{path} HOST` \
                 leads http://localhost:5066/ui/ there, or set `http.host: localhost`"
            );
        }
    };
    let mut url = format!("http://{host}:{port}/ui/");
    if asks_for_token(&parts.http) {
        let path = parts.data.join(TOKEN_FILE);
        let token = read(&*world.fs, &path, None).with_context(|| {
            let path = path.display();
            format!(
                "cannot read `{path}`, the token that opens the page\nhint: run this as the user that runs skidder, or set `http.auth.token`"
            )
        })?;
        // What is behind `#` is never sent, so it is in no log.
        url = format!("{url}#token={}", token.reveal());
    }
    print(&format!("{url}\n"))?;
    if !what.print && io::stdout().is_terminal() {
        match open_browser(&*world.fs, &parts.data, &url) {
            Ok(true) => {}
            Ok(false) => tell("there is no desktop here: open this address in a browser\n"),
            Err(error) => tell(&format!("no browser was opened ({error}): open this address\n")),
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A name under which this machine is asked, for the address that is listened on.
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
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn a_token_is_kept_and_one_that_others_may_have_read_is_made_anew() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join(TOKEN_FILE);
        let http = HttpConfig { enabled: true, ..HttpConfig::default() };
        let look = || token(&RealFs, place.path(), &http).unwrap().reveal().to_owned();
        let first = look();
        assert_eq!((first.len(), mode(&path)), (64, 0o600));
        assert_eq!(look(), first, "it outlives a restart");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let second = look();
        assert!(second != first && mode(&path) == 0o600, "others may know the first one");
        std::fs::write(&path, "x").unwrap();
        let third = look();
        assert!(third != second && third.len() == 64);
        // A link that somebody put there is replaced, and what it leads to stays.
        let other = place.path().join("other");
        std::fs::write(&other, "kept").unwrap();
        std::fs::remove_file(&path).unwrap();
        symlink(&other, &path).unwrap();
        assert!(look() != third && !path.is_symlink());
        assert_eq!(std::fs::read_to_string(other).unwrap(), "kept");
    }

    #[test]
    fn no_token_is_made_where_nobody_is_asked_for_it() {
        let place = tempfile::tempdir().unwrap();
        let on = HttpConfig { enabled: true, ..HttpConfig::default() };
        let off = HttpConfig::default();
        let socket = HttpConfig { endpoint: Endpoint::Unix("/s".into()), ..on.clone() };
        let mut set = on;
        set.auth.token = Some(Secret::new("long-enough"));
        for http in [off, socket, set] {
            assert!(token(&RealFs, place.path(), &http).is_none());
        }
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[test]
    fn the_door_of_a_browser_is_for_its_owner_alone() {
        let place = tempfile::tempdir().unwrap();
        let door = place.path().join(DOOR_FILE);
        std::fs::write(&door, "old").unwrap();
        std::fs::set_permissions(&door, std::fs::Permissions::from_mode(0o644)).unwrap();
        write_new(&RealFs, &door, b"new").unwrap();
        assert_eq!((mode(&door), std::fs::read_to_string(&door).unwrap().as_str()), (0o600, "new"));
        assert_eq!(browsable("::1"), "[::1]");
    }
}
