//! Offline access to the dead-letter file: list, show and remove letters while skidder is not running.

use super::{DeadLetters, whole_lines};
use skidder_os::{File, Fs, OpenMode, write_all_at};
use std::io;
use std::path::{Path, PathBuf};

/// Bytes that are read or written at once.
const PIECE_BYTES: usize = 1 << 20;

/// What happens to a letter when the file is rewritten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LetterFate {
    /// It stays as it is.
    Keep,
    /// It goes.
    Remove,
    /// This letter, without a line feed, stands in its place.
    Replace(Vec<u8>),
}

/// The file of dead letters of a data directory.
pub struct KeptLetters<'a> {
    fs: &'a dyn Fs,
    path: PathBuf,
    prepare: Option<Prepare<'a>>,
}

/// Makes a new file what the old one was, before it takes its name.
type Prepare<'a> = &'a dyn Fn(&Path) -> io::Result<()>;

impl std::fmt::Debug for KeptLetters<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("KeptLetters").field("path", &self.path).finish_non_exhaustive()
    }
}

impl<'a> KeptLetters<'a> {
    /// The letters in `directory`; there may be none.
    pub fn new(fs: &'a dyn Fs, directory: &Path) -> Self {
        Self::in_file(fs, directory.join(DeadLetters::FILE_NAME))
    }

    /// The letters in a file of this name.
    pub fn in_file(fs: &'a dyn Fs, path: PathBuf) -> Self {
        Self { fs, path, prepare: None }
    }

