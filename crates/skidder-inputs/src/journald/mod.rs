//! `journald`: entries of systemd's journal, read from its files.
//!
//! Settings, fields and order are those of Filebeat's input, which runs journalctl; no program is needed here. See
//! `docs/decisions/0031-journal-files.md`.

mod entries;
mod fields;
mod files;
mod follow;
mod matches;
mod place;
mod reading;
#[cfg(test)]
mod rotation_tests;
#[cfg(test)]
mod tests;

use crate::Context;
use crate::common::EVERY_INPUT;
use entries::Start;
use matches::Matches;
use skidder_config::units::SignedDuration;
use skidder_config::{Group, Key, OneOf, Section, nearest, settings};
use skidder_input::{Input, InputError, InputFuture, Intake};
use skidder_os::Fs;
use skidder_parse::chain::Chain;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// The name of the type.
pub const KIND: &str = "journald";

/// What Filebeat calls the journal of the machine.
const SYSTEM: &str = "LOCAL_SYSTEM_JOURNAL";

/// Where a source without a cursor begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seek {
    Head,
    Tail,
    Since,
}

settings! {
    /// Which entries of which journal.
    pub static JOURNAL = Group::new("input.journald.journal", "Which entries of which journal.")
        .include(&[&EVERY_INPUT])
        .called_elsewhere(&[
            ("directory", "paths", ""),
            ("identifiers", "syslog_identifiers", ""),
            ("include_units", "units", ""),
            ("journal_directory", "paths", ""),
            ("journal_path", "paths", ""),
            ("matches", "include_matches.match", ""),
            ("path", "paths", ""),
            ("unit", "units", ""),
        ])
        // Of Filebeat 8; 9 ignores them.
        .without_effect(&[
            ("backoff", "Filebeat 9 does not have it any more; the journal is watched for entries"),
            ("cursor_seek_fallback", "Filebeat 9 does not have it any more; see `seek`"),
            ("max_backoff", "Filebeat 9 does not have it any more; the journal is watched for entries"),
        ]);

    PATHS: Vec<String> = Key::<Vec<String>>::new("paths").default_words("the journal of this machine").about(
        "files, directories or patterns; each is a source with a cursor of its own. A directory is read with the \
         directories of machines in it",
    );
    MERGE: bool = Key::new("merge")
        .default(false)
        .about("also journals of other machines below `/var/log/journal` and `/run/log/journal`");
    SEEK: OneOf<Seek> =
        Key::one_of("seek", &[("head", Seek::Head), ("tail", Seek::Tail), ("since", Seek::Since)])
            .default("head")
            .about("where a source without a saved cursor begins: at the oldest entry, at entries from now on, or at `since`");
    SINCE: SignedDuration = Key::new("since")
        .default(SignedDuration { negative: false, length: Duration::ZERO })
        .about("with `seek: since`: from now, usually negative, as in `-24h`; a warning if it is not");
    UNITS: Vec<String> = Key::<Vec<String>>::new("units").about(
        "only entries of these units, and those of systemd and other daemons about them; `*`, `?` and `[…]` are \
         wildcards, and a name without its kind is a service",
    );
    SYSLOG_IDENTIFIERS: Vec<String> =
        Key::<Vec<String>>::new("syslog_identifiers").about("only entries with one of these identifiers");
    INCLUDE_MATCHES: Vec<String> = Key::<Vec<String>>::new("include_matches.match").about(
        "expressions `FIELD=value`, by names in the journal or in events: different fields must all match, of \
         the same field one value; `+` between them: what stands before it, or what follows",
    );
    OLD_INCLUDE_MATCHES: Vec<String> = Key::<Vec<String>>::new("include_matches")
        .about("a list in place of `match` below it, as older versions of Filebeat had it");
    TRANSPORTS: Vec<String> = Key::<Vec<String>>::new("transports").about(
        "only entries of these: `audit`, `driver`, `syslog`, `journal`, `stdout`, `kernel`; as Filebeat, one more \
         condition behind the last `+` of `include_matches`",
    );
    FACILITIES: Vec<String> = Key::<Vec<String>>::new("facilities")
        .about("only entries of these facilities of syslog, 0 to 127; joined as `transports`");
    SAVE_REMOTE_HOSTNAME: bool = Key::new("save_remote_hostname")
        .default(false)
        .about("copies `host.hostname` to `log.source.address`, which `add_host_metadata` leaves alone");
    CHROOT: String = Key::new("chroot").about(
        "a directory with the root of another system, as the host's in a container: paths are below it",
    );
    JOURNALCTL_PATH: String = Key::new("journalctl_path")
        .about("no effect, with a notice: the files are read without journalctl");
}

