//! The messages of the transport (part 2, 2.7 of the specification).

use crate::error::{AmqpError, Condition};
use crate::frames::FRAME_BYTES_MAX;
use crate::read::{Item, Reader};
use crate::write::{Value, Writer};
use bytes::Bytes;

const OPEN: u8 = 0x10;
const BEGIN: u8 = 0x11;
const ATTACH: u8 = 0x12;
const FLOW: u8 = 0x13;
const TRANSFER: u8 = 0x14;
const DISPOSITION: u8 = 0x15;
const DETACH: u8 = 0x16;
const END: u8 = 0x17;
const CLOSE: u8 = 0x18;
const ERROR: u64 = 0x1d;
const ACCEPTED: u8 = 0x24;
const SOURCE: u8 = 0x28;
const TARGET: u8 = 0x29;

/// Transfers that either side may send before a `flow` of the session: links have credits, which bound more.
const WINDOW: u32 = 1 << 30;

/// What a peer sends.
#[derive(Debug)]
pub(crate) enum Performative {
    Open { frame_bytes_max: u32, idle_milliseconds: u32 },
    Begin { to: u16, next_id: u32 },
    Attach { name: String, handle: u32, delivery_count: u32, has_node: bool },
    Flow { handle: Option<u32>, delivery_count: u32, credit: u32, echo: bool },
    Transfer(Transfer),
    Disposition,
    Detach { handle: u32, error: Option<Condition> },
    End { error: Option<Condition> },
    Close { error: Option<Condition> },
}

/// A message, or a part of it.
#[derive(Debug)]
pub(crate) struct Transfer {
    pub(crate) handle: u32,
    pub(crate) id: Option<u32>,
    pub(crate) settled: bool,
    pub(crate) more: bool,
    pub(crate) aborted: bool,
    pub(crate) payload: Bytes,
}

impl Performative {
    /// Reads the body of a frame.
    pub(crate) fn read(body: &Bytes) -> Result<Self, AmqpError> {
        let mut reader = Reader::new(body);
        let Some(Item::Described(code, item)) = reader.next()? else {
            return Err(AmqpError::Protocol("a frame without a performative".into()));
        };
        let Item::List(mut fields) = *item else {
            return Err(AmqpError::Protocol("a performative without fields".into()));
        };
        let payload = body.slice(body.len() - reader.rest().len()..);
        let fields = &mut fields;
        Ok(match u8::try_from(code).unwrap_or(0) {
            OPEN => {
                skip(fields, 2)?;
                let frame_bytes_max = fields.field()?.uint().unwrap_or(u32::MAX);
                skip(fields, 1)?;
                let idle_milliseconds = fields.field()?.uint().unwrap_or(0);
                Self::Open { frame_bytes_max, idle_milliseconds }
            }
            BEGIN => {
                let to = fields.field()?.uint().and_then(|channel| u16::try_from(channel).ok());
                let to = to.ok_or_else(|| missing("`remote-channel` of `begin`"))?;
                Self::Begin { to, next_id: fields.field()?.uint().unwrap_or(0) }
            }
            ATTACH => attach(fields)?,
            FLOW => flow(fields)?,
            TRANSFER => transfer(fields, payload)?,
            DISPOSITION => Self::Disposition,
            DETACH => {
                let handle = fields.field()?.uint().ok_or_else(|| missing("`handle`"))?;
                // Whether it may be opened again.
                skip(fields, 1)?;
                Self::Detach { handle, error: condition(&fields.field()?) }
            }
            END => Self::End { error: condition(&fields.field()?) },
            CLOSE => Self::Close { error: condition(&fields.field()?) },
            _ => {
                return Err(AmqpError::Protocol(format!("an unknown performative (0x{code:02x})")));
            }
        })
    }
}

fn missing(what: &str) -> AmqpError {
    AmqpError::Protocol(format!("there is no {what}"))
}

