//! Settings as they are read.

use super::*;
use crate::testing::read_with;
use skidder_os::RealFs;

fn read_text(text: &str) -> (Option<Mqtt>, String) {
    let fs: Arc<dyn Fs> = Arc::new(RealFs);
    read_with(text, |section| read_input(section, &fs))
}

#[test]
fn defaults_are_those_of_filebeat() {
    let (input, problems) = read_text("{hosts: ['tcp://h:1']}");
    assert_eq!(problems, "");
    let Mqtt { settings, address } = input.expect("an input");
    assert_eq!(address, "h:1 filebeat");
    assert_eq!((&*settings.topics, settings.qos), (&["#".to_owned()][..], 0));
    assert_eq!((&*settings.client_id, settings.clean_session), ("filebeat", true));
    assert_eq!((settings.version, settings.session_expiry), (Version::V311, None));
    assert_eq!((settings.receive_maximum, settings.message_bytes_max), (1000, 20 << 20));
    let second = Duration::from_secs(1);
    assert_eq!((settings.keep_alive, settings.timeout), (30 * second, 30 * second));
    assert_eq!(settings.backoff, (second, 60 * second));
    let [broker] = &settings.brokers[..] else { panic!("{:?}", settings.brokers) };
    assert!(broker.login.is_none() && broker.route.tls.is_none());
}

#[test]
fn every_setting_arrives() {
    let (input, problems) = read_text(
        "{hosts: ['ssl://a', 'tcp://u%40:p%2F@b', ':7'], topics: [x, '$share/g/#'], qos: 2, client_id: c, username: user, \
         password: secret, clean_session: false, protocol_version: '5', session_expiry: 2h, receive_maximum: 9, \
         max_message_size: 1MiB, keep_alive: 0, timeout: 3s, backoff: {init: 2s, max: 4s}, keep_null: true, \
         ssl.verification_mode: none}",
    );
    assert_eq!(problems, "");
    let Mqtt { settings, address } = input.expect("an input");
    assert_eq!(address, "a:8883,b:1883,localhost:7 c");
    let logins: Vec<(&str, &str)> = settings
        .brokers
        .iter()
        .map(|broker| {
            let (user, password) = broker.login.as_ref().expect("a login");
            (&**user, password.as_ref().map_or("", Secret::reveal))
        })
        .collect();
    assert_eq!(logins, [("user", "secret"), ("u@", "p/"), ("user", "secret")]);
    let encrypted = settings.brokers.iter().map(|broker| broker.route.tls.is_some());
    assert_eq!(encrypted.collect::<Vec<_>>(), [true, false, false]);
    let shown = format!("{settings:?}");
    let expected = "topics: [\"x\", \"$share/g/#\"], qos: 2, client_id: \"c\", clean_session: false, version: V5, \
                    session_expiry: Some(7200s), receive_maximum: 9, message_bytes_max: 1048576, keep_alive: 0ns, \
                    timeout: 3s, backoff: (2s, 4s)";
    assert!(shown.contains(expected), "{shown}");
    assert!(!shown.contains("secret"), "{shown}");
}

#[test]
fn a_sign_of_life_is_in_whole_seconds() {
    for (text, seconds) in [("0", 0), ("1ns", 1), ("500ms", 1), ("1s", 1), ("1500ms", 2)] {
        let (input, problems) = read_text(&format!("{{hosts: [h], keep_alive: {text}}}"));
        assert_eq!(problems, "");
        let keep_alive = input.expect("an input").settings.keep_alive;
        assert_eq!(keep_alive, Duration::from_secs(seconds), "{text}");
    }
}

#[test]
fn a_session_keeps_nothing_of_quality_0() {
    let (input, problems) = read_text("{hosts: [h], clean_session: false}");
    assert!(input.is_some(), "{problems}");
    let expected = "warning: x:1:29: `clean_session: false` has no effect with `qos: 0`";
    assert!(problems.starts_with(expected), "{problems}");
    let (_, problems) = read_text("{hosts: [h], clean_session: false, qos: 1}");
    assert_eq!(problems, "");
}

#[test]
fn mistakes_are_reported() {
    let long = "x".repeat(70_000);
    for (text, expected) in [
        ("{}".to_owned(), "`hosts` is missing"),
        ("{hosts: []}".to_owned(), "hosts"),
        ("{hosts: ['ws://h']}".to_owned(), "no WebSocket"),
        ("{hosts: ['unix:///h']}".to_owned(), "no Unix socket"),
        ("{hosts: ['http://h']}".to_owned(), "neither `tcp` nor `ssl`"),
        ("{hosts: ['tcp://h/path']}".to_owned(), "has no path"),
        ("{hosts: ['tcp://h:0']}".to_owned(), "no number from 1 to 65535"),
        ("{hosts: [h], topics: []}".to_owned(), "topic"),
        ("{hosts: [h], topics: ['a#']}".to_owned(), "whole level"),
        ("{hosts: [h], topics: [a/#/b]}".to_owned(), "whole level"),
        ("{hosts: [h], topics: [b, a+]}".to_owned(), "`topics[1]` is `a+`; `+` stands for a whole"),
        ("{hosts: [h], topics: ['']}".to_owned(), "a filter is not empty"),
        ("{hosts: [h], qos: 3}".to_owned(), "quality of service"),
        (format!("{{hosts: [h], client_id: {long}}}"), "1 to 65535 bytes"),
        (format!("{{hosts: [h], username: {long}}}"), "0 to 65535 bytes"),
        (format!("{{hosts: [h], username: u, password: {long}}}"), "more than 65535 bytes"),
        (format!("{{hosts: ['tcp://{long}@h']}}"), "at most 65535 bytes"),
        ("{hosts: [h], password: p}".to_owned(), "`password` does nothing"),
        ("{hosts: [h], protocol_version: 3}".to_owned(), "protocol_version"),
        (
            "{hosts: [h], clean_session: false, session_expiry: 1h}".to_owned(),
            "needs `protocol_version: 5`",
        ),
        (
            "{hosts: [h], protocol_version: 5, session_expiry: 1h}".to_owned(),
            "`clean_session: false`",
        ),
        ("{hosts: [h], receive_maximum: 0}".to_owned(), "1 to 65535"),
        ("{hosts: [h], keep_alive: 20h}".to_owned(), "keep_alive"),
        ("{hosts: [h], backoff: {init: 2s, max: 1s}}".to_owned(), "longer than `backoff.max`, 1s"),
        ("{hosts: [h], ssl.verification_mode: none}".to_owned(), "no host begins with `ssl://`"),
        ("{hosts: ['ssl://h'], ssl.enabled: false}".to_owned(), "`ssl.enabled` is `false`"),
        (
            "{hosts: ['ssl://h'], ssl: {certificate: /nothing, key: /nothing}}".to_owned(),
            "/nothing",
        ),
        ("{hosts: [h], wrong: 1}".to_owned(), "wrong"),
    ] {
        let (_, problems) = read_text(&text);
        let start: String = text.chars().take(100).collect();
        assert!(problems.contains(expected), "{start}: {problems}");
    }
    let (_, problems) = read_text("{hosts: ['ws://user:secret@h']}");
    assert!(!problems.contains("secret"), "{problems}");
    assert!(problems.contains("is `ws://user:xxxxx@h`; this input has no WebSocket"), "{problems}");
    let (_, problems) = read_text("{hosts: [a, 'ws://h']}");
    assert!(problems.contains("`hosts[1]` is `ws://h`; this input has no WebSocket"), "{problems}");
}