/// The hint for another name than `match` in `include_matches`.
const UNKNOWN_MATCH: &str =
    "did you mean `match`? Different fields in it must all match, and `+` is an or";

/// What `transports` can have (systemd.journal-fields(7)).
const TRANSPORTS_KNOWN: [&str; 6] = ["audit", "driver", "syslog", "journal", "stdout", "kernel"];

/// What every source of the input is read with.
struct Settings {
    fs: Arc<dyn Fs>,
    matches: Arc<Matches>,
    seek: Seek,
    since: SignedDuration,
    save_remote_hostname: bool,
    parsers: Chain,
    message_max_bytes: usize,
}

impl Settings {
    /// Where a source without a cursor begins, at this time in nanoseconds.
    fn start(&self, now: i64) -> Start {
        let now = now / 1000;
        let since = match self.seek {
            Seek::Head => return Start::Head,
            Seek::Tail => now,
            Seek::Since => {
                let span = i64::try_from(self.since.length.as_micros()).unwrap_or(i64::MAX);
                now.saturating_add(if self.since.negative { -span } else { span })
            }
        };
        Start::Since(u64::try_from(since).unwrap_or(0))
    }
}

/// The input.
struct Journald {
    /// Each source: its name, and where its files are.
    sources: Vec<(String, files::Place)>,
    settings: Arc<Settings>,
}

/// Reads the settings of [`JOURNAL`]; the parsers get each message as one line.
pub fn read(
    section: &Section<'_>,
    context: &Context,
    parsers: Chain,
    message_max_bytes: usize,
) -> Option<Box<dyn Input>> {
    section.get(&crate::common::KEEP_NULL).value();
    let sources = read_sources(section, context);
    let matches = read_matches(section);
    if section.get(&JOURNALCTL_PATH).optional().is_some() {
        let hint = "remove it; `chroot` works without a journalctl in it";
        section.warning(JOURNALCTL_PATH.name(), "no effect: journalctl is not run", hint);
    }
    let (seek, since) = read_start(section);
    let save_remote_hostname = section.get(&SAVE_REMOTE_HOSTNAME).value();
    let settings = Settings {
        fs: Arc::clone(&context.fs),
        matches: Arc::new(matches?),
        seek,
        since,
        save_remote_hostname,
        parsers,
        message_max_bytes,
    };
    Some(Box::new(Journald { sources: sources?, settings: Arc::new(settings) }))
}

/// Where a source without a cursor begins. Of `seek` and `since`, Filebeat takes one without the other, too.
fn read_start(section: &Section<'_>) -> (Seek, SignedDuration) {
    let seek = section.get(&SEEK);
    let is_known = !seek.is_wrong();
    let (seek, since) = (seek.value(), section.get(&SINCE).value());
    match (seek, section.has_key(&SINCE)) {
        (Seek::Since, false) if is_known => {
            let message = format!(
                "`{}` is `since`, and `since` is not set: it begins now, as with `tail`",
                section.path_of(SEEK.name())
            );
            section.warning(SEEK.name(), message, "as in `since: -24h`");
        }
        (Seek::Since, true) if is_known && !since.negative && !since.length.is_zero() => {
            let name = section.path_of(SINCE.name());
            let message = format!(
                "`{name}` is `{since}`, which is in the future: nothing is read until then"
            );
            section.warning(
                SINCE.name(),
                message,
                format!("for the past, write `since: -{since}`"),
            );
        }
        (Seek::Head | Seek::Tail, true) if is_known => {
            let message =
                format!("`{}` has no effect without `seek: since`", section.path_of(SINCE.name()));
            section.warning(SINCE.name(), message, "set `seek: since`, or remove it");
        }
        _ => {}
    }
    (seek, since)
}

