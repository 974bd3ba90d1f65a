//! Batches of one partition that are refused, lost and sent again.

use super::*;

fn lane() -> Lane {
    let wait = Duration::from_millis(1);
    Lane::new(0, 0, Backoff::new(wait, wait, 1))
}

fn items(rows: std::ops::Range<u16>) -> Vec<Item> {
    rows.map(|row| Item { flight: 0, row }).collect()
}

/// Writes rows into the open batch.
fn write(lane: &mut Lane, rows: std::ops::Range<u16>) {
    for item in items(rows) {
        let pushed = lane.open.records.push(0, None, &[0], |out| {
            out.push(b'x');
            Ok::<(), ()>(())
        });
        pushed.expect("it has a value");
        lane.open.items.push(item);
        lane.since.get_or_insert_with(Instant::now);
    }
}

/// Sends the next batch; gives it as it flies.
fn send(lane: &mut Lane, generation: u32) -> Group {
    let Batch { items, mark, .. } = lane.take().expect("a batch");
    let mark = Some(lane.number(generation, mark, items.len()));
    Group { items, mark }
}

/// Everything that waits, in its order.
fn waiting(lane: &Lane) -> Vec<u16> {
    let groups = lane.groups.iter().flat_map(|group| group.items.iter());
    groups.chain(&lane.parked).map(|item| item.row).collect()
}

fn firsts(lane: &Lane) -> Vec<Option<i32>> {
    lane.groups.iter().map(|group| group.mark.map(|mark| mark.first)).collect()
}

#[test]
fn what_came_back_goes_before_what_was_not_sent_and_keeps_its_numbers() {
    let mut lane = lane();
    let mut flying = Vec::new();
    for rows in [0..3, 3..5, 5..9] {
        write(&mut lane, rows);
        flying.push(send(&mut lane, 1));
    }
    write(&mut lane, 9..11);
    lane.seal();
    write(&mut lane, 11..12);
    lane.parked.extend(items(12..14));
    for group in flying {
        lane.give_back(group);
    }
    assert_eq!(lane.hold, Hold::Draining);
    let mut freed = 0;
    let load = lane.settle_down(&mut |_| freed += 1);
    assert_eq!((load.records, freed), (3, 2));
    assert_eq!(waiting(&lane), (0..14).collect::<Vec<u16>>());
    assert_eq!(firsts(&lane), [Some(0), Some(3), Some(5), None]);
    assert_eq!(lane.next.first, 9);
    // The same identity: the same numbers. Another one: numbers from the beginning.
    let mark = lane.groups[1].mark;
    assert_eq!(lane.number(1, mark, 2).first, 3);
    assert_eq!(lane.number(2, mark, 2), Mark { generation: 2, first: 0 });
    assert_eq!(lane.next, Mark { generation: 2, first: 2 });
}

#[test]
fn behind_a_refused_batch_numbers_are_given_anew() {
    let mut lane = lane();
    let mut flying = Vec::new();
    for rows in [0..3, 3..5, 5..9] {
        write(&mut lane, rows);
        flying.push(send(&mut lane, 1));
    }
    let mut flying = flying.into_iter();
    lane.give_back(flying.next().expect("the first"));
    let refused = flying.next().expect("the second");
    lane.refused(refused.mark);
    lane.give_back(flying.next().expect("the third"));
    lane.settle_down(&mut drop);
    assert_eq!(waiting(&lane), [0, 1, 2, 5, 6, 7, 8]);
    assert_eq!(firsts(&lane), [Some(0), None]);
    assert_eq!(lane.number(1, None, 4).first, 3);
}

#[test]
fn numbers_begin_again_behind_the_largest() {
    let mut lane = lane();
    lane.next = Mark { generation: 1, first: i32::MAX - 1 };
    assert_eq!(lane.number(1, None, 2).first, i32::MAX - 1);
    assert_eq!(lane.number(1, None, 1).first, 0);
    // A refusal just before the end takes back the bytes after it.
    lane.groups
        .push_back(Group { items: items(0..1), mark: Some(Mark { generation: 1, first: 0 }) });
    lane.refused(Some(Mark { generation: 1, first: i32::MAX - 1 }));
    lane.settle_down(&mut drop);
    assert_eq!(firsts(&lane), [None]);
    assert_eq!(lane.next.first, i32::MAX - 1);
}

#[test]
fn only_what_was_not_sent_goes_to_another_partition() {
    let mut lane = lane();
    write(&mut lane, 0..2);
    let group = send(&mut lane, 1);
    lane.flying.push_back(Flying { group, bytes: 1, link: 1 });
    write(&mut lane, 2..4);
    assert_eq!(lane.evacuate(true, &mut drop), None, "something flies");
    let flying = lane.flying.pop_front().expect("it was sent");
    lane.give_back(flying.group);
    lane.settle_down(&mut drop);
    lane.hold = Hold::Asking;
    assert_eq!(lane.evacuate(true, &mut drop), None, "it may be written");
    lane.groups[0].mark = None;
    let (moved, load) = lane.evacuate(true, &mut drop).expect("nothing holds it");
    assert_eq!((moved, load), (items(0..4), Load::default()));
    assert!(lane.is_idle());

    // A partition that is gone for good will never report whether it was written.
    write(&mut lane, 4..5);
    let group = send(&mut lane, 1);
    lane.give_back(group);
    lane.settle_down(&mut drop);
    lane.hold = Hold::Asking;
    assert_eq!(lane.evacuate(true, &mut drop), None);
    let (moved, _) = lane.evacuate(false, &mut drop).expect("there is no such partition");
    assert_eq!(moved, items(4..5));
}
