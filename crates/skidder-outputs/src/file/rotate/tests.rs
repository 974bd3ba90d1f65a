//! Names and rotation of output files.

use super::*;
use std::path::Path;

const NOON: Timestamp = Timestamp(1_767_355_200_000_000_000); // 2026-01-02 12:00 UTC
const NEXT_DAY: Timestamp = Timestamp(NOON.0 + 86_400_000_000_000);

fn config(directory: &Path) -> FileConfig {
    FileConfig {
        rotate_every_bytes: 30,
        number_of_files: 2,
        ..FileConfig::new(directory.to_owned())
    }
}

fn rotation(config: &FileConfig) -> Rotation {
    Rotation::new(Arc::new(skidder_os::RealFs), config.clone())
}

fn write(rotation: &mut Rotation, lines: &[&str], now: Timestamp) {
    let mut lines = Lines::of(lines);
    rotation.write(&mut lines, now).unwrap();
}

/// Names and contents, sorted by name.
fn files(directory: &Path) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, std::fs::read_to_string(path).unwrap_or_default())
        })
        .collect();
    found.sort();
    found
}

fn names(directory: &Path) -> Vec<String> {
    files(directory).into_iter().map(|(name, _)| name).collect()
}

#[test]
fn names_carry_the_date_and_a_number_and_old_files_go() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(directory.path());
    let mut rotation = rotation(&config);
    let line = "x".repeat(19);
    write(&mut rotation, &[&line, &line], NOON);
    assert_eq!(names(directory.path()), ["filebeat-20260102-1.ndjson", "filebeat-20260102.ndjson"]);
    write(&mut rotation, &[&line, &line], NEXT_DAY);
    // A new day has new names, and of the four files three are left.
    assert_eq!(
        names(directory.path()),
        ["filebeat-20260102-1.ndjson", "filebeat-20260103-1.ndjson", "filebeat-20260103.ndjson"]
    );
    // The clock goes back: names go on.
    write(&mut rotation, &[&line], NOON);
    assert!(names(directory.path()).contains(&"filebeat-20260103-2.ndjson".to_owned()));
}

#[test]
fn one_batch_fills_as_many_files_as_it_needs_and_no_line_is_cut() {
    let directory = tempfile::tempdir().unwrap();
    let config = FileConfig { number_of_files: 1000, ..config(directory.path()) };
    let mut rotation = rotation(&config);
    let lines: Vec<String> = (0..100).map(|number| format!("line {number}")).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    write(&mut rotation, &lines, NOON);
    let mut all = Vec::new();
    for (_, content) in files(directory.path()) {
        assert!(content.len() <= 30 && content.ends_with('\n'));
        all.extend(content.lines().map(str::to_owned).collect::<Vec<_>>());
    }
    all.sort();
    let mut expected: Vec<String> = lines.iter().map(|&line| line.to_owned()).collect();
    expected.sort();
    assert_eq!(all, expected);
}

#[test]
fn a_line_longer_than_a_file_is_refused_and_the_others_are_written() {
    let directory = tempfile::tempdir().unwrap();
    let mut rotation = rotation(&config(directory.path()));
    let long = "y".repeat(31);
    let mut lines = Lines::of(&["before", &long, "after"]);
    rotation.write(&mut lines, NOON).unwrap();
    assert_eq!(lines.refused().len(), 1);
    assert_eq!(lines.refused()[0].0, 1);
    let written: String = files(directory.path()).into_iter().map(|(_, content)| content).collect();
    assert!(written.contains("before\n") && written.contains("after\n") && !written.contains('y'));
}

#[test]
fn a_start_rotates_or_continues_as_set() {
    for rotate_on_startup in [true, false] {
        let directory = tempfile::tempdir().unwrap();
        let config = FileConfig { rotate_on_startup, ..config(directory.path()) };
        write(&mut rotation(&config), &["one"], NOON);
        write(&mut rotation(&config), &["two"], NOON);
        let found = files(directory.path());
        let expected: &[(&str, &str)] = if rotate_on_startup {
            &[("filebeat-20260102-1.ndjson", "two\n"), ("filebeat-20260102.ndjson", "one\n")]
        } else {
            &[("filebeat-20260102.ndjson", "one\ntwo\n")]
        };
        let found: Vec<(&str, &str)> =
            found.iter().map(|(name, content)| (name.as_str(), content.as_str())).collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn half_a_line_of_a_crash_and_a_link_are_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let config = FileConfig { rotate_on_startup: false, ..config(directory.path()) };
    let torn = directory.path().join("filebeat-20260102.ndjson");
    std::fs::write(&torn, "whole\nhal").unwrap();
    write(&mut rotation(&config), &["new"], NOON);
    assert_eq!(std::fs::read_to_string(&torn).unwrap(), "whole\nhal");
    let victim = directory.path().join("victim");
    std::fs::write(&victim, "precious\n").unwrap();
    std::os::unix::fs::symlink(&victim, directory.path().join("filebeat-20260102-5.ndjson"))
        .unwrap();
    write(&mut rotation(&config), &["newer"], NOON);
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious\n");
    assert!(names(directory.path()).contains(&"filebeat-20260102-6.ndjson".to_owned()));
}

#[test]
fn old_files_go_at_a_start_too() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(directory.path());
    for _ in 0..5 {
        write(&mut rotation(&config), &["x"], NOON);
    }
    let kept: Vec<String> =
        (2..=4).map(|number| format!("filebeat-20260102-{number}.ndjson")).collect();
    assert_eq!(names(directory.path()), kept, "two besides the one that is written");
}

#[test]
fn new_files_have_the_permissions_that_are_asked_for() {
    use std::os::unix::fs::PermissionsExt as _;
    for permissions in [0o600, 0o640] {
        let directory = tempfile::tempdir().unwrap();
        let config = FileConfig { permissions, ..config(directory.path()) };
        write(&mut rotation(&config), &["x"], NOON);
        let file = directory.path().join("filebeat-20260102.ndjson");
        let mode = std::fs::metadata(file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, permissions);
    }
}
