//! The ledger and what Filebeat derives from the same numbers.

use super::{LABEL_OUTCOME, LABEL_REASON, Metric, count, counter, dropped, gauge};
use skidder_event::DropReason;

const LINES: &str = "skidder_ledger_lines_total";
const LINES_HELP: &str =
    "Lines with a verdict: read + recovered = all of these + stored + in flight.";

/// See the module's text. `libbeat.pipeline.events`: `total` are events before the processors,
/// `filtered` those that a processor dropped or that were not for the output, `published = total - filtered`.
pub(super) const METRICS: &[Metric] = &[
    counter(
        "skidder.ledger.read",
        "skidder_ledger_read_lines_total",
        "Lines taken from sources.",
        |s| count(s.ledger.read()),
    ),
    counter(
        "skidder.ledger.read_bytes",
        "skidder_ledger_read_bytes_total",
        "Decompressed bytes of the lines taken from sources, terminators included.",
        |s| count(s.ledger.read_bytes()),
    ),
    counter("skidder.ledger.delivered", LINES, LINES_HELP, |s| count(s.ledger.delivered()))
        .labels(&[(LABEL_OUTCOME, "delivered"), (LABEL_REASON, "")]),
    counter("skidder.ledger.dead_lettered", LINES, LINES_HELP, |s| count(s.ledger.dead_lettered()))
        .labels(&[(LABEL_OUTCOME, "dead_lettered"), (LABEL_REASON, "")]),
    counter("skidder.ledger.dropped.empty_line", LINES, LINES_HELP, |s| {
        dropped(s, DropReason::Empty)
    })
    .labels(&[(LABEL_OUTCOME, "dropped"), (LABEL_REASON, "empty_line")]),
    counter("skidder.ledger.dropped.line_filter", LINES, LINES_HELP, |s| {
        dropped(s, DropReason::LineFilter)
    })
    .labels(&[(LABEL_OUTCOME, "dropped"), (LABEL_REASON, "line_filter")]),
    counter("skidder.ledger.dropped.parser", LINES, LINES_HELP, |s| dropped(s, DropReason::Parser))
        .labels(&[(LABEL_OUTCOME, "dropped"), (LABEL_REASON, "parser")]),
    counter("skidder.ledger.dropped.drop_event", LINES, LINES_HELP, |s| {
        dropped(s, DropReason::Processor)
    })
    .labels(&[(LABEL_OUTCOME, "dropped"), (LABEL_REASON, "drop_event")]),
    counter("skidder.ledger.dropped.line_too_long", LINES, LINES_HELP, |s| {
        dropped(s, DropReason::LineTooLong)
    })
    .labels(&[(LABEL_OUTCOME, "dropped"), (LABEL_REASON, "line_too_long")]),
    counter("skidder.ledger.dropped.rejected", LINES, LINES_HELP, |s| {
        dropped(s, DropReason::Rejected)
    })
    .labels(&[(LABEL_OUTCOME, "dropped"), (LABEL_REASON, "rejected")]),
    counter("skidder.ledger.dropped.not_for_output", LINES, LINES_HELP, |s| {
        dropped(s, DropReason::NotForOutput)
    })
    .labels(&[(LABEL_OUTCOME, "dropped"), (LABEL_REASON, "not_for_output")]),
    counter("skidder.ledger.dropped.queue_damaged", LINES, LINES_HELP, |s| {
        dropped(s, DropReason::QueueDamaged)
    })
    .labels(&[(LABEL_OUTCOME, "dropped"), (LABEL_REASON, "queue_damaged")]),
    counter("skidder.ledger.dropped.queue_full", LINES, LINES_HELP, |s| {
        dropped(s, DropReason::QueueFull)
    })
    .labels(&[(LABEL_OUTCOME, "dropped"), (LABEL_REASON, "queue_full")]),
    counter("skidder.ledger.dropped.stopped", LINES, LINES_HELP, |s| {
        dropped(s, DropReason::Stopped)
    })
    .labels(&[(LABEL_OUTCOME, "dropped"), (LABEL_REASON, "stopped")]),
    counter(
        "skidder.ledger.recovered",
        "skidder_ledger_recovered_lines_total",
        "Lines found in the disk queue at the start, which an earlier run has read.",
        |s| count(s.ledger.recovered()),
    ),
    gauge(
        "skidder.ledger.stored",
        "skidder_ledger_stored_lines",
        "Lines that are durable in the disk queue and have no verdict yet.",
        |s| count(s.ledger.stored()),
    ),
    gauge(
        "skidder.ledger.in_flight",
        "skidder_ledger_in_flight_lines",
        "Lines read that have no verdict yet, and are not in the disk queue.",
        |s| count(s.ledger.in_flight()),
    ),
    // Filebeat's names for the same numbers; Prometheus has them already.
    gauge("libbeat.pipeline.events.active", "", "", |s| {
        count(s.ledger.in_flight() + s.ledger.stored())
    }),
    counter("libbeat.pipeline.events.total", "", "", |s| count(s.events_total())),
    counter("libbeat.pipeline.events.filtered", "", "", |s| count(s.events_filtered())),
    counter("libbeat.pipeline.events.published", "", "", |s| {
        count(s.events_total() - s.events_filtered())
    }),
    counter("libbeat.pipeline.events.dropped", "", "", |s| dropped(s, DropReason::Rejected)),
    counter("libbeat.pipeline.events.retry", "", "", |s| count(s.output.failed)),
    counter("filebeat.events.added", "", "", |s| count(s.ledger.read())),
    counter("filebeat.events.done", "", "", |s| count(s.lines_done())),
    gauge("filebeat.events.active", "", "", |s| count(s.ledger.in_flight())),
];
