//! Identity of this agent: versions, identifiers, the lock on the data directory.

use anyhow::{Context as _, Result, bail};
use skidder_event::Map;
use skidder_os::{Clock, File, FileKind, Fs, OpenMode, Timestamp, read_to_end, replace_file};
use std::path::Path;
use std::time::Duration;

/// The version of Filebeat that we are compatible with: `agent.version`.
pub(crate) const COMPATIBLE_VERSION: &str = "9.5.3";

/// Our own version, for `version` and `agent.build.original`.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The text of `--version`.
pub(crate) const VERSION_TEXT: &str =
    concat!(env!("CARGO_PKG_VERSION"), " (compatible with filebeat 9.5.3)");

/// The beat that we stand in for.
pub(crate) const BEAT: &str = "filebeat";

/// Version of the Elastic Common Schema that events follow.
const ECS_VERSION: &str = "8.0.0";

/// Name of the file that keeps `agent.id`.
const META_FILE: &str = "meta.json";

/// Name of the file that is locked while the data directory is in use.
const LOCK_FILE: &str = "skidder.lock";

/// Between two tries for that lock.
const LOCK_WAIT: Duration = Duration::from_millis(50);

/// How often it is waited for: 1.6 s in all, as long as Filebeat tries.
const LOCK_WAITS: u32 = 32;

/// This process as its events show it.
#[derive(Clone, Debug)]
pub(crate) struct Agent {
    /// `agent.id`, kept over restarts.
    pub(crate) id: String,
    /// `agent.ephemeral_id`, of this process.
    pub(crate) ephemeral_id: String,
    /// `agent.name` and `host.name`.
    pub(crate) name: String,
    /// The machine's name.
    pub(crate) hostname: String,
    /// When a process began with this data directory for the first time.
    pub(crate) first_start: Timestamp,
    /// The same, but never a process of Filebeat.
    pub(crate) first_use: Timestamp,
}

/// The member of [`META_FILE`] that Filebeat does not have: when skidder began to use the data directory.
const FIRST_USE: &str = "skidder_first_start";

/// The name of this machine.
pub(crate) fn hostname() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

impl Agent {
    /// An agent without a place to keep its id.
    pub(crate) fn temporary(name: Option<String>, now: Timestamp) -> Self {
        Self::with_id(uuid::Uuid::new_v4().to_string(), name, now, now)
    }

    /// An agent for a command that only looks: it has the times that are kept in `data`.
    pub(crate) fn onlooker(
        fs: &dyn Fs,
        clock: &dyn Clock,
        data: &Path,
        name: Option<String>,
    ) -> Self {
        let agent = Self::temporary(name, clock.wall());
        let Some(meta) = kept_meta(fs, data) else { return agent };
        let first_start = time_of(&meta, "first_start").unwrap_or(agent.first_start);
        let first_use = time_of(&meta, FIRST_USE).unwrap_or(agent.first_use);
        Self { first_start, first_use, ..agent }
    }

    /// The same with another `name`; without one, that of the host.
    pub(crate) fn named(&self, name: Option<String>) -> Self {
        let name = name.unwrap_or_else(|| self.hostname.clone());
        Self { name, ..self.clone() }
    }

    /// The agent whose id is kept in `data`.
    pub(crate) fn load(
        fs: &dyn Fs,
        clock: &dyn Clock,
        data: &Path,
        name: Option<String>,
    ) -> Result<Self> {
        let path = data.join(META_FILE);
        let text = match fs.open(&path) {
            Ok(file) => String::from_utf8_lossy(&read_to_end(&*file, 64 << 10)?).into_owned(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error).context(format!("cannot read `{}`", path.display())),
        };
        let kept = serde_json::from_str::<serde_json::Value>(&text).ok();
        if let Some(meta) = &kept
            && let Some(id) = meta["uuid"].as_str()
        {
            // Filebeat writes its local time; without one, everything is from after the first start.
            let first = time_of(meta, "first_start").unwrap_or(Timestamp(0));
            let first_use = match time_of(meta, FIRST_USE) {
                // The clock was ahead.
                Some(at) if at > clock.wall() => begin_use(fs, clock, &path, meta)?,
                Some(at) => at,
                None => begin_use(fs, clock, &path, meta)?,
            };
            return Ok(Self::with_id(id.to_owned(), name, first, first_use));
        }
        let agent = Self::temporary(name, clock.wall());
        let started = text_of(agent.first_start);
        let meta =
            serde_json::json!({"uuid": agent.id, "first_start": started, FIRST_USE: started});
        write_meta(fs, &path, meta.to_string().as_bytes())?;
        Ok(agent)
    }

