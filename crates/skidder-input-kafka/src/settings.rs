//! Settings of the input `kafka`. Names and defaults are Filebeat's (`filebeat/input/kafka/config.go`).

use crate::Kafka;
use crate::assign::Strategy;
use skidder_config::{Any, Group, Key, OneOf, Part, Secret, Section, Size, settings};
use skidder_kafka::connect::{DialSettings, Dialer};
use skidder_kafka::login::{Credentials, Mechanism, host};
use skidder_kafka::topic;
use skidder_kafka::version::Version;
use skidder_os::Fs;
use skidder_parse::chain::Chain;
use skidder_tls::{SSL, TlsClient, TlsSettings};
use std::sync::Arc;
use std::time::Duration;

const MILLISECOND: Duration = Duration::from_millis(1);
/// The protocol has 31 bits for milliseconds.
const SPAN_MAX: Duration = Duration::from_hours(24 * 24);
/// Most bytes of a partition in an answer, beside a single batch that is larger.
const FETCH_BYTES_MAX: u64 = 32 << 20;

mod rebalance {
    use super::*;

    settings! {
        /// `rebalance`.
        pub(super) static REBALANCE =
            Group::new("input.kafka.rebalance", "How partitions are distributed.").inline();

        pub(super) STRATEGY: OneOf<Strategy> = Key::one_of("strategy", &Strategy::WORDS)
            .default("range")
            .about("`range`, `roundrobin` or `sticky`; the same for all members of the group");
        pub(super) TIMEOUT: Duration = Key::new("timeout")
            .default(Duration::from_mins(1))
            .range(MILLISECOND, SPAN_MAX)
            .about(
                "how long the group waits for its members when it is distributed anew; for half of that a member waits \
                 for verdicts before it gives its partitions up",
            );
        pub(super) MAX_RETRIES: u32 = Key::new("max_retries")
            .default(4)
            .noun("a number of tries")
            .about(
                "so often a member tries to join at the pace of `rebalance.retry_backoff`, as it does while the group has \
                 no coordinator, then of `connect_backoff`",
            );
        pub(super) RETRY_BACKOFF: Duration = Key::new("retry_backoff")
            .default(Duration::from_secs(2))
            .about("pause between these tries");
    }
}

/// The hint for a wrong `initial_offset`.
const OFFSETS: &str = "Kafka's `earliest` is `oldest`, and `latest` is `newest`";

