//! What the settings of the input mean, and what is said of mistakes.

use super::*;
use skidder_config::{Problems, Settings as Yaml};
use skidder_os::RealFs;
use skidder_read::FilestreamSettings;
use skidder_read::scan::ScanSettings;

const KEY: &str = "account_name: logs1, auth.shared_credentials.account_key: c2VjcmV0";

/// The input of these settings with the container `in`, and the problems.
fn read_in(text: &str, variables: &[(&str, &str)]) -> (Option<AzureBlobs>, String) {
    let problems = Problems::new();
    let yaml = Yaml::parse("x", &format!("{{{text}}}")).expect("YAML");
    let section = yaml.root(&problems);
    for group in [&AZURE_BLOB_INPUT, &AZURE_LISTING, &AZURE_BLOB_READING] {
        section.declared_by(group);
    }
    let fs: Arc<dyn Fs> = Arc::new(RealFs);
    let reading = FilestreamSettings::new("", ScanSettings::default());
    let containers = vec![ContainerSettings {
        name: "in-logs".to_owned(),
        listing: ListingOptions::default().or(&ListingOptions::read(&section)),
        blobs: BlobReading::read(&section, reading),
    }];
    let variable = |name: &str| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    let input = read(&section, &fs, containers, variable);
    section.finish();
    let text = problems.to_string();
    (input.filter(|_| !text.contains("error: ")), text)
}

fn settings(text: &str) -> Settings {
    let (input, problems) = read_in(text, &[]);
    assert_eq!(problems, "");
    input.expect("no problem").settings
}

fn credential(settings: &Settings) -> String {
    settings.containers[0].service.provider.credential().name()
}

#[test]
fn a_container_has_the_defaults_of_filebeat() {
    let settings = settings(KEY);
    assert_eq!(
        (&*settings.account, &*settings.url),
        ("logs1", "https://logs1.blob.core.windows.net")
    );
    let container = &settings.containers[0];
    assert_eq!((container.workers, container.batch, container.poll), (1, None, false));
    assert_eq!((container.interval, container.start), (Duration::from_mins(5), None));
    assert_eq!((&*container.prefix, container.service.timeout), ("", Duration::from_mins(2)));
    assert!(container.service.tls.is_some());
    assert_eq!(credential(&settings), "the key of `logs1`");
    assert!(!format!("{settings:?}").contains("c2VjcmV0"), "{settings:?}");
}

#[test]
fn what_a_container_does_not_say_is_that_of_the_input() {
    let options = |text: &str| {
        let problems = Problems::new();
        let yaml = Yaml::parse("x", &format!("{{{text}}}")).expect("YAML");
        let section = yaml.root(&problems);
        section.declared_by(&AZURE_LISTING);
        let options = ListingOptions::read(&section);
        section.finish();
        assert_eq!(problems.to_string(), "");
        options
    };
    let input = options(
        "max_workers: 3, batch_size: 7, poll: true, poll_interval: 10s, timestamp_epoch: 1627233600, path_prefix: a/",
    );
    let container = options("max_workers: 9, poll: false, path_prefix: b/").or(&input);
    assert_eq!(
        (container.workers, container.batch, container.poll),
        (Some(9), Some(7), Some(false))
    );
    assert_eq!(container.interval, Some(Duration::from_secs(10)));
    assert_eq!((container.epoch, container.prefix.as_deref()), (Some(1_627_233_600), Some("b/")));
    let settings = settings(&format!("{KEY}, timestamp_epoch: 10, batch_size: 5000, poll: true"));
    // That second is the first one.
    assert_eq!(settings.containers[0].start, Some(Timestamp(9_999_999_999)));
    assert_eq!((settings.containers[0].batch, settings.containers[0].poll), (Some(5000), true));
}

#[test]
fn there_are_four_ways_to_the_account() {
    let oauth2 = "account_name: logs1, auth.oauth2: {client_id: a, client_secret: b, tenant_id: c}";
    let table = [
        (KEY, "the key of `logs1`", "https://logs1.blob.core.windows.net"),
        (
            "auth.connection_string.uri: 'AccountName=other;AccountKey=c2VjcmV0;EndpointSuffix=core.usgovcloudapi.net'",
            "the key of `other`",
            "https://other.blob.core.usgovcloudapi.net",
        ),
        (
            "auth.connection_string.uri: 'BlobEndpoint=https://h/x;SharedAccessSignature=sv=1&sig=c2VjcmV0'",
            "a shared access signature",
            "https://h/x",
        ),
        (
            oauth2,
            "a token, by Microsoft Entra ID `https://login.microsoftonline.com:443`",
            "https://logs1.blob.core.windows.net",
        ),
        (
            "account_name: logs1, auth.managed_identity: {enabled: true, client_id: x}",
            "a token, by the metadata service of the machine `http://169.254.169.254:80`",
            "https://logs1.blob.core.windows.net",
        ),
    ];
    for (text, expected, url) in table {
        let settings = settings(text);
        assert_eq!((&*credential(&settings), &*settings.url), (expected, url), "{text}");
        assert!(!format!("{settings:?}").contains("c2VjcmV0"), "{settings:?}");
    }
    let variables = [("AZURE_AUTHORITY_HOST", "https://login.microsoftonline.us/")];
    let (input, problems) = read_in(oauth2, &variables);
    assert_eq!(problems, "");
    assert!(credential(&input.unwrap().settings).contains("login.microsoftonline.us"));
}

