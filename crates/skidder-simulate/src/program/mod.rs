//! skidder in the simulated world: the same calls as the threads of a pipeline make, in an order that comes
//! from the seed.

mod config;
mod life;
mod looking;
mod output;
mod power;
mod reading;

pub(crate) use config::{Config, MARKER};
pub(crate) use power::End;

use crate::oracle::Way;
use crate::others::{Others, Watched};
use crate::scenario::Scenario;
use crate::stage::Stage;
use crate::themes::Special;
use life::{DATA, Life};
use power::Dying;
use reading::Worker;
use skidder_os::Clock;
use skidder_read::ReaderState;
use skidder_testkit::{Fault, Operation, Random, SimFs};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What the registrar waits between two saves, when it is punctual: `filebeat.registry.flush`.
const FLUSH: Duration = Duration::from_secs(1);

/// More than all pins of a run take.
const PINS_PLENTY: u64 = 1 << 30;

/// The program and all that the oracle watches of it.
pub(crate) struct Program {
    config: Config,
    life: Life,
    way: Way,
    weather: crate::scenario::Weather,
    dying: Option<Dying>,
    /// Paths of which the registry has something, where somebody asks for that.
    saved: BTreeSet<PathBuf>,
    /// Pins that were given up so far.
    given_up: u64,
}

impl Program {
    pub(crate) fn start(
        config: Config,
        scenario: &Scenario,
        stage: &mut Stage,
        others: &mut Others,
    ) -> Result<Self, String> {
        stage.story.tell(|| format!("starts with {config:?}"));
        others.set_plain_only(config.plain_only, &mut stage.truth);
        let life = Life::new(&stage.fs, &stage.clock, &config, scenario.themes.notices.is_some())?;
        for sentence in life.saved() {
            stage.story.tell(|| sentence);
        }
        let weather = scenario.weather.clone();
        let saved = if scenario.themes.special == Special::Containers {
            life.saved_paths()
        } else {
            BTreeSet::new()
        };
        Ok(Self { config, life, way: Way::default(), weather, dying: None, saved, given_up: 0 })
    }

    /// One action. Anything that must not be is an error; an end is for the caller to carry out.
    pub(crate) fn act(
        &mut self,
        scenario: &Scenario,
        stage: &mut Stage,
        random: &mut Random,
    ) -> Result<Option<End>, String> {
        if let Some(end) = self.has_died(stage, random) {
            return Ok(Some(end));
        }
        let now = stage.clock.monotonic();
        if self.config.punctual {
            if self.look_if_due(stage, random) {
                // That was the action.
            } else if self.life.flush_due <= now {
                self.life.flush_due = now + FLUSH;
                self.flush(stage)?;
            }
        }
        match random.below(1000) {
            0..100 if !self.config.punctual => self.look(stage, random),
            100..150 if !self.config.punctual => self.flush(stage)?,
            150..165 if scenario.log_faults => log_fault(stage, random),
            165..180 if scenario.data_faults => data_fault(stage, random),
            145..150 if scenario.themes.notices.as_ref().is_some_and(|of| of.overflows) => {
                stage.story.tell(|| "notices overflow".to_owned());
                stage.fs.overflow_notices();
            }
            180..190 if self.dying.is_none() => {
                stage.fs.clear_faults();
                stage.fs.set_capacity(None);
            }
            190..600 => self.read(stage, random)?,
            600..1000 => self.deliver(stage, random)?,
            _ => {}
        }
        self.life.ledgers.check(&self.life.settle)?;
        let ends = &scenario.ends;
        let at = random.below(10_000);
        if self.dying.is_some() || at >= ends.kills + ends.power_cuts + ends.stops {
            return Ok(None);
        }
        let end = match at {
            at if at < ends.kills => End::Killed,
            at if at < ends.kills + ends.power_cuts => End::PowerCut,
            _ => return Ok(Some(End::Stopped)),
        };
        if random.one_in(2) {
            return Ok(Some(end));
        }
        self.begin_to_die(end, stage, random);
        Ok(None)
    }

    /// A step of one worker of the output.
    fn deliver(&mut self, stage: &mut Stage, random: &mut Random) -> Result<(), String> {
        let Life { output, queue, .. } = &mut self.life;
        output.act(queue, &self.weather, &mut self.way, stage, random)
    }

    /// Saves cursors, and checks them before.
    fn flush(&mut self, stage: &mut Stage) -> Result<(), String> {
        self.flush_as(stage, false)
    }

