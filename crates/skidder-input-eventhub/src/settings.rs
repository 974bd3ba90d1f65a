//! Settings of the input `azure-eventhub`, as Filebeat has them (`x-pack/filebeat/input/azureeventhub/config.go`).

mod access;
mod repairs;

use crate::EventHub;
use crate::balance::Strategy;
use crate::sanitize::Sanitizer;
use crate::sign::Login;
use crate::store::Names;
use access::{ACCESS, Access, Place};
use skidder_azure::{Service, Target, check_container_name};
use skidder_config::{Group, Key, OneOf, Section, settings};
use skidder_net::{HTTPS, Host, PROXY, Proxy, ProxyChoice, Route, WithoutTls, read_https};
use skidder_os::Fs;
use skidder_tls::{TlsClient, TlsSettings};
use std::sync::Arc;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
/// Of connecting to the blobs, and of a request.
const BLOBS_TIMEOUT: Duration = Duration::from_secs(20);
/// The longest pause between two looks at claims, which are over after a minute.
const UPDATE_INTERVAL_MAX: Duration = Duration::from_secs(30);
/// Most messages of a partition that are on their way or not taken, as in Azure's client for Go.
const CREDIT_MAX: usize = 300;
/// Most messages of a batch.
const MESSAGES_MAX: usize = 10_000;
/// What Filebeat calls containers without a name.
const CONTAINER_PREFIX: &str = "filebeat-";
/// Why `partition_receive_timeout` does nothing.
const NO_WAITING: &str = "messages are sent on as they come, with those that are here already";

settings! {
    /// Settings of `azure-eventhub`.
    pub static AZURE_EVENTHUB_INPUT = Group::new("input.azure-eventhub.hub", "Events of a hub of Azure Event Hubs.")
        .include(&[&ACCESS, &repairs::REPAIRS, &PROXY, &HTTPS])
        .without_effect(&[
            ("partition_receive_timeout", NO_WAITING),
            ("resource_manager_endpoint", "another cloud is named by `authority_host` and the connection strings"),
        ])
        .called_elsewhere(&[
            ("event_hub", "eventhub", ""),
            ("eventhub_name", "eventhub", ""),
            ("namespace", "eventhub_namespace", ""),
            ("storage_container", "storage_account_container", ""),
        ]);

    EVENTHUB: String = Key::new("eventhub")
        .required()
        .noun("the name of an event hub, as in `insights-activity-logs`")
        .about("the event hub to read");
    CONSUMER_GROUP: String = Key::new("consumer_group")
        .default("$Default")
        .noun("the name of a consumer group")
        .about("processes with the same one share the partitions, and go on behind the same checkpoints");
    CONTAINER: String = Key::new("storage_account_container")
        .default_words("`filebeat-EVENTHUB`")
        .noun("the name of a container")
        .about("the container with claims and checkpoints, which is created if it is missing; `_` becomes `-`, as in Filebeat");
    MIGRATE: bool = Key::new("migrate_checkpoint")
        .default(true)
        .about("takes over checkpoints of Filebeat's processor v1 for partitions that have none of v2");
    PROCESSOR: OneOf<bool> = Key::one_of("processor_version", &[("v1", true), ("v2", false)])
        .default("v2")
        .about("*Differs*: `v1` is read as `v2`, with a warning");
    UPDATE_INTERVAL: Duration = Key::new("processor_update_interval")
        .default(Duration::from_secs(10))
        .range(SECOND, Duration::from_hours(24))
        .about("pause between two looks at who reads which partition; at most 30 s, since claims are over after a minute");
    STRATEGY: OneOf<Strategy> = Key::one_of("processor_strategy", &Strategy::WORDS)
        .default("balanced")
        .ours()
        .about("`balanced`: a process takes one partition at each look, as in Filebeat; `greedy`: its whole share at once");
    START: OneOf<bool> = Key::one_of("processor_start_position", &[("earliest", false), ("latest", true)])
        .default("earliest")
        .about("where a partition without a checkpoint begins: `earliest`, `latest`");
    RECEIVE_COUNT: usize = Key::new("partition_receive_count")
        .default(100)
        .range(1, MESSAGES_MAX)
        .noun("a number of messages")
        .about("most messages of a batch; so many of each partition, at most 300, are held before no more are received");
    TRANSPORT: OneOf<bool> = Key::one_of("transport", &[("amqp", false), ("websocket", true)])
        .default("amqp")
        .about("`amqp`: port 5671; `websocket`: AMQP in HTTPS, port 443");
}

/// What the input is run with.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) names: Names,
    /// The way to the hub.
    pub(crate) route: Route,
    /// AMQP goes over a websocket.
    pub(crate) is_websocket: bool,
    pub(crate) login: Login,
    pub(crate) blobs: Service,
    /// Messages of a partition that are on their way or not taken.
    pub(crate) credit: u32,
    /// Messages of a batch.
    pub(crate) messages_max: usize,
    pub(crate) sanitizers: Vec<Sanitizer>,
    pub(crate) from_latest: bool,
    pub(crate) migrates: bool,
    pub(crate) update_interval: Duration,
    pub(crate) strategy: Strategy,
}

