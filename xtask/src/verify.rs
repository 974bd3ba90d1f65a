//! Reads the shipped lines and reports which numbered ones are missing, repeated or invented.

use anyhow::{Context, Result, bail};
use skidder_workload::sequence_of;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The numbers 0 to `lines` and how often each was seen.
#[derive(Debug)]
pub(crate) struct Tally {
    seen: Vec<u32>,
    unnumbered: u64,
    unknown: u64,
}

impl Tally {
    pub(crate) fn new(lines: u64) -> Self {
        Self { seen: vec![0; lines as usize], unnumbered: 0, unknown: 0 }
    }

    /// Counts all events in the `.ndjson` files of a folder.
    pub(crate) fn add_folder(&mut self, folder: &Path) -> Result<()> {
        for path in files(folder)? {
            let file = File::open(&path)?;
            let mut reader = BufReader::with_capacity(1 << 20, file);
            let mut line = Vec::new();
            while reader.read_until(b'\n', &mut line)? > 0 {
                self.add(&line);
                line.clear();
            }
        }
        Ok(())
    }

    pub(crate) fn add(&mut self, event: &[u8]) {
        match sequence_of(event) {
            None => self.unnumbered += 1,
            Some(number) => match self.seen.get_mut(number as usize) {
                None => self.unknown += 1,
                Some(count) => *count += 1,
            },
        }
    }

    /// A summary, or an error that lists the problems.
    pub(crate) fn verdict(&self) -> Result<String> {
        let lines = self.seen.len();
        let missing = self.seen.iter().filter(|&&count| count == 0).count();
        let repeated = self.seen.iter().filter(|&&count| count > 1).count();
        if missing + repeated > 0 || self.unnumbered + self.unknown > 0 {
            let first = self.seen.iter().position(|&count| count != 1);
            bail!(
                "of {lines} lines {missing} are missing and {repeated} came more than once \
                 (first: line {first:?}); {} events have no number, {} an unknown one",
                self.unnumbered,
                self.unknown
            );
        }
        Ok(format!("all {lines} lines are in the output exactly once"))
    }
}

/// Counts the lines of growing files without reading a byte twice.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    read: Vec<(PathBuf, u64)>,
    pub(crate) lines: u64,
    pub(crate) bytes: u64,
}

impl Progress {
    /// Reads the additions to the files of `folder`.
    pub(crate) fn look(&mut self, folder: &Path) -> Result<()> {
        let mut buffer = vec![0; 256 << 10];
        for path in files(folder)? {
            let known = self.read.iter().position(|(name, _)| *name == path);
            let index = known.unwrap_or_else(|| {
                self.read.push((path.clone(), 0));
                self.read.len() - 1
            });
            let mut file = File::open(&path)?;
            file.seek(SeekFrom::Start(self.read[index].1))?;
            loop {
                let length = file.read(&mut buffer)?;
                if length == 0 {
                    break;
                }
                self.read[index].1 += length as u64;
                self.bytes += length as u64;
                self.lines += memchr::memchr_iter(b'\n', &buffer[..length]).count() as u64;
            }
        }
        Ok(())
    }
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let listed = std::fs::read_dir(folder);
    let listed = listed.with_context(|| format!("cannot list `{}`", folder.display()))?;
    let mut paths = Vec::new();
    for entry in listed {
        let path = entry?.path();
        if path.to_string_lossy().contains(".ndjson") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(number: u64) -> Vec<u8> {
        format!("{{\"message\":\"GET /?seq={number:010} HTTP\"}}\n").into_bytes()
    }

    #[test]
    fn every_line_once_is_good() {
        let mut tally = Tally::new(3);
        for number in [2, 0, 1] {
            tally.add(&event(number));
        }
        assert!(tally.verdict().unwrap().contains("all 3 lines"));
    }

    #[test]
    fn lost_repeated_and_invented_lines_are_named() {
        let mut tally = Tally::new(4);
        for number in [0, 1, 1, 9] {
            tally.add(&event(number));
        }
        tally.add(b"{}\n");
        let text = tally.verdict().unwrap_err().to_string();
        assert!(text.contains("2 are missing and 1 came more than once"), "{text}");
        assert!(text.contains("1 events have no number, 1 an unknown one"), "{text}");
    }

    #[test]
    fn progress_counts_what_was_added_since_the_last_look() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events-1.ndjson");
        let mut progress = Progress::default();
        std::fs::write(&path, b"a\nb").unwrap();
        progress.look(folder.path()).unwrap();
        assert_eq!(progress.lines, 1);
        std::fs::write(&path, b"a\nb\nc\n").unwrap();
        progress.look(folder.path()).unwrap();
        assert_eq!((progress.lines, progress.bytes), (3, 6));
    }
}
