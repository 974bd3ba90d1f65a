//! Packets that a broker sends. Nothing is believed that the bytes do not have.

use std::borrow::Cow;

/// Longest text of a broker that is kept.
const WORDS_BYTES_MAX: usize = 200;

/// Longest packet but for the text of a message: a `SUBACK` of some ten thousand topics, or the longest topic.
pub(super) const CONTROL_BYTES_MAX: usize = 65 << 10;

/// The version of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    V311,
    V5,
}

/// The bytes are no packet that a broker may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct BadPacket(pub(super) &'static str);

const SHORT: BadPacket = BadPacket("a packet is shorter than its fields");

/// A packet.
#[derive(Debug, PartialEq)]
pub(super) enum Packet<'a> {
    Connected(Connected),
    Message(Message<'a>),
    /// A message of QoS 2 with this packet id is released.
    Release(u16),
    /// The codes for the filters of the subscription with this packet id.
    Subscribed {
        id: u16,
        codes: &'a [u8],
        words: Option<String>,
    },
    Pong,
    /// The broker ends the connection.
    Disconnect {
        code: u8,
        words: Option<String>,
    },
}

/// The answer to `CONNECT`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Connected {
    /// 0, or why the broker refuses.
    pub(super) code: u8,
    /// The broker knows the session of an earlier connection.
    pub(super) has_session: bool,
    /// Version 5: seconds, in place of our own.
    pub(super) keep_alive: Option<u16>,
    /// Version 5: seconds, in place of our own.
    pub(super) session_expiry: Option<u32>,
    /// Version 5: the broker's explanation.
    pub(super) words: Option<String>,
}

/// A message.
#[derive(Debug, PartialEq)]
pub(super) struct Message<'a> {
    pub(super) topic: Cow<'a, str>,
    pub(super) payload: &'a [u8],
    /// Its packet id; 0 for QoS 0.
    pub(super) id: u16,
    pub(super) qos: u8,
    pub(super) is_duplicate: bool,
    pub(super) is_retained: bool,
    /// Only its beginning: it is longer than the bound.
    pub(super) is_cut: bool,
}

/// Takes packets out of received bytes.
#[derive(Debug)]
pub(super) struct Decoder {
    version: Version,
    /// Longest text of a message; of a longer one the rest is skipped.
    message_bytes_max: usize,
    /// Bytes of a message that was cut, still to be skipped.
    skip: usize,
}

impl Decoder {
    pub(super) fn new(version: Version, message_bytes_max: usize) -> Self {
        Self { version, message_bytes_max, skip: 0 }
    }

    /// The first packet, and how many bytes to go on behind. The packet is `None` if it is not complete, or if bytes are
    /// only to be skipped.
    pub(super) fn next<'a>(
        &mut self,
        bytes: &'a [u8],
    ) -> Result<(usize, Option<Packet<'a>>), BadPacket> {
        let skipped = self.skip.min(bytes.len());
        self.skip -= skipped;
        let rest = &bytes[skipped..];
        let Some((first, behind)) = rest.split_first() else { return Ok((skipped, None)) };
        if !self.is_known(*first) {
            return Err(BadPacket("a packet is of a type that no broker sends"));
        }
        let Some((length, head)) = variable(behind)? else { return Ok((skipped, None)) };
        let body = &behind[head..];
        let is_message = first >> 4 == 3;
        let bound = CONTROL_BYTES_MAX + if is_message { self.message_bytes_max } else { 0 };
        if !is_message && length > bound {
            return Err(BadPacket("a packet that is no message is longer than 65 KiB"));
        }
        let wanted = length.min(bound);
        let Some(body) = body.get(..wanted) else { return Ok((skipped, None)) };
        let packet = self.packet(*first, body, length > wanted)?;
        self.skip = length - wanted;
        Ok((skipped + 1 + head + wanted, Some(packet)))
    }

    /// Whether a packet may begin with this byte. Looked at before its length: what is no broker may announce more than it
    /// sends.
    fn is_known(&self, first: u8) -> bool {
        matches!(first, 0x20 | 0x30..=0x3f | 0x62 | 0x90 | 0xd0)
            || (first == 0xe0 && self.version == Version::V5)
    }

    fn packet<'a>(&self, first: u8, body: &'a [u8], is_cut: bool) -> Result<Packet<'a>, BadPacket> {
        let mut reader = Reader(body);
        let is_new = self.version == Version::V5;
        match first {
            0x20 => {
                let [flags, code] = reader.array()?;
                let mut connected = Connected { code, ..Connected::default() };
                connected.has_session = flags & 1 == 1;
                // An old broker refuses version 5 in the form of its own version.
                if is_new && !reader.0.is_empty() {
                    reader.properties(|id, value| match (id, value) {
                        (0x11, Value::Number(seconds)) => connected.session_expiry = Some(seconds),
                        (0x13, Value::Number(seconds)) => {
                            connected.keep_alive = u16::try_from(seconds).ok();
                        }
                        (0x1f, Value::Bytes(text)) => connected.words = Some(words(text)),
                        _ => {}
                    })?;
                }
                Ok(Packet::Connected(connected))
            }
            0x30..=0x3f => self.message(first, reader, is_cut).map(Packet::Message),
            0x62 => Ok(Packet::Release(reader.id()?)),
            0x90 => {
                let id = reader.id()?;
                let mut said = None;
                if is_new {
                    reader.properties(|id, value| keep_words(&mut said, id, value))?;
                }
                Ok(Packet::Subscribed { id, codes: reader.0, words: said })
            }
            0xd0 => Ok(Packet::Pong),
            _ => {
                let mut said = None;
                let code = if reader.0.is_empty() { 0 } else { reader.byte()? };
                if !reader.0.is_empty() {
                    reader.properties(|id, value| keep_words(&mut said, id, value))?;
                }
                Ok(Packet::Disconnect { code, words: said })
            }
        }
    }

    fn message<'a>(
        &self,
        first: u8,
        mut reader: Reader<'a>,
        is_cut: bool,
    ) -> Result<Message<'a>, BadPacket> {
        let qos = first >> 1 & 3;
        if qos == 3 {
            return Err(BadPacket("a message is of QoS 3"));
        }
        // A topic that is no UTF-8 is no reason to end the connection: the message would come again and again.
        let topic = String::from_utf8_lossy(reader.bytes()?);
        let id = if qos == 0 { 0 } else { reader.id()? };
        if self.version == Version::V5 {
            let length = reader.variable()?;
            let is_there = reader.take(length).is_ok();
            if !is_there && !is_cut {
                return Err(SHORT);
            }
            if !is_there {
                // Properties take up all that is read of the message.
                reader.0 = &[];
            }
        }
        let payload = &reader.0[..reader.0.len().min(self.message_bytes_max)];
        let is_cut = is_cut || payload.len() < reader.0.len();
        if topic.is_empty() {
            return Err(BadPacket("a message has no topic; aliases of topics were not allowed"));
        }
        Ok(Message {
            topic,
            payload,
            id,
            qos,
            is_duplicate: first & 8 != 0,
            is_retained: first & 1 != 0,
            is_cut,
        })
    }
}

