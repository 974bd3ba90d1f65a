//! Cursors that move over settled ranges only.

use super::*;
use crate::testing::{at_zero, batch, meta};
use skidder_event::{DropReason, Provenance};
use skidder_os::Timestamp;
use skidder_registry::{Change, Checkpoint};

const ONE: SourceId = SourceId(1);

fn settle() -> Arc<Settle> {
    let settle = Settle::new();
    settle.begin(ONE, "one".to_owned(), meta("/one"), at_zero(), false);
    settle
}

fn offset(settle: &Settle) -> u64 {
    settle.status(ONE).expect("it is known").cursor.offset
}

/// Keys that a commit would put and remove.
fn changes(settle: &Settle) -> Vec<String> {
    let name = |change: &Change| match change {
        Change::Put { key, entry, checkpoint } => {
            let kept = matches!(checkpoint, Checkpoint::Keep);
            format!("{key}@{}{}", entry.cursor.offset, if kept { "" } else { "*" })
        }
        Change::Remove { key } => format!("-{key}"),
    };
    settle.take_changes(Timestamp(0)).iter().map(name).collect()
}

#[test]
fn cursor_moves_over_settled_ranges_at_the_front_only() {
    let settle = settle();
    let tickets: Vec<_> = (0..3).map(|at| settle.admit(&batch(1, 0, at * 20, 2), None)).collect();
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
                settle.admit(&batch(1, 0, at * 10_000, 1000), None)
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
    let first = settle.admit(&batch(1, 0, 0, 1), None);
    let mut empty = batch(1, 0, 10, 0);
    empty.count_dropped(DropReason::Empty, 3);
    assert!(settle.admit(&empty, None).is_settled());
    assert_eq!(offset(&settle), 0);
    first.delivered(1);
    assert_eq!(offset(&settle), 10);
    assert!(settle.total().adds_up());
}

#[test]
fn results_of_an_older_generation_count_but_move_no_cursor() {
    let settle = settle();
    let old = settle.admit(&batch(1, 0, 0, 5), None);
    settle.restart(ONE, 1);
    let new = settle.admit(&batch(1, 1, 0, 1), None);
    new.delivered(1);
    assert_eq!(offset(&settle), 0, "the older range is before it");
    old.delivered(5);
    let status = settle.status(ONE).expect("it is known");
    assert_eq!((status.cursor.generation, status.cursor.offset), (1, 10));
    assert_eq!(status.ledger.delivered(), 6);
}

#[test]
fn a_batch_of_an_older_generation_may_come_after_the_restart() {
    let settle = settle();
    settle.restart(ONE, 1);
    // The turn was under way when the scan found the file rewritten.
    settle.admit(&batch(1, 0, 70, 3), None).delivered(3);
    assert_eq!(offset(&settle), 0);
    settle.admit(&batch(1, 1, 0, 2), None).delivered(2);
    assert_eq!(offset(&settle), 20);
}

#[test]
fn a_new_key_removes_the_old_one() {
    let settle = settle();
    settle.admit(&batch(1, 0, 0, 1), None).delivered(1);
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
    let ticket = settle.admit(&batch(1, 0, 0, 4), None);
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
    let ticket = settle.admit(&batch(1, 0, 0, 1), None);
    let other = settle.admit(&batch(1, 0, 10, 1), None);
    ticket.delivered(1);
    ticket.delivered(1);
    drop(other);
}

#[test]
fn ignored_files_are_skipped_only_while_nothing_is_on_its_way() {
    let settle = settle();
    let ticket = settle.admit(&batch(1, 0, 0, 1), None);
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
    settle.admit(&batch(1, 0, 0, 1), None).delivered(1);
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
    let provenance = last.provenance().clone();
    last.set_provenance(Provenance { end_of_file: true, ..provenance });
    let on_its_way = settle.admit(&last, None);
    settle.doubt_end(ONE);
    on_its_way.delivered(1);
    let cursor = settle.cursor(ONE).expect("it is known");
    assert_eq!((cursor.offset, cursor.eof), (10, false));
    settle.admit(&last, None).delivered(1);
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
    let first = settle.admit(&batch(1, 0, 0, 2), None);
    let second = settle.admit(&batch(other.0, 0, 0, 5), None);
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
