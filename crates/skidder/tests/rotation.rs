//! Logs that the real logrotate rotates while they are written and read.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::lines::{Log, distinct, judge};
use common::program::patiently;
use common::server::BulkServer;
use common::{Place, accept, print, seeds};
use skidder_testkit::Random;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::Duration;

const ROTATIONS: usize = 15;
/// Lines that are written first after a rotation.
const LITTLE: usize = 5;

/// logrotate with a configuration of its own.
struct Logrotate {
    config: PathBuf,
    state: PathBuf,
}

impl Logrotate {
    fn new(place: &Place, log: &Log, options: &str) -> Self {
        let (config, state) = (place.path().join("logrotate.conf"), place.path().join("state"));
        let path = log.path.display();
        let text = format!("\"{path}\" {{\n  rotate 1000\n  size 1\n  {options}\n}}\n");
        std::fs::write(&config, text).unwrap();
        // It reads no configuration that others may write.
        std::fs::set_permissions(&config, PermissionsExt::from_mode(0o644)).unwrap();
        Self { config, state }
    }

    fn start(&self) -> Child {
        let path = "/usr/sbin:/usr/bin:/sbin:/bin";
        let mut command = Command::new("logrotate");
        command.env("PATH", path).args(["-f", "-s"]).arg(&self.state).arg(&self.config);
        command.spawn().expect("logrotate is installed: tests/servers/programs.sh install")
    }
}

/// What a kind of rotation allows.
#[derive(Clone, Copy, Debug, Default)]
struct Case {
    /// Lines are written while logrotate works. Not where it would lose them itself.
    writes_meanwhile: bool,
    /// Everything is read once between two rotations. A file that is truncated and as long as before by
    /// the next look is taken for one that has grown; then lines come again.
    catches_up: bool,
    /// Lines that may come again although nothing crashed.
    repeats: usize,
    olddir: Olddir,
    /// `pin.enabled`: files that are behind have two names, which logrotate must be configured to accept.
    pinned: bool,
}

/// `olddir`: where rotated files go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Olddir {
    /// They stay.
    #[default]
    None,
    /// Into a directory that the input's paths match too.
    Matched,
    /// Out of reach: what is left of them is read from the open file, which is waited for before a rotation.
    OutOfReach,
}

impl Olddir {
    /// Makes the directory; returns the options for logrotate.
    fn make(self, place: &Place) -> String {
        let (folder, config) = match self {
            Self::None => return String::new(),
            Self::Matched => (place.logs().join("old"), place.path().join("filebeat.yml")),
            Self::OutOfReach => (place.path().join("old"), place.path().join("filebeat.yml")),
        };
        std::fs::create_dir(&folder).unwrap();
        if self == Self::Matched {
            let (logs, old) = (place.logs().join("*"), folder.join("*"));
            let paths = format!("'{}', '{}'", logs.display(), old.display());
            let text = std::fs::read_to_string(config).unwrap();
            place.configure(&text.replace(&format!("'{}'", logs.display()), &paths));
        }
        format!("\n  olddir {}", folder.display())
    }
}

/// What stands in a file that is truncated between the first look and the first read comes again when it
/// is found under its new name.
fn truncated() -> Case {
    Case { catches_up: true, repeats: LITTLE * ROTATIONS, ..Case::default() }
}

fn rotates(name: &str, first_seed: u64, options: &str, case: Case) {
    for seed in seeds(first_seed) {
        rotates_from(name, seed, options, case);
    }
}

