//! A declaration gives the reader, the table and the schema.

use super::schema::json_schema;
use super::table::table;
use super::*;
use crate::{Problems, Section, Settings};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;

mod inner {
    use super::*;

    settings! {
        pub(super) static TLS = Group::new("tls", "Encryption.").unsupported(&[("old.*", "use new")]);

        pub(super) MODE: OneOf<u8> = Key::one_of("mode", &[("full", 2), ("none", 0)]).default("full");
    }
}

settings! {
    static SINK = Group::new("sink", "A sink.").deprecated(&[("retries", "it always retries")]);

    HOSTS: Vec<String> = Key::<Vec<String>>::new("hosts").default(&["a", "b"]).about("where it sends");
    WORKERS: usize = Key::new("workers").alias("worker").default(1).range(1, 9).noun("a number of workers");
    WAIT: Duration = Key::new("wait.init").default(Duration::from_mins(1)).about("first [pause](#x)").ours();
    BYTES: Size = Key::new("bytes").default(3 << 20).differs("Filebeat: 0");
    DISK: Size = Key::new("disk").default(10_000_000_000);
    KEY: crate::Secret = Key::new("key").required();
    NAMES: BTreeMap<String, String> = Key::new("names");
    ENCRYPTION: Part = Key::part("tls", &inner::TLS).about("below");
}

mod names {
    use super::*;

    settings! {
        pub(super) static NAMES_THAT_DELETE = Group::new("names", "Names that sound alike.");

        pub(super) CLEAN_SESSION: bool = Key::new("clean_session").default(true).deletes_nothing();
        pub(super) CLEAN_STATES: bool = Key::new("clean_states").default(false);
    }
}

#[test]
fn what_sounds_as_if_it_deleted_is_proposed_only_if_its_declaration_says_that_it_does_not() {
    let settings = Settings::parse("x", "{clean_sesion: true, clean_state: true}").unwrap();
    let problems = Problems::new();
    let section = settings.root(&problems);
    section.declared_by(&names::NAMES_THAT_DELETE);
    assert!(section.get(&names::CLEAN_SESSION).value());
    assert!(!section.get(&names::CLEAN_STATES).value());
    section.finish();
    assert_eq!(
        problems.to_string(),
        "error: x:1:2: unknown setting `clean_sesion`\nhint: did you mean `clean_session`?\n\
         error: x:1:22: unknown setting `clean_state`"
    );
}

fn read<T>(text: &str, read: impl FnOnce(&Section<'_>) -> T) -> (T, String) {
    let settings = Settings::parse("x", text).unwrap();
    let problems = Problems::new();
    let section = settings.root(&problems);
    section.declared_by(&SINK);
    let value = read(&section);
    section.skip();
    (value, problems.to_string())
}

#[test]
fn what_is_declared_is_read_with_its_default_bounds_and_other_name() {
    let workers = |text| read(text, |section| section.get(&WORKERS).value());
    assert_eq!(workers("{}").0, 1);
    assert_eq!(workers("worker: 3").0, 3);
    assert_eq!(workers("{worker: 3, workers: 4}").0, 4);
    let (value, said) = workers("worker: 10");
    assert_eq!(value, 1);
    assert!(said.ends_with("`worker` is `10`; expected a number of workers, 1 to 9"), "{said}");
    let hosts = |text| read(text, |section| section.get(&HOSTS).value()).0;
    assert_eq!(
        (hosts("{}"), hosts("hosts: c")),
        (vec!["a".to_owned(), "b".to_owned()], vec!["c".to_owned()])
    );
    let mode =
        read("tls.mode: none", |section| section.part(&ENCRYPTION).get(&inner::MODE).value());
    assert_eq!(mode, (0, String::new()));
    assert!(read("{}", |section| section.get(&KEY).required()).1.contains("`key` is missing"));
    assert!(read("{}", |section| section.get(&NAMES).optional()).0.is_none());
    assert_eq!(read("{}", |section| section.get(&BYTES).value()).0, 3 << 20);
    let wait = |section: &Section<'_>| section.get(&WAIT).map(|wait| wait * 2).value();
    assert_eq!(read("{}", wait).0, Duration::from_mins(2));
    assert_eq!(read("wait.init: soon", wait).0, Duration::from_mins(2));
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "`mode` of Some(Group")]
fn a_key_of_another_group_is_not_read() {
    read("{}", |section| section.get(&inner::MODE).value());
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "declares no default")]
fn a_value_without_a_default_is_a_mistake_even_if_it_is_set() {
    read("key: a", |section| section.get(&KEY).value());
}

