//! Settings as they are read.

use super::*;
use skidder_config::{Problems, Settings as Tree};
use skidder_os::RealFs;

fn read_text(text: &str) -> (Option<Redis>, String) {
    let problems = Problems::new();
    let tree = Tree::parse("f.yml", text).expect("YAML");
    let section = tree.root(&problems);
    section.declared_by(&REDIS_INPUT);
    let fs: Arc<dyn Fs> = Arc::new(RealFs);
    let input = read(&section, &fs, "here");
    section.finish();
    (input, problems.to_string())
}

#[test]
fn defaults_read_the_slow_log_as_filebeat_does() {
    let (input, problems) = read_text("{hosts: ['a:1', b]}");
    assert_eq!(problems, "");
    let Redis { settings, servers, address } = input.expect("an input");
    assert_eq!(address, "a:1,b:6379");
    assert_eq!(servers.len(), 2);
    assert!(servers.iter().all(|server| server.credentials.is_none()));
    assert!(servers.iter().all(|server| server.network == Network::Tcp && server.db == 0));
    let Settings { kind, timeout, scan_frequency, consumer, claim_after, max_bytes, .. } =
        &*settings;
    assert_eq!((kind, &**consumer), (&Kind::SlowLog, "here"));
    assert_eq!((*timeout, *scan_frequency), (Duration::from_secs(5), Duration::from_secs(10)));
    assert_eq!((*claim_after, *max_bytes), (Duration::from_mins(5), 10 << 20));
    let (init, max) = (settings.backoff_init, settings.backoff_max);
    assert_eq!((init, max), (Duration::from_secs(1), Duration::from_mins(1)));
}

#[test]
fn every_setting_arrives() {
    let (input, problems) = read_text(
        "{hosts: ['redis://u:p@a:1/2', 'rediss://b'], network: tcp6, username: me, password: secret, timeout: 1s, \
         idle_timeout: 2s, lists: [x, y], consumer: c, claim_after: 20s, max_bytes: 1KiB, backoff: {init: 2s, max: 3s}, \
         ssl.verification_mode: none, maxconn: 10}",
    );
    assert_eq!(problems, "");
    let Redis { settings, servers, address } = input.expect("an input");
    assert_eq!(address, "a:1,b:6379 x,y");
    let [a, b] = &servers[..] else { panic!("{servers:?}") };
    assert_eq!(a.credentials, Some(("u".to_owned(), Secret::new("p"))));
    assert_eq!((a.db, &a.network, a.route.tls.is_some()), (2, &Network::Tcp6, false));
    assert_eq!(b.credentials, Some(("me".to_owned(), Secret::new("secret"))));
    assert_eq!((b.db, b.route.tls.is_some()), (0, true));
    let shown = format!("{settings:?}");
    let expected = "Settings { kind: Lists([\"x\", \"y\"]), timeout: 1s, scan_frequency: 10s, consumer: \"c\", \
                    claim_after: 20s, max_bytes: 1024, backoff_init: 2s, backoff_max: 3s }";
    assert_eq!(shown, expected);
    let (input, problems) = read_text(
        "{hosts: [/run/redis.sock], network: unix, idle_timeout: 2s, scan_frequency: 1s}",
    );
    assert_eq!(problems, "");
    let Redis { settings, servers, address } = input.expect("an input");
    assert_eq!(servers[0].network, Network::Unix("/run/redis.sock".into()));
    assert_eq!((settings.timeout, &*address), (Duration::from_secs(2), "/run/redis.sock"));
    assert_eq!(settings.scan_frequency, Duration::from_secs(1));
    let (input, problems) = read_text(
        "{hosts: [h], network: tcp4, streams: [s], group: g, initial_offset: newest, message_field: m}",
    );
    assert_eq!(problems, "");
    let Redis { settings, servers, .. } = input.expect("an input");
    let streams = Streams {
        keys: vec!["s".to_owned()],
        group: "g".to_owned(),
        from_newest: true,
        message_field: "m".to_owned(),
    };
    assert_eq!((&settings.kind, &servers[0].network), (&Kind::Streams(streams), &Network::Tcp4));
}

