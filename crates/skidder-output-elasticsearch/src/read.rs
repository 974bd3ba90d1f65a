//! `output.elasticsearch` from its section of the configuration.

use super::config::{Auto, Config, Credentials};
use super::declared::{self, ELASTICSEARCH};
use super::preset::Column;
use skidder_config::Section;
use skidder_event::Format;
use skidder_net::{HostUrl, ProxyChoice, read_headers, read_https};
use skidder_outputs::{QueueSettings, Rules, read_backoff};

/// Port of a host that names none.
pub const DEFAULT_PORT: u16 = 9200;

/// Reads the section; reports mistakes to its problems. `None` if no host is named.
///
/// The settings of the queue are those that a preset implies: they win over what the user wrote,
/// here or under `queue` at the top.
pub fn read(section: &Section<'_>) -> (Option<Config>, QueueSettings) {
    section.declared_by(&ELASTICSEARCH);
    let hosts = read_hosts(section);
    let mut config = Config::new(hosts.unwrap_or_default());
    read_sizes(section, &mut config);
    read_request(section, &mut config);
    read_times(section, &mut config);
    config.proxy = ProxyChoice::read(section, |name| std::env::var(name).ok());
    config.tls = read_https(section);
    let preset = section.get(&declared::PRESET).value();
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
    let protocol = section.get(&declared::PROTOCOL).value();
    let path = section.get(&declared::PATH).value();
    let hosts = section.get(&declared::HOSTS).try_each(|text| parse_host(text, protocol, &path));
    let hosts = hosts.at_least_one("host").required();
    if hosts.is_empty() { None } else { Some(hosts) }
}

fn read_sizes(section: &Section<'_>, config: &mut Config) {
    let workers = section.get(&declared::WORKERS).value();
    config.auto.workers = workers.is_none();
    config.workers = workers.unwrap_or(1);
    config.loadbalance = section.get(&declared::LOADBALANCE).value();
    // Zero and less leave the size to the queue, as in Filebeat.
    let most = section
        .get(&declared::BULK_MAX_SIZE)
        .map(|events| events.map(|events| usize::try_from(events).unwrap_or(0)))
        .value();
    config.auto.events = most.is_none();
    config.bulk_max_size = most.unwrap_or(Config::AUTO_EVENTS_FIRST);
    config.bulk_max_bytes = section.get(&declared::BULK_MAX_BYTES).value() as usize;
    let level = section.get(&declared::COMPRESSION_LEVEL).value();
    config.auto.level = level.is_none();
    config.compression_level = level.unwrap_or(Config::COMPRESSION_LEVEL);
    config.escape_html = section.get(&declared::ESCAPE_HTML).value();
}

fn read_request(section: &Section<'_>, config: &mut Config) {
    let user = section.get(&declared::USERNAME).value();
    let password = section.get(&declared::PASSWORD).optional().unwrap_or_default();
    let key = section.get(&declared::API_KEY).check(|key| {
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
    let parameters = section.get(&declared::PARAMETERS).optional().unwrap_or_default();
    config.parameters = parameters.into_iter().collect();
    config.headers = read_headers(section, &declared::HEADERS);
    let format = |text: String| Format::parse(&text).map_err(|error| error.to_string());
    if let Some(index) = section.get(&declared::INDEX).try_map(format).optional() {
        config.index = index;
    }
    config.indices = Rules::read(section, &declared::INDICES, &declared::INDEX_OF_RULE);
    config.pipeline = section.get(&declared::PIPELINE).try_map(format).optional();
    config.pipelines = Rules::read(section, &declared::PIPELINES, &declared::PIPELINE_OF_RULE);
    config.exactly_once = section.get(&declared::EXACTLY_ONCE).value();
    config.allow_older_versions = section.get(&declared::ALLOW_OLDER_VERSIONS).value();
    config.dead_letter_index = read_policy(section);
}

/// `non_indexable_policy`: `drop`, which keeps events in our own dead letters, or an index for them.
fn read_policy(section: &Section<'_>) -> Option<String> {
    let policy = section.part_unless_word(&declared::POLICY)?;
    if policy.has("drop") && policy.has("dead_letter_index") {
        let message = "`drop` and `dead_letter_index` are both set; expected one";
        policy.problem("dead_letter_index", message, "");
    }
    policy.any(&declared::DROP);
    let has_index = policy.keys().contains(&"dead_letter_index");
    let index = has_index.then(|| {
        let name = policy.get(&declared::DEAD_LETTER_INDEX).check(|name| {
            if name.is_empty() { Err("expected the name of an index".to_owned()) } else { Ok(()) }
        });
        name.required().to_lowercase()
    });
    policy.finish();
    index
}

fn read_times(section: &Section<'_>, config: &mut Config) {
    config.timeout = section.get(&declared::TIMEOUT).value();
    (config.backoff_init, config.backoff_max) = read_backoff(section);
    config.idle_connection_timeout = section.get(&declared::IDLE_CONNECTION_TIMEOUT).value();
}

/// Applies the preset, and reports which of the user's settings it overwrites.
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
