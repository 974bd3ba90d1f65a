//! Settings of the input `redis`. Those of the slow log are Filebeat's (`filebeat/input/redis/config.go`); the others are
//! ours.

use crate::Redis;
use skidder_config::{Group, Key, OneOf, Part, Secret, Section, Size, settings};
use skidder_net::{Host, Route, WithoutTls};
use skidder_os::Fs;
use skidder_redis::{Network, Server, Target};
use skidder_tls::{SSL, TlsClient, TlsSettings};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

const MILLISECOND: Duration = Duration::from_millis(1);
const DAY: Duration = Duration::from_hours(24);

/// `network`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Tcp,
    Tcp4,
    Tcp6,
    Unix,
}

settings! {
    /// Settings of `redis`.
    pub static REDIS_INPUT = Group::new("input.redis.reader", "The slow log, lists or streams of Redis.")
        .called_elsewhere(&[
            ("address", "hosts", ""),
            ("db", "hosts", "it stands in `hosts`, as in `[\"localhost:6379/1\"]`"),
            ("key", "lists", "did you mean `lists` or `streams`?"),
            ("keys", "lists", "did you mean `lists` or `streams`?"),
            ("path", "hosts", "the path of a socket stands in `hosts`, with `network: unix`"),
            ("port", "hosts", "it stands in `hosts`, as in `[\"localhost:6379\"]`"),
            ("servers", "hosts", ""),
            ("tls", "ssl", ""),
            ("url", "hosts", ""),
            ("user", "username", ""),
        ]);

    HOSTS: Vec<String> = Key::new("hosts").filled()
        .required()
        .noun("a list of servers, as in `[\"localhost:6379\"]`")
        .about(
            "`[redis[s]://][[user]:password@]host[:6379][/db]`, each of which is read; `rediss` is TLS. With `network: \
             unix`, paths of sockets",
        );
    NETWORK: OneOf<Family> = Key::one_of(
        "network",
        &[("tcp", Family::Tcp), ("tcp4", Family::Tcp4), ("tcp6", Family::Tcp6), ("unix", Family::Unix)],
    )
    .default("tcp")
    .about("`tcp4`, `tcp6`: only that version of IP; `unix`: a socket in the file system");
    USERNAME: String = Key::new("username").default("").about("needs `password`");
    PASSWORD: Secret = Key::new("password").about("of the user, or of a server without users");
    TLS: Part = Key::part("ssl", &SSL).about("[TLS](outputs.md#ssl), as in outputs; off without a section `ssl`");
    TIMEOUT: Duration = Key::new("timeout")
        .default(Duration::from_secs(5))
        .range(Duration::from_millis(10), Duration::from_mins(10))
        .about("of connecting, and of each answer");
    IDLE_TIMEOUT: Duration = Key::new("idle_timeout")
        .range(Duration::from_millis(10), Duration::from_mins(10))
        .about("the name that Filebeat's code has for `timeout`, which wins");
    MAXCONN: u64 = Key::new("maxconn")
        .default(10)
        .at_least(1)
        .noun("a number of connections")
        .about("no effect, with a notice: there is one connection for each server and key");
    SCAN_FREQUENCY: Duration = Key::new("scan_frequency")
        .default(Duration::from_secs(10))
        .range(MILLISECOND, DAY)
        .about("how often the slow log is read");
    LISTS: Vec<String> = Key::new("lists").filled()
        .noun("a list of keys")
        .about("lists to read, in place of the slow log; the first element is taken first");
    STREAMS: Vec<String> = Key::new("streams").filled()
        .noun("a list of keys")
        .about("streams to read as a member of `group`, in place of the slow log");
    GROUP: String = Key::new("group").default("").about(
        "required for `streams`: the consumer group, which is made if it is not there; its members share the entries",
    );
    INITIAL_OFFSET: OneOf<bool> = Key::one_of("initial_offset", &[("oldest", false), ("newest", true)])
        .default("oldest")
        .about("where a group begins that is made");
    MESSAGE_FIELD: String = Key::new("message_field")
        .default("message")
        .about("which field of an entry of a stream becomes `message`; the others are in `redis.stream.fields`");
    CONSUMER: String = Key::new("consumer").default_words("the name of the host").about(
        "the name of this process among those that read the same lists or streams; each needs its own",
    );
    CLAIM_AFTER: Duration = Key::new("claim_after")
        .default(Duration::from_mins(5))
        .range(Duration::from_secs(10), DAY)
        .about(
            "what another consumer took and has not finished is taken over when that has not been seen for so long; the \
             same for all of them",
        );
    MAX_BYTES: Size = Key::new("max_bytes")
        .default(10 << 20)
        .range(1, 100 << 20)
        .about("of an element of a list, or of the message of an entry: longer ones are cut and get `log.flags: [truncated]`");
    BACKOFF_INIT: Duration = Key::new("backoff.init")
        .default(Duration::from_secs(1))
        .range(MILLISECOND, DAY)
        .about("pause after a failure; doubles with each that follows");
    BACKOFF_MAX: Duration = Key::new("backoff.max")
        .default(Duration::from_mins(1))
        .range(MILLISECOND, DAY)
        .about("at most so long");
}

