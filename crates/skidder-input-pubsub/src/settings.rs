//! Settings of the input `gcp-pubsub`, as Filebeat has them (`x-pack/filebeat/input/gcppubsub/config.go`).

mod credentials;

use crate::PubSub;
use crate::token::Login;
use skidder_config::{Group, Key, Section, settings};
use skidder_grpc::Origin;
use skidder_net::{
    HTTPS, Host, PROXY, ProxyChoice, Route, WithoutTls, read_address, read_client, read_https,
};
use skidder_os::Fs;
use std::sync::Arc;

/// Google's server.
const SERVER: &str = "pubsub.googleapis.com:443";
/// The port of a server that names none.
const PORT: u16 = 443;
/// What Google's client makes of a number of messages that is 0.
const MESSAGES_OF_ZERO: usize = 1000;
/// Bytes of the data of messages that are held before no more are read.
const HELD_BYTES_MAX: u64 = 256 << 20;
/// Most streams.
const STREAMS_MAX: usize = 100;
/// Most messages that can be held, if there is a limit.
const MESSAGES_MAX: i64 = 1_000_000;
/// The environment variable with the address of an emulator.
const EMULATOR: &str = "PUBSUB_EMULATOR_HOST";

settings! {
    /// Settings of `gcp-pubsub`.
    pub static GCP_PUBSUB_INPUT = Group::new("input.gcp-pubsub.subscriber", "Messages of a subscription of Google Cloud Pub/Sub.")
        .include(&[&credentials::CREDENTIALS, &PROXY, &HTTPS])
        .called_elsewhere(&[
            ("project", "project_id", ""),
            ("subscription_name", "subscription.name", ""),
            ("endpoint", "api_endpoint", ""),
        ]);

    PROJECT_ID: String = Key::new("project_id")
        .required()
        .noun("the id of a project, as in `my-project`")
        .about("the project of the subscription and of the topic");
    TOPIC: String = Key::new("topic")
        .required()
        .noun("the name of a topic, as in `logs`")
        .about("the topic: ids of events begin with a hash of it, and a subscription that is created belongs to it");
    SUBSCRIPTION_NAME: String = Key::new("subscription.name")
        .required()
        .noun("the name of a subscription, as in `logs-filebeat`")
        .about("the subscription to read from; several processes can share one");
    SUBSCRIPTION_CREATE: bool = Key::new("subscription.create")
        .default(true)
        .about("creates the subscription if there is none; what was published before that is not in it");
    NUM_GOROUTINES: usize = Key::new("subscription.num_goroutines")
        .default(1)
        .range(1, STREAMS_MAX)
        .noun("a number of streams")
        .about("streams over which messages come, each over a connection of its own; one brings some 10 MB a second");
    MAX_OUTSTANDING_MESSAGES: i64 = Key::new("subscription.max_outstanding_messages")
        .default(1600)
        .range(-1, MESSAGES_MAX)
        .noun("a number of messages")
        .about(
            "messages that are not acknowledged before no more are read, in all streams; 0: 1000, as in Google's client; \
             -1: no limit but 256 MiB",
        );
    API_ENDPOINT: String = Key::new("api_endpoint")
        .default_words("`pubsub.googleapis.com:443`")
        .noun("`host[:port]`")
        .about("another way to Google's server, over TLS: a private endpoint, another universe");
    ALTERNATIVE_HOST: String = Key::new("alternative_host")
        .default_words("`PUBSUB_EMULATOR_HOST`, if that is set")
        .noun("`host[:port]`")
        .about("another server, without TLS and credentials: an emulator");
}

/// The subscription, and what belongs to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Names {
    pub(crate) project: String,
    pub(crate) topic_id: String,
    pub(crate) subscription_id: String,
    /// `projects/…/topics/…`.
    pub(crate) topic: String,
    /// `projects/…/subscriptions/…`.
    pub(crate) subscription: String,
    /// Whether a subscription that is not there is created.
    pub(crate) is_created: bool,
}

impl Names {
    pub(crate) fn new(
        project: &str,
        topic_id: &str,
        subscription_id: &str,
        is_created: bool,
    ) -> Self {
        Self {
            topic: format!("projects/{project}/topics/{topic_id}"),
            subscription: format!("projects/{project}/subscriptions/{subscription_id}"),
            project: project.to_owned(),
            topic_id: topic_id.to_owned(),
            subscription_id: subscription_id.to_owned(),
            is_created,
        }
    }
}

/// What the input is run with.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) names: Names,
    pub(crate) route: Route,
    pub(crate) origin: Arc<Origin>,
    pub(crate) login: Login,
    pub(crate) streams: usize,
    /// Nothing for no limit.
    pub(crate) messages_max: Option<usize>,
    pub(crate) bytes_max: u64,
}

