//! `output.s3` from its section of the configuration.

use super::config::{Batch, Compression, Config};
use skidder_amazon::{CREDENTIALS, Source};
use skidder_config::{Group, Key, OneOf, Section, Size, settings};
use skidder_event::Format;
use skidder_net::{HTTPS, HostUrl, PROXY, ProxyChoice, encode_percent, read_https, usual_port};
use skidder_outputs::{
    BACKOFF, CodecConfig, Context, EVERY_OUTPUT, WITH_CODEC, read_backoff, timeout, workers,
};
use std::collections::BTreeMap;
use std::time::Duration;

/// Most bytes of `batch.max_bytes`: one request puts at most 5 GB.
const BATCH_BYTES_MAX: u64 = 5_000_000_000;
/// Most tags of an object.
const TAGS_MAX: usize = 10;

settings! {
    /// Settings of `output.s3`.
    pub static S3 = Group::new("output.s3", "Objects in a bucket of Amazon, or of a compatible server.")
        .include(&[&CREDENTIALS, &WITH_CODEC, &BACKOFF, &PROXY, &HTTPS, &EVERY_OUTPUT]);

    BUCKET: String = Key::new("bucket")
        .required()
        .noun("the name of a bucket")
        .about("its name, or the alias of an access point");
    REGION: String = Key::new("region")
        .default_words("`AWS_REGION`, `AWS_DEFAULT_REGION`")
        .about("of the bucket; `us-east-1` with `endpoint`");
    ENDPOINT: String = Key::new("endpoint")
        .default_words("Amazon's")
        .noun("a URL")
        .about("`http[s]://host[:port][/path]` of another server");
    PATH_STYLE: bool = Key::new("path_style")
        .default_words("`true` with `endpoint`, or a dot in `bucket`")
        .about("the bucket stands in the path; `false`: before the name of the host");
    KEY_PREFIX: String = Key::new("key_prefix").default(Config::KEY_PREFIX).noun("a format string").about(
        "format string: what keys begin with. Events with the same text share objects; up to 1000 are open",
    );
    EXTENSION: String = Key::new("filename_extension")
        .default_words("by codec and compression, as `.ndjson.gz`")
        .about("what keys end with");
    COMPRESSION: OneOf<Compression> = Key::one_of(
        "compression",
        &[
            ("none", Compression::None),
            ("gzip", Compression::Gzip(Config::GZIP_LEVEL)),
            ("zstd", Compression::Zstd(Config::ZSTD_LEVEL)),
        ],
    )
    .default("gzip")
    .about("`none`, `gzip`, `zstd`");
    COMPRESSION_LEVEL: u32 = Key::new("compression_level")
        .default_words("`6`; zstd: `3`")
        .noun("a level")
        .about("1 fast to 9 small; zstd: to 19");
    BATCH_BYTES: Size = Key::new("batch.max_bytes")
        .default(Config::BATCH_BYTES)
        .range(1 << 10, BATCH_BYTES_MAX)
        .about("an object is closed when it has about so many bytes, uncompressed: 1 KiB to 5 GB");
    BATCH_EVENTS: usize = Key::new("batch.max_events")
        .default(0)
        .noun("a number of events")
        .about("or so many events; 0: no bound");
    BATCH_TIMEOUT: Duration = Key::new("batch.timeout")
        .default(Config::BATCH_TIMEOUT)
        .range(Duration::from_millis(1), Duration::from_hours(24))
        .about("or when its first event is so old");
    STORAGE_CLASS: String =
        Key::new("storage_class").default_words("the bucket's").about("as `STANDARD_IA`");
    // https://docs.aws.amazon.com/AmazonS3/latest/userguide/acl-overview.html#canned-acl
    ACL: OneOf<&'static str> = Key::one_of(
        "acl",
        &[
            ("private", "private"),
            ("public-read", "public-read"),
            ("public-read-write", "public-read-write"),
            ("aws-exec-read", "aws-exec-read"),
            ("authenticated-read", "authenticated-read"),
            ("bucket-owner-read", "bucket-owner-read"),
            ("bucket-owner-full-control", "bucket-owner-full-control"),
            ("log-delivery-write", "log-delivery-write"),
        ],
    )
    .default_words("the bucket's")
    .about("as `bucket-owner-full-control`");
    ENCRYPTION: OneOf<&'static str> = Key::one_of(
        "server_side_encryption",
        &[("AES256", "AES256"), ("aws:kms", "aws:kms"), ("aws:kms:dsse", "aws:kms:dsse")],
    )
    .default_words("the bucket's")
    .about("`AES256`, `aws:kms`, `aws:kms:dsse`");
    KMS_KEY: String =
        Key::new("ssekms_key_id").default_words("the account's").about("key for `aws:kms`");
    TAGS: BTreeMap<String, String> = Key::new("tags").about("at most 10, name to value");
    WORKERS: usize =
        workers("a number of objects", 64).about("objects encoded and sent at once, 1 to 64");
    TIMEOUT: Duration = timeout(Config::TIMEOUT).about(
        "of connecting, and of one request with its answer: a slow line needs more, or smaller objects",
    );
}

