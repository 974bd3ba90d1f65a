//! The oracle per output: what other programs write is the same for all outputs, where it ended is not.

use super::truth::{LineId, OfOutput};
use std::ops::{Deref, DerefMut};

/// All lines, and their state on the way to each output. What the program does with a line concerns the output
/// that was [selected](Truth::select).
#[derive(Debug)]
pub(crate) struct Truth {
    outputs: Vec<OfOutput>,
    /// Those that this life of the program has.
    present: Vec<bool>,
    selected: usize,
}

impl Default for Truth {
    fn default() -> Self {
        Self { outputs: vec![OfOutput::default()], present: vec![true], selected: 0 }
    }
}

impl Deref for Truth {
    type Target = OfOutput;

    fn deref(&self) -> &OfOutput {
        &self.outputs[self.selected]
    }
}

impl DerefMut for Truth {
    fn deref_mut(&mut self) -> &mut OfOutput {
        &mut self.outputs[self.selected]
    }
}

impl Truth {
    /// There are so many outputs, before anything was written.
    pub(crate) fn set_outputs(&mut self, count: usize) {
        self.outputs.resize_with(count, OfOutput::default);
        self.present.resize(count, true);
    }

    /// What follows concerns this output.
    pub(crate) fn select(&mut self, output: usize) {
        self.selected = output;
    }

    /// A life of the program has these outputs.
    pub(crate) fn set_present(&mut self, outputs: &[usize]) {
        for (number, present) in self.present.iter_mut().enumerate() {
            *present = outputs.contains(&number);
        }
    }

    /// Something happened that explains lines that come twice.
    pub(crate) fn be_forgetful(&mut self) {
        self.each(|of| of.forgetful = true);
    }

    fn each<T>(&mut self, act: impl FnMut(&mut OfOutput) -> T) -> T {
        let all: Vec<T> = self.outputs.iter_mut().map(act).collect();
        all.into_iter().next().expect("there is an output")
    }

    /// A content without lines.
    pub(crate) fn content(&mut self) -> usize {
        self.each(OfOutput::content)
    }

    /// A content may be read again from here on.
    pub(crate) fn forget(&mut self, content: usize) {
        self.each(|of| of.forget(content));
    }

    /// A new line of a content, with its name and `padding`.
    pub(crate) fn line(&mut self, content: usize, padding: &[u8]) -> Vec<u8> {
        self.each(|of| of.line(content, padding))
    }

    /// A new event of a content that begins with its name, and the text that must come of it.
    pub(crate) fn event(&mut self, content: usize, stream: usize, text: Vec<u8>) -> LineId {
        self.each(|of| of.event(content, stream, text.clone()))
    }

    /// An event is whole.
    pub(crate) fn complete_event(&mut self, id: LineId) {
        self.each(|of| of.complete_event(id));
    }

    /// The last line of a content is whole.
    pub(crate) fn complete(&mut self, content: usize) {
        self.each(|of| of.complete(content));
    }

    /// Whether every whole line of a content was read in this life for all outputs, or has its verdict of all.
    pub(crate) fn is_read(&self, content: usize) -> bool {
        self.outputs.iter().all(|of| of.is_read(content))
    }

    /// The content is gone for good: what was not read is not required.
    pub(crate) fn excuse_unread(&mut self, content: usize) {
        self.each(|of| of.excuse_unread(content));
    }

    /// The program ended, and with it what it held of a content that is gone from the disk.
    pub(crate) fn excuse_unsettled(&mut self, content: usize) {
        self.each(|of| of.excuse_unsettled(content));
    }

    /// The program deleted a file with this content. An output that it has not now cannot be checked.
    pub(crate) fn check_deleted(&mut self, content: usize) -> Result<(), String> {
        for (number, of) in self.outputs.iter_mut().enumerate() {
            if self.present[number] {
                of.check_deleted(content).map_err(|what| format!("output {number}: {what}"))?;
            } else {
                of.excuse_unread(content);
            }
        }
        Ok(())
    }

    /// Whether everything has arrived at all outputs.
    pub(crate) fn is_complete(&self) -> bool {
        self.outputs.iter().all(OfOutput::is_complete)
    }

    /// Number of outputs.
    pub(crate) fn outputs(&self) -> usize {
        self.outputs.len()
    }
}
