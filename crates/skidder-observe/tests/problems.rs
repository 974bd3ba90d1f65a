//! The problems that are reported, with cause and remedy.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::{Run, batch};
use skidder_event::{DropReason, SourceId};
use skidder_input::{Input, InputFuture, InputTask, Intake, Setup};
use skidder_observe::{
    Counts, InputList, InputSource, Problem, Problems, Severity, Sources, is_well,
};
use skidder_os::{Clock as _, Timestamp};
use std::io;
use std::path::Path;
use std::sync::Arc;
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

#[test]
fn events_that_found_no_room_in_the_queue_are_a_warning_that_says_what_to_do() {
    let run = Run::idle();
    let output = &run.sources.outputs[0];
    output.queue.push(batch(SourceId::of_input(1, 9).0, 1500)).unwrap();
    run.take().ticket.dropped(DropReason::QueueFull, 1500);
    let only = || {
        let found = problems(&run);
        assert!(found.len() == 1 && is_well(&found), "{found:?}");
        found.into_iter().next().unwrap()
    };
    let found = only();
    assert_eq!((found.severity, &*found.kind), (Severity::Warning, "queue_full"));
    assert_eq!(found.what, "input `pipe` dropped 1,500 events");
    assert_eq!((found.input.as_deref(), found.output), (Some("pipe"), None));
    let cause = "the queue was full, and nothing sends such events again";
    assert_eq!(found.cause.as_deref(), Some(cause));
    assert!(found.remedy.unwrap().contains("raise `queue.mem.events`"));
    // After a reload, the input is another one.
    output.settle.forget_inputs(&[1]);
    let found = only();
    assert_eq!(found.what, "inputs that have ended dropped 1,500 events");
    assert_eq!(found.input, None);
}

/// An input that does nothing.
struct Still;

impl Input for Still {
    fn kind(&self) -> &'static str {
        "still"
    }

    fn run(self: Box<Self>, _: Intake) -> InputFuture {
        Box::pin(async { Ok(()) })
    }
}

/// A run whose only input is a task, which does not start.
fn with_task(run: &Run) -> (Sources, Arc<InputTask>) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let clock = Arc::new(run.clock.clone());
    let (id, name) = ("j2".into(), "j2".into());
    let setup = Setup { id, name, run: "run".into(), once: false, clock };
    let task = InputTask::new(Box::new(Still), setup, 1, runtime.handle().clone());
    let mut sources = (*run.sources).clone();
    let first = sources.outputs[0].inputs.list()[0].clone();
    let counts = Counts::Task { task: Arc::clone(&task), is_counted: true };
    let input = InputSource { id: "j2".to_owned(), kind: "still".to_owned(), counts, ..first };
    sources.outputs[0].inputs = InputList::new(vec![input]);
    (sources, task)
}

#[test]
fn an_input_in_trouble_says_which_part_of_it_why_and_since_when() {
    let run = Run::idle();
    let (sources, task) = with_task(&run);
    let problems = || Problems::default().of(&sources);
    assert_eq!(problems(), []);
    task.metrics().set_trouble_of("/no/journal", Some("see redis://u:SECRET@h"));
    run.clock.advance(Duration::from_secs(7));
    let found = problems();
    assert_eq!(found.len(), 1, "{found:?}");
    let first = &found[0];
    assert_eq!((first.severity, &*first.kind), (Severity::Error, "input_trouble"));
    assert_eq!(first.what, "input `j2` cannot read `/no/journal`");
    assert_eq!(first.cause.as_deref(), Some("see redis://xxxxx@h; it is tried again"));
    assert_eq!((first.since_ms, first.input.as_deref()), (Some(7000), Some("j2")));
    task.metrics().set_trouble(Some("no broker"));
    for part in ["a", "b", "c"] {
        task.metrics().set_trouble_of(part, Some("away"));
    }
    let what: Vec<String> = problems().into_iter().map(|problem| problem.what).collect();
    let expected = [
        "input `j2` cannot receive",
        "input `j2` cannot read `/no/journal`",
        "input `j2` cannot read `a`",
        "input `j2` cannot read 2 more sources",
    ];
    assert_eq!(what, expected);
    assert_eq!(Problems::of_tasks(&sources).len(), 5, "all of them, for the log");
}
