//! Logs behind links that a kubelet rotates, and files that are deleted before they are read.

use crate::common::lines::{Log, distinct, gzip, judge, lines};
use crate::common::server::BulkServer;
use crate::common::{Place, QUEUE_EVENTS, accept};
use skidder_testkit::Random;
use std::path::{Path, PathBuf};

const SYMLINKS: [&str; 2] = ["-E", "filebeat.inputs.0.prospector.scanner.symlinks=true"];
const PIN: [&str; 2] = ["-E", "filebeat.inputs.0.pin.enabled=true"];

/// Renames the log and compresses the file rotated before, as the kubelet does.
fn rotate(log: &mut Log, rotations: &mut usize) {
    let name =
        |number: usize| PathBuf::from(format!("{}.20261121-10{number:04}", log.path.display()));
    if let Some(before) = rotations.checked_sub(1).map(name)
        && let Ok(bytes) = std::fs::read(&before)
    {
        let (unfinished, packed) = (with(&before, ".tmp"), with(&before, ".gz"));
        std::fs::write(&unfinished, gzip(&bytes)).unwrap();
        std::fs::rename(unfinished, packed).unwrap();
        std::fs::remove_file(before).unwrap();
    }
    std::fs::rename(&log.path, name(*rotations)).unwrap();
    *rotations += 1;
    log.reopen();
}

fn with(path: &Path, suffix: &str) -> PathBuf {
    PathBuf::from(format!("{}{suffix}", path.display()))
}

#[test]
fn a_link_of_a_container_is_one_log_over_rotations_and_restarts() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    let pod = place.path().join("pods/ns_pod_uid/app");
    std::fs::create_dir_all(&pod).unwrap();
    let mut log = Log::create(&pod, "0.log");
    std::os::unix::fs::symlink(&log.path, place.logs().join("pod_ns_app-0123.log")).unwrap();
    let (mut random, mut rotations) = (Random::new(51), 0);
    log.append(100);
    for _ in 0..4 {
        let mut program = place.start(&SYMLINKS);
        // Files rotated before the first look at a link are not read.
        program.await_that("its first lines are there", || distinct(&server.documents()) >= 100);
        for _ in 0..4 {
            log.append(1 + random.below(300) as usize);
            if random.one_in(2) {
                let least = log.next - (random.below(300) as usize).min(log.next);
                program.await_that("it catches up", || distinct(&server.documents()) >= least);
            }
            for _ in 0..random.below(3) {
                rotate(&mut log, &mut rotations);
                log.append(1 + random.below(100) as usize);
            }
        }
        program.terminate().succeeded();
        // The program is away while the log is rotated.
        for _ in 0..random.below(3) {
            rotate(&mut log, &mut rotations);
            log.append(1 + random.below(100) as usize);
        }
    }
    let mut program = place.start(&SYMLINKS);
    program.await_that("every line is there", || distinct(&server.documents()) >= log.next);
    program.terminate().succeeded();
    assert!(rotations > 8, "{rotations}");
    accept("container log behind a link", judge(&[("0.log", log.next)], &server.documents()), 0);
}

#[test]
fn files_that_are_rotated_away_and_deleted_while_the_output_hangs_are_read() {
    const KEPT: usize = 3;
    const ROTATIONS: usize = 10;
    let server = BulkServer::start();
    let place = Place::new(&server);
    place.open_endpoint();
    place.configure(&place.configuration().replace("timeout: 5s", "timeout: 10m"));
    let mut log = Log::create(&place.logs(), "app.log");
    server.hold();
    let mut program = place.start(&[]);
    for file in 1..=ROTATIONS {
        log.append(2000);
        program.await_that("the file is kept open", || {
            let open = place.stat("/filebeat/harvester/open_files");
            open.is_some_and(|open| open as usize >= file)
        });
        if file > KEPT {
            std::fs::remove_file(log.rotated(KEPT, "")).unwrap();
        }
        log.rename();
    }
    server.release();
    program.await_that("every line is there", || distinct(&server.documents()) >= log.next);
    program.terminate().succeeded();
    let verdict = judge(&[("app.log", log.next)], &server.documents());
    accept("rotated away and deleted while the output hangs", verdict, 0);
}

#[test]
fn a_pinned_file_outlives_its_deletion_and_a_kill() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    let path = place.write("a", &lines("a", 0..5000));
    server.hold();
    let mut program = place.start(&PIN);
    let pins = || {
        let folders = std::fs::read_dir(place.data().join("pins")).into_iter().flatten();
        folders
            .map(|folder| std::fs::read_dir(folder.unwrap().path()).unwrap().count())
            .sum::<usize>()
    };
    program.await_that("it is pinned", || pins() == 1);
    std::fs::remove_file(path).unwrap();
    program.kill();
    server.release();
    let mut program = place.start(&PIN);
    program.await_that("every line is there", || distinct(&server.documents()) >= 5000);
    program.await_that("the pin is gone", || pins() == 0);
    program.terminate().succeeded();
    let verdict = judge(&[("a", 5000)], &server.documents());
    accept("deleted while the output hangs, and killed; pinned", verdict, QUEUE_EVENTS);
}
