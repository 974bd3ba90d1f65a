//! Databases that change, are damaged, are shared.

use super::*;
use crate::kinds::Context;
use crate::lookup::geoip::read::GEOIP;
use crate::lookup::lookup_files;
use serde_json::json;
use skidder_config::{Problems, Settings};
use skidder_os::Timestamp;
use skidder_testkit::{MmdbWriter, SimClock, SimFs};
use std::net::Ipv4Addr;
use std::path::Path as FilePath;
use std::time::Duration;

const FILE: &str = "/etc/geo/city.mmdb";

struct World {
    fs: SimFs,
    clock: SimClock,
    context: Context,
}

impl World {
    fn new() -> Self {
        let clock = SimClock::starting_at(Timestamp(1_795_294_377_123_000_000));
        let fs = SimFs::new(&clock);
        lookup_files::write_lookup_files(&fs);
        let context = Context::new(Arc::new(fs.clone()), Arc::new(clock.clone()));
        Self { fs, clock, context }
    }

    /// The processor with these settings; the problems if they are wrong.
    fn read(&self, settings: &str) -> Result<GeoIp, String> {
        let settings = Settings::parse("/etc/skidder/test.yml", settings).unwrap();
        let problems = Problems::new();
        let root = settings.root(&problems);
        root.declared_by(&GEOIP);
        let read = GeoIp::read(&root, &self.context);
        drop(root);
        read.ok_or_else(|| problems.to_string())
    }

    fn write(&self, content: &[u8]) {
        self.clock.advance(Duration::from_secs(1));
        self.fs.write_as_other(FilePath::new(FILE), content);
    }

    fn wait(&self) {
        self.clock.advance(Duration::from_mins(1));
    }
}

fn database(kind: &str, city: &str) -> Vec<u8> {
    MmdbWriter::new(kind).with("192.0.2.0/24", &json!({"city": {"names": {"en": city}}})).bytes()
}

/// The name of the city of the test's network.
fn city(geoip: &GeoIp) -> String {
    let database = geoip.database.current();
    let (facts, _) = database.facts(Ipv4Addr::new(192, 0, 2, 7).into()).unwrap().unwrap();
    let property::Facts::Place(place) = facts else { panic!("a database of cities") };
    place.city.names.en.unwrap().to_owned()
}

#[test]
fn a_new_database_takes_the_place_of_the_old_one_within_a_minute() {
    let world = World::new();
    let geoip = world.read(&format!("database_file: {FILE}")).unwrap();
    world.write(&database("GeoLite2-City", "Bonn"));
    assert_eq!(
        (geoip.epoch(), city(&geoip).as_str()),
        (0, "Munich"),
        "it is looked at once a minute"
    );
    world.wait();
    assert_eq!((geoip.epoch(), city(&geoip).as_str()), (1, "Bonn"));
    world.wait();
    assert_eq!(geoip.epoch(), 1, "nothing has changed");
}

#[test]
fn a_plan_bound_before_keeps_the_database_it_was_bound_to() {
    let world = World::new();
    let geoip = world.read(&format!("database_file: {FILE}")).unwrap();
    let before = geoip.bound().unwrap();
    world.write(&database("GeoLite2-City", "Bonn"));
    world.wait();
    assert_eq!(geoip.epoch(), 1);
    let kept: Arc<dyn std::any::Any + Send + Sync> = before;
    let kept = kept.downcast::<Bound>().unwrap();
    assert!(!Arc::ptr_eq(&kept.database, &geoip.database.current()));
}

