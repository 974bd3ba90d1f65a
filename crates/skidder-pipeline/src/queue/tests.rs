//! Bounds, waiting and ends of the queue.

use super::*;
use crate::testing::{at_zero, batch, meta};
use skidder_event::SourceId;
use skidder_testkit::{Random, SimClock};
use std::thread;
use std::time::Duration;

const ALL: TakeLimits = TakeLimits { events: 0, bytes: usize::MAX };

fn queue(events: usize, bytes: usize, flush_min_events: usize) -> Queue {
    let settle = Settle::new();
    settle.begin(SourceId(1), "one".to_owned(), meta("/one"), at_zero(), false);
    let flush_timeout = Duration::from_secs(1);
    Queue::new(QueueLimits { events, bytes, flush_min_events, flush_timeout }, settle)
}

fn take(queue: &Queue, limits: TakeLimits) -> Vec<Delivery> {
    let mut out = Vec::new();
    queue.try_take(limits, &mut out);
    out
}

fn lengths(deliveries: &[Delivery]) -> Vec<usize> {
    deliveries.iter().map(Delivery::len).collect()
}

/// Nothing is to be done again while there is no room.
#[expect(clippy::result_large_err, reason = "as the queue's own")]
fn push_meanwhile(queue: &Queue, batch: Batch, meanwhile: impl FnOnce()) -> Result<(), Batch> {
    queue.push_meanwhile(batch, meanwhile, Duration::MAX, || {})
}

#[test]
fn room_comes_back_when_rows_are_settled_not_when_they_are_taken() {
    let queue = queue(10, usize::MAX, 0);
    queue.try_push(batch(1, 0, 0, 6)).expect("there is room");
    queue.try_push(batch(1, 0, 60, 6)).expect_err("there is none");
    let taken = take(&queue, ALL);
    assert_eq!(queue.filled().0, 6);
    queue.try_push(batch(1, 0, 60, 6)).expect_err("still none");
    taken[0].ticket.delivered(6);
    assert_eq!(queue.filled(), (0, 0));
    queue.try_push(batch(1, 0, 60, 6)).expect("now there is");
}

#[test]
fn bytes_are_a_bound_too_and_a_batch_beyond_it_goes_alone() {
    let small = batch(1, 0, 0, 1).memory_bytes();
    let queue = queue(1000, small * 2, 0);
    queue.try_push(batch(1, 0, 0, 50)).expect("alone it is let in");
    queue.try_push(batch(1, 0, 500, 1)).expect_err("beside it there is no room");
    take(&queue, ALL)[0].ticket.delivered(50);
    for at in 0..2 {
        queue.try_push(batch(1, 0, 500 + at * 10, 1)).expect("two fit");
    }
    queue.try_push(batch(1, 0, 520, 1)).expect_err("the third does not");
}

#[test]
fn a_delivery_is_cut_at_events_and_at_bytes() {
    let queue = queue(100, usize::MAX, 0);
    queue.try_push(batch(1, 0, 0, 10)).expect("there is room");
    queue.try_push(batch(1, 0, 100, 3)).expect("there is room");
    assert_eq!(lengths(&take(&queue, TakeLimits { events: 4, bytes: usize::MAX })), [4]);
    assert_eq!(lengths(&take(&queue, TakeLimits { events: 0, bytes: 20 })), [2]);
    assert_eq!(lengths(&take(&queue, TakeLimits { events: 0, bytes: 1 })), [1], "one at least");
    let rest = take(&queue, ALL);
    assert_eq!(lengths(&rest), [3, 3]);
    assert_eq!(rest[0].rows, 7..10);
    assert!(take(&queue, ALL).is_empty());
}

#[test]
fn a_closed_queue_gives_the_batch_back_and_keeps_it_off_the_ledger() {
    let queue = queue(10, usize::MAX, 0);
    queue.try_push(batch(1, 0, 0, 1)).expect("there is room");
    queue.close();
    assert_eq!(queue.push(batch(1, 0, 10, 2)).expect_err("it is closed").len(), 2);
    assert_eq!(queue.settle().total().read(), 1);
    assert_eq!(lengths(&take(&queue, ALL)), [1], "what is in it can still be taken");
}

