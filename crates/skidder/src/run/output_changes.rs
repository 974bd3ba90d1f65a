//! Inputs of one output that end and begin while it runs.

use super::inputs::{Inputs, Tasks};
use super::output::{RunningInput, RunningOutput};
use crate::input_print::InputPrint;
use crate::inputs::Input;
use anyhow::Result;
use skidder_input::TasksChange;
use skidder_input_file::{Ending, InputChange};
use skidder_observe::Counts;
use std::sync::{Arc, Mutex, PoisonError};

impl RunningOutput {
    /// Ends and begins inputs so that it has those that are `wanted`; returns how many begin and end. An input with
    /// the same configuration goes on. `done` is called when all that ended has its verdicts and the others have
    /// begun.
    pub(super) fn change(
        &mut self,
        wanted: Vec<Input>,
        tasks: &mut Tasks,
        done: Box<dyn FnOnce() + Send>,
    ) -> Result<Option<(u64, u64)>> {
        let mut before = std::mem::take(&mut self.inputs);
        let mut fresh = Vec::new();
        for input in wanted {
            if let Some(at) = before.iter().position(|running| running.print == input.print) {
                let mut running = before.swap_remove(at);
                running.number = input.number;
                self.inputs.push(running);
                continue;
            }
            fresh.push(input);
        }
        if fresh.is_empty() && before.is_empty() {
            self.show_inputs();
            return Ok(None);
        }
        self.switch(before, Ending::Now, false, fresh, tasks, done).map(Some)
    }

    /// Ends the inputs with these prints and begins others, beside other changes: none of those has to do with the files
    /// of these. `done` is called as with [`Self::change`].
    pub(super) fn exchange(
        &mut self,
        end: &[InputPrint],
        ending: Ending,
        begin: Vec<Input>,
        tasks: &mut Tasks,
        done: Box<dyn FnOnce() + Send>,
    ) -> Result<(u64, u64)> {
        let inputs = std::mem::take(&mut self.inputs);
        let (before, rest) = inputs.into_iter().partition(|input| end.contains(&input.print));
        self.inputs = rest;
        self.switch(before, ending, true, begin, tasks, done)
    }

    /// The inputs of `before`, which are no longer in the list, end, and these begin.
    fn switch(
        &mut self,
        before: Vec<RunningInput>,
        ending: Ending,
        beside: bool,
        begin: Vec<Input>,
        tasks: &mut Tasks,
        done: Box<dyn FnOnce() + Send>,
    ) -> Result<(u64, u64)> {
        let Inputs { running, files, lanes } = self.shared.inputs(begin, &mut self.slots, tasks)?;
        self.inputs.extend(running);
        self.show_inputs();
        let counts = ((files.len() + lanes.len()) as u64, before.len() as u64);
        let (list, settle) = (self.list.clone(), Arc::clone(&self.settle));
        let gone: Vec<Counts> = before.iter().map(|input| input.counts.clone()).collect();
        let (of_files, of_tasks): (Vec<RunningInput>, Vec<RunningInput>) =
            before.into_iter().partition(RunningInput::reads_files);
        let slots = |inputs: Vec<RunningInput>| inputs.iter().map(|input| input.slot).collect();
        let of_files: Vec<usize> = slots(of_files);
        let ended = of_files.clone();
        let all_done = move || {
            list.forget_gone(&gone);
            settle.forget_inputs(&ended);
            done();
        };
        // The later of the two calls it.
        let done = Arc::new(AllDone(Mutex::new(Some(Box::new(all_done)))));
        let (of_file, of_task) = (Arc::clone(&done), done);
        self.files.change(InputChange {
            remove: of_files,
            ending,
            beside,
            add: files,
            done: Box::new(move || drop(of_file)),
        });
        self.tasks.change(TasksChange {
            remove: slots(of_tasks),
            when_read: ending == Ending::WhenRead,
            add: lanes,
            done: Box::new(move || drop(of_task)),
        })?;
        Ok(counts)
    }

    /// The inputs, in the order of the configuration, for observers.
    fn show_inputs(&mut self) {
        self.inputs.sort_by_key(|input| input.number);
        self.list.replace(self.inputs.iter().map(RunningInput::source).collect());
    }
}

/// Calls its function when the last part of a change drops it.
struct AllDone(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl Drop for AllDone {
    fn drop(&mut self) {
        let done = self.0.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(done) = done {
            done();
        }
    }
}