settings! {
    /// Settings of `kafka`, but for those of parsers.
    pub static KAFKA_INPUT = Group::new("input.kafka.consumer", "Records of topics of Kafka.").called_elsewhere(&[
        ("auto_offset_reset", "initial_offset", "did you mean `initial_offset`, with `oldest` or `newest`?"),
        // `bootstrap.servers`.
        ("bootstrap", "hosts", ""),
        ("bootstrap_servers", "hosts", ""),
        ("brokers", "hosts", ""),
        ("consumer_group", "group_id", ""),
        ("group", "group_id", ""),
        ("port", "hosts", "it stands in `hosts`, as in `[\"localhost:9092\"]`"),
        ("sasl.password", "password", ""),
        ("sasl.user", "username", ""),
        ("sasl.username", "username", ""),
        ("servers", "hosts", ""),
        ("tls", "ssl", ""),
        ("user", "username", ""),
    ]);

    HOSTS: Vec<String> = Key::new("hosts").filled()
        .required()
        .noun("a list of brokers, as in `[\"localhost:9092\"]`")
        .about("`host[:9092]`, brokers that name the others");
    TOPICS: Vec<String> = Key::new("topics").filled()
        .required()
        .noun("a list of topics")
        .about("topics to read; one that is not there is waited for");
    GROUP_ID: String = Key::new("group_id").required().about(
        "the consumer group: processes with the same one share the partitions, and go on where it has committed",
    );
    GROUP_INSTANCE_ID: String = Key::new("group_instance_id").default("").about(
        "static membership: a process that is back within `session_timeout` gets its partitions back without a \
         rebalance; each process has its own. Needs `version: 2.3.0`",
    );
    CLIENT_ID: String = Key::new("client_id").default("filebeat").about("how brokers know us, in their logs and quotas");
    VERSION: String = Key::new("version").default("2.1.0").about(
        "from `0.8.2.0` on; brokers are asked for their versions (0.11 or later), this decides what is used: \
         timestamps from 0.10, headers from 0.11, `group_instance_id` from 2.3",
    );
    INITIAL_OFFSET: OneOf<bool> = Key::one_of("initial_offset", &[("oldest", false), ("newest", true)])
        .default("oldest")
        .about("where a partition begins of which the group has committed nothing: `oldest`, `newest`");
    ISOLATION_LEVEL: OneOf<bool> =
        Key::one_of("isolation_level", &[("read_uncommitted", false), ("read_committed", true)])
            .default("read_uncommitted")
            .about("`read_committed`: no records of transactions that are under way or were aborted");
    CONNECT_BACKOFF: Duration = Key::new("connect_backoff")
        .default(Duration::from_secs(30))
        .about("pause when no broker can be reached; up to eight times as long when that lasts");
    CONSUME_BACKOFF: Duration = Key::new("consume_backoff")
        .default(Duration::from_secs(2))
        .about("pause before partitions that could not be read are tried again");
    WAIT_CLOSE: Duration = Key::new("wait_close")
        .default(Duration::from_secs(2))
        .about("how long a stop waits for verdicts, to commit them");
    MAX_WAIT_TIME: Duration = Key::new("max_wait_time")
        .default(Duration::from_millis(250))
        .range(MILLISECOND, SPAN_MAX)
        .about("how long a broker waits until it has `fetch.min`");
    SESSION_TIMEOUT: Duration = Key::new("session_timeout")
        .default(Duration::from_secs(10))
        .range(MILLISECOND, SPAN_MAX)
        .about("a member without a heartbeat for so long is expelled, and others get its partitions");
    HEARTBEAT_INTERVAL: Duration = Key::new("heartbeat_interval")
        .default(Duration::from_secs(3))
        .range(MILLISECOND, SPAN_MAX)
        .about("how often a member sends one; at most a third of `session_timeout`");
    TIMEOUT: Duration = Key::new("timeout")
        .default(Duration::from_secs(30))
        .range(Duration::from_millis(10), Duration::from_mins(5))
        .about("of connecting, of a login, of an answer");
    KEEP_ALIVE: Duration = Key::new("keep_alive")
        .default(Duration::ZERO)
        .about("more than 0: the system keeps connections alive, at its own pace");
    FETCH_MIN: Size = Key::new("fetch.min")
        .default(1)
        .range(1, i32::MAX as u64)
        .about("bytes that a broker waits for");
    FETCH_DEFAULT: Size = Key::new("fetch.default")
        .default(1 << 20)
        .range(1, FETCH_BYTES_MAX)
        .about("bytes of a partition in an answer, and memory for each broker; a batch that is larger comes nevertheless");
    FETCH_MAX: Size = Key::new("fetch.max")
        .default(0)
        .range(0, i32::MAX as u64)
        .about("the most that `fetch.default` may be; 0: no bound");
    REBALANCE: Part = Key::part("rebalance", &rebalance::REBALANCE).about("how partitions are distributed");
    EXPAND: String = Key::new("expand_event_list_from_field").default("").about(
        "a field of records of JSON with a list: each item is an event, as it was written. A record without such a list \
         is sent as it is, with a warning",
    );
    USERNAME: String = Key::new("username").default("").about("a login by SASL, with `password`");
    PASSWORD: Secret = Key::new("password").about("of `username`");
    MECHANISM: OneOf<Mechanism> = Key::one_of("sasl.mechanism", &Mechanism::WORDS)
        .ignore_case()
        .default_words("`PLAIN`")
        .noun("PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512")
        .about("also `SCRAM-SHA-256`, `SCRAM-SHA-512`");
    KERBEROS: Any = Key::new("kerberos").about(
        "refused: this input has no such login. Use `username`, or certificates",
    );
    TLS: Part = Key::part("ssl", &SSL).about("[TLS](outputs.md#ssl), as in outputs; off without a section `ssl`");
}

