//! Settings of the input `mqtt`. Names and defaults are Filebeat's (`filebeat/input/mqtt/config.go`), but for those of ours.

use super::decode::Version;
use super::{Mqtt, filter};
use crate::Context;
use crate::common::{EVERY_INPUT, begin};
use skidder_config::{Group, Key, OneOf, Part, Secret, Section, Size, settings};
use skidder_input::Input;
use skidder_net::{Host, Route, WithoutTls, read_credentials, read_host};
use skidder_os::Fs;
use skidder_tls::{SSL, TlsClient, TlsSettings};
use std::sync::Arc;
use std::time::Duration;

/// Ports of brokers, without and with TLS.
const PORT: u16 = 1883;
const PORT_TLS: u16 = 8883;

/// `max_message_size`.
const MESSAGE_BYTES_MAX: u64 = 20 << 20;

/// Most that `max_message_size` can be: no packet is longer.
const MESSAGE_BYTES_LIMIT: u64 = 256 << 20;

/// `receive_maximum`.
const RECEIVE_MAXIMUM: u64 = 1000;

/// Lengths of texts have 16 bits.
const TEXT_BYTES_MAX: usize = u16::MAX as usize;

settings! {
    /// Settings of `mqtt`.
    pub static MQTT = Group::new("input.mqtt", "Messages of topics of an MQTT broker.")
        .include(&[&EVERY_INPUT])
        .called_elsewhere(&[
            ("address", "hosts", ""),
            ("broker", "hosts", ""),
            ("brokers", "hosts", ""),
            ("max_backoff", "backoff.max", ""),
            ("max_bytes", "max_message_size", ""),
            ("port", "hosts", "it stands in `hosts`, as in `[\"tcp://localhost:1883\"]`"),
            ("servers", "hosts", ""),
            ("tls", "ssl", ""),
            ("topic", "topics", ""),
            ("url", "hosts", ""),
            ("user", "username", ""),
        ]);

    HOSTS: Vec<String> = Key::new("hosts").filled()
        .required()
        .noun("a list of brokers, as in `[\"tcp://localhost:1883\"]`")
        .about(
            "`tcp://` or `ssl://` (also `mqtt://`, `tls://`, `mqtts://`; none: `tcp://`), `host[:port]` with 1883 or 8883; \
             the first that takes the connection",
        );
    TOPICS: Vec<String> = Key::<Vec<String>>::new("topics")
        .default(&["#"])
        .noun("a list of topics")
        .about("topics to subscribe to, with `+` and `#`; `$share/GROUP/TOPIC` is shared with the others of the group");
    QOS: u64 = Key::new("qos")
        .default(0)
        .range(0, 2)
        .noun("a quality of service")
        .about("at most, of what is received: 0 at most once, 1 at least once, 2 once while skidder runs");
    CLIENT_ID: String = Key::new("client_id")
        .default("filebeat")
        .about("the name of the session; each process needs its own, since brokers end the older connection of a name");
    USERNAME: String = Key::new("username").default("").about("a login, with `password`; one in the URL wins");
    PASSWORD: Secret = Key::new("password").about("of `username`");
    CLEAN_SESSION: bool = Key::new("clean_session").default(true).deletes_nothing().about(
        "`false`: the broker keeps messages of QoS 1 and 2 while skidder is gone, and until they have a verdict",
    );
    PROTOCOL_VERSION: OneOf<Version> =
        Key::one_of("protocol_version", &[("3.1.1", Version::V311), ("5", Version::V5)])
            .ours()
            .default("3.1.1")
            .about("or `5`");
    SESSION_EXPIRY: Duration = Key::new("session_expiry")
        .ours()
        .range(Duration::from_secs(1), Duration::from_secs(u32::MAX as u64 - 1))
        .default_words("for ever, as with 3.1.1")
        .about(
            "how long the broker keeps the session of a client that is gone; needs `protocol_version: 5` and \
             `clean_session: false`",
        );
    RECEIVE_MAXIMUM_KEY: u64 = Key::new("receive_maximum")
        .ours()
        .default(RECEIVE_MAXIMUM)
        .range(1, 65535)
        .noun("a number of messages")
        .about(
            "of QoS 1 and 2 without an acknowledgement: no more are read. With `protocol_version: 5` the broker knows it, \
             else its own bound holds too",
        );
    MAX_MESSAGE_SIZE: Size = Key::new("max_message_size")
        .ours()
        .default(MESSAGE_BYTES_MAX)
        .range(1, MESSAGE_BYTES_LIMIT)
        .about("a longer message is cut, with `log.flags: [truncated]`");
    KEEP_ALIVE: Duration = Key::new("keep_alive")
        .ours()
        .default(Duration::from_secs(30))
        .range(Duration::ZERO, Duration::from_secs(65535))
        .about(
            "a sign of life at least so often, in whole seconds (rounded up), which the broker must answer; 0: none",
        );
    TIMEOUT: Duration = Key::new("timeout")
        .ours()
        .default(Duration::from_secs(30))
        .range(Duration::from_millis(10), Duration::from_mins(5))
        .about("of connecting, of the broker's answer, and of a connection that takes nothing");
    BACKOFF_INIT: Duration = Key::new("backoff.init")
        .ours()
        .default(Duration::from_secs(1))
        .at_least(Duration::from_millis(1))
        .about("pause before a broker is tried again");
    BACKOFF_MAX: Duration = Key::new("backoff.max")
        .ours()
        .default(Duration::from_mins(1))
        .at_least(Duration::from_millis(1))
        .about("it doubles up to this one");
    TLS: Part = Key::part("ssl", &SSL).about("[TLS](outputs.md#ssl) of hosts with `ssl://`");
}

