//! One file of the journal.

use crate::blocks::{Blocks, read};
use crate::header::{HEADER_BYTES_MIN, Header, id_at, u32_at, u64_at};
use crate::payload::{FLAGS, LONG, PAYLOAD_BYTES_MAX, unpack};
use crate::{Id, JournalError};
use skidder_os::File;

/// Kinds of objects.
const DATA: u8 = 1;
const ENTRY: u8 = 3;
const ARRAY: u8 = 6;
const LAST_KIND: u8 = 7;

/// Bytes of the head of any object, of an array, and of an entry.
const OBJECT: usize = 16;
const ARRAY_HEAD: usize = 24;
const ENTRY_HEAD: usize = 64;

/// Bytes of the head of a data object, and of one in a compact file.
const DATA_HEAD: usize = 64;
const DATA_HEAD_COMPACT: usize = 72;

/// Fields of an entry beyond which it is taken for damaged; journald accepts 1024 of a client.
const ITEMS_MAX: usize = 4096;

/// Blocks of objects that are kept.
const BLOCKS: usize = 16;

/// An entry, without its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where it stands in its file.
    pub offset: u64,
    /// Its number in the sequence of the file.
    pub seqnum: u64,
    /// Microseconds since 1970-01-01 UTC.
    pub realtime: u64,
    /// Microseconds since the boot.
    pub monotonic: u64,
    /// Which boot.
    pub boot_id: Id,
    /// A hash of its fields.
    pub xor_hash: u64,
}

/// Where some entries are listed.
#[derive(Debug)]
enum Listed {
    /// An array in the file.
    Array { offset: u64 },
    /// They were found by walking over all objects, since an array is damaged.
    Found(Vec<u64>),
}

/// Entries from `first` on.
#[derive(Debug)]
struct Part {
    first: u64,
    count: u64,
    listed: Listed,
}

/// A file, open for reading.
pub struct JournalFile {
    file: Box<dyn File>,
    header: Header,
    parts: Vec<Part>,
    /// The array behind the last part; 0 if there is none yet.
    next_array: u64,
    /// The part that was used last.
    part: usize,
    /// No entry is found from this index on, until the file changes.
    unreachable: Option<u64>,
    lists: Blocks,
    objects: Blocks,
}

impl std::fmt::Debug for JournalFile {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("JournalFile").field("header", &self.header).finish()
    }
}

/// The head of an object: its kind, flags and size.
struct Head {
    kind: u8,
    flags: u8,
    size: u64,
}

impl Head {
    fn of(bytes: &[u8]) -> Self {
        Self { kind: bytes[0], flags: bytes[1], size: u64_at(bytes, 8) }
    }
}

impl JournalFile {
    /// Reads the header of a file.
    ///
    /// # Errors
    /// [`JournalError::NoJournal`] as long as there is none.
    pub fn open(file: Box<dyn File>) -> Result<Self, JournalError> {
        let header = read_header(&*file)?;
        Ok(Self {
            next_array: header.array,
            file,
            header,
            parts: Vec::new(),
            part: 0,
            unreachable: None,
            lists: Blocks::new(1),
            objects: Blocks::new(BLOCKS),
        })
    }

    /// The header as of the last [`JournalFile::refresh`].
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The open file.
    pub fn file(&self) -> &dyn File {
        &*self.file
    }

