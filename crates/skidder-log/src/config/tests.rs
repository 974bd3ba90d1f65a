//! What the settings and the flags make of each other.

use super::*;
use skidder_config::{Problems, Settings};

fn read(text: &str) -> (LogSettings, String) {
    let settings = Settings::parse("filebeat.yml", text).unwrap();
    let problems = Problems::new();
    let root = settings.root(&problems);
    let read = LogSettings::read(root.section("logging"), Path::new("/logs"));
    root.finish();
    (read, problems.to_string())
}

fn good(text: &str) -> LogSettings {
    let (settings, problems) = read(text);
    assert_eq!(problems, "", "{text}");
    settings
}

fn flags(text: &str) -> Flags {
    let mut flags = Flags::default();
    for word in text.split_whitespace() {
        match word {
            "-e" => flags.stderr = true,
            "-v" => flags.verbose = true,
            _ if word.starts_with("-d") => flags.debug = Some(word[2..].to_owned()),
            _ => flags.environment = word.parse().unwrap(),
        }
    }
    flags
}

#[test]
fn the_defaults_are_those_of_filebeat() {
    let settings = good("");
    let files = FilesConfig {
        path: "/logs".into(),
        name: "skidder".to_owned(),
        bytes_max: 10_485_760,
        kept: 7,
        permissions: 0o600,
        interval: Duration::ZERO,
        rotate_on_startup: true,
        redirect_stderr: false,
    };
    let log = settings.with_flags(&Flags::default());
    assert_eq!(log.target, Target::Files(files));
    assert_eq!((log.level, log.event_data, log.with_fields), (Level::INFO, None, Map::new()));
    let metrics = MetricsConfig { enabled: true, period: Duration::from_secs(30), stats: true };
    assert_eq!(settings.metrics, metrics);
}

#[test]
fn of_several_places_one_is_chosen_as_filebeat_does() {
    let table = [
        ("", "", "files"),
        ("", "-e", "stderr"),
        ("", "systemd", "stderr"),
        ("", "container", "stderr"),
        ("to_files: true", "-e", "stderr"),
        ("{to_files: true, to_stderr: true}", "", "stderr"),
        ("to_stderr: true", "", "stderr"),
        ("to_stderr: false", "", "files"),
        ("to_files: false", "", "nowhere"),
        ("to_files: false", "-e", "stderr"),
        ("to_files: true", "systemd", "files"),
        ("to_files: true", "container -e", "files"),
        ("to_stderr: false", "container", "stderr"),
        ("{to_stderr: false, to_files: false}", "container", "stderr"),
        ("to_syslog: true", "", "syslog"),
        ("to_syslog: true", "-e", "stderr"),
        ("to_syslog: true", "systemd", "stderr"),
        ("{to_syslog: true, to_stderr: false}", "systemd", "syslog"),
        ("{to_syslog: true, to_files: true}", "", "syslog"),
    ];
    for (logging, line, expected) in table {
        let logging = logging.trim_matches(['{', '}']);
        let target = good(&format!("logging: {{{logging}}}")).with_flags(&flags(line)).target;
        let found = match target {
            Target::Nowhere => "nowhere",
            Target::Stderr => "stderr",
            Target::Syslog => "syslog",
            Target::Files(_) => "files",
        };
        assert_eq!(found, expected, "{logging} {line}");
    }
}

#[test]
fn flags_only_make_it_say_more() {
    let table = [
        ("error", "", Level::ERROR),
        ("critical", "", Level::ERROR),
        ("warning", "-v", Level::INFO),
        ("debug", "-v", Level::DEBUG),
        ("error", "-d*", Level::DEBUG),
    ];
    for (level, line, expected) in table {
        let settings = good(&format!("logging.level: {level}"));
        assert_eq!(settings.with_flags(&flags(line)).level, expected, "{level} {line}");
    }
    let settings = good("logging.selectors: [catalog]");
    let both = settings.with_flags(&flags("-dharvester,kafka")).selectors;
    assert_eq!(both, Selectors::new(["catalog", "harvester", "kafka"]));
}

