//! The Kafka output against scripted brokers that lead, move, cut and lie.

mod common;

use common::fake::{Fake, Trick};
use common::{LINES, assert_order, counted, output, taken_of, until};
use skidder_contract::Fixture;

/// Sends lines with these settings, in batches of 50; the fixture was judged: each line once, in order.
async fn deliver(name: &str, fake: &Fake, settings: &str) -> Fixture {
    let fixture = send(name, fake, settings).await;
    let taken = taken_of(&fake.state().values());
    fixture.judge(&counted(&taken));
    assert_order(name, &taken);
    fixture
}

async fn send(name: &str, fake: &Fake, settings: &str) -> Fixture {
    let mut fixture = Fixture::new();
    fixture.name = name.to_owned();
    fixture.push(LINES, 70);
    let settings = format!(
        "hosts: [\"{}\"]\ntopic: t\ncompression: none\nbulk_max_size: 50\ntimeout: 1s\n{settings}",
        fake.address()
    );
    fixture.run_boxed(output(&settings).output).await;
    fixture
}

const IDEMPOTENT: &str = "required_acks: -1\nenable_idempotence: true";

#[tokio::test(flavor = "multi_thread")]
async fn records_follow_the_leader_of_their_partition() {
    for settings in ["", IDEMPOTENT] {
        let fake = Fake::start(3, 4).await;
        fake.on_produce([
            Trick::Good,
            Trick::Move(0, 2),
            Trick::Move(1, 3),
            Trick::Good,
            // For a while there is none.
            Trick::Move(0, -1),
            Trick::Move(2, 3),
            Trick::Move(0, 1),
        ]);
        let bring_back = async {
            while fake.state().leaders[&2] != 3 {
                tokio::task::yield_now().await;
            }
            fake.state().leaders.insert(0, 3);
        };
        let (fixture, ()) = tokio::join!(deliver("leaders", &fake, settings), bring_back);
        assert!(fixture.feed.metrics.failed.get() > 0, "some came back");
        assert!(fixture.dead_letters().is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idempotent_producer_sends_what_was_cut_off_once_and_in_order() {
    let fake = Fake::start(1, 2).await;
    fake.on_produce([
        Trick::Good,
        Trick::DoAndCut,
        Trick::Cut,
        Trick::Short(3),
        Trick::Short(20),
        Trick::Code(7),
        Trick::Code(19),
        Trick::Good,
        Trick::DoAndCut,
    ]);
    deliver("cuts", &fake, IDEMPOTENT).await;
    assert_eq!(fake.state().identities, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_producer_that_is_not_known_any_more_begins_anew() {
    for code in [45, 47, 49, 59, 90] {
        let fake = Fake::start(1, 1).await;
        fake.on_produce([Trick::Good, Trick::Good, Trick::Code(code)]);
        // It is in order and twice nowhere, since nothing of the batch was written.
        deliver(&format!("code {code}"), &fake, IDEMPOTENT).await;
        assert_eq!(fake.state().identities, 2, "{code}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_is_refused_does_not_hold_up_those_behind_it() {
    for settings in ["", IDEMPOTENT] {
        // Brokers before 2.4 do not report which record it was.
        for produce_max in [13, 7] {
            let fake = Fake::start(1, 2).await;
            fake.state().produce_max = produce_max;
            fake.on_produce(vec![Trick::Refuse("7 x"); 1000]);
            let name = format!("{settings} {produce_max}");
            let fixture = deliver(&name, &fake, settings).await;
            let dead = fixture.dead_letters();
            assert!(dead.keys().all(|number| number % 10 == 7), "{name}");
            // Every tenth, but those without an `x`.
            assert_eq!(dead.len(), LINES / 10, "{name}");
            assert!(dead.values().all(|status| *status == 87), "{name}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_make_no_sense_are_told_and_asked_for_again() {
    let nonsense = [
        &b"HTTP/1.1 400 Bad Request\r\n\r\n"[..],
        &[0, 0, 0, 3, 1, 2, 3],
        &[0xff; 64],
        // An answer to no request.
        &[0, 0, 0, 8, 0x7f, 0, 0, 0, 0, 0, 0, 0],
        // As many topics as there can be.
        &[0, 0, 0, 12, 0, 0, 0, 1, 0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0],
    ];
    let tricks = |count: usize| {
        let nonsense = nonsense.into_iter().map(|bytes| Trick::Nonsense(bytes.to_vec()));
        nonsense.chain((0..count).map(Trick::Short)).collect::<Vec<Trick>>()
    };
    let fake = Fake::start(1, 3).await;
    fake.on_versions(tricks(20));
    fake.on_metadata(tricks(60));
    fake.on_produce(tricks(60));
    let fixture = send("nonsense", &fake, "").await;
    let taken = taken_of(&fake.state().values());
    // Records that were written and answered with nonsense come again.
    fixture.judge_repeated(&counted(&taken));
    assert_order("nonsense", &taken);
    assert!(fixture.feed.metrics.write_errors.get() >= 100);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_answer_is_about_is_sent_again() {
    for settings in ["", IDEMPOTENT] {
        let fake = Fake::start(1, 3).await;
        fake.on_produce([
            Trick::Nothing,
            Trick::OtherTopic,
            Trick::Good,
            Trick::Elsewhere(100),
            Trick::Elsewhere(-1),
            Trick::Nothing,
        ]);
        let fixture = send("another's answers", &fake, settings).await;
        let taken = taken_of(&fake.state().values());
        fixture.judge_repeated(&counted(&taken));
        // How many requests there are depends on how events are put together; the first one is never answered well.
        assert!(fixture.feed.metrics.write_errors.get() >= 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_is_asked_for_until_it_is_there() {
    let fake = Fake::start(1, 2).await;
    fake.on_metadata([3, 5, 29, 3, 3, 3, 3].map(Trick::Code));
    let fixture = deliver("unknown", &fake, "metadata.retry.max: 2").await;
    assert_eq!(fixture.feed.metrics.write_errors.get(), 7);
    assert_eq!(fixture.feed.metrics.batches.get() as usize, fake.state().produced());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_brokers_refuse_goes_to_the_dead_letters() {
    let fake = Fake::start(1, 1).await;
    fake.on_metadata(vec![Trick::Code(17); 1000]);
    let fixture = send("invalid", &fake, "").await;
    fixture.judge(&counted(&[]));
    assert_eq!(fixture.dead_letters().len(), LINES);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_reachable_partitions_are_used_if_that_is_wanted() {
    let fake = Fake::start(1, 3).await;
    fake.state().leaders.insert(1, -1);
    deliver("reachable", &fake, "partition.round_robin.reachable_only: true").await;
    assert!(fake.state().values().iter().all(|(partition, _)| *partition != 1));

    // Records that wait for a partition that loses its leader go to the others.
    let fake = Fake::start(1, 3).await;
    fake.on_produce([Trick::Move(2, -1)]);
    let name = "reachable, then not";
    let fixture = send(name, &fake, "partition.round_robin.reachable_only: true").await;
    fixture.judge(&counted(&taken_of(&fake.state().values())));

    // Otherwise events wait for it, and those of other topics do not.
    let fake = Fake::start(1, 3).await;
    fake.state().leaders.insert(1, -1);
    let mut fixture = Fixture::new();
    fixture.push(LINES, 70);
    let settings = format!(
        "hosts: [\"{}\"]\ntopic: t\ncompression: none\npartition.round_robin: {{}}",
        fake.address()
    );
    let running = output(&settings).output.run(fixture.feed.clone());
    let story = async {
        let rest = LINES - LINES.div_ceil(3) + 1;
        until(&fixture, || fixture.settle.total().delivered() as usize == rest).await;
        fake.state().leaders.insert(1, 1);
        until(&fixture, || fixture.settle.total().in_flight() == 0).await;
        fixture.queue.close();
    };
    tokio::join!(running, story);
    fixture.judge(&counted(&taken_of(&fake.state().values())));
}

#[tokio::test(flavor = "multi_thread")]
async fn brokers_that_are_too_old_are_told_apart() {
    let fake = Fake::start(1, 1).await;
    fake.state().produce_max = 6;
    let mut fixture = Fixture::new();
    fixture.push(10, 10);
    let settings = format!("hosts: [\"{}\"]\ntopic: t\ncompression: zstd", fake.address());
    let running = output(&settings).output.run(fixture.feed.clone());
    let failing = until(&fixture, || fixture.feed.metrics.write_errors.get() >= 3);
    tokio::select! {
        () = running => panic!("it ended"),
        () = failing => {}
    }
    assert_eq!(fixture.settle.total().in_flight(), 10);
    assert!(fake.state().values().is_empty());
    // The request for versions is one that older brokers understand.
    let fake = Fake::start(1, 1).await;
    fake.state().produce_max = 3;
    fake.on_versions([Trick::Code(35), Trick::Good, Trick::Code(35)]);
    deliver("0.11", &fake, "").await;
}
