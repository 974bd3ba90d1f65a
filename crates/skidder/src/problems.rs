//! Problems as shown in a terminal, in `status`, while the program runs, and at its end.

use crate::plain::plain;
use jiff::{Timestamp, Zoned};
use skidder_observe::{Problem, Severity, span_text};
use std::time::Duration;

/// A problem in one line, without what to do.
pub(crate) fn line(problem: &Problem) -> String {
    let mut text = plain(&problem.what).into_owned();
    if let Some(since) = problem.since.as_deref().and_then(|since| since.parse().ok()) {
        let span = span_text(Duration::from_millis(problem.since_ms.unwrap_or(0)));
        text.push_str(&format!(" since {} ({span})", time_of_day(since, &Zoned::now())));
    }
    if let Some(cause) = &problem.cause {
        text.push_str(": ");
        text.push_str(&plain(&cause.replace(['\n', '\r'], " ")));
    }
    text
}

/// A problem in whole lines: `!` marks an error, `-` a warning; what to do is in a line of its own.
pub(crate) fn lines(problem: &Problem) -> String {
    let mark = if problem.severity == Severity::Error { '!' } else { '-' };
    let mut text = format!("{mark} {}\n", line(problem));
    if let Some(remedy) = &problem.remedy {
        text.push_str(&format!("  → {remedy}\n"));
    }
    text
}

/// Reports problems of the outputs on stderr when they begin and end, for a user who does not see the log.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    shown: Vec<Problem>,
}

impl Notices {
    /// How often to look.
    pub(crate) const EVERY: Duration = Duration::from_secs(1);

    /// Takes the current problems; returns the text to show.
    pub(crate) fn text(&mut self, problems: Vec<Problem>) -> String {
        let is_same =
            |one: &Problem, other: &Problem| kind(one) == kind(other) && one.output == other.output;
        let mut text = String::new();
        for problem in problems.iter().filter(|problem| problem.severity == Severity::Error) {
            if !self.shown.iter().any(|shown| is_same(shown, problem)) {
                text.push_str(&lines(problem));
                if kind(problem) == "output" {
                    text.push_str(
                        "  skidder goes on trying; Ctrl-C ends it, and nothing is lost\n",
                    );
                }
            }
        }
        for over in
            self.shown.iter().filter(|shown| !problems.iter().any(|now| is_same(shown, now)))
        {
            text.push_str(&format!("over: {}\n", over.what));
        }
        self.shown =
            problems.into_iter().filter(|problem| problem.severity == Severity::Error).collect();
        text
    }
}

/// An output that fails may soon be blocked, which is no other problem.
fn kind(problem: &Problem) -> &str {
    match &*problem.kind {
        "output_failing" | "output_blocked" => "output",
        kind => kind,
    }
}

/// `12:35:46`, with the date if it was on another day than `now`.
fn time_of_day(at: Timestamp, now: &Zoned) -> String {
    let at = at.to_zoned(now.time_zone().clone());
    let format = if at.date() == now.date() { "%H:%M:%S" } else { "%Y-%m-%d %H:%M:%S" };
    at.strftime(format).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::tz::TimeZone;

    #[test]
    fn a_problem_says_since_when_why_and_what_to_do() {
        let mut problem = Problem::warning("k", "the output is blocked".to_owned());
        assert_eq!(lines(&problem), "- the output is blocked\n");
        problem.severity = Severity::Error;
        problem.since = Some("2026-01-02T10:00:00Z".to_owned());
        problem.since_ms = Some(75_000);
        let text = lines(&problem.because("h:1: a\nb").remedy("do this"));
        let (head, rest) = text.split_once(" since 2026-01-0").unwrap();
        assert_eq!(head, "! the output is blocked");
        assert!(rest.ends_with(" (1 m 15 s): h:1: a b\n  → do this\n"), "{text}");
    }

    #[test]
    fn a_notice_comes_once_when_a_problem_begins_and_once_when_it_is_over() {
        let mut notices = Notices::default();
        let of = |kind: &str| Problem::error(kind, format!("the output is {kind}"));
        let warning = Problem::warning("input", "no file".to_owned());
        let text = notices.text(vec![of("output_failing"), warning.clone()]);
        assert!(
            text.starts_with("! the output is output_failing\n  skidder goes on trying"),
            "{text}"
        );
        assert_eq!(
            notices.text(vec![of("output_blocked"), warning.clone()]),
            "",
            "the same trouble"
        );
        let text = notices.text(vec![of("output_blocked"), of("registry"), warning]);
        assert_eq!(text, "! the output is registry\n");
        let text = notices.text(vec![of("registry")]);
        assert_eq!(text, "over: the output is output_blocked\n");
        assert_eq!(notices.text(Vec::new()), "over: the output is registry\n");
    }

    #[test]
    fn a_time_of_another_day_has_its_date() {
        let now = "2026-01-02T10:00:00Z".parse::<Timestamp>().unwrap().to_zoned(TimeZone::UTC);
        let text = |at: &str| time_of_day(at.parse().unwrap(), &now);
        assert_eq!(text("2026-01-02T09:59:58Z"), "09:59:58");
        assert_eq!(text("2026-01-01T23:00:00Z"), "2026-01-01 23:00:00");
    }
}
