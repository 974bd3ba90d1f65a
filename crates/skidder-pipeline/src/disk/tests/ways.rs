//! Events on their ordinary way, and over restarts.

use super::*;
use crate::dead_letter::{DeadLetter, DeadLetters, DeadLettersLimits};
use skidder_os::Clock;

#[test]
fn events_come_out_in_their_order_and_the_ledger_adds_up() {
    let fs = disk();
    let mut life = Life::new(&fs);
    for at in 0..10 {
        life.read(at * 10..at * 10 + 10);
    }
    assert_eq!(life.settle.total().in_flight(), 100);
    life.write_all();
    let total = life.settle.total();
    assert_eq!((total.read(), total.in_flight(), total.stored()), (100, 0, 100));
    assert_eq!(life.cursor(), 100, "what is durable is behind the cursor");
    assert_eq!(life.queue.filled().events, 100);
    assert!(segments(&fs).len() > 2, "{:?}", segments(&fs));
    life.deliver_all();
    let total = life.settle.total();
    assert_eq!((total.delivered(), total.stored(), life.lost()), (100, 0, 0));
    assert_eq!(life.once(), (0..100).collect::<Vec<_>>());
    assert_eq!((life.queue.filled().events, segments(&fs).len()), (0, 1));
    let one = life.settle.status(ONE).expect("it is known").ledger;
    assert_eq!((one.read(), one.stored(), one.in_flight()), (100, 100, 0));
}

#[test]
fn what_was_not_delivered_is_delivered_by_the_next_life() {
    let fs = disk();
    let life = Life::new(&fs);
    assert_eq!(life.opened, DiskQueueOpened { segments: 0, ..DiskQueueOpened::default() });
    life.read(0..30);
    life.write_all();
    drop(life);
    fs.kill();
    let mut life = Life::new(&fs);
    assert_eq!(life.opened.events, 30);
    let total = life.settle.total();
    assert_eq!((total.read(), total.recovered(), total.stored()), (0, 30, 30));
    life.read(30..40);
    life.write_all();
    life.deliver_all();
    assert_eq!(life.once(), (0..40).collect::<Vec<_>>());
    drop(life);
    fs.crash();
    let mut life = Life::new(&fs);
    assert_eq!(life.opened.events, 0, "all of it was delivered, and that is durable");
    life.deliver_all();
    assert_eq!(life.delivered.len(), 0);
}

#[test]
fn a_frame_is_sent_again_as_long_as_one_of_its_events_has_no_verdict() {
    let fs = disk();
    let life = Life::new(&fs);
    life.read(0..4);
    life.write_all();
    life.read(4..8);
    life.write_all();
    let mut taken = Vec::new();
    while life.queue.read_step().expect("it can be read") == DiskStep::Done {}
    while life.queue.back().try_take(TakeLimits { events: 0, bytes: 1 << 20 }, &mut taken) {}
    assert_eq!(taken.len(), 2);
    assert!(!life.settle.wait_until_settled(Duration::ZERO), "the output has them");
    taken[1].ticket.delivered(4);
    taken[0].ticket.delivered(3);
    taken[0].ticket.dropped(skidder_event::DropReason::Rejected, 0);
    life.queue.maintain();
    drop(taken);
    assert!(life.settle.wait_until_settled(Duration::ZERO), "nobody has them");
    life.check();
    drop(life);
    fs.kill();
    let mut life = Life::new(&fs);
    assert_eq!(life.opened.events, 8);
    life.deliver_all();
    assert_eq!(life.once(), (0..8).collect::<Vec<_>>());
}

#[test]
fn what_is_not_sent_yet_stays_in_the_queue_when_the_program_ends() {
    let fs = disk();
    let life = Life::new(&fs);
    life.read(0..8);
    life.write_all();
    while life.queue.read_step().expect("it can be read") == DiskStep::Done {}
    assert!(!life.settle.wait_until_settled(Duration::ZERO));
    life.queue.stop_feeding();
    assert!(life.settle.wait_until_settled(Duration::ZERO));
    life.check();
    assert_eq!(life.queue.filled().events, 8);
}

