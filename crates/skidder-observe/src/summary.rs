//! The summaries of a run: the periodic line of metrics, and the ledger for people.

use crate::names::{Kind, Metric, Value, metrics};
use crate::snapshot::Snapshot;
use crate::stats::{entry, is_zero, nested, stats};
use serde_json::Value as Json;
use skidder_config::units::show_duration;
use skidder_event::DropReason;
use skidder_pipeline::Ledger;
use std::time::Duration;

/// A log line with metrics: a constant text, and the object for its field `monitoring.metrics`.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The message, as Filebeat words it.
    pub message: String,
    /// Names nested as in `/stats`.
    pub metrics: Json,
}

/// Makes the periodic line. It keeps the last values and logs the difference.
#[derive(Debug)]
pub struct SummaryLine {
    period: Duration,
    /// The value of each metric; a snapshot would hold a kilobyte for each input.
    previous: Vec<Option<Value>>,
}

impl SummaryLine {
    /// `logging.metrics.period`, by default.
    pub const PERIOD: Duration = Duration::from_secs(30);

    /// A line for every `period`; the first one counts from the start of the process.
    pub fn new(period: Duration) -> Self {
        Self { period, previous: Vec::new() }
    }

    /// How often to log it.
    pub fn period(&self) -> Duration {
        self.period
    }

    /// The line for now: by how much counters grew since the last one, gauges as they are, texts
    /// that changed; nothing that is zero.
    pub fn next(&mut self, now: Snapshot) -> Summary {
        let values: Vec<Option<Value>> = metrics().map(|metric| metric.value(&now)).collect();
        let before = self.previous.drain(..).chain(std::iter::repeat(None));
        let changes =
            metrics().zip(before).filter_map(|(metric, before)| change(metric, before, &now));
        let metrics = nested(changes.filter(|(_, value)| !is_zero(value)));
        let period = show_duration(self.period);
        self.previous = values;
        let none = metrics.as_object().is_some_and(serde_json::Map::is_empty);
        let start = if none { "No non-zero" } else { "Non-zero" };
        Summary { message: format!("{start} metrics in the last {period}"), metrics }
    }

    /// The line at the end: everything since the start, zeros included.
    pub fn total(now: &Snapshot) -> Summary {
        Summary { message: "Total metrics".to_owned(), metrics: stats(now) }
    }
}

/// The value of one metric in the periodic line.
fn change(metric: &Metric, before: Option<Value>, now: &Snapshot) -> Option<(&'static str, Value)> {
    let (name, value) = entry(metric, now)?;
    let change = match (metric.kind, value, before) {
        (Kind::Counter, Value::Count(now), Some(Value::Count(before))) => {
            Value::Count(now.saturating_sub(before))
        }
        (Kind::Counter, Value::Real(now), Some(Value::Real(before))) => Value::Real(now - before),
        (Kind::Text, value, Some(before)) if value == before => return None,
        (_, value, _) => value,
    };
    Some((name, change))
}

/// The ledger in one line, for the log at the end of a run.
///
/// `ledger: read 2000 lines (468.0 KiB) in 3 files = delivered 1990 + dropped 6 (empty_line: 2,
/// drop_event: 4) + dead-lettered 3 + in flight 1`
///
/// `files` is how many they are; nothing if no input reads files.
pub fn ledger_line(ledger: &Ledger, files: Option<u64>) -> String {
    let reasons: Vec<String> =
        drops(ledger).map(|(reason, count)| format!("{}: {count}", reason.name())).collect();
    let reasons =
        if reasons.is_empty() { String::new() } else { format!(" ({})", reasons.join(", ")) };
    format!(
        "ledger: read {} {} ({}){}{} = delivered {} + dropped {}{reasons} + dead-lettered {}{} \
         + in flight {}{}",
        ledger.read(),
        plural(ledger.read(), "line"),
        bytes_text(ledger.read_bytes() as f64),
        in_files(files, |files| files.to_string()),
        part(" + found in the disk queue", ledger.recovered()),
        ledger.delivered(),
        ledger.dropped().total(),
        ledger.dead_lettered(),
        part(" + in the disk queue", ledger.stored()),
        ledger.in_flight(),
        if ledger.adds_up() { "" } else { "; these do not add up, which is a bug in skidder" },
    )
}

