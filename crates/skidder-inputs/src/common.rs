//! What every input has: settings that all types share, and the sockets that a configuration has given out.

use skidder_config::{Group, Key, Section, settings};
use skidder_net::{Claim, Family, SocketKey, Sockets};
use std::sync::{Arc, Mutex, PoisonError};

settings! {
    /// A setting of every input here, beside those of all inputs, which the program declares.
    pub static EVERY_INPUT = Group::new("input.task.*", "What every input has.").common();

    KEEP_NULL: bool =
        Key::new("keep_null").default(false).about("fields that are null stay on events; these have none");
}

/// Begins to read an input with the settings of `group`, which includes [`EVERY_INPUT`].
pub(crate) fn begin(section: &Section<'_>, group: &'static Group) {
    section.declared_by(group);
    // Neither what is received nor what is found in it is ever null.
    section.get(&KEEP_NULL).value();
}

/// The sockets that the inputs of one configuration want, each with the place of its setting.
#[derive(Clone, Debug, Default)]
pub struct Wanted(Arc<Mutex<Vec<(SocketKey, String)>>>);

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
        let item = section.item(name);
        let position = item.map(|item| item.node().position().to_string());
        let position = position.unwrap_or_else(|| section.path().to_owned());
        let mut wanted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match wanted.iter().find(|(other, _)| are_same(other, &key)) {
            Some((_, other)) => {
                let message =
                    format!("`{}`: the input at {other} listens there, too", section.path_of(name));
                section.problem(name, message, "give each its own address, or remove one of them");
            }
            None => wanted.push((key.clone(), position)),
        }
        drop(wanted);
        sockets.claim(key)
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
            let families = [*family, *other_family];
            let are_apart = families.contains(&Family::V4) && families.contains(&Family::V6);
            host == other_host && port == other_port && *port != 0 && !are_apart
        }
        (UnixStream(path) | UnixDatagram(path), UnixStream(other) | UnixDatagram(other)) => {
            path == other
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skidder_config::{Problems, Settings};

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
