//! Reading `output.s3`.

use super::*;
use crate::S3;
use crate::testing::context;
use skidder_amazon::Assume;
use skidder_aws::Credentials;
use skidder_config::{Problems, Secret, Settings};

/// Credentials that never change.
fn fixed(id: &str, secret: &str) -> Source {
    Source::Fixed(Credentials { id: id.to_owned(), secret: Secret::new(secret), session: None })
}

/// A region and credentials, so that nothing is missing.
const KEYS: &str = "region: eu-x-1\naccess_key_id: a\nsecret_access_key: b\n";

fn read_with(text: &str, variables: &[(&str, &str)]) -> (Option<Config>, String) {
    let settings = Settings::parse("x", text).unwrap();
    let problems = Problems::new();
    let section = settings.root(&problems);
    let variable = |name: &str| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    let config = Config::read(&section, &context(), variable);
    section.finish();
    (config, problems.to_string())
}

fn read(text: &str) -> (Option<Config>, String) {
    read_with(&format!("{KEYS}{text}"), &[])
}

fn good(text: &str) -> Config {
    let (config, problems) = read(text);
    assert_eq!(problems, "", "{text}");
    config.expect(text)
}

#[test]
fn s3_settings_have_the_defaults_of_the_page() {
    let config = good("bucket: logs");
    assert_eq!((config.bucket.as_str(), config.region.as_str()), ("logs", "eu-x-1"));
    assert!(config.endpoint.is_none() && !config.path_style && config.extension.is_none());
    assert_eq!(config.credentials, fixed("a", "b"));
    assert_eq!(config.key_prefix, Format::parse("%{[agent.name]}/%{+yyyy/MM/dd}/").unwrap());
    assert_eq!(
        (config.codec.clone(), config.compression),
        (CodecConfig::default(), Compression::Gzip(6))
    );
    let timeout = Duration::from_mins(5);
    assert_eq!(config.batch, Batch { bytes: 10_000_000, events: 0, timeout });
    assert!(config.headers.is_empty());
    assert_eq!((config.workers, config.timeout), (1, Duration::from_secs(90)));
    assert_eq!(config.backoff_init, Duration::from_secs(1));
    assert_eq!(config.backoff_max, Duration::from_mins(1));
    assert_eq!(config.extension(), ".ndjson.gz");
}

#[test]
fn s3_settings_are_read() {
    let config = good(
        "bucket: logs\nendpoint: http://minio:9000/base\npath_style: false\nkey_prefix: '%{[a]}/'\n\
         session_token: c\ncodec.json.pretty: true\ncompression: zstd\ncompression_level: 19\n\
         batch: {max_bytes: 1MiB, max_events: 7, timeout: 3s}\nworker: 3\ntimeout: 9s\n\
         backoff: {init: 2s, max: 3s}\nproxy_url: 'socks5://proxy'\nssl.verification_mode: none",
    );
    assert_eq!(config.endpoint.as_ref().unwrap().to_string(), "http://minio:9000/base");
    assert!(!config.path_style);
    assert_eq!(config.batch, Batch { bytes: 1 << 20, events: 7, timeout: Duration::from_secs(3) });
    assert_eq!((config.workers, config.compression), (3, Compression::Zstd(19)));
    assert_eq!(
        (config.extension(), config.content_type()),
        (".json.zst".to_owned(), "application/zstd")
    );
    assert!(matches!(&config.credentials, Source::Fixed(keys) if keys.session.is_some()));
    assert!(matches!(config.proxy, ProxyChoice::Always(_)));
    assert_eq!(good("bucket: logs\nworkers: 9\nworker: 2").workers, 9);
    assert_eq!(good("bucket: logs\nfilename_extension: ''").extension(), "");
    assert_eq!(good("bucket: logs\nfilename_extension: json").extension(), ".json");
    let plain = good("bucket: logs\ncompression: none\ncodec.format.string: x");
    assert_eq!(
        (plain.extension(), plain.content_type()),
        (".log".to_owned(), "text/plain; charset=utf-8")
    );
}

