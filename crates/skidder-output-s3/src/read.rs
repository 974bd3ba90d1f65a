//! `output.s3` from its section of the configuration.

use super::config::{Batch, Compression, Config};
use super::credentials::Source;
use super::target::usual_port;
use skidder_aws::escape;
use skidder_config::Section;
use skidder_event::Format;
use skidder_net::{HostUrl, ProxyChoice};
use skidder_outputs::{CodecConfig, Context, read_workers};
use skidder_tls::TlsSettings;
use std::time::Duration;

/// Bounds of `batch.max_bytes`: one request puts at most 5 GB.
const BATCH_BYTES: std::ops::RangeInclusive<u64> = 1024..=5_000_000_000;
/// Most tags of an object.
const TAGS_MAX: usize = 10;
/// ACLs that have names (<https://docs.aws.amazon.com/AmazonS3/latest/userguide/acl-overview.html#canned-acl>).
const ACLS: [&str; 8] = [
    "private",
    "public-read",
    "public-read-write",
    "aws-exec-read",
    "authenticated-read",
    "bucket-owner-read",
    "bucket-owner-full-control",
    "log-delivery-write",
];

impl Config {
    /// Reads `output.s3`; mistakes are told to the section's problems. `None` if there is one that leaves nothing to do.
    /// `variable` gives the value of one of the environment.
    pub fn read(
        section: &Section<'_>,
        context: &Context,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Option<Self> {
        let advice = "objects are sent until they are accepted";
        section.deprecated(&["max_retries"], advice);
        let bucket =
            section.string("bucket").named("the name of a bucket").check(|name| bucket_name(name));
        let bucket = bucket.required();
        let endpoint = section.string("endpoint").named("a URL").try_map(endpoint);
        let has_endpoint = endpoint.is_set();
        let endpoint = endpoint.optional();
        let region = read_region(section, has_endpoint, &variable);
        // A name with dots has no certificate.
        let by_path = has_endpoint || bucket.contains('.');
        let path_style = section.bool("path_style").or(by_path);
        let credentials = Source::read(section, (&region, !has_endpoint), &context.fs, &variable);
        let format = |text: String| Format::parse(&text).map_err(|error| error.to_string());
        let key_prefix = section.string("key_prefix").named("a format string").try_map(format);
        let default = Format::parse(Self::KEY_PREFIX).expect("the default is a format string");
        let key_prefix = key_prefix.optional().unwrap_or(default);
        let extension =
            section.string("filename_extension").check(|text| extension(text)).optional();
        let codec = CodecConfig::read(section, false);
        let compression = read_compression(section);
        let workers = read_workers(section, "a number of objects", 64);
        let positive = Duration::from_millis(1)..;
        let config = Self {
            batch: read_batch(section),
            headers: read_headers(section),
            timeout: section.duration("timeout").range(positive.clone()).or(Self::TIMEOUT),
            backoff_init: section
                .duration("backoff.init")
                .range(positive.clone())
                .or(Self::BACKOFF_INIT),
            backoff_max: section.duration("backoff.max").range(positive).or(Self::BACKOFF_MAX),
            proxy: ProxyChoice::read(section, &variable),
            tls: TlsSettings::read(&section.section("ssl")),
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
    let setting = section.string("region").check(is_name);
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
    let gzip = Compression::Gzip(Config::GZIP_LEVEL);
    let zstd = Compression::Zstd(Config::ZSTD_LEVEL);
    let words = [("none", Compression::None), ("gzip", gzip), ("zstd", zstd)];
    let compression = section.one_of("compression", &words).or(gzip);
    let level = section.u32("compression_level").named("a level");
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
    let batch = section.section("batch");
    let read = Batch {
        bytes: batch.size("max_bytes").range(BATCH_BYTES).or(Config::BATCH_BYTES),
        events: batch.usize("max_events").named("a number of events").or(0_usize),
        timeout: batch
            .duration("timeout")
            .range(Duration::from_millis(1)..=Duration::from_hours(24))
            .or(Config::BATCH_TIMEOUT),
    };
    batch.finish();
    read
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
    let class = section.string("storage_class").check(is_word).optional();
    headers.extend(class.map(|class| ("x-amz-storage-class", class)));
    let acls = ACLS.map(|acl| (acl, acl));
    let acl = section.one_of("acl", &acls);
    if acl.is_set() {
        headers.extend(acl.optional().map(|acl| ("x-amz-acl", acl.to_owned())));
    }
    let words = ["AES256", "aws:kms", "aws:kms:dsse"].map(|word| (word, word));
    let encryption = section.one_of("server_side_encryption", &words).optional();
    let is_header = |text: &String| {
        let is_good = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        if is_good { Ok(()) } else { Err("expected the ID or ARN of a key".to_owned()) }
    };
    let key = section.string("ssekms_key_id").check(is_header).optional();
    if key.is_some() && !encryption.is_some_and(|word| word.starts_with("aws:kms")) {
        let message = "`ssekms_key_id` needs `server_side_encryption: aws:kms`";
        section.problem("ssekms_key_id", message, "");
    }
    headers.extend(encryption.map(|word| ("x-amz-server-side-encryption", word.to_owned())));
    headers.extend(key.map(|key| ("x-amz-server-side-encryption-aws-kms-key-id", key)));
    let tags = section.string_map("tags").try_map(|tags| {
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
            escape(&mut text, &name, None);
            text.push('=');
            escape(&mut text, &value, None);
        }
        Ok(text)
    });
    let tags = tags.optional().filter(|tags| !tags.is_empty());
    headers.extend(tags.map(|tags| ("x-amz-tagging", tags)));
    headers
}

#[cfg(test)]
mod tests;