    /// Entries that can be reached: fewer than the header says if the file is damaged and some were looked for in vain.
    pub fn len(&self) -> u64 {
        self.unreachable.unwrap_or(self.header.entries)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads the header again; returns whether there are more entries.
    ///
    /// # Errors
    /// If it cannot be read; what was known stays.
    pub fn refresh(&mut self) -> Result<bool, JournalError> {
        let header = read_header(&*self.file)?;
        let has_more = header.entries > self.header.entries;
        if header != self.header {
            // Arrays are filled where they stand, and the last block was not full.
            self.lists.forget();
            self.objects.forget();
            self.unreachable = None;
            if self.next_array == 0 && self.parts.is_empty() {
                self.next_array = header.array;
            }
            self.header = header;
        }
        Ok(has_more)
    }

    /// Frees buffers until something is read again.
    pub fn release(&mut self) {
        self.lists.release();
        self.objects.release();
    }

    /// The entry with this index, which is below [`JournalFile::len`]; `items` becomes the offsets of its fields, for
    /// [`JournalFile::data`].
    ///
    /// # Errors
    /// If it is damaged; the one behind it may be readable.
    pub fn entry(&mut self, index: u64, items: &mut Vec<u64>) -> Result<Entry, JournalError> {
        items.clear();
        let offset = self.offset_of(index)?;
        let size = self.check(offset, ENTRY, ENTRY_HEAD)?;
        let is_compact = self.header.is_compact;
        let width = if is_compact { 4 } else { 16 };
        let count = (size as usize - ENTRY_HEAD) / width;
        if count > ITEMS_MAX {
            return Err(JournalError::Damaged { offset, what: "an entry has too many fields" });
        }
        let bytes = self.objects.get(&*self.file, offset, ENTRY_HEAD + count * width)?;
        let entry = head_of_entry(offset, bytes);
        let all = bytes[ENTRY_HEAD..].chunks_exact(width);
        if is_compact {
            items.extend(all.map(|item| u64::from(u32_at(item, 0))));
        } else {
            items.extend(all.map(|item| u64_at(item, 0)));
        }
        Ok(entry)
    }

    /// The entry with this index, without its fields.
    ///
    /// # Errors
    /// As for [`JournalFile::entry`].
    pub fn head(&mut self, index: u64) -> Result<Entry, JournalError> {
        let offset = self.offset_of(index)?;
        self.check(offset, ENTRY, ENTRY_HEAD)?;
        let bytes = self.objects.get(&*self.file, offset, ENTRY_HEAD)?;
        Ok(head_of_entry(offset, bytes))
    }

    /// The index of the first entry for which `is_before` does not hold; entries for which it holds come first. Damaged
    /// entries are passed over.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn first_not(
        &mut self,
        mut is_before: impl FnMut(&Entry) -> bool,
    ) -> Result<u64, JournalError> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            // The next one that is readable stands for a damaged one.
            let mut at = middle;
            let found = loop {
                match self.head(at) {
                    Ok(entry) => break Some(entry),
                    Err(JournalError::Damaged { .. }) if at + 1 < high.min(self.len()) => at += 1,
                    Err(JournalError::Damaged { .. }) => break None,
                    Err(error) => return Err(error),
                }
            };
            match found {
                Some(entry) if is_before(&entry) => low = at + 1,
                _ => high = middle,
            }
        }
        Ok(low)
    }

    /// Adds `NAME=value` of the field at this offset to `out`.
    ///
    /// # Errors
    /// If it is damaged; `out` is as it was.
    pub fn data(&mut self, offset: u64, out: &mut Vec<u8>) -> Result<(), JournalError> {
        let head = if self.header.is_compact { DATA_HEAD_COMPACT } else { DATA_HEAD };
        let size = self.check(offset, DATA, head)? as usize;
        if size > PAYLOAD_BYTES_MAX + head {
            return Err(JournalError::Damaged { offset, what: LONG });
        }
        let bytes = self.objects.get(&*self.file, offset, size)?;
        let (flags, start) = (bytes[1] & FLAGS, out.len());
        unpack(flags, &bytes[head..], out).map_err(|what| {
            out.truncate(start);
            JournalError::Damaged { offset, what }
        })
    }

    /// Checks that an object of a kind stands at an offset; returns its size.
    #[inline]
    fn check(&mut self, offset: u64, kind: u8, head: usize) -> Result<u64, JournalError> {
        let damaged = |what| Err(JournalError::Damaged { offset, what });
        let header = &self.header;
        if offset < header.size || !offset.is_multiple_of(8) || offset >= header.end {
            return damaged("no object can stand there");
        }
        let Head { kind: found, size, .. } =
            Head::of(self.objects.get(&*self.file, offset, OBJECT)?);
        if found != kind {
            return damaged("there is another object than expected");
        }
        if size < head as u64 || size > self.header.end - offset {
            return damaged("an object has a wrong size");
        }
        Ok(size)
    }

    /// Where the entry with this index stands.
    fn offset_of(&mut self, index: u64) -> Result<u64, JournalError> {
        let is_in = |part: &Part| index >= part.first && index < part.first + part.count;
        if !self.parts.get(self.part).is_some_and(is_in) {
            self.part = self.part_of(index)?;
        }
        let part = &self.parts[self.part];
        let at = index - part.first;
        match &part.listed {
            Listed::Found(offsets) => Ok(offsets[at as usize]),
            Listed::Array { offset } => {
                let width = self.width() as u64;
                let place = offset + ARRAY_HEAD as u64 + at * width;
                let bytes = self.lists.get(&*self.file, place, width as usize)?;
                Ok(if width == 4 { u64::from(u32_at(bytes, 0)) } else { u64_at(bytes, 0) })
            }
        }
    }

    /// Bytes of an offset in an array.
    fn width(&self) -> usize {
        if self.header.is_compact { 4 } else { 8 }
    }

    fn part_of(&mut self, index: u64) -> Result<usize, JournalError> {
        let end = |parts: &[Part]| parts.last().map_or(0, |part| part.first + part.count);
        if let Some(offset) = self.unreachable.filter(|first| index >= *first) {
            return Err(JournalError::Damaged { offset, what: "an entry is not listed" });
        }
        while end(&self.parts) <= index {
            if let Err(error) = self.add_part(end(&self.parts)) {
                if !matches!(error, JournalError::Damaged { .. }) {
                    return Err(error);
                }
                self.find_entries(end(&self.parts))?;
                if end(&self.parts) <= index {
                    self.unreachable = Some(end(&self.parts));
                    return Err(error);
                }
            }
        }
        Ok(self.parts.partition_point(|part| part.first + part.count <= index))
    }

    /// Adds the next array of the chain.
    fn add_part(&mut self, first: u64) -> Result<(), JournalError> {
        if let Some(Part { listed: Listed::Array { offset }, .. }) = self.parts.last()
            && self.next_array == 0
        {
            let bytes = self.lists.get(&*self.file, offset + OBJECT as u64, 8)?;
            self.next_array = u64_at(bytes, 0);
        }
        let offset = self.next_array;
        let before = match self.parts.last() {
            Some(Part { listed: Listed::Array { offset }, .. }) => *offset,
            _ => 0,
        };
        if offset <= before {
            // A chain that goes back would never end.
            return Err(JournalError::Damaged { offset, what: "the chain of arrays is broken" });
        }
        let size = self.check(offset, ARRAY, ARRAY_HEAD)?;
        let count = (size - ARRAY_HEAD as u64) / self.width() as u64;
        if count == 0 {
            return Err(JournalError::Damaged { offset, what: "an array of entries is empty" });
        }
        self.parts.push(Part { first, count, listed: Listed::Array { offset } });
        self.next_array = 0;
        Ok(())
    }

    /// Lists the entries from `first` on by a walk over the objects behind those that are known: the chain of arrays is
    /// broken.
    fn find_entries(&mut self, first: u64) -> Result<(), JournalError> {
        let last = if first == 0 { None } else { Some(self.head(first - 1)?) };
        let mut offset = last.map_or(self.header.size, |entry| entry.offset + 8);
        let (mut seqnum, mut found) = (last.map_or(0, |entry| entry.seqnum), Vec::new());
        while offset + OBJECT as u64 <= self.header.end {
            let Ok(bytes) = self.objects.get(&*self.file, offset, OBJECT) else { break };
            let Head { kind, flags, size } = Head::of(bytes);
            let is_clean = flags & !FLAGS == 0 && bytes[2..8] == [0; 6];
            let fits = size >= OBJECT as u64 && size <= self.header.end - offset;
            let is_object = (1..=LAST_KIND).contains(&kind) && is_clean && fits;
            if is_object && kind == ENTRY && size >= ENTRY_HEAD as u64 {
                let bytes = self.objects.get(&*self.file, offset, ENTRY_HEAD)?;
                let entry = head_of_entry(offset, bytes);
                if entry.seqnum > seqnum && entry.seqnum <= self.header.tail_seqnum {
                    seqnum = entry.seqnum;
                    found.push(offset);
                }
            }
            offset += if is_object { size.next_multiple_of(8) } else { 8 };
        }
        found.truncate((self.header.entries.saturating_sub(first)) as usize);
        if !found.is_empty() {
            let count = found.len() as u64;
            self.parts.push(Part { first, count, listed: Listed::Found(found) });
        }
        Ok(())
    }
}

fn head_of_entry(offset: u64, bytes: &[u8]) -> Entry {
    Entry {
        offset,
        seqnum: u64_at(bytes, 16),
        realtime: u64_at(bytes, 24),
        monotonic: u64_at(bytes, 32),
        boot_id: id_at(bytes, 40),
        xor_hash: u64_at(bytes, 56),
    }
}

fn read_header(file: &dyn File) -> Result<Header, JournalError> {
    let mut bytes = [0; HEADER_BYTES_MIN];
    if read(file, &mut bytes, 0)? < bytes.len() {
        return Err(JournalError::NoJournal);
    }
    Header::parse(&bytes, file.metadata()?.size)
}
