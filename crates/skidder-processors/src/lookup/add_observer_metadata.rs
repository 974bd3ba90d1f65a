//! `add_observer_metadata`: the machine as that which observed the event, as `observer.*`.
//!
//! As with `add_host_metadata` the machine is inspected once, and again when `cache.ttl` has passed.

use super::add_host_metadata::{Machine, PLACE, ip_addresses, mac_addresses, read_geo};
use crate::fields::AddFields;
use crate::kinds::Context;
use crate::plan::{Constants, Failure, Footprint, Outcome, Processor, rehearse};
use skidder_config::{Group, Key, Section, settings};
use skidder_event::{EventMut, Map, Path, Value};
use skidder_os::{Clock, Fs, Monotonic};
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

settings! {
    /// Settings of `add_observer_metadata`.
    pub(crate) static ADD_OBSERVER_METADATA = Group::new("processor.add_observer_metadata", "Adds this machine as the observer of the event, in \
                               `observer.hostname`, `.ip`, `.mac` and `.geo`.").include(&[&PLACE]);

    NETINFO: bool = Key::new("netinfo.enabled")
        .default(true)
        .about("addresses and MACs too");
    CACHE_TTL: Duration = Key::new("cache.ttl")
        .default(Duration::from_mins(5))
        .about("how long the result is used");
    OVERWRITE: bool = Key::new("overwrite")
        .default(false)
        .about("an existing `observer` is replaced; otherwise the event stays as it is");
}

static OBSERVER: LazyLock<Path> =
    LazyLock::new(|| Path::parse("observer").expect("a constant path"));

/// Adds `observer.*` to every event.
pub(crate) struct AddObserverMetadata {
    netinfo: bool,
    cache_ttl: Duration,
    geo: Map,
    overwrite: bool,
    machine: Arc<dyn Machine>,
    fs: Arc<dyn Fs>,
    clock: Arc<dyn Clock>,
    seen: Mutex<Seen>,
}

/// The result, and its time.
struct Seen {
    fields: Map,
    checked: Monotonic,
    epoch: u64,
}

impl AddObserverMetadata {
    /// `netinfo.enabled`, `cache.ttl`, `geo.*`, `overwrite`; looks at the machine.
    pub(crate) fn read(settings: &Section<'_>, context: &Context) -> Self {
        let Context { machine, fs, clock, .. } = context;
        let seen = Seen { fields: Map::new(), checked: clock.monotonic(), epoch: 0 };
        let this = Self {
            netinfo: settings.get(&NETINFO).value(),
            cache_ttl: settings.get(&CACHE_TTL).value(),
            geo: read_geo(settings),
            overwrite: settings.get(&OVERWRITE).value(),
            machine: Arc::clone(machine),
            fs: Arc::clone(fs),
            clock: Arc::clone(clock),
            seen: Mutex::new(seen),
        };
        this.seen().fields = this.gather();
        this
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All that is added, under `observer`.
    fn gather(&self) -> Map {
        let mut observer = Map::new();
        observer.insert("hostname", self.machine.hostname());
        if self.netinfo {
            let (ip, mac) = (ip_addresses(&*self.fs), mac_addresses(&*self.fs));
            for (name, items) in [("ip", ip), ("mac", mac)] {
                if !items.is_empty() {
                    observer
                        .insert(name, Value::List(items.into_iter().map(Value::from).collect()));
                }
            }
        }
        if !self.geo.is_empty() {
            observer.insert("geo", self.geo.clone());
        }
        let mut fields = Map::new();
        fields.insert("observer", observer);
        fields
    }

    fn fields(&self) -> ObserverFields {
        ObserverFields { add: AddFields::new("", &self.seen().fields), overwrite: self.overwrite }
    }
}

impl fmt::Debug for AddObserverMetadata {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("AddObserverMetadata")
            .field("netinfo", &self.netinfo)
            .field("cache_ttl", &self.cache_ttl)
            .field("geo", &self.geo)
            .field("overwrite", &self.overwrite)
            .finish_non_exhaustive()
    }
}

impl Processor for AddObserverMetadata {
    fn name(&self) -> &'static str {
        "add_observer_metadata"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        self.fields().run(event)
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        Footprint::everything()
    }

    fn can_fail(&self) -> bool {
        false
    }

    fn bound(&self) -> Option<Arc<dyn Processor>> {
        Some(Arc::new(self.fields()))
    }

    fn epoch(&self) -> u64 {
        let mut seen = self.seen();
        let now = self.clock.monotonic();
        if now.since(seen.checked) >= self.cache_ttl {
            seen.checked = now;
            let fields = self.gather();
            if fields != seen.fields {
                seen.fields = fields;
                seen.epoch += 1;
            }
        }
        seen.epoch
    }
}

/// `observer.*` as it is now.
#[derive(Debug)]
struct ObserverFields {
    add: AddFields,
    /// Takes the place of an `observer` that is there; otherwise such an event stays as it is.
    overwrite: bool,
}

impl Processor for ObserverFields {
    fn name(&self) -> &'static str {
        "add_observer_metadata"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        if event.as_ref().has(&OBSERVER) {
            if !self.overwrite {
                return Ok(Outcome::Done);
            }
            event.delete(&OBSERVER);
        }
        self.add.run(event)
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        let observer = || vec![OBSERVER.clone()];
        Footprint { reads: observer(), writes: observer(), open: true, ..Footprint::default() }
    }

    fn fold(&self, constants: &mut Constants) -> bool {
        rehearse(self, constants, &[&OBSERVER])
    }

    fn can_fail(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skidder_config::{Problems, Settings};
    use skidder_testkit::{SimClock, SimFs};
    use std::sync::atomic::{AtomicU32, Ordering};

    /// A machine that has another name at each query.
    struct Renamed(AtomicU32);

    impl Machine for Renamed {
        fn hostname(&self) -> String {
            format!("machine-{}", self.0.fetch_add(1, Ordering::Relaxed))
        }

        fn kernel(&self) -> String {
            String::new()
        }

        fn architecture(&self) -> String {
            String::new()
        }
    }

    #[test]
    fn a_change_of_the_machine_is_seen_when_the_time_has_passed() {
        let clock = SimClock::new();
        let mut context = Context::new(Arc::new(SimFs::new(&clock)), Arc::new(clock.clone()));
        context.machine = Arc::new(Renamed(AtomicU32::new(1)));
        let settings = Settings::parse("f.yml", "cache.ttl: 10s").expect("YAML");
        let problems = Problems::new();
        let observer = AddObserverMetadata::read(&settings.root(&problems), &context);
        let name = |observer: &AddObserverMetadata| {
            observer.seen().fields.get_path("observer.hostname").cloned()
        };
        assert_eq!((observer.epoch(), name(&observer)), (0, Some("machine-1".into())));
        clock.advance(Duration::from_secs(10));
        assert_eq!((observer.epoch(), name(&observer)), (1, Some("machine-2".into())));
        assert_eq!(observer.epoch(), 1);
    }
}
