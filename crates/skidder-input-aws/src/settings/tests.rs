//! The settings of `aws-s3`.

use super::*;
use skidder_config::{Problems, Settings as Yaml};
use skidder_os::RealFs;
use skidder_read::scan::ScanSettings;
use skidder_read::{CsvKeys, CsvRules, Expand, FilestreamSettings, Layout};

const KEYS: &str = "access_key_id: id, secret_access_key: secret";
const QUEUE: &str = "queue_url: 'https://sqs.eu-west-1.amazonaws.com/1/logs'";
const BUCKET: &str = "bucket_arn: 'arn:aws:s3:::logs'";

/// The input of these settings, and the problems.
fn read_in(text: &str, variables: &[(&str, &str)]) -> (Option<AwsS3>, String) {
    let text = format!("{{{KEYS}, {text}}}");
    let problems = Problems::new();
    let yaml = Yaml::parse("x", &text).expect("YAML");
    let section = yaml.root(&problems);
    section.declared_by(&AWS_S3_INPUT);
    section.declared_by(&AWS_S3_OBJECT);
    let fs: Arc<dyn Fs> = Arc::new(RealFs);
    let reading = FilestreamSettings::new("", ScanSettings::default());
    let selector = Selector::read(&section, None, reading);
    let variable = |name: &str| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    let input = read(&section, &fs, vec![selector], variable);
    section.finish();
    (input, problems.to_string())
}

fn settings(text: &str) -> Arc<Settings> {
    let (input, problems) = read_in(text, &[]);
    assert_eq!(problems, "");
    input.expect("no problem").settings
}

#[test]
fn a_queue_has_the_defaults_of_filebeat() {
    let settings = settings(QUEUE);
    let Place::Queue(queue) = &settings.place else { panic!("a queue") };
    assert_eq!(queue.visibility, Duration::from_mins(5));
    assert_eq!((queue.wait, queue.receives_max), (Duration::from_secs(20), Some(5)));
    assert_eq!((settings.workers, &*settings.provider), (5, "aws"));
    assert_eq!((&*settings.servers.region, settings.servers.fips), ("eu-west-1", false));
    assert_eq!(settings.servers.timeout, Duration::from_mins(2));
    assert!(settings.backup.is_none() && settings.servers.tls.is_some());
    let more = "sqs: {max_receive_count: -1, wait_time: 1500ms, shutdown_grace_time: 1s}, max_number_of_messages: 7, \
                visibility_timeout: 30s, region: us-east-2";
    let settings = self::settings(&format!("{QUEUE}, {more}"));
    let Place::Queue(queue) = &settings.place else { panic!("a queue") };
    assert_eq!((queue.wait, queue.receives_max), (Duration::from_secs(1), None));
    assert_eq!((settings.workers, &*settings.servers.region), (7, "us-east-2"));
    let workers = format!("{QUEUE}, max_number_of_messages: 7, number_of_workers: 9");
    assert_eq!(self::settings(&workers).workers, 9);
}

#[test]
fn a_bucket_is_amazons_or_anothers() {
    let settings = settings(&format!(
        "{BUCKET}, bucket_list_interval: 10s, bucket_list_prefix: a/, start_timestamp: '2026-01-02T03:04:05Z', \
         ignore_older: 24h, default_region: eu-central-1"
    ));
    let Place::Bucket(bucket) = &settings.place else { panic!("a bucket") };
    assert_eq!((&*bucket.arn, &*bucket.prefix), ("arn:aws:s3:::logs", "a/"));
    assert_eq!((bucket.interval, bucket.ignore_older), (Duration::from_secs(10), Some(DAY)));
    assert_eq!(bucket.start, time_of("2026-01-02T03:04:05Z"));
    assert_eq!(settings.servers.region, "eu-central-1");
    let other = "non_aws_bucket_name: logs, endpoint: 'http://127.0.0.1:9000', provider: minio";
    let settings = self::settings(other);
    let Place::Bucket(bucket) = &settings.place else { panic!("a bucket") };
    assert_eq!((&*bucket.arn, &*settings.provider), ("logs", "minio"));
    assert!(settings.servers.tls.is_none() && settings.servers.region == USUAL_REGION);
    assert_eq!(settings.servers.path_style, None);
    let by_host = self::settings(&format!("{other}, path_style: false"));
    assert_eq!(by_host.servers.path_style, Some(false));
    let point = "access_point_arn: 'arn:aws:s3:eu-north-1:123456789012:accesspoint/p-1'";
    let settings = self::settings(point);
    assert_eq!(settings.servers.region, "eu-north-1");
}

#[test]
fn the_region_is_looked_for_in_the_environment_last() {
    let variables = [("AWS_REGION", "ap-south-1"), ("AWS_DEFAULT_REGION", "sa-east-1")];
    let region = |text: &str, variables: &[(&str, &str)]| {
        read_in(text, variables).0.expect("no problem").settings.servers.region.clone()
    };
    assert_eq!(region(BUCKET, &variables), "ap-south-1");
    assert_eq!(region(BUCKET, &variables[1..]), "sa-east-1");
    assert_eq!(region(QUEUE, &variables), "eu-west-1");
    assert_eq!(region(&format!("{BUCKET}, default_region: eu-west-3"), &variables), "eu-west-3");
}