#[test]
fn an_aborted_queue_lets_go_and_leaves_the_rows_in_flight() {
    let queue = queue(10, usize::MAX, 0);
    queue.try_push(batch(1, 0, 0, 3)).expect("there is room");
    queue.abort();
    assert!(take(&queue, ALL).is_empty());
    assert_eq!(queue.filled(), (0, 0));
    let settle = queue.settle();
    assert_eq!((settle.in_flight(), settle.total().adds_up()), (3, true));
}

#[test]
fn a_large_batch_is_not_overtaken_by_small_ones() {
    let queue = queue(10, usize::MAX, 0);
    queue.try_push(batch(1, 0, 0, 5)).expect("there is room");
    thread::scope(|scope| {
        scope.spawn(|| queue.push(batch(1, 0, 50, 9)).expect("it gets its turn"));
        while !queue.is_blocked() {
            thread::yield_now();
        }
        queue.try_push(batch(1, 0, 140, 1)).expect_err("the large one was first");
        take(&queue, ALL)[0].ticket.delivered(5);
    });
    assert_eq!(lengths(&take(&queue, ALL)), [9]);
}

#[test]
fn a_batch_gets_in_as_soon_as_there_is_room_while_its_reader_does_something_else() {
    let queue = queue(10, usize::MAX, 0);
    queue.try_push(batch(1, 0, 0, 6)).expect("there is room");
    let mut was_in = false;
    let pushed = push_meanwhile(&queue, batch(1, 0, 60, 7), || {
        assert!(queue.is_blocked());
        assert_eq!(queue.settle().total().read(), 6, "it is not on the ledger");
        take(&queue, ALL)[0].ticket.delivered(6);
        was_in = !queue.is_blocked() && queue.filled().0 == 7;
        assert_eq!(lengths(&take(&queue, ALL)), [7]);
    });
    pushed.expect("it is in");
    assert!(was_in);
    push_meanwhile(&queue, batch(1, 0, 130, 3), || panic!("there is room")).expect("there is room");
}

#[test]
fn a_batch_whose_reader_does_something_else_comes_back_if_the_queue_is_closed() {
    let queue = queue(10, usize::MAX, 0);
    queue.try_push(batch(1, 0, 0, 6)).expect("there is room");
    let back = push_meanwhile(&queue, batch(1, 0, 60, 7), || {
        queue.close();
        take(&queue, ALL)[0].ticket.delivered(6);
    });
    assert_eq!(back.expect_err("it is closed").len(), 7);
    assert_eq!((queue.filled().0, queue.settle().total().read()), (0, 6));
}

#[test]
fn readers_that_wait_learn_that_the_queue_is_closed() {
    let queue = queue(1, usize::MAX, 0);
    queue.try_push(batch(1, 0, 0, 1)).expect("there is room");
    thread::scope(|scope| {
        let blocked: Vec<_> = (0..3)
            .map(|at| {
                scope.spawn({
                    let queue = &queue;
                    move || queue.push(batch(1, 0, 10 + at * 10, 1)).map_err(Box::new).is_err()
                })
            })
            .collect();
        while !queue.is_blocked() {
            thread::yield_now();
        }
        queue.close();
        for thread in blocked {
            assert!(thread.join().expect("no panic"), "it is closed");
        }
    });
}

#[tokio::test(start_paused = true)]
async fn a_worker_waits_for_enough_events_but_not_for_ever() {
    let queue = queue(100, usize::MAX, 10);
    let begin = Instant::now();
    let mut at = 0;
    let mut take_after = async |events: u32| {
        queue.try_push(batch(1, 0, at, events)).expect("there is room");
        at += u64::from(events) * 10;
        let mut out = Vec::new();
        assert!(queue.take(ALL, &mut out).await);
        (lengths(&out), begin.elapsed().as_millis())
    };
    assert_eq!(
        take_after(3).await,
        (vec![3], 20),
        "there were none for long: only a burst is waited for"
    );
    assert_eq!(take_after(2).await, (vec![2], 1020), "those that follow wait for more");
    assert_eq!(take_after(12).await, (vec![10], 1020), "a full one goes at once");
    tokio::time::advance(Duration::from_millis(600)).await;
    assert_eq!(take_after(1).await, (vec![2, 1], 2020), "the time counts from the request before");
    tokio::time::advance(Duration::from_millis(1500)).await;
    assert_eq!(take_after(1).await, (vec![1], 3540));
    queue.drain();
    assert_eq!(take_after(1).await, (vec![1], 3540), "at the end nothing is waited for");
}

