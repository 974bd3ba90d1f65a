//! The settings of `dns`.

use super::ask::{Resolver, Transport};
use super::message::Question;
use super::{Action, Dns};
use crate::cache::Cache;
use skidder_config::{Any, Group, Key, Part, Section, settings};
use skidder_event::Path;
use skidder_os::Fs;
use skidder_processors::Context;
use skidder_tls::TlsSettings;
use std::sync::Arc;
use std::time::Duration;

settings! {
    /// Settings of `dns`.
    pub(crate) static DNS = Group::new("processor.dns", "Looks up the names of addresses, the addresses of names, or texts, \
                               and remembers the answers.");

    TYPE: String = Key::new("type")
        .required()
        .about("what is asked: `A`, `AAAA`, `TXT`, or `PTR`, which is also `reverse`");
    FIELDS: Any = Key::new("fields").map()
        .required()
        .about("the field with the name or the address, and the field that the answer goes to, as \
                many as needed; nested or with dots");
    ACTION: String = Key::new("action")
        .default("append")
        .about("what happens to a target that is there: `append` makes a list of both, `replace` \
                replaces it");
    NAMESERVERS: Vec<String> = Key::new("nameservers")
        .default_words("those of `/etc/resolv.conf`")
        .about("the servers, each with a port if it is not the usual one; the next is asked when \
                one does not answer");
    TIMEOUT: Duration = Key::new("timeout")
        .default(SERVER_TIME)
        .about("how long each server may take");
    TRANSPORT: String = Key::new("transport")
        .default("udp")
        .about("`udp` (and TCP for what does not fit), or `tls`, with the certificate authorities \
                of the system");
    TAG_ON_FAILURE: Vec<String> = Key::new("tag_on_failure")
        .default_words("none")
        .about("tags for an event of which a field could not be looked up");
    SUCCESS_CACHE: Part = Key::part("success_cache", &SUCCESS)
        .about("answers");
    FAILURE_CACHE: Part = Key::part("failure_cache", &FAILURE)
        .about("failures");
}

settings! {
    /// The settings of both caches.
    static CACHE_KEYS = Group::new("processor.dns.cache", "What is remembered.");

    CACHE_ENABLED: bool = Key::new("enabled")
        .default(true)
        .about("remember them");
    CAPACITY_INITIAL: usize = Key::new("capacity.initial")
        .default_words("`1000`")
        .about("for how many there is room at the start");
    CAPACITY_MAX: usize = Key::new("capacity.max")
        .default(10_000)
        .range(1, MOST)
        .about("how many are remembered; full, any one of them is forgotten for a new one");
}

settings! {
    /// `success_cache`.
    static SUCCESS = Group::new("processor.dns.success_cache", "Answers are remembered.").include(&[&CACHE_KEYS]).inline().deprecated(&[("ttl", UNUSED_TIME)]);

    MIN_TTL: Duration = Key::new("min_ttl")
        .default(CACHE_TIME)
        .at_least(Duration::from_nanos(1))
        .about("how long they are remembered at least; otherwise for as long as the server says");
}

settings! {
    /// `failure_cache`.
    static FAILURE = Group::new("processor.dns.failure_cache", "Failures are remembered.").include(&[&CACHE_KEYS]).inline().deprecated(&[("min_ttl", UNUSED_TIME)]);

    TTL: Duration = Key::new("ttl")
        .default(CACHE_TIME)
        .at_least(Duration::from_nanos(1))
        .about("how long they are remembered");
}

/// The servers of the system.
pub(crate) const SYSTEM_SERVERS: &str = "/etc/resolv.conf";
/// Largest file of servers that is read.
const SYSTEM_SERVERS_BYTES_MAX: usize = 1 << 20;
/// Default of `timeout`, and what zero is.
const SERVER_TIME: Duration = Duration::from_millis(500);
/// Default of `success_cache.min_ttl` and of `failure_cache.ttl`.
const CACHE_TIME: Duration = Duration::from_mins(1);
/// Default of `capacity.initial`.
const INITIAL: usize = 1000;
/// Filebeat reads both times for both caches, and uses one.
const UNUSED_TIME: &str = "it has no effect here";
/// Largest `capacity.max`: about a GiB of names.
const MOST: usize = 10_000_000;

