//! Classes of letters.

use regex_syntax::hir;
use smallvec::SmallVec;
use std::sync::Arc;

/// Letters, by their bytes if they are ASCII.
#[derive(Clone, Debug)]
pub(super) struct Class(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    bytes: [Member; 256],
    /// Letters beyond ASCII, in ascending order.
    letters: Vec<(char, char)>,
    /// All but a few bytes.
    stops: Option<Stops>,
}

/// The bytes that are not in a class which has nearly all letters.
#[derive(Debug)]
struct Stops {
    bytes: SmallVec<[u8; STOPS_MAX]>,
    /// Whether any other byte is in it, and not only those of letters.
    any_byte: bool,
}

/// As many bytes can be looked for at once.
const STOPS_MAX: usize = 3;

impl Stops {
    /// The end of the bytes of a text from `at` on that are none of these, if they are letters beyond doubt.
    #[inline]
    fn end(&self, text: &[u8], at: usize) -> Option<usize> {
        let rest = text.get(at..)?;
        let found = match self.bytes[..] {
            [one] => memchr::memchr(one, rest),
            [one, two] => memchr::memchr2(one, two, rest),
            [one, two, three] => memchr::memchr3(one, two, three, rest),
            _ => None,
        };
        let len = found.unwrap_or(rest.len());
        (self.any_byte || rest[..len].is_ascii()).then_some(at + len)
    }
}

/// What a byte reveals about the letter that it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Member {
    No,
    Yes,
    /// The whole letter must be checked.
    Look,
}

impl Class {
    pub(super) fn new(class: &hir::Class) -> Self {
        let mut inner = Inner::EMPTY;
        match class {
            hir::Class::Bytes(class) => {
                for range in class.ranges() {
                    inner.bytes[range.start() as usize..=range.end() as usize].fill(Member::Yes);
                }
            }
            hir::Class::Unicode(class) => {
                for range in class.ranges() {
                    inner.add(range.start(), range.end());
                }
            }
        }
        inner.stops = inner.stops();
        Self(Arc::new(inner))
    }

    /// The class of one letter or byte.
    pub(super) fn of_byte(byte: u8) -> Self {
        let mut inner = Inner::EMPTY;
        inner.bytes[byte as usize] = Member::Yes;
        Self(Arc::new(inner))
    }

    /// The end of the letter at `at`, if it is one of these.
    #[inline]
    fn step(&self, text: &[u8], at: usize) -> Option<usize> {
        match self.0.bytes[*text.get(at)? as usize] {
            Member::No => None,
            Member::Yes => Some(at + 1),
            Member::Look => self.look(text, at),
        }
    }

    #[cold]
    fn look(&self, text: &[u8], at: usize) -> Option<usize> {
        let len = match text[at] {
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            _ => return None,
        };
        let letter = std::str::from_utf8(text.get(at..at + len)?).ok()?.chars().next()?;
        let behind = self.0.letters.partition_point(|(_, last)| *last < letter);
        let is_in = self.0.letters.get(behind).is_some_and(|(first, _)| *first <= letter);
        is_in.then_some(at + len)
    }

    /// As many letters as there are, at least `least` and at most `most`.
    pub(super) fn run(&self, text: &[u8], at: usize, least: usize, most: usize) -> Option<usize> {
        let (mut end, mut count) = (at, 0);
        if most == usize::MAX {
            if least < 2
                && let Some(end) = self.0.stops.as_ref().and_then(|stops| stops.end(text, at))
            {
                return (end - at >= least).then_some(end);
            }
            // Eight letters at once, as long as each is one byte.
            let is_in = |byte: &u8| self.0.bytes[usize::from(*byte)] == Member::Yes;
            for eight in text.get(at..).unwrap_or_default().as_chunks::<8>().0 {
                if !eight.iter().fold(true, |all, byte| all & is_in(byte)) {
                    break;
                }
                end += 8;
            }
            count = end - at;
        }
        while count < most
            && let Some(next) = self.step(text, end)
        {
            end = next;
            count += 1;
        }
        (count >= least).then_some(end)
    }

    /// Whether a part of the text consists of these letters.
    pub(super) fn covers(&self, text: &[u8], start: usize, end: usize) -> bool {
        let text = &text[..end];
        if let Some(found) = self.0.stops.as_ref().and_then(|stops| stops.end(text, start)) {
            return found == end;
        }
        let mut at = start;
        while let Some(next) = self.step(text, at) {
            at = next;
        }
        at == end
    }

    /// The last place before which there are only these letters, at least `least` of them, and behind it `stop`.
    pub(super) fn until_last(
        &self,
        text: &[u8],
        at: usize,
        least: usize,
        stop: &[u8],
    ) -> Option<usize> {
        let first = self.run(text, at, least, least)?;
        let last = self.run(text, first, 0, usize::MAX)?;
        let to = text.len().min(last + stop.len());
        memchr::memmem::rfind(&text[first..to], stop).map(|found| first + found)
    }

    /// Whether one of these letters may begin with this byte.
    pub(super) fn may_begin(&self, byte: u8) -> bool {
        self.0.bytes[byte as usize] != Member::No
    }

    /// The first letter of `stop` behind any number of these.
    pub(super) fn until(&self, text: &[u8], at: usize, stop: &Self) -> Option<usize> {
        let mut end = at;
        while stop.step(text, end).is_none() {
            end = self.step(text, end)?;
        }
        Some(end)
    }
}

impl Inner {
    const EMPTY: Self = Self { bytes: [Member::No; 256], letters: Vec::new(), stops: None };

    /// What is not in the class, if that is little.
    fn stops(&self) -> Option<Stops> {
        let any_byte = self.bytes[128..].iter().all(|member| *member == Member::Yes);
        if !any_byte && self.letters != [('\u{80}', char::MAX)] {
            return None;
        }
        let all = (0..128_u8).filter(|byte| self.bytes[usize::from(*byte)] == Member::No);
        let bytes: SmallVec<[u8; STOPS_MAX]> = all.take(STOPS_MAX + 1).collect();
        (bytes.len() <= STOPS_MAX).then_some(Stops { bytes, any_byte })
    }

    fn add(&mut self, first: char, last: char) {
        for letter in (first as u32)..=(last as u32).min(127) {
            self.bytes[letter as usize] = Member::Yes;
        }
        if last as u32 > 127 {
            self.letters.push((first.max('\u{80}'), last));
            self.bytes[128..].fill(Member::Look);
        }
    }
}
