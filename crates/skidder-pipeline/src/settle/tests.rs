//! Cursors that move over settled ranges only.

use super::*;
use crate::testing::{at_zero, batch, meta, numbered, numbered_of};
use skidder_event::{Acknowledge, Acknowledgement, DropReason, FilePart, Provenance, SourcePart};
use skidder_os::Timestamp;
use skidder_registry::{Change, Checkpoint, Entry};

const ONE: SourceId = SourceId(1);

fn settle() -> Arc<Settle> {
    let settle = Settle::new();
    settle.begin(ONE, "one".to_owned(), meta("/one"), at_zero(), false);
    settle
}

fn offset(settle: &Settle) -> u64 {
    settle.cursor(ONE).expect("it is known").offset
}

/// Keys that a commit would put and remove.
fn changes(settle: &Settle) -> Vec<String> {
    let name = |change: &Change| match change {
        Change::Put { key, entry, checkpoint } => {
            let kept = matches!(checkpoint, Checkpoint::Keep);
            let at = match entry {
                Entry::File(file) => file.cursor.offset.to_string(),
                Entry::Source(source) => source.cursor.text.to_string(),
            };
            format!("{key}@{at}{}", if kept { "" } else { "*" })
        }
        Change::Remove { key } => format!("-{key}"),
    };
    settle.take_changes(Timestamp(0)).iter().map(name).collect()
}

#[test]
fn cursor_moves_over_settled_ranges_at_the_front_only() {
    let settle = settle();
    let tickets: Vec<_> =
        (0..3).map(|at| settle.admit(&mut batch(1, 0, at * 20, 2), None)).collect();
    tickets[2].delivered(2);
    tickets[1].dropped(DropReason::Rejected, 2);
    assert_eq!(offset(&settle), 0);
    tickets[0].delivered(1);
    assert_eq!(offset(&settle), 0, "one row is still on its way");
    tickets[0].dead_lettered(1);
    assert_eq!(offset(&settle), 60);
    let total = settle.total();
    assert!(total.adds_up());
    assert_eq!((total.read(), total.delivered(), total.dead_lettered()), (6, 3, 1));
    assert_eq!(total.dropped().get(DropReason::Rejected), 2);
    assert!(settle.is_settled(ONE));
}

