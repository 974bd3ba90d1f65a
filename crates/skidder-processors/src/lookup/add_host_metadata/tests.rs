//! Data gathered about simulated machines.

use super::*;
use skidder_testkit::{SimClock, SimFs};

/// A machine that exists only here.
struct Rack;

impl Machine for Rack {
    fn hostname(&self) -> String {
        "Web-17.example.org".to_owned()
    }

    fn kernel(&self) -> String {
        "6.12.9-amd64".to_owned()
    }

    fn architecture(&self) -> String {
        "x86_64".to_owned()
    }
}

const DEBIAN: &str = "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nNAME=\"Debian GNU/Linux\"\n\
    VERSION_ID=\"12\"\nVERSION=\"12 (bookworm)\"\nVERSION_CODENAME=bookworm\nID=debian\n";
const TRIE: &str = "Local:\n |-- 127.0.0.1\n  /32 host LOCAL\n |-- 192.0.2.7\n  /32 host LOCAL\n";

fn machine(clock: &SimClock) -> SimFs {
    let fs = SimFs::new(clock);
    let directories = ["/etc", "/proc", "/proc/1", "/proc/net", "/sys", "/sys/class"];
    for directory in directories.iter().chain(&["/sys/class/net", "/sys/class/net/lo"]) {
        fs.create_dir_as_other(directory);
    }
    fs.create_dir_as_other("/sys/class/net/eth0");
    fs.write_as_other("/etc/os-release", DEBIAN.as_bytes());
    fs.write_as_other("/etc/machine-id", b"0123456789abcdef0123456789abcdef\n");
    fs.write_as_other("/proc/1/cgroup", b"0::/init.scope\n");
    fs.write_as_other("/proc/net/fib_trie", TRIE.as_bytes());
    let six = b"fe8000000000000000fc00fffe000001 02 40 20 80 eth0\n";
    fs.write_as_other("/proc/net/if_inet6", six);
    for (name, flags, address) in
        [("lo", "0x9", "00:00:00:00:00:00"), ("eth0", "0x1003", "02:fc:00:aa:00:01")]
    {
        fs.write_as_other(format!("/sys/class/net/{name}/flags"), format!("{flags}\n").as_bytes());
        let address = format!("{address}\n");
        fs.write_as_other(format!("/sys/class/net/{name}/address"), address.as_bytes());
    }
    fs
}

fn list(items: &[&str]) -> Value {
    Value::List(items.iter().map(|item| Value::from(*item)).collect())
}

#[test]
fn the_machine_is_described_as_filebeat_does() {
    let clock = SimClock::new();
    let fields = gather(&HostSettings::default(), &Rack, &machine(&clock));
    let mut expected = Map::new();
    for (name, text) in [
        ("name", "web-17.example.org"),
        ("hostname", "Web-17.example.org"),
        ("architecture", "x86_64"),
        ("id", "0123456789abcdef0123456789abcdef"),
        ("os.type", "linux"),
        ("os.platform", "debian"),
        ("os.name", "Debian GNU/Linux"),
        ("os.family", "debian"),
        ("os.version", "12 (bookworm)"),
        ("os.codename", "bookworm"),
        ("os.kernel", "6.12.9-amd64"),
    ] {
        expected.insert_path(&format!("host.{name}"), text);
    }
    expected.insert_path("host.containerized", false);
    expected.insert_path("host.ip", list(&["192.0.2.7", "fe80::fc:ff:fe00:1"]));
    expected.insert_path("host.mac", list(&["02-FC-00-AA-00-01"]));
    assert_eq!(fields, expected);
}

#[test]
fn a_machine_that_tells_nothing_is_no_error() {
    let clock = SimClock::new();
    let fields = gather(&HostSettings::default(), &Rack, &SimFs::new(&clock));
    assert_eq!(fields.get_path("host.os.type"), Some(&"linux".into()));
    assert_eq!(fields.get_path("host.ip"), None);
    assert_eq!(fields.get_path("host.id"), None);
    assert_eq!(fields.get_path("host.containerized"), None);
}