/// Where lines were read, if any input reads files.
fn in_files(files: Option<u64>, write: fn(u64) -> String) -> String {
    files.map_or(String::new(), |files| format!(" in {} {}", write(files), plural(files, "file")))
}

/// The numbers of a disk queue.
fn part(name: &str, count: u64) -> String {
    if count == 0 { String::new() } else { format!("{name} {count}") }
}

/// The ledger as an aligned table for a terminal, one line for each way a line can end; every line
/// ends with a line feed. `duration` is the time of the run; zero leaves the rates out.
pub fn ledger_table(ledger: &Ledger, files: Option<u64>, duration: Duration) -> String {
    let mut rows = vec![Row::new("read", ledger.read(), read_note(ledger, files, duration))];
    if ledger.recovered() > 0 {
        let note = "by an earlier run, and found in the disk queue".to_owned();
        rows.push(Row::new("+ recovered", ledger.recovered(), note));
    }
    rows.push(Row::share("= delivered", ledger.delivered(), ledger));
    rows.push(Row::share("+ dropped", ledger.dropped().total(), ledger));
    rows.extend(
        drops(ledger).map(|(reason, count)| Row::share(reason.name(), count, ledger).inner()),
    );
    rows.push(Row::share("+ dead-lettered", ledger.dead_lettered(), ledger));
    if ledger.stored() > 0 {
        rows.push(Row::share("+ in the disk queue", ledger.stored(), ledger));
    }
    rows.push(Row::share("+ in flight", ledger.in_flight(), ledger));
    let names = rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
    let counts = rows.iter().map(|row| row.count.len()).max().unwrap_or(0);
    let mut table = String::new();
    for row in &rows {
        let line = format!("{:names$}  {:>counts$}  {}", row.name, row.count, row.note);
        table.push_str(line.trim_end());
        table.push('\n');
    }
    if !ledger.adds_up() {
        table.push_str("these do not add up, which is a bug in skidder\n");
    }
    table
}

struct Row {
    name: String,
    count: String,
    note: String,
}

impl Row {
    fn new(name: &str, count: u64, note: String) -> Self {
        Self { name: name.to_owned(), count: grouped(count), note }
    }

    /// A part of what was read; its note is the percentage.
    fn share(name: &str, count: u64, ledger: &Ledger) -> Self {
        let note = if count == 0 {
            String::new()
        } else {
            percent(count, ledger.read() + ledger.recovered())
        };
        Self::new(name, count, note)
    }

    /// A part of the row above.
    fn inner(mut self) -> Self {
        self.name.insert_str(0, "    ");
        self
    }
}

/// `lines, 468.0 KiB in 3 files, 1.2 s: 1,667 lines/s, 390.0 KiB/s`
fn read_note(ledger: &Ledger, files: Option<u64>, duration: Duration) -> String {
    let mut note = format!(
        "{}, {}{}",
        plural(ledger.read(), "line"),
        bytes_text(ledger.read_bytes() as f64),
        in_files(files, grouped)
    );
    let seconds = duration.as_secs_f64();
    if seconds > 0.0 {
        let lines = grouped((ledger.read() as f64 / seconds).round() as u64);
        let bytes = bytes_text(ledger.read_bytes() as f64 / seconds);
        note.push_str(&format!(", {}: {lines} lines/s, {bytes}/s", duration_text(duration)));
    }
    note
}