#[tokio::test]
async fn several_workers_share_all_events_and_all_end() {
    let queue = queue(10_000, usize::MAX, 0);
    let limits = TakeLimits { events: 7, bytes: usize::MAX };
    let work = |queue: Queue| async move {
        let mut count = 0;
        let mut out = Vec::new();
        while queue.take(limits, &mut out).await {
            for delivery in out.drain(..) {
                count += delivery.len();
                delivery.ticket.delivered(delivery.len() as u32);
            }
            tokio::task::yield_now().await;
        }
        count
    };
    let workers: Vec<_> = (0..4).map(|_| tokio::spawn(work(queue.clone()))).collect();
    for at in 0..20 {
        queue.try_push(batch(1, 0, at * 100, 10)).expect("there is room");
        tokio::task::yield_now().await;
    }
    queue.close();
    let mut count = 0;
    for worker in workers {
        count += worker.await.expect("no panic");
    }
    assert_eq!(count, 200);
    let cursor = queue.settle().cursor(SourceId(1)).expect("it is known");
    assert_eq!(cursor.offset, 2000);
}

#[tokio::test(start_paused = true)]
async fn in_no_order_of_steps_does_a_worker_sleep_beside_enough_events() {
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let queue = queue(60, usize::MAX, 10);
        let work = |queue: Queue, mut random: Random| async move {
            let mut out = Vec::new();
            while queue.take(ALL, &mut out).await {
                for _ in 0..random.below(4) {
                    tokio::task::yield_now().await;
                }
                for delivery in out.drain(..) {
                    delivery.ticket.delivered(delivery.len() as u32);
                }
            }
        };
        let workers: Vec<_> = (0..=random.below(3))
            .map(|_| tokio::spawn(work(queue.clone(), Random::new(random.number()))))
            .collect();
        let mut at = 0;
        for _ in 0..20 {
            for _ in 0..random.below(4) {
                let rows = 1 + random.below(12);
                if queue.try_push(batch(1, 0, at, rows as u32)).is_ok() {
                    at += rows * 10;
                }
                for _ in 0..random.below(3) {
                    tokio::task::yield_now().await;
                }
            }
            if random.one_in(4) {
                // No time goes by while any task has something to do.
                for _ in 0..200 {
                    tokio::task::yield_now().await;
                }
                let left = queue.shared.lock().queued;
                assert!(left < 10, "seed {seed}: {left} events wait and so do all workers");
                tokio::time::sleep(queue.limits().flush_timeout * 2).await;
                assert_eq!(queue.filled().0, 0, "seed {seed}: nobody watched the time");
            }
        }
        queue.close();
        for worker in workers {
            worker.await.expect("no panic");
        }
        let cursor = queue.settle().cursor(SourceId(1)).expect("it is known");
        assert_eq!((queue.filled().0, cursor.offset), (0, at), "seed {seed}");
    }
}

#[test]
fn the_front_of_the_line_says_since_when_the_output_takes_nothing() {
    let at = |seconds| skidder_os::Monotonic(Duration::from_secs(seconds));
    let queue = queue(10, usize::MAX, 0);
    queue.note_blocked(at(1));
    assert_eq!(queue.blocked_since(), None, "nobody waits");
    queue.try_push(batch(1, 0, 0, 10)).expect("there is room");
    thread::scope(|scope| {
        let wait = |offset, seconds| {
            let queue = queue.clone();
            scope.spawn(move || {
                let note_blocked = || queue.note_blocked(at(seconds));
                push_meanwhile(&queue, batch(1, 0, offset, 10), note_blocked).is_ok()
            })
        };
        let first = wait(100, 5);
        while queue.blocked_since().is_none() {
            thread::yield_now();
        }
        let second = wait(200, 9);
        while queue.shared.lock().blocked.back().is_none_or(|last| last.since != Some(at(9))) {
            thread::yield_now();
        }
        assert_eq!(queue.blocked_since(), Some(at(5)));
        take(&queue, ALL)[0].ticket.delivered(10);
        assert!(first.join().expect("no panic"), "it is in");
        assert_eq!(queue.blocked_since(), Some(at(9)), "the next one waits for less long");
        take(&queue, ALL)[0].ticket.delivered(10);
        assert!(second.join().expect("no panic"), "it is in");
        assert_eq!(queue.blocked_since(), None);
    });
}

