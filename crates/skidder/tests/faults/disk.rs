//! A full disk under the registry, and one that cannot be written.
//!
//! Both need a small file system of their own, which only root may mount. Elsewhere the tests say that
//! they were skipped.

use crate::common::lines::{gzip, judge, lines};
use crate::common::program::Program;
use crate::common::server::BulkServer;
use crate::common::{Place, accept, print};
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_remount, unmount};
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// A small file system in memory.
pub(crate) struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts it; nothing, if that is not allowed.
    pub(crate) fn mount(at: &Path, kilobytes: u32) -> Option<Self> {
        std::fs::create_dir(at).unwrap();
        let options = std::ffi::CString::new(format!("size={kilobytes}k")).unwrap();
        match mount("none", at, "tmpfs", MountFlags::empty(), options.as_c_str()) {
            Ok(()) => Some(Self(at.to_path_buf())),
            Err(error) => {
                print(&format!(
                    "skipped: a file system cannot be mounted here ({error}); root may"
                ));
                None
            }
        }
    }

    fn set_read_only(&self, read_only: bool) {
        let flags = if read_only { MountFlags::RDONLY } else { MountFlags::empty() };
        mount_remount(&*self.0, flags, "").unwrap();
    }

    /// Takes all space that is left.
    pub(crate) fn fill(&self) -> PathBuf {
        let path = self.0.join("filling");
        let mut file = File::create(&path).unwrap();
        while file.write_all(&[7; 4096]).is_ok() {}
        path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let unmounted = unmount(&*self.0, UnmountFlags::DETACH);
        assert!(unmounted.is_ok() || std::thread::panicking(), "{unmounted:?}");
    }
}

const LOGS: [(&str, usize); 2] = [("a", 6000), ("b", 3000)];
const LINES: usize = 9000;

/// Lines of each of the many files.
const EACH: usize = 3;

/// Writes one file after the other until the registry has no room for what is to be kept of them; as
/// long as it has, a full disk is no fault. Gives their labels.
fn write_until_it_is_full(place: &Place, program: &Program) -> Vec<String> {
    let mut labels = Vec::new();
    let log = program.await_log_while("cannot save cursors", || {
        let label = format!("f{}", labels.len());
        place.write(&label, &lines(&label, 0..EACH));
        labels.push(label);
    });
    assert!(log.contains("space"), "{log}");
    labels
}

fn with_many<'a>(logs: &[(&'a str, usize)], labels: &'a [String]) -> Vec<(&'a str, usize)> {
    let many = labels.iter().map(|label| (&**label, EACH));
    logs.iter().copied().chain(many).collect()
}

#[test]
fn a_full_disk_under_the_registry_stops_no_delivery() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    let Some(disk) = SmallDisk::mount(&place.data(), 4096) else { return };
    place.write("a", &lines("a", 0..2000));
    place.once(&[]).succeeded();
    let filling = disk.fill();
    let mut program = place.start(&[]);
    let labels = write_until_it_is_full(&place, &program);
    place.write("a", &lines("a", 0..4000));
    place.write("b.gz", &gzip(&lines("b", 0..3000)));
    let missing =
        |logs: &[(&str, usize)]| judge(&with_many(logs, &labels), &server.documents()).missing;
    let logs = [("a", 4000), ("b", 3000)];
    program.await_that("every line is there, without space", || missing(&logs) == 0);
    std::fs::remove_file(filling).unwrap();
    place.write("a", &lines("a", 0..6000));
    program.await_that("every line is there", || missing(&LOGS) == 0);
    program.terminate().succeeded();
    let verdict = judge(&with_many(&LOGS, &labels), &server.documents());
    accept("full disk under the registry, then space", verdict, 0);
    // What could not be saved then is saved by now.
    assert_eq!(place.once(&[]).succeeded().ledger().read, 0);
}

#[test]
fn stopped_or_killed_on_a_full_disk_it_repeats_and_loses_nothing() {
    for end in ["SIGTERM", "kill -9"] {
        let server = BulkServer::start();
        let place = Place::new(&server);
        let Some(disk) = SmallDisk::mount(&place.data(), 4096) else { return };
        place.write("a", &lines("a", 0..2000));
        place.once(&[]).succeeded();
        let filling = disk.fill();
        let mut program = place.start(&[]);
        let labels = write_until_it_is_full(&place, &program);
        place.write("a", &lines("a", 0..6000));
        place.write("b.gz", &gzip(&lines("b", 0..3000)));
        let logs = with_many(&LOGS, &labels);
        let missing = || judge(&logs, &server.documents()).missing;
        program.await_that("every line is there", || missing() == 0);
        if end == "SIGTERM" {
            // The exit code: the next start repeats something.
            assert_eq!(program.terminate().code(), Some(1));
        } else {
            program.kill();
        }
        let bound = server.count() - 2000;
        std::fs::remove_file(filling).unwrap();
        place.once(&[]).succeeded();
        accept(&format!("full disk, {end}"), judge(&logs, &server.documents()), bound);
        assert_eq!(place.once(&[]).succeeded().ledger().read, 0);
    }
}

#[test]
fn a_disk_that_is_full_from_the_start_is_told() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    let Some(disk) = SmallDisk::mount(&place.data(), 256) else { return };
    place.write("a", &lines("a", 0..6000));
    place.write("b.gz", &gzip(&lines("b", 0..3000)));
    let filling = disk.fill();
    let ended = place.once(&[]);
    assert_eq!(ended.code(), Some(1), "{}", ended.log);
    assert!(ended.log.contains("space"), "{}", ended.log);
    assert!(ended.log.contains(&*place.data().to_string_lossy()), "{}", ended.log);
    std::fs::remove_file(filling).unwrap();
    drop(disk);
    place.once(&[]).succeeded();
    accept("full disk at the start", judge(&LOGS, &server.documents()), LINES);
}

#[test]
fn a_data_directory_that_cannot_be_written_is_named() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    let Some(disk) = SmallDisk::mount(&place.data(), 4096) else { return };
    disk.set_read_only(true);
    place.write("a", &lines("a", 0..10));
    let ended = place.once(&[]);
    assert_eq!(ended.code(), Some(1));
    assert!(ended.log.contains(&*place.data().to_string_lossy()), "{}", ended.log);
    assert!(ended.log.to_lowercase().contains("read-only"), "{}", ended.log);
    assert_eq!(server.count(), 0);
    disk.set_read_only(false);
    place.once(&[]).succeeded();
    accept("data directory read-only, then writable", judge(&[("a", 10)], &server.documents()), 0);
}

#[test]
fn a_disk_that_has_become_read_only_is_named_and_nothing_is_lost() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    let Some(disk) = SmallDisk::mount(&place.data(), 4096) else { return };
    place.write("a", &lines("a", 0..1000));
    place.once(&[]).succeeded();
    // A new run begins on the disk as it is then, and the log goes on.
    disk.set_read_only(true);
    place.write("a", &lines("a", 0..6000));
    place.write("b.gz", &gzip(&lines("b", 0..3000)));
    let refused = place.once(&[]);
    assert!(refused.log.to_lowercase().contains("read-only"), "{}", refused.log);
    let came = server.count();
    disk.set_read_only(false);
    place.once(&[]).succeeded();
    accept("disk turned read-only between runs", judge(&LOGS, &server.documents()), came);
    assert_eq!(place.once(&[]).succeeded().ledger().read, 0);
}
