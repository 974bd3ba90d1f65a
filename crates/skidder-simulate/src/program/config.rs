//! The configuration of one life of the program.

use super::life::DATA;
use crate::oracle::truth::MESSAGE_BYTES_MAX;
use crate::records::Dialect;
use crate::themes::{Special, Themes};
use regex::bytes::Regex;
use skidder_os::Timestamp;
use skidder_pipeline::{DeadLettersLimits, DiskQueueSettings, QueueLimits, TakeLimits};
use skidder_read::glob::Pattern;
use skidder_read::scan::ScanSettings;
use skidder_read::{
    Compression, FileIdentity, FilestreamSettings, PinSettings, ReadersLimits, TakeOver,
};
use skidder_testkit::Random;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The inputs: id and pattern.
pub(super) const INPUTS: [(&str, &str); 3] =
    [("a", "/logs/a/*.log*"), ("b", "/logs/b/**/*.log*"), ("pods", "/logs/pods/*/*/*.log*")];

/// The input of containers.
const CONTAINERS: usize = 2;

/// What stands for the device in `inode_marker`.
pub(crate) const MARKER: &str = "/marker";

/// What may be another from one life of the program to the next.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(super) readers: ReadersLimits,
    pub(super) queue: QueueLimits,
    pub(super) rows_max: usize,
    pub(super) harvester_limit: Option<usize>,
    pub(super) on_eof: bool,
    pub(super) inactive: Duration,
    pub(super) after_interval: Option<Duration>,
    pub(super) renamed: bool,
    pub(super) removed: bool,
    pub(super) check_interval: Duration,
    /// Scans and flushes happen when they are due, not at any time.
    pub(super) punctual: bool,
    /// Compressed files are not looked at.
    pub(super) plain_only: bool,
    pub(super) reader_threads: usize,
    pub(super) output_workers: usize,
    pub(super) take: TakeLimits,
    pub(super) dead_letters: DeadLettersLimits,
    /// Inputs that do not listen to change notification.
    pub(super) deaf: [bool; INPUTS.len()],
    dialects: [Dialect; INPUTS.len()],
    pub(super) special: Special,
    identity: FileIdentity,
    delete: Option<Duration>,
    /// The outputs that there are, in the order of the list.
    pub(super) outputs: Vec<usize>,
    /// Outputs of the whole run.
    outputs_max: usize,
    /// `queue.disk` of the outputs that have it.
    disk: Option<Disk>,
    /// Of the first input: no id, an id, another one with `take_over`.
    id_stage: u64,
}

/// Sizes of a queue on the disk.
#[derive(Clone, Debug)]
struct Disk {
    max_size: u64,
    segment_size: u64,
    read_ahead: usize,
    write_ahead: usize,
}

impl Disk {
    fn random(random: &mut Random) -> Self {
        Self {
            max_size: if random.one_in(4) { 0 } else { 2000 + random.below(100_000) },
            segment_size: 500 + random.below(20_000),
            read_ahead: 1 + random.below(200) as usize,
            write_ahead: 4 + random.below(200) as usize,
        }
    }
}

/// At least one of so many outputs, in any order.
fn some_of(count: usize, random: &mut Random) -> Vec<usize> {
    let mut outputs: Vec<usize> = (0..count).filter(|_| !random.one_in(5)).collect();
    if outputs.is_empty() {
        outputs.push(random.below(count as u64) as usize);
    }
    for at in (1..outputs.len()).rev() {
        outputs.swap(at, random.below(at as u64 + 1) as usize);
    }
    outputs
}

impl Config {
    pub(crate) fn random(themes: &Themes, random: &mut Random) -> Self {
        let patient = random.one_in(2) || themes.special == Special::Hang;
        Self {
            readers: ReadersLimits {
                open_files: if patient { 1000 } else { 2 + random.below(12) as usize },
                decoders: 1 + random.below(3) as usize,
            },
            queue: QueueLimits {
                events: 4 + random.below(200) as usize,
                bytes: 20_000 + random.below(1 << 20) as usize,
                flush_min_events: 0,
                flush_timeout: Duration::ZERO,
            },
            rows_max: 1 + random.below(60) as usize,
            harvester_limit: (!patient && random.one_in(3)).then(|| 1 + random.below(3) as usize),
            on_eof: !patient && random.one_in(5),
            inactive: Duration::from_secs(if patient { 3600 } else { 5 + random.below(300) }),
            after_interval: (!patient && random.one_in(5))
                .then(|| Duration::from_secs(1 + random.below(60))),
            renamed: !patient && random.one_in(4),
            removed: !patient && random.one_in(4),
            check_interval: Duration::from_millis(200 + random.below(12_000)),
            punctual: random.one_in(2),
            plain_only: random.one_in(8),
            reader_threads: 1 + random.below(3) as usize,
            output_workers: 1 + random.below(4) as usize,
            take: TakeLimits {
                events: random.below(60) as usize,
                bytes: 1 + random.below(30_000) as usize,
            },
            dead_letters: DeadLettersLimits {
                bytes: if random.one_in(4) { random.below(4000) } else { 1 << 30 },
            },
            deaf: [false; INPUTS.len()],
            dialects: themes.dialects,
            special: themes.special,
            identity: FileIdentity::Fingerprint,
            delete: None,
            outputs: vec![0],
            outputs_max: themes.outputs(),
            disk: None,
            id_stage: u64::from(themes.special != Special::Ids),
        }
        .with(themes, random)
    }