#[test]
fn a_bucket_has_its_host_or_its_path() {
    let table = [
        ("bucket: logs", "logs.s3.eu-x-1.amazonaws.com", "/a/%C3%A4%20b", "/"),
        ("bucket: my.logs", "s3.eu-x-1.amazonaws.com", "/my.logs/a/%C3%A4%20b", "/my.logs"),
        (
            "bucket: logs\npath_style: true",
            "s3.eu-x-1.amazonaws.com",
            "/logs/a/%C3%A4%20b",
            "/logs",
        ),
        ("bucket: logs\nendpoint: http://h:9000", "h:9000", "/logs/a/%C3%A4%20b", "/logs"),
        ("bucket: logs\nendpoint: https://h/x/", "h", "/x/logs/a/%C3%A4%20b", "/x/logs"),
        ("bucket: logs\nendpoint: 'http://[::1]:80'", "[::1]", "/logs/a/%C3%A4%20b", "/logs"),
        ("bucket: logs\nendpoint: https://h\npath_style: false", "logs.h", "/a/%C3%A4%20b", "/"),
    ];
    for (text, host, object, bucket) in table {
        let target = good(text).target();
        assert_eq!(target.authority, host, "{text}");
        assert_eq!(target.path(Some("a/ä b")), object, "{text}");
        assert_eq!(target.path(None), bucket, "{text}");
    }
    let china = "region: cn-north-1\naccess_key_id: a\nsecret_access_key: b\nbucket: logs";
    let (config, problems) = read_with(china, &[]);
    assert_eq!(problems, "");
    let target = config.unwrap().target();
    assert_eq!(target.authority, "logs.s3.cn-north-1.amazonaws.com.cn");
}

#[test]
fn credentials_and_region_of_the_environment_hold_where_nothing_is_set() {
    let variables = [
        ("AWS_ACCESS_KEY_ID", "c"),
        ("AWS_SECRET_ACCESS_KEY", "d"),
        ("AWS_REGION", "us-y-2"),
        ("AWS_DEFAULT_REGION", "us-z-3"),
    ];
    let (config, problems) = read_with("bucket: logs", &variables);
    assert_eq!(problems, "");
    let config = config.unwrap();
    assert_eq!((config.credentials, config.region.as_str()), (fixed("c", "d"), "us-y-2"));
    let (config, _) = read_with("bucket: logs", &[&variables[..2], &variables[3..]].concat());
    assert_eq!(config.unwrap().region, "us-z-3");
    let (config, _) = read_with(&format!("{KEYS}bucket: logs"), &variables);
    let config = config.unwrap();
    assert_eq!((config.credentials, config.region.as_str()), (fixed("a", "b"), "eu-x-1"));
    let (config, _) = read_with("bucket: logs\nendpoint: http://h", &variables[..2]);
    assert_eq!(config.unwrap().region, Config::REGION);

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("credentials");
    let text = "[default]\naws_access_key_id=e\naws_secret_access_key=f\n[other]\naws_access_key_id=g\n\
                aws_secret_access_key=h\n";
    std::fs::write(&path, text).unwrap();
    let file = path.to_string_lossy();
    let variables = [("AWS_SHARED_CREDENTIALS_FILE", &*file), ("AWS_PROFILE", "other")];
    let (config, problems) = read_with("bucket: logs\nregion: x", &variables);
    assert_eq!(problems, "");
    let source = config.unwrap().credentials;
    assert!(matches!(&source, Source::File(file) if file.profile == "other"), "{source:?}");
    let named = format!("bucket: logs\nregion: x\nshared_credential_file: {file}");
    let (config, problems) = read_with(&named, &[]);
    assert_eq!(problems, "");
    let source = config.unwrap().credentials;
    assert!(matches!(&source, Source::File(file) if file.profile == "default"), "{source:?}");
    let (config, problems) = read_with(&format!("{named}\ncredential_profile_name: none"), &[]);
    assert!(
        config.is_none()
            && problems.contains("profile `none`")
            && problems.contains("is not there"),
        "{problems}"
    );
}

