//! The results as Markdown, as benchstat shows them: medians, spreads, and what differs significantly from the first
//! peer.

use super::{Entry, Peer, Results, Run};
use crate::statistics::{ALPHA, RUNS_FOR_SIGNIFICANCE, mann_whitney, summarize};

/// A figure of a run: its heading, and how it is taken and shown.
#[derive(Clone, Copy)]
pub(super) struct Figure {
    pub(super) heading: &'static str,
    pub(super) of: fn(&Run) -> Option<f64>,
}

/// In the order of the columns.
pub(super) const FIGURES: [Figure; 5] = [
    Figure { heading: "CPU µs a line", of: |run| Some(run.cpu_us) },
    Figure { heading: "lines/s", of: |run| run.rate },
    Figure { heading: "% of a core", of: |run| run.core_percent },
    Figure { heading: "peak MB", of: |run| Some(run.memory_bytes as f64 / 1e6) },
    Figure { heading: "MB sent", of: |run| Some(run.sent_bytes as f64 / 1e6) },
];

/// One table that shows CPU in all cells, one for each cell, and one of the faults.
pub fn tables(peers: &[Peer], results: &Results, about: &str) -> String {
    let mut text = String::new();
    if !results.cells.is_empty() {
        overview(&mut text, peers, results);
        details(&mut text, peers, results);
    }
    if !results.faults.is_empty() {
        faults(&mut text, peers, results);
    }
    text.push_str(about);
    text.push('\n');
    text
}

fn row(text: &mut String, cells: impl IntoIterator<Item = String>) {
    for cell in cells {
        text.push_str(&format!("| {} ", cell.replace('|', "/").replace('\n', " ")));
    }
    text.push_str("|\n");
}

fn head<'a>(text: &mut String, first: &str, others: impl Iterator<Item = &'a str> + Clone) {
    row(text, std::iter::once(first.to_owned()).chain(others.clone().map(str::to_owned)));
    text.push_str("|---|");
    text.push_str(&"---:|".repeat(others.count()));
    text.push('\n');
}

fn overview(text: &mut String, peers: &[Peer], results: &Results) {
    text.push_str("## CPU, µs a line\n\n");
    head(text, "cell", peers.iter().map(|peer| peer.name.as_str()));
    let cpu = FIGURES[0];
    for (cell, entries) in &results.cells {
        let figures = entries
            .iter()
            .map(|entry| compared(entry, &entries[0], cpu).unwrap_or_else(|| "–".to_owned()));
        row(text, std::iter::once(cell.name()).chain(figures));
    }
    text.push('\n');
}

fn details(text: &mut String, peers: &[Peer], results: &Results) {
    for (cell, entries) in &results.cells {
        text.push_str(&format!("## {}\n\n", cell.name()));
        let has =
            |figure: &Figure| entries.iter().any(|entry| !entry.figures(figure.of).is_empty());
        let figures: Vec<Figure> = FIGURES.into_iter().filter(has).collect();
        let headings = figures.iter().map(|figure| figure.heading).chain(["missing", "twice"]);
        head(text, "", headings);
        for (peer, entry) in peers.iter().zip(entries).filter(|(_, entry)| entry.left_out.is_none())
        {
            let shown = figures.iter().map(|&figure| {
                compared(entry, &entries[0], figure).unwrap_or_else(|| "–".to_owned())
            });
            let loss = [lines(entry.loss.missing), lines(entry.loss.twice)];
            row(text, std::iter::once(peer.name.clone()).chain(shown).chain(loss));
        }
        text.push('\n');
        for remark in remarks(peers, entries) {
            text.push_str(&format!("- {remark}\n"));
        }
        text.push('\n');
    }
}

/// Remarks on the peers in a cell, for the text next to their figures.
pub(super) fn remarks(peers: &[Peer], entries: &[Entry]) -> Vec<String> {
    let mut remarks = Vec::new();
    for (peer, entry) in peers.iter().zip(entries) {
        let name = &peer.name;
        if let Some(reason) = &entry.left_out {
            remarks.push(format!("{name} is left out: {}", reason.replace('\n', " ")));
        }
        if let Some(difference) = entry.but {
            remarks.push(format!("{name}: {difference}"));
        }
        if entry.loss.unknown > 0 {
            remarks.push(format!(
                "{name} sent {} events that are none of the lines",
                entry.loss.unknown
            ));
        }
    }
    remarks
}

/// A number of lines that ought to be 0.
fn lines(number: u64) -> String {
    if number == 0 { "0".to_owned() } else { format!("**{number}**") }
}

/// The median with its spread, and how it compares with the first peer's; `None` without runs.
pub(super) fn compared(entry: &Entry, first: &Entry, figure: Figure) -> Option<String> {
    let figures = entry.figures(figure.of);
    let summary = summarize(&figures)?;
    let mut text = format!("{} ±{:.0} %", number(summary.median), summary.spread_percent());
    let base = first.figures(figure.of);
    if std::ptr::eq(entry, first) || base.is_empty() {
        return Some(text);
    }
    let median = summarize(&base)?.median;
    let p = mann_whitney(&figures, &base)?;
    let runs = format!("n={}+{}", base.len(), figures.len());
    if figures.len().min(base.len()) < RUNS_FOR_SIGNIFICANCE {
        text.push_str(&format!(" (×{}, too few runs, {runs})", number(summary.median / median)));
    } else if p < ALPHA {
        text.push_str(&format!(" (×{}, p={p:.3} {runs})", number(summary.median / median)));
    } else {
        text.push_str(&format!(" (~, p={p:.3} {runs})"));
    }
    Some(text)
}

/// Three significant digits below 1,000, whole numbers above, with separators.
pub(super) fn number(value: f64) -> String {
    if value.abs() < 999.5 {
        return crate::table::number(value);
    }
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn faults(text: &mut String, peers: &[Peer], results: &Results) {
    text.push_str("## Faults: lines missing / twice\n\n");
    head(text, "", peers.iter().map(|peer| peer.name.as_str()));
    let mut remarks = Vec::new();
    for (scenario, judged) in &results.faults {
        let shown = judged.iter().map(|outcome| match outcome {
            Ok(loss) if loss.unknown > 0 => {
                format!("{} / {} (and {} unknown)", lines(loss.missing), loss.twice, loss.unknown)
            }
            Ok(loss) => format!("{} / {}", lines(loss.missing), loss.twice),
            Err(_) => "–".to_owned(),
        });
        row(text, std::iter::once(scenario.name().to_owned()).chain(shown));
        for (peer, outcome) in peers.iter().zip(judged) {
            if let Err(reason) = outcome {
                remarks.push(format!("{}, {}: {reason}", peer.name, scenario.name()));
            }
        }
        if scenario.must_repeat() {
            remarks
                .push(format!("{}: these lines must come twice, nobody can know", scenario.name()));
        }
    }
    text.push('\n');
    for remark in remarks {
        text.push_str(&format!("- {}\n", remark.replace('\n', " ")));
    }
    text.push('\n');
}
