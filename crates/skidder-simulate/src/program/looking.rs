//! The scanner thread, one of its steps at a time: with change notification as [`Scanner`] has it, or with
//! nothing but scans, of the input that the seed chooses.

use super::Config;
use super::pipeline::Pipeline;
use crate::stage::Stage;
use skidder_input_file::{FileInput, Scanner};
use skidder_os::{Clock, Monotonic};
use skidder_pipeline::QueueLimits;
use skidder_read::{GoneFiles, InputContext, Leaving};
use skidder_testkit::{Random, SimFs};
use std::sync::Arc;

/// How the program finds out that files have changed.
pub(super) enum Looking {
    /// Scans of one input each, and when they are due.
    Scans(Vec<(FileInput, Arc<InputContext>, Monotonic)>),
    /// The product's scanner, with change notification.
    Notified(Box<Notified>),
}

pub(super) struct Notified {
    scanner: Scanner,
    /// The context of each input, by its number; `None` once it has ended.
    contexts: Vec<Option<Arc<InputContext>>>,
    /// No step before this, whatever notices come.
    rests_until: Monotonic,
    /// The next step, even without a notice.
    due: Monotonic,
}

impl Looking {
    pub(super) fn new(
        inputs: Vec<FileInput>,
        contexts: Vec<Arc<InputContext>>,
        listens: bool,
        fs: &SimFs,
    ) -> Self {
        if !listens {
            let due = Monotonic::default();
            let inputs = inputs.into_iter().zip(contexts);
            return Self::Scans(inputs.map(|(input, context)| (input, context, due)).collect());
        }
        let (rests_until, due) = (Monotonic::default(), Monotonic::default());
        let contexts = contexts.into_iter().map(Some).collect();
        let scanner = Scanner::new(inputs, fs).with_queue_waiting(QueueLimits::FLUSH_TIMEOUT);
        Self::Notified(Box::new(Notified { scanner, contexts, rests_until, due }))
    }

    /// Ends one of the inputs; returns what it was made of, and what is left of it.
    pub(super) fn end_one(
        &mut self,
        stage: &Stage,
        random: &mut Random,
    ) -> Option<(Arc<InputContext>, Leaving)> {
        match self {
            Self::Scans(inputs) => {
                let at = random.below(inputs.len() as u64) as usize;
                let (input, context, _) = inputs.remove(at);
                Some((context, input.leave(stage.now())))
            }
            Self::Notified(notified) => {
                let running =
                    (0..notified.contexts.len()).filter(|&at| notified.contexts[at].is_some());
                let running: Vec<usize> = running.collect();
                let at = running[random.below(running.len() as u64) as usize];
                Some((notified.contexts[at].take()?, notified.scanner.end(at, stage.now())?))
            }
        }
    }

    /// Files of an input that has ended are forgotten later.
    pub(super) fn forget_later(&mut self, gone: GoneFiles) {
        if let Self::Notified(notified) = self {
            notified.scanner.forget_later(gone);
        }
    }

    /// Another input, which is looked at at once.
    pub(super) fn begin(&mut self, input: FileInput, context: Arc<InputContext>) {
        match self {
            Self::Scans(inputs) => inputs.push((input, context, Monotonic::default())),
            Self::Notified(notified) => {
                notified.scanner.add(notified.contexts.len(), input);
                notified.contexts.push(Some(context));
                notified.due = Monotonic::default();
            }
        }
    }
}

impl Notified {
    fn step(&mut self, stage: &Stage) {
        let next = self.scanner.step(&|| stage.now());
        self.rests_until = stage.clock.monotonic() + next.pause;
        self.due = next.until;
        stage.story.log(|| format!("scanner: {next:?}, {} watched", stage.fs.watched()));
    }
}

impl Pipeline {
    /// Looks as a punctual program does: when it is due, or in the middle of something after a notice of a
    /// change. Returns whether it did.
    pub(super) fn look_if_due(&mut self, stage: &Stage, random: &mut Random) -> bool {
        let now = stage.clock.monotonic();
        match &mut self.life.looking {
            Looking::Scans(inputs) => {
                let Some((input, _, due)) = inputs.iter_mut().find(|(.., due)| *due <= now) else {
                    return false;
                };
                *due = scan(input, &self.config, stage);
            }
            Looking::Notified(notified) => {
                if notified.due > now && (notified.rests_until > now || !random.one_in(8)) {
                    return false;
                }
                notified.step(stage);
            }
        }
        true
    }

    /// Looks at any time.
    pub(super) fn look(&mut self, stage: &Stage, random: &mut Random) {
        match &mut self.life.looking {
            Looking::Scans(inputs) => {
                let number = random.below(inputs.len() as u64) as usize;
                let (input, _, due) = &mut inputs[number];
                *due = scan(input, &self.config, stage);
            }
            Looking::Notified(notified) => notified.step(stage),
        }
    }

    /// Looks for files of all inputs.
    pub(crate) fn look_around(&mut self, stage: &Stage) {
        match &mut self.life.looking {
            Looking::Scans(inputs) => {
                for (input, _, due) in inputs {
                    *due = scan(input, &self.config, stage);
                }
            }
            Looking::Notified(notified) => notified.step(stage),
        }
    }
}

/// Scans one input; returns when the next scan is due.
fn scan(input: &mut FileInput, config: &Config, stage: &Stage) -> Monotonic {
    let summary = input.scan(stage.now());
    stage.story.log(|| format!("scan: {summary:?}"));
    stage.clock.monotonic() + config.check_interval
}