#[test]
fn a_commit_is_due_once_so_many_rows_have_their_verdict() {
    use std::sync::atomic::{AtomicU32, Ordering};
    let settle = settle();
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    settle.set_on_commit_due(move || {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    let mut at = 0;
    let mut deliver = |batches: u64, together: bool| {
        let tickets: Vec<_> = (0..batches)
            .map(|_| {
                at += 1;
                settle.admit(&mut batch(1, 0, at * 10_000, 1000), None)
            })
            .collect();
        if together {
            Ticket::deliver_all(tickets.iter().map(|ticket| (&**ticket, 1000)));
        } else {
            for ticket in &tickets {
                ticket.dropped(DropReason::Rejected, 1000);
            }
        }
        (calls.load(Ordering::Relaxed), settle.is_commit_due())
    };
    let limit = COMMIT_ROWS / 1000;
    assert_eq!(deliver(limit - 1, false), (0, false));
    assert_eq!(deliver(1, false), (1, true));
    assert_eq!(deliver(2 * limit, true), (1, true), "it was asked for already");
    settle.take_changes(Timestamp(0));
    assert_eq!(deliver(limit - 1, true), (1, false));
    assert_eq!(deliver(1, true), (2, true));
}

#[test]
fn a_batch_without_rows_moves_the_cursor_in_its_turn() {
    let settle = settle();
    let first = settle.admit(&mut batch(1, 0, 0, 1), None);
    let mut empty = batch(1, 0, 10, 0);
    empty.count_dropped(DropReason::Empty, 3);
    assert!(settle.admit(&mut empty, None).is_settled());
    assert_eq!(offset(&settle), 0);
    first.delivered(1);
    assert_eq!(offset(&settle), 10);
    assert!(settle.total().adds_up());
}

#[test]
fn results_of_an_older_generation_count_but_move_no_cursor() {
    let settle = settle();
    let old = settle.admit(&mut batch(1, 0, 0, 5), None);
    settle.restart(ONE, 1);
    let new = settle.admit(&mut batch(1, 1, 0, 1), None);
    new.delivered(1);
    assert_eq!(offset(&settle), 0, "the older range is before it");
    old.delivered(5);
    let status = settle.status(ONE).expect("it is known");
    let (_, cursor) = status.file().expect("it is a file");
    assert_eq!((cursor.generation, cursor.offset), (1, 10));
    assert_eq!(status.ledger.delivered(), 6);
}

#[test]
fn a_batch_of_an_older_generation_may_come_after_the_restart() {
    let settle = settle();
    settle.restart(ONE, 1);
    // The turn was under way when the scan found the source rewritten.
    settle.admit(&mut batch(1, 0, 70, 3), None).delivered(3);
    assert_eq!(offset(&settle), 0);
    settle.admit(&mut batch(1, 1, 0, 2), None).delivered(2);
    assert_eq!(offset(&settle), 20);
}

#[test]
fn a_new_key_removes_the_old_one() {
    let settle = settle();
    settle.admit(&mut batch(1, 0, 0, 1), None).delivered(1);
    assert_eq!(changes(&settle), ["one@10"]);
    settle.update(ONE, &"longer".into(), meta("/one"));
    assert_eq!(changes(&settle), ["-one", "longer@10"]);
    assert!(changes(&settle).is_empty());
}

#[test]
fn a_key_that_another_source_has_taken_is_not_removed() {
    let settle = settle();
    assert!(changes(&settle).is_empty());
    settle.update(ONE, &"longer".into(), meta("/one"));
    let two = SourceId(2);
    settle.begin(two, "one".to_owned(), meta("/two"), at_zero(), true);
    assert_eq!(changes(&settle), ["longer@0", "one@0*"]);
    settle.remove(ONE);
    settle.begin(SourceId(3), "longer".to_owned(), meta("/three"), at_zero(), false);
    assert!(changes(&settle).is_empty(), "it has its own entry under that key");
}

#[test]
fn rows_of_a_removed_source_still_count() {
    let settle = settle();
    let ticket = settle.admit(&mut batch(1, 0, 0, 4), None);
    settle.remove(ONE);
    assert_eq!(settle.in_flight(), 4);
    ticket.delivered(4);
    assert_eq!(settle.in_flight(), 0);
    assert!(settle.total().adds_up());
    assert_eq!(changes(&settle), ["-one"]);
}

#[test]
#[should_panic(expected = "two verdicts")]
fn two_verdicts_for_a_row_are_a_bug() {
    let settle = settle();
    let ticket = settle.admit(&mut batch(1, 0, 0, 1), None);
    let other = settle.admit(&mut batch(1, 0, 10, 1), None);
    ticket.delivered(1);
    ticket.delivered(1);
    drop(other);
}

#[test]
fn ignored_files_are_skipped_only_while_nothing_is_on_its_way() {
    let settle = settle();
    let ticket = settle.admit(&mut batch(1, 0, 0, 1), None);
    settle.skip_to(ONE, 500);
    assert_eq!(offset(&settle), 0);
    ticket.delivered(1);
    settle.skip_to(ONE, 500);
    assert_eq!(offset(&settle), 500);
}

#[test]
fn a_new_source_is_saved_when_its_cursor_has_moved_or_a_while_later() {
    let settle = settle();
    settle.begin(SourceId(2), "two".to_owned(), meta("/two"), at_zero(), false);
    let at = |seconds: i64| Timestamp(seconds * 1_000_000_000);
    let keys = |now: Timestamp| -> Vec<String> {
        settle.take_changes(now).iter().map(|change| change.key().to_owned()).collect()
    };
    assert!(keys(at(1)).is_empty());
    settle.admit(&mut batch(1, 0, 0, 1), None).delivered(1);
    assert_eq!(keys(at(2)), ["one"]);
    assert_eq!(keys(at(7)), ["two"], "the other one was saved already");
    settle.begin(SourceId(3), "three".to_owned(), meta("/three"), at_zero(), false);
    settle.save_newcomers();
    assert_eq!(keys(at(8)), ["three"]);
}

#[test]
fn the_end_of_a_file_that_has_changed_is_not_saved_as_such() {
    let settle = settle();
    let mut last = batch(1, 0, 0, 1);
    let part = last.provenance().file().expect("it is of a file").clone();
    let end = || Provenance::of_file(ONE, FilePart { end_of_file: true, ..part.clone() });
    last.set_provenance(end());
    let on_its_way = settle.admit(&mut last, None);
    settle.doubt_end(ONE);
    on_its_way.delivered(1);
    let cursor = settle.cursor(ONE).expect("it is known");
    assert_eq!((cursor.offset, cursor.eof), (10, false));
    settle.admit(&mut last, None).delivered(1);
    assert!(settle.cursor(ONE).expect("it is known").eof);
    settle.take_changes(Timestamp(0));
    settle.doubt_end(ONE);
    assert!(!settle.cursor(ONE).expect("it is known").eof);
    assert_eq!(changes(&settle), ["one@10"]);
}

#[test]
fn each_input_has_its_ledger_also_of_sources_that_are_gone() {
    let settle = settle();
    let other = SourceId::of_input(3, 7);
    settle.begin(other, "other".to_owned(), meta("/other"), at_zero(), false);
    let first = settle.admit(&mut batch(1, 0, 0, 2), None);
    let second = settle.admit(&mut batch(other.0, 0, 0, 5), None);
    settle.remove(other);
    second.delivered(3);
    second.stored(1);
    first.dead_lettered(2);
    let (total, inputs) = settle.ledgers();
    let (one, three) = (inputs[&0], inputs[&3]);
    assert!(total.adds_up() && one.adds_up() && three.adds_up());
    assert_eq!((one.read(), one.dead_lettered(), one.in_flight()), (2, 2, 0));
    assert_eq!((three.read(), three.delivered(), three.stored(), three.in_flight()), (5, 3, 1, 1));
    settle.forget_inputs(&[3]);
    second.delivered(1);
    let (total, inputs) = settle.ledgers();
    assert!(total.adds_up() && !inputs.contains_key(&3), "late verdicts bring nothing back");
}

/// Another source, as the inputs of sockets and queues have it.
const TWO: SourceId = SourceId(2);

fn about() -> SourceAbout {
    SourceAbout { input: "journald".into(), name: "/run/log/journal".into() }
}

/// One event, behind which the source continues at `cursor`.
fn at_cursor(cursor: &str) -> Batch {
    let part = SourcePart { version: 1, cursor: cursor.into(), bytes: 10 };
    numbered_of(TWO.0, 0, 1, Progress::Cursor(part))
}

#[test]
fn the_cursor_of_an_input_moves_in_order_and_is_saved_when_it_has_moved() {
    let settle = settle();
    let cursor = SourceCursor { version: 1, text: "a".into() };
    settle.begin_source(TWO, "journald::j".into(), about(), cursor);
    assert!(changes(&settle).is_empty(), "it is where it was");
    let [first, second] = ["b", "c"].map(|at| settle.admit(&mut at_cursor(at), None));
    second.delivered(1);
    assert!(changes(&settle).is_empty(), "the first one is before it");
    assert!(!settle.is_settled(TWO));
    first.dropped(DropReason::Processor, 1);
    assert_eq!(changes(&settle), ["journald::j@c"]);
    let status = settle.status(TWO).expect("it is known");
    let SourcePlace::Source(of, Some(cursor)) = status.place else { panic!("it is no file") };
    assert_eq!((of, &*cursor.text), (about(), "c"));
    settle.remove(TWO);
    assert_eq!(changes(&settle), ["-journald::j"]);
}

#[test]
fn a_source_that_cannot_send_again_is_counted_and_never_saved() {
    let settle = settle();
    settle.begin_unsaved(TWO, "tcp::1".into(), about());
    let ticket = settle.admit(&mut numbered(TWO.0, 0, 3), None);
    assert_eq!((settle.in_flight(), settle.is_settled(TWO)), (3, true));
    ticket.delivered(2);
    ticket.dead_lettered(1);
    let status = settle.status(TWO).expect("it is known");
    assert_eq!((status.ledger.read(), status.ledger.in_flight()), (3, 0));
    assert!(settle.total().adds_up());
    let origin = ticket.origin().expect("it is known");
    assert_eq!((&*origin.key, origin.name.to_string()), ("tcp::1", "/run/log/journal".to_owned()));
    settle.remove(TWO);
    assert!(changes(&settle).is_empty(), "the registry never had it");
}

#[test]
fn what_nobody_can_send_again_and_is_in_flight_at_the_end_is_dropped() {
    let settle = settle();
    settle.begin_unsaved(TWO, "tcp::1".into(), about());
    let first = settle.admit(&mut numbered(TWO.0, 0, 3), None);
    let file = settle.admit(&mut batch(1, 0, 0, 5), None);
    first.delivered(1);
    assert_eq!(settle.give_up_unrepeatable(), 2);
    let (total, inputs) = settle.ledgers();
    assert_eq!((total.delivered(), total.dropped().get(DropReason::Stopped)), (1, 2));
    assert_eq!(total.in_flight(), 5, "the next start reads the file again");
    assert_eq!(inputs[&TWO.input()].dropped().get(DropReason::Stopped), 2);
    // An answer that comes too late changes nothing.
    first.delivered(2);
    file.delivered(5);
    let total = settle.total();
    assert_eq!((total.delivered(), total.in_flight(), total.adds_up()), (6, 0, true));
    assert_eq!(settle.give_up_unrepeatable(), 0);
}

/// A far side that records its acknowledgements.
#[derive(Debug)]
struct FarSide(Arc<Mutex<Vec<String>>>, u32, Arc<Settle>);

impl Acknowledge for FarSide {
    fn accept(self: Box<Self>) {
        // The counts are right already, and no lock is held: it may look.
        let left = self.2.in_flight();
        self.0.lock().expect("no panic").push(format!("{} accepted, {left} in flight", self.1));
    }

    fn reject(self: Box<Self>) {
        self.0.lock().expect("no panic").push(format!("{} rejected", self.1));
    }
}

#[test]
fn a_far_side_gets_its_acknowledgement_with_the_last_verdict_and_a_rejection_if_there_is_none() {
    let settle = settle();
    settle.begin_unsaved(TWO, "sqs::1".into(), about());
    let reports: Arc<Mutex<Vec<String>>> = Arc::default();
    let message = |number: u32, events: u32| {
        let far_side = FarSide(Arc::clone(&reports), number, Arc::clone(&settle));
        let owed = Acknowledgement::new(far_side);
        numbered_of(TWO.0, 0, events, Progress::Acknowledge(owed, 10))
    };
    let take = || std::mem::take(&mut *reports.lock().expect("no panic"));
    let first = settle.admit(&mut message(1, 2), None);
    let second = settle.admit(&mut message(2, 1), None);
    first.delivered(1);
    assert!(take().is_empty(), "one of its events has no verdict");
    second.stored(1);
    assert_eq!(take(), ["2 accepted, 1 in flight"]);
    Ticket::deliver_all([(&*first, 1)]);
    assert_eq!(take(), ["1 accepted, 0 in flight"]);
    settle.admit(&mut message(3, 0), None);
    assert_eq!(take(), ["3 accepted, 0 in flight"], "a message without events");
    let fourth = settle.admit(&mut message(4, 2), None);
    fourth.delivered(1);
    drop(fourth);
    assert_eq!(take(), ["4 rejected"]);
    drop(message(5, 1));
    assert_eq!(take(), ["5 rejected"], "it was never admitted");
    assert!(settle.total().adds_up());
}

#[test]
fn a_source_that_has_ended_is_known_until_its_last_verdict_and_its_last_commit() {
    let settle = settle();
    settle.begin_unsaved(TWO, "tcp::1".into(), about());
    let ticket = settle.admit(&mut numbered(TWO.0, 0, 2), None);
    settle.end_source(TWO);
    ticket.delivered(1);
    assert!(ticket.origin().is_some(), "a dead letter must name it");
    ticket.delivered(1);
    assert!(settle.status(TWO).is_none());
    assert!(settle.total().adds_up() && settle.total().delivered() == 2);

    let three = SourceId(3);
    settle.begin_source(three, "journald::j".into(), about(), SourceCursor::default());
    let part = SourcePart { version: 1, cursor: "a".into(), bytes: 10 };
    let ticket = settle.admit(&mut numbered_of(three.0, 0, 1, Progress::Cursor(part)), None);
    settle.end_source(three);
    ticket.delivered(1);
    assert!(settle.status(three).is_some(), "its cursor is not saved");
    assert_eq!(changes(&settle), ["journald::j@a"]);
    assert!(settle.status(three).is_none());
    settle.begin_source(three, "journald::j".into(), about(), SourceCursor::default());
    settle.end_source(three);
    assert!(settle.status(three).is_none(), "nothing was on its way");
}
