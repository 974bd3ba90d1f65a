//! `skidder-bench peers`: log shippers race over the same work into the same counting server.
//!
//! Each cell of a matrix is run with every peer that can do it, in turn, so that a machine that slows down slows all
//! of them; the first peer changes from round to round. The first round is for warming up, and reads the numbers of
//! the lines: missing and repeated ones are reported exactly. The others only count, and are measured. A peer
//! that is not given, or cannot do a cell, is left out with the reason.

mod arguments;
mod cell;
mod collector;
mod faults;
mod filebeat;
mod fluent_bit;
mod html;
mod input;
mod markdown;
mod peer;
mod race;
mod rotating;
mod vector;
mod vlagent;

pub use arguments::{Arguments, run};
pub use cell::{Cell, Files, Form, Matrix, Pace, Work};
pub use faults::{Scenario, judge};
pub use html::page;
pub use input::Inputs;
pub use markdown::tables;
pub use peer::{Fit, Kind, Peer};
pub use race::{Loss, Run, Times};

use crate::measure::note;

/// What to race.
#[derive(Debug)]
pub struct Race {
    /// The peers; all others are compared with the first.
    pub peers: Vec<Peer>,
    /// Over what.
    pub cells: Vec<Cell>,
    /// With what going wrong.
    pub scenarios: Vec<Scenario>,
    /// Measured runs of each peer in each cell.
    pub runs: u32,
    /// How long and how patiently.
    pub times: Times,
    /// Lines of a fault scenario.
    pub fault_lines: u64,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// Each cell with an entry for each peer, in their order.
    pub cells: Vec<(Cell, Vec<Entry>)>,
    /// Each scenario with an entry for each peer: what it lost, or why it took no part.
    pub faults: Vec<(Scenario, Vec<Result<Loss, String>>)>,
}

/// A peer in a cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entry {
    /// The measured runs.
    pub runs: Vec<Run>,
    /// The worst loss of any of its runs, that of the first round included.
    pub loss: Loss,
    /// What it does differently here.
    pub but: Option<&'static str>,
    /// Why it is left out; then there are no runs.
    pub left_out: Option<String>,
}

impl Race {
    /// Runs everything. A peer that fails in a cell is left out there, and the others go on.
    pub fn run(&self, inputs: &Inputs) -> Results {
        let mut results = Results::default();
        for (number, &cell) in self.cells.iter().enumerate() {
            note(&format!("cell {} of {}: {}", number + 1, self.cells.len(), cell.name()));
            results.cells.push((cell, self.cell(inputs, cell)));
        }
        for &scenario in &self.scenarios {
            note(&format!("fault: {}", scenario.name()));
            let judged = self.peers.iter().map(|peer| self.fault(inputs, peer, scenario));
            results.faults.push((scenario, judged.collect()));
        }
        results
    }

    fn cell(&self, inputs: &Inputs, cell: Cell) -> Vec<Entry> {
        let mut entries: Vec<Entry> =
            self.peers.iter().map(|peer| Entry::of(peer.kind.fit(&cell))).collect();
        for round in 0..=self.runs {
            for turn in 0..self.peers.len() {
                let number = (turn + round as usize) % self.peers.len();
                let (peer, entry) = (&self.peers[number], &mut entries[number]);
                if entry.left_out.is_some() {
                    continue;
                }
                let is_first = round == 0;
                match race::run(inputs, peer, cell, self.times, is_first) {
                    Ok(run) => entry.add(run, is_first, &peer.name),
                    Err(error) => {
                        note(&format!("  {}: {error:#}", peer.name));
                        entry.leave_out(format!("{error:#}"));
                    }
                }
            }
        }
        entries
    }

    fn fault(&self, inputs: &Inputs, peer: &Peer, scenario: Scenario) -> Result<Loss, String> {
        if let Some(reason) = scenario.unfit(peer.kind) {
            return Err(reason.to_owned());
        }
        let judged = judge(inputs, peer, scenario, self.fault_lines, self.times.patience)
            .map_err(|error| format!("{error:#}"));
        note(&format!("  {}: {judged:?}", peer.name));
        judged
    }
}

impl Entry {
    fn of(fit: Fit) -> Self {
        match fit {
            Fit::Yes => Self::default(),
            Fit::But(difference) => Self { but: Some(difference), ..Self::default() },
            Fit::No(reason) => Self { left_out: Some(reason.to_owned()), ..Self::default() },
        }
    }

    fn add(&mut self, run: Run, is_first: bool, name: &str) {
        note(&format!(
            "  {name}: {:.3} µs a line, {:.1} MB{}{}",
            run.cpu_us,
            run.memory_bytes as f64 / 1e6,
            run.rate.map_or(String::new(), |rate| format!(", {rate:.0} lines/s")),
            if run.loss.is_none() { String::new() } else { format!(", {:?}", run.loss) },
        ));
        self.loss = self.loss.worse(run.loss);
        if !is_first {
            self.runs.push(run);
        }
    }

    fn leave_out(&mut self, reason: String) {
        self.runs.clear();
        self.left_out = Some(reason);
    }

    /// One figure of all runs.
    pub fn figures(&self, of: impl Fn(&Run) -> Option<f64>) -> Vec<f64> {
        self.runs.iter().filter_map(of).collect()
    }
}

#[cfg(test)]
mod tests;