/// Whether an output would have to wait.
async fn is_unhurried(queue: &Queue, or_full: bool) -> bool {
    tokio::select! {
        biased;
        () = queue.hurried(or_full) => false,
        () = std::future::ready(()) => true,
    }
}

#[tokio::test]
async fn who_keeps_events_is_hurried_by_a_full_queue_and_by_the_end() {
    let queue = queue(10, usize::MAX, 0);
    queue.try_push(batch(1, 0, 0, 6)).expect("there is room");
    let kept = take(&queue, ALL);
    assert!(is_unhurried(&queue, true).await, "nobody waits for room");
    let pushing = queue.clone();
    let reader = thread::spawn(move || pushing.push(batch(1, 0, 60, 7)).expect("it gets in"));
    queue.hurried(true).await;
    assert!(queue.is_blocked() && !queue.is_draining());
    assert!(is_unhurried(&queue, false).await, "it is not the end");
    kept[0].ticket.delivered(6);
    reader.join().expect("it ends");
    assert!(is_unhurried(&queue, true).await, "there was room");
    let waiting = queue.hurried(false);
    let ending = async {
        tokio::task::yield_now().await;
        queue.drain();
    };
    tokio::join!(waiting, ending);
    assert!(queue.is_draining() && !is_unhurried(&queue, true).await);
}

#[tokio::test]
async fn a_task_waits_for_room_in_line_and_its_thread_does_not() {
    let queue = queue(10, usize::MAX, 0);
    let clock = SimClock::new();
    queue.push_async(batch(1, 0, 0, 10), &clock).await.expect("there is room");
    let push = queue.push_async(batch(1, 0, 100, 5), &clock);
    tokio::pin!(push);
    // On the one thread of this test others go on.
    assert!(futures_now(push.as_mut()).await.is_none(), "there is no room");
    assert!(queue.blocked_since().is_some());
    queue.try_push(batch(1, 0, 150, 1)).expect_err("a small one does not overtake it");
    take(&queue, ALL)[0].ticket.delivered(10);
    push.await.expect("now there is");
    assert_eq!(queue.filled().0, 5);
}

#[tokio::test]
async fn a_task_that_goes_away_takes_its_batch_with_it_and_lets_others_in() {
    let queue = queue(10, usize::MAX, 0);
    let clock = SimClock::new();
    queue.push_async(batch(1, 0, 0, 8), &clock).await.expect("there is room");
    let mut large = Box::pin(queue.push_async(batch(1, 0, 80, 9), &clock));
    assert!(futures_now(large.as_mut()).await.is_none());
    let mut small = Box::pin(queue.push_async(batch(1, 0, 170, 2), &clock));
    assert!(futures_now(small.as_mut()).await.is_none(), "it stands behind the large one");
    drop(large);
    assert!(futures_now(small.as_mut()).await.expect("it is in").is_ok());
    assert_eq!((queue.filled().0, queue.settle().total().read()), (10, 10));
}

#[tokio::test]
async fn a_task_gets_its_batch_back_when_the_queue_closes() {
    let queue = queue(10, usize::MAX, 0);
    let clock = SimClock::new();
    queue.push_async(batch(1, 0, 0, 10), &clock).await.expect("there is room");
    let other = queue.clone();
    let push = async move { other.push_async(batch(1, 0, 100, 5), &SimClock::new()).await };
    let push = tokio::spawn(push);
    tokio::task::yield_now().await;
    queue.close();
    let back = push.await.expect("no panic").expect_err("it is closed");
    assert_eq!((back.len(), queue.settle().total().read()), (5, 10));
}

/// What a future has by now, after one look.
async fn futures_now<F: Future + Unpin>(mut future: F) -> Option<F::Output> {
    std::future::poll_fn(|context| {
        use std::task::Poll;
        Poll::Ready(match std::pin::Pin::new(&mut future).poll(context) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        })
    })
    .await
}
