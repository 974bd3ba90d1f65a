//! How a life of the program ends: killed, by a power cut, or in order; and how the next begins.

use super::pipeline::Pipeline;
use super::{Config, Program};
use crate::others::{Others, Watched};
use crate::scenario::Scenario;
use crate::stage::Stage;
use skidder_testkit::{Random, SimFs};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// `kill -9`: the disk has all that was written.
    Killed,
    /// What was not synced is lost, or torn.
    PowerCut,
    /// In order: what was settled is saved.
    Stopped,
}

/// What the other programs see of the program while it is down.
struct Down(BTreeSet<PathBuf>);

impl Watched for Down {
    fn keeps_open(&self, _fs: &SimFs, _path: &Path) -> bool {
        false
    }

    fn has_saved(&self, link: &Path) -> bool {
        self.0.contains(link)
    }
}

/// A death that has begun: the disk does nothing any more, or soon.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dying {
    end: End,
    /// Steps until it is over.
    steps_left: u64,
}

/// Steps that the program takes at most on a disk that is about to do nothing any more.
const DYING_STEPS: u64 = 60;

impl Program {
    /// From one of the next operations on the disk nothing happens on it any more, until the end, which
    /// follows soon.
    pub(super) fn begin_to_die(&mut self, end: End, stage: &Stage, random: &mut Random) {
        let most = [3, 30, 300][random.below(3) as usize];
        let operations = 1 + random.below(most);
        stage.story.log(|| format!("{end:?} in {operations} operations on the disk"));
        stage.fs.clear_faults();
        stage.fs.halt_at(operations);
        self.dying = Some(Dying { end, steps_left: DYING_STEPS });
    }

    /// Whether a death that has begun is over with this step, and which one.
    pub(super) fn has_died(&mut self, stage: &Stage, random: &mut Random) -> Option<End> {
        let dying = self.dying.as_mut()?;
        dying.steps_left = dying.steps_left.saturating_sub(1);
        let over = dying.steps_left == 0 || (stage.fs.halted() && random.one_in(4));
        over.then_some(dying.end)
    }

    /// The death that has begun.
    pub(crate) fn dying(&self) -> Option<End> {
        self.dying.map(|dying| dying.end)
    }

    /// Ends this life and begins the next one.
    pub(crate) fn end(
        self,
        end: End,
        scenario: &Scenario,
        stage: &mut Stage,
        others: &mut Others,
        random: &mut Random,
    ) -> Result<Self, String> {
        let mut config = if scenario.ends.reconfigures {
            Config::random(&scenario.themes, random)
        } else {
            self.config.clone()
        };
        config.follow(&self.config, random);
        let down = Down(self.pipelines.first().map(Pipeline::saved).unwrap_or_default());
        self.leave(end, stage, others, random)?;
        if scenario.themes.pauses {
            let mut random = Random::new(random.number());
            for _ in 0..random.below(40) {
                stage.clock.advance(Duration::from_millis(random.below(1000)));
                others.hurry(stage);
                others.act(stage, &mut random, &down);
            }
        }
        Self::start(config, scenario, stage, others)
    }

    /// The end of the run wants everything: compressed files too, for all outputs.
    pub(crate) fn see_all(
        self,
        scenario: &Scenario,
        stage: &mut Stage,
        others: &mut Others,
        random: &mut Random,
    ) -> Result<Self, String> {
        if !self.config.plain_only && self.config.has_all_outputs() {
            return Ok(self);
        }
        let mut config = self.config.clone();
        config.see_all();
        self.leave(End::Killed, stage, others, random)?;
        Self::start(config, scenario, stage, others)
    }

    fn leave(
        mut self,
        end: End,
        stage: &mut Stage,
        others: &mut Others,
        random: &mut Random,
    ) -> Result<(), String> {
        if end == End::Stopped {
            stage.fs.clear_faults();
            for pipeline in &mut self.pipelines {
                pipeline.stop(stage, random)?;
            }
        } else {
            // What goes out of scope now must not reach the disk.
            stage.fs.halt_at(1);
        }
        for pipeline in &mut self.pipelines {
            pipeline.let_go(stage);
        }
        let absent: Vec<usize> = (0..stage.truth.outputs())
            .filter(|number| !self.config.outputs.contains(number))
            .collect();
        for number in absent {
            stage.truth.select(number);
            stage.truth.next_life(Vec::new());
        }
        drop(self.pipelines);
        match end {
            End::Stopped => {}
            End::Killed => stage.fs.kill(),
            End::PowerCut if random.one_in(2) => stage.fs.crash(),
            End::PowerCut => stage.fs.crash_torn(random.number()),
        }
        stage.fs.clear_faults();
        stage.fs.set_capacity(None);
        stage.story.log(|| format!("=== {end:?}"));
        if end == End::PowerCut {
            others.lose_pins();
        }
        for content in others.gone(stage.truth.contents()) {
            stage.truth.excuse_unsettled(content);
        }
        Ok(())
    }
}

impl Pipeline {
    /// As the program does on a signal to stop: no more reading, some time for the output, a last save.
    fn stop(&mut self, stage: &mut Stage, random: &mut Random) -> Result<(), String> {
        stage.truth.select(self.number);
        self.life.readers.stop();
        self.life.queue.close();
        self.finish_turns(stage);
        for _ in 0..random.below(60) {
            self.deliver(stage, random)?;
            self.store(stage, random)?;
        }
        self.life.queue.abort();
        if let Some(disk) = &self.life.disk {
            disk.stop();
        }
        self.flush_as(stage, true)?;
        if let Some(disk) = &self.life.disk {
            disk.maintain();
        }
        Ok(())
    }
}