#[test]
fn copies_go_where_they_are_not_read_again() {
    let copies = "backup_to_bucket_arn: 'arn:aws:s3:::kept', backup_to_bucket_prefix: old/, delete_after_backup: true";
    let expected = Backup { bucket: "kept".to_owned(), prefix: "old/".to_owned(), delete: true };
    assert_eq!(settings(&format!("{BUCKET}, {copies}")).backup, Some(expected.clone()));
    let (input, problems) = read_in(&format!("{QUEUE}, {copies}"), &[]);
    assert_eq!(input.expect("a warning only").settings.backup, Some(expected));
    assert!(problems.contains("where no notifications come from"), "{problems}");
    let same = "backup_to_bucket_arn: 'arn:aws:s3:::logs', bucket_list_prefix: a/";
    settings(&format!("{BUCKET}, {same}, backup_to_bucket_prefix: b/"));
}

#[test]
fn mistakes_are_found_with_a_remedy() {
    let other = "non_aws_bucket_name: logs";
    let url = "endpoint: 'http://127.0.0.1:9000'";
    let table = [
        ("region: eu-west-1".to_owned(), "`queue_url` is not set, nor is a bucket"),
        (format!("{QUEUE}, {BUCKET}"), "`queue_url` and `bucket_arn` are both set"),
        ("queue_url: logs".to_owned(), "as the queue's page shows it"),
        ("bucket_arn: 'arn:aws:sqs:::logs'".to_owned(), "expected `arn:aws:s3:::NAME`"),
        (other.to_owned(), "`endpoint` is not set"),
        (format!("{other}, endpoint: minio"), "expected a URL"),
        (format!("{other}, {url}, fips_enabled: true"), "`fips_enabled` is about Amazon's"),
        (format!("{BUCKET}, provider: minio"), "only with `non_aws_bucket_name`"),
        (format!("{QUEUE}, visibility_timeout: 13h"), "`visibility_timeout` is"),
        (format!("{QUEUE}, sqs.wait_time: 30s"), "`sqs.wait_time` is"),
        (format!("{QUEUE}, api_timeout: 10s"), "shorter than `sqs.wait_time`"),
        (format!("{BUCKET}, start_timestamp: yesterday"), "expected a time"),
        (format!("{BUCKET}, region: 'a b'"), "the name of a region"),
        (format!("{BUCKET}, number_of_workers: 0"), "a number of workers"),
        (format!("{BUCKET}, delete_after_backup: true"), "needs a bucket for the copies"),
        (
            format!("{BUCKET}, backup_to_bucket_arn: 'arn:aws:s3:::logs'"),
            "the copies would be read again",
        ),
        (
            format!("{BUCKET}, non_aws_backup_to_bucket_name: kept"),
            "`non_aws_backup_to_bucket_name` is not for this bucket",
        ),
        (format!("{BUCKET}, ssl.enabled: false"), "`ssl.enabled` is false"),
        (
            format!("{BUCKET}, expand_event_list_from_field: Records, content_type: text/csv"),
            "`content_type` says that the objects have none",
        ),
        (format!("{BUCKET}, decoding.codec.csv.comma: '\"'"), "decoding.codec.csv.comma"),
    ];
    for (text, expected) in table {
        let (_, problems) = read_in(&text, &[]);
        assert!(problems.contains("error: ") && problems.contains(expected), "{text}: {problems}");
    }
}

#[test]
fn what_has_no_effect_is_said() {
    let table = [
        (format!("{BUCKET}, visibility_timeout: 1m"), "this input reads a bucket"),
        (format!("{QUEUE}, bucket_list_prefix: a"), "this input reads a queue"),
        (
            format!("{BUCKET}, lexicographical_ordering: true, lexicographical_lookback_keys: 50"),
            "each listing is a complete one",
        ),
    ];
    for (text, expected) in table {
        let (input, problems) = read_in(&text, &[]);
        assert!(input.is_some() && problems.contains(expected), "{text}: {problems}");
    }
}

#[test]
fn the_type_of_an_object_decides_what_its_events_are() {
    let layout = |settings: &str, content_type: &str| {
        let (input, problems) = read_in(&format!("{BUCKET}, {settings}"), &[]);
        assert_eq!(problems, "");
        input.expect("no problem").settings.selectors[0].of.layout(content_type)
    };
    let json = |field: &str| Layout::Json(Expand::parse(field));
    assert_eq!(layout("buffer_size: 1MiB", "text/plain"), Layout::Lines);
    assert_eq!(layout("buffer_size: 1MiB", "application/json; charset=utf-8"), json(""));
    assert_eq!(layout("content_type: text/plain", "application/json"), Layout::Lines);
    assert_eq!(layout("content_type: application/x-ndjson", ""), json(""));
    let records = "expand_event_list_from_field: Records";
    assert_eq!(layout(records, "application/json"), json("Records"));
    assert_eq!(layout(records, "text/plain"), Layout::Lines);
    let set = format!("{records}, content_type: application/json");
    assert_eq!(layout(&set, "text/plain"), json("Records"));
    let csv = "decoding.codec.csv: {enabled: true, comma: ';'}";
    let rules = CsvRules { comma: ';', keys: CsvKeys::Sorted, ..CsvRules::default() };
    assert_eq!(layout(csv, "application/json"), Layout::Csv(Arc::new(rules)));
}

#[test]
fn a_selector_finds_names_of_objects() {
    let (input, _) = read_in(&format!("{BUCKET}, include_s3_metadata: [Last-Modified]"), &[]);
    let selector = &input.expect("no problem").settings.selectors[0];
    assert_eq!(selector.metadata, ["last-modified"]);
    assert!(selector.of.selects("anything"));
    let regex = regex::bytes::Regex::new("\\.gz$").expect("a pattern");
    let reading = FilestreamSettings::new("", ScanSettings::default());
    let problems = Problems::new();
    let yaml = Yaml::parse("x", "{}").expect("YAML");
    let selector = Selector::read(&yaml.root(&problems), Some(regex), reading);
    assert!(selector.of.selects("a/b.gz") && !selector.of.selects("a/b.gz.tmp"));
}
