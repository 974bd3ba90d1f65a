//! Where lines go: stderr, the journal behind it, syslog.

use crate::config::Format;
use crate::line::Line;
use crate::text::Texts;
use jiff::tz::TimeZone;
use std::fs::File;
use std::io::{self, IsTerminal as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tracing::Level;

/// Where syslog listens, in the order in which they are tried.
pub(crate) const SYSLOG_PATHS: [&str; 3] = ["/dev/log", "/var/run/syslog", "/var/run/log"];
/// `LOCAL0`, as Filebeat.
const FACILITY: u8 = 16;
/// How long syslog may take for a message.
const SYSLOG_WAIT: Duration = Duration::from_secs(1);
/// Bytes that are kept of a message that is too long for syslog.
const SYSLOG_BYTES: usize = 4096;

/// The stderr that the program was started with, whatever is put in its place later.
#[derive(Debug)]
pub(crate) struct Stderr {
    /// `None` if it is closed.
    file: Option<File>,
    /// It leads to the journal, which takes the level from the beginning of a line.
    is_journal: bool,
    /// Text for a terminal; else lines are JSON.
    texts: Option<Mutex<Texts>>,
}

impl Stderr {
    /// The stderr of this process.
    pub(crate) fn of_process(format: Format) -> Self {
        let is_terminal = io::stderr().is_terminal();
        let is_text = match format {
            Format::Auto => is_terminal,
            Format::Json => false,
            Format::Text => true,
        };
        let texts =
            || Mutex::new(Texts::new(TimeZone::system(), is_terminal, is_terminal && may_colour()));
        let file = io::stderr().as_fd().try_clone_to_owned().map(File::from).ok();
        let is_journal = file.as_ref().is_some_and(is_journal);
        Self { file, is_journal, texts: is_text.then(texts) }
    }

    pub(crate) fn write(&self, lines: &[Line]) {
        let mut text = String::new();
        for line in lines {
            if self.is_journal {
                text.push_str(&format!("<{}>", severity(line.level)));
            }
            match &self.texts {
                Some(texts) => {
                    let mut texts = texts.lock().unwrap_or_else(PoisonError::into_inner);
                    text.push_str(&texts.text(line));
                }
                None => text.push_str(&line.json()),
            }
        }
        if let Some(mut file) = self.file.as_ref() {
            // There is no place to report that stderr has no reader.
            drop(file.write_all(text.as_bytes()));
        }
    }
}

/// Whether a terminal takes colours, and its user wants them: <https://no-color.org>.
fn may_colour() -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    !is_set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|terminal| terminal != "dumb")
}

/// Whether systemd said that a file is the journal: <https://systemd.io/JOURNAL_NATIVE_PROTOCOL>.
fn is_journal(file: &File) -> bool {
    let expected = std::env::var("JOURNAL_STREAM").unwrap_or_default();
    file.metadata().is_ok_and(|found| expected == format!("{}:{}", found.dev(), found.ino()))
}

/// The file that stderr leads to, if it is a regular one.
pub fn stderr_file() -> Option<PathBuf> {
    let file = File::from(io::stderr().as_fd().try_clone_to_owned().ok()?);
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    std::fs::read_link("/proc/self/fd/2").ok()
}

/// The severity of RFC 5424.
fn severity(level: Level) -> u8 {
    match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        Level::DEBUG | Level::TRACE => 7,
    }
}

/// The syslog of this machine, by its socket.
#[derive(Debug)]
pub(crate) struct Syslog {
    paths: Vec<PathBuf>,
    zone: TimeZone,
    socket: Option<UnixDatagram>,
}

impl Syslog {
    /// Connects with the first line.
    pub(crate) fn new(paths: &[impl AsRef<Path>], zone: TimeZone) -> Self {
        let paths = paths.iter().map(|path| path.as_ref().to_owned()).collect();
        Self { paths, zone, socket: None }
    }

    /// Sends a line. A daemon that was started again is connected to again.
    pub(crate) fn write(&mut self, line: &Line) -> io::Result<()> {
        let message = self.message(line);
        if let Some(socket) = &self.socket
            && send(socket, &message).is_ok()
        {
            return Ok(());
        }
        self.socket = None;
        let socket = self.connect()?;
        send(&socket, &message)?;
        self.socket = Some(socket);
        Ok(())
    }

    fn connect(&self) -> io::Result<UnixDatagram> {
        let socket = UnixDatagram::unbound()?;
        socket.set_write_timeout(Some(SYSLOG_WAIT))?;
        let mut error = io::Error::from(io::ErrorKind::NotFound);
        for path in &self.paths {
            match socket.connect(path) {
                Ok(()) => return Ok(socket),
                Err(refused) => error = refused,
            }
        }
        Err(error)
    }

    /// The format of local programs: RFC 3164 without a host.
    fn message(&self, line: &Line) -> String {
        let priority = FACILITY * 8 + severity(line.level);
        let time = crate::calendar::at(line.time, &self.zone);
        let time = time.strftime("%b %e %H:%M:%S").to_string();
        format!("<{priority}>{time} skidder[{}]: {}", std::process::id(), line.short())
    }
}

fn send(socket: &UnixDatagram, message: &str) -> io::Result<()> {
    match socket.send(message.as_bytes()) {
        // Too long for the daemon: its beginning is better than nothing.
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::MSGSIZE.raw_os_error()) => {
            let end = message.floor_char_boundary(SYSLOG_BYTES);
            socket.send(&message.as_bytes()[..end]).map(drop)
        }
        sent => sent.map(drop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skidder_os::Timestamp;

    #[test]
    fn syslog_gets_a_message_a_line_and_is_found_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let missing = directory.path().join("missing");
        let mut syslog = Syslog::new(&[&missing, &path], TimeZone::UTC);
        let line = |level| Line::own(level, Timestamp(1_767_323_045_000_000_000), "text");
        assert!(syslog.write(&line(Level::INFO)).is_err(), "nobody listens yet");
        for _ in 0..2 {
            let server = UnixDatagram::bind(&path).unwrap();
            let receive = || {
                let mut buffer = [0; 8192];
                let length = server.recv(&mut buffer).unwrap();
                String::from_utf8(buffer[..length].to_vec()).unwrap()
            };
            for (level, priority) in
                [(Level::ERROR, 131), (Level::WARN, 132), (Level::INFO, 134), (Level::DEBUG, 135)]
            {
                syslog.write(&line(level)).unwrap();
                let word = crate::line::name_of(level).to_uppercase();
                let expected = format!(
                    "<{priority}>Jan  2 03:04:05 skidder[{}]: {word} [skidder_log] text \
                     {{\"service.name\":\"skidder\",\"ecs.version\":\"1.6.0\"}}",
                    std::process::id()
                );
                assert_eq!(receive(), expected);
            }
            std::fs::remove_file(&path).unwrap();
        }
        assert!(syslog.write(&line(Level::INFO)).is_err(), "nobody listens any more");
    }

    #[test]
    fn a_line_that_is_too_long_for_syslog_is_cut() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let server = UnixDatagram::bind(&path).unwrap();
        let mut syslog = Syslog::new(&[&path], TimeZone::UTC);
        let long = Line::own(Level::INFO, Timestamp(0), &"é".repeat(4 << 20));
        syslog.write(&long).unwrap();
        let mut buffer = vec![0; 1 << 20];
        let length = server.recv(&mut buffer).unwrap();
        assert!((SYSLOG_BYTES - 1..=SYSLOG_BYTES).contains(&length), "{length}");
    }
}