#[test]
fn dead_letters_name_the_file_of_another_life() {
    let fs = disk();
    let life = Life::new(&fs);
    life.read(5..6);
    life.write_all();
    drop(life);
    fs.kill();
    let life = Life::new(&fs);
    assert_eq!(life.queue.read_step().expect("it can be read"), DiskStep::Done);
    let mut taken = Vec::new();
    assert!(life.queue.back().try_take(TakeLimits { events: 0, bytes: 1 }, &mut taken));
    let clock: Arc<dyn Clock> = Arc::new(SimClock::default());
    let limits = DeadLettersLimits::default();
    let letters = DeadLetters::new(Arc::new(fs.clone()), clock, Path::new("/data"), limits);
    let letter = DeadLetter { delivery: &taken[0], row: 0, status: 400, reason: b"no", id: None };
    assert_eq!(letters.write(&[letter]).expect("there is room"), 1);
    taken[0].ticket.dead_lettered(1);
    life.check();
    let text = fs.peek("/data/dead_letters.ndjson").expect("the letter");
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(
        text.contains(r#""source":"/logs/one","identity":"key","generation":0,"offset":5,"#),
        "{text}"
    );
}

#[test]
fn the_size_is_bounded_and_readers_wait() {
    let fs = disk();
    let bounded = DiskQueueSettings { max_size: 4000, ..settings() };
    let mut life = Life::with(&fs, bounded).expect("the queue can be opened");
    let (mut next, mut fulls) = (0, 0);
    while life.delivered.len() < 400 {
        while next < 400 && life.queue.front().try_push(numbered(next..next + 5)).is_ok() {
            next += 5;
        }
        if life.write().expect("the disk works") == DiskStep::Full {
            fulls += 1;
            life.queue.maintain();
            if life.queue.write_step().expect("the disk works") == DiskStep::Full {
                life.deliver_all();
            }
        } else if next == 400 {
            life.deliver_all();
        }
        let bytes: usize =
            segments(&fs).iter().map(|path| fs.peek(path).expect("it is there").len()).sum();
        assert!(bytes <= 4000, "{bytes} bytes");
        assert_eq!(life.queue.filled().bytes, bytes as u64);
    }
    assert!(fulls > 3);
    assert_eq!(life.once(), (0..400).collect::<Vec<_>>());
}

#[test]
fn a_frame_above_all_bounds_goes_through_alone() {
    let fs = disk();
    let bounded = DiskQueueSettings { max_size: 4000, ..settings() };
    let mut life = Life::with(&fs, bounded).expect("the queue can be opened");
    life.read(0..3);
    life.write_all();
    life.read(3..400);
    assert!(matches!(life.write(), Ok(DiskStep::Full)), "not beside another");
    life.deliver_all();
    life.write_all();
    life.deliver_all();
    assert_eq!(life.once(), (0..400).collect::<Vec<_>>());
}

#[test]
fn only_one_has_a_queue() {
    let fs = disk();
    let _life = Life::new(&fs);
    let other = Life::with(&fs, settings()).err().map(|error| error.to_string());
    assert!(other.expect("it is refused").contains("is in use"));
}

#[test]
fn a_queue_of_filebeat_is_not_touched() {
    let fs = disk();
    let directory = Path::new(DIRECTORY);
    let state = |segment: u64, byte: u64| {
        let mut bytes = 1_u32.to_le_bytes().to_vec();
        bytes.extend([segment, byte, 1].iter().flat_map(|number| number.to_le_bytes()));
        fs.write_as_other(directory.join("state.dat"), &bytes);
    };
    fs.write_as_other(directory.join("3.seg"), &[1; 200]);
    let refused = || match Life::with(&fs, settings()) {
        Err(DiskQueueError::Filebeat { .. }) => true,
        Err(other) => panic!("{other}"),
        Ok(_) => false,
    };
    assert!(refused(), "nothing says that it was delivered");
    state(3, 100);
    assert!(refused(), "half of it was delivered");
    state(2, 200);
    assert!(refused(), "another segment was delivered");
    state(3, 200);
    assert!(!refused(), "all of it was delivered");
    state(4, 0);
    assert!(!refused());
    assert_eq!(fs.peek(directory.join("3.seg")).map(|bytes| bytes.len()), Some(200));
}

#[tokio::test]
async fn the_threads_bring_everything_to_the_output_and_end() {
    let fs = disk();
    let life = Life::new(&fs);
    let threads = life.queue.start().expect("threads can be started");
    let queue = Arc::clone(&life.queue);
    let reader = std::thread::spawn(move || {
        for at in 0..200 {
            queue.front().push(numbered(at * 10..at * 10 + 10)).expect("it is open");
        }
        queue.front().close();
    });
    let mut life = life;
    let mut taken = Vec::new();
    let back = life.queue.back().clone();
    while back.take(TakeLimits { events: 0, bytes: 1 << 20 }, &mut taken).await {
        for delivery in taken.drain(..) {
            life.take(&delivery);
            delivery.ticket.delivered(delivery.len() as u32);
        }
    }
    reader.join().expect("it ends");
    life.queue.stop();
    for thread in threads {
        thread.join().expect("it ends");
    }
    life.check();
    assert_eq!(life.once(), (0..2000).collect::<Vec<_>>());
}