#[test]
fn the_table_says_what_is_declared() {
    let expected = "\
| option | default | meaning |
|---|---|---|
| `x.hosts` | `[a, b]` | where it sends |
| `x.workers` (or `x.worker`) | `1` |  |
| `x.wait.init` (**ours**) | `1m` | first [pause](#x) |
| `x.bytes` | `3MiB` (Filebeat: 0) |  |
| `x.disk` | `10GB` |  |
| `x.key` | required |  |
| `x.names` | – |  |
| `x.tls.*` | – | below |
";
    assert_eq!(table(&SINK, "x."), expected);
}

#[test]
fn the_schema_has_dotted_and_nested_names() {
    let schema = json_schema(&SINK, "urn:x", "x");
    let sink = &schema["$defs"]["sink"];
    let properties = &sink["properties"];
    let names: Vec<&String> = properties.as_object().unwrap().keys().collect();
    assert_eq!(
        names,
        [
            "bytes",
            "disk",
            "hosts",
            "key",
            "names",
            "retries",
            "tls",
            "tls.mode",
            "tls.old",
            "wait",
            "wait.init",
            "worker",
            "workers"
        ]
    );
    assert_eq!(properties["wait"]["properties"]["init"], properties["wait.init"]);
    assert_eq!(properties["wait.init"]["description"], "first pause. Filebeat does not have it");
    assert_eq!(properties["wait.init"]["default"], "1m");
    assert_eq!(
        (&properties["workers"]["minimum"], &properties["workers"]["maximum"]),
        (&json!(1), &json!(9))
    );
    assert_eq!(
        (&properties["key"]["writeOnly"], &properties["retries"]["deprecated"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(properties["tls"]["$ref"], "#/$defs/tls");
    let patterns: Vec<&String> = sink["patternProperties"].as_object().unwrap().keys().collect();
    assert_eq!(patterns, [r"^names\.", r"^tls\.old\."]);
    assert_eq!(sink["additionalProperties"], json!(false));
}

mod kinds {
    use super::*;

    settings! {
        pub(super) static EVERY = Group::new("source.*", "What every source has.");

        pub(super) TYPE: String = Key::new("type").default("tail");
    }

    pub(super) mod tail {
        use super::*;

        settings! {
            pub(in super::super) static TAIL = Group::new("source.tail", "A file.");

            pub(in super::super) RENAMED: Switch = Key::switch("renamed", &inner::TLS).about("follow it");
            STEPS: Parts = Key::parts("steps", &steps::STEP);
        }
    }

    pub(super) mod steps {
        use super::*;

        settings! {
            pub(in super::super) static STEP = Group::new("step", "A step.").kinds(Kinds::by_name(steps));

            pub(in super::super) THEN: NamedParts = Key::named_parts("then", "step");
        }

        fn steps() -> Vec<(&'static str, &'static Group)> {
            vec![("cut", &SINK), ("not", &STEP)]
        }
    }

    static ECHO: Group = Group::new("source.echo", "A peer.").include(&[&inner::TLS]);

    fn sources() -> Vec<(&'static str, &'static Group)> {
        vec![("tail", &tail::TAIL), ("echo", &ECHO)]
    }

    pub(super) static SOURCE: Group = Group::new("source", "A source.")
        .kinds(Kinds::by_tag("type", "tail", sources).with(&[&EVERY]));
}

#[test]
fn a_kind_by_a_tag_has_its_own_settings_and_those_of_every_kind() {
    let schema = json_schema(&kinds::SOURCE, "urn:x", "x");
    let source = &schema["$defs"]["source"];
    assert_eq!(source["properties"]["type"]["anyOf"][0], json!({"enum": ["tail", "echo"]}));
    let echo = json!({
        "if": {"properties": {"type": {"const": "echo"}}, "required": ["type"]},
        "then": {"$ref": "#/$defs/source.echo"},
    });
    assert_eq!(source["allOf"][1], echo);
    // The default.
    assert_eq!(source["allOf"][0]["if"], json!({"properties": {"type": {"const": "tail"}}}));
    let names = |id: &str| {
        let properties = schema["$defs"][id]["properties"].as_object().unwrap();
        properties.keys().cloned().collect::<Vec<_>>()
    };
    assert_eq!(names("source.echo"), ["mode", "old", "type"]);
    assert_eq!(names("source.tail"), ["renamed", "renamed.mode", "renamed.old", "steps", "type"]);
    let renamed = &schema["$defs"]["source.tail"]["properties"]["renamed"]["anyOf"];
    assert_eq!(renamed[0]["type"], json!(["boolean", "string", "null"]));
    assert_eq!(renamed[1], json!({"$ref": "#/$defs/tls"}));
}

#[test]
fn a_kind_by_a_name_is_the_only_key_of_its_map() {
    let schema = json_schema(&kinds::tail::TAIL, "urn:x", "x");
    let step = &schema["$defs"]["step"];
    let patterns: Vec<_> = step["anyOf"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["propertyNames"]["pattern"])
        .collect();
    assert_eq!(patterns, ["^cut(\\.|$)", "^not(\\.|$)", "^(then)(\\.|$)"]);
    assert_eq!(step["properties"]["cut"], json!({"$ref": "#/$defs/sink"}));
    assert_eq!(step["properties"]["cut.tls.mode"], schema["$defs"]["tls"]["properties"]["mode"]);
    assert_eq!(step["properties"]["then"]["else"], json!({"$ref": "#/$defs/step"}));
    // A group inside itself: anything.
    assert_eq!(step["patternProperties"]["^not\\."], json!({}));
    let table = table(&kinds::steps::STEP, "");
    assert!(table.contains("| `cut` | – | A sink. |\n| `cut.hosts` | `[a, b]` | where"), "{table}");
    assert!(
        table.ends_with("| `not` | – | A step. |\n| `not.then` | – |  |\n| `then` | – |  |\n"),
        "{table}"
    );
}

#[test]
fn a_switch_is_a_word_or_a_map() {
    let switch = |text| {
        let settings = Settings::parse("x", text).unwrap();
        let problems = Problems::new();
        let section = settings.root(&problems);
        section.declared_by(&kinds::tail::TAIL);
        let found = match section.switch(&kinds::tail::RENAMED) {
            None => "none".to_owned(),
            Some(Ok(on)) => on.to_string(),
            Some(Err(map)) => map.get(&inner::MODE).value().to_string(),
        };
        drop(section);
        (found, problems.to_string())
    };
    let quiet = |found: &str| (found.to_owned(), String::new());
    assert_eq!(switch("{}"), quiet("none"));
    assert_eq!(switch("renamed: on"), quiet("true"));
    assert_eq!(switch("renamed.mode: none"), quiet("0"));
    let (found, said) = switch("renamed: perhaps");
    assert!(found == "none" && said.contains("`renamed` is `perhaps`"), "{said}");
}

mod choices {
    use super::*;

    settings! {
        pub(super) static LETTERS = Group::new("letters", "Where letters go.").inline();

        pub(super) INDEX: String = Key::new("index").required().about("an index");
    }

    settings! {
        pub(super) static CHOICES = Group::new("choices", "One of two things.");

        pub(super) WORKERS: OrAuto<usize> = Key::<OrAuto<usize>>::new("workers")
            .alias("worker")
            .default(Some(1))
            .range(Some(1), Some(9))
            .noun("`auto`, or a number of workers");
        pub(super) PRESSED: OneOf<u8> =
            Key::one_of("pressed", &[("none", 0), ("Gzip-2", 2)]).ignore_case().default("Gzip-2");
        pub(super) ENABLED: OneOf<u8> =
            Key::one_of("enabled", &[("true", 1), ("auto", 2)]).default("auto");
        pub(super) POLICY: PartOrWord =
            Key::part_or_word("policy", &LETTERS, &[("drop", ())]).default("drop");
        pub(super) LETTER: Part = Key::part("letter", &LETTERS);
    }
}

fn choose<T>(text: &str, read: impl FnOnce(&Section<'_>) -> T) -> (T, String) {
    let settings = Settings::parse("x", text).unwrap();
    let problems = Problems::new();
    let section = settings.root(&problems);
    section.declared_by(&choices::CHOICES);
    let value = read(&section);
    section.finish();
    (value, problems.to_string())
}

#[test]
fn a_setting_can_be_auto_or_a_number() {
    let workers = |text| choose(text, |section| section.get(&choices::WORKERS).value());
    assert_eq!(workers("{}"), (Some(1), String::new()));
    assert_eq!(workers("worker: auto"), (None, String::new()));
    assert_eq!(workers("workers: 9"), (Some(9), String::new()));
    let said = workers("workers: 10").1;
    assert!(said.ends_with("`10`; expected `auto`, or a number of workers, 1 to 9"), "{said}");
    assert!(workers("workers: often").1.contains("expected `auto`"));
}

#[test]
fn words_can_ignore_case_and_stand_beside_a_map() {
    let pressed = |text| choose(text, |section| section.get(&choices::PRESSED).value());
    assert_eq!(pressed("pressed: GZIP-2"), (2, String::new()));
    assert!(pressed("pressed: zip").1.contains("expected `none` or `Gzip-2`"));
    let policy = |text| {
        choose(text, |section| {
            let policy = section.part_unless_word(&choices::POLICY)?;
            Some(policy.get(&choices::INDEX).required())
        })
    };
    assert_eq!(policy("policy: drop"), (None, String::new()));
    assert_eq!(policy("policy.index: a"), (Some("a".to_owned()), String::new()));
    assert!(policy("policy: keep").1.contains("expected `drop`"));
    assert!(policy("policy: {index: a, indices: b}").1.contains("unknown"));
}

#[test]
fn the_schema_and_the_table_have_choices() {
    let schema = json_schema(&choices::CHOICES, "urn:x", "x");
    let properties = &schema["$defs"]["choices"]["properties"];
    let workers = &properties["workers"]["anyOf"];
    assert_eq!((&workers[0]["const"], &workers[1]["maximum"]), (&json!("auto"), &json!(9)));
    let policy = &properties["policy"]["anyOf"];
    assert_eq!(policy[0], json!({"enum": ["drop", ""]}));
    assert_eq!(policy[1]["$ref"], "#/$defs/letters");
    assert_eq!(properties["enabled"]["anyOf"][0]["enum"], json!(["true", "auto", true]));
    let pressed = properties["pressed"]["pattern"].as_str().unwrap();
    assert!(pressed.starts_with("^([nN][oO][nN][eE]|[gG][zZ][iI][pP]-2)?$"), "{pressed}");
    let expected = "\
| option | default | meaning |
|---|---|---|
| `workers` (or `worker`) | `1` |  |
| `pressed` | `Gzip-2` |  |
| `enabled` | `auto` |  |
| `policy` | `drop` |  |
| `policy.index` | required | an index |
| `letter.index` | required | an index |
";
    assert_eq!(table(&choices::CHOICES, ""), expected);
}

mod neighbours {
    use super::*;

    mod encryption {
        use super::*;

        settings! {
            pub(super) static ENCRYPTION = Group::new("neighbours.ssl", "Encryption.");

            ENABLED: bool = Key::new("enabled").default(true);
        }
    }

    settings! {
        /// What every kind of input has.
        pub(super) static EVERY = Group::new("neighbours.every", "What every kind has.").of_others(&[
            ("stream", "it is for `container`"),
            ("exclude_files", "it is for `log`"),
            ("max_bytes", "it is for `log`"),
            ("buffer.*", "it is for `log`"),
        ]);

        pub(super) ENABLED: bool = Key::new("enabled").default(true);
    }

    mod own {
        use super::*;

        settings! {
            pub(in super::super) static OWN = Group::new("neighbours.own", "One kind.")
                .called_elsewhere(&[
                    ("max_bytes", "max_size", ""),
                    ("tls", "ssl", ""),
                    ("format", "", "a processor does that"),
                ]);

            pub(in super::super) STREAMS: Vec<String> = Key::<Vec<String>>::new("streams").default(&[]);
            pub(in super::super) EXCLUDE_LINES: Vec<String> =
                Key::<Vec<String>>::new("exclude_lines").default(&[]);
            pub(in super::super) MAX_SIZE: Size = Key::new("max_size").default(1);
            pub(in super::super) SSL: Part = Key::part("ssl", &encryption::ENCRYPTION);
        }
    }

    pub(super) use own::{EXCLUDE_LINES, MAX_SIZE, OWN, SSL, STREAMS};

    /// The problems of an input of the one kind.
    pub(super) fn problems_of(text: &str) -> String {
        let settings = Settings::parse("x", text).unwrap();
        let problems = Problems::new();
        let section = settings.root(&problems);
        section.declared_by(&EVERY);
        section.declared_by(&OWN);
        section.get(&ENABLED).value();
        section.get(&STREAMS).value();
        section.get(&EXCLUDE_LINES).value();
        section.get(&MAX_SIZE).value();
        if let Some(ssl) = section.optional_part(&SSL) {
            ssl.skip();
        }
        section.finish();
        problems.to_string()
    }
}

#[test]
fn a_name_of_this_kind_wins_over_a_setting_of_another_kind() {
    for (text, expected) in [
        ("stream: s", "error: x:1:1: unknown setting `stream`\nhint: did you mean `streams`?"),
        (
            "max_bytes: 1",
            "error: x:1:1: unknown setting `max_bytes`\nhint: did you mean `max_size`?",
        ),
        ("format: a", "error: x:1:1: unknown setting `format`\nhint: a processor does that"),
        // Not near enough: Filebeat starts with it, and so does skidder.
        (
            "exclude_files: [a]",
            "warning: x:1:1: `exclude_files` has no effect here\nhint: it is for `log`",
        ),
        ("buffer.size: 1", "warning: x:1:1: `buffer` has no effect here\nhint: it is for `log`"),
        ("stream: ", ""),
    ] {
        assert_eq!(neighbours::problems_of(text), expected, "{text}");
    }
}

#[test]
fn a_dotted_name_that_was_written_with_underscores_wins_over_the_nearest_name() {
    for key in ["ssl_enabled", "ssl-enabled"] {
        let problems = neighbours::problems_of(&format!("{key}: true"));
        let expected =
            format!("error: x:1:1: unknown setting `{key}`\nhint: did you mean `ssl.enabled`?");
        assert_eq!(problems, expected);
    }
    assert!(neighbours::problems_of("enable: true").contains("did you mean `enabled`?"));
}

#[test]
fn a_boolean_in_place_of_a_part_is_told_what_turns_the_part_on() {
    for (text, expected) in [
        (
            "tls: true",
            "error: x:1:1: unknown setting `tls`\nhint: did you mean `ssl.enabled: true`?",
        ),
        (
            "sll: false",
            "error: x:1:1: unknown setting `sll`\nhint: did you mean `ssl.enabled: false`?",
        ),
        ("tls: {}", "error: x:1:1: unknown setting `tls`\nhint: did you mean `ssl`?"),
        (
            "ssl: true",
            "error: x:1:6: `ssl` is `true`; expected a map of settings\nhint: write `ssl.enabled: true`",
        ),
        ("ssl: 5", "error: x:1:6: `ssl` is `5`; expected a map of settings"),
    ] {
        assert_eq!(neighbours::problems_of(text), expected, "{text}");
    }
}
