//! Settings of the input `aws-s3`, as Filebeat has them (`x-pack/filebeat/input/awss3/config.go`).

mod backup;
mod selector;

use crate::AwsS3;
use crate::servers::{
    BucketArn, BucketName, Endpoint, Servers, check_bucket, check_region, provider_of,
};
pub(crate) use backup::Backup;
pub use selector::{AWS_S3_OBJECT, Selector};
use skidder_amazon::{CREDENTIALS, Provider, QueueUrl, Source, VISIBILITY_MAX, WAIT_MAX};
use skidder_aws::time_of;
use skidder_config::{Group, Key, Section, settings};
use skidder_net::{HTTPS, PROXY, ProxyChoice, read_client, read_https};
use skidder_os::{Fs, Timestamp};
use std::sync::Arc;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_hours(24);
/// The region of servers that have none, and of Amazon's when nothing names another.
const USUAL_REGION: &str = "us-east-1";

/// The problem where TLS is turned off, with its hint.
pub(crate) const TLS_OFF: (&str, &str) = (
    "the servers need TLS, but `ssl.enabled` is false",
    "leave it out, or set `endpoint` to a server without TLS",
);

settings! {
    /// Settings of `aws-s3`, without those of how objects are read ([`AWS_S3_OBJECT`]).
    pub static AWS_S3_INPUT = Group::new("input.aws-s3.places", "A queue with news of objects, or a bucket.")
        .include(&[&backup::AWS_S3_BACKUP, &CREDENTIALS, &PROXY, &HTTPS])
        .called_elsewhere(&[
            ("bucket", "bucket_arn", "`bucket_arn` for a bucket of Amazon's, `non_aws_bucket_name` for another"),
            ("bucket_name", "non_aws_bucket_name", "`bucket_arn` for a bucket of Amazon's, `non_aws_bucket_name` for another"),
            ("prefix", "bucket_list_prefix", ""),
            ("queue", "queue_url", ""),
        ]);

    QUEUE_URL: String = Key::new("queue_url").noun("the URL of a queue").about(
        "a queue of SQS with notifications of new objects: of S3, of EventBridge, or of either through SNS",
    );
    BUCKET_ARN: String = Key::new("bucket_arn")
        .noun("the ARN of a bucket")
        .about("a bucket of Amazon's that is listed again and again: `arn:aws:s3:::NAME`");
    ACCESS_POINT_ARN: String = Key::new("access_point_arn")
        .noun("the ARN of an access point")
        .about("the same through an access point: `arn:aws:s3:REGION:ACCOUNT:accesspoint/NAME`");
    NON_AWS_BUCKET_NAME: String = Key::new("non_aws_bucket_name")
        .noun("the name of a bucket")
        .about("a bucket of another server, at `endpoint`, that is listed");
    REGION: String = Key::new("region")
        .default_words("that of `queue_url` or `access_point_arn`, `default_region`, `AWS_REGION`, `us-east-1`")
        .about("of queue or bucket. *Differs*: of a bucket in another one, the server's answer is believed");
    DEFAULT_REGION: String =
        Key::new("default_region").default("").about("the region if nothing else names one");
    ENDPOINT: String = Key::new("endpoint").default_words("Amazon's").noun("a URL or a domain").about(
        "`http[s]://host[:port][/path]` of another server of S3; or the domain of a partition, as `amazonaws.com.cn`. \
         A queue is where its URL says",
    );
    PATH_STYLE: bool = Key::new("path_style")
        .default_words("`true` with a URL in `endpoint`, or a dot in the bucket's name")
        .about("the bucket stands in the path; `false`: before the name of the host");
    FIPS_ENABLED: bool =
        Key::new("fips_enabled").default(false).about("Amazon's servers for FIPS 140, as `s3-fips`");
    PROVIDER: String = Key::new("provider")
        .default_words("by the domain in `endpoint`")
        .about("`cloud.provider` of events, with `non_aws_bucket_name`");
    API_TIMEOUT: Duration = Key::new("api_timeout")
        .default(Duration::from_mins(2))
        .range(SECOND, DAY)
        .about("of a connection, of an answer, and of each piece of an object; longer than `sqs.wait_time`");
    NUMBER_OF_WORKERS: usize = Key::new("number_of_workers")
        .default(5)
        .range(1, WORKERS_MAX)
        .noun("a number of workers")
        .about("objects, or messages of a queue, read at once");
    MAX_NUMBER_OF_MESSAGES: usize = Key::new("max_number_of_messages")
        .range(1, WORKERS_MAX)
        .noun("a number of messages")
        .about("the former name of `number_of_workers`, which wins");
    VISIBILITY_TIMEOUT: Duration = Key::new("visibility_timeout")
        .default(Duration::from_mins(5))
        .range(SECOND, VISIBILITY_MAX)
        .about("how long a message is hidden from others, at most 12h; extended when half of it is over");
    WAIT_TIME: Duration = Key::new("sqs.wait_time")
        .default(WAIT_MAX)
        .range(SECOND, WAIT_MAX)
        .about("how long the server waits for messages, at most 20s");
    MAX_RECEIVE_COUNT: i64 = Key::new("sqs.max_receive_count")
        .default(5)
        .at_least(-1)
        .noun("a number of receipts")
        .about(
            "a message that fails when it is received so often is deleted, with an error in the log; `-1`: never. \
             *Differs*: one of a queue with a queue for dead letters is left to that",
        );
    SHUTDOWN_GRACE_TIME: Duration = Key::new("sqs.shutdown_grace_time")
        .default(Duration::from_secs(20))
        .range(Duration::ZERO, Duration::from_mins(10))
        .about(
            "how long a stop waits for the verdicts of messages that were read. *Differs*: 4s at most; what is left comes \
             again, and goes on where it was settled",
        );
    BUCKET_LIST_INTERVAL: Duration = Key::new("bucket_list_interval")
        .default(Duration::from_mins(2))
        .range(SECOND, Duration::from_hours(24 * 365))
        .about("pause between two listings of a bucket");
    BUCKET_LIST_PREFIX: String =
        Key::new("bucket_list_prefix").default("").about("what the names of objects begin with");
    LEXICOGRAPHICAL_ORDERING: bool = Key::new("lexicographical_ordering")
        .default(false)
        .about("no effect, with a notice: each listing is a complete one, which finds every new object");
    LEXICOGRAPHICAL_LOOKBACK_KEYS: usize = Key::new("lexicographical_lookback_keys")
        .default(100)
        .noun("a number of objects")
        .about("belongs to it");
    START_TIMESTAMP: String = Key::new("start_timestamp")
        .noun("a time, as in `2026-01-02T03:04:05Z`")
        .about("only objects that were changed later are read from a listing");
    IGNORE_OLDER: Duration = Key::new("ignore_older")
        .default(Duration::ZERO)
        .about("objects that were not changed for so long are not read; 0: off. The first listing with `start_timestamp` reads them");
}

