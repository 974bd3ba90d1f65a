//! What the judge knows: every line that was ever written, and what became of it.

use std::collections::BTreeMap;

/// Longest message that the simulated inputs let through, in bytes.
pub(crate) const MESSAGE_BYTES_MAX: usize = 200;

/// Lines beyond this are skipped whole instead of cut.
const SKIPPED_BYTES: usize = 4 * MESSAGE_BYTES_MAX;

/// One line, by the content it belongs to and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LineId {
    pub(crate) content: usize,
    pub(crate) number: usize,
}

/// A line that begins with its name, so that it is known wherever it turns up.
#[derive(Debug)]
pub(crate) struct Line {
    text: Vec<u8>,
    /// It ends with a line feed, or is the last of a finished compressed file.
    pub(crate) complete: bool,
    /// The life of the program in which it was read last.
    read_in: Option<u32>,
    /// Times it was read, and times that can be explained by deaths of the program.
    pub(crate) reads: u32,
    pub(crate) reads_allowed: u32,
    /// Verdicts.
    pub(crate) settled: u32,
    /// It vanished before the program could have had it, or with what only memory held.
    pub(crate) excused: bool,
}

/// What a file holds from its creation or truncation on, wherever it moves.
#[derive(Debug, Default)]
pub(crate) struct Content {
    /// Numbered lines.
    pub(crate) lines: Vec<Line>,
    /// Its state was forgotten as promised: it may be read again.
    pub(crate) forgotten: bool,
    last_read: Option<usize>,
}

/// Tells what happens, for people who look for a mistake.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Story {
    pub(crate) loud: bool,
}

impl Story {
    #[expect(clippy::print_stderr, reason = "asked for")]
    pub(crate) fn push(&mut self, sentence: String) {
        if self.loud {
            eprintln!("{sentence}");
        }
    }
}

/// All lines.
#[derive(Debug, Default)]
pub(crate) struct Truth {
    pub(crate) contents: Vec<Content>,
    pub(crate) life: u32,
    /// Something happened that explains lines that come twice.
    pub(crate) forgetful: bool,
}

impl Line {
    /// What an output should get.
    fn message(&self) -> &[u8] {
        &self.text[..self.text.len().min(MESSAGE_BYTES_MAX)]
    }
}

impl Truth {
    /// A content without lines.
    pub(crate) fn content(&mut self) -> usize {
        self.contents.push(Content::default());
        self.contents.len() - 1
    }

    /// A new line of a content, with its name and `padding`.
    pub(crate) fn line(&mut self, content: usize, padding: &[u8]) -> Vec<u8> {
        let lines = &mut self.contents[content].lines;
        let mut text = format!("c{content}n{};", lines.len()).into_bytes();
        text.extend_from_slice(padding);
        lines.push(Line {
            text: text.clone(),
            complete: false,
            read_in: None,
            reads: 0,
            reads_allowed: 1,
            settled: 0,
            excused: false,
        });
        text
    }

    /// The last line of a content is whole.
    pub(crate) fn complete(&mut self, content: usize) {
        if let Some(line) = self.contents[content].lines.last_mut() {
            line.complete = true;
        }
    }

    pub(crate) fn get(&mut self, id: LineId) -> &mut Line {
        &mut self.contents[id.content].lines[id.number]
    }

    /// Whether every whole line of a content was read in this life.
    pub(crate) fn is_read(&self, content: usize) -> bool {
        let life = self.life;
        let done = |line: &Line| line.is_had(life) || !line.complete || line.excused;
        self.contents[content].lines.iter().all(|line| done(line) || line.is_skippable())
    }

    /// The content is gone for good: what was not read is not asked for.
    pub(crate) fn excuse_unread(&mut self, content: usize) {
        let life = self.life;
        for line in &mut self.contents[content].lines {
            line.excused |= !line.is_had(life);
        }
    }

    /// The program died, and with it what it held of a content that is gone from the disk.
    pub(crate) fn excuse_unsettled(&mut self, content: usize) {
        for line in &mut self.contents[content].lines {
            line.excused |= line.settled == 0;
        }
    }