impl Dns {
    pub(crate) fn read(settings: &Section<'_>, context: &Context) -> Option<Self> {
        if !settings.has_key(&TYPE) {
            let message = format!("`{}` is missing", settings.path_of(TYPE.name()));
            settings.problem(TYPE.name(), message, "one of `A`, `AAAA`, `PTR` and `TXT`");
        }
        let question = settings.get(&TYPE).try_map(|text| question_of(&text)).optional();
        let action = settings.get(&ACTION).try_map(|text| match &*text.to_lowercase() {
            "" | "append" => Ok(Action::Append),
            "replace" => Ok(Action::Replace),
            _ => Err("expected `append` or `replace`".to_owned()),
        });
        let action = action.value();
        let fields = read_fields(settings);
        let timeout = settings.get(&TIMEOUT).value();
        let timeout = if timeout.is_zero() { SERVER_TIME } else { timeout };
        let secure = settings.get(&TRANSPORT).try_map(|text| match &*text.to_lowercase() {
            "udp" => Ok(false),
            "tls" => Ok(true),
            _ => Err("expected `udp` or `tls`".to_owned()),
        });
        let secure = secure.value();
        let servers = read_servers(settings, &*context.fs, if secure { 853 } else { 53 });
        let (success, success_min) = read_cache(&settings.part(&SUCCESS_CACHE), &MIN_TTL);
        let (failure, failure_time) = read_cache(&settings.part(&FAILURE_CACHE), &TTL);
        let transport = read_transport(settings, secure, &*context.fs);
        Some(Self {
            question: question?,
            action,
            fields: fields?,
            tag_on_failure: settings.get(&TAG_ON_FAILURE).optional().unwrap_or_default(),
            resolver: Resolver::new(servers?, transport?, timeout),
            success,
            success_min,
            failure,
            failure_time,
            clock: Arc::clone(&context.clock),
        })
    }
}

fn question_of(text: &str) -> Result<Question, String> {
    match &*text.to_lowercase() {
        "a" => Ok(Question::A),
        "aaaa" => Ok(Question::Aaaa),
        "ptr" | "reverse" => Ok(Question::Ptr),
        "txt" => Ok(Question::Txt),
        _ => Err("expected one of `A`, `AAAA`, `PTR`, `TXT` and `reverse`".to_owned()),
    }
}

/// From where to where, nested or with dots.
fn read_fields(settings: &Section<'_>) -> Option<Vec<(Path, Path)>> {
    let mut fields = Vec::new();
    let mut right = true;
    for (source, target) in settings.names(&FIELDS).leaves() {
        let parse = |text: String| Path::parse(&text).map_err(|error| error.to_string());
        match (Path::parse(&source), target.string().try_map(parse).optional()) {
            (Ok(source), Some(path)) => fields.push((source, path)),
            (Err(error), _) => {
                target.problem(format!("`{}`: {error}", target.path()), "");
                right = false;
            }
            // Already reported.
            (Ok(_), None) => right = false,
        }
    }
    if fields.is_empty() && right {
        let message = format!("`{}` is missing", settings.path_of(FIELDS.name()));
        settings.problem(
            FIELDS.name(),
            message,
            "give the field to look up, and where the answer goes",
        );
        return None;
    }
    right.then_some(fields)
}

