//! Numbered lines: the writer, and the judge of what arrived.

use flate2::Compression;
use flate2::write::GzEncoder;
use std::collections::{BTreeMap, HashMap};
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Bytes of every line with its line feed, so that offsets can be given in lines.
pub(crate) const LINE_BYTES: usize = 100;

/// What a line that has no number begins with; the judge passes over it.
pub(crate) const UNNUMBERED: char = '#';

/// The line with this number of the log with this label, without line feed. No two are alike.
pub(crate) fn line(label: &str, number: usize) -> String {
    let mut text = format!("{label} {number:07} ");
    let mut letter = b'a' + (number % 26) as u8;
    while text.len() < LINE_BYTES - 1 {
        text.push(char::from(letter));
        letter = if letter == b'z' { b'a' } else { letter + 1 };
    }
    text
}

/// The lines with these numbers, each with its line feed.
pub(crate) fn lines(label: &str, numbers: std::ops::Range<usize>) -> Vec<u8> {
    let mut text = Vec::with_capacity(numbers.len() * LINE_BYTES);
    for number in numbers {
        text.extend_from_slice(line(label, number).as_bytes());
        text.push(b'\n');
    }
    text
}

/// One gzip member.
pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Writes numbered lines to a file, which others may rotate.
pub(crate) struct Log {
    pub(crate) label: String,
    pub(crate) path: PathBuf,
    /// Number of the next line.
    pub(crate) next: usize,
    file: File,
}

impl Log {
    /// A new, empty file.
    pub(crate) fn create(folder: &Path, label: &str) -> Self {
        let path = folder.join(label);
        let file = Self::open(&path);
        Self { label: label.to_owned(), path, next: 0, file }
    }

    fn open(path: &Path) -> File {
        OpenOptions::new().create(true).append(true).open(path).unwrap()
    }

    /// Appends lines, in one piece.
    pub(crate) fn append(&mut self, count: usize) {
        let text = lines(&self.label, self.next..self.next + count);
        self.next += count;
        self.file.write_all(&text).unwrap();
    }

    /// Appends something that is no numbered line.
    pub(crate) fn append_text(&mut self, text: &[u8]) {
        self.file.write_all(text).unwrap();
    }

    /// Goes on in the file that is at the path now.
    pub(crate) fn reopen(&mut self) {
        self.file = Self::open(&self.path);
    }

    /// The name after so many rotations.
    pub(crate) fn rotated(&self, times: usize, suffix: &str) -> PathBuf {
        PathBuf::from(format!("{}.{times}{suffix}", self.path.display()))
    }

    /// Renames `NAME.1` to `NAME.2` and so on, with and without `.gz`; `NAME.1` is free then.
    pub(crate) fn shift(&self) {
        let taken =
            |times| ["", ".gz"].into_iter().find(|suffix| self.rotated(times, suffix).is_file());
        let mut last = 0;
        while taken(last + 1).is_some() {
            last += 1;
        }
        for times in (1..=last).rev() {
            let suffix = taken(times).unwrap();
            std::fs::rename(self.rotated(times, suffix), self.rotated(times + 1, suffix)).unwrap();
        }
    }

    /// Rotates by renaming: the writer goes on in a new file.
    pub(crate) fn rename(&mut self) {
        self.shift();
        std::fs::rename(&self.path, self.rotated(1, "")).unwrap();
        self.reopen();
    }

    /// Rotates by copying to `NAME.1` and truncating.
    pub(crate) fn copy_and_truncate(&mut self) {
        self.shift();
        std::fs::copy(&self.path, self.rotated(1, "")).unwrap();
        self.file.set_len(0).unwrap();
    }

    /// Compresses `NAME.times`, as gzip does: the plain file goes when the other is complete.
    pub(crate) fn compress(&self, times: usize) {
        let plain = self.rotated(times, "");
        let Ok(bytes) = std::fs::read(&plain) else { return };
        let mut file = File::create(self.rotated(times, ".gz")).unwrap();
        let packed = gzip(&bytes);
        let (first, rest) = packed.split_at(packed.len() / 2);
        file.write_all(first).unwrap();
        file.write_all(rest).unwrap();
        std::fs::remove_file(plain).unwrap();
    }
}

/// What became of the lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// Lines that were written.
    pub(crate) lines: usize,
    /// Lines that never came.
    pub(crate) missing: usize,
    /// Arrivals of a line that had come before.
    pub(crate) duplicates: usize,
    /// Lines that first came after a later line of the same log.
    pub(crate) reordered: usize,
    /// Messages that are no line that was written.
    pub(crate) altered: usize,
}

/// Judges messages, as they came, against the logs: label and number of lines of each.
pub(crate) fn judge(logs: &[(&str, usize)], messages: &[String]) -> Verdict {
    let mut verdict = Verdict::default();
    let mut seen: BTreeMap<&str, Vec<bool>> = BTreeMap::new();
    for (label, count) in logs {
        seen.insert(label, vec![false; *count]);
        verdict.lines += count;
    }
    let mut furthest: HashMap<&str, usize> = HashMap::new();
    for message in messages.iter().filter(|message| !message.starts_with(UNNUMBERED)) {
        let parsed = message.split_once(' ').and_then(|(label, rest)| {
            Some((label, rest.split(' ').next()?.parse::<usize>().ok()?))
        });
        let known = parsed.and_then(|(label, number)| {
            let (label, seen) =
                seen.get_key_value(label).map(|(label, seen)| (*label, seen.len()))?;
            (number < seen && *message == line(label, number)).then_some((label, number))
        });
        let Some((label, number)) = known else {
            verdict.altered += 1;
            continue;
        };
        let came = seen.get_mut(label).and_then(|seen| seen.get_mut(number)).unwrap();
        if std::mem::replace(came, true) {
            verdict.duplicates += 1;
            continue;
        }
        let furthest = furthest.entry(label).or_default();
        verdict.reordered += usize::from(number < *furthest);
        *furthest = (*furthest).max(number);
    }
    verdict.missing = seen.values().flatten().filter(|came| !**came).count();
    verdict
}

/// How many different messages there are.
pub(crate) fn distinct(messages: &[String]) -> usize {
    messages.iter().collect::<std::collections::HashSet<_>>().len()
}