/// What the input is run with.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) brokers: Vec<Broker>,
    pub(super) topics: Vec<String>,
    pub(super) qos: u8,
    pub(super) client_id: String,
    pub(super) clean_session: bool,
    pub(super) version: Version,
    pub(super) session_expiry: Option<Duration>,
    pub(super) receive_maximum: u16,
    pub(super) message_bytes_max: usize,
    pub(super) keep_alive: Duration,
    pub(super) timeout: Duration,
    pub(super) backoff: (Duration, Duration),
}

/// A broker.
#[derive(Debug)]
pub(super) struct Broker {
    pub(super) route: Route,
    /// User and password.
    pub(super) login: Option<(String, Option<Secret>)>,
}

/// One of `hosts`.
#[derive(Debug, PartialEq)]
struct Address {
    host: Host,
    is_encrypted: bool,
    login: Option<(String, Secret)>,
}

/// Reads its settings.
pub fn read(section: &Section<'_>, context: &Context) -> Option<Box<dyn Input>> {
    let input = read_input(section, &context.fs)?;
    let settings = &input.settings;
    let brokers = settings.brokers.iter().map(|broker| broker.route.host.to_string());
    context.wanted.name_client(section, CLIENT_ID.name(), &settings.client_id, brokers);
    Some(Box::new(input) as _)
}

pub(super) fn read_input(section: &Section<'_>, fs: &Arc<dyn Fs>) -> Option<Mqtt> {
    begin(section, &MQTT);
    let addresses = section.get(&HOSTS).try_each(read_url).at_least_one("broker").required();
    let topics = section
        .get(&TOPICS)
        .try_each(|topic| filter::check(topic).map(|()| topic.to_owned()))
        .at_least_one("topic")
        .value();
    let client_id = section.get(&CLIENT_ID).try_map(|id| read_text(id, 1)).value();
    let login = read_login(section);
    let version = section.get(&PROTOCOL_VERSION).value();
    let qos = section.get(&QOS).value() as u8;
    let (clean_session, session_expiry) = read_session(section, version, qos);
    let backoff = (section.get(&BACKOFF_INIT).value(), section.get(&BACKOFF_MAX).value());
    section.refuse_longer((BACKOFF_INIT.name(), backoff.0), (BACKOFF_MAX.name(), backoff.1));
    let settings = Settings {
        brokers: Vec::new(),
        topics,
        qos,
        client_id,
        clean_session,
        version,
        session_expiry,
        receive_maximum: section.get(&RECEIVE_MAXIMUM_KEY).value() as u16,
        message_bytes_max: section.get(&MAX_MESSAGE_SIZE).value() as usize,
        keep_alive: whole_seconds(section.get(&KEEP_ALIVE).value()),
        timeout: section.get(&TIMEOUT).value(),
        backoff,
    };
    let is_encrypted =
        (!addresses.is_empty()).then(|| addresses.iter().any(|address| address.is_encrypted));
    let tls = read_tls(section, fs, is_encrypted).ok()?;
    if addresses.is_empty() || settings.topics.is_empty() || settings.client_id.is_empty() {
        return None;
    }
    let hosts: Vec<String> = addresses.iter().map(|address| address.host.to_string()).collect();
    let address = format!("{} {}", hosts.join(","), settings.client_id);
    let broker = |address: Address| Broker {
        login: address
            .login
            .map(|(user, password)| (user, Some(password).filter(|it| !it.is_empty())))
            .or(login.clone()),
        route: Route {
            host: address.host,
            proxy: None,
            tls: tls.clone().filter(|_| address.is_encrypted),
            http2: false,
            without_tls: WithoutTls::Mqtt,
        },
    };
    let brokers = addresses.into_iter().map(broker).collect();
    Some(Mqtt { settings: Settings { brokers, ..settings }, address })
}

