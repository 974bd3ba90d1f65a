//! What every input has: settings that all types share, and the sockets that a configuration has given out.

use skidder_config::{Group, Key, Section, settings};
use skidder_event::Row;
use skidder_net::{Claim, Family, SocketKey, Sockets};
use skidder_tls::TlsServerSettings;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

/// `format` of an input of plain messages: another program, or Filebeat's `syslog` input, means the format of syslog. For
/// [`Group::called_elsewhere`].
pub(crate) const FORMAT_OF_SYSLOG: (&str, &str, &str) = (
    "format",
    "",
    "the processor `syslog` has it: `processors: [{syslog: {field: message, format: rfc5424}}]`",
);

settings! {
    /// A setting of every input here, beside those of all inputs, which the program declares.
    pub static EVERY_INPUT = Group::new("input.task.*", "What every input has.").common();

    pub(crate) KEEP_NULL: bool =
        Key::new("keep_null").default(false).about("fields that are null stay on events; these have none");
}

mod workers {
    use super::*;

    settings! {
        /// A setting that Filebeat needs and we do not.
        pub(crate) static WORKERS = Group::new("input.workers", "Who runs the processors.");

        pub(super) NUMBER_OF_WORKERS: u64 = Key::new("number_of_workers")
            .default(1)
            .at_least(1)
            .noun("a number of workers")
            .about("more has no effect, with a notice: each connection runs its own processors, and one thread those \
                    of hundreds of datagrams at a time");
    }
}

pub(crate) use workers::WORKERS;

/// Reads `number_of_workers`, which has no effect.
pub(crate) fn read_workers(section: &Section<'_>) {
    if section.get(&workers::NUMBER_OF_WORKERS).value() > 1 {
        section.warning(
            workers::NUMBER_OF_WORKERS.name(),
            "no effect: each connection runs the processors by itself, on as many cores as there are, and one thread \
             those of hundreds of datagrams at a time",
            "remove it; Filebeat needs it because it handles one message at a time",
        );
    }
}

/// Begins to read an input with the settings of `group`, which includes [`EVERY_INPUT`].
pub(crate) fn begin(section: &Section<'_>, group: &'static Group) {
    section.declared_by(group);
    // Neither what is received nor what is found in it is ever null.
    read_common(section);
}

/// Reads the settings of [`EVERY_INPUT`], for an input of another crate.
pub fn read_common(section: &Section<'_>) -> bool {
    section.get(&KEEP_NULL).value()
}

/// How many of the bytes are known to be UTF-8, at the ends of the messages of these rows, too: all or none.
pub(crate) fn known_utf8(bytes: &[u8], rows: &[Row]) -> usize {
    let Ok(text) = simdutf8::basic::from_utf8(bytes) else { return 0 };
    let is_boundary = |row: &Row| {
        let (start, len) = (row.message.start as usize, row.message.len as usize);
        text.is_char_boundary(start) && text.is_char_boundary(start + len)
    };
    if rows.iter().all(is_boundary) { bytes.len() } else { 0 }
}

/// What only one of the inputs of a configuration can have: sockets, names at a broker, and names of consumers.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    sockets: Arc<Mutex<Vec<WantedSocket>>>,
    /// Brokers and names of clients, with the place of the setting.
    clients: Arc<Mutex<BTreeMap<(String, String), String>>>,
    /// What is read, by which consumer, with the place of the setting.
    consumers: Arc<Mutex<BTreeMap<(String, String), String>>>,
}

/// A socket, the place of its setting, and what an input of HTTP has of it.
#[derive(Debug)]
struct WantedSocket {
    key: SocketKey,
    position: String,
    part: Option<HttpPart>,
}

/// What an input of HTTP has of a server: others may have other paths of the same one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HttpPart {
    pub(crate) path: String,
    pub(crate) tls: Option<TlsServerSettings>,
}

