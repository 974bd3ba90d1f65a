//! Keys that were seen: lines of one program have the same keys in the same order, so the next key is
//! guessed and compared rather than looked for, and a duplicate is found without comparing texts.

use foldhash::quality::RandomState;
use skidder_event::{KeyBit, NodeId};
use std::hash::BuildHasher;

/// Keys that are kept from line to line. A line may have more; they are forgotten behind it.
const KEYS_MAX: usize = 2048;

/// Bytes of a key that are compared at once.
const HEAD: usize = 16;

/// For each number of bytes, which of [`HEAD`] they are.
static MASKS: [u128; HEAD + 1] = {
    let mut masks = [0; HEAD + 1];
    let mut bytes = 1;
    while bytes <= HEAD {
        masks[bytes] = u128::MAX >> (8 * (HEAD - bytes));
        bytes += 1;
    }
    masks
};

/// Names a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyId(u32);

impl KeyId {
    /// The place before the first key of a line.
    pub(crate) const ROOT: Self = Self(0);
    const NONE: Self = Self(u32::MAX);
}

/// A known key: a cache line.
#[derive(Debug)]
struct Entry {
    /// Where its text stands, and a quote behind it.
    start: u32,
    len: u32,
    hash: u32,
    /// Its text stands for itself in JSON, so that it can be guessed.
    plain: bool,
    bit: KeyBit,
    /// The first bytes of its text with the quote.
    head: u128,
    /// The key that last came behind it in the same object.
    next: KeyId,
    /// The key that last came first in the object or list that is its value.
    inside: KeyId,
    /// The object that has it, and where.
    seen: u64,
    node: NodeId,
}

/// All keys that are known.
#[derive(Debug)]
pub(crate) struct Keys {
    entries: Vec<Entry>,
    text: Vec<u8>,
    /// Places in `entries` by hash, 0 = free; a power of two of them, at most half taken.
    slots: Vec<u32>,
    hasher: RandomState,
    /// Keys of objects that are still open, and taken from them by objects inside.
    hidden: Vec<(KeyId, u64, NodeId)>,
    /// Number of objects so far, over all lines.
    objects: u64,
    /// The first object of this line.
    line: u64,
    /// One of them has a dot in it.
    dotted: bool,
}

/// An object whose keys are being read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    number: u64,
    hidden: u64,
}

impl Open {
    /// A list, which has no keys.
    pub(crate) const LIST: Self = Self { number: 0, hidden: 0 };

    #[inline(always)]
    pub(crate) fn is_object(self) -> bool {
        self.number > 0
    }
}

impl Keys {
    pub(crate) fn new() -> Self {
        let mut keys = Self {
            entries: Vec::new(),
            text: Vec::new(),
            slots: Vec::new(),
            hasher: RandomState::default(),
            hidden: Vec::new(),
            objects: 0,
            line: 0,
            dotted: false,
        };
        keys.clear();
        keys
    }

    fn clear(&mut self) {
        *self = Self {
            entries: vec![Entry {
                start: 0,
                len: 0,
                hash: 0,
                plain: false,
                head: 0,
                bit: KeyBit::of(b""),
                next: KeyId::NONE,
                inside: KeyId::NONE,
                seen: 0,
                node: NodeId::NONE,
            }],
            text: Vec::new(),
            slots: vec![0; 64],
            hasher: std::mem::take(&mut self.hasher),
            hidden: Vec::new(),
            objects: self.objects,
            line: self.line,
            dotted: false,
        };
    }

    /// Whether a key that is known has a dot in it: no key of the line has one otherwise.
    #[inline]
    pub(crate) fn has_dots(&self) -> bool {
        self.dotted
    }

    /// Begins a line.
    pub(crate) fn begin(&mut self) {
        if self.entries.len() > KEYS_MAX {
            self.clear();
        }
        self.hidden.clear();
        self.line = self.objects + 1;
    }

    /// Begins an object.
    #[inline]
    pub(crate) fn open(&mut self) -> Open {
        self.objects += 1;
        Open { number: self.objects, hidden: self.hidden.len() as u64 }
    }

