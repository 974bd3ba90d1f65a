//! Addresses of the machine's interfaces, read from `/proc/net` and `/sys/class/net`.
//!
//! Files rather than netlink, so that a simulated file system can answer. They name all addresses
//! but those of the loopback interface; IPv4 first, while Filebeat orders by interface.

use super::gather::read_text;
use skidder_os::Fs;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;

/// `IFF_LOOPBACK` of `/sys/class/net/*/flags`.
const FLAG_LOOPBACK: u32 = 0x8;

/// All addresses but those of the loopback interface.
pub(in crate::lookup) fn ip_addresses(fs: &dyn Fs) -> Vec<String> {
    let routes = read_text(fs, "/proc/net/fib_trie").unwrap_or_default();
    let mut all: Vec<String> = local_ipv4(&routes).iter().map(Ipv4Addr::to_string).collect();
    let table = read_text(fs, "/proc/net/if_inet6").unwrap_or_default();
    all.extend(local_ipv6(&table).iter().map(Ipv6Addr::to_string));
    all
}

/// The addresses of a routing table that the kernel delivers to itself: a line `|-- address` with a
/// line `/32 host LOCAL` behind it. The main and the local table both list them.
fn local_ipv4(routes: &str) -> Vec<Ipv4Addr> {
    let mut found = Vec::new();
    let mut last = None;
    for line in routes.lines() {
        let line = line.trim_start();
        if let Some(address) = line.strip_prefix("|-- ") {
            last = address.trim().parse::<Ipv4Addr>().ok();
        } else if line.starts_with("/32 host LOCAL")
            && let Some(address) = last
            && !address.is_loopback()
            && !found.contains(&address)
        {
            found.push(address);
        }
    }
    found
}

/// The addresses of `if_inet6`: 32 hexadecimal digits first, the interface's name last.
fn local_ipv6(table: &str) -> Vec<Ipv6Addr> {
    let mut found = Vec::new();
    for line in table.lines() {
        let digits = line.split_whitespace().next().unwrap_or_default();
        if digits.len() != 32 {
            continue;
        }
        if let Ok(bits) = u128::from_str_radix(digits, 16) {
            let address = Ipv6Addr::from_bits(bits);
            if !address.is_loopback() {
                found.push(address);
            }
        }
    }
    found
}

/// Hardware addresses as ECS wants them (`02-FC-00-00-00-01`), sorted, each once.
pub(in crate::lookup) fn mac_addresses(fs: &dyn Fs) -> Vec<String> {
    let mut interfaces = Vec::new();
    let listed = fs.read_dir(Path::new("/sys/class/net"), &mut |entry| {
        if let Some(name) = entry.name.to_str() {
            interfaces.push(name.to_owned());
        }
    });
    if listed.is_err() {
        return Vec::new();
    }
    let mut found: Vec<String> = interfaces.iter().filter_map(|name| mac_of(fs, name)).collect();
    found.sort();
    found.dedup();
    found
}

fn mac_of(fs: &dyn Fs, interface: &str) -> Option<String> {
    let read = |file: &str| read_text(fs, &format!("/sys/class/net/{interface}/{file}"));
    let flags = read("flags")?;
    let flags = u32::from_str_radix(flags.trim().trim_start_matches("0x"), 16).ok()?;
    if flags & FLAG_LOOPBACK != 0 {
        return None;
    }
    let address = read("address")?;
    Some(address.trim().to_ascii_uppercase().replace(':', "-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_ipv4_addresses_are_those_that_the_kernel_delivers_to_itself() {
        let routes = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n        /0 universe UNICAST\n\
            |-- 127.0.0.1\n           /32 host LOCAL\n  |-- 192.0.2.0\n   /24 link UNICAST\n\
            |-- 192.0.2.2\n              /32 host LOCAL\n     |-- 192.0.2.255\n  /32 link BROADCAST\n\
            Local:\n  |-- 192.0.2.2\n              /32 host LOCAL\n";
        assert_eq!(local_ipv4(routes), [Ipv4Addr::new(192, 0, 2, 2)]);
        assert!(local_ipv4("").is_empty());
    }

    #[test]
    fn own_ipv6_addresses_leave_out_loopback_and_what_cannot_be_read() {
        let table = "fd000000000000000000000000000002 04 40 00 82     eth0\n\
            00000000000000000000000000000001 01 80 10 80       lo\nnonsense\n\
            fe8000000000000000fc00fffe000001 04 40 20 80     eth0\n";
        let seen: Vec<_> = local_ipv6(table).iter().map(Ipv6Addr::to_string).collect();
        assert_eq!(seen, ["fd00::2", "fe80::fc:ff:fe00:1"]);
    }
}
