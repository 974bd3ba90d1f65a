//! Scans of a service that shows events late and in no order, with restarts among them.

use super::*;
use crate::cloudwatch::slice::Slice;
use skidder_os::Timestamp;

const MINUTE: Milliseconds = 60_000;

fn event(id: usize, time: Milliseconds, received: Milliseconds) -> LogEvent {
    LogEvent {
        id: id.to_string(),
        stream: "s".to_owned(),
        message: String::new(),
        time: Timestamp(time * 1_000_000),
        ingested: Some(Timestamp(received * 1_000_000)),
    }
}

/// The service: what it shows at a time of what it will have received.
struct Service(Vec<LogEvent>);

impl Service {
    /// What it shows of the events between two times, in no order that means anything.
    fn show(&self, now: Milliseconds, slice: Slice) -> Vec<LogEvent> {
        let is_shown = |event: &&LogEvent| {
            let time = milliseconds(event.time);
            received(event) <= now && (slice.start..=slice.end).contains(&time)
        };
        let mut all: Vec<LogEvent> = self.0.iter().filter(is_shown).cloned().collect();
        all.sort_by_cached_key(id_of);
        all
    }

    /// A scan in slices of this length, which is interrupted behind so many batches; returns the ids of what is sent.
    fn scan(
        &self,
        window: &mut Window,
        (now, span): (Milliseconds, Option<Milliseconds>),
        (batch, mut batches): (usize, usize),
    ) -> Vec<String> {
        let mut sent = Vec::new();
        let mut start = window.low();
        while start <= now && window.front() <= now {
            let slice = Slice::new(start, window.front(), now, span);
            let mut new = self.show(now, slice);
            new.retain(|event| !window.knows(event));
            for events in new.chunks(batch) {
                if batches == 0 {
                    return sent;
                }
                batches -= 1;
                for event in events {
                    window.add(event);
                    sent.push(event.id.clone());
                }
            }
            window.complete(slice.end, now);
            start = slice.end + 1;
        }
        sent
    }
}

/// After a restart.
fn again(window: &Window) -> Window {
    let text = window.cursor();
    assert!(text.len() < 64 << 10, "{} bytes", text.len());
    Window::parse(&text).expect("a cursor")
}

fn once_each(sent: &[String], count: usize) {
    let mut ids: Vec<usize> = sent.iter().map(|id| id.parse().unwrap()).collect();
    assert_eq!(ids.len(), count);
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count);
}

#[test]
fn a_restart_behind_any_batch_repeats_nothing_and_loses_nothing() {
    // Some are of one millisecond, some come late.
    let all = (0..210_usize).map(|id| {
        let time = 20 * MINUTE + (id / 7) as Milliseconds * 500;
        let late = if id % 5 == 0 { 3 * MINUTE } else { 40 };
        event(id, time, time + late)
    });
    let service = Service(all.collect());
    for span in [None, Some(700), Some(10_000)] {
        for (batch, batches) in [(2, 1), (3, 1), (7, 2), (100, 1), (1000, 9)] {
            let mut window = Window::starting_at(20 * MINUTE - 10);
            let (mut sent, mut now) = (Vec::new(), 20 * MINUTE);
            for round in 0..200 {
                sent.extend(service.scan(&mut window, (now, span), (batch, batches)));
                window = again(&window);
                if round % 20 == 0 {
                    now += 30_000;
                }
            }
            once_each(&sent, 210);
        }
    }
}

#[test]
fn what_is_read_from_the_beginning_is_not_looked_at_again() {
    let service = Service((0..100).map(|id| event(id, id as Milliseconds * MINUTE, 0)).collect());
    let mut window = Window::starting_at(0);
    let now = 10_000 * MINUTE;
    // The fourth slice of ten events is interrupted behind one of them.
    let sent = service.scan(&mut window, (now, Some(10 * MINUTE)), (1, 31));
    assert_eq!((sent.len(), window.low(), window.known.len()), (31, 30 * MINUTE, 1));
    window = again(&window);
    let sent = service.scan(&mut window, (now, Some(1000 * MINUTE)), (10, 99));
    assert_eq!(sent.len(), 69);
    assert_eq!((window.low(), window.front()), (now + 1 - 5 * MINUTE, now + 1));
}

#[test]
fn what_came_late_is_found_by_a_scan_that_was_interrupted_before_that() {
    let mut window = Window::starting_at(0);
    let now = 100 * MINUTE;
    let early = event(1, now - MINUTE, now - MINUTE);
    let service = Service(vec![early.clone()]);
    assert_eq!(service.scan(&mut window, (now, None), (1, 9)), ["1"]);
    // An hour later two more have come, between the times that were read.
    let late = |id, seconds: i64| event(id, now - seconds * 1000, now + 10);
    let service = Service(vec![early, late(2, 200), late(3, 100)]);
    let now = 160 * MINUTE;
    let mut sent = service.scan(&mut window, (now, None), (1, 1));
    window = again(&window);
    sent.extend(service.scan(&mut window, (now, None), (1, 9)));
    sent.sort_unstable();
    assert_eq!(sent, ["2", "3"]);
}