#[test]
fn a_url_of_another_server_is_where_blobs_are_and_what_events_show() {
    let settings = settings(&format!("{KEY}, storage_url: 'http://127.0.0.1:10000/logs1/'"));
    assert_eq!(settings.url, "http://127.0.0.1:10000/logs1");
    assert!(settings.containers[0].service.tls.is_none());
    let text = "auth.connection_string.uri: 'UseDevelopmentStorage=true', storage_url: 'https://shown.example.com'";
    let settings = self::settings(text);
    assert_eq!(settings.url, "https://shown.example.com");
    assert_eq!(
        settings.containers[0].service.target.url(),
        "http://127.0.0.1:10000/devstoreaccount1"
    );
}

#[test]
fn mistakes_name_the_key_and_the_remedy() {
    let account = "account_name: logs1";
    let table = [
        (account, "`auth` has no credentials", "`auth.oauth2`"),
        (
            "auth.shared_credentials.account_key: c2VjcmV0",
            "`account_name` is not set",
            "one of an account",
        ),
        (
            "account_name: Logs_1, auth.shared_credentials.account_key: c2VjcmV0",
            "`Logs_1`",
            "`storage_url`",
        ),
        (
            "account_name: logs1, auth.shared_credentials.account_key: '!'",
            "is not in base64",
            "Access keys",
        ),
        (
            "auth.connection_string.uri: 'AccountName=a'",
            "no `AccountKey`",
            "Shared access signature",
        ),
        (
            "account_name: logs1, auth.oauth2: {client_id: a}",
            "`auth.oauth2.client_secret` is not set",
            "`auth.oauth2.tenant_id` is not set",
        ),
        (
            "account_name: logs1, auth.oauth2: {client_id: a, client_secret: b, tenant_id: c}, storage_url: 'http://h'",
            "a token would be sent without TLS",
            "https://",
        ),
        (
            &format!("{KEY}, storage_url: logs1.blob.core.windows.net"),
            "expected a URL",
            "storage_url",
        ),
        (
            &format!("{KEY}, storage_url: 'https://h/?sv=1'"),
            "auth.connection_string.uri",
            "storage_url",
        ),
        (&format!("{KEY}, ssl.enabled: false"), "needs TLS", "leave it out"),
        (&format!("{KEY}, max_workers: 5001"), "max_workers", "5000"),
        (&format!("{KEY}, timestamp_epoch: 99999999999"), "timestamp_epoch", "32503680000"),
        (
            &format!("{KEY}, decoding.codec.csv.comma: '\"'"),
            "decoding.codec.csv.comma",
            "single character",
        ),
        (&format!("{KEY}, container: x"), "unknown setting `container`", "`containers: ["),
    ];
    for (text, expected, hint) in table {
        let (input, problems) = read_in(text, &[]);
        assert!(input.is_none(), "{text}");
        assert!(problems.contains("error: "), "{text}: {problems}");
        assert!(problems.contains(expected) && problems.contains(hint), "{text}: {problems}");
    }
    let arc = [("IDENTITY_ENDPOINT", "http://h"), ("IMDS_ENDPOINT", "http://h")];
    let text = "account_name: logs1, auth.managed_identity.enabled: true";
    let (input, problems) = read_in(text, &arc);
    assert!(input.is_none() && problems.contains("Azure Arc"), "{problems}");
}

#[test]
fn what_has_no_effect_is_said() {
    let both = format!("{KEY}, auth.connection_string.uri: 'UseDevelopmentStorage=true'");
    let table = [
        (&*both, "`auth.connection_string` has no effect beside `auth.shared_credentials`"),
        (&format!("{KEY}, retry.max_retries: 7"), "repeated for minutes"),
        (&format!("{KEY}, override_content_type: true"), "no effect without `content_type`"),
        (&format!("{KEY}, auth.managed_identity.client_id: x"), "is not enabled"),
    ];
    for (text, expected) in table {
        let (input, problems) = read_in(text, &[]);
        assert!(input.is_some(), "{text}: {problems}");
        assert!(
            problems.contains("warning: ") && problems.contains(expected),
            "{text}: {problems}"
        );
    }
}

#[test]
fn the_type_of_a_blob_is_its_own_unless_it_has_none_or_is_overridden() {
    let of = |text: &str, own: &str| {
        let settings = settings(&format!("{KEY}, {text}"));
        settings.containers[0].blobs.content_type(own).to_owned()
    };
    assert_eq!(of("max_workers: 1", "text/plain"), "text/plain");
    assert_eq!(of("content_type: text/csv", "text/plain"), "text/plain");
    assert_eq!(of("content_type: text/csv", ""), "text/csv");
    assert_eq!(of("content_type: text/csv, override_content_type: true", "text/plain"), "text/csv");
    assert_eq!(of("override_encoding: true", ""), "");
}

#[test]
fn names_of_containers_are_checked_and_stand_once() {
    let check = |names: &[&str]| {
        let problems = Problems::new();
        let yaml = Yaml::parse("x", &format!("{{{KEY}}}")).expect("YAML");
        let section = yaml.root(&problems);
        section.declared_by(&AZURE_BLOB_INPUT);
        let containers = names.iter().map(|name| ContainerSettings {
            name: (*name).to_owned(),
            listing: ListingOptions::default(),
            blobs: reading_of_nothing(),
        });
        let containers: Vec<_> = containers.collect();
        let are_good = check_names(&section, &containers);
        section.skip();
        (are_good, problems.to_string())
    };
    assert_eq!(check(&["logs", "$logs"]), (true, String::new()));
    assert!(check(&["logs", "Logs"]).1.contains("lower-case"));
    assert!(check(&["logs", "logs"]).1.contains("`logs` twice"));
}

fn reading_of_nothing() -> BlobReading {
    let problems = Problems::new();
    let yaml = Yaml::parse("x", "{}").expect("YAML");
    let section = yaml.root(&problems);
    section.declared_by(&AZURE_BLOB_READING);
    let reading = FilestreamSettings::new("", ScanSettings::default());
    let reading = BlobReading::read(&section, reading);
    section.finish();
    reading
}
