//! Headers of RFC 5424 that came lately in a batch. Most messages of a sender differ from one before in time and text
//! only: such a message gets the fields of that one ([`Batch::share`]).

use super::message::{Known, Message};
use skidder_event::{Batch, SharedFields, Text};

/// Most headers that are remembered: each is compared with each message that has none of them.
const HEADERS_MAX: usize = 16;

/// The newest headers of a batch, the one that was used last first.
#[derive(Default)]
pub(super) struct Headers(Vec<Header>);

struct Header {
    priority: Option<u32>,
    version: Option<u32>,
    /// What stands between the time and the text.
    text: Text,
    has_data: bool,
    /// The event that had it first.
    row: usize,
    /// Its fields, as soon as a second one has them.
    fields: Option<SharedFields>,
}

impl Headers {
    /// The header that `rest` of a message begins with; its priority and version are cut already.
    pub(super) fn find(&self, batch: &Batch, message: &Message, rest: &[u8]) -> Option<Known> {
        let at = self.0.iter().position(|header| {
            header.priority == message.priority
                && header.version == message.version
                && rest.starts_with(batch.text(header.text))
        })?;
        let header = &self.0[at];
        Some(Known { at, len: header.text.len as usize, has_data: header.has_data })
    }

    /// Gives an event without fields those of a header that was found.
    ///
    /// # Panics
    /// If it has fields.
    pub(super) fn put(&mut self, batch: &mut Batch, row: usize, known: Known) {
        let header = &mut self.0[known.at];
        let first = header.row;
        let fields = *header.fields.get_or_insert_with(|| batch.share(first));
        assert!(batch.put_shared(row, fields), "headers are looked for if an event has no fields");
        self.0[..=known.at].rotate_right(1);
    }

    /// Remembers the header of an event that had no fields before.
    pub(super) fn add(&mut self, row: usize, text: Text, message: &Message) {
        self.0.truncate(HEADERS_MAX - 1);
        let (priority, version) = (message.priority, message.version);
        let has_data = !message.data.is_empty();
        self.0.insert(0, Header { priority, version, text, has_data, row, fields: None });
    }
}