/// The servers of the configuration, or those of the system.
fn read_servers(settings: &Section<'_>, fs: &dyn Fs, port: u16) -> Option<Vec<(String, u16)>> {
    let configured = settings.get(&NAMESERVERS).try_map(|names| {
        names.iter().map(|name| server_of(name, port)).collect::<Result<Vec<_>, _>>()
    });
    let is_set = configured.is_set();
    match configured.optional() {
        Some(servers) if !servers.is_empty() => return Some(servers),
        // Already reported.
        None if is_set => return None,
        _ => {}
    }
    let file = fs.open(SYSTEM_SERVERS.as_ref());
    let bytes = file.and_then(|file| skidder_os::read_to_end(&*file, SYSTEM_SERVERS_BYTES_MAX));
    let text = bytes.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
    let servers: Vec<_> = system_servers(&text).map(|name| (name.to_owned(), port)).collect();
    if servers.is_empty() {
        let why = bytes.err().map_or_else(|| "it names none".to_owned(), |error| error.to_string());
        let message = format!("no dns servers configured, and none in `{SYSTEM_SERVERS}`: {why}");
        settings.problem(NAMESERVERS.name(), message, "set `nameservers`");
        return None;
    }
    Some(servers)
}

/// The addresses in a `resolv.conf` (see its page in section 5 of the manual).
pub(crate) fn system_servers(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        words.next().filter(|word| *word == "nameserver")?;
        words.next()
    })
}

/// Host and port of `host`, `host:port`, an IPv6 address, or one in brackets.
pub(crate) fn server_of(text: &str, port: u16) -> Result<(String, u16), String> {
    if text.parse::<std::net::Ipv6Addr>().is_ok() {
        return Ok((text.to_owned(), port));
    }
    let (name, given) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((name, "")) => (name, None),
        Some((name, rest)) => (name, rest.strip_prefix(':')),
        None => text.split_once(':').map_or((text, None), |(name, port)| (name, Some(port))),
    };
    let given = given.map(str::parse).transpose();
    match given.map_err(|_| format!("`{text}` has no port at its end"))? {
        _ if name.is_empty() => Err(format!("`{text}` names no server")),
        given => Ok((name.to_owned(), given.unwrap_or(port))),
    }
}

/// A cache, if it is turned on, and the time at `key`.
fn read_cache<T: Clone>(
    section: &Section<'_>,
    key: &Key<Duration>,
) -> (Option<Cache<T>>, Duration) {
    let enabled = section.get(&CACHE_ENABLED).value();
    let time = section.get(key).value();
    let max = section.get(&CAPACITY_MAX).value();
    let initial = section.get(&CAPACITY_INITIAL).check(|initial| {
        if *initial <= max { Ok(()) } else { Err("it is above `capacity.max`".to_owned()) }
    });
    let initial = initial.optional().unwrap_or(INITIAL.min(max));
    (enabled.then(|| Cache::new(initial, max)), time)
}

fn read_transport(settings: &Section<'_>, secure: bool, fs: &dyn Fs) -> Option<Transport> {
    if !secure {
        return Some(Transport::Udp);
    }
    match TlsSettings::default().client(fs) {
        Ok(config) => Some(Transport::Tls(config)),
        Err(error) => {
            settings.problem(TRANSPORT.name(), error.to_string(), "use `udp`");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_have_the_port_that_is_usual_or_their_own() {
        for (text, server) in [
            ("1.1.1.1", Ok(("1.1.1.1", 53))),
            ("1.1.1.1:5353", Ok(("1.1.1.1", 5353))),
            ("::1", Ok(("::1", 53))),
            ("[::1]", Ok(("::1", 53))),
            ("[::1]:54", Ok(("::1", 54))),
            ("dns.example:53", Ok(("dns.example", 53))),
            ("a:b", Err("has no port at its end")),
            (":53", Err("names no server")),
        ] {
            match (server_of(text, 53), server) {
                (Ok((name, port)), Ok(expected)) => assert_eq!((&*name, port), expected, "{text}"),
                (Err(error), Err(expected)) => assert!(error.contains(expected), "{error}"),
                (got, _) => panic!("{text}: {got:?}"),
            }
        }
    }

    #[test]
    fn the_servers_of_the_system_stand_behind_their_word() {
        let text =
            "# a comment\nsearch x\nnameserver 10.0.0.1\n  nameserver\tfe80::1 \nnameservers 1\n";
        assert_eq!(system_servers(text).collect::<Vec<_>>(), ["10.0.0.1", "fe80::1"]);
    }
}