/// Most workers.
const WORKERS_MAX: usize = 512;

/// Where the names of objects come from.
#[derive(Debug)]
pub(crate) enum Place {
    Queue(QueueSettings),
    Bucket(Arc<BucketSettings>),
}

/// A queue.
#[derive(Debug)]
pub(crate) struct QueueSettings {
    pub(crate) url: QueueUrl,
    pub(crate) visibility: Duration,
    pub(crate) wait: Duration,
    /// Nothing for never.
    pub(crate) receives_max: Option<u32>,
    /// How long a stop waits for verdicts.
    pub(crate) grace: Duration,
}

/// A bucket that is listed.
#[derive(Debug)]
pub(crate) struct BucketSettings {
    pub(crate) bucket: BucketName,
    /// As events show it.
    pub(crate) arn: String,
    pub(crate) interval: Duration,
    pub(crate) prefix: String,
    /// Objects must be younger.
    pub(crate) start: Option<Timestamp>,
    pub(crate) ignore_older: Option<Duration>,
}

/// What the input is run with.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) place: Place,
    pub(crate) servers: Servers,
    pub(crate) workers: usize,
    /// `cloud.provider`.
    pub(crate) provider: String,
    pub(crate) backup: Option<Backup>,
    /// At least one.
    pub(crate) selectors: Vec<Selector>,
}

