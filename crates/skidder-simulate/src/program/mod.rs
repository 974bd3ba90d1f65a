//! skidder in the simulated world: the same calls as the threads of a pipeline make, in an order that comes
//! from the seed.

mod config;
mod life;
mod looking;
mod output;
mod pipeline;
mod power;
mod reading;
mod reload;

pub(crate) use config::{Config, MARKER};
pub(crate) use power::End;

use crate::others::{Others, Watched};
use crate::scenario::{Scenario, Weather};
use crate::stage::Stage;
use crate::themes::Special;
use life::{DATA, Shares};
use pipeline::Pipeline;
use power::Dying;
use skidder_testkit::{Fault, Operation, Random, SimFs};
use std::io;
use std::path::{Path, PathBuf};

/// The program and all that the oracle watches of it.
pub(crate) struct Program {
    config: Config,
    /// One for each output, in the order of the configuration.
    pipelines: Vec<Pipeline>,
    dying: Option<Dying>,
}

impl Program {
    pub(crate) fn start(
        config: Config,
        scenario: &Scenario,
        stage: &mut Stage,
        others: &mut Others,
    ) -> Result<Self, String> {
        stage.story.log(|| format!("starts with {config:?}"));
        others.set_plain_only(config.plain_only, &mut stage.truth);
        stage.truth.set_present(&config.outputs);
        let mut shares = Shares::of(&config);
        let mut pipelines = Vec::new();
        for &number in &config.outputs {
            let shares = shares.pop().unwrap_or_default();
            pipelines.push(Pipeline::start(&config, number, shares, scenario, stage)?);
        }
        Ok(Self { config, pipelines, dying: None })
    }

    /// The pipeline whose turn it is.
    fn any(&mut self, stage: &mut Stage, random: &mut Random) -> &mut Pipeline {
        let at = match self.pipelines.len() {
            1 => 0,
            count => random.below(count as u64) as usize,
        };
        let pipeline = &mut self.pipelines[at];
        stage.truth.select(pipeline.number);
        pipeline
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
        let is_dying = self.dying.is_some();
        let punctual = self.config.punctual;
        let pipeline = self.any(stage, random);
        if punctual {
            pipeline.be_punctual(stage, random)?;
        }
        match random.below(1000) {
            0..100 if !punctual => pipeline.look(stage, random),
            100..150 if !punctual => pipeline.flush(stage)?,
            150..165 if scenario.log_faults => log_fault(stage, random),
            165..180 if scenario.data_faults => data_fault(stage, random),
            145..150 if scenario.themes.notices.as_ref().is_some_and(|of| of.overflows) => {
                stage.story.log(|| "notices overflow".to_owned());
                stage.fs.overflow_notices();
            }
            180..190 if !is_dying => {
                stage.fs.clear_faults();
                stage.fs.set_capacity(None);
            }
            190..600 => pipeline.read(stage, random)?,
            600..1000 => pipeline.deliver(stage, random)?,
            _ => {}
        }
        pipeline.store(stage, random)?;
        if scenario.themes.special == Special::Reload {
            pipeline.reload(stage, random)?;
        }
        pipeline.check_ledgers()?;
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

    /// Reads and delivers until nothing moves any more; returns whether that came to be.
    pub(crate) fn settle_down(
        &mut self,
        steps_max: u64,
        stage: &mut Stage,
        random: &mut Random,
    ) -> Result<bool, String> {
        let mut idle = 0;
        for _ in 0..steps_max {
            let mut busy = false;
            for pipeline in &mut self.pipelines {
                stage.truth.select(pipeline.number);
                pipeline.read(stage, random)?;
                pipeline.deliver(stage, random)?;
                pipeline.store(stage, random)?;
                pipeline.go_on_reloading(stage)?;
                busy |= !pipeline.is_idle();
            }
            idle = if busy { 0 } else { idle + 1 };
            if idle > 30 {
                for pipeline in &mut self.pipelines {
                    stage.truth.select(pipeline.number);
                    pipeline.check_ledgers()?;
                    pipeline.flush(stage)?;
                }
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Looks for files of all inputs, for all outputs.
    pub(crate) fn look_around(&mut self, stage: &Stage) {
        for pipeline in &mut self.pipelines {
            pipeline.look_around(stage);
        }
    }

    /// The other side works from now on.
    pub(crate) fn fair_weather(&mut self) {
        for pipeline in &mut self.pipelines {
            pipeline.weather = Weather::default();
        }
    }

    /// What the program did to the files of others.
    pub(crate) fn check_kept(
        &mut self,
        stage: &mut Stage,
        others: &mut Others,
    ) -> Result<(), String> {
        others.find_deleted(stage)?;
        for pipeline in &mut self.pipelines {
            if pipeline.check_pins()? {
                others.give_up_pins(stage);
            }
        }
        Ok(())
    }

    /// Where the dead letters of an output are.
    pub(crate) fn dead_letters_of(&self, output: usize) -> PathBuf {
        life::dead_letters_of(&self.config, output)
    }

    /// All sources, for people.
    pub(crate) fn sources(&self) -> Vec<String> {
        self.pipelines.iter().flat_map(|pipeline| pipeline.life.sources()).collect()
    }

    /// A number that two runs of a seed must agree on.
    pub(crate) fn mark(&self) -> u64 {
        let marks = self.pipelines.iter().map(Pipeline::mark);
        marks.reduce(|one, other| one.rotate_left(7) ^ other).unwrap_or_default()
    }
}

impl Watched for Program {
    fn has_saved(&self, link: &Path) -> bool {
        self.pipelines.iter().all(|pipeline| pipeline.has_saved(link))
    }

    fn keeps_open(&self, fs: &SimFs, path: &Path) -> bool {
        self.dying.is_none() && self.pipelines.iter().all(|pipeline| pipeline.keeps_open(fs, path))
    }
}

/// Something about the log files fails soon.
fn log_fault(stage: &mut Stage, random: &mut Random) {
    let kind = [io::ErrorKind::PermissionDenied, io::ErrorKind::Other, io::ErrorKind::TimedOut]
        [random.below(3) as usize];
    let operation = [Operation::Open, Operation::Read, Operation::Stat, Operation::List]
        [random.below(4) as usize];
    // What cannot be looked at cannot be known again: it may be read twice, but is not lost.
    stage.truth.be_forgetful();
    stage.story.log(|| format!("soon fails {operation:?}: {kind}"));
    let fault = Fault::nth(1 + random.below(20), kind).of(operation).on("/logs");
    stage.fs.inject(fault.times(1 + random.below(5)));
}

/// Something about the program's own files fails soon, or the disk is full.
fn data_fault(stage: &mut Stage, random: &mut Random) {
    if random.one_in(4) {
        stage.story.log(|| "the disk is full".to_owned());
        stage.fs.set_capacity(Some(stage.fs.used() + random.below(40_000)));
        return;
    }
    let kind = [io::ErrorKind::StorageFull, io::ErrorKind::Other][random.below(2) as usize];
    let operation = [Operation::Write, Operation::Sync, Operation::Open][random.below(3) as usize];
    stage.story.log(|| format!("soon fails {operation:?} of our own files: {kind}"));
    let fault = Fault::nth(1 + random.below(20), kind).of(operation).on(DATA);
    stage.fs.inject(fault.times(1 + random.below(5)));
}
