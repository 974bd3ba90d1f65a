//! The progress of `skidder ship` on a terminal: bytes, lines a second, time left; each file with `-v`.

use crate::plain::shown;
use crate::run::Running;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use skidder_pipeline::SourceStatus;
use skidder_read::scan::Found;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Files shown at once with `-v`.
const FILES_SHOWN: usize = 8;

/// Draws a bar over the stored bytes of all files, and with `-v` one line for each file in progress. On
/// anything but a terminal nothing is drawn.
pub(crate) struct Progress {
    bars: MultiProgress,
    total: ProgressBar,
    files: Option<HashMap<PathBuf, FileLine>>,
}

/// One file with `-v`.
struct FileLine {
    size: u64,
    bar: Option<ProgressBar>,
    printed: bool,
}

impl Progress {
    /// A bar for these files.
    pub(crate) fn new(files: &[Found], each: bool) -> Self {
        let bars = MultiProgress::new();
        let size = files.iter().map(|file| file.metadata.size).sum();
        let total = bars.add(ProgressBar::new(size));
        total.set_style(style(
            "{bar:30} {bytes}/{total_bytes} {msg} {elapsed_precise}, {eta_precise} left",
        ));
        let files = each.then(|| {
            let line = |file: &Found| {
                let line = FileLine { size: file.metadata.size, bar: None, printed: false };
                (file.path.clone(), line)
            };
            files.iter().map(line).collect()
        });
        Self { bars, total, files }
    }

    /// Draws the current state.
    pub(crate) fn draw(&mut self, running: &Running) {
        let only = running.first();
        let lines = only.settle.total().read();
        let seconds = self.total.elapsed().as_secs_f64().max(0.001);
        let stored = only.inputs.iter().map(|input| input.counts.stored_bytes()).sum();
        self.total.set_position(stored);
        self.total.set_message(format!("{lines} lines, {:.0} lines/s", lines as f64 / seconds));
        if self.files.is_some() {
            only.settle.for_each(|status| self.draw_file(&status));
        }
    }

    fn draw_file(&mut self, status: &SourceStatus) {
        let Some(files) = &mut self.files else { return };
        let shown = files.values().filter(|line| line.bar.is_some()).count();
        let Some((meta, cursor)) = status.file() else { return };
        let Some(line) = files.get_mut(&*meta.source) else { return };
        let ledger = &status.ledger;
        if line.printed || ledger.read() == 0 {
            return;
        }
        let finished = ledger.in_flight() == 0 && (cursor.eof || cursor.offset >= line.size);
        if finished {
            line.printed = true;
            if let Some(bar) = line.bar.take() {
                bar.finish_and_clear();
            }
            print_file(&self.bars, &meta.source, status);
        } else if line.bar.is_some() || shown < FILES_SHOWN {
            let bar = line.bar.get_or_insert_with(|| {
                let bar = self.bars.add(ProgressBar::new_spinner());
                bar.set_style(style("  {wide_msg}"));
                bar
            });
            bar.set_message(describe(&meta.source, status));
        }
    }

    /// Removes the bar; prints the files that were not printed yet.
    pub(crate) fn end(&mut self, running: &Running) {
        self.draw(running);
        if let Some(files) = &mut self.files {
            running.first().settle.for_each(|status| {
                let Some((meta, _)) = status.file() else { return };
                if let Some(line) = files.get_mut(&*meta.source)
                    && !std::mem::replace(&mut line.printed, true)
                {
                    if let Some(bar) = line.bar.take() {
                        bar.finish_and_clear();
                    }
                    print_file(&self.bars, &meta.source, &status);
                }
            });
        }
        self.total.set_message(String::new());
        self.total.finish_and_clear();
    }
}

fn describe(path: &Path, status: &SourceStatus) -> String {
    let ledger = &status.ledger;
    format!("{}: {} lines, {} bytes", shown(path), ledger.read(), ledger.read_bytes())
}

#[expect(clippy::print_stderr, reason = "asked for with -v, where no terminal shows bars")]
fn print_file(bars: &MultiProgress, path: &Path, status: &SourceStatus) {
    let text = describe(path, status);
    if bars.is_hidden() {
        eprintln!("{text}");
    } else if let Err(error) = bars.println(&text) {
        tracing::debug!(%error, "the terminal takes no line");
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
