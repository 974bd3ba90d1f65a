//! Records as the audit daemon writes them, and what Filebeat makes of them.

use super::*;
use crate::testing::{base, batch_of, document};
use proptest::prelude::*;
use serde_json::{Value, json};

fn parse(line: &str) -> (Value, Result<(), AuditdError>) {
    let base = base();
    let mut batch = batch_of(line.as_bytes(), &base);
    let done = Auditd::new(Settings::default()).apply(&mut batch.event_mut(0, &base));
    let document = document(&batch);
    assert_eq!(document["message"], line);
    (document, done)
}

/// `auditd.log` of a record without an error.
fn fields(line: &str) -> Value {
    let (document, done) = parse(line);
    assert_eq!(done, Ok(()), "{line}");
    document["auditd"]["log"].clone()
}

#[test]
fn system_calls_have_names() {
    let line = r#"type=SYSCALL msg=audit(1481077231.371:479): arch=c000003e syscall=59 success=no exit=-2 a0=7ffe items=1 ppid=1 auid=4294967295 uid=0 ses=4294967295 tty=(none) comm="sh" exe="/usr/bin/sh" subj=unconfined_u:unconfined_r:unconfined_t:s0-s0:c0.c1023 key="key=net""#;
    let (document, done) = parse(line);
    let expected = json!({
        "record_type": "SYSCALL", "sequence": "479", "arch": "x86_64", "syscall": "execve", "result": "fail",
        "exit": "ENOENT", "a0": "7ffe", "items": "1", "ppid": "1", "auid": "4294967295", "uid": "0",
        "ses": "4294967295", "tty": "(none)", "comm": "sh", "exe": "/usr/bin/sh", "key": "net",
        "subj_user": "unconfined_u", "subj_role": "unconfined_r", "subj_domain": "unconfined_t",
        "subj_level": "s0-s0", "subj_category": "c0.c1023",
    });
    assert_eq!((&document["auditd"]["log"], done), (&expected, Ok(())));
    assert_eq!(document["@timestamp"], "2016-12-07T02:20:31.371000000Z");
    let unknown = fields("type=SYSCALL msg=audit(1.0:1): arch=0 syscall=9999 success=yes exit=0");
    assert_eq!((&unknown["arch"], &unknown["syscall"]), (&json!("unknown[0]"), &json!("9999")));
    for (arch, syscall, name) in
        [("c00000b7", 221, "execve"), ("40000003", 11, "execve"), ("c0000015", 11, "execve")]
    {
        let seen = fields(&format!("type=SYSCALL msg=audit(1.0:1): arch={arch} syscall={syscall}"));
        assert_eq!(seen["syscall"], name, "{arch}");
    }
}

#[test]
fn names_that_the_daemon_adds_to_numbers_change_nothing() {
    for raw in [
        r#"type=SYSCALL msg=audit(1.0:1): arch=c000003e syscall=257 uid=0 key="shadow""#,
        "type=LOGIN msg=audit(1.0:1): pid=25 uid=0 old-auid=4294967295 auid=1000 ses=7 res=1",
        r#"type=USER_LOGIN msg=audit(1.0:1): uid=0 msg='op=login id=1000 exe="/a" res=success'"#,
    ] {
        let enriched =
            format!("{raw}\u{1d}ARCH=x86_64 SYSCALL=openat OLD-AUID=\"unset\" UID=\"root\"");
        assert_eq!(fields(&enriched), fields(raw));
    }
}

#[test]
fn messages_inside_are_taken_apart() {
    let line = r#"node=web-1 type=ADD_GROUP msg=audit(1481076992.414:385): pid=1235 uid=0 auid=-1 msg='op=adding group to /etc/group id=1000 exe="/usr/sbin/groupadd" hostname=? addr=? terminal=? res=success'"#;
    let expected = json!({
        "record_type": "ADD_GROUP", "sequence": "385", "node": "web-1", "pid": "1235", "uid": "0", "auid": "unset",
        "op": "adding group to /etc/group", "id": "1000", "exe": "/usr/sbin/groupadd", "result": "success",
    });
    assert_eq!(fields(line), expected);
    let line = "type=USER_END msg=audit(1.0:1): user pid=1 msg='PAM: session close acct=root : exe=\"/bin/su\" (hostname=h, addr=?, terminal=pts/0 res=success)'";
    let seen = fields(line);
    assert_eq!(
        (&seen["hostname"], &seen["terminal"], &seen["result"]),
        (&json!("h,"), &json!("pts/0"), &json!("success"))
    );
}