    /// The same; a file that is written anew is given to `prepare` before it takes the place of the old one.
    #[must_use]
    pub fn with_prepared(self, prepare: Prepare<'a>) -> Self {
        Self { prepare: Some(prepare), ..self }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes behind the last whole letter: half a letter, which a crash has left or which is being written. [`Self::each`]
    /// passes over it, and [`Self::rewrite`] drops it.
    ///
    /// # Errors
    /// Those of the file; one that is not there has no letters.
    pub fn torn_bytes(&self) -> io::Result<u64> {
        match self.fs.open(&self.path) {
            Ok(file) => Ok(file.metadata()?.size.saturating_sub(whole_lines(&*file)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
            Err(error) => Err(error),
        }
    }

    /// Calls `each` with the number of every whole letter, the first being 0, and its bytes without the line feed, until
    /// it says `false`. Half a letter at the end, which a crash has left or which is being written, is passed over.
    ///
    /// # Errors
    /// Those of the file; one that is not there has no letters.
    pub fn each(&self, each: &mut dyn FnMut(u64, &[u8]) -> bool) -> io::Result<()> {
        let file = match self.fs.open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        let mut lines = Lines::new(&*file);
        let mut number = 0;
        while let Some(line) = lines.next()? {
            if !each(number, line) {
                break;
            }
            number += 1;
        }
        Ok(())
    }

    /// Rewrites the file as `fate` decides for each letter, durably: after a crash there is either the old file or
    /// the new one. Without any letter left the file is removed. Only while no output adds letters.
    ///
    /// # Errors
    /// Those of the file, which is unchanged then.
    pub fn rewrite(&self, fate: &mut dyn FnMut(u64, &[u8]) -> LetterFate) -> io::Result<()> {
        let beside = self.path.with_extension("ndjson.new");
        let written = self.write_anew(&beside, fate);
        if written.is_err() {
            // It may be missing; and the error was reported already.
            drop(self.fs.remove_file(&beside));
        }
        written
    }

    fn write_anew(
        &self,
        beside: &Path,
        fate: &mut dyn FnMut(u64, &[u8]) -> LetterFate,
    ) -> io::Result<()> {
        let mut out = Pieces {
            file: self.fs.open_write(beside, OpenMode::Truncate, 0o600)?,
            piece: Vec::new(),
            written: 0,
        };
        let mut failed = None;
        self.each(&mut |number, letter| {
            let done = match fate(number, letter) {
                LetterFate::Keep => out.line(letter),
                LetterFate::Remove => Ok(()),
                LetterFate::Replace(other) => out.line(&other),
            };
            failed = done.err();
            failed.is_none()
        })?;
        if let Some(error) = failed {
            return Err(error);
        }
        out.flush()?;
        out.file.sync()?;
        if out.written == 0 {
            self.fs.remove_file(beside)?;
            match self.fs.remove_file(&self.path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        } else {
            if let Some(prepare) = self.prepare {
                prepare(beside)?;
            }
            self.fs.rename(beside, &self.path)?;
        }
        self.path.parent().map_or(Ok(()), |parent| self.fs.sync_dir(parent))
    }
}

/// The whole lines of a file.
struct Lines<'a> {
    file: &'a dyn File,
    /// Where the next read begins.
    offset: u64,
    buffer: Vec<u8>,
    /// What of the buffer was given out.
    given: usize,
}

impl<'a> Lines<'a> {
    fn new(file: &'a dyn File) -> Self {
        Self { file, offset: 0, buffer: Vec::new(), given: 0 }
    }

    /// The next line without its line feed.
    fn next(&mut self) -> io::Result<Option<&[u8]>> {
        let mut searched = self.given;
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[searched..]) {
                let (start, end) = (self.given, searched + at);
                self.given = end + 1;
                return Ok(Some(&self.buffer[start..end]));
            }
            self.buffer.drain(..self.given);
            self.given = 0;
            searched = self.buffer.len();
            self.buffer.resize(searched + PIECE_BYTES, 0);
            let count = self.file.read_at(&mut self.buffer[searched..], self.offset)?;
            self.buffer.truncate(searched + count);
            self.offset += count as u64;
            if count == 0 {
                return Ok(None);
            }
        }
    }
}

/// A file that is written in large pieces.
struct Pieces {
    file: Box<dyn File>,
    piece: Vec<u8>,
    written: u64,
}

impl Pieces {
    fn line(&mut self, line: &[u8]) -> io::Result<()> {
        self.piece.extend_from_slice(line);
        self.piece.push(b'\n');
        if self.piece.len() >= PIECE_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        write_all_at(&*self.file, &self.piece, self.written)?;
        self.written += self.piece.len() as u64;
        self.piece.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skidder_testkit::{SimClock, SimFs};

    const FILE: &str = "/data/dead_letters.ndjson";

    fn place(text: &[u8]) -> SimFs {
        let fs = SimFs::new(&SimClock::new());
        fs.create_dir_as_other("/data");
        fs.write_as_other(FILE, text);
        fs
    }

    fn letters(fs: &SimFs) -> Vec<String> {
        let mut found = Vec::new();
        let each = &mut |number: u64, letter: &[u8]| {
            assert_eq!(number, found.len() as u64);
            found.push(String::from_utf8(letter.to_vec()).expect("text"));
            true
        };
        KeptLetters::new(fs, Path::new("/data")).each(each).expect("it can be read");
        found
    }

    fn thousand() -> String {
        (0..1000).map(|number: u32| ["letter ", &number.to_string(), "\n"].concat()).collect()
    }

    /// Removes every third letter and marks those behind them.
    fn thin_out(fs: &SimFs) -> io::Result<()> {
        KeptLetters::new(fs, Path::new("/data")).rewrite(&mut |number, letter| match number % 3 {
            0 => LetterFate::Remove,
            1 => LetterFate::Replace([letter, b"!"].concat()),
            _ => LetterFate::Keep,
        })
    }

    #[test]
    fn whole_letters_are_told_whatever_their_length() {
        assert!(letters(&SimFs::new(&SimClock::new())).is_empty());
        let long = "x".repeat(PIECE_BYTES * 2 + 7);
        let fs = place(format!("a\n{long}\n\nb\nhalf").as_bytes());
        assert_eq!(letters(&fs), ["a", &long, "", "b"]);
    }

    #[test]
    fn the_file_is_written_anew_as_told_and_goes_when_it_is_empty() {
        let fs = place(b"0\n1\n2\n3\nhalf");
        thin_out(&fs).expect("there is room");
        assert_eq!(letters(&fs), ["1!", "2"]);
        let all = KeptLetters::new(&fs, Path::new("/data"));
        all.rewrite(&mut |_, _| LetterFate::Remove).expect("it can be removed");
        assert!(fs.peek(FILE).is_none() && fs.peek("/data/dead_letters.ndjson.new").is_none());
        all.rewrite(&mut |_, _| LetterFate::Keep).expect("nothing is to be done");
    }

    #[test]
    fn a_file_that_cannot_be_made_what_the_old_one_was_takes_no_place() {
        let fs = place(b"0\n1\n2\n");
        let fails = |path: &Path| {
            assert_eq!(path, Path::new("/data/dead_letters.ndjson.new"));
            Err(io::ErrorKind::PermissionDenied.into())
        };
        let all = KeptLetters::new(&fs, Path::new("/data")).with_prepared(&fails);
        let error = all.rewrite(&mut |_, _| LetterFate::Keep).expect_err("it is not allowed");
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(letters(&fs), ["0", "1", "2"]);
        assert!(fs.peek("/data/dead_letters.ndjson.new").is_none());
    }

    #[test]
    fn a_full_disk_leaves_the_file_as_it_was() {
        let text = thousand();
        let fs = place(text.as_bytes());
        fs.set_capacity(Some(text.len() as u64 + 4096));
        assert!(thin_out(&fs).is_err());
        assert!(fs.peek("/data/dead_letters.ndjson.new").is_none());
        assert_eq!(letters(&fs).len(), 1000);
    }

    #[test]
    fn a_crash_leaves_the_old_file_or_the_new_one_wherever_it_comes() {
        let text = thousand();
        let mut seen = [0, 0];
        for nth in 1.. {
            let fs = place(text.as_bytes());
            fs.halt_at(nth);
            let done = thin_out(&fs).is_ok();
            let halted = fs.halted();
            fs.crash();
            match letters(&fs).len() {
                1000 => assert!(!done, "halted at {nth}"),
                666 => seen[1] += 1,
                other => panic!("{other} letters, halted at {nth}"),
            }
            seen[0] += 1;
            if !halted {
                break;
            }
        }
        assert!(seen[0] > 5 && seen[1] >= 1, "{seen:?}");
    }
}
