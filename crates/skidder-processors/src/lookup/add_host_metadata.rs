//! `add_host_metadata`: data about the machine, as `host.*`.
//!
//! The machine is inspected once and again when `cache.ttl` has passed; the plan's epoch grows when
//! something has changed, so that sources bind again and no event pays for it.

mod gather;
mod network;
mod os_release;

pub use gather::{Machine, ThisMachine};

pub(in crate::lookup) use gather::read_text;
pub(in crate::lookup) use network::{ip_addresses, mac_addresses};

use gather::host_fields;

use crate::fields::AddFields;
use crate::kinds::Context;
use crate::plan::Constants;
use crate::plan::Failure;
use crate::plan::Footprint;
use crate::plan::{Outcome, Processor};
use skidder_config::{Group, Key, Part, Section, settings};
use skidder_event::{EventMut, Map, MapRef, Path, Value, ValueRef};
use skidder_os::{Clock, Fs, Monotonic};
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

settings! {
    /// Settings of `add_host_metadata`.
    pub(crate) static ADD_HOST_METADATA = Group::new("processor.add_host_metadata", "Adds what is known about the machine as `host.*`.").include(&[&PLACE]);

    NETINFO: bool = Key::new("netinfo.enabled")
        .default(true)
        .about("`host.ip` and `host.mac` too");
    CACHE_TTL: Duration = Key::new("cache.ttl")
        .default(Duration::from_mins(5))
        .about("how long the result is used");
    NAME: String = Key::new("name")
        .default_words("the machine's own")
        .about("another `host.name`");
    REPLACE_FIELDS: bool = Key::new("replace_fields")
        .default(true)
        .about("otherwise an event that has more of `host` than its name stays as it is");
}

settings! {
    /// What `add_host_metadata` and `add_observer_metadata` have.
    pub(in crate::lookup) static PLACE = Group::new("processor.place", "Where the machine is.");

    GEO: Part = Key::part("geo", &GEO_KEYS)
        .about("where the machine is, as fields of `geo`; blank ones are left out");
}

settings! {
    /// `geo`.
    static GEO_KEYS = Group::new("processor.geo", "Where the machine is.").inline();

    GEO_NAME: String = Key::new("name")
        .about("name of the place; all of `geo` goes into fields of the same names");
    GEO_LOCATION: String = Key::new("location")
        .about("latitude and longitude: `40.7128, -74.0060`");
    GEO_CONTINENT_NAME: String = Key::new("continent_name")
        .about("name of the continent");
    GEO_COUNTRY_NAME: String = Key::new("country_name")
        .about("name of the country");
    GEO_COUNTRY_ISO_CODE: String = Key::new("country_iso_code")
        .about("its code");
    GEO_REGION_NAME: String = Key::new("region_name")
        .about("name of the region");
    GEO_REGION_ISO_CODE: String = Key::new("region_iso_code")
        .about("its code");
    GEO_CITY_NAME: String = Key::new("city_name")
        .about("name of the city");
}

static HOST: LazyLock<Path> = LazyLock::new(|| Path::parse("host").expect("a constant path"));

/// Settings of `add_host_metadata`.
#[derive(Clone, Debug, PartialEq)]
pub struct HostSettings {
    /// Addresses and MACs too (`netinfo.enabled`, default true).
    pub netinfo: bool,
    /// How long the result is cached (`cache.ttl`, default 5 minutes). Zero inspects the machine again
    /// for every query of the epoch, which is once a batch.
    pub cache_ttl: Duration,
    /// `host.geo.*`, without blank ones.
    pub geo: Map,
    /// Another `host.name` than the machine's own.
    pub name: Option<String>,
    /// Whether an event that has more of `host` than its name gets it replaced (default true).
    pub replace_fields: bool,
}

impl Default for HostSettings {
    fn default() -> Self {
        Self {
            netinfo: true,
            cache_ttl: Duration::from_mins(5),
            geo: Map::new(),
            name: None,
            replace_fields: true,
        }
    }
}

/// All fields of `geo`.
static GEO_FIELDS: [&Key<String>; 8] = [
    &GEO_NAME,
    &GEO_LOCATION,
    &GEO_CONTINENT_NAME,
    &GEO_COUNTRY_NAME,
    &GEO_COUNTRY_ISO_CODE,
    &GEO_REGION_NAME,
    &GEO_REGION_ISO_CODE,
    &GEO_CITY_NAME,
];

impl HostSettings {
    fn read(settings: &Section<'_>) -> Self {
        let geo = read_geo(settings);
        Self {
            netinfo: settings.get(&NETINFO).value(),
            cache_ttl: settings.get(&CACHE_TTL).value(),
            geo,
            name: settings.get(&NAME).optional().filter(|name| !name.is_empty()),
            replace_fields: settings.get(&REPLACE_FIELDS).value(),
        }
    }
}