#[test]
fn texts_in_hexadecimal_are_read() {
    let cases = [
        ("CWD", "cwd=2F7372762F6120622063", "cwd", json!("/srv/a b c")),
        (
            "PROCTITLE",
            "proctitle=636174002F6574632F706173737764",
            "proctitle",
            json!("cat /etc/passwd"),
        ),
        ("PROCTITLE", "proctitle=\"bash\"", "proctitle", json!("bash")),
        ("USER_CMD", "msg='cwd=\"/root\" cmd=6C73202D6C'", "cmd", json!("ls -l")),
        ("EXECVE", "argc=2 a0=\"ls\" a1=2D6C612062", "a1", json!("-la b")),
        ("PATH", "name=2F612062 obj=a:b:c", "name", json!("/a b")),
        ("SYSCALL", "arch=c000003e syscall=0 key=6101620163", "key", json!(["a", "b", "c"])),
        ("CONFIG_CHANGE", "key=(null) list=4 res=1", "key", Value::Null),
    ];
    for (record_type, body, key, expected) in cases {
        assert_eq!(
            fields(&format!("type={record_type} msg=audit(1.0:1): {body}"))[key],
            expected,
            "{body}"
        );
    }
}

#[test]
fn addresses_are_read() {
    let cases = [
        ("02000050C0A80001", json!({"family": "ipv4", "addr": "192.168.0.1", "port": "80"})),
        (
            "0A00005000000001FE800000000000000000000000000001",
            json!({"family": "ipv6", "addr": "fe80::1", "port": "80", "flow": "1"}),
        ),
        ("01002F72756E2F61000000", json!({"family": "unix", "path": "/run/a"})),
        ("100000000000", json!({"family": "netlink", "saddr": "100000000000"})),
        ("2600", json!({"family": "38", "saddr": "2600"})),
    ];
    for (saddr, mut expected) in cases {
        expected["record_type"] = json!("SOCKADDR");
        expected["sequence"] = json!("1");
        assert_eq!(fields(&format!("type=SOCKADDR msg=audit(1.0:1): saddr={saddr}")), expected);
    }
}

