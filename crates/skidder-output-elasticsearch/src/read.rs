//! `output.elasticsearch` from its section of the configuration.

use super::config::{Auto, Config, Credentials};
use super::preset::{Column, Preset};
use skidder_config::Section;
use skidder_event::Format;
use skidder_net::{HostUrl, ProxyChoice, read_headers};
use skidder_outputs::QueueSettings;
use skidder_outputs::Rules;
use skidder_tls::TlsSettings;

/// Port of a host that names none.
pub const DEFAULT_PORT: u16 = 9200;

/// Leaves a size to the server's answers.
const AUTO: &str = "auto";

/// Reads the section; mistakes are told to its problems. `None` if no host is named.
///
/// The settings of the queue are those that a preset implies: they win over what the user wrote,
/// here or under `queue` at the top.
pub fn read(section: &Section<'_>) -> (Option<Config>, QueueSettings) {
    section.deprecated(&["max_retries"], "events are sent until they are accepted, as in Filebeat");
    let hosts = read_hosts(section);
    let mut config = Config::new(hosts.unwrap_or_default());
    read_sizes(section, &mut config);
    read_request(section, &mut config);
    read_times(section, &mut config);
    config.proxy = ProxyChoice::read(section, |name| std::env::var(name).ok());
    config.tls = TlsSettings::read(&section.section("ssl"));
    let preset = section.one_of("preset", &Preset::WORDS).or(Preset::Custom);
    let mut queue = QueueSettings::default();
    if config.auto.any() {
        queue = QueueSettings::bounded_in_bytes();
    }
    if let Some(column) = preset.column() {
        apply(&column, section, &mut config);
        queue = column.queue();
    }
    if config.hosts.is_empty() { (None, queue) } else { (Some(config), queue) }
}

/// Reads one entry of `hosts`. The error ends the sentence "`hosts` is …; ".
pub fn parse_host(text: &str, protocol: &str, path: &str) -> Result<HostUrl, String> {
    HostUrl::parse(text, protocol, path, |_| DEFAULT_PORT)
}

fn read_hosts(section: &Section<'_>) -> Option<Vec<HostUrl>> {
    let protocol = section.one_of("protocol", &[("http", "http"), ("https", "https")]).or("http");
    let path = section.string("path").or("");
    let hosts = section.strings("hosts").named("a list of hosts, as in `[\"localhost:9200\"]`");
    let hosts = hosts.try_each(|text| parse_host(text, protocol, &path));
    let hosts = hosts.at_least_one("host").required();
    if hosts.is_empty() { None } else { Some(hosts) }
}

fn read_sizes(section: &Section<'_>, config: &mut Config) {
    let workers = |key| {
        let count = |text: String| match text.as_str() {
            AUTO => Ok(None),
            text => match text.parse() {
                Ok(count @ 1..=1024) => Ok(Some(count)),
                _ => Err("expected `auto`, or a number of connections from 1 to 1024".to_owned()),
            },
        };
        section.string(key).try_map(count).optional()
    };
    let worker = workers("worker");
    let workers = workers("workers").or(worker).unwrap_or(Some(1));
    config.auto.workers = workers.is_none();
    config.workers = workers.unwrap_or(1);
    config.loadbalance = section.bool("loadbalance").or(true);
    let events = |text: String| match text.as_str() {
        AUTO => Ok(None),
        // Zero and less leave the size to the queue, as in Filebeat.
        text => match text.parse::<i64>() {
            Ok(events) => Ok(Some(usize::try_from(events).unwrap_or(0))),
            Err(_) => Err("expected `auto`, or a number of events".to_owned()),
        },
    };
    let events = section.string("bulk_max_size").try_map(events);
    let events = events.optional().unwrap_or(Some(Config::BULK_MAX_SIZE));
    config.auto.events = events.is_none();
    config.bulk_max_size = events.unwrap_or(Config::AUTO_EVENTS_FIRST);
    config.bulk_max_bytes = section
        .size("bulk_max_bytes")
        .named("a size")
        .range(1024..=1 << 30)
        .map(|bytes| bytes as usize)
        .or(Config::BULK_MAX_BYTES);
    let level = |text: String| match text.as_str() {
        AUTO => Ok(None),
        text => match text.parse() {
            Ok(level @ 0..=9) => Ok(Some(level)),
            _ => Err("expected `auto`, or a level from 0 to 9".to_owned()),
        },
    };
    let level = section.string("compression_level").try_map(level);
    let level = level.optional().unwrap_or(Some(Config::COMPRESSION_LEVEL));
    config.auto.level = level.is_none();
    config.compression_level = level.unwrap_or(Config::COMPRESSION_LEVEL);
    config.escape_html = section.bool("escape_html").or(false);
}

