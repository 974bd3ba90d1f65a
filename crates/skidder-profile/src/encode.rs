//! Writes `profile.proto`, compressed (<https://github.com/google/pprof/blob/main/proto/profile.proto>).
//!
//! The format is eight messages of numbers, written rarely, and this crate has no dependencies on
//! others of ours: so it is written by hand. A test reads the result with pprof itself
//! (`tests/servers/profiles`).

use crate::objects::Name;
use crate::{Objects, Period};
use flate2::{Compression, write::GzEncoder};
use std::collections::{BTreeMap, HashMap};
use std::io::Write as _;
use std::time::Duration;

/// Samples of one stack, the innermost first.
pub(crate) struct Stack<'a> {
    pub(crate) frames: &'a [u64],
    pub(crate) values: &'a [u64],
    pub(crate) label: Option<(&'a str, &'a str)>,
}

/// A profile as it is put together.
pub(crate) struct Profile {
    texts: Texts,
    out: Message,
    /// Encoded, behind all else known only by address.
    samples: Vec<(Vec<u64>, Message)>,
}

/// The number of a text is its place in the table.
struct Texts {
    list: Vec<String>,
    numbers: HashMap<String, u64>,
}

impl Texts {
    fn number(&mut self, text: &str) -> u64 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.list.len() as u64;
        self.list.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }
}

/// The wire format: fields with their number and kind.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn number(&mut self, field: u64, value: u64) {
        if value != 0 {
            self.varint(field << 3);
            self.varint(value);
        }
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn numbers(&mut self, field: u64, values: impl IntoIterator<Item = u64>) {
        let mut packed = Self::default();
        values.into_iter().for_each(|value| packed.varint(value));
        self.bytes(field, &packed.0);
    }
}

impl Profile {
    /// Of values with these names and units.
    pub(crate) fn new(values: &[(&str, &str)], period: Period) -> Self {
        let mut texts = Texts { list: Vec::new(), numbers: HashMap::new() };
        texts.number("");
        let mut out = Message::default();
        let mut kind = |texts: &mut Texts, field, name: &str, unit: &str| {
            let mut message = Message::default();
            message.number(1, texts.number(name));
            message.number(2, texts.number(unit));
            out.bytes(field, &message.0);
        };
        for (name, unit) in values {
            kind(&mut texts, 1, name, unit);
        }
        kind(&mut texts, 11, period.kind, period.unit);
        out.number(12, period.value);
        Self { texts, out, samples: Vec::new() }
    }

    /// When it was made, in nanoseconds since 1970, and how long it took.
    pub(crate) fn time(&mut self, now: i64, span: Duration) {
        self.out.number(9, now as u64);
        self.out.number(10, span.as_nanos() as u64);
    }

    /// A comment that pprof shows.
    pub(crate) fn comment(&mut self, text: &str) {
        let text = self.texts.number(text);
        self.out.number(13, text);
    }

    /// Functions that pprof leaves out, with their callees: a regular expression of whole names.
    pub(crate) fn without(&mut self, functions: &str) {
        let functions = self.texts.number(functions);
        self.out.number(7, functions);
    }

    /// The value that is shown by default.
    pub(crate) fn shown(&mut self, name: &str) {
        let name = self.texts.number(name);
        self.out.number(14, name);
    }

    /// Adds the samples of a stack.
    pub(crate) fn add(&mut self, stack: &Stack<'_>) {
        let mut message = Message::default();
        message.numbers(2, stack.values.iter().copied());
        if let Some((key, value)) = stack.label {
            let mut label = Message::default();
            label.number(1, self.texts.number(key));
            label.number(2, self.texts.number(value));
            message.bytes(3, &label.0);
        }
        self.samples.push((stack.frames.to_vec(), message));
    }

    /// All of it, with the names of functions.
    pub(crate) fn encode(mut self, objects: &Objects) -> Vec<u8> {
        let mut places: BTreeMap<u64, u64> =
            self.samples.iter().flat_map(|(frames, _)| frames).map(|at| (*at, 0)).collect();
        // Numbers begin at one.
        for (number, place) in places.values_mut().enumerate() {
            *place = number as u64 + 1;
        }
        for (frames, message) in &mut self.samples {
            message.numbers(1, frames.iter().map(|at| places[at]));
            self.out.bytes(2, &message.0);
        }
        let addresses: Vec<u64> = places.keys().copied().collect();
        let names = objects.names(&addresses);
        let mut named = vec![false; objects.list().len()];
        let mut functions: HashMap<Name, u64> = HashMap::new();
        for (address, name) in addresses.iter().zip(names) {
            let object = objects.position(*address);
            let mut location = Message::default();
            location.number(1, places[address]);
            location.number(2, object.map_or(0, |object| object as u64 + 1));
            location.number(3, *address);
            if let Some(name) = name {
                let next = functions.len() as u64 + 1;
                let mut line = Message::default();
                line.number(1, *functions.entry(name).or_insert(next));
                location.bytes(4, &line.0);
                if let Some(object) = object {
                    named[object] = true;
                }
            }
            self.out.bytes(4, &location.0);
        }
        for (name, number) in functions {
            let mut function = Message::default();
            function.number(1, number);
            function.number(2, self.texts.number(&name.shown));
            function.number(3, self.texts.number(&name.symbol));
            self.out.bytes(5, &function.0);
        }
        for (number, (loaded, is_named)) in objects.list().iter().zip(named).enumerate() {
            let mut mapping = Message::default();
            mapping.number(1, number as u64 + 1);
            mapping.number(2, loaded.code.start);
            mapping.number(3, loaded.code.end);
            mapping.number(4, loaded.offset);
            mapping.number(5, self.texts.number(&loaded.path));
            mapping.number(6, self.texts.number(&loaded.build_id));
            // Without it pprof looks for names itself.
            mapping.number(7, u64::from(is_named));
            self.out.bytes(3, &mapping.0);
        }
        for text in &self.texts.list {
            self.out.bytes(6, text.as_bytes());
        }
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        let written = encoder.write_all(&self.out.0).and_then(|()| encoder.finish());
        written.expect("memory takes everything")
    }
}
