//! A small LDAP server (RFC 4511) with objects that tests know: bind, and search for one attribute.
//!
//! Searches below `dc=example,dc=test` find the object of a value:
//! the GUID `7fb125ee-ceaf-48ff-8385-32c516ab10ed` or `jane` (Jane Doe), `both` (two names), `bare` (no attributes),
//! `many` (more objects than may be sent). `silent` gets no answer, `hang up` ends the connection.
#![allow(dead_code, reason = "not every test uses all of it")]
#![allow(clippy::unwrap_used, reason = "a test that cannot serve has failed")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// Below which everything is.
pub(crate) const BASE: &str = "dc=example,dc=test";
/// The bytes of the GUID.
pub(crate) const GUID: [u8; 16] = [
    0xee, 0x25, 0xb1, 0x7f, 0xaf, 0xce, 0xff, 0x48, 0x83, 0x85, 0x32, 0xc5, 0x16, 0xab, 0x10, 0xed,
];

/// All requests, in order: `bind USER PASSWORD`, `search BASE ATTRIBUTE=VALUE`.
pub(crate) type Requests = Arc<Mutex<Vec<String>>>;

/// Serves on a port of the loopback for the rest of the test; gives `ldap://127.0.0.1:port`.
pub(crate) fn serve() -> (String, Requests) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("ldap://{}", listener.local_addr().unwrap());
    let requests = Requests::default();
    let seen = Arc::clone(&requests);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let seen = Arc::clone(&seen);
            std::thread::spawn(move || talk(stream.unwrap(), &seen));
        }
    });
    (address, requests)
}

/// Until the client goes, or the server hangs up.
fn talk(mut stream: TcpStream, seen: &Requests) {
    while let Some((_, message)) = element(&mut stream) {
        let mut rest = &message[..];
        let id = element(&mut rest).unwrap().1;
        let (operation, body) = element(&mut rest).unwrap();
        let answers = match operation {
            0x60 => bind(&body, seen),
            0x63 => search(&body, seen),
            _ => None,
        };
        let Some(answers) = answers else { return };
        for answer in answers {
            let whole = tagged(0x30, &[tagged(2, &id), answer].concat());
            drop(stream.write_all(&whole));
        }
    }
}

fn bind(body: &[u8], seen: &Requests) -> Option<Vec<Vec<u8>>> {
    let mut body = body;
    element(&mut body)?;
    let (user, password) = (text(&mut body)?, text(&mut body)?);
    seen.lock().unwrap().push(format!("bind {user} {password}"));
    Some(vec![done(0x61, if password == "wrong" { 49 } else { 0 })])
}

/// Nothing to end the connection.
fn search(body: &[u8], seen: &Requests) -> Option<Vec<Vec<u8>>> {
    let mut body = body;
    let base = text(&mut body)?;
    for _scope_aliases_size_time_types in 0..5 {
        element(&mut body)?;
    }
    let (kind, filter) = element(&mut body)?;
    if base.is_empty() {
        let about = entry("", &[("defaultNamingContext", BASE.as_bytes())]);
        return Some(vec![about, done(0x65, 0)]);
    }
    assert_eq!(kind, 0xa3, "only a search for one value is known");
    let mut filter = &filter[..];
    let name = text(&mut filter)?;
    let value = element(&mut filter)?.1;
    let shown = String::from_utf8_lossy(&value).into_owned();
    seen.lock().unwrap().push(format!("search {base} {name}={shown}"));
    if base != BASE {
        return Some(vec![done(0x65, 32)]);
    }
    let jane = [("cn", &b"Jane Doe"[..]), ("objectGUID", &GUID)];
    match (&*value, &*shown) {
        (_, "jane") => Some(vec![entry("cn=Jane Doe", &jane), done(0x65, 0)]),
        (value, _) if value == GUID => Some(vec![entry("cn=Jane Doe", &jane), done(0x65, 0)]),
        (_, "both") => {
            let names = [("cn", &b"One"[..]), ("CN", b"Two")];
            Some(vec![entry("cn=One", &names[..1]), entry("cn=Two", &names[1..]), done(0x65, 0)])
        }
        (_, "bare") => Some(vec![entry("cn=bare", &[]), done(0x65, 0)]),
        (_, "many") => Some(vec![entry("cn=Jane Doe", &jane), done(0x65, 4)]),
        (_, "silent") => Some(Vec::new()),
        (_, "hang up") => None,
        _ => Some(vec![done(0x65, 0)]),
    }
}

fn entry(name: &str, attributes: &[(&str, &[u8])]) -> Vec<u8> {
    let one = |(name, value): &(&str, &[u8])| {
        let values = tagged(0x31, &tagged(4, value));
        tagged(0x30, &[tagged(4, name.as_bytes()), values].concat())
    };
    let all: Vec<u8> = attributes.iter().flat_map(one).collect();
    tagged(0x64, &[tagged(4, name.as_bytes()), tagged(0x30, &all)].concat())
}

fn done(tag: u8, code: u8) -> Vec<u8> {
    tagged(tag, &[tagged(0x0a, &[code]), tagged(4, b""), tagged(4, b"")].concat())
}

/// One element of BER (X.690): its tag, its length, its content.
fn tagged(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).unwrap().to_be_bytes();
    [&[tag, 0x82], &length[..], content].concat()
}

fn element(from: &mut impl Read) -> Option<(u8, Vec<u8>)> {
    let mut head = [0; 2];
    from.read_exact(&mut head).ok()?;
    let length = match head[1] {
        short @ ..0x80 => u64::from(short),
        long => {
            let mut bytes = Vec::new();
            from.take(u64::from(long & 0x7f)).read_to_end(&mut bytes).ok()?;
            bytes.iter().fold(0, |length, byte| length << 8 | u64::from(*byte))
        }
    };
    let mut content = Vec::new();
    from.take(length).read_to_end(&mut content).ok()?;
    Some((head[0], content))
}

fn text(from: &mut impl Read) -> Option<String> {
    element(from).map(|(_, content)| String::from_utf8_lossy(&content).into_owned())
}
