//! The pipeline of one output, and what the oracle watches of it.

use super::config::Config;
use super::life::{Life, Shares};
use super::output::Behind;
use super::reading::Worker;
use super::reload::Reloading;
use crate::oracle::{LineId, Way};
use crate::scenario::{Scenario, Weather};
use crate::stage::Stage;
use crate::themes::Special;
use skidder_event::SourceId;
use skidder_os::{Clock, Monotonic};
use skidder_read::ReaderState;
use skidder_testkit::{Random, SimFs};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What the registrar waits between two saves, when it is punctual: `filebeat.registry.flush`.
const FLUSH: Duration = Duration::from_secs(1);

/// More than all pins of a run take.
const PINS_PLENTY: u64 = 1 << 30;

/// The pipeline of one output.
pub(super) struct Pipeline {
    pub(super) config: Config,
    pub(super) life: Life,
    pub(super) way: Way,
    pub(super) weather: Weather,
    /// Which output this is, whatever its place in the list.
    pub(super) number: usize,
    /// Paths that have an entry in the registry, if the scenario needs them.
    saved: BTreeSet<PathBuf>,
    /// Pins that were given up so far.
    given_up: u64,
    /// Lines that were delivered since it was last certain that the state of the disk queue says so.
    unsaved: Vec<LineId>,
    /// Nothing fails that is written for the program itself.
    saves_state: bool,
    /// An input that ends, to begin again.
    pub(super) reloading: Option<Reloading>,
    /// When files of waiting sources are opened next, if there is no room in the queue.
    pub(super) open_waiting_at: Monotonic,
    /// Sources that waited for a turn while there was no room, and have had none since: their files are kept open. With
    /// the device and inode: a source may go on in a copy.
    pub(super) promised: BTreeMap<SourceId, (u64, u64)>,
}

impl Pipeline {
    pub(super) fn start(
        config: &Config,
        number: usize,
        shares: Shares,
        scenario: &Scenario,
        stage: &Stage,
    ) -> Result<Self, String> {
        let listens = scenario.themes.notices.is_some();
        let life = Life::new(&stage.fs, &stage.clock, config, listens, number, shares)?;
        for sentence in life.saved() {
            stage.story.log(|| sentence);
        }
        let saved = if scenario.themes.special == Special::Containers {
            life.saved_paths()
        } else {
            BTreeSet::new()
        };
        Ok(Self {
            config: config.clone(),
            life,
            way: Way::default(),
            weather: scenario.weather_of(number),
            number,
            saved,
            given_up: 0,
            unsaved: Vec::new(),
            saves_state: !scenario.data_faults,
            reloading: None,
            open_waiting_at: Monotonic::default(),
            promised: BTreeMap::new(),
        })
    }

    /// What a punctual program does when it is due.
    pub(super) fn be_punctual(
        &mut self,
        stage: &mut Stage,
        random: &mut Random,
    ) -> Result<(), String> {
        let now = stage.clock.monotonic();
        if self.look_if_due(stage, random) {
            // That was the action.
        } else if self.life.flush_due <= now {
            self.life.flush_due = now + FLUSH;
            self.flush(stage)?;
        }
        Ok(())
    }

    /// Nothing is on its way.
    pub(super) fn is_idle(&self) -> bool {
        self.life.output.is_idle()
            && self.life.settle.in_flight() == 0
            && self.life.workers.iter().all(Worker::is_free)
            && self.life.disk.as_ref().is_none_or(|disk| disk.filled().events == 0)
    }

    /// A step of one worker of the output.
    pub(super) fn deliver(&mut self, stage: &mut Stage, random: &mut Random) -> Result<(), String> {
        let Life { output, queue, disk, .. } = &mut self.life;
        match disk {
            None => {
                output.act(queue, &self.weather, &mut Behind::Way(&mut self.way), stage, random)
            }
            Some(disk) => {
                let mut behind = Behind::Disk(&mut self.unsaved);
                output.act(disk.back(), &self.weather, &mut behind, stage, random)
            }
        }
    }

    /// A step of the disk queue, if there is one.
    pub(super) fn store(&mut self, stage: &mut Stage, random: &mut Random) -> Result<(), String> {
        let Some(disk) = self.life.disk.clone() else { return Ok(()) };
        let step = match random.below(10) {
            0..4 => disk.write_step(),
            4..9 => disk.read_step(),
            _ => {
                disk.maintain();
                // Nothing failed, and nothing is left: what was delivered is known to be.
                if disk.filled().events == 0 && self.saves_state && !stage.fs.halted() {
                    self.unsaved.clear();
                }
                return Ok(());
            }
        };
        if let Err(error) = step {
            stage.story.log(|| format!("the disk queue: {error}"));
        }
        self.pass_stored(stage);
        Ok(())
    }