#[test]
fn decisions_of_selinux_are_read() {
    let line = r#"type=AVC msg=audit(1.0:1): avc:  denied  { read } for  pid=1 comm="a" scontext=x:y:z tclass=file"#;
    let seen = fields(line);
    assert_eq!(seen["avc"], json!({"action": "denied", "request": "read"}));
    assert_eq!(
        (&seen["seresult"], &seen["seperms"], &seen["pid"]),
        (&json!("denied"), &json!("read"), &json!("1"))
    );
    let seen = fields("type=AVC msg=audit(1.0:1): avc:  granted  { read write } for  pid=1");
    assert_eq!((&seen["seperms"], &seen["avc"]), (&json!("read,write"), &Value::Null));
    let seen = fields(r#"type=AVC msg=audit(1.0:1): apparmor="DENIED" operation="open""#);
    assert_eq!(seen["apparmor"], "DENIED");
}

#[test]
fn logins_have_old_and_new_values() {
    let seen = fields(
        "type=LOGIN msg=audit(1.0:1): pid=1 uid=0 old auid=4294967295 new auid=0 old ses=1 new ses=2",
    );
    assert_eq!(
        (&seen["old_auid"], &seen["new_auid"], &seen["new_ses"]),
        (&json!("4294967295"), &json!("0"), &json!("2"))
    );
}

#[test]
fn what_is_no_record_is_noted() {
    for line in [
        "",
        "text",
        "type=A",
        "type=A msg=audit(1:1)",
        "msg=audit(1.0:1):",
        "type=A msg=audit(1.0:x):",
        "type=A msg=audit(1.0:99999999999):",
        "type=A b msg=audit(1.0:1):",
        "type=A msg=audit(999999999999.0:1)",
    ] {
        let (document, done) = parse(line);
        assert!(matches!(done, Err(AuditdError::Header(_))), "{line}: {done:?}");
        assert!(
            document["error"]["message"]
                .as_str()
                .unwrap()
                .starts_with("error parsing auditd log line: ")
        );
        assert_eq!(
            (document.get("auditd"), &document["@timestamp"]),
            (None, &json!("2026-11-21T20:52:57.123000000Z"))
        );
    }
}

#[test]
fn a_value_that_cannot_be_read_stays_with_the_rest() {
    for (line, key, value) in [
        ("type=SYSCALL msg=audit(1.0:1): arch=xyz syscall=1", "arch", "xyz"),
        ("type=SYSCALL msg=audit(1.0:1): syscall=1", "syscall", "1"),
        ("type=SOCKADDR msg=audit(1.0:1): saddr=0200", "saddr", "0200"),
        ("type=EXECVE msg=audit(1.0:1): argc=3 a0=1 a1=2", "a1", "2"),
        ("type=SECCOMP msg=audit(1.0:1): sig=x", "sig", "x"),
    ] {
        let (document, done) = parse(line);
        assert!(matches!(done, Err(AuditdError::Value(_))), "{line}: {done:?}");
        assert_eq!(document["auditd"]["log"][key], value);
    }
    let many: Vec<String> = (0..2000).map(|n| format!(" k{n}=1")).collect();
    let (document, done) = parse(&format!("type=X msg=audit(1.0:1):{}", many.concat()));
    assert!(matches!(done, Err(AuditdError::Value(_))));
    assert_eq!(
        document["auditd"]["log"].as_object().map(serde_json::Map::len),
        Some(pairs::PAIRS_MAX + 2)
    );
}

#[test]
fn messages_inside_each_other_do_not_overflow_the_stack() {
    let line = format!("type=X msg=audit(1.0:1): {}a=1", "msg=".repeat(100_000));
    assert!(fields(&line)["msg"].is_string());
}

#[test]
fn broken_records_leave_documents_and_what_is_not_parsed_stays() {
    let lines = [
        r#"type=SYSCALL msg=audit(1481077231.371:479): arch=c000003e syscall=59 success=no exit=-2 exe=2F62696E key="net" subj=a:b:c"#,
        r#"node=web type=ADD_GROUP msg=audit(1481076992.414:385): pid=1 msg='op=adding group to x id=1 exe="/usr/sbin/groupadd" res=success'"#,
        "type=SOCKADDR msg=audit(1.0:1): saddr=0A00005000000001FE800000000000000000000000000001",
        r#"type=EXECVE msg=audit(1.0:1): argc=3 a0="ls" a1=2D6C a2="x""#,
    ];
    let mut parser = Auditd::new(Settings::default());
    crate::testing::survives(&lines, |event| {
        !matches!(parser.apply(event), Err(AuditdError::Header(_)))
    });
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(
        record_type in prop::sample::select(vec!["SYSCALL", "AVC", "SOCKADDR", "EXECVE", "LOGIN", "USER_END", "PATH", "SECCOMP"]),
        parts in proptest::collection::vec(prop_oneof![
            Just(b" arch=c000003e".to_vec()), Just(b" syscall=1".to_vec()), Just(b" saddr=0200".to_vec()),
            Just(b" argc=9 a0=41".to_vec()), Just(b" msg='".to_vec()), Just(b"'".to_vec()), Just(b"\"".to_vec()),
            Just(b" avc:  denied  { read } for  ".to_vec()), Just(b" key=61".to_vec()), Just(b"\\'".to_vec()),
            Just(b" subj=a:b".to_vec()), Just(b" exit=-1".to_vec()), Just(b" sig=9".to_vec()), Just(b"=".to_vec()),
            proptest::collection::vec(any::<u8>(), 0..4)], 0..12)
    ) {
        let line = [format!("type={record_type} msg=audit(1.0:1):").into_bytes(), parts.concat()].concat();
        let base = base();
        let mut batch = batch_of(&line, &base);
        let mut event = batch.event_mut(0, &base);
        drop(Auditd::new(Settings::default()).apply(&mut event));
        document(&batch);
    }
}