fn read_request(section: &Section<'_>, config: &mut Config) {
    let user = section.string("username").or("");
    let password = section.secret("password").optional().unwrap_or_default();
    let key = section.secret("api_key").check(|key| {
        let fits = key.reveal().contains(':');
        if fits { Ok(()) } else { Err("expected `id:api_key`".to_owned()) }
    });
    let key = key.optional();
    if key.is_some() && !user.is_empty() {
        let message = "`api_key` and `username` are both set; expected one";
        section.problem("api_key", message, "remove `username` and `password`");
    }
    config.credentials = match key {
        Some(key) => Credentials::ApiKey(key),
        None if user.is_empty() => Credentials::None,
        None => Credentials::Basic(user, password),
    };
    config.kerberos = skidder_kerberos::Settings::read(section);
    if config.kerberos.is_some() && config.credentials != Credentials::None {
        let message = "`kerberos` and other credentials are both set; expected one";
        section.problem("kerberos", message, "remove `username` and `password`, or `api_key`");
    }
    let parameters = section.string_map("parameters").optional().unwrap_or_default();
    config.parameters = parameters.into_iter().collect();
    config.headers = read_headers(section, "headers");
    let format = |text: String| Format::parse(&text).map_err(|error| error.to_string());
    if let Some(index) = section.string("index").try_map(format).optional() {
        config.index = index;
    }
    config.indices = Rules::read(section, "indices", "index");
    config.pipeline = section.string("pipeline").try_map(format).optional();
    config.pipelines = Rules::read(section, "pipelines", "pipeline");
    let words = [("false", false), ("true", true), ("on_retry", true)];
    config.exactly_once = section.one_of("exactly_once", &words).or(false);
    config.allow_older_versions = section.bool("allow_older_versions").or(true);
    config.dead_letter_index = read_policy(section);
}

/// `non_indexable_policy`: `drop`, which keeps events in our own dead letters, or an index for them.
fn read_policy(section: &Section<'_>) -> Option<String> {
    let key = "non_indexable_policy";
    let item = section.item(key)?;
    if !item.is_map() {
        section.one_of(key, &[("drop", ())]).or(());
        return None;
    }
    let policy = item.section();
    if policy.has("drop") && policy.has("dead_letter_index") {
        let message = "`drop` and `dead_letter_index` are both set; expected one";
        policy.problem("dead_letter_index", message, "");
    }
    policy.accept("drop");
    let index = policy.has("dead_letter_index").then(|| {
        let index = policy.section("dead_letter_index");
        let name = index.string("index").named("the name of an index").check(|name| {
            if name.is_empty() { Err("expected the name of an index".to_owned()) } else { Ok(()) }
        });
        let name = name.required().to_lowercase();
        index.finish();
        name
    });
    policy.finish();
    index
}

fn read_times(section: &Section<'_>, config: &mut Config) {
    let positive = std::time::Duration::from_millis(1)..;
    config.timeout = section.duration("timeout").range(positive.clone()).or(Config::TIMEOUT);
    config.backoff_init =
        section.duration("backoff.init").range(positive.clone()).or(Config::BACKOFF_INIT);
    config.backoff_max = section.duration("backoff.max").range(positive).or(Config::BACKOFF_MAX);
    config.idle_connection_timeout =
        section.duration("idle_connection_timeout").or(Config::IDLE_CONNECTION_TIMEOUT);
}

/// Overwrites what the preset says, and tells which of the user's settings that concerns.
fn apply(column: &Column, section: &Section<'_>, config: &mut Config) {
    let overwritten: Vec<String> = column
        .keys()
        .into_iter()
        .filter(|key| section.has(key))
        .map(|key| format!("`{key}`"))
        .collect();
    if !overwritten.is_empty() {
        let message = format!("the preset overwrites {}", overwritten.join(", "));
        section.warning("preset", message, "set `preset: custom` to use your own values");
    }
    config.auto = Auto::default();
    config.bulk_max_size = column.bulk_max_size;
    config.workers = column.worker;
    config.compression_level = column.compression_level;
    config.idle_connection_timeout = column.idle_connection_timeout;
    if let Some((init, max)) = column.backoff {
        config.backoff_init = init;
        config.backoff_max = max;
    }
}

#[cfg(test)]
mod tests;