/// What is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    SlowLog,
    /// Lists with these keys.
    Lists(Vec<String>),
    Streams(Streams),
}

/// The settings of streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Streams {
    pub(crate) keys: Vec<String>,
    pub(crate) group: String,
    pub(crate) from_newest: bool,
    pub(crate) message_field: String,
}

/// What the readers are run with.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) kind: Kind,
    pub(crate) timeout: Duration,
    pub(crate) scan_frequency: Duration,
    pub(crate) consumer: String,
    pub(crate) claim_after: Duration,
    pub(crate) max_bytes: usize,
    pub(crate) backoff_init: Duration,
    pub(crate) backoff_max: Duration,
}

/// Reads the settings of [`REDIS_INPUT`]; `host` is the name of this host. `None`, and the problems are reported, if
/// something is wrong.
pub fn read(section: &Section<'_>, fs: &Arc<dyn Fs>, host: &str) -> Option<Redis> {
    let timeout = section.get(&TIMEOUT);
    let idle_timeout = section.get(&IDLE_TIMEOUT).optional();
    let timeout = match idle_timeout.filter(|_| !timeout.is_set()) {
        Some(idle_timeout) => idle_timeout,
        None => timeout.value(),
    };
    let maxconn = section.get(&MAXCONN);
    let is_set = maxconn.is_set();
    if maxconn.value() != 10 && is_set {
        let message = "no effect: there is one connection for each server and key";
        section.warning(MAXCONN.name(), message, "remove it");
    }
    let kind = read_kind(section);
    let (backoff_init, backoff_max) =
        (section.get(&BACKOFF_INIT).value(), section.get(&BACKOFF_MAX).value());
    section.refuse_longer((BACKOFF_INIT.name(), backoff_init), (BACKOFF_MAX.name(), backoff_max));
    let settings = Settings {
        timeout,
        scan_frequency: section.get(&SCAN_FREQUENCY).value(),
        consumer: section.get(&CONSUMER).optional().unwrap_or_else(|| host.to_owned()),
        claim_after: section.get(&CLAIM_AFTER).value(),
        max_bytes: section.get(&MAX_BYTES).value() as usize,
        backoff_init,
        backoff_max,
        kind: kind.clone().unwrap_or(Kind::SlowLog),
    };
    if settings.consumer.is_empty() {
        let message = "`consumer` is empty, and the host has no name";
        section.problem(CONSUMER.name(), message, "give this process a name that no other has");
    }
    let servers = read_servers(section, fs)?;
    let kind = kind?;
    let names: Vec<String> = servers.iter().map(|server| name_of(server)).collect();
    refuse_twice(section, HOSTS.name(), &names);
    let address = match kind {
        Kind::SlowLog => names.join(","),
        Kind::Lists(keys) | Kind::Streams(Streams { keys, .. }) => {
            format!("{} {}", names.join(","), keys.join(","))
        }
    };
    Some(Redis { settings: Arc::new(settings), servers, address })
}