/// The settings under `geo` that are not blank.
pub(in crate::lookup) fn read_geo(settings: &Section<'_>) -> Map {
    let section = settings.part(&GEO);
    let mut geo = Map::new();
    for key in GEO_FIELDS {
        let name = key.name();
        let text = section.get(key).check(|text| {
            let right = name != "location" || text.trim().is_empty() || is_location(text);
            right.then_some(()).ok_or_else(|| "expected `latitude, longitude`".to_owned())
        });
        if let Some(text) = text.optional().filter(|text| !text.trim().is_empty()) {
            geo.insert(name, text);
        }
    }
    geo
}

/// Two numbers and a comma: `-12.5, 40`.
fn is_location(text: &str) -> bool {
    let number = |part: &str| {
        let digits = part.trim().strip_prefix('-').unwrap_or(part.trim());
        let (whole, rest) = digits.split_once('.').unwrap_or((digits, "0"));
        [whole, rest]
            .iter()
            .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
    };
    text.split_once(',').is_some_and(|(latitude, longitude)| number(latitude) && number(longitude))
}

/// Adds `host.*` to every event.
pub struct AddHostMetadata {
    settings: HostSettings,
    machine: Arc<dyn Machine>,
    fs: Arc<dyn Fs>,
    clock: Arc<dyn Clock>,
    cache: Mutex<Cache>,
}

/// The result, and its time.
struct Cache {
    fields: Map,
    checked: Monotonic,
    epoch: u64,
}

impl AddHostMetadata {
    /// Looks at the machine for the first time.
    pub fn new(
        settings: HostSettings,
        machine: Arc<dyn Machine>,
        fs: Arc<dyn Fs>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let fields = gather(&settings, &*machine, &*fs);
        let cache = Mutex::new(Cache { fields, checked: clock.monotonic(), epoch: 0 });
        Self { settings, machine, fs, clock, cache }
    }

    /// Reads the settings and looks at the machine.
    pub(crate) fn read(settings: &Section<'_>, context: &Context) -> Self {
        let settings = HostSettings::read(settings);
        let Context { machine, fs, clock, .. } = context;
        Self::new(settings, Arc::clone(machine), Arc::clone(fs), Arc::clone(clock))
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All that is added, under `host`.
fn gather(settings: &HostSettings, machine: &dyn Machine, fs: &dyn Fs) -> Map {
    let mut host = host_fields(machine, fs, settings.netinfo);
    if let Some(name) = &settings.name {
        host.insert("name", name.as_str());
    }
    if !settings.geo.is_empty() {
        host.insert("geo", settings.geo.clone());
    }
    let mut fields = Map::new();
    fields.insert("host", host);
    fields
}

impl fmt::Debug for AddHostMetadata {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("AddHostMetadata")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl Processor for AddHostMetadata {
    fn name(&self) -> &'static str {
        "add_host_metadata"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        let fields = self.cache().fields.clone();
        HostFields::new(&fields, self.settings.replace_fields).run(event)
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        Footprint::everything()
    }

    fn fold(&self, _: &mut Constants) -> bool {
        false
    }

    fn is_repeatable(&self) -> bool {
        false
    }

    fn can_fail(&self) -> bool {
        false
    }

    fn bound(&self) -> Option<Arc<dyn Processor>> {
        Some(Arc::new(HostFields::new(&self.cache().fields, self.settings.replace_fields)))
    }

    fn epoch(&self) -> u64 {
        let mut cache = self.cache();
        let now = self.clock.monotonic();
        if now.since(cache.checked) >= self.settings.cache_ttl {
            cache.checked = now;
            let fields = gather(&self.settings, &*self.machine, &*self.fs);
            if fields != cache.fields {
                cache.fields = fields;
                cache.epoch += 1;
            }
        }
        cache.epoch
    }
}

/// `host.*` as it is now.
#[derive(Debug)]
struct HostFields {
    add: AddFields,
    replace: bool,
}

impl HostFields {
    fn new(fields: &Map, replace: bool) -> Self {
        Self { add: AddFields::new("", fields), replace }
    }
}

/// Whether a `host` has more than its name.
fn has_more_than_name(host: MapRef<'_>) -> bool {
    let (mut count, mut named) = (0, false);
    host.for_each(|key, _| {
        count += 1;
        named |= key == b"name";
    });
    !(named && count == 1)
}

impl Processor for HostFields {
    fn name(&self) -> &'static str {
        "add_host_metadata"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        if !self.replace
            && let Some(ValueRef::Map(host)) = event.as_ref().get(&HOST)
            && has_more_than_name(host)
        {
            return Ok(Outcome::Done);
        }
        self.add.run(event)
    }

    fn footprint(&self, constants: &Constants) -> Footprint {
        let mut footprint = self.add.footprint(constants);
        if !self.replace {
            // Its effect depends on all of `host`.
            footprint.reads.push(HOST.clone());
        }
        footprint
    }

    fn fold(&self, constants: &mut Constants) -> bool {
        if !self.replace
            && let Some(Value::Map(host)) = constants.get(&HOST)
            && !(host.len() == 1 && host.get("name").is_some())
        {
            return true;
        }
        self.add.fold(constants)
    }

    /// Without `replace_fields` an event with a `host` of its own may have to stay as it is, and
    /// then the layer must not show through.
    fn is_repeatable(&self) -> bool {
        self.replace
    }

    fn can_fail(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests;
