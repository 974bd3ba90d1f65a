//! The search against a responder of our own. Its address is given in place of the multicast group; that the group
//! itself is reached on the loopback interface is shown by `tests/autodiscover/engines.rs`.

use super::*;
use crate::watchers::News;
use skidder_lookups::background::Background;
use skidder_os::SystemClock;
use std::net::UdpSocket as Responder;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const WAIT: Duration = Duration::from_secs(20);

fn interface(name: &str) -> JolokiaInterface {
    JolokiaInterface {
        name: name.to_owned(),
        interval: Duration::from_millis(100),
        probe_timeout: Duration::from_millis(60),
        grace_period: Duration::from_millis(700),
    }
}

/// A search on interfaces, and what it reports.
struct World {
    responder: Responder,
    news: Receiver<News>,
    _thread: Background,
}

impl World {
    fn new(names: &[&str]) -> Self {
        let responder = Responder::bind("127.0.0.1:0").unwrap();
        responder.set_read_timeout(Some(WAIT)).unwrap();
        let std::net::SocketAddr::V4(target) = responder.local_addr().unwrap() else {
            panic!("an IPv4 address")
        };
        let (send, news) = channel();
        let report = Report { provider: 3, send, wake: Arc::new(|| {}) };
        let interfaces = names.iter().map(|name| interface(name)).collect();
        let work = follow_jolokia(interfaces, target, Arc::new(SystemClock::new()), report);
        let thread = Background::start("jolokia", work).unwrap();
        Self { responder, news, _thread: thread }
    }

    /// Sends answers to the next query.
    fn answer(&self, answers: &[&[u8]]) {
        let mut query = [0; 100];
        let (length, from) = self.responder.recv_from(&mut query).unwrap();
        assert_eq!(&query[..length], br#"{"type":"query"}"#);
        assert!(from.ip().is_loopback());
        for answer in answers {
            self.responder.send_to(answer, from).unwrap();
        }
    }

    fn next(&self) -> String {
        let News { provider, what } = self.news.recv_timeout(WAIT).unwrap();
        assert_eq!(provider, 3);
        match what {
            What::Seen(fact) => format!("seen {}", fact.id()),
            What::Gone(id, None) => format!("gone {id}"),
            _ => panic!("neither seen nor gone"),
        }
    }
}

#[test]
fn agents_that_answer_are_reported_once_and_as_gone_when_they_are_silent() {
    let world = World::new(&["lo"]);
    world.answer(&[br#"{"agent_id":"a","url":"http://1/"}"#]);
    assert_eq!(world.next(), "seen a");
    world.answer(&[
        br#"{"agent_id":"a","url":"http://1/"}"#,
        br#"{"agent_id":"b","url":"http://2/"}"#,
    ]);
    assert_eq!(world.next(), "seen b");
    // Only one of them goes on.
    for _ in 0..9 {
        world.answer(&[br#"{"agent_id":"b","url":"http://2/"}"#]);
    }
    assert_eq!(world.next(), "gone a");
    assert_eq!(world.next(), "gone b");
    world.answer(&[]);
    assert!(world.news.try_recv().is_err());
}

#[test]
fn hostile_answers_stop_nothing() {
    let world = World::new(&["l*"]);
    let huge = format!(r#"{{"agent_id":"huge","url":"{}"}}"#, "u".repeat(JOLOKIA_ANSWER_BYTES_MAX));
    let large = format!(
        r#"{{"agent_id":"large","url":"u","x":"{}"}}"#,
        "x".repeat(JOLOKIA_ANSWER_BYTES_MAX - 40)
    );
    world.answer(&[
        huge.as_bytes(),
        b"",
        b"\xff\xfe{",
        b"[]",
        br#"{"type":"query"}"#,
        br#"{"agent_id":["a"],"url":"u"}"#,
        large.as_bytes(),
        br#"{"agent_id":"last","url":"u"}"#,
    ]);
    assert_eq!(world.next(), "seen large");
    assert_eq!(world.next(), "seen last");
}

#[test]
fn an_agent_that_answers_to_two_searches_is_one() {
    let world = World::new(&["lo", "nothing like this", "lo*"]);
    for _ in 0..2 {
        world.answer(&[br#"{"agent_id":"a","url":"u"}"#]);
    }
    assert_eq!(world.next(), "seen a");
    // Nothing but its end follows.
    assert_eq!(world.next(), "gone a");
}
