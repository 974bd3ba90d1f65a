//! Writes small databases in MaxMind's format, version 2.0
//! (<https://maxmind.github.io/MaxMind-DB/>): a tree over the bits of addresses, then the records, then the
//! metadata.

use serde_json::{Value as Json, json};
use std::net::IpAddr;

/// What a side of a node of the tree leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    /// No record.
    Empty,
    /// Another node.
    Node(u32),
    /// The record at this offset of the data.
    Record(u32),
}

/// A database in the making. Networks of IPv4 are those below `::/96`.
#[derive(Clone, Debug)]
pub struct MmdbWriter {
    kind: String,
    nodes: Vec<[Side; 2]>,
    data: Vec<u8>,
}

/// Zero bytes between the tree and the data.
const SEPARATOR: usize = 16;

impl MmdbWriter {
    /// An empty database of a type such as `GeoLite2-City`.
    pub fn new(kind: &str) -> Self {
        Self { kind: kind.to_owned(), nodes: vec![[Side::Empty; 2]], data: Vec::new() }
    }

    /// Adds the record of a network (`81.2.69.0/24`), which must not contain one added before.
    ///
    /// # Panics
    /// If the network is not one.
    #[must_use]
    pub fn with(mut self, network: &str, record: &Json) -> Self {
        let (address, bits) = network.split_once('/').expect("a network has a length");
        let length: usize = bits.parse().expect("the length of a network is a number");
        let (address, length) = match address.parse().expect("a network begins with an address") {
            IpAddr::V4(address) => (u128::from(u32::from(address)), 96 + length),
            IpAddr::V6(address) => (u128::from(address), length),
        };
        let offset = self.data.len() as u32;
        write_value(&mut self.data, record);
        let mut node = 0;
        for depth in 0..length {
            let side = usize::from(address >> (127 - depth) & 1 == 1);
            if depth + 1 == length {
                self.nodes[node][side] = Side::Record(offset);
                break;
            }
            node = match self.nodes[node][side] {
                Side::Node(next) => next as usize,
                // A larger network: both halves of what is new have its record.
                above => {
                    self.nodes.push([above; 2]);
                    let next = self.nodes.len() - 1;
                    self.nodes[node][side] = Side::Node(next as u32);
                    next
                }
            };
        }
        self
    }

    /// The file.
    pub fn bytes(&self) -> Vec<u8> {
        let count = self.nodes.len() as u32;
        let mut bytes = Vec::new();
        for side in self.nodes.iter().flatten() {
            let number = match *side {
                Side::Empty => count,
                Side::Node(node) => node,
                Side::Record(offset) => count + SEPARATOR as u32 + offset,
            };
            bytes.extend_from_slice(&number.to_be_bytes()[1..]);
        }
        bytes.extend_from_slice(&[0; SEPARATOR]);
        bytes.extend_from_slice(&self.data);
        bytes.extend_from_slice(b"\xab\xcd\xefMaxMind.com");
        let metadata = json!({
            "binary_format_major_version": 2,
            "binary_format_minor_version": 0,
            "build_epoch": 1_795_294_377,
            "database_type": self.kind,
            "description": {"en": "made by a test"},
            "ip_version": 6,
            "languages": ["en"],
            "node_count": count,
            "record_size": 24,
        });
        write_value(&mut bytes, &metadata);
        bytes
    }
}

/// Types of the format.
const TEXT: u8 = 2;
const DOUBLE: u8 = 3;
const UINT16: u8 = 5;
const UINT32: u8 = 6;
const MAP: u8 = 7;
const UINT64: u8 = 9;
const LIST: u8 = 11;
const BOOLEAN: u8 = 14;

fn write_value(out: &mut Vec<u8>, value: &Json) {
    write_number_as(out, value, None);
}

/// Writes a value; a whole number with this type and number of bytes.
fn write_number_as(out: &mut Vec<u8>, value: &Json, width: Option<(u8, usize)>) {
    match value {
        Json::Null => panic!("the format has no null"),
        Json::Bool(truth) => write_control(out, BOOLEAN, usize::from(*truth)),
        Json::Number(number) => match number.as_u64() {
            Some(number) => {
                let bytes = number.to_be_bytes();
                let (kind, width) = width.unwrap_or((UINT32, 4));
                write_control(out, kind, width);
                out.extend_from_slice(&bytes[8 - width..]);
            }
            None => {
                write_control(out, DOUBLE, 8);
                let number = number.as_f64().expect("a number that is not whole is a float");
                out.extend_from_slice(&number.to_be_bytes());
            }
        },
        Json::String(text) => {
            write_control(out, TEXT, text.len());
            out.extend_from_slice(text.as_bytes());
        }
        Json::Array(items) => {
            write_control(out, LIST, items.len());
            for item in items {
                write_value(out, item);
            }
        }
        Json::Object(members) => {
            write_control(out, MAP, members.len());
            for (key, value) in members {
                write_control(out, TEXT, key.len());
                out.extend_from_slice(key.as_bytes());
                write_number_as(out, value, width_of(key));
            }
        }
    }
}

/// The type and the number of bytes of a number that has not 32 bits.
fn width_of(key: &str) -> Option<(u8, usize)> {
    match key {
        "accuracy_radius" | "ip_version" | "record_size" => Some((UINT16, 2)),
        "binary_format_major_version" | "binary_format_minor_version" => Some((UINT16, 2)),
        "build_epoch" => Some((UINT64, 8)),
        _ => None,
    }
}

/// The byte before a value: its type, and its length if that is short.
fn write_control(out: &mut Vec<u8>, kind: u8, length: usize) {
    let short = if length < 29 { length as u8 } else { 29 };
    if kind <= MAP {
        out.push(kind << 5 | short);
    } else {
        out.push(short);
        out.push(kind - 7);
    }
    if short == 29 {
        let rest = length - 29;
        out.push(u8::try_from(rest).expect("texts of tests are shorter than 285 bytes"));
    }
}