    /// What the themes of the seed add.
    fn with(mut self, themes: &Themes, random: &mut Random) -> Self {
        if themes.notices.is_some() {
            self.deaf = self.deaf.map(|_| random.one_in(8));
        }
        if themes.joins() {
            // A group of lines ends when its file is closed by one of these.
            (self.on_eof, self.renamed, self.removed) = (false, false, false);
        }
        match themes.special {
            // What is compressed meanwhile could not be followed, and what was pinned would be read as text.
            Special::Containers | Special::Pins(_) => self.plain_only = false,
            Special::Deletion if random.one_in(2) => {
                self.delete = Some(Duration::from_secs(random.below(20)));
            }
            Special::Outputs { deletes, .. } => {
                self.outputs = some_of(themes.outputs(), random);
                self.delete =
                    (deletes && random.one_in(2)).then(|| Duration::from_secs(random.below(20)));
            }
            _ => {}
        }
        if themes.has_disk() {
            self.disk = Some(Disk::random(random));
        }
        if themes.special == Special::Names {
            self.identity = match random.below(5) {
                0 => FileIdentity::Native,
                1 => FileIdentity::Path,
                2 => FileIdentity::InodeMarker(PathBuf::from(MARKER)),
                _ => FileIdentity::Fingerprint,
            };
            // The product refuses the rest.
            self.plain_only |= !self.identity.is_content();
        }
        self
    }

    /// What a new configuration goes on from in an old one.
    pub(super) fn follow(&mut self, before: &Self, random: &mut Random) {
        if self.special == Special::Ids {
            self.id_stage = 2.min(before.id_stage + random.below(2));
        }
    }

    /// Compressed files are looked at.
    pub(super) fn see_all(&mut self) {
        self.plain_only = false;
        self.identity = FileIdentity::Fingerprint;
        self.outputs = (0..self.outputs_max).collect();
    }

    /// Outputs of the whole run.
    pub(super) fn outputs_max(&self) -> usize {
        self.outputs_max
    }

    /// Whether all outputs of the run are there.
    pub(super) fn has_all_outputs(&self) -> bool {
        self.outputs.len() == self.outputs_max
    }

    /// `queue.disk` of an output: of several, the first and the third have one.
    pub(super) fn disk_of(&self, number: usize, path: PathBuf) -> Option<DiskQueueSettings> {
        let disk = self.disk.as_ref().filter(|_| number.is_multiple_of(2))?;
        Some(DiskQueueSettings {
            path,
            max_size: disk.max_size,
            segment_size: disk.segment_size,
            read_ahead: disk.read_ahead,
            write_ahead: disk.write_ahead,
            retry_interval: DiskQueueSettings::RETRY_INTERVAL,
            max_retry_interval: DiskQueueSettings::MAX_RETRY_INTERVAL,
            key: None,
        })
    }

    /// Nothing makes the program close a file before it is read.
    pub(super) fn is_patient(&self) -> bool {
        self.readers.open_files >= 1000
    }

    /// The settings of one input.
    pub(super) fn settings(&self, number: usize) -> FilestreamSettings {
        let (mut id, mut pattern) = INPUTS[number];
        if number == CONTAINERS && self.special == Special::Containers {
            pattern = "/logs/containers/*.log";
        }
        if number == 0 {
            id = ["", id, "another"][self.id_stage as usize];
        }
        let pattern = Pattern::parse(pattern, Path::new("/"), true).expect("a good pattern");
        let exclude = if self.plain_only { r"\.(tmp|gz)$" } else { r"\.tmp$" };
        let exclude = Regex::new(exclude).expect("a good pattern");
        let scan = ScanSettings {
            patterns: vec![pattern],
            exclude_files: vec![exclude],
            left_out: std::sync::Arc::default(),
            symlinks: self.special == Special::Containers,
            ..ScanSettings::default()
        };
        let mut settings = FilestreamSettings::new(id, scan);
        // The data directory is as old as the world.
        settings.rotated_since = Some(Timestamp(0));
        settings.compression = if self.plain_only { Compression::None } else { Compression::Auto };
        // Files a portion at a time: one, two, or all of them.
        settings.heads_bytes_max = match self.rows_max % 3 {
            0 => 1,
            1 => 2 * settings.fingerprint.length as usize,
            _ => settings.heads_bytes_max,
        };
        settings.check_interval = self.check_interval;
        settings.message_max_bytes = MESSAGE_BYTES_MAX;
        settings.harvester_limit = self.harvester_limit;
        settings.close.on_eof = self.on_eof;
        settings.close.inactive = Some(self.inactive);
        settings.close.after_interval = self.after_interval;
        settings.close.renamed = self.renamed;
        settings.close.removed = self.removed;
        settings.parsers = self.dialects[number].parsers();
        settings.identity = self.identity.clone();
        settings.delete = self.delete;
        if number == 0 && self.id_stage == 2 {
            settings.take_over = TakeOver::Inputs(vec![INPUTS[0].0.to_owned()]);
        }
        if let Special::Pins(max_bytes) = self.special {
            let directory = Path::new(DATA).join("pins");
            settings.pin = PinSettings { max_bytes: Some(max_bytes), directory: Some(directory) };
        }
        settings.notify = !self.deaf[number];
        settings
    }
}