    /// What cursors pass now is in the disk queue for good.
    fn pass_stored(&mut self, stage: &mut Stage) {
        let way = &mut self.way;
        self.life.settle.for_each(|status| {
            let Some((_, cursor)) = status.file() else { return };
            for line in way.pass(status.source.0, cursor.generation, cursor.offset) {
                stage.truth.keep(line);
            }
        });
    }

    /// The counts of this output must add up.
    pub(super) fn check_ledgers(&mut self) -> Result<(), String> {
        let Life { ledgers, settle, disk, .. } = &mut self.life;
        ledgers
            .check(settle, disk.is_some())
            .map_err(|what| format!("output {}: {what}", self.number))
    }

    /// The program ends: what may come again.
    pub(super) fn let_go(&mut self, stage: &mut Stage) {
        stage.truth.select(self.number);
        stage.truth.next_life(self.way.end());
        for line in std::mem::take(&mut self.unsaved) {
            stage.truth.allow_again(line);
        }
    }

    /// Paths that have an entry in the registry, if the scenario needs them.
    pub(super) fn saved(&self) -> BTreeSet<PathBuf> {
        self.saved.clone()
    }

    /// Saves cursors, and checks them before.
    pub(super) fn flush(&mut self, stage: &mut Stage) -> Result<(), String> {
        self.flush_as(stage, false).map(|_| ())
    }

    /// The same; `last` before the program, or an input, ends in order. Returns whether all is durable.
    pub(super) fn flush_as(&mut self, stage: &mut Stage, last: bool) -> Result<bool, String> {
        let mut cursors = Vec::new();
        self.life.settle.for_each(|status| {
            if let Some((_, cursor)) = status.file() {
                cursors.push((status.source.0, cursor.generation, cursor.offset));
            }
        });
        for &(source, generation, offset) in &cursors {
            self.way.check(source, generation, offset)?;
        }
        let registrar = &mut self.life.registrar;
        let saved =
            if last { registrar.flush_last(&stage.clock) } else { registrar.flush(&stage.clock) };
        stage.story.log(|| format!("saves cursors: {saved}"));
        if saved {
            for (source, generation, offset) in cursors {
                self.way.durable(source, generation, offset);
            }
            if self.config.special == Special::Containers {
                self.saved = self.life.saved_paths();
            }
        }
        Ok(saved)
    }

    /// Whether pins were given up since the last look, as is allowed.
    pub(super) fn check_pins(&mut self) -> Result<bool, String> {
        let Special::Pins(limit) = self.config.special else { return Ok(false) };
        let (given_up, bytes) =
            (self.life.metrics.pins_given_up.get(), self.life.metrics.pinned_bytes.get());
        if bytes > limit {
            return Err(format!("pins: {bytes} bytes are kept, {limit} are allowed"));
        }
        if given_up > std::mem::replace(&mut self.given_up, given_up) {
            if limit >= PINS_PLENTY {
                return Err("pins: given up although there was room".to_owned());
            }
            return Ok(true);
        }
        Ok(false)
    }

    /// A number that two runs of a seed must agree on.
    pub(super) fn mark(&self) -> u64 {
        let total = self.life.settle.total();
        total.read() ^ total.delivered() << 20 ^ total.read_bytes() << 40
    }

    /// Whether the registry has something of a path.
    pub(super) fn has_saved(&self, link: &Path) -> bool {
        self.saved.contains(link)
    }

    /// Whether a reader has a file open, and will not close it.
    pub(super) fn keeps_open(&self, fs: &SimFs, path: &Path) -> bool {
        let Some(at_path) = fs.peek_metadata(path) else { return false };
        if !self.config.is_patient() {
            return false;
        }
        let nobody_reads = self.life.workers.iter().all(Worker::is_free);
        let mut kept = false;
        self.life.settle.for_each(|status| {
            let Some((meta, _)) = status.file() else { return };
            let here = (meta.device, meta.inode);
            if here == (at_path.device, at_path.inode) && &*meta.source == path {
                kept |= self.promised.get(&status.source) == Some(&here);
                // What has its turn just now may be about to be opened.
                kept |= self.life.readers.look(status.source).is_some_and(|look| {
                    look.open
                        && look.trouble.is_none()
                        && (look.state == ReaderState::Idle || nobody_reads)
                });
            }
        });
        kept
    }
}