impl Wanted {
    /// Claims a socket for the input with this section, whose setting `name` has its address. Reports a socket that
    /// another input of the configuration has claimed: only one of them could bind it.
    pub(crate) fn claim(
        &self,
        sockets: &Sockets,
        section: &Section<'_>,
        name: &str,
        key: SocketKey,
    ) -> Claim {
        self.claim_part(sockets, section, name, key, None)
    }

    /// The same for an input that has only a path of a server.
    pub(crate) fn claim_for_http(
        &self,
        sockets: &Sockets,
        section: &Section<'_>,
        name: &str,
        key: SocketKey,
        part: HttpPart,
    ) -> Claim {
        self.claim_part(sockets, section, name, key, Some(part))
    }

    fn claim_part(
        &self,
        sockets: &Sockets,
        section: &Section<'_>,
        name: &str,
        key: SocketKey,
        part: Option<HttpPart>,
    ) -> Claim {
        let position = place_of(section, name);
        let mut wanted = self.sockets.lock().unwrap_or_else(PoisonError::into_inner);
        let problem = wanted.iter().find_map(|other| {
            let is_shared = other.part.is_some() && part.is_some() && other.key == key;
            let conflict =
                if is_shared { other.conflict(part.as_ref()) } else { Some(EACH_ITS_OWN) };
            let is_same = is_shared || are_same(&other.key, &key);
            conflict.filter(|_| is_same).map(|conflict| (other.position.clone(), conflict))
        });
        if let Some((other, (what, hint))) = problem {
            let message = format!("`{}`: the input at {other} {what}", section.path_of(name));
            section.problem(name, message, hint);
        } else {
            wanted.push(WantedSocket { key: key.clone(), position, part });
        }
        drop(wanted);
        sockets.claim(key)
    }

    /// Takes note of the name of the client at brokers, which the setting `name` has. Warns if another input of the
    /// configuration has it at the same broker, which ends one connection for the other, again and again.
    pub(crate) fn name_client(
        &self,
        section: &Section<'_>,
        name: &str,
        client: &str,
        brokers: impl Iterator<Item = String>,
    ) {
        let place = place_of(section, name);
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let mut same = None;
        for broker in brokers {
            let key = (broker, client.to_owned());
            match clients.get(&key) {
                Some(other) if *other != place => {
                    same.get_or_insert((key.0, other.clone()));
                }
                _ => drop(clients.insert(key, place.clone())),
            }
        }
        if let Some((broker, other)) = same {
            let message = format!(
                "the input at {other} is `{client}` at the broker {broker}, too, which ends the connection of one \
                 when the other comes"
            );
            section.warning(name, message, format!("give each its own `{name}`"));
        }
    }
}

impl Wanted {
    /// Takes note of what the input with this section reads as a consumer with a name; the setting `name` says what it
    /// reads. Reports an error if another input of the configuration reads the same with the same name: each would
    /// take what the other has in flight.
    pub fn consume(
        &self,
        section: &Section<'_>,
        name: &str,
        read: impl Iterator<Item = String>,
        consumer: &str,
    ) {
        let place = place_of(section, name);
        let mut consumers = self.consumers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut same = None;
        for read in read {
            let key = (read, consumer.to_owned());
            match consumers.get(&key) {
                Some(other) if *other != place => {
                    same.get_or_insert((key.0, other.clone()));
                }
                _ => drop(consumers.insert(key, place.clone())),
            }
        }
        drop(consumers);
        if let Some((read, other)) = same {
            let message = format!(
                "the input at {other} reads {read} as the consumer `{consumer}`, too: each would take what the other \
                 has in flight"
            );
            section.problem(name, message, "give each its own `consumer`");
        }
    }
}

/// Where a setting is written; without it, which part of the configuration it belongs to.
fn place_of(section: &Section<'_>, name: &str) -> String {
    let item = section.item(name);
    let position = item.map(|item| item.node().position().to_string());
    position.unwrap_or_else(|| section.path().to_owned())
}

const EACH_ITS_OWN: (&str, &str) =
    ("listens there, too", "give each its own address, or remove one of them");

