//! Searches for agents of Jolokia: a query to a multicast address on each network interface, again and again.
//!
//! A query goes from the first IPv4 address of an interface, which is how the kernel knows on which interface to send
//! it. Agents answer to the socket that has sent it.

use super::{Report, What};
use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use skidder_autodiscover::limits::{JOLOKIA_ANSWER_BYTES_MAX, JOLOKIA_ANSWERS_MAX};
use skidder_autodiscover::{JolokiaAgents, JolokiaInterface};
use skidder_os::Clock;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::net::UdpSocket;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

/// Where agents receive queries.
pub(super) const DISCOVERY: SocketAddrV4 =
    SocketAddrV4::new(Ipv4Addr::new(239, 192, 48, 84), 24884);

const QUERY: &[u8] = br#"{"type":"query"}"#;

/// Searches on all `interfaces` with queries to `target`, which is [`DISCOVERY`] but for tests.
pub(super) async fn follow_jolokia(
    interfaces: Vec<JolokiaInterface>,
    target: SocketAddrV4,
    clock: Arc<dyn Clock>,
    report: Report,
) {
    let agents = Arc::<Mutex<JolokiaAgents>>::default();
    let mut searches = JoinSet::new();
    for interface in interfaces {
        let (agents, clock, report) = (Arc::clone(&agents), Arc::clone(&clock), report.clone());
        let search = Search { interface, target, agents, clock, report };
        searches.spawn(Arc::new(search).run());
    }
    // They go on until the program ends.
    while searches.join_next().await.is_some() {}
}

/// The search of one item of `interfaces`.
struct Search {
    interface: JolokiaInterface,
    target: SocketAddrV4,
    /// Shared by all items: an agent can answer on several interfaces.
    agents: Arc<Mutex<JolokiaAgents>>,
    clock: Arc<dyn Clock>,
    report: Report,
}

impl Search {
    async fn run(self: Arc<Self>) {
        let mut trouble = Trouble::default();
        loop {
            self.probe(&mut trouble).await;
            let gone = self.agents().expire(self.clock.monotonic());
            for id in gone {
                tracing::info!(id, "an agent of Jolokia has not answered for its grace period");
                self.report.report(What::Gone(id, None));
            }
            tokio::time::sleep(self.interface.interval).await;
        }
    }

    fn agents(&self) -> std::sync::MutexGuard<'_, JolokiaAgents> {
        self.agents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a query on each interface, and takes the answers.
    async fn probe(self: &Arc<Self>, trouble: &mut Trouble) {
        let name = &self.interface.name;
        let found = match addresses(&self.interface) {
            Ok(found) if found.is_empty() => {
                trouble.note(name, Err(io::Error::other("no interface with an IPv4 address")));
                return;
            }
            Ok(found) => found,
            Err(error) => return trouble.note(name, Err(error)),
        };
        trouble.note(name, Ok(()));
        let mut queries = JoinSet::new();
        for (name, address) in found {
            let search = Arc::clone(self);
            queries.spawn(async move { (name, search.query(address).await) });
        }
        while let Some(ended) = queries.join_next().await {
            if let Ok((name, result)) = ended {
                trouble.note(&name, result);
            }
        }
    }

    /// Sends a query from an address, and takes the answers until the time is over.
    async fn query(&self, address: Ipv4Addr) -> io::Result<()> {
        let socket = UdpSocket::bind((address, 0)).await?;
        let until = Instant::now() + self.interface.probe_timeout.min(self.interface.interval);
        socket.send_to(QUERY, self.target).await?;
        // One more, to recognize an answer that is longer.
        let mut buffer = vec![0; JOLOKIA_ANSWER_BYTES_MAX + 1];
        for _ in 0..JOLOKIA_ANSWERS_MAX {
            let Ok(received) = timeout_at(until, socket.recv_from(&mut buffer)).await else {
                return Ok(());
            };
            let (length, from) = received?;
            let taken = if length > JOLOKIA_ANSWER_BYTES_MAX {
                Err(format!("it has more than {JOLOKIA_ANSWER_BYTES_MAX} bytes"))
            } else {
                let (grace, now) = (self.interface.grace_period, self.clock.monotonic());
                self.agents().answered(&buffer[..length], grace, now)
            };
            match taken {
                Ok(Some(agent)) => self.report.report(What::Seen(agent.into())),
                Ok(None) => {}
                Err(reason) => {
                    tracing::debug!(%from, reason, "an answer to a query for agents of Jolokia is ignored");
                }
            }
        }
        tracing::debug!(%address, "too many answers to a query for agents of Jolokia");
        Ok(())
    }
}

/// The interfaces that are meant and up, each with its first IPv4 address.
fn addresses(interface: &JolokiaInterface) -> io::Result<BTreeMap<String, Ipv4Addr>> {
    let mut found = BTreeMap::new();
    for one in getifaddrs()? {
        let address = one.address.as_ref().and_then(|address| address.as_sockaddr_in());
        let is_meant =
            one.flags.contains(InterfaceFlags::IFF_UP) && interface.matches(&one.interface_name);
        if let Some(address) = address.filter(|_| is_meant) {
            found.entry(one.interface_name).or_insert(address.ip());
        }
    }
    Ok(found)
}

/// Interfaces on which queries fail, by name.
#[derive(Default)]
struct Trouble(BTreeSet<String>);

impl Trouble {
    /// Logs a failure, as a warning when it begins, and the end of failures.
    fn note(&mut self, interface: &str, result: io::Result<()>) {
        match result {
            Ok(()) if self.0.remove(interface) => {
                tracing::info!(interface, "agents of Jolokia are searched again");
            }
            Ok(()) => {}
            Err(error) if self.0.insert(interface.to_owned()) => {
                tracing::warn!(interface, %error, "agents of Jolokia cannot be searched; trying again");
            }
            Err(error) => {
                tracing::debug!(interface, %error, "agents of Jolokia cannot be searched still");
            }
        }
    }
}

#[cfg(test)]
mod tests;
