//! The scanner thread, one of its steps at a time: with change notification as [`Scanner`] has it, or with
//! nothing but scans, of the input that the seed chooses.

use super::Config;
use super::pipeline::Pipeline;
use crate::stage::Stage;
use skidder_os::{Clock, Monotonic};
use skidder_pipeline::{FileInput, Scanner};
use skidder_testkit::{Random, SimFs};

/// Who finds out that files have changed.
pub(super) enum Looking {
    /// Scans of one input each, and when they are due.
    Scans(Vec<(FileInput, Monotonic)>),
    /// The product's scanner, which is told of changes.
    Told(Told),
}

pub(super) struct Told {
    scanner: Scanner,
    /// Whatever is told, it is not asked before this.
    rests_until: Monotonic,
    /// It is asked now, even if nothing was told.
    due: Monotonic,
}

impl Looking {
    pub(super) fn new(inputs: Vec<FileInput>, listens: bool, fs: &SimFs) -> Self {
        if !listens {
            let due = Monotonic::default();
            return Self::Scans(inputs.into_iter().map(|input| (input, due)).collect());
        }
        let (rests_until, due) = (Monotonic::default(), Monotonic::default());
        Self::Told(Told { scanner: Scanner::new(inputs, fs), rests_until, due })
    }
}

impl Told {
    fn step(&mut self, stage: &Stage) {
        let nap = self.scanner.step(&|| stage.now());
        self.rests_until = stage.clock.monotonic() + nap.pause;
        self.due = nap.until;
        stage.story.tell(|| format!("scanner: {nap:?}, {} watched", stage.fs.watched()));
    }
}

impl Pipeline {
    /// Looks as a punctual program does: when it is due, or in the middle of something when it was told of a
    /// change. Says whether it did.
    pub(super) fn look_if_due(&mut self, stage: &Stage, random: &mut Random) -> bool {
        let now = stage.clock.monotonic();
        match &mut self.life.looking {
            Looking::Scans(inputs) => {
                let Some((input, due)) = inputs.iter_mut().find(|(_, due)| *due <= now) else {
                    return false;
                };
                *due = scan(input, &self.config, stage);
            }
            Looking::Told(told) => {
                if told.due > now && (told.rests_until > now || !random.one_in(8)) {
                    return false;
                }
                told.step(stage);
            }
        }
        true
    }

    /// Looks at any time.
    pub(super) fn look(&mut self, stage: &Stage, random: &mut Random) {
        match &mut self.life.looking {
            Looking::Scans(inputs) => {
                let number = random.below(inputs.len() as u64) as usize;
                let (input, due) = &mut inputs[number];
                *due = scan(input, &self.config, stage);
            }
            Looking::Told(told) => told.step(stage),
        }
    }

    /// Looks for files of all inputs.
    pub(crate) fn look_around(&mut self, stage: &Stage) {
        match &mut self.life.looking {
            Looking::Scans(inputs) => {
                for (input, due) in inputs {
                    *due = scan(input, &self.config, stage);
                }
            }
            Looking::Told(told) => told.step(stage),
        }
    }
}

/// Scans one input; says when the next scan is due.
fn scan(input: &mut FileInput, config: &Config, stage: &Stage) -> Monotonic {
    let summary = input.scan(stage.now());
    stage.story.tell(|| format!("scan: {summary:?}"));
    stage.clock.monotonic() + config.check_interval
}