/// The value of a property.
enum Value<'a> {
    Number(u32),
    Bytes(&'a [u8]),
}

fn keep_words(said: &mut Option<String>, id: u8, value: Value<'_>) {
    if let (0x1f, Value::Bytes(text)) = (id, value) {
        *said = Some(words(text));
    }
}

/// A text of a broker for a log: one line, not long.
fn words(text: &[u8]) -> String {
    let text = &text[..text.len().min(WORDS_BYTES_MAX)];
    String::from_utf8_lossy(text).replace(char::is_control, " ")
}

/// A number of up to four bytes of seven bits, and how many bytes it has; `None` if there are not all of them yet.
fn variable(bytes: &[u8]) -> Result<Option<(usize, usize)>, BadPacket> {
    let mut number = 0;
    for (place, byte) in bytes.iter().take(4).enumerate() {
        number |= usize::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return Ok(Some((number, place + 1)));
        }
    }
    if bytes.len() < 4 { Ok(None) } else { Err(BadPacket("a length has more than four bytes")) }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], BadPacket> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(SHORT)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], BadPacket> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(SHORT)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn byte(&mut self) -> Result<u8, BadPacket> {
        self.array().map(|[byte]| byte)
    }

    fn id(&mut self) -> Result<u16, BadPacket> {
        match u16::from_be_bytes(self.array()?) {
            0 => Err(BadPacket("a packet id is 0")),
            id => Ok(id),
        }
    }

    fn bytes(&mut self) -> Result<&'a [u8], BadPacket> {
        let length = u16::from_be_bytes(self.array()?);
        self.take(usize::from(length))
    }

    fn variable(&mut self) -> Result<usize, BadPacket> {
        let (number, length) = variable(self.0)?.ok_or(SHORT)?;
        self.take(length)?;
        Ok(number)
    }

    /// Reads properties: version 5, 2.2.2.2.
    fn properties(&mut self, mut each: impl FnMut(u8, Value<'a>)) -> Result<(), BadPacket> {
        let length = self.variable()?;
        let mut of = Self(self.take(length)?);
        while !of.0.is_empty() {
            let id = of.byte()?;
            let value = match id {
                0x01 | 0x17 | 0x19 | 0x24 | 0x25 | 0x28 | 0x29 | 0x2a => {
                    Value::Number(u32::from(of.byte()?))
                }
                0x13 | 0x21 | 0x22 | 0x23 => {
                    Value::Number(u32::from(u16::from_be_bytes(of.array()?)))
                }
                0x02 | 0x11 | 0x18 | 0x27 => Value::Number(u32::from_be_bytes(of.array()?)),
                0x0b => Value::Number(of.variable()? as u32),
                0x03 | 0x08 | 0x09 | 0x12 | 0x15 | 0x16 | 0x1a | 0x1c | 0x1f => {
                    Value::Bytes(of.bytes()?)
                }
                // A name and a value.
                0x26 => {
                    of.bytes()?;
                    Value::Bytes(of.bytes()?)
                }
                _ => return Err(BadPacket("a property is of no known type")),
            };
            each(id, value);
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
