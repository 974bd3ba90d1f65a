//! Questions and answers on the wire (RFC 1035), by the library `domain`.

use domain::base::{Message, MessageBuilder, Name, Rtype, iana::Rcode};
use domain::rdata::{A, Aaaa, Ptr, Srv, Txt};
use std::cmp::Reverse;
use std::net::IpAddr;
use std::time::Duration;

/// The type of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    A,
    Aaaa,
    /// The name of an address.
    Ptr,
    Txt,
    /// Where a service is (RFC 2782): `host:port`, the first to be tried in front.
    Srv,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AskError {
    #[error("`{0}` is no address")]
    NoAddress(String),
    #[error("`{0}` is no name")]
    NoName(String),
    #[error("nameserver {server} cannot be asked: {source}")]
    Io { server: String, source: std::io::Error },
    #[error("nameserver {server} gave an answer that cannot be read")]
    Nonsense { server: String },
    #[error("nameserver {server} returned {code}")]
    Refused { server: String, code: Rcode },
    #[error("no {0:?} resource records were found in the response")]
    Empty(Question),
    #[error("no nameserver is known")]
    NoServer,
}

/// The texts that were found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) texts: Vec<Box<str>>,
    /// The time to live.
    pub(super) time: Duration,
}

/// The content of a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Answer(Answer),
    /// It does not fit: ask again over TCP.
    Truncated,
    /// It is the answer to something else.
    Other,
}

impl Question {
    fn rtype(self) -> Rtype {
        match self {
            Self::A => Rtype::A,
            Self::Aaaa => Rtype::AAAA,
            Self::Ptr => Rtype::PTR,
            Self::Txt => Rtype::TXT,
            Self::Srv => Rtype::SRV,
        }
    }

    /// The request about `text`.
    pub(super) fn write(self, text: &str, id: u16) -> Result<Vec<u8>, AskError> {
        let name: Name<Vec<u8>> = if self == Self::Ptr {
            let address: Option<IpAddr> = text.parse().ok();
            let address = address.ok_or_else(|| AskError::NoAddress(text.to_owned()))?;
            Name::reverse_from_addr(address).expect("every address has a name of its own")
        } else {
            text.parse().map_err(|_| AskError::NoName(text.to_owned()))?
        };
        let mut message = MessageBuilder::new_vec();
        message.header_mut().set_id(id);
        message.header_mut().set_rd(true);
        let mut message = message.question();
        message.push((&name, self.rtype())).expect("one name fits into a message");
        Ok(message.finish())
    }

    /// The content of the answer to `query`.
    pub(super) fn read(self, query: &[u8], bytes: &[u8], server: &str) -> Result<Reply, AskError> {
        let nonsense = || AskError::Nonsense { server: server.to_owned() };
        let query = Message::from_octets(query).expect("it was written here");
        let Ok(message) = Message::from_octets(bytes) else { return Err(nonsense()) };
        if message.header().id() != query.header().id() || !message.header().qr() {
            return Ok(Reply::Other);
        }
        if message.header().tc() {
            return Ok(Reply::Truncated);
        }
        let code = message.header().rcode();
        if code != Rcode::NOERROR {
            return Err(AskError::Refused { server: server.to_owned(), code });
        }
        if !message.is_answer(&query) {
            return Ok(Reply::Other);
        }
        let answer = self.texts(&message).map_err(|_| nonsense())?;
        if answer.texts.is_empty() { Err(AskError::Empty(self)) } else { Ok(Reply::Answer(answer)) }
    }

    fn texts(self, message: &Message<&[u8]>) -> Result<Answer, domain::base::wire::ParseError> {
        let records = message.answer()?;
        let mut texts: Vec<Box<str>> = Vec::new();
        let mut time = Duration::MAX;
        let mut add = |text: String, ttl: domain::base::Ttl| {
            texts.push(text.into());
            time = time.min(Duration::from_secs(ttl.as_secs().into()));
        };
        match self {
            Self::A => {
                for record in records.limit_to::<A>() {
                    let record = record?;
                    add(record.data().addr().to_string(), record.ttl());
                }
            }
            Self::Aaaa => {
                for record in records.limit_to::<Aaaa>() {
                    let record = record?;
                    add(record.data().addr().to_string(), record.ttl());
                }
            }
            // The first alone, as in Filebeat.
            Self::Ptr => {
                if let Some(record) = records.limit_to::<Ptr<_>>().next() {
                    let record = record?;
                    add(record.data().ptrdname().to_string(), record.ttl());
                }
            }
            Self::Txt => {
                for record in records.limit_to::<Txt<_>>() {
                    let record = record?;
                    for text in record.data().iter() {
                        add(String::from_utf8_lossy(text).into_owned(), record.ttl());
                    }
                }
            }
            Self::Srv => {
                let mut services = Vec::new();
                for record in records.limit_to::<Srv<_>>() {
                    let record = record?;
                    let service = record.data();
                    let place = format!("{}:{}", service.target(), service.port());
                    services.push((
                        service.priority(),
                        Reverse(service.weight()),
                        place,
                        record.ttl(),
                    ));
                }
                services.sort();
                for (.., place, ttl) in services {
                    add(place, ttl);
                }
            }
        }
        Ok(Answer { texts, time })
    }
}