    /// Ends an object: keys that it took from an object around it are that one's again.
    #[inline]
    pub(crate) fn close(&mut self, object: Open) {
        while self.hidden.len() > object.hidden as usize {
            if let Some((key, seen, node)) = self.hidden.pop() {
                let entry = &mut self.entries[key.0 as usize];
                (entry.seen, entry.node) = (seen, node);
            }
        }
    }

    /// The key that came last time behind `before` (or first inside it), if it and a quote stand at
    /// `start`; and its length. Looks at bytes beyond the text, so that the key may end behind the
    /// text.
    #[inline]
    pub(crate) fn guess(
        &self,
        before: KeyId,
        first: bool,
        bytes: &[u8],
        start: usize,
    ) -> Option<(KeyId, usize)> {
        let before = &self.entries[before.0 as usize];
        let guess = if first { before.inside } else { before.next };
        let entry = self.entries.get(guess.0 as usize)?;
        let len = entry.len as usize;
        let text = bytes.get(start..)?;
        let same = match text.first_chunk() {
            Some(head) if entry.plain => {
                let mask = MASKS[(len + 1).min(HEAD)];
                (u128::from_le_bytes(*head) ^ entry.head) & mask == 0
            }
            _ => return None,
        };
        let rest = HEAD..(len + 1).max(HEAD);
        (same && (len < HEAD || text.get(rest.clone())? == &self.text(entry)[rest]))
            .then_some((guess, len))
    }