    fn with_id(
        id: String,
        name: Option<String>,
        first_start: Timestamp,
        first_use: Timestamp,
    ) -> Self {
        let hostname = hostname();
        let ephemeral_id = uuid::Uuid::new_v4().to_string();
        let name = name.unwrap_or_else(|| hostname.clone());
        Self { id, ephemeral_id, name, hostname, first_start, first_use }
    }

    /// The fields that every event gets unless it has them: `agent.*`, `ecs.version`, `host.name`.
    pub(crate) fn fields(&self, host: bool) -> Map {
        let mut fields = Map::new();
        fields.insert_path("agent.build.original", format!("skidder {VERSION}"));
        fields.insert_path("agent.ephemeral_id", self.ephemeral_id.as_str());
        fields.insert_path("agent.id", self.id.as_str());
        fields.insert_path("agent.name", self.name.as_str());
        fields.insert_path("agent.type", BEAT);
        fields.insert_path("agent.version", COMPATIBLE_VERSION);
        fields.insert_path("ecs.version", ECS_VERSION);
        if host {
            fields.insert_path("host.name", self.name.as_str());
        }
        fields
    }
}

/// Goes on under the id that Filebeat has in the data path of `store`, unless there is one of our own.
pub(crate) fn take_over_id(fs: &dyn Fs, store: &Path, data: &Path) -> Result<()> {
    let ours = data.join(META_FILE);
    if !matches!(fs.metadata(&ours), Err(error) if error.kind() == std::io::ErrorKind::NotFound) {
        return Ok(());
    }
    // `registry/filebeat` below the data path, where it usually is.
    let theirs = store.ancestors().nth(2).map(|above| above.join(META_FILE));
    let Some(file) = theirs.and_then(|path| fs.open(&path).ok()) else { return Ok(()) };
    let text = read_to_end(&*file, 64 << 10)?;
    let meta = serde_json::from_slice::<serde_json::Value>(&text).unwrap_or_default();
    if !meta["uuid"].is_string() {
        return Ok(());
    }
    write_meta(fs, &ours, &text)
}

/// The data directory was Filebeat's, or an earlier version has written it: skidder uses it from now on.
fn begin_use(
    fs: &dyn Fs,
    clock: &dyn Clock,
    path: &Path,
    meta: &serde_json::Value,
) -> Result<Timestamp> {
    let now = clock.wall();
    let mut meta = meta.clone();
    meta[FIRST_USE] = text_of(now).into();
    write_meta(fs, path, meta.to_string().as_bytes())?;
    Ok(now)
}

/// Replaces the file that keeps `agent.id`.
fn write_meta(fs: &dyn Fs, path: &Path, text: &[u8]) -> Result<()> {
    let written = replace_file(fs, path, text, 0o600).map(drop);
    written.with_context(|| format!("cannot write `{}`", path.display()))
}

fn text_of(at: Timestamp) -> String {
    let mut time = skidder_event::TimeText::new(skidder_event::Precision::Nanosecond);
    String::from_utf8_lossy(time.format(at.0)).into_owned()
}

fn time_of(meta: &serde_json::Value, member: &str) -> Option<Timestamp> {
    let at: jiff::Timestamp = meta[member].as_str()?.parse().ok()?;
    Some(Timestamp(at.as_nanosecond() as i64))
}

fn kept_meta(fs: &dyn Fs, data: &Path) -> Option<serde_json::Value> {
    let file = fs.open(&data.join(META_FILE)).ok()?;
    let text = read_to_end(&*file, 64 << 10).ok()?;
    serde_json::from_slice(&text).ok()
}

/// The id that is kept in the data directory.
pub(crate) fn kept_id(fs: &dyn Fs, data: &Path) -> Option<String> {
    kept_meta(fs, data)?["uuid"].as_str().map(str::to_owned)
}