/// Rotates at random moments: while the program is far behind, a little, and not at all.
fn rotates_from(name: &str, seed: u64, options: &str, case: Case) {
    print(&format!("{name}: seed {seed}"));
    let server = BulkServer::paced(Duration::from_millis(2));
    let place = Place::new(&server);
    let mut log = Log::create(&place.logs(), "app.log");
    let mut options = options.to_owned() + &case.olddir.make(&place);
    if case.pinned {
        let auto = "compression: auto";
        let config = place.configuration();
        place.configure(&config.replacen(auto, &format!("{auto}\n  pin.enabled: true"), 1));
        options += "\n  allowhardlink";
    }
    let logrotate = Logrotate::new(&place, &log, &options);
    let mut random = Random::new(seed);
    let mut program = place.start(&[]);
    for _ in 0..ROTATIONS {
        if case.olddir == Olddir::OutOfReach {
            log.append(1);
            let count = || distinct(&server.documents());
            program.await_that("the file is open", || count() >= log.next);
        }
        for _ in 0..=random.below(5) {
            log.append(1 + random.below(300) as usize);
            if random.one_in(3) {
                let least = log.next - (random.below(600) as usize).min(log.next);
                program.await_that("it catches up", || server.count() >= least);
            }
        }
        let mut rotating = logrotate.start();
        // Like a service that gets the signal to reopen its log only afterwards.
        while case.writes_meanwhile && rotating.try_wait().unwrap().is_none() {
            log.append(1);
        }
        if !rotating.wait().unwrap().success() {
            // A date as a name is taken until the next second.
            patiently("it rotates", || logrotate.start().wait().unwrap().success().then_some(()));
        }
        log.reopen();
        if case.catches_up {
            log.append(LITTLE);
            let count = || distinct(&server.documents());
            program.await_that("it catches up", || count() >= log.next);
        }
    }
    log.append(10);
    program.await_that("every line is there", || distinct(&server.documents()) >= log.next);
    program.terminate().succeeded();
    accept(name, judge(&[("app.log", log.next)], &server.documents()), case.repeats);
    // Nothing of it comes again at the next start.
    assert_eq!(place.once(&[]).succeeded().ledger().read, 0);
}

#[test]
#[ignore = "needs logrotate: cargo xtask test"]
fn logrotate_with_delayed_compression() {
    let name = "logrotate: compress, delaycompress, create";
    rotates(
        name,
        41,
        "compress\n  delaycompress\n  create 0644",
        Case { writes_meanwhile: true, ..Case::default() },
    );
}

#[test]
#[ignore = "needs logrotate: cargo xtask test"]
fn logrotate_with_compression_at_once() {
    rotates("logrotate: compress, create", 42, "compress\n  create 0644", Case::default());
}

#[test]
#[ignore = "needs logrotate: cargo xtask test"]
fn logrotate_without_compression() {
    rotates(
        "logrotate: nocompress, create",
        43,
        "nocompress\n  create 0644",
        Case { writes_meanwhile: true, ..Case::default() },
    );
}

#[test]
#[ignore = "needs logrotate: cargo xtask test"]
fn logrotate_that_copies_and_truncates() {
    rotates("logrotate: copytruncate", 44, "nocompress\n  copytruncate", truncated());
}

#[test]
#[ignore = "needs logrotate: cargo xtask test"]
fn logrotate_that_copies_truncates_and_compresses() {
    rotates("logrotate: copytruncate, compress", 45, "compress\n  copytruncate", truncated());
}

#[test]
#[ignore = "needs logrotate: cargo xtask test"]
fn logrotate_with_dates_in_names() {
    let options = "dateext\n  dateformat -%Y%m%d-%s\n  compress\n  delaycompress\n  create 0644";
    let case = Case { writes_meanwhile: true, ..Case::default() };
    rotates("logrotate: dateext, compress, delaycompress", 46, options, case);
}

#[test]
#[ignore = "needs logrotate: cargo xtask test"]
fn logrotate_that_tells_the_service_once_for_all_logs() {
    let options = "compress\n  create 0644\n  sharedscripts\n  postrotate\n    true\n  endscript";
    rotates("logrotate: compress, sharedscripts", 47, options, Case::default());
}

#[test]
#[ignore = "needs logrotate: cargo xtask test"]
fn logrotate_that_copies_truncates_and_dates() {
    let options = "dateext\n  dateformat -%Y%m%d-%s\n  copytruncate\n  compress\n  delaycompress";
    rotates("logrotate: dateext, copytruncate, delaycompress", 48, options, truncated());
}

#[test]
#[ignore = "needs logrotate: cargo xtask test"]
fn logrotate_into_another_directory_that_is_read() {
    let options = "compress\n  delaycompress\n  create 0644";
    let case = Case { writes_meanwhile: true, olddir: Olddir::Matched, ..Case::default() };
    rotates("logrotate: olddir, compress, delaycompress", 49, options, case);
}

#[test]
#[ignore = "needs logrotate: cargo xtask test"]
fn logrotate_into_another_directory_that_is_out_of_reach() {
    let options = "compress\n  delaycompress\n  create 0644";
    let case = Case { writes_meanwhile: true, olddir: Olddir::OutOfReach, ..Case::default() };
    rotates("logrotate: olddir out of reach", 50, options, case);
}

#[test]
#[ignore = "needs logrotate: cargo xtask test"]
fn logrotate_that_bears_pins() {
    let options = "compress\n  delaycompress\n  create 0644";
    let case = Case { writes_meanwhile: true, pinned: true, ..Case::default() };
    rotates("logrotate: pins, allowhardlink", 51, options, case);
}