    /// The same; `last` before the program ends in order.
    fn flush_as(&mut self, stage: &mut Stage, last: bool) -> Result<(), String> {
        let mut cursors = Vec::new();
        self.life.settle.for_each(|status| {
            cursors.push((status.source.0, status.cursor.generation, status.cursor.offset));
        });
        for &(source, generation, offset) in &cursors {
            self.way.check(source, generation, offset)?;
        }
        let registrar = &mut self.life.registrar;
        let saved =
            if last { registrar.flush_last(&stage.clock) } else { registrar.flush(&stage.clock) };
        stage.story.tell(|| format!("saves cursors: {saved}"));
        if saved {
            for (source, generation, offset) in cursors {
                self.way.durable(source, generation, offset);
            }
            if self.config.special == Special::Containers {
                self.saved = self.life.saved_paths();
            }
        }
        Ok(())
    }

    /// Reads and delivers until nothing moves any more; says whether that came to be.
    pub(crate) fn settle_down(
        &mut self,
        steps_max: u64,
        stage: &mut Stage,
        random: &mut Random,
    ) -> Result<bool, String> {
        let mut idle = 0;
        for _ in 0..steps_max {
            self.read(stage, random)?;
            self.deliver(stage, random)?;
            let busy = !self.life.output.is_idle()
                || self.life.settle.in_flight() > 0
                || !self.life.workers.iter().all(Worker::is_free);
            idle = if busy { 0 } else { idle + 1 };
            if idle > 30 {
                self.life.ledgers.check(&self.life.settle)?;
                self.flush(stage)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The other side works from now on.
    pub(crate) fn fair_weather(&mut self) {
        self.weather = crate::scenario::Weather { failed: 0, unheard: 0, partial: 0, stalled: 0 };
    }

    /// What the program did to the files of others.
    pub(crate) fn check_kept(
        &mut self,
        stage: &mut Stage,
        others: &mut Others,
    ) -> Result<(), String> {
        others.find_deleted(stage)?;
        let Special::Pins(limit) = self.config.special else { return Ok(()) };
        let (given_up, bytes) =
            (self.life.metrics.pins_given_up.get(), self.life.metrics.pinned_bytes.get());
        if bytes > limit {
            return Err(format!("pins: {bytes} bytes are kept, {limit} are allowed"));
        }
        if given_up > std::mem::replace(&mut self.given_up, given_up) {
            if limit >= PINS_PLENTY {
                return Err("pins: given up although there was room".to_owned());
            }
            others.give_up_pins(stage);
        }
        Ok(())
    }

    /// All sources, for people.
    pub(crate) fn sources(&self) -> Vec<String> {
        self.life.sources()
    }

    /// A number that two runs of a seed must agree on.
    pub(crate) fn mark(&self) -> u64 {
        let total = self.life.settle.total();
        total.read() ^ total.delivered() << 20 ^ total.read_bytes() << 40
    }
}

impl Watched for Program {
    fn has_saved(&self, link: &Path) -> bool {
        self.saved.contains(link)
    }

    fn keeps_open(&self, fs: &SimFs, path: &Path) -> bool {
        let Some(at_path) = fs.peek_metadata(path) else { return false };
        if !self.config.is_patient() || self.dying.is_some() {
            return false;
        }
        let nobody_reads = self.life.workers.iter().all(Worker::is_free);
        let mut kept = false;
        self.life.settle.for_each(|status| {
            let here = (status.meta.device, status.meta.inode) == (at_path.device, at_path.inode);
            if here && &*status.meta.source == path {
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

/// Something about the log files fails soon.
fn log_fault(stage: &mut Stage, random: &mut Random) {
    let kind = [io::ErrorKind::PermissionDenied, io::ErrorKind::Other, io::ErrorKind::TimedOut]
        [random.below(3) as usize];
    let operation = [Operation::Open, Operation::Read, Operation::Stat, Operation::List]
        [random.below(4) as usize];
    // What cannot be looked at cannot be known again: it may be read twice, but is not lost.
    stage.truth.forgetful = true;
    stage.story.tell(|| format!("soon fails {operation:?}: {kind}"));
    let fault = Fault::nth(1 + random.below(20), kind).of(operation).on("/logs");
    stage.fs.inject(fault.times(1 + random.below(5)));
}

/// Something about the program's own files fails soon, or the disk is full.
fn data_fault(stage: &mut Stage, random: &mut Random) {
    if random.one_in(4) {
        stage.story.tell(|| "the disk is full".to_owned());
        stage.fs.set_capacity(Some(stage.fs.used() + random.below(40_000)));
        return;
    }
    let kind = [io::ErrorKind::StorageFull, io::ErrorKind::Other][random.below(2) as usize];
    let operation = [Operation::Write, Operation::Sync, Operation::Open][random.below(3) as usize];
    stage.story.tell(|| format!("soon fails {operation:?} of our own files: {kind}"));
    let fault = Fault::nth(1 + random.below(20), kind).of(operation).on(DATA);
    stage.fs.inject(fault.times(1 + random.below(5)));
}