#[test]
fn every_setting_is_read() {
    let settings = good(
        "logging:\n  level: debug\n  with_fields: {host: {name: a}, n: 1, tags: [x]}\n  \
         metrics: {enabled: false, period: 1m, namespaces: []}\n  \
         files: {path: sub, name: other, rotateeverybytes: 1MiB, keepfiles: 1024, permissions: 0640, \
         interval: 24h, rotateonstartup: false, redirect_stderr: true}\n  \
         event_data.files: {path: /events, name: e, rotateeverybytes: 1000, keepfiles: 0, \
         permissions: 0666, interval: 1s, rotateonstartup: true}\n",
    );
    let files = FilesConfig {
        path: "/logs/sub".into(),
        name: "other".to_owned(),
        bytes_max: 1 << 20,
        kept: 1024,
        permissions: 0o640,
        interval: Duration::from_hours(24),
        rotate_on_startup: false,
        redirect_stderr: true,
    };
    assert_eq!(settings.files, files);
    let events = FilesConfig {
        path: "/events".into(),
        name: "e".to_owned(),
        bytes_max: 1000,
        kept: 0,
        permissions: 0o666,
        interval: Duration::from_secs(1),
        rotate_on_startup: true,
        redirect_stderr: false,
    };
    assert_eq!(settings.event_data, Some(events));
    let fields = serde_json::json!({"host.name": "a", "n": 1, "tags": ["x"]});
    assert_eq!(Json::Object(settings.with_fields), fields);
    let metrics = MetricsConfig { enabled: false, period: Duration::from_mins(1), stats: false };
    assert_eq!(settings.metrics, metrics);
}

#[test]
fn the_content_of_events_is_written_only_if_it_is_asked_for() {
    assert!(good("logging.level: info").event_data.is_none());
    let events = good("logging.event_data:").event_data.unwrap();
    assert_eq!((&*events.name, events.bytes_max, events.kept), ("skidder-events-data", 5 << 20, 2));
    assert!(!events.rotate_on_startup);
    assert!(good("logging.event_data.to_files: false").event_data.is_none());
}

#[test]
fn mistakes_are_told_with_what_to_do() {
    let table = [
        ("level: loud", "`logging.level` is `loud`"),
        ("files.keepfiles: 1025", "`logging.files.keepfiles` is `1025`"),
        ("format: yaml", "`logging.format` is `yaml`"),
        ("files.interval: 10ms", "expected `0` for none, or at least `1s`"),
        ("files.name: a/b", "expected a name without `/`"),
        ("files.rotateeverybytes: 0", "`logging.files.rotateeverybytes` is `0`"),
        ("files.permissions: 01777", "`logging.files.permissions` is"),
        ("to_eventlog: true", "is a part of Windows"),
        ("with_fields.message: x", "every line has a `message` of its own"),
        ("metrics.namespaces: [dataset]", "there is no `dataset`"),
        ("event_data.to_stderr: true", "the content of events goes to files only"),
        ("file.path: /x", "unknown setting `logging.file`"),
    ];
    for (text, expected) in table {
        let (_, problems) = read(&format!("logging.{text}"));
        assert!(problems.contains(expected), "{text}: {problems}");
    }
}

#[test]
fn environments_have_the_names_of_filebeat() {
    let table = [
        ("default", Ok(Environment::Default)),
        ("Systemd", Ok(Environment::Systemd)),
        ("CONTAINER", Ok(Environment::Container)),
        ("windows_service", Err(())),
        ("x", Err(())),
    ];
    for (text, expected) in table {
        assert_eq!(text.parse::<Environment>().map_err(drop), expected, "{text}");
    }
}

#[test]
fn our_own_files_are_known_by_their_names() {
    let settings = good("logging: {event_data: , files: {path: '/var/log/a.b', name: x+y}}");
    assert_eq!(
        settings.own_files(),
        [
            r"^/var/log/a\.b/x\+y-[0-9]{8}(-[0-9]+)?\.ndjson([.~-].*)?$",
            r"^/logs/skidder-events-data-[0-9]{8}(-[0-9]+)?\.ndjson([.~-].*)?$"
        ]
    );
    // Also by another way to the directory, which is not there yet.
    let place = tempfile::tempdir().unwrap();
    let real = place.path().canonicalize().unwrap().join("real");
    std::fs::create_dir(&real).unwrap();
    let link = place.path().join("link");
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let linked = good(&format!("logging.files.path: '{}/own'", link.display())).own_files();
    assert!(linked.iter().any(|own| own.contains("/link/own/skidder-")), "{linked:?}");
    assert!(linked.iter().any(|own| own.contains("/real/own/skidder-")), "{linked:?}");
    let examples = settings.examples();
    assert_eq!(examples[0], Path::new("/var/log/a.b/x+y-20260131.ndjson"));
    assert_eq!(examples.len(), 2);
}