/// A server in messages.
pub(crate) fn name_of(server: &Target) -> String {
    match &server.network {
        Network::Unix(path) => path.display().to_string(),
        _ => server.route.host.to_string(),
    }
}

/// Reports what stands in a list twice: two readers would be in each other's way.
fn refuse_twice(section: &Section<'_>, name: &str, all: &[String]) {
    let twice = all.iter().enumerate().find(|(place, one)| all[..*place].contains(one));
    if let Some((_, one)) = twice {
        let message = format!("`{one}` is in `{}` twice", section.path_of(name));
        section.problem(name, message, "remove one of them");
    }
}

/// The names of lists or streams; none without the setting. `None`, and the problem is reported, if one is empty.
fn read_keys(section: &Section<'_>, key: &Key<Vec<String>>) -> Option<Vec<String>> {
    let keys = section.get(key).try_each(|name| match name {
        "" => Err("expected the name of a key".to_owned()),
        name => Ok(name.to_owned()),
    });
    let is_wrong = keys.is_wrong();
    let keys = keys.optional().unwrap_or_default();
    (!is_wrong).then_some(keys)
}

/// What is read. `None`, and the problem is reported, if that is not clear.
fn read_kind(section: &Section<'_>) -> Option<Kind> {
    let (lists, keys) = (read_keys(section, &LISTS), read_keys(section, &STREAMS));
    let (group, message_field) = (section.get(&GROUP).value(), section.get(&MESSAGE_FIELD).value());
    let from_newest = section.get(&INITIAL_OFFSET).value();
    let (lists, keys) = (lists?, keys?);
    let streams = Streams { keys, group, from_newest, message_field };
    refuse_twice(section, LISTS.name(), &lists);
    refuse_twice(section, STREAMS.name(), &streams.keys);
    let (of_lists, of_streams) = (!lists.is_empty(), !streams.keys.is_empty());
    if of_lists && of_streams {
        let hint = "write two inputs";
        section.problem(STREAMS.name(), "an input reads `lists` or `streams`, not both", hint);
        return None;
    }
    let unused: &[&str] = match (of_lists, of_streams) {
        (true, _) => &["scan_frequency", "group", "initial_offset", "message_field"],
        (_, true) => &["scan_frequency"],
        _ => &["group", "initial_offset", "message_field", "consumer", "claim_after", "max_bytes"],
    };
    let read = match (of_lists, of_streams) {
        (true, _) => "`lists`",
        (_, true) => "`streams`",
        _ => "the slow log",
    };
    for name in unused.iter().filter(|name| section.has(name)) {
        let message = format!("`{name}` has no effect: this input reads {read}");
        section.warning(name, message, of_another_kind(name));
    }
    if of_streams && streams.group.is_empty() {
        section.problem(GROUP.name(), "`streams` needs `group`", "as in `group: skidder`");
        return None;
    }
    Some(if of_streams {
        Kind::Streams(streams)
    } else if of_lists {
        Kind::Lists(lists)
    } else {
        Kind::SlowLog
    })
}

/// What to do about a setting of another kind of reading than that of the input.
fn of_another_kind(name: &str) -> &'static str {
    match name {
        "scan_frequency" => "it is for the slow log: lists and streams are read at once; remove it",
        "group" | "initial_offset" | "message_field" => {
            "it is for `streams`: remove it, or read streams"
        }
        _ => "it is for `lists` and `streams`: remove it, or set one of them",
    }
}