/// Reads the settings of [`GCP_PUBSUB_INPUT`]; `variable` gives the value of one of the environment. `None`, and the
/// problems are reported, if something is wrong.
pub fn read(
    section: &Section<'_>,
    fs: &Arc<dyn Fs>,
    variable: impl Fn(&str) -> Option<String>,
) -> Option<PubSub> {
    let project = section.get(&PROJECT_ID).check(|text| check_name(text)).required();
    let topic = section.get(&TOPIC).check(|text| check_name(text)).required();
    let subscription = section.get(&SUBSCRIPTION_NAME).check(|text| check_name(text)).required();
    let is_created = section.get(&SUBSCRIPTION_CREATE).value();
    let streams = section.get(&NUM_GOROUTINES).value();
    let messages_max = section.get(&MAX_OUTSTANDING_MESSAGES).value();
    let proxy = ProxyChoice::read(section, &variable);
    let place = read_place(section, &proxy, &variable);
    let tls = read_https(section);
    let is_needed = !matches!(&place, Some(Place { https: false, .. }));
    let login = credentials::read(section, fs, (is_needed, &proxy), &variable);
    let Place { host, https } = place?;
    if !https {
        warn_of_plain(section, &host);
    }
    let off = (
        "Google's server needs TLS, but `ssl.enabled` is false",
        "leave it out, or set `alternative_host` to a server without TLS",
    );
    let client = read_client(section, &tls, https, off, fs).ok()?;
    let route = Route {
        proxy: if https { proxy.of(true, &host) } else { None },
        tls: client,
        http2: true,
        without_tls: WithoutTls::NoSsl,
        host: host.clone(),
    };
    let origin = Arc::new(Origin { https, authority: host.to_string() });
    let names_are_wrong = [&project, &topic, &subscription].iter().any(|name| name.is_empty());
    let login = login?;
    if names_are_wrong {
        return None;
    }
    let settings = Settings {
        names: Names::new(&project, &topic, &subscription, is_created),
        route,
        origin,
        login,
        streams,
        messages_max: match usize::try_from(messages_max) {
            Ok(0) => Some(MESSAGES_OF_ZERO),
            Ok(most) => Some(most),
            Err(_) => None,
        },
        bytes_max: HELD_BYTES_MAX,
    };
    Some(PubSub::new(settings))
}

/// What has no effect at a server without TLS and credentials.
fn warn_of_plain(section: &Section<'_>, host: &Host) {
    for name in ["credentials_file", "credentials_json", "proxy_url", "ssl"] {
        if section.has(name) {
            let message =
                format!("no effect: {host} is reached directly, without TLS and credentials");
            section.warning(
                name,
                message,
                "leave it out, or use `api_endpoint` for a server of Google's",
            );
        }
    }
}

/// Where the server is.
struct Place {
    host: Host,
    https: bool,
}

/// `None` after a mistake, which is reported.
fn read_place(
    section: &Section<'_>,
    proxy: &ProxyChoice,
    variable: &impl Fn(&str) -> Option<String>,
) -> Option<Place> {
    let host = |text: String| -> Result<Host, String> {
        let (name, port) = read_address(&text, PORT)?;
        Ok(Host { name, port })
    };
    let other = section.get(&ALTERNATIVE_HOST).try_map(host);
    let endpoint = section.get(&API_ENDPOINT).try_map(host);
    let is_wrong = other.is_wrong() || endpoint.is_wrong();
    let (other, endpoint) = (other.optional(), endpoint.optional());
    if is_wrong {
        return None;
    }
    if other.is_some() {
        if matches!(proxy, ProxyChoice::Always(_)) {
            let message = "`alternative_host` and `proxy_url` are both set";
            section.problem(
                "proxy_url",
                message,
                "an emulator is reached directly: leave one of them out",
            );
            return None;
        }
        if endpoint.is_some() {
            let message = "no effect: `alternative_host` is the server";
            section.warning(API_ENDPOINT.name(), message, "leave one of them out");
        }
    }
    if let Some(host) = other {
        return Some(Place { host, https: false });
    }
    let emulator = variable(EMULATOR).filter(|text| !text.is_empty());
    if let Some(text) = emulator {
        return match host(text) {
            Ok(host) => {
                let message = format!(
                    "the environment variable {EMULATOR} is set: {host} is asked in place of Google's server"
                );
                section.warning("", message, format!("unset {EMULATOR} for messages of Google's"));
                Some(Place { host, https: false })
            }
            Err(error) => {
                let message =
                    format!("the environment variable {EMULATOR} is no `host:port`: {error}");
                section.problem("", message, "as in `localhost:8085`");
                None
            }
        };
    }
    let usual = || host(SERVER.to_owned()).ok();
    Some(Place { host: endpoint.or_else(usual)?, https: true })
}

/// The name of a project, of a topic or of a subscription, without what stands before it in the path of a resource.
fn check_name(text: &str) -> Result<(), String> {
    if text.contains('/') {
        return Err("expected the name alone, without `projects/…/`".to_owned());
    }
    let is_good = |letter: char| letter.is_ascii_alphanumeric() || "-_.~+%:".contains(letter);
    if text.is_empty() || text.len() > 255 || !text.chars().all(is_good) {
        return Err("a name has 1 to 255 letters, digits and `-_.~+%`".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests;
