//! Tests of typed reading: every getter, and the messages exactly as the user sees them.

use super::*;
use crate::{Settings, Value};

/// Reads a text with `read`; returns its result and all problems as shown.
fn read<T>(text: &str, read: impl FnOnce(Section<'_>) -> T) -> (T, String) {
    let settings = Settings::parse("filebeat.yml", text).unwrap();
    let problems = Problems::new();
    let found = read(settings.root(&problems));
    (found, problems.to_string())
}

/// Reads the key `k` and expects no problem.
fn good<T>(text: &str, get: impl FnOnce(&Section<'_>) -> T) -> T {
    let (found, problems) = read(&format!("k: {text}"), |section| get(&section));
    assert_eq!(problems, "", "{text}");
    found
}

/// Reads the key `k` and gives the problem.
fn bad<T>(text: &str, get: impl FnOnce(&Section<'_>) -> Option<T>) -> String {
    let (found, problems) = read(&format!("k: {text}"), |section| get(&section));
    assert!(found.is_none(), "{text} was taken");
    problems
}

#[test]
fn an_error_that_names_a_setting_gets_its_full_path() {
    let ((), problems) = read("a: {ssl: {key: x}}", |root| {
        let section = root.section("a");
        section.accept("ssl.key");
        section.problem_named(
            "ssl.key",
            &"cannot read `ssl.key` from `x`: it is no `ssl.key`, and no `ssl.key_x`",
        );
    });
    let expected = "error: filebeat.yml:1:16: cannot read `a.ssl.key` from `x`: it is no `a.ssl.key`, and no `ssl.key_x`";
    assert_eq!(problems, expected);
}

#[test]
fn getters_read_values_as_users_write_them() {
    assert!(good("yes", |s| s.bool("k").or(false)));
    assert!(!good("'off'", |s| s.bool("k").or(true)));
    assert_eq!(good("1_000", |s| s.u64("k").or(1)), 1000);
    assert_eq!(good("1e3", |s| s.usize("k").or(1)), 1000);
    assert_eq!(good("'17'", |s| s.u32("k").or(1)), 17);
    assert_eq!(good("-17", |s| s.i64("k").or(1)), -17);
    assert_eq!(good("18446744073709551615", |s| s.u64("k").or(1)), u64::MAX);
    assert_eq!(good("65535", |s| s.u16("k").or(1)), u16::MAX);
    assert!((good("3", |s| s.f64("k").or(0.5)) - 3.0).abs() < f64::EPSILON);
    assert_eq!(good("1.10", |s| s.string("k").or("")), "1.10");
    assert_eq!(good("0644", |s| s.string("k").or("")), "0644");
    assert_eq!(good("one", |s| s.strings("k").or([])), ["one"]);
    assert_eq!(good("[one, 2, 1.10]", |s| s.strings("k").or([])), ["one", "2", "1.10"]);
    assert_eq!(good("1h30m", |s| s.duration("k").required()).as_secs(), 5400);
    assert_eq!(good("10", |s| s.duration("k").required()).as_secs(), 10);
    assert!(good("-1", |s| s.signed_duration("k").required()).negative);
    for (text, milliseconds) in [
        ("0x10", 16_000),
        ("1_000", 1_000_000),
        ("010", 8_000),
        ("1e-3", 1),
        ("1.5", 1500),
        ("5.", 5000),
    ] {
        let read = good(text, |s| s.duration("k").required());
        assert_eq!(read.as_millis(), milliseconds, "{text}");
    }
    assert_eq!(good("10MiB", |s| s.size("k").or(0)), 10 << 20);
    assert_eq!(good("0x400", |s| s.size("k").or(0)), 1024);
    assert_eq!(good("0640", |s| s.permissions("k").or(0)), 0o640);
    assert_eq!(good("\"0640\"", |s| s.permissions("k").or(0)), 0o640);
    assert_eq!(good("off", |s| s.one_of("k", &[("on", 1), ("off", 2)]).or(0)), 2);
    assert_eq!(good("pw", |s| s.secret("k").required()).reveal(), "pw");
    assert_eq!(good("/var/log", |s| s.path_buf("k").or("")), PathBuf::from("/var/log"));
    let headers = good("{X.Y: 1, Z: a b}", |s| s.string_map("k").required());
    assert_eq!(headers.get("X.Y").map(String::as_str), Some("1"));
    assert_eq!(headers.get("Z").map(String::as_str), Some("a b"));
    assert_eq!(good("[1, a]", |s| s.value("k").optional()).unwrap(), {
        Value::List(vec![Value::Int(1), Value::String("a".to_owned())])
    });
}

#[test]
fn an_empty_or_missing_setting_has_its_default() {
    for text in ["", "~", "null"] {
        assert_eq!(good(text, |s| s.u64("k").or(7)), 7);
        assert_eq!(good(text, |s| s.strings("k").or(["a", "b"])), ["a", "b"]);
        assert!(good(text, |s| s.section("k").bool("inner").or(true)));
    }
    assert_eq!(
        good("x", |s| {
            s.accept("k");
            s.u64("absent.deep").optional()
        }),
        None
    );
}

#[test]
fn wrong_values_are_told_with_what_was_expected() {
    let at = "error: filebeat.yml:1:4: `k` is";
    let table = [
        (bad("lots", |s| s.u64("k").optional()), "`lots`; expected a whole number"),
        (bad("-1", |s| s.u64("k").optional()), "`-1`; it cannot be negative"),
        (bad("1.5", |s| s.u64("k").optional()), "`1.5`; expected a whole number"),
        (bad("70000", |s| s.u16("k").optional()), "`70000`; it is too large"),
        (
            bad("0", |s| s.u64("k").named("a number of events").range(1..=10).optional()),
            "`0`; expected a number of events, 1 to 10",
        ),
        (
            bad("x", |s| s.u64("k").named("a number of events").range(1..=10).optional()),
            "`x`; expected a number of events, 1 to 10",
        ),
        (
            bad("5ms", |s| s.duration("k").range(Duration::from_secs(1)..).optional()),
            "`5ms`; expected a duration like `30s`, `5m`, `1h30m`, `100ms`, at least 1s",
        ),
        (bad("maybe", |s| s.bool("k").optional()), "`maybe`; expected `true` or `false`"),
        (bad("[a]", |s| s.string("k").optional()), "a list; expected a text"),
        (bad("{a: 1}", |s| s.strings("k").optional()), "a map; expected a list of texts"),
        (
            bad("3d", |s| s.duration("k").optional()),
            "`3d`; expected a duration; for 3 days write `72h`",
        ),
        (bad("-1s", |s| s.duration("k").optional()), "`-1s`; expected a duration of zero or more"),
        (
            bad("10XB", |s| s.size("k").optional()),
            "`10XB`; expected a size like `10MiB`, `512KB` or a number of bytes",
        ),
        (
            bad("384", |s| s.permissions("k").optional()),
            "`384`; expected permissions in octal, like `0640`",
        ),
        (
            bad("warm", |s| s.one_of("k", &[("hot", 1), ("cold", 2)]).optional()),
            "`warm`; expected `hot` or `cold`",
        ),
        (
            bad("x", |s| s.string("k").check(|_| Err("it is not a URL".to_owned())).optional()),
            "`x`; it is not a URL",
        ),
        (bad("[hunter2]", |s| s.secret("k").optional()), "`xxxxx`; expected a text"),
        (bad("x", |s| s.string_map("k").optional()), "`x`; expected a map of names to texts"),
    ];
    for (problem, expected) in table {
        assert_eq!(problem, format!("{at} {expected}"));
    }
    assert_eq!(
        bad("[a, [b], {c: d}]", |s| s.strings("k").optional()),
        "error: filebeat.yml:1:8: `k[1]` is a list; expected a text\n\
         error: filebeat.yml:1:13: `k[2]` is a map; expected a text"
    );
}

#[test]
fn durations_that_are_none_are_told_with_what_was_expected() {
    let expected = "expected a duration like `30s`, `5m`, `1h30m`, `100ms`";
    for (text, shown, expected) in [
        ("'0x10'", "0x10", expected),
        (".nan", ".nan", expected),
        ("[1s]", "[1s]", expected),
        ("1e12", "1e12", "expected a duration of at most 292 years"),
    ] {
        let problem = bad(text, |s| s.duration("k").optional());
        let is_list = text.starts_with('[');
        let shown = if is_list { "a list".to_owned() } else { format!("`{shown}`") };
        assert_eq!(problem, format!("error: filebeat.yml:1:4: `k` is {shown}; {expected}"));
    }
    let problem = bad("-.inf", |s| s.signed_duration("k").optional());
    assert!(problem.contains(expected), "{problem}");
}

#[test]
fn a_wrong_value_of_a_key_that_names_a_secret_is_not_shown() {
    let (_, problems) = read("proxy.password: hunter2", |root| {
        root.string("proxy.password").check(|_| Err("it is too short".to_owned())).optional()
    });
    assert_eq!(problems, "error: filebeat.yml:1:17: `proxy.password` is `xxxxx`; it is too short");
}

#[test]
fn a_wrong_text_of_a_list_is_told_at_its_place() {
    let number = |text: &str| text.parse::<u8>().map_err(|_| "no number".to_owned());
    let get = |s: &Section<'_>| s.strings("k").hint("write one").try_each(number).optional();
    assert_eq!(good("[1, 2]", get), Some(vec![1, 2]));
    assert_eq!(good("3", get), Some(vec![3]));
    assert_eq!(good("", get), None);
    assert_eq!(
        bad("[1, a, 'http://u:p@b:x']", get),
        "error: filebeat.yml:1:8: `k[1]` is `a`; no number\n\
         hint: write one\n\
         error: filebeat.yml:1:11: `k[2]` is `http://u:xxxxx@b:x`; no number\n\
         hint: write one"
    );
    assert_eq!(bad("a", get), "error: filebeat.yml:1:4: `k` is `a`; no number\nhint: write one");
}

#[test]
fn a_missing_required_setting_is_told_at_its_section() {
    let (_, problems) = read("out:\n  a: 1\n", |root| {
        let out = root.section("out");
        out.accept("a");
        (out.string("hosts.first").required(), root.section("none").u64("x").required())
    });
    assert_eq!(
        problems,
        "error: filebeat.yml:1:1: `none.x` is missing; expected a whole number\n\
         error: filebeat.yml:2:3: `out.hosts.first` is missing; expected a text"
    );
}

#[test]
fn all_problems_of_a_file_are_told_at_once_in_order() {
    let text = "\
filebeat.inputs:
  - type: filestream
    pahts: [/var/log/*.log]
    harvester_limit: many
  - type: filestream
    prospector.scanner.check_intervall: 10s
    enabled: maybe
output.elasticsearch:
  hosts: localhost
  kerberos: {enabled: true, realm: X}
  loadbalance: sure
  bulk_max_size: 0
setup.ilm: true
http: 5
";
    let ((), problems) = read(text, |root| {
        for input in root.sections("filebeat.inputs") {
            input.string("type").required();
            input.strings("paths").or([]);
            input.bool("enabled").or(true);
            input.u64("harvester_limit").or(0);
            input.duration("prospector.scanner.check_interval").or(Duration::from_secs(10));
        }
        let output = root.section("output.elasticsearch");
        output.usize("bulk_max_size").named("a number of events").range(1..).or(1600);
        output.strings("hosts").or([]);
        output.unsupported(&["kerberos.*"], "use `api_key`");
        output.deprecated(&["loadbalance"], "it is always on");
        output.problem("hosts", "`output.elasticsearch.hosts` has no port", "write `host:9200`");
        root.bool("http.enabled").or(false);
        root.unsupported(&["setup.ilm.*"], "set it up in Kibana");
    });
    let expected = "\
error: filebeat.yml:3:5: unknown setting `filebeat.inputs[0].pahts`
hint: did you mean `paths`?
error: filebeat.yml:4:22: `filebeat.inputs[0].harvester_limit` is `many`; expected a whole number
error: filebeat.yml:6:5: unknown setting `filebeat.inputs[1].prospector.scanner.check_intervall`
hint: did you mean `check_interval`?
error: filebeat.yml:7:14: `filebeat.inputs[1].enabled` is `maybe`; expected `true` or `false`
error: filebeat.yml:9:10: `output.elasticsearch.hosts` has no port
hint: write `host:9200`
error: filebeat.yml:10:3: `output.elasticsearch.kerberos` is known to Filebeat, but not supported by skidder yet
hint: use `api_key`
warning: filebeat.yml:11:3: `output.elasticsearch.loadbalance` is deprecated and has no effect
hint: it is always on
error: filebeat.yml:12:18: `output.elasticsearch.bulk_max_size` is `0`; expected a number of events, at least 1
error: filebeat.yml:13:1: `setup.ilm` is known to Filebeat, but not supported by skidder yet
hint: set it up in Kibana
error: filebeat.yml:14:7: `http` is `5`; expected a map of settings";
    assert_eq!(problems, expected);
}

#[test]
fn a_section_that_is_no_map_is_one_mistake() {
    for value in ["''", "5", "[a]"] {
        let ((), problems) = read(&format!("a: {value}\nb: {value}\nc:\n"), |root| {
            let a = root.section("a");
            a.string("x").required();
            a.secret("y").required();
            a.section("inner").string("z").required();
            a.problem("x", "`a` has no `x`", "");
            a.missing("y", "is missing", "");
            root.item("b").map(|item| item.into_items().remove(0).section().string("x").required());
            root.section("c").string("x").required();
        });
        assert_eq!(problems.matches("error: ").count(), 3, "{value}: {problems}");
        assert!(problems.contains("`c.x` is missing"), "{problems}");
    }
}

#[test]
fn what_deletes_files_or_state_is_not_proposed() {
    let text = "clean_inactiv: 1h\nclean_remove: true\ndelet.enabled: true\n\
                delete: {enable: true, grace_perod: 1h}\n";
    let ((), problems) = read(text, |root| {
        root.duration("clean_inactive").optional();
        root.bool("clean_removed").optional();
        root.bool("delete.enabled").optional();
        root.duration("delete.grace_period").optional();
    });
    assert_eq!(problems.matches("unknown setting").count(), 5, "{problems}");
    assert_eq!(problems.matches("hint").count(), 1, "{problems}");
    assert!(problems.contains("did you mean `grace_period`?"), "{problems}");
}

#[test]
fn lenient_turns_unknown_and_unsupported_into_warnings() {
    let ((), problems) = read("compat: lenient\nabc: 1\nold: 2\nn: x\n", |root| {
        root.unsupported(&["old"], "");
        root.u64("n").or(1);
    });
    assert_eq!(
        problems,
        "warning: filebeat.yml:2:1: unknown setting `abc`\n\
         warning: filebeat.yml:3:1: `old` is known to Filebeat, but not supported by skidder yet\n\
         error: filebeat.yml:4:4: `n` is `x`; expected a whole number"
    );
}

#[test]
fn a_text_is_a_truth_value_as_in_filebeat() {
    let text = "a: '1'\nb: 't'\nc: 'F'\nd: '0'\ne: 'yes'\nf: 1\ng: 'maybe'";
    let (values, problems) =
        read(text, |root| ["a", "b", "c", "d", "e", "f", "g"].map(|key| root.bool(key).optional()));
    let no = Some(false);
    assert_eq!(values, [Some(true), Some(true), no, no, Some(true), None, None]);
    assert_eq!(problems.matches("expected `true` or `false`").count(), 2, "{problems}");
}

#[test]
fn a_skipped_section_is_not_checked() {
    let ((), problems) = read("a: {enabled: false, x: '${UNSET}'}", |root| {
        let section = root.section("a");
        assert!(!section.bool("enabled").or(true));
        section.skip();
    });
    assert_eq!(problems, "");
}

#[test]
fn unresolved_variables_are_told_when_they_are_read() {
    let text = "a: ${NO}\nb: [x, '${NO}']\nc: {d: '${NO}'}\nf: ${NO}\ng: ${NO}\n";
    let ((), problems) = read(text, |root| {
        root.secret("a").optional();
        root.strings("b").optional();
        root.value("c").optional();
        root.section("f").u64("x").or(1);
        root.accept("g");
    });
    let lines: Vec<&str> = problems.lines().filter(|line| line.starts_with("error")).collect();
    assert_eq!(
        lines,
        [
            "error: filebeat.yml:1:4: `a` uses `${NO}`, which is not set",
            "error: filebeat.yml:2:8: `b[1]` uses `${NO}`, which is not set",
            "error: filebeat.yml:3:8: `c.d` uses `${NO}`, which is not set",
            "error: filebeat.yml:4:4: `f` uses `${NO}`, which is not set",
        ]
    );
}

#[test]
fn items_show_settings_of_several_shapes() {
    let text = "processors:\n  - add_tags: {tags: [a]}\n  - drop_event:\nssl: [one, {two: 2}]\n";
    let ((), problems) = read(text, |root| {
        let names: Vec<_> = root
            .sections("processors")
            .into_iter()
            .map(|section| {
                let name = section.keys()[0];
                section.section(name).skip();
                (name, section.path_of(name))
            })
            .collect();
        assert_eq!(names[0], ("add_tags", "processors[0].add_tags".to_owned()));
        assert_eq!(names[1], ("drop_event", "processors[1].drop_event".to_owned()));
        let items = root.items("ssl");
        assert_eq!(items[0].string().required(), "one");
        assert!(items[1].is_map() && !items[1].is_list());
        assert_eq!(items[1].section().u64("two").or(0), 2);
        items[1].problem("no maps please", "");
    });
    assert_eq!(problems, "error: filebeat.yml:4:12: no maps please");
}

#[test]
fn leaves_give_dotted_names_back() {
    let text = "equals: {http.response.code: 200, host.name: a, tags: [x]}\n";
    let (leaves, problems) = read(text, |root| {
        let leaf = |(name, item): (String, Item<'_>)| (name, item.path().to_owned(), item.value());
        root.section("equals").leaves().into_iter().map(leaf).collect::<Vec<_>>()
    });
    assert_eq!(problems, "");
    let names: Vec<_> = leaves.iter().map(|(name, _, _)| name.as_str()).collect();
    assert_eq!(names, ["http.response.code", "host.name", "tags"]);
    assert_eq!(leaves[0].1, "equals.http.response.code");
    assert_eq!(leaves[0].2, Value::Int(200));
}

#[test]
fn an_optional_section_is_there_also_if_it_is_empty() {
    let (found, problems) = read("console:\n", |root| {
        (root.optional_section("console").is_some(), root.optional_section("file").is_some())
    });
    assert_eq!((found, problems.as_str()), ((true, false), ""));
}

#[test]
fn lists_from_the_environment_are_taken_apart_and_passwords_are_not() {
    let environment = |_: &str| Some("a,b".to_owned());
    let settings =
        Settings::parse_with("a", "h: ['${X}', c]\nl: ${X}\np: ${X}", &environment).unwrap();
    let problems = Problems::new();
    let root = settings.root(&problems);
    assert_eq!(root.strings("h").required(), ["a", "b", "c"]);
    assert_eq!(root.strings("l").required(), ["a", "b"]);
    assert_eq!(root.secret("p").required().reveal(), "a,b");
    root.finish();
    assert_eq!(problems.to_string(), "");
}

#[test]
fn what_is_empty_or_off_asks_for_nothing_and_what_has_no_effect_is_a_warning() {
    let read_parts = |text: &str| {
        let read_it = |root: Section<'_>| {
            root.unsupported(&["old.*"], "");
            root.unsupported_if_enabled("part", "do without");
            root.without_effect(&["other.*"], "it is for another part");
        };
        read(text, read_it).1
    };
    for quiet in ["old:\n", "part: {enabled: false, hosts: [a]}\n", "part.hosts: [a]\n", "other:\n"]
    {
        assert_eq!(read_parts(quiet), "", "{quiet}");
    }
    assert_eq!(
        read_parts("part: {hosts: [a], enabled: true}\nother.host: x\n"),
        "error: filebeat.yml:1:20: `part.enabled` is known to Filebeat, but not supported by skidder yet\n\
         hint: do without\n\
         warning: filebeat.yml:2:1: `other` has no effect here\n\
         hint: it is for another part"
    );
}

#[test]
fn a_misspelt_name_of_what_must_be_there_is_one_mistake() {
    let messages = |text: &str| {
        read(text, |root| {
            let _: String = root.string("compat").or("");
            let _: String = root.section("out").string("path").required();
        })
        .1
    };
    assert_eq!(
        messages("out:\n  pathh: a\n"),
        "error: filebeat.yml:2:3: unknown setting `out.pathh`\nhint: did you mean `path`?"
    );
    assert!(messages("compat: lenient\nout:\n  pathh: a\n").contains("`out.path` is missing"));
    assert!(messages("out:\n  other: a\n").contains("`out.path` is missing"));
}

#[test]
fn a_number_is_no_path() {
    for text in ["/a", "['5', /b]", "''", "[/a, b]"] {
        good(text, |s| s.paths("k").or(Vec::new()));
    }
    let table = [
        ("5", "error: filebeat.yml:1:4: `k` is `5`; expected a list of paths\nhint: h"),
        ("true", "error: filebeat.yml:1:4: `k` is `true`; expected a list of paths\nhint: h"),
        ("[/a, 5]", "error: filebeat.yml:1:9: `k[1]` is `5`; expected a path"),
    ];
    for (text, expected) in table {
        assert_eq!(bad(text, |s| s.paths("k").hint("h").optional()), expected);
    }
}
