//! `receive_queue_length`: bytes that the kernel has received for a port and that are not read yet.
//!
//! From `rx_queue` in /proc/net/tcp and tcp6 (proc_net_tcp in the kernel's documentation), as Filebeat takes it
//! (filebeat/input/netmetrics/tcp.go): of a listening socket it is the number of connections that wait to be accepted, of a
//! connection its bytes. Filebeat adds them up if it listens on all addresses, and else shows the first; here they are
//! always added up.

use skidder_net::BoundAddress;
use skidder_os::Fs;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

/// Largest table that is read: some 350,000 connections.
const TABLE_BYTES_MAX: usize = 64 << 20;

/// What finds the number of an address.
pub(crate) fn receive_queue(
    address: &BoundAddress,
    fs: Arc<dyn Fs>,
) -> Box<dyn Fn() -> Option<u64> + Send + Sync> {
    let BoundAddress::Tcp(address) = *address else { return Box::new(|| None) };
    Box::new(move || {
        let read = |path: &str| {
            let file = fs.open(Path::new(path)).ok()?;
            skidder_os::read_to_end(&*file, TABLE_BYTES_MAX).ok()
        };
        let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(read);
        if tables.iter().all(Option::is_none) {
            return None;
        }
        let sum = |table: &Option<Vec<u8>>| {
            table.as_ref().map_or(0, |table| sum_of(&String::from_utf8_lossy(table), address))
        };
        Some(tables.iter().map(sum).sum())
    })
}

/// The sum over the sockets of a table with this local address.
fn sum_of(table: &str, address: SocketAddr) -> u64 {
    let port = format!(":{:04X}", address.port());
    let row = |line: &str| {
        let mut fields = line.split_ascii_whitespace();
        let local = fields.nth(1)?;
        let (ip, found) = local.split_at_checked(local.len().checked_sub(5)?)?;
        let fits = found == port && (address.ip().is_unspecified() || is_same(ip, address.ip()));
        let queues = fields.nth(2).filter(|_| fits)?;
        u64::from_str_radix(queues.split_once(':')?.1, 16).ok()
    };
    table.lines().skip(1).filter_map(row).sum()
}

/// Whether an address in a table is this one: words of 32 bits, each in the byte order of the machine.
fn is_same(hex: &str, ip: IpAddr) -> bool {
    let words: Option<Vec<u32>> = hex
        .as_bytes()
        .chunks(8)
        .map(|word| u32::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok())
        .collect();
    let bytes: Vec<u8> = words.unwrap_or_default().iter().flat_map(|of| of.to_ne_bytes()).collect();
    let found = match <[u8; 4]>::try_from(&bytes[..]) {
        Ok(v4) => IpAddr::from(v4),
        Err(_) => match <[u8; 16]>::try_from(&bytes[..]) {
            Ok(v6) => IpAddr::from(v6).to_canonical(),
            Err(_) => return false,
        },
    };
    found == ip
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_endian = "little")]
    #[test]
    fn sockets_of_an_address_are_added_up() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000002 00:00000000 00000000     0        0 1
   1: 0100007F:1F90 0100007F:C350 01 00000000:00000100 00:00000000 00000000     0        0 2
   2: 0200007F:1F90 0100007F:C351 01 00000000:00000007 00:00000000 00000000     0        0 3
   3: 0100007F:1F91 0100007F:C352 01 00000000:00000009 00:00000000 00000000     0        0 4
   4: 0000000000000000FFFF00000100007F:1F90 0000000000000000FFFF00000100007F:C350 01 00000000:00000010 00
   5: bad";
        for (address, expected) in [
            ("127.0.0.1:8080", 2 + 256 + 16),
            ("0.0.0.0:8080", 2 + 256 + 7 + 16),
            ("[::]:8081", 9),
            ("[::1]:8080", 0),
        ] {
            assert_eq!(sum_of(table, address.parse().unwrap()), expected, "{address}");
        }
    }
}
