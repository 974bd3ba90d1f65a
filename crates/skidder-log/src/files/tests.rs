//! Names, rotation, which files are kept, and changes by other programs.

use super::*;
use skidder_os::Clock as _;
use skidder_testkit::SimClock;
use tempfile::TempDir;

const DAY: Duration = Duration::from_hours(24);

struct Place {
    directory: TempDir,
    clock: SimClock,
}

impl Place {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), clock: SimClock::new() }
    }

    fn config(&self) -> FilesConfig {
        FilesConfig {
            path: self.directory.path().join("logs"),
            name: "skidder".to_owned(),
            bytes_max: 10,
            kept: 7,
            permissions: 0o600,
            interval: Duration::ZERO,
            rotate_on_startup: true,
            redirect_stderr: false,
        }
    }

    fn files(&self, change: impl FnOnce(&mut FilesConfig)) -> Files {
        let mut config = self.config();
        change(&mut config);
        Files::new(config, TimeZone::UTC)
    }

    fn write(&self, files: &mut Files, text: &str) {
        files.write(text.as_bytes(), self.clock.wall()).unwrap();
    }

    /// Names and what is in them.
    fn all(&self) -> Vec<(String, String)> {
        let mut all: Vec<(String, String)> = std::fs::read_dir(self.config().path)
            .unwrap()
            .map(|entry| {
                let path = entry.unwrap().path();
                let name = path.file_name().unwrap().to_str().unwrap().to_owned();
                (name, std::fs::read_to_string(&path).unwrap())
            })
            .collect();
        all.sort();
        all
    }

    fn names(&self) -> Vec<String> {
        self.all().into_iter().map(|(name, _)| name).collect()
    }
}

#[test]
fn a_full_file_is_followed_by_the_next_number_of_the_day() {
    let place = Place::new();
    let mut files = place.files(|_| {});
    for text in ["1234\n", "567\n", "89\n", "a line that is longer\n", "b\n"] {
        place.write(&mut files, text);
    }
    let expected = [
        ("skidder-20260101-1.ndjson", "89\n"),
        ("skidder-20260101-2.ndjson", "a line that is longer\n"),
        ("skidder-20260101-3.ndjson", "b\n"),
        ("skidder-20260101.ndjson", "1234\n567\n"),
    ];
    assert_eq!(place.all(), expected.map(|(name, text)| (name.to_owned(), text.to_owned())));
    place.clock.advance(DAY);
    place.write(&mut files, "the next day\n");
    assert_eq!(files.path().unwrap().file_name().unwrap(), "skidder-20260102.ndjson");
}

#[test]
fn only_so_many_are_kept_and_files_of_others_are_left_alone() {
    let place = Place::new();
    let mut files = place.files(|config| config.kept = 2);
    std::fs::create_dir(place.config().path).unwrap();
    let others = [
        "skidder-20250101.ndjson.gz",
        "skidder-2025.ndjson",
        "skidder-events-data-20250101.ndjson",
        "skidder-20250101-01.ndjson",
        "filebeat-20250101.ndjson",
    ];
    for other in others {
        std::fs::write(place.config().path.join(other), "other").unwrap();
    }
    std::fs::write(place.config().path.join("skidder-20250101.ndjson"), "old\n").unwrap();
    for day in 0..12 {
        place.write(&mut files, &format!("day {day:3}\n"));
        place.clock.advance(DAY);
    }
    let mut names = place.names();
    names.retain(|name| !others.contains(&name.as_str()));
    let expected =
        ["skidder-20260110.ndjson", "skidder-20260111.ndjson", "skidder-20260112.ndjson"];
    assert_eq!(names, expected);
    assert_eq!(place.names().len(), expected.len() + others.len());
}

#[test]
fn none_may_be_kept() {
    let place = Place::new();
    let mut files = place.files(|config| config.kept = 0);
    for text in ["one line\n", "another\n"] {
        place.write(&mut files, text);
    }
    assert_eq!(place.names(), ["skidder-20260101-1.ndjson"]);
}

#[test]
fn an_interval_begins_a_file_by_the_clock() {
    let place = Place::new();
    let mut files = place.files(|config| config.interval = Duration::from_hours(1));
    place.clock.advance(Duration::from_mins(59));
    place.write(&mut files, "1\n");
    place.clock.advance(Duration::from_secs(59));
    place.write(&mut files, "2\n");
    place.clock.advance(Duration::from_secs(1));
    place.write(&mut files, "3\n");
    let texts: Vec<String> = place.all().into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, ["3\n", "1\n2\n"]);
}