#[test]
fn a_role_is_found_in_the_environment_behind_what_is_set() {
    let identity =
        [("AWS_WEB_IDENTITY_TOKEN_FILE", "/token"), ("AWS_ROLE_ARN", "arn:aws:iam::1:role/r")];
    let agent = [("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/x")];
    let keys = [("AWS_ACCESS_KEY_ID", "c"), ("AWS_SECRET_ACCESS_KEY", "d")];
    type Variables<'a> = &'a [(&'a str, &'a str)];
    let table: [(&str, &[Variables<'_>], &str); 6] = [
        ("", &[], "the metadata service of the instance `http://169.254.169.254:80`"),
        ("", &[&agent], "the agent of the container `http://169.254.170.2:80/v2/x`"),
        ("", &[&agent, &identity], "the token service `https://sts.eu-x-1.amazonaws.com:443`"),
        ("", &[&agent, &identity, &keys], "access key `c`"),
        ("access_key_id: a\nsecret_access_key: b", &[&agent, &identity, &keys], "access key `a`"),
        ("endpoint: http://h", &[&agent], "the agent of the container"),
    ];
    for (text, variables, expected) in table {
        let text = format!("bucket: logs\nregion: eu-x-1\n{text}");
        let (config, problems) = read_with(&text, &variables.concat());
        assert_eq!(problems, "", "{text}");
        let name = config.unwrap().credentials.name();
        assert!(name.contains(expected), "{name}, expected {expected}");
    }
    let text = "bucket: logs\nregion: eu-x-1";
    for (variables, expected) in [
        ([("AWS_EC2_METADATA_DISABLED", "true")], "has no credentials"),
        ([("AWS_CONTAINER_CREDENTIALS_FULL_URI", "ftp://x")], "AWS_CONTAINER_CREDENTIALS_FULL_URI"),
        (
            [("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://a b")],
            "AWS_EC2_METADATA_SERVICE_ENDPOINT",
        ),
    ] {
        let (_, problems) = read_with(text, &variables);
        assert!(problems.contains(expected), "{problems}");
    }
}

#[test]
fn another_role_is_taken_with_the_credentials_that_are_there() {
    let config = good(
        "bucket: logs\nrole_arn: 'arn:aws:iam::123456789012:role/path/logs'\nexternal_id: 'a/b:c'\n\
         assume_role: {duration: 1h, expiry_window: 0s}",
    );
    let Source::Assumed(assume) = &config.credentials else { panic!("{:?}", config.credentials) };
    assert_eq!((&assume.by, assume.external_id.as_deref()), (&fixed("a", "b"), Some("a/b:c")));
    assert_eq!((assume.duration, assume.window), (Duration::from_hours(1), Duration::ZERO));
    assert_eq!(assume.service.to_string(), "https://sts.eu-x-1.amazonaws.com:443");
    assert_eq!((assume.region.as_str(), assume.session.as_str()), ("eu-x-1", "skidder"));
    let name = config.credentials.name();
    assert_eq!(name, "role `arn:aws:iam::123456789012:role/path/logs`, taken with access key `a`");

    let text = "bucket: logs\nregion: cn-north-1\nrole_arn: 'arn:aws-cn:iam::1:role/r'";
    let variables =
        [("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/x"), ("AWS_ROLE_SESSION_NAME", "me")];
    let (config, problems) = read_with(text, &variables);
    assert_eq!(problems, "");
    let Source::Assumed(assume) = config.unwrap().credentials else { panic!("{text}") };
    assert!(matches!(&assume.by, Source::Role(_)), "{:?}", assume.by);
    assert_eq!(assume.service.name, "sts.cn-north-1.amazonaws.com.cn");
    assert_eq!((assume.duration, assume.window), (Assume::DURATION, Assume::WINDOW));
    assert_eq!((assume.session.as_str(), assume.external_id), ("me", None));
    let service = ("AWS_ENDPOINT_URL_STS", "http://sts:80");
    let (config, _) = read_with(text, &[variables[0], service]);
    let Source::Assumed(assume) = config.unwrap().credentials else { panic!("{text}") };
    assert_eq!(assume.service.to_string(), "http://sts:80");
    let (config, problems) = read_with(text, &[variables[0], ("AWS_ENDPOINT_URL_STS", "ftp://x")]);
    assert!(config.is_none() && problems.contains("AWS_ENDPOINT_URL_STS"), "{problems}");
    // Without others there is nothing to take it with.
    let (config, problems) = read_with(text, &[("AWS_EC2_METADATA_DISABLED", "true")]);
    assert!(config.is_none() && problems.contains("has no credentials"), "{problems}");
}

#[test]
fn s3_mistakes_are_told() {
    let table = [
        ("", "`bucket`"),
        ("bucket: a/b", "3 to 63 letters"),
        ("bucket: 'arn:aws:s3:::logs'", "an ARN is not supported"),
        ("bucket: logs\nendpoint: minio:9000", "expected a URL"),
        ("bucket: logs\nendpoint: http://u:p@minio", "credentials stand in"),
        ("bucket: logs\ncompression: lz4", "`none`, `gzip` or `zstd`"),
        ("bucket: logs\ncompression_level: 10", "compression_level"),
        ("bucket: logs\ncompression: none\ncompression_level: 1", "leave it out"),
        ("bucket: logs\nkey_prefix: '%{[a'", "no closing"),
        ("bucket: logs\nfilename_extension: a/b", "letters, digits"),
        ("bucket: logs\nacl: mine", "`bucket-owner-full-control`"),
        ("bucket: logs\nstorage_class: 'a b'", "`STANDARD_IA`"),
        ("bucket: logs\nserver_side_encryption: rot13", "`aws:kms`"),
        ("bucket: logs\nssekms_key_id: k", "needs `server_side_encryption: aws:kms`"),
        (
            "bucket: logs\ntags: {a: 1, b: 1, c: 1, d: 1, e: 1, f: 1, g: 1, h: 1, i: 1, j: 1, k: 1}",
            "at most 10",
        ),
        ("bucket: logs\ntags: {'': 1}", "1 to 128"),
        ("bucket: logs\nbatch.timeout: 0s", "batch.timeout"),
        ("bucket: logs\nbatch.max_bytes: 6GB", "batch.max_bytes"),
        ("bucket: logs\nbatch.max_size: 1", "unknown setting `batch.max_size`"),
        ("bucket: logs\nworker: 65", "worker"),
        ("bucket: logs\nrole_arn: x", "expected `arn:aws:iam::ACCOUNT:role/NAME`"),
        ("bucket: logs\nrole_arn: 'arn:aws:iam::1:role/r'\nexternal_id: a", "expected 2 to 1224"),
        ("bucket: logs\nexternal_id: ab", "`external_id` needs `role_arn`"),
        ("bucket: logs\nassume_role.duration: 1h", "no effect without `role_arn`"),
        (
            "bucket: logs\nrole_arn: 'arn:aws:iam::1:role/r'\nassume_role.duration: 1m",
            "assume_role.duration",
        ),
        (
            "bucket: logs\nrole_arn: 'arn:aws:iam::1:role/r'\nassume_role.expiry_window: 15m",
            "must be shorter than `assume_role.duration`",
        ),
        ("bucket: logs\ncredential_process: x", "`credential_process`"),
        ("bucket: logs\nshared_credential_file: x", "both set"),
        ("bucket: logs\nnonsense: 1", "unknown setting `nonsense`"),
    ];
    for (text, expected) in table {
        let (_, problems) = read(text);
        assert!(problems.contains(expected), "{text}: {problems}");
    }
    for (text, expected) in [
        ("bucket: logs\naccess_key_id: a\nsecret_access_key: b", "`region` is not set"),
        ("bucket: logs\nendpoint: http://h", "AWS_ACCESS_KEY_ID"),
        ("bucket: logs\nregion: x\naccess_key_id: a", "needs `secret_access_key`"),
        ("bucket: logs\nregion: x\nsecret_access_key: a", "needs `access_key_id`"),
        ("bucket: logs\nregion: x\nsession_token: a", "needs `access_key_id`"),
        ("bucket: logs\nregion: x\nshared_credential_file: none", "cannot read `none`"),
    ] {
        let (config, problems) = read_with(text, &[]);
        assert!(config.is_none() && problems.contains(expected), "{text}: {problems}");
    }
    let error = S3::new(good("bucket: logs\nssl.enabled: false"), context()).unwrap_err();
    assert_eq!(error.setting(), "ssl.enabled");
    assert!(error.to_string().contains("needs TLS"), "{error}");
}
