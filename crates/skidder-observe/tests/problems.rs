//! The problems that are reported, with cause and remedy.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::{Run, batch};
use skidder_observe::{Problem, Problems, Severity, is_well};
use skidder_os::{Clock as _, Timestamp};
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

fn problems(run: &Run) -> Vec<Problem> {
    Problems::default().of(&run.sources)
}

/// A run with events in its queue.
fn delivering() -> Run {
    let run = Run::idle();
    run.sources.outputs[0].queue.push(batch(0, 3)).unwrap();
    run
}

fn only(run: &Run) -> Problem {
    let found = problems(run);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(!is_well(&found));
    found.into_iter().next().unwrap()
}

#[test]
fn an_output_that_fails_says_where_and_what_since_when_and_what_to_do() {
    let run = delivering();
    let metrics = &run.sources.outputs[0].metrics;
    let began = run.clock.wall();
    metrics.write_error("a:9200", "connection refused");
    assert_eq!(problems(&run), [], "one failure may be of one host among several");
    run.clock.advance(Duration::from_secs(5));
    metrics.write_error("b:9200", "http://u:SECRET@b:9200 said 401");
    let found = only(&run);
    assert_eq!((found.severity, &*found.kind), (Severity::Error, "output_failing"));
    assert_eq!(found.what, "the output elasticsearch delivers nothing");
    let cause = "b:9200: http://xxxxx@b:9200 said 401 (2 times)";
    assert_eq!(found.cause.as_deref(), Some(cause));
    assert_eq!(found.since_ms, Some(5000));
    let since: jiff::Timestamp = found.since.unwrap().parse().unwrap();
    assert_eq!(since.as_millisecond(), began.0 / 1_000_000);
    assert!(found.remedy.unwrap().contains("skidder test output"));
    // The output adds a remedy.
    metrics.write_error_with("b:9200", "no rights", Some("give the user a role"));
    assert_eq!(only(&run).remedy.as_deref(), Some("give the user a role"));
    metrics.acked.add(1);
    assert_eq!(problems(&run), [], "it works again");
    assert_eq!(metrics.last_failure().unwrap().error, "no rights", "kept for those who look");
}

#[test]
fn a_full_disk_under_the_data_says_where() {
    let run = Run::idle();
    let failure = &run.sources.outputs[0].registrar.as_ref().unwrap().failure;
    let full = io::Error::from(io::ErrorKind::StorageFull);
    failure.failed_on_disk(run.clock.wall(), Path::new("/data/registry"), &full);
    run.clock.advance(Duration::from_secs(1));
    failure.failed_on_disk(run.clock.wall(), Path::new("/data/registry"), &full);
    let found = only(&run);
    assert!(found.what.starts_with("the positions in the files cannot be saved"), "{}", found.what);
    assert_eq!(found.cause.as_deref(), Some("/data/registry: no storage space (2 times)"));
    assert_eq!(found.remedy.as_deref(), Some("the disk is full: make room on it"));
    failure.worked();
    assert_eq!(problems(&run), []);
}

#[test]
fn refused_events_are_trouble_until_they_are_taken_out_or_an_hour_is_over() {
    let run = Run::idle();
    let metrics = &run.sources.outputs[0].metrics;
    metrics.note_refused(40, "document_parsing_exception (400)");
    metrics.note_refused(2, "other");
    let found = only(&run);
    assert_eq!(found.what, "the output elasticsearch refused 42 events");
    assert_eq!(found.cause.as_deref(), Some("the first: document_parsing_exception (400)"));
    run.clock.advance(Duration::from_hours(1));
    assert_eq!(problems(&run), []);
}

#[test]
fn an_output_that_has_ended_and_a_configuration_that_was_refused_are_problems() {
    let run = delivering();
    run.sources.outputs[0].ended.store(true, Ordering::Relaxed);
    run.sources.reloads.refused(Timestamp(0), "line 3: unknown setting".to_owned());
    let kinds: Vec<String> = problems(&run).into_iter().map(|problem| problem.kind).collect();
    assert_eq!(kinds, ["output_ended", "reload"]);
}
