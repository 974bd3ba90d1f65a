//! Patterns of the library on lines of their formats, errors, and the two ways to a match against each other.

use super::engine::{Engine, Slots, group};
use super::expand::{Bank, Expanded};
use super::library;
use super::name::Type;
use super::steps::Leaves;
use skidder_testkit::Random;
use std::collections::BTreeMap;

/// An engine and what its groups are kept as.
struct Made {
    engine: Engine,
    expanded: Expanded,
}

fn own(definitions: &[(&str, &str)]) -> BTreeMap<String, String> {
    definitions.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

fn made(pattern: &str, ecs: bool) -> Made {
    let own = BTreeMap::new();
    let expanded = Bank { own: &own, ecs }.expand(pattern).unwrap();
    let engine = Engine::new(&expanded.regex, &mut Leaves::default()).unwrap();
    Made { engine, expanded }
}

fn refused(pattern: &str, definitions: &[(&str, &str)]) -> String {
    let own = own(definitions);
    let expanded = match (Bank { own: &own, ecs: false }).expand(pattern) {
        Ok(expanded) => expanded,
        Err(error) => return error,
    };
    Engine::new(&expanded.regex, &mut Leaves::default()).unwrap_err()
}

/// `name=value` for each group that took part, and whether both ways to a match found the same.
fn found(made: &Made, line: &[u8]) -> Option<String> {
    let (mut slots, mut searched) = (Slots::new(), Slots::new());
    let is_found = made.engine.find(line, &mut slots);
    assert_eq!(is_found, made.engine.search(line, &mut searched));
    if !is_found {
        return None;
    }
    let mut all = Vec::new();
    for (index, (name, kind)) in made.expanded.captures.iter().enumerate() {
        let span = group(&slots, index + 1);
        assert_eq!(
            span,
            group(&searched, index + 1),
            "`{name}` of `{}` in `{}`",
            made.expanded.regex,
            String::from_utf8_lossy(line)
        );
        if let Some(span) = span {
            let value = String::from_utf8_lossy(&line[span]);
            let mark = if *kind == Type::Text { "" } else { ":" };
            all.push(format!("{name}{mark}={value}"));
        }
    }
    Some(all.join("|"))
}

fn captures(pattern: &str, line: &str) -> Option<String> {
    found(&made(pattern, false), line.as_bytes())
}

fn ecs(pattern: &str, line: &str) -> Option<String> {
    found(&made(pattern, true), line.as_bytes())
}

/// Whether a pattern is a whole text.
fn is_whole(name: &str, text: &str) -> bool {
    captures(&format!(r"\A(?<x>%{{{name}}})\z"), text).is_some()
}

const ACCESS: &str = r#"203.0.113.7 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif?a=b HTTP/1.0" 200 2326 "http://example.com/start.html" "Mozilla/4.08 [en] (Win98; I ;Nav)""#;

#[test]
fn every_pattern_of_the_library_compiles_with_both_names() {
    for name in library::names() {
        for ecs in [false, true] {
            let Made { expanded, .. } = made(&format!("%{{{name}:x}}"), ecs);
            assert_eq!(expanded.captures[0].0, "x");
            // The pattern cannot take the rest of a larger one apart.
            assert!(expanded.regex.starts_with('(') && expanded.regex.ends_with(')'), "{name}");
        }
    }
}

#[test]
fn the_page_names_every_pattern_of_the_library() {
    let page = include_str!("../../../golden/grok.yml");
    for name in library::names() {
        assert!(page.contains(&format!("`{name}`")), "{name}");
    }
}

#[test]
fn no_two_patterns_of_the_library_have_one_name() {
    let mut names: Vec<&str> = library::names().collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
}

#[test]
fn words_and_numbers_are_what_their_names_say() {
    let cases: &[(&str, &[&str], &[&str])] = &[
        ("INT", &["0", "-12", "+7"], &["", "1.5", "a"]),
        ("NUMBER", &["0", "-1.5", ".5", "+10"], &["1.", "", "-", "1e5"]),
        ("BASE16NUM", &["0xff", "DEADbeef", "-0x1"], &["0x", "xyz"]),
        ("POSINT", &["1", "10"], &["0", "-1", "01"]),
        ("WORD", &["a_1"], &["", "a-b", "a b"]),
        ("NOTSPACE", &["ä-b", "1"], &["", "a b"]),
        ("SPACE", &["", " \t"], &["a"]),
        ("USER", &["a.b-c_1"], &["a b", "a@b"]),
        ("EMAILADDRESS", &["a.b+c@example.org"], &["a@", "@b", "a..b@c"]),
        ("QS", &[r#""a \" b""#, "'x'", "`y`", r#""""#], &[r#""a"#, r#"a"b""#]),
        (
            "UUID",
            &["4bf92f35-77b3-4da6-a3ce-929d0e0e4736"],
            &["4bf92f35-77b3-4da6-a3ce-929d0e0e473"],
        ),
        ("URN", &["urn:isbn:0451450523"], &["urn:isbn", "urn::x"]),
        ("MAC", &["00:1a:2B:3c:4d:5e", "00-1a-2b-3c-4d-5e", "001a.2b3c.4d5e"], &["00:1a:2b:3c:4d"]),
        ("UNIXPATH", &["/", "/var/log/a.log", "//x"], &["var/log", ""]),
        ("WINPATH", &[r"C:\a\b.txt", r"\\host\share"], &["a", "/a"]),
        ("PATH", &[r"C:\a", "/a"], &["a"]),
        ("TTY", &["/dev/pts/0", "/dev/ttyS0"], &["/dev/null"]),
        ("LOGLEVEL", &["WARN", "warning", "Information", "emerg"], &["loud"]),
        ("BOOL", &["true", "FALSE"], &["yes"]),
    ];
    check(cases);
}

#[test]
fn addresses_and_uris_are_what_their_names_say() {
    let cases: &[(&str, &[&str], &[&str])] = &[
        ("IPV4", &["0.0.0.0", "255.255.255.255", "10.1.2.3"], &["256.1.1.1", "1.2.3", "01.2.3.4"]),
        (
            "IPV6",
            &[
                "::",
                "::1",
                "1::",
                "1:2:3:4:5:6:7:8",
                "1:2:3:4:5:6:7::",
                "::2:3:4:5:6:7:8",
                "1::8",
                "fe80::1%eth0",
                "::ffff:10.1.2.3",
                "1:2:3:4:5:6:10.1.2.3",
                "64:ff9b::10.1.2.3",
                "1:2::7:8",
            ],
            &[
                "1",
                "1:2:3",
                "1:2:3:4:5:6:7:8:9",
                "1::2::3",
                "12:34:56",
                ":1",
                "g::",
                "::10.1.2.256",
            ],
        ),
        ("IP", &["10.0.0.1", "::1"], &["host"]),
        ("HOSTNAME", &["a", "a.b-c.example.org", "example.org."], &["-a", "a..b", ""]),
        ("IPORHOST", &["10.0.0.1", "::1", "web-1"], &["a b"]),
        ("HOSTPORT", &["web:80", "10.0.0.1:443"], &["web", "web:0"]),
        (
            "URI",
            &[
                "http://example.org",
                "https://a:b@example.org:8080/x?y=z",
                "http://[::1]/",
                "file:///etc/hosts",
            ],
            &["example.org", "http:/x"],
        ),
        ("URIPATHPARAM", &["/a/b?c=d&e", "/"], &["a", "?x"]),
    ];
    check(cases);
    assert_eq!(captures("%{IP:a}", "from 1.2.3.256").as_deref(), None);
    assert_eq!(captures("%{IP:a}", "at 12:00:01 10.0.0.1").as_deref(), Some("a=10.0.0.1"));
}

#[test]
fn times_are_what_their_names_say() {
    let cases: &[(&str, &[&str], &[&str])] = &[
        ("MONTH", &["Jan", "September", "may"], &["Janu", "13"]),
        ("TIME", &["23:59:60", "1:02:03.456", "01:02:03,4"], &["24:00:00", "01:02", "01:60:00"]),
        ("DATE_EU", &["31.12.2026", "1/2/26"], &["32.1.2026"]),
        ("DATE_US", &["12/31/2026", "1-2-26"], &["13/1/2026"]),
        (
            "TIMESTAMP_ISO8601",
            &[
                "2026-11-25T16:00:56Z",
                "2026-11-25 16:00:56,123",
                "2026-11-25T16:00:56.1+02:00",
                "2026-11-25T1600",
            ],
            &["2026-13-25T16:00:56Z", "2026-11-25"],
        ),
        ("HTTPDATE", &["10/Oct/2000:13:55:36 -0700"], &["10/10/2000:13:55:36 -0700"]),
        ("SYSLOGTIMESTAMP", &["Nov 25 16:00:56", "Nov  5 16:00:56"], &["2026-11-25 16:00:56"]),
        ("DATESTAMP_RFC2822", &["Wed, 25 Nov 2026 16:00:56 +0000"], &["25 Nov 2026"]),
        ("DATESTAMP_RFC822", &["Wed Nov 25 2026 16:00:56 UTC"], &[]),
        ("DATESTAMP_OTHER", &["Wed Nov 25 16:00:56 CET 2026"], &[]),
        ("DATESTAMP_EVENTLOG", &["20261125160056"], &[]),
    ];
    check(cases);
}

fn check(cases: &[(&str, &[&str], &[&str])]) {
    for (name, right, wrong) in cases {
        for text in *right {
            assert!(is_whole(name, text), "{name} is `{text}`");
        }
        for text in *wrong {
            assert!(!is_whole(name, text), "{name} is not `{text}`");
        }
    }
}

#[test]
fn lines_of_web_servers() {
    assert_eq!(
        captures("%{COMBINEDAPACHELOG}", ACCESS).unwrap(),
        "clientip=203.0.113.7|ident=-|auth=frank|timestamp=10/Oct/2000:13:55:36 -0700|verb=GET\
         |request=/apache_pb.gif?a=b|httpversion=1.0|response=200|bytes=2326\
         |referrer=\"http://example.com/start.html\"|agent=\"Mozilla/4.08 [en] (Win98; I ;Nav)\""
    );
    assert_eq!(
        ecs("%{COMBINEDAPACHELOG}", ACCESS).unwrap(),
        "source.address=203.0.113.7|user.name=frank|timestamp=10/Oct/2000:13:55:36 -0700\
         |http.request.method=GET|url.original=/apache_pb.gif?a=b|http.version=1.0\
         |http.response.status_code:=200|http.response.body.bytes:=2326\
         |http.request.referrer=http://example.com/start.html\
         |user_agent.original=Mozilla/4.08 [en] (Win98; I ;Nav)"
    );
    let bad = r#"::1 - - [10/Oct/2000:13:55:36 -0700] "\x16\x03" 400 - "-" "-""#;
    assert_eq!(
        captures("%{COMMONAPACHELOG}", bad).unwrap(),
        r"clientip=::1|ident=-|auth=-|timestamp=10/Oct/2000:13:55:36 -0700|rawrequest=\x16\x03|response=400"
    );
    let forwarded = r#"10.0.0.1 - - [10/Oct/2000:13:55:36 +0000] "GET / HTTP/2.0" 200 5 "-" "curl/8" "192.0.2.1, 192.0.2.2""#;
    let fields = ecs("%{NGINXACCESS}", forwarded).unwrap();
    assert!(fields.ends_with("|nginx.access.forwarded_for=192.0.2.1, 192.0.2.2"), "{fields}");
    assert!(ecs("%{NGINXACCESS}", ACCESS).is_some());
    assert_eq!(
        captures("%{NGINXERROR}", "2026/11/25 16:00:56 [error] 7#8: *9 open() failed").unwrap(),
        "timestamp=2026/11/25 16:00:56|loglevel=error|pid=7|tid=8|connection=9|message=open() failed"
    );
    let line = "[Sat Aug 31 08:01:02.123456 2013] [core:error] [pid 3:tid 4] [client 10.0.0.1:5] AH00126: Invalid";
    assert_eq!(
        captures("%{HTTPD_ERRORLOG}", line).unwrap(),
        "timestamp=Sat Aug 31 08:01:02.123456 2013|module=core|loglevel=error|pid=3|tid=4|clientip=10.0.0.1\
         |clientport=5|errorcode=AH00126|message=Invalid"
    );
}

#[test]
fn lines_of_syslog() {
    assert_eq!(
        captures("%{SYSLOGLINE}", "Nov 25 16:00:56 web-1 sshd[77]: Accepted: key").unwrap(),
        "timestamp=Nov 25 16:00:56|logsource=web-1|program=sshd|pid=77|message=Accepted: key"
    );
    assert_eq!(
        ecs("%{SYSLOGLINE}", "2026-11-25T16:00:56Z web-1 kernel: up").unwrap(),
        "timestamp=2026-11-25T16:00:56Z|host.hostname=web-1|process.name=kernel|message=up"
    );
    assert_eq!(
        captures(
            "%{SYSLOG5424LINE}",
            r#"<34>1 2026-11-25T16:00:56Z web su - ID47 [a@1 k="v \" w"] failed"#
        )
        .unwrap(),
        "syslog5424_pri=34|syslog5424_ver=1|syslog5424_ts=2026-11-25T16:00:56Z|syslog5424_host=web\
         |syslog5424_app=su|syslog5424_msgid=ID47|syslog5424_sd=[a@1 k=\"v \\\" w\"]|syslog5424_msg=failed"
    );
    assert_eq!(
        captures("%{CRONLOG}", "Nov 25 16:00:01 web CRON[9]: (root) CMD (run-parts /etc)").unwrap(),
        "timestamp=Nov 25 16:00:01|logsource=web|program=CRON|pid=9|user=root|action=CMD|message=run-parts /etc"
    );
    let line = "Nov 25 16:00:01 web sshd[9]: pam_unix(sshd:session): session opened for user ann by (uid=0)";
    let fields = captures("%{SYSLOGPAMSESSION}", line).unwrap();
    assert!(
        fields.contains("pam_module=pam_unix|pam_caller=sshd:session|pam_session_state=opened"),
        "{fields}"
    );
}

#[test]
fn lines_of_haproxy_and_squid() {
    let http = "Feb  6 12:14:14 localhost haproxy[14389]: 10.0.1.2:33317 [06/Feb/2009:12:14:14.655] http-in \
                static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 {1wt.eu} {} \"GET /index.html HTTP/1.1\"";
    let fields = captures("%{HAPROXYHTTP}", http).unwrap();
    assert!(
        fields.contains("program=haproxy|pid=14389|client_ip=10.0.1.2|client_port=33317"),
        "{fields}"
    );
    assert!(fields.contains("|backend_name=static|server_name=srv1|time_request=10"), "{fields}");
    assert!(fields.ends_with("|captured_request_headers=1wt.eu|captured_response_headers=|http_verb=GET|http_request=/index.html|http_version=1.1"), "{fields}");
    let tcp = "Feb  6 12:12:56 localhost haproxy[14387]: 10.0.1.2:33313 [06/Feb/2009:12:12:51.443] fnt \
               bck/srv1 0/0/5007 212 -- 0/0/0/0/3 0/0";
    let fields = ecs("%{HAPROXYTCP}", tcp).unwrap();
    assert!(fields.contains("haproxy.server_name=srv1"), "{fields}");
    assert!(fields.ends_with(
        "haproxy.connections.retries:=3|haproxy.server_queue:=0|haproxy.backend_queue:=0"
    ));
    let squid = "1066036250.129    310 192.0.2.7 TCP_MISS/200 4566 GET http://example.org/ - DIRECT/192.0.2.9 text/html";
    assert!(
        captures("%{SQUID3}", squid).unwrap().ends_with("server=192.0.2.9|content_type=text/html")
    );
}

#[test]
fn lines_of_databases_and_programs() {
    let cases = [
        (
            "%{REDISLOG}%{GREEDYDATA:m}",
            "1:M 25 Nov 2026 16:00:56.123 * Ready",
            "pid=1|role=M|timestamp=25 Nov 2026 16:00:56.123|m=Ready",
        ),
        (
            "%{REDISLOG}",
            "[4018] 14 Nov 07:01:22.119 * Background",
            "pid=4018|timestamp=14 Nov 07:01:22.119",
        ),
        (
            "%{REDISMONLOG}",
            r#"1339518083.107412 [0 127.0.0.1:60866] "keys" "*""#,
            "timestamp=1339518083.107412|database=0|client=127.0.0.1|port=60866|command=keys|params=\"*\"",
        ),
        (
            "%{MONGO3_LOG}",
            "2014-11-03T18:28:32.450-0500 I NETWORK  [initandlisten] waiting",
            "timestamp=2014-11-03T18:28:32.450-0500|severity=I|component=NETWORK|context=initandlisten|message=waiting",
        ),
        (
            "%{POSTGRESQL}",
            "2026-11-25 16:00:56.123 UTC ann 42 7",
            "timestamp=2026-11-25 16:00:56.123|timezone=UTC|user_id=ann|connection_id=42|pid=7",
        ),
        (
            "%{JAVASTACKTRACEPART}",
            "\tat org.example.Shop$Cart.<init>(Cart.java:42)",
            "class=org.example.Shop$Cart|method=<init>|file=Cart.java|line=42",
        ),
        (
            "%{CATALINALOG}",
            "25-Nov-2026 16:00:56.123 INFO [main] org.apache.Server.start Up in 3 ms",
            "timestamp=25-Nov-2026 16:00:56.123|loglevel=INFO|thread=main|class=org.apache.Server|method=start|logmessage=Up in 3 ms",
        ),
        (
            "%{RUBY_LOGGER}",
            "I, [2026-11-25T16:00:56.1 #7]  INFO -- shop: sold",
            "timestamp=2026-11-25T16:00:56.1|pid=7|loglevel=INFO|progname=shop|message=sold",
        ),
    ];
    for (pattern, line, expected) in cases {
        assert_eq!(captures(pattern, line).as_deref(), Some(expected), "{pattern}");
    }
    let s3 = r#"79a5 bucket [06/Feb/2019:00:00:38 +0000] 192.0.2.3 79a5 3E57 REST.GET.OBJECT photos/a.jpg "GET /a.jpg HTTP/1.1" 200 - 113 113 7 6 "-" "S3Console/0.4" -"#;
    let fields = ecs("%{S3_ACCESS_LOG}", s3).unwrap();
    assert!(
        fields.contains("url.original=/a.jpg|http.version=1.1|http.response.status_code:=200"),
        "{fields}"
    );
    let elb = r#"2015-05-13T23:39:43.945958Z my-lb 192.0.2.1:2817 10.0.0.1:80 0.000073 0.001048 0.000057 200 200 0 29 "GET http://example.com:80/ HTTP/1.1""#;
    assert!(
        captures("%{ELB_ACCESS_LOG}", elb)
            .unwrap()
            .ends_with("verb=GET|request=http://example.com:80/|httpversion=1.1")
    );
}

#[test]
fn names_may_have_dots_brackets_and_types() {
    let line = "10.0.0.1 42";
    for pattern in [
        "%{IP:source.ip} %{INT:a.b:int}",
        "%{IP:[source][ip]} %{INT:[a][b]:long}",
        "(?<source.ip>%{IP}) (?<[a][b]:int>[0-9]+)",
        "(?P<source.ip>%{IP}) (?'a.b:int'[0-9]+)",
    ] {
        assert_eq!(
            captures(pattern, line).as_deref(),
            Some("source.ip=10.0.0.1|a.b:=42"),
            "{pattern}"
        );
    }
    let names = made("%{IP:[@metadata][x]}", false).expanded.captures;
    assert_eq!(names[0].0, "@metadata.x");
}

#[test]
fn syntax_of_oniguruma_means_what_it_means_there() {
    let cases = [
        ("^b(?<x>.)$", "a\nbc\nd", Some("x=c")),
        (r"\Ab", "a\nb", None),
        ("(?<x>a.*c)", "a\nc", None),
        ("(?m)(?<x>a.*c)", "a\nc", Some("x=a\nc")),
        ("(?<x>(?m:.+))", "a\nc", Some("x=a\nc")),
        (r"(?<x>\h+)", "xyz0fF", Some("x=0fF")),
        (r"(?<x>[\h-]+)", "xa-f", Some("x=a-f")),
        (r"(?<x>a{,2})b", "aaab", Some("x=aa")),
        (r"(?<x>\<\w+\>)", "a <b>", Some("x=<b>")),
        (r#"(?<x>\"[^\"]*\")"#, "a \"b\" c", Some("x=\"b\"")),
        ("(?<x>(?>a+)b)", "aab", Some("x=aab")),
        ("(?<x>a++b)", "aab", Some("x=aab")),
        ("(?#no group)(?<x>a)", "a", Some("x=a")),
        ("(a)(?<x>b)", "ab", Some("x=b")),
        ("(?i)(?<x>ab)", "AB", Some("x=AB")),
        ("(?<x>[]a]+)", "a]", Some("x=a]")),
        ("(?<x>[[:alpha:]~-]+)", "1a~-", Some("x=a~-")),
        ("{(?<x>a)}", "{a}", Some("x=a")),
        (r"(?<x>a)\Z", "a\n", Some("x=a")),
        (r"(?<x>\u00e9)", "é", Some("x=é")),
        ("(?<x>.)(?<y>.+)", "éüx", Some("x=é|y=üx")),
        (r"(?<x>\p{L}+)", "1éa", Some("x=éa")),
        ("(?x) a (?<x> b ) # end", "ab", Some("x=b")),
    ];
    for (pattern, line, expected) in cases {
        assert_eq!(captures(pattern, line).as_deref(), expected, "{pattern}");
    }
}

#[test]
fn what_no_engine_of_linear_time_can_do_is_refused_by_its_name() {
    let cases = [
        ("a(?=b)", "look-ahead `(?=`"),
        ("a(?!b)", "look-ahead `(?!`"),
        ("(?<=a)b", "look-behind `(?<=`"),
        ("(?<!a)b", "look-behind `(?<!`"),
        (r"(?<x>a)\1", r"back-reference `\1`"),
        (r"(?<x>a)\k<x>", r"back-reference `\k`"),
        (r"(?<x>a)\g<x>", r"call of a group `\g`"),
        ("(?~abc)", "absent operator `(?~`"),
        ("(?(1)a|b)", "condition `(?(`"),
        (r"\Ga", r"`\G` is not supported"),
        (r"a\Kb", r"`\K` is not supported"),
    ];
    for (pattern, part) in cases {
        let direct = refused(pattern, &[]);
        assert!(direct.contains(part), "{pattern}: {direct}");
        let nested = refused("%{OUTER}", &[("OUTER", "x%{INNER}"), ("INNER", pattern)]);
        assert!(nested.starts_with("pattern `INNER`: ") && nested.contains(part), "{nested}");
    }
}

#[test]
fn wrong_patterns_are_refused_with_what_to_do() {
    let cases = [
        (
            "%{NUMBR:x}",
            "`%{NUMBR}` names no pattern; add `NUMBR` to `pattern_definitions`, or did you mean `NUMBER`?",
        ),
        ("%{NUMBER:x:number}", "`number` is not a type"),
        ("%{NUMBER:a b}", "`a b` is not the name of a field"),
        ("%{NUMBER:[a]b}", "`[a]b` is not the name of a field"),
        ("%{NUMBER:[a][]}", "`[a][]` is not the name of a field"),
        ("%{NUMBER:a|b}", "`a|b` is not the name of a field"),
        ("%{NUMBER:}", "`%{NUMBER:}`"),
        ("%{a b}", "`%{a b}` is no reference"),
        ("%{NUMBER", "`%{` without `}`"),
        ("(?<x", "`(?<` without `>`"),
        ("[a", "`[` without `]`"),
        ("a\\", "a backslash at the end"),
        (r"\y", r"`\y` is not known"),
        ("(?u:a)", "the flags are `i`, `m` and `x`"),
        ("(a", "unclosed group"),
        ("a)", "unopened group"),
        (r"(?:\p{L}{1000}){1000}", "bytes when compiled"),
    ];
    for (pattern, part) in cases {
        let error = refused(pattern, &[]);
        assert!(error.contains(part), "{pattern}: {error}");
    }
}

#[test]
fn patterns_that_refer_to_themselves_are_refused_with_the_way() {
    let error = refused("%{A}", &[("A", "%{B}"), ("B", "x%{C:y}"), ("C", "%{B}")]);
    assert!(error.ends_with("a pattern refers to itself: B -> C -> B"), "{error}");
    let error = refused("%{WORD}", &[("WORD", "%{WORD}s")]);
    assert!(error.ends_with("a pattern refers to itself: WORD -> WORD"), "{error}");
}

#[test]
fn what_grows_without_bound_is_refused() {
    let names: Vec<String> = (0..80).map(|number| format!("P{number}")).collect();
    let deep: Vec<(String, String)> =
        names.windows(2).map(|pair| (pair[0].clone(), format!("%{{{}}}", pair[1]))).collect();
    let own: BTreeMap<_, _> =
        deep.into_iter().chain([("P79".to_owned(), "x".to_owned())]).collect();
    let error = Bank { own: &own, ecs: false }.expand("%{P0}").unwrap_err();
    assert!(error.contains("more than 64 patterns stand inside each other"), "{error}");
    let wide: BTreeMap<_, _> = names
        .windows(2)
        .map(|pair| (pair[0].clone(), format!("%{{{}}}", pair[1]).repeat(10)))
        .chain([("P79".to_owned(), "x".to_owned())])
        .skip(40)
        .collect();
    let error = Bank { own: &wide, ecs: false }.expand("%{P60}").unwrap_err();
    assert!(error.contains("it has more than 262144 bytes"), "{error}");
}

#[test]
fn an_own_pattern_goes_before_one_of_the_library() {
    let own = own(&[("WORD", "[a-z]+x")]);
    let expanded = Bank { own: &own, ecs: false }.expand("%{WORD:w}").unwrap();
    assert_eq!(expanded.regex, "([a-z]+x)");
}

#[test]
fn hostile_lines_take_linear_time() {
    let spaces = vec![b' '; 1 << 20];
    let mut quotes = vec![b'"'; 1 << 20];
    quotes.extend_from_slice(b"\\");
    let digits = vec![b'1'; 1 << 20];
    for pattern in [
        "%{COMBINEDAPACHELOG}",
        "%{SYSLOGLINE}",
        "%{HAPROXYHTTP}",
        "(?:(?:%{WORD}*)*)*!(?<x>a)",
        "(?<x>(?:a|a|%{SPACE})*)*z",
        "%{DATA:a}%{SPACE}%{DATA:b}%{SPACE}z",
        "%{QS:a}%{QS:b}x",
        "%{GREEDYDATA:a} %{GREEDYDATA:b} %{GREEDYDATA:c}!",
    ] {
        let made = made(pattern, false);
        for line in [&spaces, &quotes, &digits] {
            assert_eq!(found(&made, line), None, "{pattern}");
        }
    }
    let all = made("%{GREEDYDATA:a} %{DATA:b} %{SPACE}$", false);
    assert!(found(&all, &spaces).is_some());
}

#[test]
fn steps_find_what_the_search_finds() {
    let lines = [
        ACCESS,
        r#"::1 - - [10/Oct/2000:13:55:36 -0700] "\x16\x03" 400 - "-" "-""#,
        "Nov 25 16:00:56 web-1 sshd[77]: Accepted: key for é",
        "<34>1 2026-11-25T16:00:56Z web su - ID47 - failed",
        "2026/11/25 16:00:56 [error] 7#8: *9 open() failed: a, b, c",
        "2014-11-03T18:28:32.450-0500 I NETWORK  [initandlisten] waiting",
        "key=value; other=\"x y\" :: 10.0.0.1:80/a/b/c",
    ];
    let own_patterns = [
        "%{DATA:a} %{DATA:b} %{GREEDYDATA:c}",
        "^%{NOTSPACE:a}/%{NOTSPACE:b}",
        "%{GREEDYDATA:a}: %{GREEDYDATA:b}",
        "(?:%{IP:ip}|%{WORD:w})(?: %{NOTSPACE:x})?(?:-|%{INT:n})?",
        "%{WORD:a}(?:=%{WORD:b}|:%{WORD:c}|)(?<d>.?)",
        r"%{DATA:a}\[%{DATA:b}\](?<c>[^\]]*)",
        "(?<a>[^ é]+) (?<b>.{2,5})(?<c>.+?) (?<d>.*)x?",
        "%{DATA:a}(?<b>[;:]+)%{GREEDYDATA:c}",
    ];
    let mut patterns: Vec<Made> = own_patterns.iter().map(|text| made(text, false)).collect();
    for name in [
        "COMBINEDAPACHELOG",
        "SYSLOGLINE",
        "SYSLOG5424LINE",
        "NGINXERROR",
        "MONGO3_LOG",
        "NGINXACCESS",
    ] {
        patterns.push(made(&format!("%{{{name}}}"), true));
        patterns.push(made(&format!("%{{{name}}}"), false));
    }
    let with_steps = patterns.iter().filter(|made| made.engine.has_steps()).count();
    assert!(with_steps * 4 > patterns.len() * 3, "{with_steps} of {}", patterns.len());
    let mut random = Random::new(7);
    for round in 0..600 {
        for line in lines {
            let mut line = line.as_bytes().to_vec();
            for _ in 0..round.min(4) {
                let at = random.below(line.len() as u64) as usize;
                match random.below(4) {
                    0 => line[at] = b" \"-:[/\xc3\xffa1"[random.below(10) as usize],
                    1 if line.len() > 1 => drop(line.remove(at)),
                    2 => line.insert(at, b" \"-:]\n\xa9a01"[random.below(10) as usize]),
                    _ => line.truncate(at.max(1)),
                }
            }
            for made in &patterns {
                found(made, &line);
            }
        }
    }
}

/// A part of a random expression.
fn part(random: &mut Random, depth: u64) -> String {
    let texts = [
        "a", "b", "ab", "-", "[ab]", "[^b]", "[a-]+", "b*", "a?", ".*", ".*?", "[^-]*?", ".",
        "(?m:$)", "a{1,2}",
    ];
    if depth == 0 || random.one_in(3) {
        return texts[random.below(texts.len() as u64) as usize].to_owned();
    }
    let parts = |random: &mut Random| {
        let count = 1 + random.below(3);
        (0..count).map(|_| part(random, depth - 1)).collect::<String>()
    };
    match random.below(5) {
        0 => format!("({})", parts(random)),
        1 => format!("({})?", parts(random)),
        2 => format!("(?:{}|{})", parts(random), parts(random)),
        3 => format!("(?:({})|({}))", parts(random), parts(random)),
        _ => format!("(?:{}){}", parts(random), ["*", "+", "?", "{2}"][random.below(4) as usize]),
    }
}

#[test]
fn groups_of_random_patterns_are_those_that_the_search_finds() {
    let mut random = Random::new(11);
    let mut with_steps = 0;
    for _ in 0..3_000 {
        let count = 1 + random.below(4);
        let expression: String = (0..count).map(|_| part(&mut random, 3)).collect();
        let engine = Engine::new(&expression, &mut Leaves::default()).unwrap();
        with_steps += usize::from(engine.has_steps());
        for _ in 0..20 {
            let len = random.below(10);
            let line: Vec<u8> = (0..len).map(|_| b"aaabb-\n"[random.below(7) as usize]).collect();
            let (mut slots, mut searched) = (Slots::new(), Slots::new());
            let is_found = engine.find(&line, &mut slots);
            assert_eq!(is_found, engine.search(&line, &mut searched), "{expression} {line:?}");
            if is_found {
                // The whole match is not kept by the steps.
                let line = String::from_utf8_lossy(&line);
                assert_eq!(slots[2..], searched[2..], "`{expression}` in {line:?}");
            }
        }
    }
    assert!(with_steps > 500, "{with_steps}");
}

#[test]
fn a_choice_that_does_not_fit_leaves_nothing_behind() {
    let pattern = "(?:(?<one>a)x|(?<two>a)y)(?<rest>.*)";
    assert_eq!(captures(pattern, "ay1").unwrap(), "two=a|rest=1");
    assert_eq!(captures(pattern, "zax1").unwrap(), "one=a|rest=1");
}