#[test]
fn what_a_consumer_reads_is_named() {
    let consumes = |text: &str| read_text(text).0.expect("an input").consumes();
    assert_eq!(consumes("{hosts: [a]}"), None);
    let lists = consumes("{hosts: [a, 'b:1/2'], lists: [x]}");
    let expected = ["the list `x` of a:6379", "the list `x` of b:1/2"].map(str::to_owned);
    assert_eq!(lists, Some(("lists", expected.to_vec())));
    let streams = consumes("{hosts: [/s], network: unix, streams: [x, y], group: g}");
    let expected =
        ["the stream `x` of /s in the group `g`", "the stream `y` of /s in the group `g`"];
    assert_eq!(streams, Some(("streams", expected.map(str::to_owned).to_vec())));
}

#[test]
fn mistakes_are_reported() {
    for (text, expected) in [
        ("{}", "`hosts` is missing"),
        ("{hosts: []}", "`hosts`"),
        ("{hosts: ['http://h']}", "neither `redis` nor `rediss`"),
        ("{hosts: [h, 'h:6379']}", "twice"),
        ("{hosts: [h], lists: [a, a]}", "twice"),
        ("{hosts: [h], username: u}", "`username` needs `password`"),
        ("{hosts: [h], network: udp}", "udp"),
        ("{hosts: [/s], network: unix, ssl.verification_mode: none}", "has no TLS"),
        ("{hosts: [h], lists: [a], streams: [b], group: g}", "not both"),
        ("{hosts: [h], streams: [b]}", "`streams` needs `group`"),
        ("{hosts: [h], streams: [b], group: g, initial_offset: middle}", "middle"),
        ("{hosts: [h], lists: [a], consumer: ''}", "`consumer` is empty"),
        ("{hosts: [h], lists: [a], claim_after: 1s}", "claim_after"),
        ("{hosts: [h], lists: [a], parsers: []}", "parsers"),
        ("{hosts: [h], ssl.certificate: /nothing, ssl.key: /nothing}", "/nothing"),
        ("{hosts: [h], maxconn: 0}", "maxconn"),
        (
            "{hosts: [/s, '127.0.0.1:6379'], network: unix}",
            "f.yml:1:14: `hosts[1]` is `127.0.0.1:6379`; expected the path of a socket",
        ),
        ("{hosts: ['redis://h'], network: unix}", "a URL is no path of a socket"),
        ("{hosts: ['unix:///s'], network: unix}", "write `/s` alone"),
        ("{hosts: [/run/redis.sock]}", "the path of a socket needs `network: unix`"),
        ("{hosts: [./redis.sock], network: tcp4}", "the path of a socket needs `network: unix`"),
        ("{hosts: ['unix:///s']}", "for a socket, write `/s` and `network: unix`"),
        ("{hosts: [h], lists: ['']}", "expected the name of a key"),
        ("{hosts: [h], lists: [a, '']}", "`lists[1]` is"),
        ("{hosts: [h], streams: [''], group: g}", "expected the name of a key"),
        (
            "{hosts: [h], backoff: {init: 3s, max: 2s}}",
            "`backoff.init`, 3s, is longer than `backoff.max`, 2s",
        ),
    ] {
        let (_, problems) = read_text(text);
        assert!(problems.contains("error") && problems.contains(expected), "{text}: {problems}");
    }
}

#[test]
fn what_has_no_effect_is_said() {
    for (text, name) in [
        ("{hosts: [h], maxconn: 3}", "one connection for each server"),
        (
            "{hosts: ['redis://h'], ssl.verification_mode: full}",
            "`ssl` does nothing: no host begins with `rediss://`",
        ),
        (
            "{hosts: ['rediss://h'], ssl.enabled: false}",
            "`ssl.enabled` is `false`, and a host begins with `rediss://`",
        ),
        ("{hosts: [h], group: g}", "`group` has no effect: this input reads the slow log"),
        ("{hosts: [h], consumer: c}", "`consumer` has no effect"),
        ("{hosts: [h], lists: [l], scan_frequency: 1s}", "`scan_frequency` has no effect"),
        ("{hosts: [h], lists: [l], message_field: m}", "this input reads `lists`"),
        (
            "{hosts: [h], lists: [l], scan_frequency: 1s}",
            "it is for the slow log: lists and streams",
        ),
        ("{hosts: [h], lists: [l], group: g}", "it is for `streams`"),
        ("{hosts: [h], max_bytes: 1KiB}", "it is for `lists` and `streams`"),
        ("{hosts: [h], streams: [s], group: g, scan_frequency: 1s}", "this input reads `streams`"),
    ] {
        let (input, problems) = read_text(text);
        assert!(input.is_some(), "{text}: {problems}");
        assert!(problems.contains("warning") && problems.contains(name), "{text}: {problems}");
    }
}
