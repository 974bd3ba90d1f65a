//! The report of `skidder tune`: the table, and the lines to paste.

use super::cells::{Cell, queue_bytes, queue_events};
use super::events::Events;
use crate::table::table;
use skidder_pipeline::QueueLimits;
use std::fmt::Write as _;
use std::time::Duration;

/// Of the cells that come so close to the fastest one, the one with the least load on the server is the best.
const CLOSE: f64 = 0.95;

/// All that was measured.
pub(crate) struct Report<'a> {
    pub(crate) cells: &'a [Cell],
    pub(crate) events: &'a Events,
    pub(crate) seconds: Duration,
}

impl Report<'_> {
    /// The recommended cell; nothing if none delivered anything.
    pub(crate) fn best(&self) -> Option<&Cell> {
        let most = self.cells.iter().map(|cell| cell.rate).fold(0.0, f64::max);
        let close = self.cells.iter().filter(|cell| cell.rate > 0.0 && cell.rate >= CLOSE * most);
        // Few requests at once; then small ones; then compressed ones, which are easy on the network.
        close.min_by_key(|cell| {
            let sizes = cell.sizes;
            (sizes.workers * sizes.events, sizes.workers, sizes.level == 0, sizes.level)
        })
    }

    /// The sent events, in a sentence.
    pub(crate) fn about(&self) -> String {
        let cut = if self.events.is_cut { " (the first of the sample)" } else { "" };
        let (count, seconds) = (self.events.count, self.seconds.as_secs_f64());
        format!("{count} events{cut}, again and again; {seconds} s for each line")
    }

    /// The rows of the table, under [`HEAD`].
    pub(crate) fn rows(&self) -> Vec<[String; HEAD.len()]> {
        let row = |cell: &Cell| {
            [
                cell.sizes.workers.to_string(),
                cell.sizes.events.to_string(),
                cell.sizes.level.to_string(),
                format!("{:.0}", cell.rate),
                format!("{:.1}", cell.bytes / 1e6),
                format!("{:.1}", cell.latency_ms),
                cell.too_many.to_string(),
                cell.refused.to_string(),
                cell.failed.to_string(),
            ]
        };
        self.cells.iter().map(row).collect()
    }

    /// The table and the recommendation.
    pub(crate) fn text(&self) -> String {
        let mut text = table(HEAD, &self.rows());
        writeln!(text, "\n{}", self.about()).expect("writing to a string cannot fail");
        if let Some(yaml) = self.yaml() {
            text.push('\n');
            text.push_str(&yaml);
        }
        text
    }

    /// The recommendation as lines of a configuration.
    pub(crate) fn yaml(&self) -> Option<String> {
        let best = self.best()?;
        let sizes = best.sizes;
        let mut text = format!(
            "# {:.0} events/s. In the section of the output, without `preset`, which would overwrite it:\n\
             worker: {}\nbulk_max_size: {}\ncompression_level: {}\n\
             # and at the root, so that the queue holds the requests that are ready and under way:\n\
             queue.mem.events: {}\nqueue.mem.flush.min_events: {}\n",
            best.rate,
            sizes.workers,
            sizes.events,
            sizes.level,
            queue_events(sizes),
            sizes.events
        );
        let bytes = queue_bytes(sizes, self.events.memory_bytes);
        if bytes > QueueLimits::default().bytes {
            let mebibytes = bytes.div_ceil(1 << 20);
            writeln!(text, "queue.mem.bytes: {mebibytes}MiB")
                .expect("writing to a string cannot fail");
        }
        Some(text)
    }
}

/// Names of the columns.
pub(crate) const HEAD: [&str; 9] =
    ["WORKER", "BULK_MAX_SIZE", "LEVEL", "EVENTS/S", "MB/S", "MS", "429", "REFUSED", "FAILED"];