/// Reads the settings of [`AZURE_EVENTHUB_INPUT`]; `variable` gives the value of one of the environment. `None`, and the
/// problems are reported, if something is wrong.
pub fn read(
    section: &Section<'_>,
    fs: &Arc<dyn Fs>,
    variable: impl Fn(&str) -> Option<String>,
) -> Option<EventHub> {
    let hub = section.get(&EVENTHUB).check(|text| check_name(text)).required();
    let group = section.get(&CONSUMER_GROUP).check(|text| check_name(text)).value();
    let container = read_container(section, &hub);
    let proxy = ProxyChoice::read(section, &variable);
    let tls = read_https(section);
    let sanitizers = repairs::read(section);
    let is_websocket = section.get(&TRANSPORT).value();
    let access = Access::read(section, &hub, (fs, &proxy, is_websocket), &variable);
    let migrates = section.get(&MIGRATE).value();
    warn_of_v1(section);
    let from_latest = section.get(&START).value();
    let messages_max = section.get(&RECEIVE_COUNT).value();
    let strategy = section.get(&STRATEGY).value();
    let update_interval = read_interval(section);
    let Access { place, login, blobs, provider } = access?;
    if hub.is_empty() {
        return None;
    }
    let client = connect_with(section, &tls, place.tls || blobs.https, fs).ok()?;
    let Place { namespace, host, tls: is_encrypted } = place;
    let route = Route {
        proxy: proxy_of(section, &proxy, &host, (is_encrypted, is_websocket)),
        tls: client.clone().filter(|_| is_encrypted),
        // This is about ALPN, which AMQP has none of.
        http2: false,
        without_tls: WithoutTls::NoSsl,
        host,
    };
    let target = Arc::new(Target::at(blobs, &proxy));
    let credit = u32::try_from(messages_max.min(CREDIT_MAX)).unwrap_or(1);
    let settings = Settings {
        names: Names { namespace, hub, group },
        route,
        is_websocket,
        login,
        blobs: Service {
            target,
            container: container?,
            tls: client,
            provider: Arc::new(provider),
            timeout: BLOBS_TIMEOUT,
        },
        credit,
        messages_max,
        sanitizers: sanitizers?,
        from_latest,
        migrates,
        update_interval,
        strategy,
    };
    Some(EventHub::new(settings))
}

/// What encrypts connections; nothing if none is encrypted. The mistake is reported.
fn connect_with(
    section: &Section<'_>,
    tls: &TlsSettings,
    needs_tls: bool,
    fs: &Arc<dyn Fs>,
) -> Result<Option<Arc<TlsClient>>, ()> {
    if !needs_tls {
        return Ok(None);
    }
    if !tls.enabled {
        let message = "Azure needs TLS, but `ssl.enabled` is false";
        section.problem("ssl.enabled", message, "leave it out");
        return Err(());
    }
    let client = TlsClient::new(tls, Arc::clone(fs));
    client.map(Some).map_err(|error| section.problem_named(error.setting(), &error))
}

/// That of `proxy_url`. Those of the environment are for HTTP, and refuse other ports than that of websockets.
fn proxy_of(
    section: &Section<'_>,
    proxy: &ProxyChoice,
    host: &Host,
    (is_encrypted, is_websocket): (bool, bool),
) -> Option<Arc<Proxy>> {
    let proxy = match proxy {
        ProxyChoice::Environment(_) if !is_websocket => None,
        proxy => proxy.of(is_encrypted, host),
    };
    if !is_encrypted && matches!(proxy.as_deref(), Some(Proxy::Http(_))) {
        let message =
            format!("no effect for {host}: an HTTP proxy lets AMQP through with TLS only");
        section.warning("proxy_url", message, "an emulator is reached directly");
        return None;
    }
    proxy
}

fn warn_of_v1(section: &Section<'_>) {
    if section.get(&PROCESSOR).value() {
        let message =
            "there is no processor v1: the input works as v2, and takes over the checkpoints of v1";
        let hint = "leave it out; Filebeat's v1 must not run beside it, since it knows nothing of the claims of v2";
        section.warning(PROCESSOR.name(), message, hint);
    }
}

fn read_interval(section: &Section<'_>) -> Duration {
    let interval = section.get(&UPDATE_INTERVAL).value();
    if interval > UPDATE_INTERVAL_MAX {
        let message = "claims are over after a minute: they are renewed every 30 s";
        section.warning(UPDATE_INTERVAL.name(), message, "write at most `30s`");
    }
    interval.min(UPDATE_INTERVAL_MAX)
}

/// `None`, and the problem is reported, if it is none.
fn read_container(section: &Section<'_>, hub: &str) -> Option<String> {
    let name = section.get(&CONTAINER).optional().filter(|name| !name.is_empty());
    let name = name.unwrap_or_else(|| format!("{CONTAINER_PREFIX}{hub}")).replace('_', "-");
    if let Err(error) = check_container_name(&name) {
        let message = format!("`{}` is `{name}`", section.path_of(CONTAINER.name()));
        section.problem(CONTAINER.name(), message, error);
        return None;
    }
    Some(name)
}

/// The name of a hub or of a group, which is a part of addresses and of names of blobs.
fn check_name(text: &str) -> Result<(), String> {
    let is_good = |letter: char| letter.is_ascii_alphanumeric() || "-_.$".contains(letter);
    if text.is_empty() || text.len() > 256 || !text.chars().all(is_good) {
        return Err("a name has 1 to 256 letters, digits and `-_.$`".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests;
