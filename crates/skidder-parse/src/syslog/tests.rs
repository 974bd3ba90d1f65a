//! Messages as Filebeat's documentation and the RFCs show them.

use super::*;
use crate::testing::{base, batch_of, document};
use proptest::prelude::*;
use serde_json::{Value, json};

/// 2026-11-22 00:00:00 UTC.
const NOW: i64 = 1_795_305_600_000_000_000;

fn settings(format: Format) -> Settings {
    Settings { format, ..Settings::local(TimeZone::UTC) }
}

fn parse(format: Format, line: &str) -> (Value, Result<(), SyslogError>) {
    let base = base();
    let mut batch = batch_of(line.as_bytes(), &base);
    let done = Syslog::new(settings(format)).apply(&mut batch.event_mut(0, &base), NOW);
    (document(&batch), done)
}

/// `log.syslog`, the message and the time of a line that is as it should be.
fn parts(line: &str) -> (Value, Value, String) {
    let (seen, done) = parse(Format::Auto, line);
    assert_eq!(done, Ok(()), "{line}");
    assert_eq!(seen["log"]["offset"], 7);
    assert_eq!(seen["log"]["file"]["path"], "/var/log/a.log");
    let time = seen["@timestamp"].as_str().unwrap().to_owned();
    (seen["log"]["syslog"].clone(), seen["message"].clone(), time)
}

fn user_notice() -> Value {
    json!({
        "priority": 13,
        "facility": {"code": 1, "name": "user-level"},
        "severity": {"code": 5, "name": "Notice"},
    })
}

fn with(mut fields: Value, more: Value) -> Value {
    if let Value::Object(more) = more {
        for (key, value) in more {
            fields[key] = value;
        }
    }
    fields
}

#[test]
fn bsd_messages_are_read() {
    let text = json!("this is the message");
    let bsd = "2026-10-11T22:14:15.000000000Z";
    let host = json!({"hostname": "test-host"});
    let cases = [
        (
            "<13>Oct 11 22:14:15 test-host this is the message",
            with(user_notice(), host.clone()),
            bsd,
        ),
        (
            "<13>2003-08-24T05:14:15.000003-07:00 test-host this is the message",
            with(user_notice(), host.clone()),
            "2003-08-24T12:14:15.000003000Z",
        ),
        (
            "<13>Oct 11 22:14:15 test-host su: this is the message",
            with(user_notice(), json!({"hostname": "test-host", "appname": "su"})),
            bsd,
        ),
        (
            "<13>oct  11  22:14:15 test-host su[1024]: this is the message",
            with(
                user_notice(),
                json!({"hostname": "test-host", "appname": "su", "procid": "1024"}),
            ),
            bsd,
        ),
        (
            "Oct 11 22:14:15 - su[a b]: this is the message",
            json!({"appname": "su", "procid": "a b"}),
            bsd,
        ),
    ];
    for (line, syslog, time) in cases {
        assert_eq!(parts(line), (syslog, text.clone(), time.to_owned()), "{line}");
    }
    let (_, message, time) = parts("<123>Sep 01 02:03:04 hostname message");
    assert_eq!((message, &time[..19]), (json!("message"), "2026-09-01T02:03:04"));
}

#[test]
fn a_program_is_one_only_with_a_colon_and_a_space() {
    for text in
        ["http://example.org/ is down", "su[1024]:text", "su[]: text", "a b: c", ": text", "su: "]
    {
        let (syslog, message, _) = parts(&format!("<13>Oct  1 22:14:15 host {text}"));
        assert_eq!(message, text);
        assert!(syslog.get("appname").is_none(), "{text}");
    }
}

#[test]
fn ietf_messages_are_read() {
    let line = r#"<165>1 2003-10-11T22:14:15.003Z mymachine.example.com evntslog 1024 ID47 [exampleSDID@32473 iut="3" eventSource="a\]\"\\\n" eventID=""][examplePriority@32473 class="high"] this is the message"#;
    let expected = json!({
        "priority": 165,
        "facility": {"code": 20, "name": "local4"},
        "severity": {"code": 5, "name": "Notice"},
        "hostname": "mymachine.example.com",
        "appname": "evntslog",
        "procid": "1024",
        "msgid": "ID47",
        "version": "1",
        "structured_data": {
            "exampleSDID@32473": {"iut": "3", "eventSource": "a]\"\\\\n", "eventID": ""},
            "examplePriority@32473": {"class": "high"},
        },
    });
    let time = "2003-10-11T22:14:15.003000000Z".to_owned();
    assert_eq!(parts(line), (expected, json!("this is the message"), time));
    let line = "<34>1 2003-10-11T22:14:15.003Z host su - ID47 - \u{feff}'su root' failed";
    let (syslog, message, _) = parts(line);
    assert_eq!(message, "'su root' failed");
    assert_eq!(syslog["facility"]["name"], "security/authorization");
    assert!(syslog.get("procid").is_none() && syslog.get("structured_data").is_none());
}