#[test]
fn families_are_found_by_name_beginning_and_likeness() {
    let table = [
        ("ID=ubuntu\n", "debian"),
        ("ID=\"opensuse-tumbleweed\"\n", "suse"),
        ("ID=\"ol\"\n", "redhat"),
        ("ID=mine\nID_LIKE=\"other rhel fedora\"\n", "redhat"),
        ("NAME='Arch Linux'\n", "arch"),
        ("ID=alpine\n", ""),
    ];
    for (text, family) in table {
        let fs = SimFs::new(&SimClock::new());
        fs.create_dir_as_other("/etc");
        fs.write_as_other("/etc/os-release", text.as_bytes());
        let fields = gather(&HostSettings::default(), &Rack, &fs);
        assert_eq!(fields.get_path("host.os.family"), Some(&family.into()), "{text}");
    }
}

#[test]
fn a_change_of_the_machine_is_seen_when_the_cache_expires() {
    let clock = SimClock::new();
    let fs = machine(&clock);
    let processor = AddHostMetadata::new(
        HostSettings::default(),
        Arc::new(Rack),
        Arc::new(fs.clone()),
        Arc::new(clock.clone()),
    );
    let ip = || {
        let mut constants = Constants::default();
        assert!(processor.bound().expect("it looks outside").fold(&mut constants));
        constants.fields().get_path("host.ip").cloned()
    };
    fs.write_as_other("/proc/net/fib_trie", TRIE.replace("2.7", "2.8").as_bytes());
    clock.advance(Duration::from_secs(299));
    assert_eq!(processor.epoch(), 0);
    assert_eq!(ip(), Some(list(&["192.0.2.7", "fe80::fc:ff:fe00:1"])));
    clock.advance(Duration::from_secs(1));
    assert_eq!(processor.epoch(), 1);
    assert_eq!(ip(), Some(list(&["192.0.2.8", "fe80::fc:ff:fe00:1"])));
    clock.advance(Duration::from_hours(1));
    assert_eq!(processor.epoch(), 1, "nothing has changed");
}

#[test]
fn without_replace_fields_a_host_that_says_more_than_its_name_stays() {
    let mut geo = Map::new();
    geo.insert("city_name", "Oslo");
    let settings = HostSettings {
        replace_fields: false,
        netinfo: false,
        name: Some("other".to_owned()),
        geo,
        ..HostSettings::default()
    };
    let clock = SimClock::new();
    let fs = Arc::new(machine(&clock));
    let processor = AddHostMetadata::new(settings, Arc::new(Rack), fs, Arc::new(clock));
    let folded = |host: &[(&str, &str)]| {
        let mut fields = Map::new();
        for (name, text) in host {
            fields.insert_path(&format!("host.{name}"), *text);
        }
        let mut constants = Constants::new(&fields, &Map::new());
        assert!(processor.bound().expect("it looks outside").fold(&mut constants));
        constants.fields().clone()
    };
    let named = folded(&[("name", "mine")]);
    assert_eq!(named.get_path("host.name"), Some(&"other".into()));
    assert_eq!(named.get_path("host.geo.city_name"), Some(&"Oslo".into()));
    assert_eq!(named.get_path("host.ip"), None);
    let more = folded(&[("name", "mine"), ("id", "x")]);
    assert_eq!(more.get_path("host.os"), None);
    assert_eq!(more.get_path("host.name"), Some(&"mine".into()));
}

#[test]
fn a_location_is_two_numbers() {
    for right in ["40.7, -74.0", "1,2", " -12.5 ,40 "] {
        assert!(is_location(right), "{right}");
    }
    for wrong in ["", "1", "a,b", "1.,2", "1,2,3", "1;2"] {
        assert!(!is_location(wrong), "{wrong}");
    }
}