/// What the tasks of the input are run with.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) hosts: Vec<String>,
    pub(crate) topics: Vec<String>,
    pub(crate) group_id: String,
    pub(crate) group_instance_id: Option<String>,
    pub(crate) timestamps: bool,
    pub(crate) headers: bool,
    pub(crate) from_newest: bool,
    pub(crate) read_committed: bool,
    pub(crate) connect_backoff: Duration,
    pub(crate) consume_backoff: Duration,
    pub(crate) wait_close: Duration,
    pub(crate) max_wait: Duration,
    pub(crate) session_timeout: Duration,
    pub(crate) heartbeat_interval: Duration,
    pub(crate) fetch_min: i32,
    pub(crate) fetch_bytes: i32,
    pub(crate) strategy: Strategy,
    pub(crate) rebalance_timeout: Duration,
    pub(crate) rebalance_retries: u32,
    pub(crate) rebalance_backoff: Duration,
    pub(crate) expand_field: Option<String>,
    pub(crate) parsers: Chain,
    pub(crate) message_max_bytes: usize,
}

impl Settings {
    /// Bytes of lines beyond which a group is ended that is not complete.
    pub(crate) fn group_bytes_max(&self) -> usize {
        let group = usize::try_from(self.parsers.group_bytes_max()).unwrap_or(usize::MAX);
        group.saturating_add(2 * self.message_max_bytes)
    }
}

/// Reads the settings of [`KAFKA_INPUT`]; `parsers` are read already, and cut messages at `message_max_bytes`. `None`,
/// and the problems are reported, if something is wrong.
pub fn read(
    section: &Section<'_>,
    fs: &Arc<dyn Fs>,
    (parsers, message_max_bytes): (Chain, usize),
) -> Option<Kafka> {
    if section.get(&KERBEROS).optional().is_some() && section.bool("kerberos.enabled").or(true) {
        let message = "this input has no Kerberos";
        section.problem(
            "kerberos",
            message,
            "use `username` and `password`, or a certificate in `ssl`",
        );
    }
    let hosts = section.get(&HOSTS).try_each(host).at_least_one("broker").required();
    let topics = section.get(&TOPICS).try_each(topic_name).at_least_one("topic").required();
    let named =
        |text: &String| if text.is_empty() { Err("it needs a name".to_owned()) } else { Ok(()) };
    let group_id = section.get(&GROUP_ID).check(named).required();
    let version = section.get(&VERSION).try_map(|text| Version::parse(&text)).value();
    let group_instance_id =
        Some(section.get(&GROUP_INSTANCE_ID).value()).filter(|id| !id.is_empty());
    if group_instance_id.is_some() && version < Version::STATIC_MEMBERS {
        let message = "`group_instance_id` needs `version: 2.3.0` or later";
        section.problem("group_instance_id", message, "set `version`, if the brokers are as new");
    }
    let session_timeout = section.get(&SESSION_TIMEOUT).value();
    let heartbeat_interval = section.get(&HEARTBEAT_INTERVAL).value();
    if heartbeat_interval >= session_timeout {
        let message = "`heartbeat_interval` must be shorter than `session_timeout`";
        section.problem("heartbeat_interval", message, "set it to a third of `session_timeout`");
    }
    let dialer = read_dialer(section, fs);
    let (fetch_min, fetch_bytes) = read_fetch(section);
    let rebalance = section.part(&REBALANCE);
    let expand = section.get(&EXPAND).value();
    let settings = Settings {
        hosts,
        topics,
        group_id,
        group_instance_id,
        timestamps: version >= Version::TIMESTAMPS,
        headers: version >= Version::HEADERS,
        from_newest: section.get(&INITIAL_OFFSET).hint(OFFSETS).value(),
        read_committed: section.get(&ISOLATION_LEVEL).value(),
        connect_backoff: section.get(&CONNECT_BACKOFF).value(),
        consume_backoff: section.get(&CONSUME_BACKOFF).value(),
        wait_close: section.get(&WAIT_CLOSE).value(),
        max_wait: section.get(&MAX_WAIT_TIME).value(),
        session_timeout,
        heartbeat_interval,
        fetch_min,
        fetch_bytes,
        strategy: rebalance.get(&rebalance::STRATEGY).value(),
        rebalance_timeout: rebalance.get(&rebalance::TIMEOUT).value(),
        rebalance_retries: rebalance.get(&rebalance::MAX_RETRIES).value(),
        rebalance_backoff: rebalance.get(&rebalance::RETRY_BACKOFF).value(),
        expand_field: Some(expand).filter(|field| !field.is_empty()),
        parsers: parsers.keeping_message(),
        message_max_bytes,
    };
    rebalance.finish();
    if settings.hosts.is_empty() || settings.topics.is_empty() || settings.group_id.is_empty() {
        return None;
    }
    let address = format!("{} {}", settings.hosts.join(","), settings.group_id);
    Some(Kafka { settings: Arc::new(settings), dialer: dialer?, address })
}

