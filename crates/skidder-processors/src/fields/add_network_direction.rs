//! `add_network_direction`: whether a connection goes into, out of, within or past the own networks.

use crate::condition::{Network, NetworkError, address};
use crate::fields::pairs::required_path;
use crate::plan::{Constants, Failure, Footprint, Outcome, Processor, rehearse};
use skidder_config::{Group, Key, Section, settings};
use skidder_event::{EventMut, EventRef, Path, ValueRef};
use std::net::IpAddr;

settings! {
    /// Settings of `add_network_direction`.
    pub(crate) static ADD_NETWORK_DIRECTION = Group::new("processor.add_network_direction", "Says whether a connection goes into the own networks (`inbound`), \
                               out of them (`outbound`), within (`internal`) or past them \
                               (`external`).");

    SOURCE: String = Key::new("source")
        .required()
        .about("the field with the address that the connection comes from");
    DESTINATION: String = Key::new("destination")
        .required()
        .about("the field with the address that it goes to");
    TARGET: String = Key::new("target")
        .required()
        .about("where the direction goes");
    INTERNAL_NETWORKS: Vec<String> = Key::new("internal_networks")
        .required()
        .about("the own networks: addresses with a prefix length, or names as in the condition \
                `network`");
}

/// Adds the direction of a connection.
#[derive(Clone, Debug)]
pub(crate) struct AddNetworkDirection {
    source: Path,
    destination: Path,
    target: Path,
    /// An invalid name makes the processor fail on the addresses that are looked up in it.
    internal: Vec<Result<Network, NetworkError>>,
}

impl AddNetworkDirection {
    /// `source`, `destination`, `target`, `internal_networks`.
    pub(crate) fn read(settings: &Section<'_>) -> Option<Self> {
        let source = required_path(settings, &SOURCE);
        let destination = required_path(settings, &DESTINATION);
        let target = required_path(settings, &TARGET);
        let texts = settings.get(&INTERNAL_NETWORKS).optional().unwrap_or_default();
        let path = settings.path_of(INTERNAL_NETWORKS.name());
        let hint = "give a list of networks, as in `[private, 198.51.100.0/24]`";
        if texts.is_empty() {
            settings.problem(INTERNAL_NETWORKS.name(), format!("`{path}` names no network"), hint);
            return None;
        }
        let internal: Vec<_> = texts.iter().map(|text| Network::parse(text)).collect();
        for error in internal.iter().filter_map(|network| network.as_ref().err()) {
            let message =
                format!("`{path}`: {error}; the processor fails on events with addresses");
            settings.warning(INTERNAL_NETWORKS.name(), message, "");
        }
        Some(Self { source: source?, destination: destination?, target: target?, internal })
    }

    /// Whether an address is in the own networks.
    fn is_internal(&self, address: IpAddr) -> Result<bool, Failure> {
        for network in &self.internal {
            match network {
                Ok(network) if network.contains(address) => return Ok(true),
                Ok(_) => {}
                Err(error) => return Err(Failure::unnoted(error.to_string())),
            }
        }
        Ok(false)
    }
}

/// The address at a path, if there is one.
fn address_at(event: EventRef<'_>, path: &Path) -> Option<IpAddr> {
    let ValueRef::Str(text) = event.get(path)? else { return None };
    address(text)
}

impl Processor for AddNetworkDirection {
    fn name(&self) -> &'static str {
        "add_network_direction"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        let seen = event.as_ref();
        let (source, destination) =
            (address_at(seen, &self.source), address_at(seen, &self.destination));
        let (Some(source), Some(destination)) = (source, destination) else {
            return Ok(Outcome::Done);
        };
        let direction = match (self.is_internal(source)?, self.is_internal(destination)?) {
            (true, true) => "internal",
            (true, false) => "outbound",
            (false, true) => "inbound",
            (false, false) => "external",
        };
        event
            .put_text(&self.target, direction.as_bytes())
            .map_err(|error| Failure::unnoted(error.to_string()))?;
        Ok(Outcome::Done)
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        let reads = vec![self.source.clone(), self.destination.clone()];
        Footprint { reads, writes: vec![self.target.clone()], ..Footprint::default() }
    }

    fn fold(&self, constants: &mut Constants) -> bool {
        rehearse(self, constants, &[&self.target])
    }

    fn describe(&self) -> String {
        format!("add_network_direction to {}", self.target)
    }
}