    /// The key with this text, which is known from now on to come behind `before` (or first inside it).
    pub(crate) fn find(&mut self, before: KeyId, first: bool, key: &[u8]) -> KeyId {
        let hash = self.hasher.hash_one(key) as u32;
        let mut slot = hash as usize & (self.slots.len() - 1);
        let id = loop {
            let id = KeyId(self.slots[slot]);
            if id == KeyId::ROOT {
                break self.add(slot, hash, key);
            }
            let entry = &self.entries[id.0 as usize];
            if entry.hash == hash
                && entry.len as usize == key.len()
                && self.text(entry).starts_with(key)
            {
                break id;
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        };
        let before = &mut self.entries[before.0 as usize];
        if first {
            before.inside = id;
        } else {
            before.next = id;
        }
        id
    }

    /// The text of a key and the quote behind it.
    fn text(&self, entry: &Entry) -> &[u8] {
        &self.text[entry.start as usize..=(entry.start + entry.len) as usize]
    }

    fn add(&mut self, slot: usize, hash: u32, key: &[u8]) -> KeyId {
        let id = KeyId(self.entries.len() as u32);
        self.dotted |= key.contains(&b'.');
        let start = self.text.len();
        self.text.extend_from_slice(key);
        self.text.push(b'"');
        let mut head = [0; HEAD];
        let known = (key.len() + 1).min(HEAD);
        head[..known].copy_from_slice(&self.text[start..start + known]);
        self.entries.push(Entry {
            start: start as u32,
            len: key.len() as u32,
            hash,
            plain: super::text::skip_plain(key, 0) == key.len(),
            head: u128::from_le_bytes(head),
            bit: KeyBit::of(key),
            next: KeyId::NONE,
            inside: KeyId::NONE,
            seen: 0,
            node: NodeId::NONE,
        });
        self.slots[slot] = id.0;
        if self.entries.len() * 2 > self.slots.len() {
            self.grow();
        }
        id
    }

    fn grow(&mut self) {
        let mask = self.slots.len() * 2 - 1;
        let mut slots = vec![0; mask + 1];
        for (id, entry) in self.entries.iter().enumerate().skip(1) {
            let mut slot = entry.hash as usize & mask;
            while slots[slot] != 0 {
                slot = (slot + 1) & mask;
            }
            slots[slot] = id as u32;
        }
        self.slots = slots;
    }

    /// Where `object` has this key, if it has.
    pub(crate) fn held(&self, object: Open, key: KeyId) -> Option<NodeId> {
        let entry = &self.entries[key.0 as usize];
        (entry.seen == object.number).then_some(entry.node)
    }

    /// The place of a key in sets of keys.
    #[inline(always)]
    pub(crate) fn bit(&self, key: KeyId) -> KeyBit {
        self.entries[key.0 as usize].bit
    }

    /// Says that `object` has this key at `node`; where it has it already, if so.
    #[inline]
    pub(crate) fn take(&mut self, object: Open, key: KeyId, node: NodeId) -> Option<NodeId> {
        let entry = &mut self.entries[key.0 as usize];
        if entry.seen == object.number {
            return Some(entry.node);
        }
        if entry.seen >= self.line {
            self.hidden.push((key, entry.seen, entry.node));
        }
        entry.seen = object.number;
        entry.node = node;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_takes_a_cache_line() {
        assert_eq!(size_of::<Entry>(), 64);
    }

    #[test]
    fn the_next_key_is_guessed_once_it_was_seen() {
        let mut keys = Keys::new();
        keys.begin();
        let a = keys.find(KeyId::ROOT, true, b"a");
        let b = keys.find(a, false, b"a key of some length");
        let c = keys.find(b, false, b"fifteen letters");
        let guess = |before, first, text: &str| {
            keys.guess(before, first, format!("{text}{:20}", "").as_bytes(), 0)
        };
        assert_eq!(guess(KeyId::ROOT, true, "a\":1"), Some((a, 1)));
        assert_eq!(guess(KeyId::ROOT, true, "ab\":1"), None);
        assert_eq!(guess(a, false, "a key of some length\":1"), Some((b, 20)));
        assert_eq!(guess(a, false, "a key of some lengths\":1"), None);
        assert_eq!(guess(a, false, "a key of some lengt\":1"), None);
        assert_eq!(guess(b, false, "fifteen letters\""), Some((c, 15)));
        assert_eq!(guess(b, false, "fifteen letters "), None);
        assert_eq!(guess(c, false, "a\""), None);
        assert_eq!(keys.guess(a, false, b"a key of some", 0), None);
        assert_eq!(keys.guess(a, false, b"a key of some length", 0), None);
        assert_eq!(keys.guess(a, false, b"", 7), None);
    }

    #[test]
    fn a_key_that_needs_escapes_is_never_guessed() {
        let mut keys = Keys::new();
        keys.begin();
        keys.find(KeyId::ROOT, true, b"a\"b");
        assert_eq!(keys.guess(KeyId::ROOT, true, b"a\"b\"                ", 0), None);
    }

    #[test]
    fn an_object_knows_its_keys_while_others_inside_have_the_same() {
        let mut keys = Keys::new();
        keys.begin();
        let a = keys.find(KeyId::ROOT, true, b"a");
        let nodes = [NodeId::NONE; 3];
        let outer = keys.open();
        assert_eq!(keys.take(outer, a, nodes[0]), None);
        let inner = keys.open();
        assert_eq!(keys.take(inner, a, nodes[1]), None);
        assert!(keys.take(inner, a, nodes[2]).is_some());
        keys.close(inner);
        assert!(keys.take(outer, a, nodes[2]).is_some());
        keys.close(outer);
        keys.begin();
        let next = keys.open();
        assert_eq!(keys.take(next, a, nodes[0]), None);
    }

    #[test]
    fn many_keys_are_found_again_and_forgotten_behind_the_line() {
        let mut keys = Keys::new();
        keys.begin();
        let name = |n: usize| format!("key{n}").into_bytes();
        let ids: Vec<KeyId> = (0..5000).map(|n| keys.find(KeyId::ROOT, true, &name(n))).collect();
        for (n, id) in ids.iter().enumerate() {
            assert_eq!(keys.find(KeyId::ROOT, true, &name(n)), *id);
        }
        assert!(!keys.has_dots());
        keys.find(KeyId::ROOT, true, b"log.level");
        assert!(keys.has_dots());
        keys.begin();
        assert_eq!(keys.entries.len(), 1);
        assert!(!keys.has_dots());
    }
}