/// The name of a topic; the error ends the sentence "`topics[0]` is …; ".
fn topic_name(text: &str) -> Result<String, String> {
    if topic::is_name(text.as_bytes()) {
        return Ok(text.to_owned());
    }
    if text.contains(['*', '^', '$', '|', '[', '(']) {
        return Err(
            "expected the name of a topic; patterns are not supported, name each topic".to_owned()
        );
    }
    let most = topic::NAME_BYTES_MAX;
    Err(format!(
        "a topic has letters, digits, `.`, `_` and `-`, at most {most}, and is not `.` or `..`"
    ))
}

/// `fetch.min`, and the bytes of a partition in an answer.
fn read_fetch(section: &Section<'_>) -> (i32, i32) {
    let (min, default) = (section.get(&FETCH_MIN).value(), section.get(&FETCH_DEFAULT).value());
    let max = section.get(&FETCH_MAX).value();
    let is_bounded = max != 0 && max < default;
    let (key, bytes) = if is_bounded { (&FETCH_MAX, max) } else { (&FETCH_DEFAULT, default) };
    if min > bytes {
        let message = format!(
            "`{}`, {min}, is above `{}`, {bytes}, which is all that a partition has in an answer: brokers wait for \
             `max_wait_time` before most answers",
            section.path_of(FETCH_MIN.name()),
            section.path_of(key.name())
        );
        section.warning(FETCH_MIN.name(), message, format!("set it to at most {bytes}"));
    }
    (min as i32, bytes as i32)
}

/// How to connect. `None`, and the problem is reported, if something is wrong.
fn read_dialer(section: &Section<'_>, fs: &Arc<dyn Fs>) -> Option<Arc<Dialer>> {
    let credentials = read_credentials(section);
    let of = DialSettings {
        client_id: section.get(&CLIENT_ID).value(),
        timeout: section.get(&TIMEOUT).value(),
        keep_alive: !section.get(&KEEP_ALIVE).value().is_zero(),
    };
    let tls = read_tls(section, fs).ok()?;
    Some(Arc::new(Dialer::new(tls, credentials, of)))
}

/// The client of TLS, if there is a section. An error is reported already.
fn read_tls(section: &Section<'_>, fs: &Arc<dyn Fs>) -> Result<Option<Arc<TlsClient>>, ()> {
    let tls = section.optional_part(&TLS).map(|ssl| TlsSettings::read(&ssl));
    let Some(tls) = tls.filter(|tls| tls.enabled) else { return Ok(None) };
    match TlsClient::new(&tls, Arc::clone(fs)) {
        Ok(client) => Ok(Some(client)),
        Err(error) => {
            error.report(section);
            Err(())
        }
    }
}

fn read_credentials(section: &Section<'_>) -> Option<Credentials> {
    let username = section.get(&USERNAME).value();
    let password = section.get(&PASSWORD).optional().unwrap_or_default();
    let mechanism = section.get(&MECHANISM).optional();
    if username.is_empty() {
        let unused = [("sasl.mechanism", mechanism.is_some()), ("password", !password.is_empty())];
        if let Some((name, _)) = unused.into_iter().find(|(_, is_set)| *is_set) {
            let message =
                format!("without `username` there is no login, and `{name}` does nothing");
            section.warning(name, message, "set `username` and `password`");
        }
        return None;
    }
    if password.is_empty() {
        section.problem("username", "`username` needs `password`", "");
    }
    Some(Credentials { username, password, mechanism: mechanism.unwrap_or(Mechanism::Plain) })
}

#[cfg(test)]
mod tests;
