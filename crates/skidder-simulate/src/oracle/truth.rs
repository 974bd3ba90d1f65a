//! Every line that was ever written, and where it ended.

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
    /// Lines of different streams of one file may come in any order.
    stream: usize,
    /// It ends with a line feed, or is the last of a finished compressed file.
    pub(crate) complete: bool,
    /// The life of the program in which it was read last.
    read_in: Option<u32>,
    /// Times it was read, and times that can be explained.
    reads: u32,
    reads_allowed: u32,
    /// Times that the other side stored it, and times that it was sent again because an answer was lost.
    stored: u32,
    resent: u32,
    /// Verdicts that were given.
    settled: u32,
    /// The dead letters took it, and must have it still.
    dead: bool,
    /// There was no room in the dead letters, and that was counted.
    dropped: bool,
    /// The disk queue has it.
    stored_here: bool,
    /// It vanished before the program could have had it, or with what only memory held.
    excused: bool,
}

/// What a file holds from its creation or truncation on, wherever it moves.
#[derive(Debug, Default)]
pub(crate) struct Content {
    /// Numbered lines.
    lines: Vec<Line>,
    /// It may be read again, because its state was forgotten as promised or because it looks
    /// like another.
    pub(crate) forgotten: bool,
    /// For each stream.
    last_read: [Option<usize>; 2],
}

/// All lines, and their state on the way to one output.
#[derive(Debug, Default)]
pub(crate) struct OfOutput {
    contents: Vec<Content>,
    life: u32,
    /// Something happened that explains lines that come twice.
    pub(super) forgetful: bool,
}

impl Line {
    /// What an output should get.
    fn message(&self) -> &[u8] {
        &self.text[..self.text.len().min(MESSAGE_BYTES_MAX)]
    }

    /// It has its verdict, or this life of the program has read it.
    fn is_had(&self, life: u32) -> bool {
        self.settled > 0 || self.read_in == Some(life)
    }

    fn is_skippable(&self) -> bool {
        self.text.len() > SKIPPED_BYTES
    }

    fn is_owed(&self) -> bool {
        self.complete && !self.excused && !self.is_skippable()
    }

    fn has_arrived(&self) -> bool {
        self.stored > 0 || self.dead || self.dropped
    }
}

impl OfOutput {
    /// A content without lines.
    pub(crate) fn content(&mut self) -> usize {
        self.contents.push(Content::default());
        self.contents.len() - 1
    }

    /// Number of contents so far.
    pub(crate) fn contents(&self) -> usize {
        self.contents.len()
    }

    /// Number of lines so far.
    pub(crate) fn lines(&self) -> usize {
        self.contents.iter().map(|content| content.lines.len()).sum()
    }

    /// A content may be read again from here on.
    pub(crate) fn forget(&mut self, content: usize) {
        self.contents[content].forgotten = true;
    }

    /// A new line of a content, with its name and `padding`.
    pub(crate) fn line(&mut self, content: usize, padding: &[u8]) -> Vec<u8> {
        let mut text = self.name(content).into_bytes();
        text.extend_from_slice(padding);
        self.event(content, 0, text.clone());
        text
    }

    /// The name of the next line of a content.
    pub(crate) fn name(&self, content: usize) -> String {
        format!("c{content}n{};", self.contents[content].lines.len())
    }

    /// A new event of a content that begins with its name, and the text that must come of it.
    pub(crate) fn event(&mut self, content: usize, stream: usize, text: Vec<u8>) -> LineId {
        let lines = &mut self.contents[content].lines;
        lines.push(Line {
            text,
            stream,
            complete: false,
            read_in: None,
            reads: 0,
            reads_allowed: 1,
            stored: 0,
            resent: 0,
            settled: 0,
            dead: false,
            dropped: false,
            stored_here: false,
            excused: false,
        });
        LineId { content, number: lines.len() - 1 }
    }

    /// An event is whole.
    pub(crate) fn complete_event(&mut self, id: LineId) {
        self.get(id).complete = true;
    }

    /// The last line of a content is whole.
    pub(crate) fn complete(&mut self, content: usize) {
        if let Some(line) = self.contents[content].lines.last_mut() {
            line.complete = true;
        }
    }

    fn get(&mut self, id: LineId) -> &mut Line {
        &mut self.contents[id.content].lines[id.number]
    }

    /// Whether every whole line of a content was read in this life, or has its verdict.
    pub(crate) fn is_read(&self, content: usize) -> bool {
        let life = self.life;
        self.contents[content].lines.iter().all(|line| !line.is_owed() || line.is_had(life))
    }

    /// The content is gone for good: what was not read is not required.
    pub(crate) fn excuse_unread(&mut self, content: usize) {
        let life = self.life;
        for line in &mut self.contents[content].lines {
            line.excused |= !line.is_had(life);
        }
    }

    /// The program ended, and with it what it held of a content that is gone from the disk.
    pub(crate) fn excuse_unsettled(&mut self, content: usize) {
        for line in &mut self.contents[content].lines {
            line.excused |= line.settled == 0 && !line.stored_here;
        }
    }