fn skip(fields: &mut Reader<'_>, count: usize) -> Result<(), AmqpError> {
    for _ in 0..count {
        fields.field()?;
    }
    Ok(())
}

fn attach(fields: &mut Reader<'_>) -> Result<Performative, AmqpError> {
    let name = fields.field()?.text().unwrap_or_default().to_owned();
    let handle = fields.field()?.uint().ok_or_else(|| missing("`handle`"))?;
    let is_receiver = matches!(fields.field()?, Item::Bool(true));
    skip(fields, 2)?;
    let (source, target) = (fields.field()?, fields.field()?);
    // The node of the peer: without it the link is refused, and a `detach` follows.
    let node = if is_receiver { target } else { source };
    skip(fields, 2)?;
    let delivery_count = fields.field()?.uint().unwrap_or(0);
    let has_node = !matches!(node, Item::Null);
    Ok(Performative::Attach { name, handle, delivery_count, has_node })
}

fn flow(fields: &mut Reader<'_>) -> Result<Performative, AmqpError> {
    skip(fields, 4)?;
    let handle = fields.field()?.uint();
    let delivery_count = fields.field()?.uint().unwrap_or(0);
    let credit = fields.field()?.uint().unwrap_or(0);
    skip(fields, 2)?;
    let echo = matches!(fields.field()?, Item::Bool(true));
    Ok(Performative::Flow { handle, delivery_count, credit, echo })
}

fn transfer(fields: &mut Reader<'_>, payload: Bytes) -> Result<Performative, AmqpError> {
    let handle = fields.field()?.uint().ok_or_else(|| missing("`handle`"))?;
    let id = fields.field()?.uint();
    skip(fields, 2)?;
    let settled = matches!(fields.field()?, Item::Bool(true));
    let more = matches!(fields.field()?, Item::Bool(true));
    skip(fields, 3)?;
    let aborted = matches!(fields.field()?, Item::Bool(true));
    Ok(Performative::Transfer(Transfer { handle, id, settled, more, aborted, payload }))
}

fn condition(item: &Item<'_>) -> Option<Condition> {
    let Item::Described(ERROR, item) = item else { return None };
    let Item::List(mut fields) = **item else { return None };
    let name = fields.field().ok()?.text()?.to_owned();
    let description = fields.field().ok()?.text().unwrap_or_default().to_owned();
    Some(Condition { name, description })
}

/// `open`; heartbeats are expected within `idle_milliseconds`.
pub(crate) fn open(container: &str, host: &str, idle_milliseconds: u32, product: &str) -> Vec<u8> {
    let mut properties = Writer::default();
    properties.fields(&[("product", Value::Text("skidder")), ("user-agent", Value::Text(product))]);
    let properties = properties.into_bytes();
    described(
        OPEN,
        &[
            Value::Text(container),
            Value::Text(host),
            Value::Uint(FRAME_BYTES_MAX),
            Value::Ushort(u16::MAX),
            Value::Uint(idle_milliseconds),
            Value::Null,
            Value::Null,
            Value::Null,
            Value::Null,
            Value::Encoded(&properties),
        ],
    )
}

/// `begin`.
pub(crate) fn begin() -> Vec<u8> {
    described(BEGIN, &[Value::Null, Value::Uint(0), Value::Uint(WINDOW), Value::Uint(WINDOW)])
}

/// `attach` of a receiver (`Some(source)`) or of a sender.
pub(crate) fn attach_link(link: &Ends<'_>, name: &str, handle: u32) -> Vec<u8> {
    let is_receiver = link.is_receiver;
    let count = if is_receiver { Value::Null } else { Value::Uint(0) };
    described(
        ATTACH,
        &[
            Value::Text(name),
            Value::Uint(handle),
            Value::Bool(is_receiver),
            // What comes is settled when it is sent: the far side keeps it, and the place is ours to keep.
            Value::Ubyte(1),
            Value::Ubyte(0),
            Value::Encoded(&link.source()),
            Value::Encoded(&link.target()),
            Value::Null,
            Value::Bool(false),
            count,
            Value::Ulong(link.message_bytes_max),
            Value::Null,
            Value::Null,
            link.properties.map_or(Value::Null, Value::Encoded),
        ],
    )
}

