//! Defaults, mistakes with their remedies, and what has no effect.

use super::*;
use skidder_config::{Problems, Settings as Yaml};
use skidder_os::{RealFs, Timestamp};
use skidder_read::scan::ScanSettings;
use skidder_read::{CsvKeys, CsvRules, Expand, FilestreamSettings, Layout};

const PLACE: &str = "project_id: p, alternative_host: 'http://127.0.0.1:1'";

/// The input of these settings with the bucket `logs`, and the problems.
fn read_in(text: &str, variables: &[(&str, &str)]) -> (Option<Gcs>, String) {
    let text = format!("{{{text}}}");
    let problems = Problems::new();
    let yaml = Yaml::parse("x", &text).expect("YAML");
    let section = yaml.root(&problems);
    section.declared_by(&GCS_INPUT);
    section.declared_by(&GCS_BUCKET);
    let fs: Arc<dyn Fs> = Arc::new(RealFs);
    let listing = Listing::read(&section, None);
    let reading = FilestreamSettings::new("", ScanSettings::default());
    let reading = Reading::read(&section, reading);
    let bucket = BucketSettings::new("logs".to_owned(), listing, reading);
    let variable = |name: &str| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    let input = read(&section, &fs, vec![bucket], variable);
    section.finish();
    (input, problems.to_string())
}

fn settings(text: &str) -> Settings {
    let (input, problems) = read_in(&format!("{PLACE}, {text}"), &[]);
    assert_eq!(problems, "");
    input.expect("no problem").settings
}

fn key_text() -> String {
    let key = include_str!("../../../skidder-google/src/testdata/key.pem");
    serde_json::json!({ "type": "service_account", "client_email": "a@b", "private_key": key })
        .to_string()
}

#[test]
fn the_defaults_are_those_of_filebeat() {
    let Settings { service, buckets } = settings("max_workers: 1");
    let retry = Retry {
        attempts: 3,
        first: Duration::from_secs(1),
        longest: Duration::from_secs(30),
        factor: 2.0,
    };
    assert_eq!(service.retry, retry);
    assert_eq!(service.target.url(), "http://127.0.0.1:1/storage/v1");
    assert!(service.tls.is_none() && *service.tokens.source() == Source::None);
    let expected = Listing {
        workers: 1,
        batch_size: 1000,
        repeats: true,
        interval: Duration::from_mins(5),
        timeout: Duration::from_mins(2),
        epoch: None,
        parse_json: false,
    };
    assert_eq!(buckets[0].listing, expected);
    assert_eq!(buckets[0].reading.content_type_of("a/b"), "a/b");
    assert_eq!(buckets[0].listing.polling().start, None);
}

#[test]
fn a_bucket_has_the_settings_of_the_input_unless_it_has_its_own() {
    let problems = Problems::new();
    let yaml = Yaml::parse(
        "x",
        "{max_workers: 7, batch_size: 9, poll: false, poll_interval: 10s, bucket_timeout: 7s, timestamp_epoch: 1630444800, \
         parse_json: true}",
    );
    let yaml = yaml.expect("YAML");
    let all = Listing::read(&yaml.root(&problems), None);
    let read = |text: &str| {
        let yaml = Yaml::parse("x", text).expect("YAML");
        Listing::read(&yaml.root(&problems), Some(&all))
    };
    assert_eq!(read("{}"), all);
    let own = read(
        "{max_workers: 1, batch_size: 1, poll: true, poll_interval: 5m, bucket_timeout: 2m, timestamp_epoch: 0, \
         parse_json: false}",
    );
    let expected = Listing {
        workers: 1,
        batch_size: 1,
        repeats: true,
        interval: Duration::from_mins(5),
        timeout: Duration::from_mins(2),
        epoch: Some(0),
        parse_json: false,
    };
    assert_eq!(own, expected);
    let start = all.polling().start;
    assert_eq!(start, Some(Timestamp(1_630_444_800_000_000_000 - 1)), "that second is read");
    assert_eq!(problems.to_string(), "");
}

#[test]
fn credentials_are_of_a_file_or_a_text_or_the_environment() {
    let place = tempfile::tempdir().expect("a directory");
    let path = place.path().join("key.json");
    std::fs::write(&path, key_text()).expect("a file");
    let file = format!("project_id: p, auth.credentials_file.path: '{}'", path.display());
    let source = |text: &str, variables: &[(&str, &str)]| {
        let (input, problems) = read_in(text, variables);
        assert_eq!(problems, "");
        input.expect("no problem").settings.service.tokens.source().clone()
    };
    assert_eq!(source(&file, &[]), Source::File(path.clone()));
    let key = serde_json::to_string(&key_text()).expect("a text");
    let text = format!("project_id: p, auth.credentials_json.account_key: {key}");
    assert!(matches!(source(&text, &[]), Source::Key(_)));
    let variables = [("GOOGLE_APPLICATION_CREDENTIALS", path.to_str().expect("UTF-8"))];
    assert_eq!(source("project_id: p", &variables), Source::File(path));
    assert!(matches!(source("project_id: p", &[]), Source::Machine(_)));
    let both = format!("{file}, auth.credentials_json.account_key: {key}");
    let (input, problems) = read_in(&both, &[]);
    assert!(input.is_some() && problems.contains("no effect beside"), "{problems}");
    let (input, _) = read_in(&file, &[]);
    let service = input.expect("no problem").settings.service;
    assert_eq!(service.target.url(), "https://storage.googleapis.com/storage/v1");
    assert!(service.tls.is_some());
}