#[test]
fn a_start_begins_a_file_or_goes_on_with_the_last() {
    let place = Place::new();
    place.write(&mut place.files(|_| {}), "1\n");
    place.write(&mut place.files(|_| {}), "2\n");
    assert_eq!(place.names(), ["skidder-20260101-1.ndjson", "skidder-20260101.ndjson"]);
    let go_on = |config: &mut FilesConfig| config.rotate_on_startup = false;
    place.write(&mut place.files(go_on), "3\n");
    assert_eq!(place.all()[0].1, "2\n3\n");
    // Half a line, of a crash.
    let last = place.config().path.join("skidder-20260101-1.ndjson");
    std::fs::write(&last, "2\nha").unwrap();
    place.write(&mut place.files(go_on), "4\n");
    assert_eq!(place.all()[0].1, "2\nha\n4\n");
    // A full one is not gone on with.
    std::fs::write(&last, "0123456789\n").unwrap();
    place.write(&mut place.files(go_on), "5\n");
    assert_eq!(place.names().len(), 3);
}

#[test]
fn a_link_is_not_followed() {
    let place = Place::new();
    let target = place.directory.path().join("target");
    std::fs::write(&target, "").unwrap();
    std::fs::create_dir(place.config().path).unwrap();
    let link = place.config().path.join("skidder-20260101.ndjson");
    std::os::unix::fs::symlink(&target, link).unwrap();
    let mut files = place.files(|config| config.rotate_on_startup = false);
    place.write(&mut files, "1\n");
    assert_eq!(files.path().unwrap().file_name().unwrap(), "skidder-20260101-1.ndjson");
    assert_eq!(std::fs::read(target).unwrap(), b"");
}

#[test]
fn permissions_are_as_configured_and_the_directory_is_open_to_who_may_read() {
    let table = [(0o600, 0o700), (0o640, 0o750), (0o644, 0o755), (0o666, 0o755)];
    for (permissions, directory) in table {
        let place = Place::new();
        let mut files = place.files(|config| config.permissions = permissions);
        place.write(&mut files, "1\n");
        let mode = |path: &Path| std::fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!(mode(files.path().unwrap()), permissions);
        // The umask of the test takes bits away.
        assert_eq!(mode(&place.config().path) & !directory, 0);
        assert_eq!(directory_permissions(permissions), directory);
    }
}

#[test]
fn a_file_that_is_moved_removed_or_replaced_is_made_anew() {
    let place = Place::new();
    let mut files = place.files(|config| config.bytes_max = 1000);
    place.write(&mut files, "1\n");
    let path = files.path().unwrap().to_owned();
    let moved = place.directory.path().join("moved");
    std::fs::rename(&path, &moved).unwrap();
    place.clock.advance(LOOK_EVERY);
    place.write(&mut files, "2\n");
    let read = |path: &Path| std::fs::read_to_string(path).unwrap();
    assert_eq!((read(&moved), read(&path)), ("1\n".to_owned(), "2\n".to_owned()));
    // With `create` logrotate makes the file itself.
    std::fs::rename(&path, &moved).unwrap();
    std::fs::write(&path, "").unwrap();
    place.clock.advance(LOOK_EVERY);
    place.write(&mut files, "3\n");
    assert_eq!((read(&moved), read(&path)), ("2\n".to_owned(), "3\n".to_owned()));
    // With `copytruncate` it empties it.
    std::fs::write(&path, "").unwrap();
    place.clock.advance(LOOK_EVERY);
    place.write(&mut files, "4\n");
    assert_eq!(read(&path), "4\n");
    std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    place.clock.advance(LOOK_EVERY);
    place.write(&mut files, "5\n");
    assert_eq!(read(&path), "5\n");
}

#[test]
fn what_cannot_be_written_is_an_error_and_goes_on_when_it_can() {
    let place = Place::new();
    let mut files = place.files(|_| {});
    std::fs::write(place.config().path, "not a directory").unwrap();
    files.write(b"1\n", place.clock.wall()).unwrap_err();
    std::fs::remove_file(place.config().path).unwrap();
    place.write(&mut files, "2\n");
    assert_eq!(place.all()[0].1, "2\n");
}

#[test]
fn a_clock_that_is_set_back_leaves_names_in_order() {
    let place = Place::new();
    let mut files = place.files(|_| {});
    place.write(&mut files, "12345678\n");
    place.clock.set_wall(Timestamp(0));
    place.write(&mut files, "2\n");
    assert_eq!(files.path().unwrap().file_name().unwrap(), "skidder-20260101-1.ndjson");
}