impl WantedSocket {
    /// Why another input of HTTP cannot have this part of the same server: what, and a hint.
    fn conflict(&self, other: Option<&HttpPart>) -> Option<(&'static str, &'static str)> {
        let (one, other) = (self.part.as_ref()?, other?);
        if one.path == other.path {
            return Some((
                "has the same `url` there",
                "give each its own `url` or address, or one of them all of `accept`",
            ));
        }
        let hint = "write the same `ssl` for both, or give each its own address";
        (one.tls != other.tls).then_some(("listens there with another `ssl`", hint))
    }
}

/// Whether only one of two sockets can be bound.
fn are_same(one: &SocketKey, other: &SocketKey) -> bool {
    use SocketKey::{Tcp, Udp, UnixDatagram, UnixStream};
    match (one, other) {
        (
            Tcp { host, port, family },
            Tcp { host: other_host, port: other_port, family: other_family },
        )
        | (
            Udp { host, port, family },
            Udp { host: other_host, port: other_port, family: other_family },
        ) => {
            let overlap =
                || Bound::of(host, *family).overlaps(&Bound::of(other_host, *other_family));
            port == other_port && *port != 0 && overlap()
        }
        (UnixStream(path) | UnixDatagram(path), UnixStream(other) | UnixDatagram(other)) => {
            path == other
        }
        _ => false,
    }
}

/// A host as it is bound, by version of IP: `localhost`, `127.0.0.1` and `::ffff:7f00:1` are the same.
struct Bound {
    v4: Option<Host>,
    v6: Option<Host>,
}

#[derive(PartialEq)]
enum Host {
    All,
    One(IpAddr),
    /// Known when it is looked up, at the start.
    Name(String),
}

impl Bound {
    fn of(host: &str, family: Family) -> Self {
        let is = |version: Family| family == Family::Any || family == version;
        let both = |host: fn(IpAddr) -> Host| Self {
            v4: is(Family::V4).then(|| host(Ipv4Addr::LOCALHOST.into())),
            v6: is(Family::V6).then(|| host(Ipv6Addr::LOCALHOST.into())),
        };
        let name = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        match host.parse().map(|address: IpAddr| address.to_canonical()) {
            Ok(address) if address.is_unspecified() => both(|_| Host::All),
            Ok(address @ IpAddr::V4(_)) => Self { v4: Some(Host::One(address)), v6: None },
            Ok(address @ IpAddr::V6(_)) => Self { v4: None, v6: Some(Host::One(address)) },
            Err(_) if host.is_empty() => both(|_| Host::All),
            // Of several addresses the first one of IPv4 is bound.
            Err(_) if name == "localhost" && family != Family::V6 => {
                Self { v6: None, ..both(Host::One) }
            }
            Err(_) if name == "localhost" => both(Host::One),
            Err(_) => Self {
                v4: is(Family::V4).then(|| Host::Name(name.clone())),
                v6: is(Family::V6).then(|| Host::Name(name.clone())),
            },
        }
    }