/// `clean_session` and `session_expiry`.
fn read_session(section: &Section<'_>, version: Version, qos: u8) -> (bool, Option<Duration>) {
    let clean_session = section.get(&CLEAN_SESSION).value();
    if !clean_session && qos == 0 {
        let message = "`clean_session: false` has no effect with `qos: 0`: brokers keep messages of QoS 1 and 2 alone";
        section.warning(CLEAN_SESSION.name(), message, "set `qos: 1`, or remove it");
    }
    let session_expiry = section.get(&SESSION_EXPIRY).optional();
    if session_expiry.is_some() && (clean_session || version != Version::V5) {
        let message = "`session_expiry` needs `protocol_version: 5` and `clean_session: false`";
        section.problem(SESSION_EXPIRY.name(), message, "set both, or remove it");
    }
    (clean_session, session_expiry)
}

/// Rounded up to seconds, of which the protocol has whole ones: less than one is not 0, which is none.
fn whole_seconds(span: Duration) -> Duration {
    Duration::from_secs(span.as_secs() + u64::from(span.subsec_nanos() > 0))
}

/// A text that a packet can carry, with at least so many bytes.
fn read_text(text: String, bytes_min: usize) -> Result<String, String> {
    if (bytes_min..=TEXT_BYTES_MAX).contains(&text.len()) && !text.contains('\0') {
        Ok(text)
    } else {
        Err(format!("it must have {bytes_min} to {TEXT_BYTES_MAX} bytes, and no NUL"))
    }
}

/// A URL of a broker; the error ends the sentence "`hosts[0]` is …; ".
fn read_url(text: &str) -> Result<Address, String> {
    let (scheme, rest) = text.split_once("://").unwrap_or(("tcp", text));
    let is_encrypted = match scheme {
        "tcp" | "mqtt" => false,
        "ssl" | "tls" | "tcps" | "mqtts" | "mqtt+ssl" => true,
        "ws" | "wss" => {
            return Err("this input has no WebSocket; use `tcp://` or `ssl://`".to_owned());
        }
        "unix" => return Err("this input has no Unix socket; use `tcp://` or `ssl://`".to_owned()),
        _ => return Err("the scheme is neither `tcp` nor `ssl`".to_owned()),
    };
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    let (login, rest) = match rest.rsplit_once('@') {
        Some((login, rest)) => (Some(read_credentials(login)?), rest),
        None => (None, rest),
    };
    if rest.contains(['/', '?', '#']) {
        return Err("a broker has no path".to_owned());
    }
    let too_long = |(user, password): &(String, Secret)| {
        user.len() > TEXT_BYTES_MAX || password.reveal().len() > TEXT_BYTES_MAX
    };
    if login.as_ref().is_some_and(too_long) {
        return Err(format!("a user and a password have at most {TEXT_BYTES_MAX} bytes"));
    }
    let (name, port) = read_host(rest, if is_encrypted { PORT_TLS } else { PORT })?;
    Ok(Address { host: Host { name, port }, is_encrypted, login })
}

fn read_login(section: &Section<'_>) -> Option<(String, Option<Secret>)> {
    let username = section.get(&USERNAME).try_map(|user| read_text(user, 0)).value();
    let password = section
        .get(&PASSWORD)
        .try_map(|password| match password.reveal().len() {
            0..=TEXT_BYTES_MAX => Ok(password),
            _ => Err(format!("it has more than {TEXT_BYTES_MAX} bytes")),
        })
        .optional()
        .filter(|password| !password.is_empty());
    if username.is_empty() {
        if password.is_some() {
            let message = "without `username` there is no login, and `password` does nothing";
            section.warning(PASSWORD.name(), message, "set `username`");
        }
        return None;
    }
    Some((username, password))
}

/// The client of TLS, if a host needs it, which is not known without any. An error is reported already.
fn read_tls(
    section: &Section<'_>,
    fs: &Arc<dyn Fs>,
    is_needed: Option<bool>,
) -> Result<Option<Arc<TlsClient>>, ()> {
    let is_set = section.has_key(&TLS);
    let mut tls = TlsSettings::read(&section.part(&TLS));
    if is_needed != Some(true) {
        if is_set && tls.enabled && is_needed.is_some() {
            WithoutTls::Mqtt.warn_of_plain(section);
        }
        return Ok(None);
    }
    if !tls.enabled {
        let message = "`ssl.enabled` is `false`, and a host begins with `ssl://`";
        section.warning(TLS.name(), message, "remove `ssl.enabled`; what is in `ssl` is used");
        tls.enabled = true;
    }
    match TlsClient::new(&tls, Arc::clone(fs)) {
        Ok(client) => Ok(Some(client)),
        Err(error) => {
            error.report(section);
            Err(())
        }
    }
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