#[test]
fn many_events_of_one_millisecond_come_once_as_long_as_their_ids_have_room() {
    let now = 100 * MINUTE;
    let of = |count| Service((0..count).map(|id| event(id, now - 10, now - 5)).collect());
    let mut window = Window::starting_at(0);
    let service = of(KEPT_MAX);
    let mut sent = service.scan(&mut window, (now, None), (1000, 4));
    window = again(&window);
    sent.extend(service.scan(&mut window, (now, None), (1000, 99)));
    once_each(&sent, KEPT_MAX);

    // With more, a scan that was interrupted repeats some; one that ended repeats none, and the next one neither.
    let service = of(5 * KNOWN_MAX);
    let mut window = Window::starting_at(0);
    let sent = service.scan(&mut window, (now, None), (1000, 99));
    assert_eq!((sent.len(), window.known.len()), (99_000, 4 * KNOWN_MAX));
    let kept = again(&window);
    assert_eq!((kept.known.len(), kept.received, kept.low()), (KEPT_MAX, None, 0));
    window.complete(now, now);
    window = again(&window);
    assert_eq!((window.low(), window.known.len()), (now - 9, 0));
}

#[test]
fn a_busy_group_is_looked_at_again_for_less_long() {
    // A thousand events a second.
    let second = |at: Milliseconds| {
        (0..1000).map(move |id| {
            let time = at * 1000 + id;
            event((at * 1000 + id) as usize, time, time + 100)
        })
    };
    let mut window = Window::starting_at(0);
    let mut sent = 0;
    for scan in 1..=4_i64 {
        let now = scan * MINUTE;
        let service = Service(((scan - 2) * 60..scan * 60).flat_map(second).collect());
        sent += service.scan(&mut window, (now, Some(4_000)), (1000, 999)).len();
        assert!(window.known.len() <= KNOWN_MAX);
        assert!((now - window.low() - 20_000).abs() < 200, "{} of {now}", window.low());
        // What is not in the cursor by id is known by when it was received.
        let mut kept = again(&window);
        assert_eq!(kept.known.len(), KEPT_MAX);
        let old = event(1, now - 15_000, now - 14_900);
        let late = event(1, now - 15_000, now - 1);
        assert!(kept.knows(&old) && !kept.knows(&late) && !window.knows(&old));
    }
    assert!((239_000..=241_000).contains(&sent), "{sent}");
}

#[test]
fn more_late_events_than_a_cursor_has_room_for_are_not_lost_with_a_restart_among_them() {
    let now = 100 * MINUTE;
    let at = |id: usize| id as Milliseconds;
    let early = |id| event(id, now - 60_000 + at(id) * 7, now - 59_000 + at(id) * 7);
    let mut all: Vec<LogEvent> = (0..8_000).map(early).collect();
    let mut window = Window::starting_at(0);
    let mut sent = Service(all.clone()).scan(&mut window, (now, None), (1_000, 99));
    assert_eq!(sent.len(), 8_000);
    // They are received in another order than that of their times.
    all.extend((8_000..18_000).map(|id| {
        let place = at(id) - 8_000;
        event(id, now - 200_000 + place * 18, now + 1 + (place * 7_919) % 10_000)
    }));
    let service = Service(all);
    let later = (now + MINUTE, None);
    sent.extend(service.scan(&mut window, later, (1_000, 4)));
    window = again(&window);
    sent.extend(service.scan(&mut window, later, (1_000, 1)));
    window = again(&window);
    sent.extend(service.scan(&mut window, later, (1_000, 99)));
    let (count, mut ids) = (sent.len(), sent);
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 18_000);
    assert!(count <= 18_000 + 8_000, "{count}");
}

#[test]
fn a_text_that_is_no_cursor_is_none() {
    let window = Window::starting_at(-5);
    assert_eq!(again(&window), window);
    let table = [
        "",
        "1 2 3 4",
        "1 2 3 4 0",
        "1 2 3 x 0 ",
        "1 2 3 4 0 ?",
        "1 2 3 4 0 AAAA",
        "1 2 3 4 0  5",
        "1 2 3 4 1 ",
        "1 2 3 4 -1 ",
    ];
    for text in table {
        assert_eq!(Window::parse(text), None, "{text}");
    }
    assert!(Window::parse("1 2 3 4 0 ").is_some());
}