    /// Whether one of the two cannot be bound beside the other. What a name stands for is not known: it is in the way of
    /// the same name and of all addresses.
    fn overlaps(&self, other: &Self) -> bool {
        let same = |one: &Option<Host>, other: &Option<Host>| match (one, other) {
            (Some(one), Some(other)) => one == other || *one == Host::All || *other == Host::All,
            _ => false,
        };
        same(&self.v4, &other.v4) || same(&self.v6, &other.v6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skidder_config::{Problems, Settings};

    #[test]
    fn an_address_is_the_same_however_it_is_written() {
        use Family::{Any, V4, V6};
        let overlap = |(one, of): (&str, Family), (other, of_other): (&str, Family)| {
            let (one, other) = (Bound::of(one, of), Bound::of(other, of_other));
            assert_eq!(one.overlaps(&other), other.overlaps(&one));
            one.overlaps(&other)
        };
        for (one, other) in [
            (("localhost", Any), ("127.0.0.1", Any)),
            (("LocalHost.", V4), ("::ffff:127.0.0.1", Any)),
            (("localhost", V6), ("0:0:0:0:0:0:0:1", Any)),
            (("", Any), ("0.0.0.0", Any)),
            (("", Any), ("::", V6)),
            (("", Any), ("192.0.2.1", Any)),
            (("0.0.0.0", Any), ("::1", Any)),
            (("Logs.Example", Any), ("logs.example.", V6)),
            (("logs.example", Any), ("", V4)),
        ] {
            assert!(overlap(one, other), "{one:?} {other:?}");
        }
        for (one, other) in [
            (("localhost", Any), ("::1", Any)),
            (("localhost", Any), ("127.0.0.2", Any)),
            (("", V4), ("::1", Any)),
            (("", V4), ("", V6)),
            (("logs.example", Any), ("127.0.0.1", Any)),
            (("logs.example", V4), ("logs.example", V6)),
        ] {
            assert!(!overlap(one, other), "{one:?} {other:?}");
        }
    }

    #[test]
    fn a_consumer_of_another_input_is_reported_with_the_place_of_both() {
        let text = "a: {lists: [x, y]}\nb: {lists: [y, z]}";
        let settings = Settings::parse("f.yml", text).unwrap();
        let wanted = Wanted::default();
        for (name, read, consumer, expected) in [
            ("a", ["x", "y"], "c", ""),
            // It is read once more, for another use.
            ("a", ["x", "y"], "c", ""),
            ("b", ["y", "z"], "d", ""),
            ("b", ["y", "z"], "c", " reads y as the consumer `c`, too: each would take what"),
        ] {
            let problems = Problems::new();
            let root = settings.root(&problems);
            let section = root.section(name);
            root.skip();
            wanted.consume(&section, "lists", read.into_iter().map(str::to_owned), consumer);
            section.skip();
            let said = problems.to_string();
            assert!(said.contains(expected), "{said}");
            assert_eq!(said.is_empty(), expected.is_empty(), "{said}");
            let has_places = said.starts_with("error: f.yml:2:") && said.contains("at f.yml:1:");
            assert_eq!(has_places, !expected.is_empty(), "{said}");
        }
    }

    #[test]
    fn a_socket_that_another_input_has_is_reported_with_the_place_of_both() {
        let text = "a: {host: x}\nb: {host: x}\nc: {host: y}\nd: {}";
        let settings = Settings::parse("f.yml", text).unwrap();
        let (wanted, sockets) = (Wanted::default(), Sockets::default());
        let tcp = |host: &str, family| SocketKey::Tcp { host: host.to_owned(), port: 1, family };
        let mut claims = Vec::new();
        for (name, key, expected) in [
            ("a", tcp("x", Family::Any), ""),
            ("c", tcp("y", Family::V4), ""),
            ("c", tcp("y", Family::V6), ""),
            ("d", SocketKey::Udp { host: "x".to_owned(), port: 1, family: Family::Any }, ""),
            ("d", SocketKey::Tcp { host: "z".to_owned(), port: 0, family: Family::Any }, ""),
            ("d", SocketKey::Tcp { host: "z".to_owned(), port: 0, family: Family::Any }, ""),
            ("d", SocketKey::UnixStream("/s".into()), ""),
            ("d", SocketKey::UnixDatagram("/s".into()), "`d.host`: the input at d listens there"),
            (
                "b",
                tcp("x", Family::V6),
                "f.yml:2:11: `b.host`: the input at f.yml:1:11 listens there",
            ),
        ] {
            let problems = Problems::new();
            let root = settings.root(&problems);
            let section = root.section(name);
            root.skip();
            claims.push(wanted.claim(&sockets, &section, "host", key));
            let said = problems.to_string();
            assert!(said.contains(expected), "{said}");
            assert_eq!(said.is_empty(), expected.is_empty(), "{said}");
            section.skip();
        }
    }
}
