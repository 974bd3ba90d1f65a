//! Readers and files.

use super::{Metric, count, counter, gauge};

pub(super) const METRICS: &[Metric] = &[
    counter(
        "filebeat.harvester.started",
        "skidder_reader_files_opened_total",
        "Files opened for reading.",
        |s| count(s.read.opened),
    ),
    counter(
        "filebeat.harvester.closed",
        "skidder_reader_files_closed_total",
        "Files closed again.",
        |s| count(s.read.closed),
    ),
    gauge("filebeat.harvester.open_files", "skidder_reader_files_open", "Files open now.", |s| {
        count(s.read.open)
    }),
    // A reader is a file that is open.
    gauge("filebeat.harvester.running", "", "", |s| count(s.read.open)),
    // And Filebeat gives each of them a client of the pipeline.
    gauge("libbeat.pipeline.clients", "", "", |s| count(s.read.open)),
    counter(
        "filebeat.harvester.gzip_started",
        "skidder_reader_gzip_files_opened_total",
        "Compressed files opened for reading.",
        |s| count(s.read.gzip_opened),
    ),
    counter(
        "filebeat.input.log.files.renamed",
        "skidder_reader_files_renamed_total",
        "Files that were renamed while known.",
        |s| count(s.read.files_renamed),
    ),
    counter(
        "filebeat.input.log.files.truncated",
        "skidder_reader_files_truncated_total",
        "Files that were truncated while known.",
        |s| count(s.read.files_truncated),
    ),
    gauge(
        "filebeat.filestream.files_matched",
        "skidder_reader_files_matched",
        "Files that match the paths of an input now.",
        |s| count(s.read.files_matched),
    ),
    gauge(
        "skidder.reader.files_held",
        "skidder_reader_files_held",
        "Files not read because another file has the same content.",
        |s| count(s.read.files_held),
    ),
    counter(
        "skidder.reader.files_rotated_before",
        "skidder_reader_files_rotated_before_total",
        "Rotated logs that are not read, because they are older than the first use of the data directory.",
        |s| count(s.read.files_rotated_before),
    ),
    counter(
        "skidder.reader.logs_unseen",
        "skidder_reader_logs_unseen_total",
        "Logs of containers that were gone before any file of them was found.",
        |s| count(s.read.logs_unseen),
    ),
    counter(
        "skidder.reader.files_lost",
        "skidder_reader_files_lost_total",
        "Files that vanished before they were read to the end, as far as was known.",
        |s| count(s.read.files_lost),
    ),
    counter(
        "skidder.reader.bytes_lost",
        "skidder_reader_bytes_lost_total",
        "Stored bytes of files that vanished unread; all of a compressed file.",
        |s| count(s.read.bytes_lost),
    ),
    gauge(
        "skidder.reader.pinned_files",
        "skidder_reader_pinned_files",
        "Unread files with a link in the data directory.",
        |s| count(s.read.pinned_files),
    ),
    gauge(
        "skidder.reader.pinned_bytes",
        "skidder_reader_pinned_bytes",
        "Bytes of deleted files that a link in the data directory keeps.",
        |s| count(s.read.pinned_bytes),
    ),
    counter(
        "skidder.reader.pins_given_up",
        "skidder_reader_pins_given_up_total",
        "Deleted files given up before they were read, because of pin.max_bytes.",
        |s| count(s.read.pins_given_up),
    ),
    counter(
        "skidder.reader.files_stalled",
        "skidder_reader_files_stalled_total",
        "Files that were behind and that nobody read, without a reason; they were woken.",
        |s| count(s.read.files_stalled),
    ),
    counter(
        "skidder.reader.bytes",
        "skidder_reader_bytes_total",
        "Decompressed bytes taken from files.",
        |s| count(s.read.bytes),
    ),
    counter("skidder.reader.lines", "skidder_reader_lines_total", "Lines taken from files.", |s| {
        count(s.read.lines)
    }),
    counter(
        "skidder.reader.resume_skipped_bytes",
        "skidder_reader_resume_skipped_bytes_total",
        "Decompressed bytes skipped to reach a cursor in a compressed file.",
        |s| count(s.read.resume_skipped_bytes),
    ),
    counter(
        "skidder.reader.messages_truncated",
        "skidder_reader_messages_truncated_total",
        "Messages cut to message_max_bytes.",
        |s| count(s.read.truncated),
    ),
    counter(
        "skidder.reader.raw_lines",
        "skidder_reader_raw_lines_total",
        "Lines as they stand in files, of inputs with parsers or an encoding: each of those that were joined.",
        |s| count(s.read.raw_lines),
    ),
    counter(
        "skidder.reader.lines_discarded",
        "skidder_reader_lines_discarded_total",
        "Lines discarded because the event they belong to was full (multiline.max_lines, max_bytes).",
        |s| count(s.read.lines_discarded),
    ),
    counter(
        "skidder.reader.parse_errors",
        "skidder_reader_parse_errors_total",
        "Lines that a parser could not read; they went on as they are.",
        |s| count(s.read.parse_errors),
    ),
    counter(
        "skidder.reader.errors",
        "skidder_reader_errors_total",
        "Failures to open, read or decode a file.",
        |s| count(s.read.errors),
    ),
    counter(
        "skidder.reader.gzip_errors",
        "skidder_reader_gzip_errors_total",
        "Failures of a compressed file that is damaged.",
        |s| count(s.read.gzip_errors),
    ),
    // Of inputs that are tasks.
    gauge(
        "skidder.sources.open",
        "skidder_sources_open",
        "Connections, peers and the like that are open.",
        |s| count(s.read.sources.open),
    ),
    counter(
        "skidder.sources.received_events",
        "skidder_sources_received_events_total",
        "Events received from the network, before they went to any output.",
        |s| count(s.read.sources.events),
    ),
    counter(
        "skidder.sources.lost_before",
        "skidder_sources_lost_before_total",
        "Events that the system threw away before skidder saw them, because a receive buffer was full.",
        |s| count(s.read.sources.lost_before),
    ),
    counter(
        "skidder.sources.refused",
        "skidder_sources_refused_total",
        "Events for which an output had no room, dropped as `queue_full`.",
        |s| count(s.read.sources.refused),
    ),
    counter(
        "skidder.sources.errors",
        "skidder_sources_errors_total",
        "What could not be read or taken, and errors of the network.",
        |s| count(s.read.sources.errors),
    ),
];
