//! An input ends and begins again while the program runs, as a change of its configuration makes it do.

use super::pipeline::Pipeline;
use crate::stage::Stage;
use skidder_input_file::{FileInput, Handover};
use skidder_read::InputContext;
use skidder_testkit::Random;
use std::sync::Arc;

/// One action in so many begins a change.
const ONE_IN: u64 = 300;

/// An input that ends, and what its successor is made of.
pub(super) struct Reloading {
    handover: Handover,
    context: Arc<InputContext>,
}

impl Pipeline {
    /// A step of the change under way, or the beginning of one.
    pub(super) fn reload(&mut self, stage: &mut Stage, random: &mut Random) -> Result<(), String> {
        if self.reloading.is_none()
            && random.one_in(ONE_IN)
            && let Some((context, leaving)) = self.life.looking.end_one(stage, random)
        {
            stage.story.log(|| format!("the input `{}` ends", context.settings.id));
            self.reloading = Some(Reloading { handover: Handover::begin(vec![leaving]), context });
        }
        if random.one_in(3) { self.go_on_reloading(stage) } else { Ok(()) }
    }

    /// A step of the change under way, if there is one.
    pub(super) fn go_on_reloading(&mut self, stage: &mut Stage) -> Result<(), String> {
        let Some(mut reloading) = self.reloading.take() else { return Ok(()) };
        // What is let go of now has its last counts.
        self.check_ledgers()?;
        let settle = Arc::clone(&self.life.settle);
        let mut wrong = None;
        let mut commit = |_| match self.flush_as(stage, true) {
            Ok(saved) => saved,
            Err(error) => {
                wrong = Some(error);
                false
            }
        };
        let is_over = reloading.handover.step(&settle, &mut commit);
        if let Some(error) = wrong {
            return Err(error);
        }
        if !is_over {
            self.reloading = Some(reloading);
            return Ok(());
        }
        self.life.looking.forget_later(reloading.handover.take_gone());
        let context = reloading.context;
        stage.story.log(|| format!("the input `{}` begins", context.settings.id));
        let (readers, ids) = (Arc::clone(&self.life.readers), Arc::clone(&self.life.ids));
        let input = FileInput::new(Arc::clone(&context), readers, ids);
        self.life.looking.begin(input, context);
        Ok(())
    }
}