#[test]
fn a_type_stands_for_none_or_for_all() {
    let of = |text: &str, found: &str| {
        let buckets = settings(text).buckets;
        buckets[0].reading.content_type_of(found).to_owned()
    };
    assert_eq!(of("content_type: a/b", ""), "a/b");
    assert_eq!(of("content_type: a/b", "c/d"), "c/d");
    assert_eq!(of("content_type: a/b, override_content_type: true", "c/d"), "a/b");
    assert!(settings("parse_json: true").buckets[0].listing.parse_json);
}

#[test]
fn the_type_decides_between_lines_and_values_of_json() {
    let layout = |text: &str, found: &str| {
        let reading = settings(text).buckets.remove(0).reading;
        reading.selector.layout(reading.content_type_of(found))
    };
    let records = "expand_event_list_from_field: Records";
    let json = |field: &str| Layout::Json(Expand::of_lists(field));
    assert_eq!(layout("max_workers: 1", "application/json; charset=utf-8"), json(""));
    assert_eq!(layout("max_workers: 1", "text/plain"), Layout::Lines);
    assert_eq!(layout("content_type: application/x-ndjson", ""), json(""));
    assert_eq!(layout(records, "application/json"), json("Records"));
    let maybe = Layout::JsonOrLines(Expand::of_lists("Records"));
    for found in ["application/octet-stream", "application/x-gzip", ""] {
        assert_eq!(layout(records, found), maybe, "{found}");
    }
    let lines = "content_type: text/plain, override_content_type: true";
    assert_eq!(layout(lines, "application/json"), Layout::Lines);
    let csv = |keys| Layout::Csv(Arc::new(CsvRules { keys, ..CsvRules::default() }));
    let text = "decoding.codec.csv.enabled: true";
    assert_eq!(layout(text, "application/json"), csv(CsvKeys::InOrder));
    let text = format!("{text}, parse_json: true");
    assert_eq!(layout(&text, "application/json"), csv(CsvKeys::Sorted), "as Filebeat");
}

#[test]
fn mistakes_are_found_with_a_remedy() {
    let table = [
        ("alternative_host: 'http://h'", "`project_id` is missing"),
        ("project_id: '', alternative_host: 'http://h'", "`project_id` is empty"),
        ("project_id: p, alternative_host: 'ftp://h'", "`alternative_host` is `ftp://h`"),
        ("project_id: p, alternative_host: 'http://h/x'", "expected no path"),
        ("project_id: p, alternative_host: 'http://u:p@h'", "gets no credentials"),
        ("project_id: p, auth.credentials_file.path: /nowhere/k", "cannot read `/nowhere/k`"),
        ("project_id: p, auth.credentials_json.account_key: x", "it is no JSON"),
        ("project_id: p, ssl.enabled: false", "`ssl.enabled` is false"),
    ];
    for (text, expected) in table {
        let (input, problems) = read_in(text, &[]);
        assert!(input.is_none() && problems.contains(expected), "{text}: {problems}");
    }
    let table = [
        ("max_workers: 0", "a number of workers"),
        ("max_workers: 5001", "a number of workers"),
        ("batch_size: 1001", "a number of objects"),
        ("timestamp_epoch: -1", "seconds since 1970-01-01"),
        ("poll_interval: 0s", "`poll_interval` is"),
        ("retry.max_attempts: 0", "a number of tries"),
        ("retry: {initial_backoff_duration: 10s, max_backoff_duration: 2s}", "is shorter than"),
        ("retry.backoff_multiplier: 1", "`retry.backoff_multiplier` is"),
        ("decoding.codec.csv.comma: '\"'", "decoding.codec.csv.comma"),
        ("bucket: logs", "buckets"),
    ];
    for (text, expected) in table {
        let (_, problems) = read_in(&format!("{PLACE}, {text}"), &[]);
        assert!(problems.contains("error: ") && problems.contains(expected), "{text}: {problems}");
    }
    for name in ["ab", "Logs", "a b", "a/b", &"a".repeat(223)] {
        BucketSettings::check_name(name).unwrap_err();
    }
    BucketSettings::check_name("my_logs-1.example").unwrap();
}

#[test]
fn what_has_no_effect_is_said() {
    let table = [
        ("override_encoding: true", "recognised as compressed by their first bytes"),
        ("override_content_type: true", "without `content_type`"),
        ("auth.credentials_json.account_key: x", "`alternative_host` gets no credentials"),
    ];
    for (text, expected) in table {
        let (input, problems) = read_in(&format!("{PLACE}, {text}"), &[]);
        assert!(input.is_some() && problems.contains(expected), "{text}: {problems}");
    }
}

#[test]
fn a_bucket_that_is_named_twice_is_a_mistake() {
    let problems = Problems::new();
    let yaml = Yaml::parse("x", &format!("{{{PLACE}}}")).expect("YAML");
    let section = yaml.root(&problems);
    let settings = settings("max_workers: 1");
    let buckets = vec![settings.buckets[0].clone(), settings.buckets[0].clone()];
    let fs: Arc<dyn Fs> = Arc::new(RealFs);
    assert!(read(&section, &fs, buckets, |_| None).is_none());
    assert!(problems.to_string().contains("has `logs` twice"), "{problems}");
}
