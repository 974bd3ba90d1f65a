//! Inputs that end and begin while the program runs: all of them in a reload, single ones for autodiscover.

use super::{Happened, Running, span_of};
use crate::input_print::InputPrint;
use crate::inputs::Input;
use crate::outputs::OutputParts;
use anyhow::{Result, bail};
use skidder_input_file::Ending;
use std::collections::BTreeMap;

/// Inputs of autodiscover that end and begin at an output.
#[derive(Default)]
pub(crate) struct Exchange {
    /// Their prints.
    pub(crate) end: Vec<InputPrint>,
    /// The keys of these.
    pub(crate) keys: Vec<String>,
    pub(crate) begin: Vec<Input>,
}

impl Running {
    /// Makes these the inputs of each output; returns how many begin and end, counted for each output.
    /// `None` if none changes.
    pub(crate) fn change(&mut self, wanted: Vec<OutputParts>) -> Result<Option<(u64, u64)>> {
        let place = |id: &Option<String>| self.outputs.iter().position(|output| output.id == *id);
        let mut changes = Vec::new();
        for output in wanted {
            match place(&output.id) {
                Some(number) => changes.push((number, output.inputs)),
                None if output.inputs.is_empty() => {}
                None => bail!(
                    "the output `{}` had no input when skidder was started, and does not run: start it again",
                    output.id.as_deref().unwrap_or("output")
                ),
            }
        }
        // An output that has ended can give no more verdicts.
        changes.retain(|(number, _)| !self.outputs[*number].has_ended());
        self.tasks.expect(changes.iter().flat_map(|(_, inputs)| inputs));
        let mut counts = None;
        for (number, inputs) in changes {
            let output = &mut self.outputs[number];
            let send = self.send.clone();
            // The main thread may be gone already.
            let done = Box::new(move || drop(send.send(Happened::InputsChanged)));
            let _in = span_of(output.id.as_deref()).entered();
            if let Some((began, ended)) = output.change(inputs, &mut self.tasks, done)? {
                self.changing += 1;
                let (all_began, all_ended) = counts.unwrap_or_default();
                counts = Some((all_began + began, all_ended + ended));
            }
        }
        Ok(counts)
    }

    /// Ends and begins inputs of autodiscover at the outputs with these numbers, beside everything else.
    pub(crate) fn exchange(
        &mut self,
        exchanges: BTreeMap<usize, Exchange>,
        ending: Ending,
    ) -> Result<()> {
        self.tasks.expect(exchanges.values().flat_map(|exchange| &exchange.begin));
        for (output, exchange) in exchanges {
            self.exchange_at(output, exchange, ending)?;
        }
        Ok(())
    }

    fn exchange_at(&mut self, output: usize, exchange: Exchange, ending: Ending) -> Result<()> {
        let Exchange { end, keys, begin } = exchange;
        let output = &mut self.outputs[output];
        let send = self.send.clone();
        // An output that has ended can give no more verdicts.
        if output.has_ended() {
            drop(send.send(Happened::Exchanged(keys)));
            return Ok(());
        }
        // The main thread may be gone already.
        let done = Box::new(move || drop(send.send(Happened::Exchanged(keys))));
        let _in = span_of(output.id.as_deref()).entered();
        output.exchange(&end, ending, begin, &mut self.tasks, done)?;
        Ok(())
    }

    /// Wakes the main thread when watchers have something to report.
    pub(crate) fn wake_of_discovery(&self) -> impl Fn() + Clone + Send + Sync + 'static + use<> {
        let send = self.send.clone();
        // The main thread may be gone already.
        move || drop(send.send(Happened::Discovered))
    }

    /// Whether inputs are still to end or to begin.
    pub(crate) fn is_changing(&self) -> bool {
        self.changing > 0
    }

    /// An output has the inputs that it should have.
    pub(super) fn inputs_changed(&mut self) {
        self.changing -= 1;
        if self.changing == 0 {
            self.sockets.close_unclaimed();
            tracing::info!("all inputs are as configured");
        }
    }
}