#[test]
fn a_message_of_nothing_leaves_the_time_and_no_message() {
    let (syslog, message, time) = parts("<13>1 - - - - - -");
    assert_eq!(syslog, with(user_notice(), json!({"version": "1"})));
    assert_eq!((message, &time[..]), (Value::Null, "2026-11-21T20:52:57.123000000Z"));
}

#[test]
fn structured_data_is_read_as_far_as_it_is_right() {
    let of = |data: &str| {
        let (syslog, message, _) = parts(&format!("<13>1 - - - - - {data} text"));
        (syslog.get("structured_data").cloned().unwrap_or_default(), message)
    };
    for (data, expected) in [
        ("[id a=b]", json!({"id": {}})),
        ("[id a=\"b\" ]", json!({"id": {"a": "b"}})),
        ("[id  a=\"b\"]", json!({"id": {}})),
        ("[a x=\"1\"][b y=\"2\" z]", json!({"a": {"x": "1"}, "b": {"y": "2"}})),
        (r#"[a x="1"][b][a y="2" x="3"]"#, json!({"a": {"x": "3", "y": "2"}, "b": {}})),
    ] {
        assert_eq!(of(data), (expected, json!("text")), "{data}");
    }
    for data in [r#"[action:"Drop"; flags:"278528"; tag:"db[x\]"; src:"81.2.69.144"]"#, "[=]"] {
        assert_eq!(of(data), (Value::Null, json!(format!("{data} text"))));
    }
    let many: Vec<String> = (0..300).map(|n| format!("[e{n}]")).collect();
    let parameters: Vec<String> = (0..300).map(|n| format!(" p{n}=\"\"")).collect();
    for data in [many.concat(), format!("[id{}]", parameters.concat())] {
        assert_eq!(of(&data), (json!(data), json!("text")), "too many are kept as a text");
    }
}

#[test]
fn times_are_of_the_zone_and_of_the_year_of_the_clock() {
    let zone = timezone("-0500").unwrap();
    // Eleven at night of the last day of 2025, five hours west of UTC.
    let now = 1_767_240_000_000_000_000;
    let time = |text: &str| {
        let line = format!("{text} host text");
        Message::parse(line.as_bytes(), Format::Rfc3164, &zone, now).0.time.unwrap()
    };
    assert_eq!(time("Dec 31 23:00:00"), now);
    assert_eq!(time("Feb 29 00:00:00"), time("Mar  1 00:00:00"));
}

#[test]
fn what_is_no_message_stays_as_it_is_with_a_note() {
    let cases = [
        (Format::Auto, "", 0, Problem::Unfinished),
        (Format::Auto, "Not a valid message.", 0, Problem::Timestamp),
        (Format::Auto, "<abc>Oct 11 22:14:15 test-host text", 1, Problem::Priority),
        (Format::Auto, "<192>Oct 11 22:14:15 test-host text", 1, Problem::Priority),
        (Format::Auto, "<-1>Oct 11 22:14:15 test-host text", 1, Problem::Priority),
        (Format::Auto, "<1", 2, Problem::Unfinished),
        (Format::Auto, "13 Oct 11 22:14:15 test-host text", 0, Problem::Timestamp),
        (Format::Auto, "<13> test-host text", 4, Problem::Timestamp),
        (Format::Auto, "<13>Foo 11 22:14:15 test-host text", 4, Problem::Timestamp),
        (Format::Auto, "<13>Feb 30 22:14:15 test-host text", 4, Problem::Timestamp),
        (Format::Auto, "<13>Oct 11 22:14:15", 19, Problem::Unfinished),
        (Format::Auto, "<13>Oct 11 22:14:15 test-host", 29, Problem::Unfinished),
        (Format::Auto, "<13>Oct 11 22:14:15 test-host ", 30, Problem::Unfinished),
        (Format::Auto, "<13>Oct 11 22:14:15 höst text", 21, Problem::Word),
        (Format::Rfc5424, "Oct 11 22:14:15 host text", 0, Problem::Priority),
        (Format::Rfc5424, "<165>A 2003-10-11T22:14:15.003Z host - - - - text", 5, Problem::Version),
        (
            Format::Rfc5424,
            "<165>1 10-11-2003T22:14:15.003Z host - - - - text",
            7,
            Problem::Timestamp,
        ),
        (Format::Rfc5424, "<165>1 - host  - - - text", 14, Problem::Word),
        (Format::Rfc5424, "<165>1 - host - - - text", 20, Problem::StructuredData),
        (Format::Rfc5424, "<165>1 - host - - - [a]text", 23, Problem::StructuredData),
        (Format::Rfc5424, "<165>1 - host - - - [] text", 21, Problem::StructuredData),
        (Format::Rfc5424, "<165>1 - host - - - [a\\]", 24, Problem::Unfinished),
        (
            Format::Auto,
            "<13>1 2003-08-24T05:14:15.000003-07:00 host su 1234 msg-",
            56,
            Problem::Unfinished,
        ),
    ];
    for (format, line, offset, problem) in cases {
        let (seen, done) = parse(format, line);
        let error = SyslogError { offset, problem };
        assert_eq!(done, Err(error), "{line}");
        assert_eq!(seen["message"], line);
        assert_eq!(seen["error"]["message"], format!("Error parsing syslog message: {error}"));
    }
}

#[test]
fn what_stands_before_a_mistake_is_kept() {
    let (seen, done) = parse(Format::Rfc5424, "<13>1 2003-10-11T22:14:15.003Z h a - m [x");
    assert!(done.is_err());
    let expected = json!({"version": "1", "hostname": "h", "appname": "a", "msgid": "m"});
    assert_eq!(seen["log"]["syslog"], with(user_notice(), expected));
    assert_eq!(seen["@timestamp"], "2003-10-11T22:14:15.003000000Z");
    let (seen, done) = parse(Format::Rfc3164, "<13>Oct 11 22:14:15 host");
    assert!(done.is_err());
    assert_eq!(seen["log"]["syslog"], user_notice());
    let (seen, _) = parse(Format::Rfc3164, "hello");
    assert!(seen["log"].get("syslog").is_none());
}

#[test]
fn notes_are_added_to_those_that_are_there() {
    let base = base();
    let mut batch = batch_of(b"x", &base);
    let mut event = batch.event_mut(0, &base);
    let syslog = Syslog::new(settings(Format::Auto));
    for _ in 0..3 {
        syslog.apply(&mut event, NOW).unwrap_err();
    }
    assert_eq!(document(&batch)["error"]["message"].as_array().map(Vec::len), Some(3));
    let mut batch = batch_of(b"x", &base);
    let mut event = batch.event_mut(0, &base);
    event.put(&Path::parse("error").unwrap(), &"program".into()).unwrap();
    syslog.apply(&mut event, NOW).unwrap_err();
    assert_eq!(document(&batch)["error"], "program");
}

#[test]
fn broken_messages_leave_documents_and_what_is_not_parsed_stays() {
    let lines = [
        "<13>Oct 11 22:14:15 test-host su[1024]: this is the message",
        r#"<165>1 2003-10-11T22:14:15.003Z host evntslog 1024 ID47 [a@1 iut="3" x="\]"][b@2 class="high"] the message"#,
    ];
    let syslog = Syslog::new(settings(Format::Auto));
    let message = |event: &EventMut<'_>| event.as_ref().message().map(<[u8]>::to_vec);
    crate::testing::survives(&lines, |event| {
        let before = message(event);
        if syslog.apply(event, NOW).is_err() {
            assert_eq!(message(event), before);
        }
        true
    });
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(
        line in proptest::collection::vec(prop_oneof![
            Just(b"<13>".to_vec()), Just(b"1 ".to_vec()), Just(b"Oct 11 22:14:15 ".to_vec()),
            Just(b"2003-10-11T22:14:15.003Z ".to_vec()), Just(b"host ".to_vec()), Just(b"- ".to_vec()),
            Just(b"[id a=\"b\"]".to_vec()), Just(b"su[1]: ".to_vec()), Just(b"\\]".to_vec()),
            proptest::collection::vec(any::<u8>(), 0..4)], 0..12)
    ) {
        let line = line.concat();
        let base = base();
        let mut batch = batch_of(&line, &base);
        let done = Syslog::new(settings(Format::Auto)).apply(&mut batch.event_mut(0, &base), NOW);
        if let Err(error) = done {
            prop_assert!(error.offset <= line.len());
        }
        document(&batch);
    }
}
