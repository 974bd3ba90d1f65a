//! Names of the fields of an event, which are put into a batch once.

use foldhash::fast::RandomState;
use skidder_event::{Arena, Batch, EventMut, KeyBit, KeyFilter, Text};
use skidder_netflow::Field;
use std::collections::HashMap;

macro_rules! keys {
    ($($key:ident = $name:literal),* $(,)?) => {
        /// A name that is the same in all events.
        #[derive(Clone, Copy, Debug)]
        pub(super) enum Key {
            $($key),*
        }

        /// `"name":` of each.
        const NAMES: &[&str] = &[$(concat!("\"", $name, "\":")),*];
    };
}

keys! {
    Action = "action",
    Address = "address",
    Aggregation = "aggregation",
    AggregationVersion = "aggregation_version",
    Bytes = "bytes",
    Category = "category",
    Client = "client",
    CommunityId = "community_id",
    Created = "created",
    Destination = "destination",
    Direction = "direction",
    Duration = "duration",
    End = "end",
    EngineId = "engine_id",
    EngineType = "engine_type",
    Event = "event",
    Exporter = "exporter",
    Flow = "flow",
    IanaNumber = "iana_number",
    Id = "id",
    Ip = "ip",
    Kind = "kind",
    Locality = "locality",
    Mac = "mac",
    Name = "name",
    Netflow = "netflow",
    Network = "network",
    Observer = "observer",
    Options = "options",
    Packets = "packets",
    Port = "port",
    Related = "related",
    SamplingInterval = "sampling_interval",
    Scope = "scope",
    Server = "server",
    Source = "source",
    SourceId = "source_id",
    Start = "start",
    Timestamp = "timestamp",
    Transport = "transport",
    Type = "type",
    UptimeMillis = "uptime_millis",
    Version = "version",
}

/// Where each name begins behind the first.
const PLACES: [u32; NAMES.len()] = {
    let mut places = [0; NAMES.len()];
    let mut at = 1;
    while at < places.len() {
        places[at] = places[at - 1] + NAMES[at - 1].len() as u32;
        at += 1;
    }
    places
};

/// Words that are values of many events.
#[derive(Clone, Copy, Debug)]
pub(super) enum Word {
    Event,
    Network,
    Session,
    Connection,
    NetflowFlow,
    NetflowOptions,
    Internal,
    External,
    Unknown,
    Inbound,
    Outbound,
    Icmp,
    Tcp,
    Udp,
    Ipv6Icmp,
    SflowFlow,
    SflowCounters,
}

const WORDS: [&str; 17] = [
    "event",
    "network",
    "session",
    "connection",
    "netflow_flow",
    "netflow_options",
    "internal",
    "external",
    "unknown",
    "inbound",
    "outbound",
    "icmp",
    "tcp",
    "udp",
    "ipv6-icmp",
    "sflow_flow",
    "sflow_counters",
];

/// Where each word begins behind the first.
const WORD_PLACES: [u32; WORDS.len()] = {
    let mut places = [0; WORDS.len()];
    let mut at = 1;
    while at < places.len() {
        places[at] = places[at - 1] + WORDS[at - 1].len() as u32;
        at += 1;
    }
    places
};

/// The name of a field of the flow, as it stands in the batch.
#[derive(Clone, Copy)]
struct FieldName {
    /// The address of the field, which stays where it is as long as the decoder has the same settings.
    field: usize,
    text: Text,
    raw: u32,
}

/// The names in one batch.
pub(super) struct Keys {
    start: u32,
    words: u32,
    filter: KeyFilter,
    /// By the place of a field in its record, which is the same in all records of a template.
    fields: Vec<Option<FieldName>>,
    /// By the address of a field: records of another template have it in another place.
    known: HashMap<usize, FieldName, RandomState>,
}

impl Keys {
    /// Puts the names into a batch.
    pub(super) fn append(batch: &mut Batch) -> Self {
        let mut words = 0;
        let all = batch.append_with(|bytes| {
            let start = bytes.len();
            for name in NAMES {
                bytes.extend_from_slice(name.as_bytes());
            }
            words = (bytes.len() - start) as u32;
            for word in WORDS {
                bytes.extend_from_slice(word.as_bytes());
            }
        });
        batch.set_utf8_appended(all.start as usize..(all.start + all.len) as usize);
        let mut filter = KeyFilter::NONE;
        for name in [
            "client",
            "destination",
            "event",
            "flow",
            "netflow",
            "network",
            "observer",
            "related",
            "server",
            "source",
        ] {
            filter.add(KeyBit::of(name.as_bytes()));
        }
        Self {
            start: all.start,
            words: all.start + words,
            filter,
            fields: Vec::new(),
            known: HashMap::default(),
        }
    }

    /// The names that may be at the top of an event.
    pub(super) fn filter(&self) -> KeyFilter {
        self.filter
    }

    pub(super) fn key(&self, key: Key) -> Text {
        let at = key as usize;
        Text { start: self.start + PLACES[at] + 1, len: NAMES[at].len() as u32 - 3 }
    }

    pub(super) fn word(&self, word: Word) -> Text {
        let at = word as usize;
        Text { start: self.words + WORD_PLACES[at], len: WORDS[at].len() as u32 }
    }

    /// The name of the field at this place of a record, and what stands there for [`Arena::push`].
    pub(super) fn field(
        &mut self,
        event: &mut EventMut<'_>,
        at: usize,
        field: &Field,
    ) -> (Text, u32) {
        let address = std::ptr::from_ref(field).addr();
        if let Some(Some(known)) = self.fields.get(at)
            && known.field == address
        {
            return (known.text, known.raw);
        }
        let known = match self.known.get(&address) {
            Some(known) => *known,
            None => {
                let known = name_of(event, field, address);
                self.known.insert(address, known);
                known
            }
        };
        if self.fields.len() <= at {
            self.fields.resize(at + 1, None);
        }
        self.fields[at] = Some(known);
        (known.text, known.raw)
    }
}

/// Puts the name of a field into the batch.
fn name_of(event: &mut EventMut<'_>, field: &Field, address: usize) -> FieldName {
    let name = field.name.as_bytes();
    let is_plain = name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(byte));
    let (text, raw) = if is_plain {
        let whole = event.store_text(&[b"\"", name, b"\":"].concat());
        (Text { start: whole.start + 1, len: name.len() as u32 }, Arena::KEY)
    } else {
        let text = event.store_text(name);
        event.note_name(text);
        (text, 0)
    };
    FieldName { field: address, text, raw }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_in_their_places_in_order() {
        assert_eq!(NAMES[Key::Version as usize], "\"version\":");
        assert_eq!(WORDS[Word::Ipv6Icmp as usize], "ipv6-icmp");
        assert_eq!(WORDS[Word::NetflowOptions as usize], "netflow_options");
        assert_eq!(WORDS[Word::SflowCounters as usize], "sflow_counters");
        assert!(NAMES.is_sorted());
        let all = NAMES.concat();
        for (name, place) in NAMES.iter().zip(PLACES) {
            assert!(all[place as usize..].starts_with(name));
        }
    }
}