/// The reasons for which lines were dropped, with their counts.
fn drops(ledger: &Ledger) -> impl Iterator<Item = (DropReason, u64)> {
    let dropped = *ledger.dropped();
    let counts = DropReason::ALL.into_iter().map(move |reason| (reason, dropped.get(reason)));
    counts.filter(|(_, count)| *count > 0)
}

/// Eight characters; two digits, but never 100 % for less than all or 0 % for more than none.
fn percent(part: u64, whole: u64) -> String {
    let share = part as f64 / whole.max(1) as f64 * 100.0;
    match part {
        part if part < whole && share >= 99.995 => "> 99.99 %".to_owned(),
        _ if share < 0.005 => "< 0.01 %".to_owned(),
        _ => format!("{share:6.2} %"),
    }
}

fn plural(count: u64, noun: &str) -> String {
    if count == 1 { noun.to_owned() } else { format!("{noun}s") }
}

/// `1234567` as `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1536` as `1.5 KiB`.
pub fn bytes_text(bytes: f64) -> String {
    let mut size = bytes;
    let mut units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"].into_iter().peekable();
    let mut unit = "B";
    while let Some(next) = units.next() {
        unit = next;
        // 1023.95 KiB would be shown as 1024.0 KiB.
        if size < 1023.95 || units.peek().is_none() {
            break;
        }
        size /= 1024.0;
    }
    if unit == "B" { format!("{size:.0} B") } else { format!("{size:.1} {unit}") }
}

/// A time in its two largest units: `1 m 15 s`.
pub fn span_text(span: Duration) -> String {
    let (milliseconds, seconds) = (span.as_millis(), span.as_secs());
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match () {
        () if milliseconds < 1000 => format!("{milliseconds} ms"),
        () if minutes == 0 => format!("{seconds} s"),
        () if hours == 0 => format!("{minutes} m {} s", seconds % 60),
        () if days == 0 => format!("{hours} h {} m", minutes % 60),
        () => format!("{days} d {} h", hours % 24),
    }
}

/// `0.35 s`, `12.3 s`, `1h30m5s`.
fn duration_text(duration: Duration) -> String {
    match duration.as_secs_f64() {
        seconds if seconds < 9.995 => format!("{seconds:.2} s"),
        seconds if seconds < 99.95 => format!("{seconds:.1} s"),
        seconds => show_duration(Duration::from_secs(seconds.round() as u64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_thousands() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), text);
        }
        assert_eq!(grouped(u64::MAX), "18,446,744,073,709,551,615");
    }

    #[test]
    fn sizes_have_one_digit_and_the_largest_unit_that_fits() {
        let cases = [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            ((1 << 20) - 1, "1.0 MiB"),
            (5 << 30, "5.0 GiB"),
            (u64::MAX, "16384.0 PiB"),
        ];
        for (bytes, text) in cases {
            assert_eq!(bytes_text(bytes as f64), text, "{bytes}");
        }
    }

    #[test]
    fn a_share_is_never_rounded_to_all_or_to_none() {
        assert_eq!(percent(1, 1), "100.00 %");
        assert_eq!(percent(1_999_999, 2_000_000), "> 99.99 %");
        assert_eq!(percent(1, 1_000_000), "< 0.01 %");
        assert_eq!(percent(1, 3), " 33.33 %");
    }

    #[test]
    fn times_have_their_two_largest_units() {
        let spans = [999, 59_999, 61_000, 3_661_000, 90_000_000].map(Duration::from_millis);
        let texts = spans.map(span_text);
        assert_eq!(texts, ["999 ms", "59 s", "1 m 1 s", "1 h 1 m", "1 d 1 h"]);
    }

    #[test]
    fn durations_are_short_enough_to_read() {
        let cases = [(0.354, "0.35 s"), (12.34, "12.3 s"), (99.96, "1m40s"), (5405.2, "1h30m5s")];
        for (seconds, text) in cases {
            assert_eq!(duration_text(Duration::from_secs_f64(seconds)), text);
        }
    }
}
