//! `add_network_direction`: whether a connection goes into, out of, within or past the own networks.

use crate::condition::{Network, address};
use crate::fields::pairs::required_path;
use crate::plan::{Constants, Failure, Footprint, Outcome, Processor, rehearse};
use skidder_config::Section;
use skidder_event::{EventMut, EventRef, Path, ValueRef};

/// Adds the direction of a connection.
#[derive(Clone, Debug)]
pub(crate) struct AddNetworkDirection {
    source: Path,
    destination: Path,
    target: Path,
    internal: Vec<Network>,
}

impl AddNetworkDirection {
    /// `source`, `destination`, `target`, `internal_networks`.
    pub(crate) fn read(settings: &Section<'_>) -> Option<Self> {
        let source = required_path(settings, "source");
        let destination = required_path(settings, "destination");
        let target = required_path(settings, "target");
        let parse = |texts: Vec<String>| {
            let networks = texts.iter().map(|text| Network::parse(text));
            networks.collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())
        };
        let internal = settings.strings("internal_networks").try_map(parse);
        let wrong = internal.is_set();
        let internal = internal.optional();
        if internal.as_ref().map_or(!wrong, Vec::is_empty) {
            let message = format!("`{}` names no network", settings.path_of("internal_networks"));
            let hint = "give a list of networks, as in `[private, 198.51.100.0/24]`";
            settings.problem("internal_networks", message, hint);
            return None;
        }
        let internal = internal?;
        Some(Self { source: source?, destination: destination?, target: target?, internal })
    }

    /// Whether the address at a path is in the own networks; nothing if there is none.
    fn is_internal(&self, event: EventRef<'_>, path: &Path) -> Option<bool> {
        let ValueRef::Str(text) = event.get(path)? else { return None };
        let address = address(text)?;
        Some(self.internal.iter().any(|network| network.contains(address)))
    }
}

impl Processor for AddNetworkDirection {
    fn name(&self) -> &'static str {
        "add_network_direction"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        let seen = event.as_ref();
        let source = self.is_internal(seen, &self.source);
        let destination = self.is_internal(seen, &self.destination);
        let direction = match (source, destination) {
            (None, _) | (_, None) => return Ok(Outcome::Done),
            (Some(true), Some(true)) => "internal",
            (Some(true), Some(false)) => "outbound",
            (Some(false), Some(true)) => "inbound",
            (Some(false), Some(false)) => "external",
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
