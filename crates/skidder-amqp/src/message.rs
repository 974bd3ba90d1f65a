//! Messages (part 3, 3.2 of the specification): their sections.

use crate::read::{Item, Malformed, Reader};
use crate::write::{Value, Writer};
use bytes::Bytes;

const ANNOTATIONS: u8 = 0x72;
const PROPERTIES: u8 = 0x73;
const APPLICATION: u8 = 0x74;
const DATA: u8 = 0x75;
const VALUE: u8 = 0x77;

/// A message that was received.
#[derive(Clone, Debug, Default)]
pub struct Message {
    bytes: Bytes,
}

impl Message {
    /// Of these bytes.
    pub fn new(bytes: Bytes) -> Self {
        Self { bytes }
    }

    /// The sections.
    fn section(&self, wanted: u8) -> Result<Option<Item<'_>>, Malformed> {
        let mut reader = Reader::new(&self.bytes);
        while let Some(item) = reader.next()? {
            match item {
                Item::Described(code, item) if code == u64::from(wanted) => return Ok(Some(*item)),
                Item::Described(..) => {}
                _ => return Err(Malformed::Expected("a section")),
            }
        }
        Ok(None)
    }

    /// An annotation of this name.
    ///
    /// # Errors
    ///
    /// The bytes are no message.
    pub fn annotation(&self, name: &str) -> Result<Option<Item<'_>>, Malformed> {
        Ok(self.section(ANNOTATIONS)?.and_then(|map| map.get(name)))
    }

    /// A property of the application.
    ///
    /// # Errors
    ///
    /// The bytes are no message.
    pub fn property(&self, name: &str) -> Result<Option<Item<'_>>, Malformed> {
        Ok(self.section(APPLICATION)?.and_then(|map| map.get(name)))
    }

    /// The id of the request that this answers.
    pub(crate) fn correlation(&self) -> Result<Option<String>, Malformed> {
        let Some(Item::List(mut fields)) = self.section(PROPERTIES)? else { return Ok(None) };
        for _ in 0..5 {
            fields.field()?;
        }
        Ok(fields.field()?.text().map(str::to_owned))
    }

    /// The body: data one behind the other, or a value that is bytes or a text. `None` for another body.
    ///
    /// # Errors
    ///
    /// The bytes are no message.
    pub fn body(&self) -> Result<Option<Bytes>, Malformed> {
        let mut reader = Reader::new(&self.bytes);
        let mut parts: Vec<&[u8]> = Vec::new();
        while let Some(item) = reader.next()? {
            let Item::Described(code, item) = item else {
                return Err(Malformed::Expected("a section"));
            };
            match (u8::try_from(code).unwrap_or(0), *item) {
                (DATA | VALUE, Item::Binary(bytes)) => parts.push(bytes),
                (VALUE, Item::Text(text)) => parts.push(text.as_bytes()),
                _ => {}
            }
        }
        Ok(match &parts[..] {
            [] => None,
            [one] => Some(self.bytes.slice_ref(one)),
            many => Some(Bytes::from(many.concat())),
        })
    }

    /// The body of an answer: a map.
    pub(crate) fn value(&self) -> Result<Option<Item<'_>>, Malformed> {
        self.section(VALUE)
    }
}

/// A request to a node that answers.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// Properties of the application, as `operation`.
    pub properties: &'a [(&'a str, Value<'a>)],
    /// The body; `None` for an empty map.
    pub body: Option<&'a str>,
}

impl Request<'_> {
    /// As a message.
    pub(crate) fn encode(&self, id: &str, reply_to: &str) -> Vec<u8> {
        let mut writer = Writer::default();
        let none = Value::Null;
        writer.described(PROPERTIES, &[Value::Text(id), none, none, none, Value::Text(reply_to)]);
        writer.descriptor(APPLICATION);
        writer.map(self.properties);
        writer.descriptor(VALUE);
        match self.body {
            Some(text) => writer.value(Value::Text(text)),
            None => writer.map(&[]),
        }
        writer.into_bytes()
    }
}

/// The answer to a request.
#[derive(Clone, Debug)]
pub struct Answer {
    /// As those of HTTP.
    pub status: i64,
    /// For people; perhaps empty.
    pub description: String,
    message: Message,
}

impl Answer {
    pub(crate) fn read(message: Message) -> Result<Self, Malformed> {
        let property = |names: [&str; 2]| -> Result<Option<Item<'_>>, Malformed> {
            let first = message.property(names[0])?;
            if first.is_some() { Ok(first) } else { message.property(names[1]) }
        };
        let status = property(["status-code", "statusCode"])?.and_then(|item| item.number());
        let status = status.ok_or(Malformed::Expected("an answer with a status"))?;
        let description = property(["status-description", "statusDescription"])?;
        let description = description.and_then(|item| item.text().map(str::to_owned));
        Ok(Self { status, description: description.unwrap_or_default(), message })
    }

    /// A value of the map in its body.
    pub fn get(&self, name: &str) -> Option<Item<'_>> {
        self.message.value().ok()??.get(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_a_message() {
        let properties = [("operation", Value::Text("put-token")), ("n", Value::Long(7))];
        let request = Request { properties: &properties, body: Some("token") };
        let message = Message::new(request.encode("1", "me").into());
        assert_eq!(message.property("operation").unwrap().unwrap().text(), Some("put-token"));
        assert_eq!(message.property("n").unwrap().unwrap().number(), Some(7));
        assert_eq!(message.correlation().unwrap(), None);
        assert_eq!(message.body().unwrap().unwrap(), "token");
        assert!(message.annotation("x").unwrap().is_none());
        assert!(Answer::read(message).is_err());
    }

    #[test]
    fn a_body_is_data_or_a_text() {
        let data = b"\x00\x53\x75\xa0\x01a";
        let table: [(Vec<u8>, Option<&str>); 5] = [
            (data.to_vec(), Some("a")),
            ([&data[..], &data[..]].concat(), Some("aa")),
            (b"\x00\x53\x77\xa1\x01b".to_vec(), Some("b")),
            (b"\x00\x53\x77\x45".to_vec(), None),
            (Vec::new(), None),
        ];
        for (bytes, expected) in table {
            let body = Message::new(bytes.into()).body().unwrap();
            assert_eq!(body.as_deref(), expected.map(str::as_bytes));
        }
        assert!(Message::new(Bytes::from_static(b"\xa1\x01b")).body().is_err());
    }
}