#[test]
fn a_file_that_cannot_be_used_leaves_the_old_database() {
    let whole = database("GeoLite2-City", "Bonn");
    // The record is damaged, the rest of the file is not.
    let mut damaged = whole.clone();
    let at = whole.windows(4).position(|part| part == b"Bonn").unwrap();
    damaged[at..at + 4].fill(0xff);
    let cases = [
        ("nothing", Vec::new()),
        ("the first half", whole[..whole.len() / 2].to_vec()),
        ("a damaged record", damaged),
        ("another type", database("GeoLite2-Country", "Bonn")),
        ("an unknown type", database("GeoIP2-Domain", "Bonn")),
    ];
    for (what, content) in cases {
        let world = World::new();
        let geoip = world.read(&format!("database_file: {FILE}")).unwrap();
        world.write(&content);
        world.wait();
        assert_eq!((geoip.epoch(), city(&geoip).as_str()), (0, "Munich"), "{what}");
        world.write(&whole);
        world.wait();
        assert_eq!((geoip.epoch(), city(&geoip).as_str()), (1, "Bonn"), "after {what}");
    }
}

#[test]
fn a_file_that_is_gone_leaves_the_old_database() {
    let world = World::new();
    let geoip = world.read(&format!("database_file: {FILE}")).unwrap();
    world.fs.remove_as_other(FilePath::new(FILE));
    for _ in 0..2 {
        world.wait();
        assert_eq!((geoip.epoch(), city(&geoip).as_str()), (0, "Munich"));
    }
    world.write(&database("GeoLite2-City", "Bonn"));
    world.wait();
    assert_eq!((geoip.epoch(), city(&geoip).as_str()), (1, "Bonn"));
}

#[test]
fn processors_that_name_the_same_file_share_it_until_the_last_is_gone() {
    let world = World::new();
    let settings = format!("database_file: {FILE}");
    let one = world.read(&settings).unwrap();
    let other = world.read(&format!("{settings}\nfield: client.ip")).unwrap();
    assert!(Arc::ptr_eq(&one.database, &other.database));
    let weak = Arc::downgrade(&one.database);
    drop((one, other));
    assert!(weak.upgrade().is_none(), "nothing but processors keeps it");
    world.write(&database("GeoLite2-City", "Bonn"));
    assert_eq!(city(&world.read(&settings).unwrap()), "Bonn");
}

#[test]
fn a_relative_name_is_relative_to_the_configuration() {
    let world = World::new();
    world.fs.create_dir_as_other(FilePath::new("/etc/skidder"));
    let bytes = database("GeoLite2-City", "Bonn");
    world.fs.write_as_other(FilePath::new("/etc/skidder/own.mmdb"), &bytes);
    assert_eq!(city(&world.read("database_file: own.mmdb").unwrap()), "Bonn");
    let wrong = world.read("database_file: other.mmdb").unwrap_err();
    assert!(wrong.contains("/etc/skidder/other.mmdb"), "{wrong}");
}

#[test]
fn records_in_which_a_value_is_of_another_type_are_damaged() {
    let world = World::new();
    let record = json!({"country": {"iso_code": 7}});
    world.write(&MmdbWriter::new("GeoLite2-City").with("192.0.0.0/2", &record).bytes());
    let wrong = world.read(&format!("database_file: {FILE}")).unwrap_err();
    assert!(wrong.contains("is not a database of MaxMind's format, or damaged"), "{wrong}");
}

#[test]
fn cut_and_changed_databases_never_panic() {
    let whole = lookup_files::city().bytes();
    let mut random = skidder_testkit::Random::new(20);
    for round in 0..3000 {
        let mut bytes = whole.clone();
        if round % 3 == 0 {
            bytes.truncate(random.below(whole.len() as u64) as usize);
        }
        for _ in 0..random.below(6) {
            if !bytes.is_empty() {
                let at = random.below(bytes.len() as u64) as usize;
                bytes[at] = random.below(256) as u8;
            }
        }
        let world = World::new();
        world.write(&bytes);
        let Ok(geoip) = world.read(&format!("database_file: {FILE}")) else { continue };
        for address in ["192.0.2.7", "198.51.100.1", "2001:db8::1", "::", "255.255.255.255"] {
            drop(geoip.database.current().facts(address.parse().unwrap()));
        }
    }
}