fn read_sources(section: &Section<'_>, context: &Context) -> Option<Vec<(String, files::Place)>> {
    let chroot = section.get(&CHROOT).optional();
    let root = chroot.as_deref().map_or(Path::new("/"), Path::new);
    let mut is_right = true;
    if chroot.is_some() {
        let metadata = context.fs.metadata(root);
        let is_directory = |it: &skidder_os::Metadata| it.kind == skidder_os::FileKind::Directory;
        if !metadata.as_ref().is_ok_and(is_directory) {
            let message = format!(
                "`{}` is `{}`, which is no directory",
                section.path_of(CHROOT.name()),
                root.display()
            );
            section.problem(
                CHROOT.name(),
                message,
                "give the directory in which the other root is mounted",
            );
            is_right = false;
        }
    }
    let merge = section.get(&MERGE).value();
    let paths = section.get(&PATHS).optional().unwrap_or_default();
    if paths.is_empty() {
        return is_right.then(|| vec![(SYSTEM.to_owned(), files::Place::system(root, merge))]);
    }
    let mut sources: Vec<(String, files::Place)> = Vec::new();
    for path in paths {
        let place = match &*path {
            SYSTEM => Ok(files::Place::system(root, merge)),
            path if !path.starts_with('/') => Err("a path must be absolute".to_owned()),
            path => files::Place::path(root, path).map_err(|error| error.to_string()),
        };
        match place {
            Ok(_) if sources.iter().any(|(name, _)| *name == path) => {
                section.warning(
                    PATHS.name(),
                    format!("`{path}` is there twice"),
                    "remove one of them",
                );
            }
            Ok(place) => sources.push((path, place)),
            Err(error) => {
                let message = format!("`{}` has `{path}`: {error}", section.path_of(PATHS.name()));
                section.problem(PATHS.name(), message, "as in `paths: [/var/log/journal]`");
                is_right = false;
            }
        }
    }
    is_right.then_some(sources)
}

fn read_matches(section: &Section<'_>) -> Option<Matches> {
    let mut matches = Matches::default();
    let units = section.get(&UNITS).optional().unwrap_or_default();
    let mut is_right = true;
    if let Err(error) = matches.units(&units) {
        let message = format!("`{}`: {error}", section.path_of(UNITS.name()));
        section.problem(UNITS.name(), message, "as in `units: [nginx.service, 'app@*.service']`");
        is_right = false;
    }
    matches.identifiers(&section.get(&SYSLOG_IDENTIFIERS).optional().unwrap_or_default());
    let include = section.get(matches_key(section)).try_each(matches::expression);
    is_right &= !include.is_wrong();
    let mut expressions = include.optional().unwrap_or_default();
    for transport in section.get(&TRANSPORTS).optional().unwrap_or_default() {
        if !TRANSPORTS_KNOWN.contains(&&*transport) {
            warn_of_transport(section, &transport);
        }
        expressions.push(format!("_TRANSPORT={transport}"));
    }
    let facilities = section.get(&FACILITIES).try_each(|text| {
        let number = text.parse::<u8>().ok().filter(|number| *number <= 127);
        number.ok_or_else(|| "no number of a facility, 0 to 127".to_owned())
    });
    is_right &= !facilities.is_wrong();
    for facility in facilities.optional().unwrap_or_default() {
        expressions.push(format!("SYSLOG_FACILITY={facility}"));
    }
    matches.expressions(&expressions);
    is_right.then_some(matches)
}

/// Where the expressions are. Reports other names beside `match`, which would filter nothing.
fn matches_key(section: &Section<'_>) -> &'static Key<Vec<String>> {
    let Some(item) = section.item_of(&OLD_INCLUDE_MATCHES) else { return &INCLUDE_MATCHES };
    if item.is_list() {
        return &OLD_INCLUDE_MATCHES;
    }
    if item.is_map() {
        let below = item.section();
        for name in below.keys() {
            if name != "match" && below.has(name) {
                below.unknown(name, "", UNKNOWN_MATCH);
            }
        }
        below.skip();
    }
    &INCLUDE_MATCHES
}

/// Warns of a transport that no entry has. Filebeat takes any text.
fn warn_of_transport(section: &Section<'_>, transport: &str) {
    let message = format!(
        "`{}` has `{transport}`, which is no transport of journald: no entry has it",
        section.path_of(TRANSPORTS.name())
    );
    let hint = match nearest(transport, TRANSPORTS_KNOWN) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there is `{}`", TRANSPORTS_KNOWN.join("`, `")),
    };
    section.warning(TRANSPORTS.name(), message, hint);
}

impl Input for Journald {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn has_cursors(&self) -> bool {
        true
    }

    fn run(self: Box<Self>, intake: Intake) -> InputFuture {
        Box::pin(async move {
            let mut sources = JoinSet::new();
            for (name, place) in self.sources {
                let (settings, intake) = (Arc::clone(&self.settings), intake.clone());
                sources.spawn(follow::follow(settings, intake, name, place));
            }
            let mut result = Ok(());
            while let Some(ended) = sources.join_next().await {
                let ended = ended.map_err(|error| InputError(error.to_string())).flatten();
                result = result.and(ended);
                // With `once`, what can be read of the others is read.
                if result.is_err() && !intake.is_once() {
                    break;
                }
            }
            result
        })
    }
}