    /// A message was read: which line it is. Nothing for filler without a name.
    pub(crate) fn read(&mut self, message: &[u8]) -> Result<Option<LineId>, String> {
        let Some(id) = named(message) else {
            return match message {
                b"x" => Ok(None),
                _ if message.starts_with(b"# header") => Ok(None),
                _ => Err(format!("altered: {:?}", String::from_utf8_lossy(message))),
            };
        };
        let (life, forgetful) = (self.life, self.forgetful);
        let content = self.contents.get_mut(id.content).ok_or("a line of no content")?;
        let line = content.lines.get_mut(id.number).ok_or("a line that was never written")?;
        if line.message() != message || !line.complete {
            return Err(format!("altered: {id:?} is {:?}", String::from_utf8_lossy(message)));
        }
        let again = line.read_in == Some(life);
        line.read_in = Some(life);
        line.reads += 1;
        if line.reads > line.reads_allowed && !content.forgotten && !forgetful {
            return Err(format!("duplicate: {id:?} was read {} times", line.reads));
        }
        if content.last_read.is_some_and(|last| last >= id.number)
            && !again
            && !content.forgotten
            && !forgetful
        {
            return Err(format!("order: {id:?} came after {:?}", content.last_read));
        }
        content.last_read = Some(id.number);
        Ok(Some(id))
    }

    /// The next life begins: files are read from where their cursors are.
    pub(crate) fn next_life(&mut self) {
        self.life += 1;
        for content in &mut self.contents {
            content.last_read = None;
        }
    }

    /// Lines that should have a verdict and have none.
    pub(crate) fn lost(&self) -> Vec<LineId> {
        let mut lost = Vec::new();
        for (content, all) in self.contents.iter().enumerate() {
            for (number, line) in all.lines.iter().enumerate() {
                if line.complete && line.settled == 0 && !line.excused && !line.is_skippable() {
                    lost.push(LineId { content, number });
                }
            }
        }
        lost
    }
}

impl Line {
    /// It has its verdict, or this life of the program has read it.
    fn is_had(&self, life: u32) -> bool {
        self.settled > 0 || self.read_in == Some(life)
    }

    fn is_skippable(&self) -> bool {
        self.text.len() > SKIPPED_BYTES
    }
}

/// The name at the beginning of a line.
fn named(message: &[u8]) -> Option<LineId> {
    let text = std::str::from_utf8(&message[..message.len().min(24)]).ok();
    let text = match text {
        Some(text) => text,
        // Padding may be no text at all; the name is.
        None => {
            let end = message.iter().position(|byte| *byte == b';')?;
            std::str::from_utf8(&message[..end]).ok()?
        }
    };
    let (content, rest) = text.strip_prefix('c')?.split_once('n')?;
    let number = rest.split(';').next()?;
    Some(LineId { content: content.parse().ok()?, number: number.parse().ok()? })
}

/// Rows that were read and are not behind a durable cursor, by source.
#[derive(Debug, Default)]
pub(crate) struct Way {
    rows: BTreeMap<u64, Vec<OnTheWay>>,
}

/// One row between file and registry.
#[derive(Clone, Copy, Debug)]
struct OnTheWay {
    generation: u32,
    offset: u64,
    line: Option<LineId>,
    settled: bool,
}

impl Way {
    pub(crate) fn add(&mut self, source: u64, generation: u32, offset: u64, line: Option<LineId>) {
        let row = OnTheWay { generation, offset, line, settled: false };
        self.rows.entry(source).or_default().push(row);
    }

    pub(crate) fn settle(&mut self, source: u64, generation: u32, offset: u64) -> Option<LineId> {
        let rows = self.rows.get_mut(&source)?;
        let row = rows
            .iter_mut()
            .find(|row| row.generation == generation && row.offset == offset && !row.settled)?;
        row.settled = true;
        row.line
    }

    /// A cursor is about to be saved: no row before it may be without a verdict.
    pub(crate) fn check(&self, source: u64, generation: u32, offset: u64) -> Result<(), String> {
        for row in self.rows.get(&source).into_iter().flatten() {
            if row.generation == generation && row.offset < offset && !row.settled {
                return Err(format!("the cursor {offset} of {source} passed the row {row:?}"));
            }
        }
        Ok(())
    }

    /// A cursor is durable.
    pub(crate) fn durable(&mut self, source: u64, generation: u32, offset: u64) {
        if let Some(rows) = self.rows.get_mut(&source) {
            rows.retain(|row| row.generation != generation || row.offset >= offset);
        }
    }

    /// The program died: all of these may come again.
    pub(crate) fn die(&mut self) -> Vec<LineId> {
        let rows = std::mem::take(&mut self.rows);
        rows.into_values().flatten().filter_map(|row| row.line).collect()
    }
}