    /// A message was read: which line it is. `None` for filler without a name.
    pub(crate) fn read(&mut self, message: &[u8]) -> Result<Option<LineId>, String> {
        let Some(id) = named(message) else {
            return match message {
                b"x" => Ok(None),
                _ if message.starts_with(b"# header") => Ok(None),
                _ => Err(format!("altered: {:?}", String::from_utf8_lossy(message))),
            };
        };
        let (life, forgetful) = (self.life, self.forgetful);
        let content = self.contents.get_mut(id.content).ok_or("altered: a line of no content")?;
        let line =
            content.lines.get_mut(id.number).ok_or("altered: a line that was never written")?;
        if line.message() != message || !line.complete {
            return Err(format!("altered: {id:?} is {:?}", String::from_utf8_lossy(message)));
        }
        let again = line.read_in == Some(life);
        line.read_in = Some(life);
        line.reads += 1;
        let forgiven = content.forgotten || forgetful;
        if line.reads > line.reads_allowed && !forgiven {
            return Err(format!("duplicated: {id:?} was read {} times", line.reads));
        }
        let last = content.last_read[line.stream];
        if last.is_some_and(|last| last >= id.number) && !again && !forgiven {
            return Err(format!("reordered: {id:?} came after number {last:?}"));
        }
        content.last_read[line.stream] = Some(id.number);
        Ok(Some(id))
    }

    /// The other side stored a line.
    pub(crate) fn store(&mut self, message: &[u8]) -> Result<(), String> {
        let Some(id) = named(message) else { return Ok(()) };
        let line = self.get(id);
        line.stored += 1;
        if line.message() != message {
            return Err(format!("altered: {id:?} was sent as {message:?}"));
        }
        if line.stored > line.reads + line.resent {
            return Err(format!(
                "duplicated: {id:?} was read {} times and sent {} times, {} of them because an answer was lost",
                line.reads, line.stored, line.resent
            ));
        }
        Ok(())
    }

    /// The other side may have a line, but its answer was lost: it comes once more.
    pub(crate) fn resend(&mut self, message: &[u8]) {
        if let Some(id) = named(message) {
            self.get(id).resent += 1;
        }
    }

    /// The disk queue has a line: it outlives the program.
    pub(crate) fn keep(&mut self, id: LineId) {
        self.get(id).stored_here = true;
    }

    /// A line that was delivered may come once more: how far the disk queue was delivered is not saved.
    pub(crate) fn allow_again(&mut self, id: LineId) {
        self.get(id).resent += 1;
    }

    /// A line has its verdict.
    pub(crate) fn settle(&mut self, message: &[u8]) {
        if let Some(id) = named(message) {
            self.get(id).settled += 1;
        }
    }

    /// A line is in the dead letters.
    pub(crate) fn bury(&mut self, message: &[u8]) {
        if let Some(id) = named(message) {
            self.get(id).dead = true;
        }
    }

    /// A line was dropped and counted.
    pub(crate) fn drop_line(&mut self, message: &[u8]) {
        if let Some(id) = named(message) {
            self.get(id).dropped = true;
        }
    }

    /// The next life begins: files are read from where their cursors are, and what was on its `way` may
    /// come again.
    pub(crate) fn next_life(&mut self, way: Vec<LineId>) {
        for line in way {
            self.get(line).reads_allowed += 1;
        }
        self.life += 1;
        for content in &mut self.contents {
            content.last_read = [None; 2];
        }
    }

    /// The text of the dead letters: what they took they must have.
    pub(crate) fn check_dead(&self, letters: &[u8]) -> Result<(), String> {
        let mut found = std::collections::BTreeSet::new();
        let mark = b"\"message\":\"";
        for line in letters.split(|byte| *byte == b'\n') {
            let at = line.windows(mark.len()).position(|window| window == mark);
            found.extend(at.and_then(|at| named(&line[at + mark.len()..])));
        }
        for (content, all) in self.contents.iter().enumerate() {
            for (number, line) in all.lines.iter().enumerate() {
                let id = LineId { content, number };
                if line.dead && !found.contains(&id) {
                    return Err(format!(
                        "lost: {id:?} was in the dead letters and is not any more"
                    ));
                }
            }
        }
        Ok(())
    }

    /// The program deleted a file with this content.
    pub(crate) fn check_deleted(&self, content: usize) -> Result<(), String> {
        let lines = self.contents[content].lines.iter().enumerate();
        for (number, line) in lines {
            if line.is_owed() && line.settled == 0 && !line.stored_here {
                return Err(format!("deleted: number {number} of c{content} has no verdict"));
            }
        }
        Ok(())
    }

    /// Lines that should have arrived and have not.
    pub(crate) fn missing(&self) -> Vec<LineId> {
        let mut missing = Vec::new();
        for (content, all) in self.contents.iter().enumerate() {
            for (number, line) in all.lines.iter().enumerate() {
                if line.is_owed() && !line.has_arrived() {
                    missing.push(LineId { content, number });
                }
            }
        }
        missing
    }

    /// Whether everything has arrived.
    pub(crate) fn is_complete(&self) -> bool {
        let lines = self.contents.iter().flat_map(|content| &content.lines);
        lines.into_iter().all(|line| !line.is_owed() || line.has_arrived())
    }
}

/// The name at the beginning of a line.
pub(crate) fn named(message: &[u8]) -> Option<LineId> {
    let end = message.iter().take(24).position(|byte| *byte == b';')?;
    let text = std::str::from_utf8(&message[..end]).ok()?;
    let (content, number) = text.strip_prefix('c')?.split_once('n')?;
    Some(LineId { content: content.parse().ok()?, number: number.parse().ok()? })
}
