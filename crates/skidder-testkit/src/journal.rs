//! Files of systemd's journal, written entry by entry as journald does: also while a test reads them.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

const HEADER: u64 = 272;

/// How the payload of a data object is compressed: the flag of its object, the flag of the file, and the function.
#[derive(Clone, Copy)]
pub struct Compression {
    /// Flag of an object.
    pub object: u8,
    /// Flag of a file.
    pub file: u32,
    /// Compresses.
    pub pack: fn(&[u8]) -> Vec<u8>,
}

/// How a file is written.
#[derive(Clone, Copy, Default)]
pub struct JournalOptions {
    /// In the compact format of systemd 252 and later.
    pub compact: bool,
    /// All fields of more than 64 bytes are compressed.
    pub compression: Option<Compression>,
    /// The sequence that its entries are numbered in.
    pub seqnum_id: u8,
    /// The boot of its entries.
    pub boot_id: u8,
    /// The machine of the file.
    pub machine_id: u8,
}

/// A file that is written.
pub struct JournalWriter {
    file: File,
    options: JournalOptions,
    /// Bytes of the file so far.
    end: u64,
    data: HashMap<Vec<u8>, u64>,
    entries: u64,
    /// The last array: where it stands, how many offsets it has room for, and has.
    array: (u64, u64, u64),
    seqnums: (u64, u64),
    times: (u64, u64),
}

impl JournalWriter {
    /// Creates a file.
    ///
    /// # Panics
    /// If that fails, as all that this does.
    pub fn create(path: &Path, options: JournalOptions) -> Self {
        let mut open = OpenOptions::new();
        let file = open.read(true).write(true).create(true).truncate(true).open(path);
        let file = file.expect("the test's directory is there");
        let mut writer = Self {
            file,
            options,
            end: HEADER,
            data: HashMap::new(),
            entries: 0,
            array: (0, 0, 0),
            seqnums: (0, 0),
            times: (0, 0),
        };
        writer.put(HEADER - 1, &[0]);
        writer.put(0, b"LPKSHHRH");
        let compression = options.compression.map_or(0, |compression| compression.file);
        writer.put(12, &(compression | if options.compact { 16 } else { 0 }).to_le_bytes());
        writer.put(16, &[1]);
        static FILES: AtomicU64 = AtomicU64::new(1);
        let id =
            u128::from(FILES.fetch_add(1, Ordering::Relaxed)) << 64 | u128::from(process::id());
        writer.put(24, &id.to_be_bytes());
        writer.put(40, &[options.machine_id; 16]);
        writer.put(72, &[options.seqnum_id; 16]);
        writer.put(88, &HEADER.to_le_bytes());
        writer.write_counts();
        writer
    }

    /// Adds an entry: its number, its time in microseconds, and its fields as `NAME=value`. Returns where it stands.
    pub fn entry(&mut self, seqnum: u64, realtime: u64, fields: &[&[u8]]) -> u64 {
        let items: Vec<u64> = fields.iter().map(|field| self.data_object(field)).collect();
        let mut body = Vec::new();
        for number in [seqnum, realtime, realtime % 1_000_000_000] {
            body.extend(number.to_le_bytes());
        }
        body.extend([self.options.boot_id; 16]);
        body.extend(seqnum.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
        for item in items {
            if self.options.compact {
                body.extend((item as u32).to_le_bytes());
            } else {
                body.extend(item.to_le_bytes());
                body.extend(0_u64.to_le_bytes());
            }
        }
        let entry = self.object(3, 0, &body);
        self.link(entry);
        self.entries += 1;
        let first = |old: u64, new: u64| if self.entries == 1 { new } else { old };
        self.seqnums = (first(self.seqnums.0, seqnum), seqnum);
        self.times = (first(self.times.0, realtime), realtime);
        self.write_counts();
        entry
    }

    /// Sets the state in the header: 2 for a file that was archived.
    pub fn set_state(&mut self, state: u8) {
        self.put(16, &[state]);
    }

    /// Writes bytes over what is there.
    pub fn put(&mut self, offset: u64, bytes: &[u8]) {
        self.file.write_all_at(bytes, offset).expect("a file of the test can be written");
    }

    /// Where the last array of entries stands.
    pub fn last_array(&self) -> u64 {
        self.array.0
    }

    /// Where the object of a field stands.
    pub fn offset_of(&self, field: &[u8]) -> u64 {
        self.data[field]
    }

    fn data_object(&mut self, field: &[u8]) -> u64 {
        if let Some(offset) = self.data.get(field) {
            return *offset;
        }
        let mut body = vec![0; if self.options.compact { 56 } else { 48 }];
        let packed = self.options.compression.filter(|_| field.len() > 64);
        let flags = match packed {
            Some(compression) => {
                body.extend((compression.pack)(field));
                compression.object
            }
            None => {
                body.extend(field);
                0
            }
        };
        let offset = self.object(1, flags, &body);
        self.data.insert(field.to_vec(), offset);
        offset
    }

    fn object(&mut self, kind: u8, flags: u8, body: &[u8]) -> u64 {
        let offset = self.end;
        let mut bytes = vec![kind, flags, 0, 0, 0, 0, 0, 0];
        bytes.extend((16 + body.len() as u64).to_le_bytes());
        bytes.extend(body);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        self.put(offset, &bytes);
        self.end += bytes.len() as u64;
        offset
    }

    /// Puts an entry into the chain of arrays, each of which is twice as long as the one before.
    fn link(&mut self, entry: u64) {
        let width = if self.options.compact { 4 } else { 8 };
        let (last, room, used) = self.array;
        if used == room {
            let room = (room * 2).max(4);
            let body = vec![0; 8 + (room * width) as usize];
            let array = self.object(6, 0, &body);
            let place = if last == 0 { 176 } else { last + 16 };
            self.put(place, &array.to_le_bytes());
            self.array = (array, room, 0);
        }
        let (array, _, used) = &mut self.array;
        let place = *array + 24 + *used * width;
        *used += 1;
        self.put(place, &entry.to_le_bytes()[..width as usize]);
    }

    fn write_counts(&mut self) {
        let counts = [
            (96, self.end - HEADER),
            (160, self.seqnums.1),
            (168, self.seqnums.0),
            (184, self.times.0),
            (192, self.times.1),
            (152, self.entries),
        ];
        for (place, count) in counts {
            self.put(place, &count.to_le_bytes());
        }
    }
}