/// Whether a process uses the data directory.
pub(crate) fn is_running(fs: &dyn Fs, data: &Path) -> Result<bool> {
    let path = data.join(LOCK_FILE);
    match fs.open(&path) {
        // Given up again when the file is closed.
        Ok(file) => Ok(!file.try_lock()?),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error).with_context(|| format!("cannot look at `{}`", path.display())),
    }
}

/// Makes the data directory and locks it for this process, as long as the file is held. A lock that another
/// has is waited for: a process that was killed holds it until the system has cleared it away, and commands
/// that ask whether one runs hold it for a moment.
///
/// # Errors
/// If another process still has it after [`LOCK_WAITS`] waits, or the directory cannot be written.
pub(crate) fn lock_data(fs: &dyn Fs, data: &Path) -> Result<Box<dyn File>> {
    let mut waits = 0;
    lock_data_with(fs, data, || {
        waits += 1;
        std::thread::park_timeout(LOCK_WAIT);
        waits < LOCK_WAITS
    })
}

/// `wait` is called between two tries; it returns whether to try again.
fn lock_data_with(
    fs: &dyn Fs,
    data: &Path,
    mut wait: impl FnMut() -> bool,
) -> Result<Box<dyn File>> {
    if fs.metadata(data).is_ok_and(|metadata| metadata.kind != FileKind::Directory) {
        bail!("the data directory `{}` is a file; give `--path.data` a directory", data.display());
    }
    fs.create_dir_all(data, skidder_os::PRIVATE_DIRECTORY)
        .with_context(|| format!("cannot make the data directory `{}`", data.display()))?;
    let path = data.join(LOCK_FILE);
    let file = fs
        .open_write(&path, OpenMode::Keep, 0o600)
        .with_context(|| format!("cannot write in the data directory `{}`", data.display()))?;
    while !file.try_lock()? {
        if !wait() {
            bail!(
                "another skidder uses the data directory `{}`; stop it, or give this one its own with \
                 `--path.data`",
                data.display()
            );
        }
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::{Agent, META_FILE, lock_data, lock_data_with};
    use skidder_os::{RealFs, Timestamp};
    use skidder_testkit::SimClock;

    #[test]
    fn the_first_use_is_kept_and_that_of_filebeat_is_not_taken_for_it() {
        let place = tempfile::tempdir().unwrap();
        let at = |seconds: i64| Timestamp(1_700_000_000_000_000_000 + seconds * 1_000_000_000);
        let load = |now| {
            let clock = SimClock::starting_at(now);
            Agent::load(&RealFs, &clock, place.path(), None).unwrap()
        };
        let onlooker = |now| {
            let agent = Agent::onlooker(&RealFs, &SimClock::starting_at(now), place.path(), None);
            (agent.first_start, agent.first_use)
        };
        assert_eq!(onlooker(at(0)), (at(0), at(0)), "nothing is kept yet");
        let first = load(at(1));
        let again = load(at(2));
        assert_eq!((&again.id, again.first_start, again.first_use), (&first.id, at(1), at(1)));
        assert_eq!(onlooker(at(3)), (at(1), at(1)));
        let theirs = r#"{"uuid":"1-2-3","first_start":"2020-01-01T00:00:00+01:00","version":"9"}"#;
        std::fs::write(place.path().join(META_FILE), theirs).unwrap();
        let began = Timestamp(1_577_833_200_000_000_000);
        for now in [at(4), at(5)] {
            let agent = load(now);
            assert_eq!((&*agent.id, agent.first_start, agent.first_use), ("1-2-3", began, at(4)));
        }
        let kept = std::fs::read_to_string(place.path().join(META_FILE)).unwrap();
        assert!(kept.contains(r#""version":"9""#), "{kept}");
    }

    #[test]
    fn a_lock_that_is_given_up_in_time_is_waited_for() {
        let place = tempfile::tempdir().unwrap();
        let mut other = Some(lock_data(&RealFs, place.path()).unwrap());
        let mut waits = 0;
        let refused = lock_data_with(&RealFs, place.path(), || {
            waits += 1;
            waits < 3
        });
        assert_eq!((refused.is_err(), waits), (true, 3));
        lock_data_with(&RealFs, place.path(), || other.take().is_some()).unwrap();
        assert!(other.is_none(), "it was waited for");
    }
}