/// Reads the settings of [`AWS_S3_INPUT`]; `variable` gives the value of one of the environment. `None`, and the problems are
/// reported, if something is wrong.
pub fn read(
    section: &Section<'_>,
    fs: &Arc<dyn Fs>,
    selectors: Vec<Selector>,
    variable: impl Fn(&str) -> Option<String>,
) -> Option<AwsS3> {
    let endpoint = section.get(&ENDPOINT).try_map(Endpoint::parse);
    let is_wrong = endpoint.is_wrong();
    let endpoint = endpoint.optional();
    let timeout = section.get(&API_TIMEOUT).value();
    let fips = section.get(&FIPS_ENABLED).value();
    let (place, of_place) = read_place(section, timeout)?;
    let region = read_region(section, of_place, &variable);
    let is_other = section.has(NON_AWS_BUCKET_NAME.name());
    check_servers(section, &place, endpoint.as_ref(), (is_other, fips));
    let provider = read_provider(section, endpoint.as_ref(), is_other);
    let backup = backup::read(section, &place);
    let workers = read_workers(section);
    let has_url = endpoint.as_ref().is_some_and(Endpoint::is_url);
    let source = Source::read(section, (&region, !has_url && !is_other), fs, &variable);
    if fips && section.has("role_arn") && variable("AWS_ENDPOINT_URL_STS").is_none() {
        let message = "the role is taken from Amazon's usual token service, which is none for FIPS";
        section.warning("role_arn", message, "set the variable AWS_ENDPOINT_URL_STS to that");
    }
    let proxy = ProxyChoice::read(section, &variable);
    let tls = read_https(section);
    let path_style = section.get(&PATH_STYLE).optional();
    let needs_tls = !matches!(&endpoint, Some(Endpoint::Url(url)) if !url.https)
        || matches!(&place, Place::Queue(queue) if queue.url.server.https);
    let tls = read_client(section, &tls, needs_tls, TLS_OFF, fs);
    let provider_of_keys = Provider::new(source?, proxy.clone(), Arc::clone(fs));
    let keys = provider_of_keys.map_err(|error| section.problem_named(error.setting(), &error));
    let servers = Servers {
        region,
        endpoint,
        path_style,
        fips,
        provider: Arc::new(keys.ok()?),
        tls: tls.ok()?,
        proxy,
        timeout,
    };
    if is_wrong || servers.region.is_empty() || selectors.is_empty() {
        return None;
    }
    let settings = Settings { place, servers, workers, provider, backup, selectors };
    Some(AwsS3::new(settings, Arc::clone(fs)))
}

/// The queue or bucket, and the region that its name has. `None`, and the problem is reported, if that is not clear.
fn read_place(section: &Section<'_>, timeout: Duration) -> Option<(Place, Option<String>)> {
    let keys = [&QUEUE_URL, &BUCKET_ARN, &ACCESS_POINT_ARN, &NON_AWS_BUCKET_NAME];
    let set: Vec<&str> =
        keys.iter().map(|key| key.name()).filter(|name| section.has(name)).collect();
    let queue = section.get(&QUEUE_URL).try_map(|text| QueueUrl::parse(&text)).optional();
    let arn = |key: &Key<String>| {
        let setting = section.get(key).try_map(|text| Ok((BucketArn::parse(&text)?, text)));
        setting.optional()
    };
    let (bucket, point) = (arn(&BUCKET_ARN), arn(&ACCESS_POINT_ARN));
    let other = section.get(&NON_AWS_BUCKET_NAME).check(|name| check_bucket(name)).optional();
    let listing = read_listing(section);
    let queue_settings = read_queue(section, timeout);
    match set[..] {
        [_] => {}
        [] => {
            let hint = "`queue_url` for a queue with notifications, `bucket_arn` for a bucket that is listed";
            section.missing(QUEUE_URL.name(), "is not set, nor is a bucket", hint);
            return None;
        }
        [first, second, ..] => {
            let message = format!("`{first}` and `{second}` are both set");
            section.problem(second, message, "write an input for each");
            return None;
        }
    }
    if section.has(QUEUE_URL.name()) {
        let url = queue?;
        warn_of(section, &LISTING_ONLY, "a queue");
        let region = url.region.clone();
        return Some((Place::Queue(QueueSettings { url, ..queue_settings? }), region));
    }
    warn_of(section, &QUEUE_ONLY, "a bucket");
    let other = other.map(|name| {
        let arn = BucketArn { bucket: BucketName::Bucket(name.clone()), region: None };
        (arn, name)
    });
    let (BucketArn { bucket, region }, arn) = bucket.or(point).or(other)?;
    Some((Place::Bucket(Arc::new(BucketSettings { bucket, arn, ..listing })), region))
}

/// Settings of a queue only.
const QUEUE_ONLY: [&str; 5] = [
    "visibility_timeout",
    "sqs.wait_time",
    "sqs.max_receive_count",
    "sqs.shutdown_grace_time",
    "max_number_of_messages",
];

/// Settings of a bucket only.
const LISTING_ONLY: [&str; 5] = [
    "bucket_list_interval",
    "bucket_list_prefix",
    "start_timestamp",
    "ignore_older",
    "lexicographical_ordering",
];

fn warn_of(section: &Section<'_>, names: &[&str], place: &str) {
    for name in names.iter().filter(|name| section.has(name)) {
        let message = format!("`{name}` has no effect: this input reads {place}");
        section.warning(name, message, "leave it out");
    }
}

