//! Settings of `aws-cloudwatch`: defaults, mistakes and remedies.

use super::*;
use skidder_config::{Problems, Settings as Yaml};
use skidder_os::RealFs;

const KEYS: &str = "access_key_id: id, secret_access_key: secret";
const ARN: &str = "arn:aws:logs:us-east-1:123456789012:log-group:/app/a";

/// The input of these settings, and the problems.
fn read_text(text: &str) -> (Option<AwsCloudwatch>, String) {
    let text = format!("{{{KEYS}, {text}}}");
    let problems = Problems::new();
    let yaml = Yaml::parse("x", &text).expect("YAML");
    let section = yaml.root(&problems);
    section.declared_by(&AWS_CLOUDWATCH_INPUT);
    let fs: Arc<dyn Fs> = Arc::new(RealFs);
    let input = read(&section, &fs, |_| None);
    section.finish();
    (input, problems.to_string())
}

pub(crate) fn settings(text: &str) -> Arc<Settings> {
    let (input, problems) = read_text(text);
    assert_eq!(problems, "");
    input.expect("no problem").settings
}

#[test]
fn an_arn_has_the_defaults_of_filebeat() {
    let settings = settings(&format!("log_group_arn: '{ARN}:*'"));
    assert_eq!(settings.groups, Groups::Arn(ARN.to_owned()));
    assert_eq!((settings.streams.clone(), settings.from_end), (Streams::All, false));
    let times = [settings.scan_frequency, settings.api_sleep, settings.latency];
    assert_eq!(times.map(|time| time.as_millis()), [60_000, 200, 0]);
    let Servers { region, timeout, fips, tls, .. } = &settings.servers;
    assert_eq!((&**region, *timeout, *fips), ("us-east-1", Duration::from_mins(2), false));
    assert!(tls.is_some() && settings.workers == 1);
    assert_eq!(settings.address(), ARN);
}

#[test]
fn a_name_or_a_prefix_needs_a_region() {
    let region = "region_name: eu-west-1";
    let settings = |text: &str| settings(&format!("{text}, {region}"));
    let name = settings("log_group_name: /app/a, log_streams: [b, a], default_region: eu-west-3");
    assert_eq!(name.servers.region, "eu-west-1");
    assert_eq!(name.groups, Groups::Name("/app/a".to_owned()));
    assert_eq!(name.streams, Streams::Named(vec!["b".to_owned(), "a".to_owned()]));
    assert_eq!(name.address(), "eu-west-1:/app/a [a,b]");
    let prefix = settings(
        "log_group_name_prefix: /app/, include_linked_accounts_for_prefix_mode: true, number_of_workers: 3, \
         log_stream_prefix: s, start_position: end, scan_frequency: 30s, api_sleep: 1s, latency: 10m, api_timeout: 5s",
    );
    assert_eq!(prefix.groups, Groups::Prefix { prefix: "/app/".to_owned(), linked: true });
    assert_eq!(prefix.streams, Streams::Prefix("s".to_owned()));
    assert!(prefix.from_end && prefix.workers == 3);
    assert_eq!(prefix.latency, Duration::from_mins(10));
    assert_eq!(prefix.address(), "eu-west-1:/app/ [s*]*");
    assert_eq!(prefix.source_name(ARN), format!("{ARN} [s*]"));
    assert!(!settings("log_group_name: a, start_position: lastSync").from_end);
    let long: Vec<String> = (0..100).map(|number| format!("stream-{number}")).collect();
    let long = settings(&format!("log_group_name: a, log_streams: [{}]", long.join(", ")));
    assert_eq!(long.address().len(), "eu-west-1:a [0123456789abcdef]".len());
}

#[test]
fn mistakes_are_found_with_a_remedy() {
    let region = "region_name: eu-west-1";
    let many: Vec<String> = (0..101).map(|number| number.to_string()).collect();
    let table = [
        (region.to_owned(), "`log_group_arn` is not set, nor is another log group"),
        (format!("log_group_name: a, log_group_name_prefix: b, {region}"), "are both set"),
        ("log_group_name: a".to_owned(), "`region_name` is not set, and `log_group_name` is"),
        ("log_group_name_prefix: a".to_owned(), "and `log_group_name_prefix` is"),
        ("log_group_arn: /app".to_owned(), "expected `arn:aws:logs:REGION"),
        ("log_group_arn: 'arn:aws:logs::1:log-group:a'".to_owned(), "the name of a region"),
        (format!("log_group_arn: '{ARN}:log-stream:s'"), "set that in `log_streams`"),
        (format!("log_group_name: 'a b', {region}"), "1 to 512 letters"),
        ("log_group_name: a, region_name: 'a b'".to_owned(), "the name of a region"),
        (format!("log_group_arn: '{ARN}', default_region: 'a b'"), "the name of a region"),
        (format!("log_group_arn: '{ARN}', start_position: middle"), "`start_position` is"),
        (format!("log_group_arn: '{ARN}', scan_frequency: 0"), "`scan_frequency` is"),
        (format!("log_group_arn: '{ARN}', api_sleep: 0"), "`api_sleep` is"),
        (format!("log_group_arn: '{ARN}', api_timeout: 0"), "`api_timeout` is"),
        (format!("log_group_arn: '{ARN}', number_of_workers: 0"), "a number of workers"),
        (format!("log_group_arn: '{ARN}', log_streams: ['']"), "a stream has no name"),
        (format!("log_group_arn: '{ARN}', log_streams: [{}]", many.join(", ")), "at most 100"),
        (
            format!("log_group_arn: '{ARN}', log_streams: [a], log_stream_prefix: b"),
            "which CloudWatch refuses",
        ),
        (format!("log_group_arn: '{ARN}', region: eu-west-1"), "`region_name`"),
        (format!("log_group_arn: '{ARN}', endpoint: minio"), "expected a URL"),
        (
            format!("log_group_arn: '{ARN}', endpoint: 'http://h', fips_enabled: true"),
            "is about Amazon's servers",
        ),
        (format!("log_group_arn: '{ARN}', use_cloud_connectors: true"), "Elastic's own cloud"),
        (format!("log_group_arn: '{ARN}', ssl.enabled: false"), "`ssl.enabled` is false"),
    ];
    for (text, expected) in table {
        let (_, problems) = read_text(&text);
        assert!(problems.contains("error: ") && problems.contains(expected), "{text}: {problems}");
    }
}

#[test]
fn what_has_no_effect_is_said() {
    let table = [
        (
            format!("log_group_arn: '{ARN}', log_group_name: a"),
            "`log_group_name` has no effect beside",
        ),
        (
            format!("log_group_arn: '{ARN}', region_name: eu-west-1"),
            "`region_name` has no effect beside",
        ),
        (
            format!("log_group_arn: '{ARN}', include_linked_accounts_for_prefix_mode: true"),
            "no effect without `log_group_name_prefix`",
        ),
    ];
    for (text, expected) in table {
        let (input, problems) = read_text(&text);
        assert!(input.is_some() && problems.contains(expected), "{text}: {problems}");
    }
    // As templates write it.
    let empty =
        format!("log_group_arn: '{ARN}', log_group_name: '', region_name: '', log_streams: []");
    assert_eq!(settings(&empty).groups, Groups::Arn(ARN.to_owned()));
}
