//! Packets that a client sends.
//!
//! MQTT 3.1.1 (<https://docs.oasis-open.org/mqtt/mqtt/v3.1.1/os/mqtt-v3.1.1-os.html>) and 5
//! (<https://docs.oasis-open.org/mqtt/mqtt/v5.0/os/mqtt-v5.0-os.html>), chapter 3 of each.

use super::decode::Version;
use skidder_config::Secret;
use std::time::Duration;

const CONNECT: u8 = 0x10;
const PUBACK: u8 = 0x40;
const PUBREC: u8 = 0x50;
const PUBCOMP: u8 = 0x70;
const SUBSCRIBE: u8 = 0x82;

/// How a session begins.
#[derive(Debug)]
pub(super) struct Connect<'a> {
    pub(super) version: Version,
    pub(super) client_id: &'a str,
    /// The broker forgets the session that there was.
    pub(super) is_clean: bool,
    pub(super) keep_alive: Duration,
    pub(super) login: Option<&'a (String, Option<Secret>)>,
    /// Version 5: how long the broker keeps the session of a client that is gone; `None`: for ever.
    pub(super) session_expiry: Option<Duration>,
    /// Version 5: most messages without an acknowledgement.
    pub(super) receive_maximum: u16,
}

impl Connect<'_> {
    /// Appends the packet.
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        let mut body = Vec::new();
        put_text(&mut body, "MQTT");
        body.push(match self.version {
            Version::V311 => 4,
            Version::V5 => 5,
        });
        let (mut flags, password) = (u8::from(self.is_clean) << 1, self.password());
        flags |= u8::from(self.login.is_some()) << 7 | u8::from(password.is_some()) << 6;
        body.push(flags);
        let keep_alive = u16::try_from(self.keep_alive.as_secs()).unwrap_or(u16::MAX);
        body.extend_from_slice(&keep_alive.to_be_bytes());
        if self.version == Version::V5 {
            // Session Expiry Interval and Receive Maximum.
            let expiry = match self.session_expiry {
                _ if self.is_clean => 0,
                Some(expiry) => u32::try_from(expiry.as_secs()).unwrap_or(u32::MAX),
                None => u32::MAX,
            };
            body.extend_from_slice(&[8, 0x11]);
            body.extend_from_slice(&expiry.to_be_bytes());
            body.push(0x21);
            body.extend_from_slice(&self.receive_maximum.to_be_bytes());
        }
        put_text(&mut body, self.client_id);
        if let Some((user, _)) = self.login {
            put_text(&mut body, user);
        }
        if let Some(password) = password {
            put_text(&mut body, password.reveal());
        }
        put_packet(out, CONNECT, &body);
    }

    fn password(&self) -> Option<&Secret> {
        self.login.and_then(|(_, password)| password.as_ref())
    }
}

/// Appends a subscription to these filters, with packet id `id`.
pub(super) fn put_subscribe(
    out: &mut Vec<u8>,
    version: Version,
    id: u16,
    filters: &[String],
    qos: u8,
) {
    let mut body = id.to_be_bytes().to_vec();
    let mut options = qos;
    if version == Version::V5 {
        // No properties. Retained messages come only with a new subscription.
        body.push(0);
        options |= 1 << 4;
    }
    for filter in filters {
        put_text(&mut body, filter);
        // Version 5, 4.8.2: a shared subscription gets no retained messages; the option must be 0 at some brokers.
        let is_shared = filter.starts_with(super::filter::SHARED);
        body.push(if is_shared { qos } else { options });
    }
    put_packet(out, SUBSCRIBE, &body);
}

/// Appends the acknowledgement of a message of QoS 1 or 2: `PUBACK` or `PUBREC`.
pub(super) fn put_acknowledgement(out: &mut Vec<u8>, qos: u8, id: u16) {
    put_packet(out, if qos == 2 { PUBREC } else { PUBACK }, &id.to_be_bytes());
}

/// Appends the answer to a release of a message of QoS 2.
pub(super) fn put_complete(out: &mut Vec<u8>, id: u16) {
    put_packet(out, PUBCOMP, &id.to_be_bytes());
}

/// Appends a request for a sign of life.
pub(super) fn put_ping(out: &mut Vec<u8>) {
    out.extend_from_slice(&[0xc0, 0]);
}

/// Appends the end of the connection; the session stays.
pub(super) fn put_disconnect(out: &mut Vec<u8>) {
    out.extend_from_slice(&[0xe0, 0]);
}

fn put_packet(out: &mut Vec<u8>, first: u8, body: &[u8]) {
    out.push(first);
    let mut left = body.len();
    loop {
        let low = (left & 0x7f) as u8;
        left >>= 7;
        if left == 0 {
            out.push(low);
            break;
        }
        out.push(low | 0x80);
    }
    out.extend_from_slice(body);
}

/// A text with its length, which settings bound to 65,535 bytes.
fn put_text(out: &mut Vec<u8>, text: &str) {
    let length = u16::try_from(text.len()).expect("settings bound the length of texts");
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(text.as_bytes());
}