/// What a listing has, without its bucket.
fn read_listing(section: &Section<'_>) -> BucketSettings {
    let time = |text: String| {
        let time = time_of(&text);
        time.ok_or_else(|| "expected a time, as in `2026-01-02T03:04:05Z`".to_owned())
    };
    if section.get(&LEXICOGRAPHICAL_ORDERING).value() {
        let message = "no effect: each listing is a complete one, which finds every new object";
        let hint = "leave it out; a long listing costs a request for 1000 objects";
        section.warning(LEXICOGRAPHICAL_ORDERING.name(), message, hint);
    }
    // Only with the one before.
    section.get(&LEXICOGRAPHICAL_LOOKBACK_KEYS).value();
    let ignore_older = section.get(&IGNORE_OLDER).value();
    BucketSettings {
        bucket: BucketName::Bucket(String::new()),
        arn: String::new(),
        interval: section.get(&BUCKET_LIST_INTERVAL).value(),
        prefix: section.get(&BUCKET_LIST_PREFIX).value(),
        start: section.get(&START_TIMESTAMP).try_map(time).optional(),
        ignore_older: (!ignore_older.is_zero()).then_some(ignore_older),
    }
}

/// What a queue has, without its URL.
fn read_queue(section: &Section<'_>, timeout: Duration) -> Option<QueueSettings> {
    let wait = whole_seconds(section.get(&WAIT_TIME).value());
    if timeout < wait && section.has(QUEUE_URL.name()) {
        let message = "`api_timeout` is shorter than `sqs.wait_time`";
        section.problem(API_TIMEOUT.name(), message, "set it to the double of `sqs.wait_time`");
    }
    let receives_max = section.get(&MAX_RECEIVE_COUNT).value();
    let url = QueueUrl::parse("https://sqs.us-east-1.amazonaws.com/0/none").ok()?;
    Some(QueueSettings {
        url,
        visibility: whole_seconds(section.get(&VISIBILITY_TIMEOUT).value()),
        wait,
        receives_max: u32::try_from(receives_max).ok().filter(|number| *number > 0),
        grace: section.get(&SHUTDOWN_GRACE_TIME).value(),
    })
}

/// As the server counts.
fn whole_seconds(span: Duration) -> Duration {
    Duration::from_secs(span.as_secs())
}

fn read_workers(section: &Section<'_>) -> usize {
    let workers = section.get(&NUMBER_OF_WORKERS);
    let is_set = workers.is_set();
    let former = section.get(&MAX_NUMBER_OF_MESSAGES).optional();
    let workers = workers.value();
    former.filter(|_| !is_set).unwrap_or(workers)
}

/// What does not go together.
fn check_servers(
    section: &Section<'_>,
    place: &Place,
    endpoint: Option<&Endpoint>,
    (is_other, fips): (bool, bool),
) {
    let has_url = endpoint.is_some_and(Endpoint::is_url);
    if is_other && !has_url && !section.has(ENDPOINT.name()) {
        let hint = "as in `endpoint: https://minio.example.com:9000`";
        section.missing(ENDPOINT.name(), "is not set, and `non_aws_bucket_name` is", hint);
    }
    if fips && (is_other || has_url) {
        let message = "`fips_enabled` is about Amazon's servers, and `endpoint` is another one";
        section.problem(FIPS_ENABLED.name(), message, "leave one of them out");
    }
    let is_point = matches!(
        place,
        Place::Bucket(from) if matches!(from.bucket, BucketName::AccessPoint { .. })
    );
    if is_point && has_url {
        let message = "an access point is Amazon's, and `endpoint` is another server";
        section.problem(ENDPOINT.name(), message, "leave `endpoint` out");
    }
}

fn read_provider(section: &Section<'_>, endpoint: Option<&Endpoint>, is_other: bool) -> String {
    let provider = section.get(&PROVIDER).optional().filter(|name| !name.is_empty());
    if provider.is_some() && !is_other {
        let message = "`provider` can be set only with `non_aws_bucket_name`";
        section.problem(PROVIDER.name(), message, "leave it out");
    }
    // Of a queue it is Amazon's, whatever stands in for that in a test.
    let usual = if is_other { provider_of(endpoint) } else { "aws" };
    provider.unwrap_or_else(|| usual.to_owned())
}

/// The region; empty after a mistake, which is reported.
fn read_region(
    section: &Section<'_>,
    of_place: Option<String>,
    variable: &impl Fn(&str) -> Option<String>,
) -> String {
    let setting = section.get(&REGION).check(|name| check_region(name));
    let is_wrong = setting.is_wrong();
    let default = section.get(&DEFAULT_REGION);
    let default = default.check(|name| if name.is_empty() { Ok(()) } else { check_region(name) });
    let default = default.value();
    let region = setting.optional();
    if is_wrong {
        return String::new();
    }
    let set = |name: &str| variable(name).filter(|text| check_region(text).is_ok());
    region
        .or(of_place)
        .or_else(|| (!default.is_empty()).then_some(default))
        .or_else(|| set("AWS_REGION"))
        .or_else(|| set("AWS_DEFAULT_REGION"))
        .unwrap_or_else(|| USUAL_REGION.to_owned())
}

#[cfg(test)]
mod tests;
