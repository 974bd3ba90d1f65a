//! Writes encoded values.

/// A value of a map, or a field.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    /// `null`.
    Null,
    /// `boolean`.
    Bool(bool),
    /// `ubyte`.
    Ubyte(u8),
    /// `ushort`.
    Ushort(u16),
    /// `uint`.
    Uint(u32),
    /// `ulong`.
    Ulong(u64),
    /// `long`.
    Long(i64),
    /// `timestamp`: milliseconds since 1970-01-01 UTC.
    Time(i64),
    /// `binary`.
    Binary(&'a [u8]),
    /// `string`.
    Text(&'a str),
    /// `symbol`.
    Symbol(&'a str),
    /// What was encoded already: one value.
    Encoded(&'a [u8]),
}

/// Bytes of encoded values.
#[derive(Clone, Debug, Default)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// What was written.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Adds a value.
    ///
    /// # Panics
    ///
    /// If a text has more than 4 GiB.
    pub fn value(&mut self, value: Value<'_>) {
        match value {
            Value::Null => self.bytes.push(0x40),
            Value::Bool(value) => self.bytes.push(if value { 0x41 } else { 0x42 }),
            Value::Ubyte(value) => self.bytes.extend([0x50, value]),
            Value::Ushort(value) => self.fixed(0x60, &value.to_be_bytes()),
            Value::Uint(value) => self.fixed(0x70, &value.to_be_bytes()),
            Value::Ulong(value) => self.fixed(0x80, &value.to_be_bytes()),
            Value::Long(value) => self.fixed(0x81, &value.to_be_bytes()),
            Value::Time(value) => self.fixed(0x83, &value.to_be_bytes()),
            Value::Binary(bytes) => self.sized(0xb0, bytes),
            Value::Text(text) => self.sized(0xb1, text.as_bytes()),
            Value::Symbol(text) => self.sized(0xb3, text.as_bytes()),
            Value::Encoded(bytes) => self.bytes.extend_from_slice(bytes),
        }
    }

    fn fixed(&mut self, code: u8, bytes: &[u8]) {
        self.bytes.push(code);
        self.bytes.extend_from_slice(bytes);
    }

    fn sized(&mut self, code: u8, bytes: &[u8]) {
        self.fixed(code, &length(bytes.len()).to_be_bytes());
        self.bytes.extend_from_slice(bytes);
    }

    fn compound(&mut self, code: u8, count: usize, items: &[u8]) {
        self.fixed(code, &length(items.len() + 4).to_be_bytes());
        self.bytes.extend_from_slice(&length(count).to_be_bytes());
        self.bytes.extend_from_slice(items);
    }

    /// Adds the descriptor of the value that follows.
    pub(crate) fn descriptor(&mut self, code: u8) {
        self.bytes.extend([0x00, 0x53, code]);
    }

    /// Adds a list with a descriptor.
    pub(crate) fn described(&mut self, code: u8, fields: &[Value<'_>]) {
        self.descriptor(code);
        let mut items = Self::default();
        for field in fields {
            items.value(*field);
        }
        self.compound(0xd0, fields.len(), &items.bytes);
    }

    /// Adds a map whose keys are strings.
    pub fn map(&mut self, entries: &[(&str, Value<'_>)]) {
        self.map_of(entries, Value::Text);
    }

    /// Adds a map whose keys are symbols.
    pub(crate) fn fields(&mut self, entries: &[(&str, Value<'_>)]) {
        self.map_of(entries, Value::Symbol);
    }

    fn map_of<'a>(&mut self, entries: &[(&'a str, Value<'_>)], key: fn(&'a str) -> Value<'a>) {
        let mut items = Self::default();
        for (name, value) in entries {
            items.value(key(name));
            items.value(*value);
        }
        self.compound(0xd1, 2 * entries.len(), &items.bytes);
    }
}

fn length(length: usize) -> u32 {
    u32::try_from(length).expect("requests have some KiB")
}