/// Both ends of a link.
pub(crate) struct Ends<'a> {
    pub(crate) is_receiver: bool,
    /// The node of the peer.
    pub(crate) node: &'a str,
    /// What messages to this side are addressed to; empty for nothing.
    pub(crate) own: &'a str,
    /// Of a selector filter; for a receiver.
    pub(crate) filter: Option<&'a str>,
    /// An encoded map.
    pub(crate) properties: Option<&'a [u8]>,
    pub(crate) message_bytes_max: u64,
}

impl Ends<'_> {
    fn source(&self) -> Vec<u8> {
        let address = if self.is_receiver { self.node } else { self.own };
        let Some(filter) = self.filter else {
            return described(SOURCE, &[text(address)]);
        };
        // <https://svn.apache.org/repos/asf/qpid/trunk/qpid/specs/apache-filters.xml>: `selector-filter`.
        let mut selector = Writer::default();
        selector.value(Value::Encoded(&[0x00]));
        selector.value(Value::Ulong(0x0000_468C_0000_0004));
        selector.value(Value::Text(filter));
        let selector = selector.into_bytes();
        let mut filters = Writer::default();
        filters.fields(&[("apache.org:selector-filter:string", Value::Encoded(&selector))]);
        let filters = filters.into_bytes();
        let mut fields = vec![text(address), Value::Uint(0), Value::Null, Value::Null];
        fields.extend([Value::Null, Value::Null, Value::Null, Value::Encoded(&filters)]);
        described(SOURCE, &fields)
    }

    fn target(&self) -> Vec<u8> {
        let address = if self.is_receiver { self.own } else { self.node };
        described(TARGET, &[text(address)])
    }
}

fn text(address: &str) -> Value<'_> {
    if address.is_empty() { Value::Null } else { Value::Text(address) }
}

/// `flow` of a link, and of its session.
pub(crate) fn flow_of(link: Option<(u32, u32, u32)>, received: u32, sent: u32) -> Vec<u8> {
    let session =
        [Value::Uint(received), Value::Uint(WINDOW), Value::Uint(sent), Value::Uint(WINDOW)];
    let Some((handle, delivery_count, credit)) = link else {
        return described(FLOW, &session);
    };
    let link = [Value::Uint(handle), Value::Uint(delivery_count), Value::Uint(credit)];
    described(FLOW, &[&session[..], &link[..]].concat())
}

/// `transfer` of a message that is settled when it is sent.
pub(crate) fn transfer_of(handle: u32, id: u32, more: bool) -> Vec<u8> {
    let tag = id.to_be_bytes();
    described(
        TRANSFER,
        &[
            Value::Uint(handle),
            Value::Uint(id),
            Value::Binary(&tag),
            Value::Uint(0),
            Value::Bool(true),
            Value::Bool(more),
        ],
    )
}

/// `disposition`: a message that was not settled is accepted.
pub(crate) fn accepted(id: u32) -> Vec<u8> {
    let state = described(ACCEPTED, &[]);
    described(
        DISPOSITION,
        &[
            Value::Bool(true),
            Value::Uint(id),
            Value::Uint(id),
            Value::Bool(true),
            Value::Encoded(&state),
        ],
    )
}

/// `detach` that closes a link.
pub(crate) fn detach(handle: u32) -> Vec<u8> {
    described(DETACH, &[Value::Uint(handle), Value::Bool(true)])
}

/// `end`.
pub(crate) fn end() -> Vec<u8> {
    described(END, &[])
}

/// `close`.
pub(crate) fn close() -> Vec<u8> {
    described(CLOSE, &[])
}

fn described(code: u8, fields: &[Value<'_>]) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.described(code, fields);
    writer.into_bytes()
}