/// The servers. `None`, and the problems are reported, if something is wrong.
fn read_servers(section: &Section<'_>, fs: &Arc<dyn Fs>) -> Option<Vec<Arc<Target>>> {
    let username = section.get(&USERNAME).value();
    let password = section.get(&PASSWORD).optional();
    if password.is_none() && !username.is_empty() {
        section.problem(USERNAME.name(), "`username` needs `password`", "");
    }
    let credentials = password.map(|password| (username, password));
    let has_tls = section.has(TLS.name());
    let ssl = section.optional_part(&TLS).map(|ssl| TlsSettings::read(&ssl));
    let tls = ssl.clone().filter(|tls| tls.enabled);
    let family = section.get(&NETWORK).value();
    if family == Family::Unix {
        if has_tls && tls.is_some() {
            section.problem(TLS.name(), "a socket in the file system has no TLS", "remove `ssl`");
        }
        return read_sockets(section, credentials.as_ref());
    }
    let servers = section.get(&HOSTS).try_each(read_server).at_least_one("server").required();
    if tls.is_some() && Server::are_plain(&servers) {
        WithoutTls::Redis.warn_of_plain(section);
    } else if tls.is_none()
        && ssl.is_some()
        && servers.iter().any(|server| server.tls == Some(true))
    {
        let message = "`ssl.enabled` is `false`, and a host begins with `rediss://`";
        let hint =
            "remove `ssl.enabled`; what is in `ssl` is used, and the connection is encrypted";
        section.warning(TLS.name(), message, hint);
    }
    let settings = TlsSettings { enabled: true, ..ssl.unwrap_or_default() };
    let mut targets = Vec::new();
    for server in servers {
        let tls = if server.tls.unwrap_or(tls.is_some()) {
            match TlsClient::new(&settings, Arc::clone(fs)) {
                Ok(client) => Some(client),
                Err(error) => {
                    error.report(section);
                    return None;
                }
            }
        } else {
            None
        };
        let network = match family {
            Family::Tcp4 => Network::Tcp4,
            Family::Tcp6 => Network::Tcp6,
            Family::Tcp | Family::Unix => Network::Tcp,
        };
        let route = Route {
            host: server.host,
            proxy: None,
            tls,
            http2: false,
            without_tls: WithoutTls::Redis,
        };
        let credentials = server.credentials.or_else(|| credentials.clone());
        targets.push(Arc::new(Target { route, network, credentials, db: server.db.unwrap_or(0) }));
    }
    Some(targets).filter(|all| !all.is_empty())
}

/// An entry of `hosts` over TCP; the error ends the sentence "`hosts[0]` is …; ".
fn read_server(text: &str) -> Result<Server, String> {
    if text.starts_with(['/', '.']) {
        return Err("the path of a socket needs `network: unix`".to_owned());
    }
    match text.strip_prefix("unix://") {
        Some(path) if path.starts_with('/') => {
            Err(format!("for a socket, write `{path}` and `network: unix`"))
        }
        _ => Server::parse(text),
    }
}

/// The path of a socket; the error is as that of [`read_server`].
fn read_socket(text: &str) -> Result<PathBuf, String> {
    match text.split_once("://") {
        Some(("unix", path)) if path.starts_with('/') => Err(format!("write `{path}` alone")),
        Some(_) => Err("a URL is no path of a socket; remove `network: unix`".to_owned()),
        None if text.contains('/') => Ok(PathBuf::from(text)),
        None => {
            Err("expected the path of a socket, as in `/run/redis.sock`; for a server over TCP \
                     remove `network: unix`"
                .to_owned())
        }
    }
}

/// The servers of `network: unix`. `None`, and the problems are reported, if something is wrong.
fn read_sockets(
    section: &Section<'_>,
    credentials: Option<&(String, Secret)>,
) -> Option<Vec<Arc<Target>>> {
    let paths = section.get(&HOSTS).try_each(read_socket).at_least_one("socket").required();
    let target = |path: PathBuf| {
        let host = Host { name: "localhost".to_owned(), port: 0 };
        let route =
            Route { host, proxy: None, tls: None, http2: false, without_tls: WithoutTls::Redis };
        let network = Network::Unix(path);
        Arc::new(Target { route, network, credentials: credentials.cloned(), db: 0 })
    };
    let targets: Vec<_> = paths.into_iter().map(target).collect();
    Some(targets).filter(|all| !all.is_empty())
}

#[cfg(test)]
mod tests;