impl Config {
    /// Reads `output.s3`; reports mistakes to the section's problems. `None` if there is one that leaves nothing to do.
    /// `variable` gives the value of one of the environment.
    pub fn read(
        section: &Section<'_>,
        context: &Context,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Option<Self> {
        section.declared_by(&S3);
        let bucket = section.get(&BUCKET).check(|name| bucket_name(name)).required();
        let endpoint = section.get(&ENDPOINT).try_map(endpoint);
        let has_endpoint = endpoint.is_set();
        let endpoint = endpoint.optional();
        let region = read_region(section, has_endpoint, &variable);
        // A name with dots has no certificate.
        let by_path = has_endpoint || bucket.contains('.');
        let path_style = section.get(&PATH_STYLE).or(by_path);
        let credentials = Source::read(section, (&region, !has_endpoint), &context.fs, &variable);
        let format = |text: String| Format::parse(&text).map_err(|error| error.to_string());
        let key_prefix = section.get(&KEY_PREFIX).try_map(format).value();
        let extension = section.get(&EXTENSION).check(|text| extension(text)).optional();
        let codec = CodecConfig::read(section, false);
        let compression = read_compression(section);
        let workers = section.get(&WORKERS).value();
        let (backoff_init, backoff_max) = read_backoff(section);
        let config = Self {
            batch: read_batch(section),
            headers: read_headers(section),
            timeout: section.get(&TIMEOUT).value(),
            backoff_init,
            backoff_max,
            proxy: ProxyChoice::read(section, &variable),
            tls: read_https(section),
            extension: extension.map(|text| {
                let is_whole = text.is_empty() || text.starts_with('.');
                if is_whole { text } else { format!(".{text}") }
            }),
            bucket,
            region,
            endpoint,
            path_style,
            key_prefix,
            credentials: credentials?,
            codec,
            compression,
            workers,
        };
        let is_whole = !config.bucket.is_empty()
            && !config.region.is_empty()
            && config.endpoint.is_some() == has_endpoint;
        is_whole.then_some(config)
    }
}

/// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html>; other servers also take upper case and `_`.
fn bucket_name(name: &str) -> Result<(), String> {
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    if name.starts_with("arn:") {
        let message = "an ARN is not supported: expected the name of the bucket, or the alias of the access point";
        return Err(message.to_owned());
    }
    if !(3..=63).contains(&name.len()) || !name.bytes().all(is_good) {
        return Err("expected 3 to 63 letters, digits, `-` and `.`".to_owned());
    }
    Ok(())
}

fn endpoint(text: String) -> Result<HostUrl, String> {
    if !text.contains("://") {
        return Err("expected a URL, as in `https://minio.example.com:9000`".to_owned());
    }
    let url = HostUrl::parse(&text, "", "", usual_port)?;
    if url.credentials.is_some() {
        return Err("credentials stand in `access_key_id` and `secret_access_key`".to_owned());
    }
    Ok(url)
}

fn read_region(
    section: &Section<'_>,
    has_endpoint: bool,
    variable: impl Fn(&str) -> Option<String>,
) -> String {
    let is_name = |name: &String| {
        let is_good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if name.is_empty() || !name.bytes().all(is_good) {
            return Err("expected the name of a region, as in `eu-central-1`".to_owned());
        }
        Ok(())
    };
    let setting = section.get(&REGION).check(is_name);
    let is_set = setting.is_set();
    let set = |name: &str| variable(name).filter(|text| is_name(text).is_ok());
    let usual = || set("AWS_REGION").or_else(|| set("AWS_DEFAULT_REGION"));
    match setting.optional() {
        Some(region) => region,
        None if is_set => String::new(),
        None if has_endpoint => usual().unwrap_or_else(|| Config::REGION.to_owned()),
        None => usual().unwrap_or_else(|| {
            let message = format!("`{}` is not set", section.path_of("region"));
            let hint = "the region of the bucket, as `eu-central-1`; or `endpoint`, for a server that is not Amazon's";
            section.problem("region", message, hint);
            String::new()
        }),
    }
}

/// Ends the name of every object.
fn extension(text: &str) -> Result<(), String> {
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    if text.len() > 64 || !text.bytes().all(is_good) {
        return Err("expected letters, digits, `.`, `-` and `_`, at most 64".to_owned());
    }
    Ok(())
}

fn read_compression(section: &Section<'_>) -> Compression {
    let compression = section.get(&COMPRESSION).value();
    let level = section.get(&COMPRESSION_LEVEL);
    match compression {
        Compression::Gzip(default) => {
            Compression::Gzip(level.range(1..=9).optional().unwrap_or(default))
        }
        Compression::Zstd(default) => {
            let level = level.range(1..=19).optional();
            Compression::Zstd(level.map_or(default, |level| level as i32))
        }
        Compression::None => {
            if level.is_set() {
                let message = "`compression_level` is set, and `compression` is `none`";
                section.problem("compression_level", message, "leave it out");
            }
            compression
        }
    }
}

fn read_batch(section: &Section<'_>) -> Batch {
    Batch {
        bytes: section.get(&BATCH_BYTES).value(),
        events: section.get(&BATCH_EVENTS).value(),
        timeout: section.get(&BATCH_TIMEOUT).value(),
    }
}

fn read_headers(section: &Section<'_>) -> Vec<(&'static str, String)> {
    let mut headers = Vec::new();
    let is_word = |text: &String| {
        let is_good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if text.is_empty() || !text.bytes().all(is_good) {
            return Err("expected a word, as in `STANDARD_IA`".to_owned());
        }
        Ok(())
    };
    let class = section.get(&STORAGE_CLASS).check(is_word).optional();
    headers.extend(class.map(|class| ("x-amz-storage-class", class)));
    let acl = section.get(&ACL).optional();
    headers.extend(acl.map(|acl| ("x-amz-acl", acl.to_owned())));
    let encryption = section.get(&ENCRYPTION).optional();
    let is_header = |text: &String| {
        let is_good = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        if is_good { Ok(()) } else { Err("expected the ID or ARN of a key".to_owned()) }
    };
    let key = section.get(&KMS_KEY).check(is_header).optional();
    if key.is_some() && !encryption.is_some_and(|word| word.starts_with("aws:kms")) {
        let message = "`ssekms_key_id` needs `server_side_encryption: aws:kms`";
        section.problem("ssekms_key_id", message, "");
    }
    headers.extend(encryption.map(|word| ("x-amz-server-side-encryption", word.to_owned())));
    headers.extend(key.map(|key| ("x-amz-server-side-encryption-aws-kms-key-id", key)));
    let tags = section.get(&TAGS).try_map(|tags| {
        if tags.len() > TAGS_MAX {
            return Err(format!("{} tags; an object has at most {TAGS_MAX}", tags.len()));
        }
        let mut text = String::new();
        for (name, value) in tags {
            if name.is_empty() || name.chars().count() > 128 || value.chars().count() > 256 {
                return Err(format!(
                    "tag `{name}`: a name has 1 to 128 letters, a value at most 256"
                ));
            }
            if !text.is_empty() {
                text.push('&');
            }
            encode_percent(&mut text, &name);
            text.push('=');
            encode_percent(&mut text, &value);
        }
        Ok(text)
    });
    let tags = tags.optional().filter(|tags| !tags.is_empty());
    headers.extend(tags.map(|tags| ("x-amz-tagging", tags)));
    headers
}

#[cfg(test)]
mod tests;
