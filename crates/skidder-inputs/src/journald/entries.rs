//! The entries of all files of a journal, in the order of journalctl.

use super::fields::Item;
use super::files;
use super::matches::Matches;
use super::place::Place;
use skidder_journal::{Cursor, Entry, Id, JournalError, JournalFile, State};
use skidder_os::{FileId, Fs, Timestamp, open_same};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Fields of a file that are kept, since other entries have them, too.
const ITEMS_MAX: usize = 4096;

/// The longest of them.
const ITEM_BYTES_MAX: usize = 1024;

/// How often files are listed again in a scan because some have appeared or moved meanwhile.
const LISTS_MAX: u32 = 16;

/// Where the first run begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    Head,
    /// At the first entry that is not older, in microseconds since 1970.
    Since(u64),
}

/// An entry that was read.
pub(super) struct Read {
    pub(super) cursor: Cursor,
    /// Of its file.
    pub(super) file_id: Id,
    /// Whether it is one of those that are wanted.
    pub(super) is_wanted: bool,
}

/// Something to report: where, and what.
pub(super) type Report<'a> = &'a mut dyn FnMut(&Path, &str);

/// An open file.
struct Open {
    path: PathBuf,
    id: FileId,
    file: JournalFile,
    /// The index of the next entry.
    next: u64,
    head: Option<Entry>,
    /// The number of the last entry that was read; 0 for none.
    read: u64,
    items: HashMap<u64, Arc<Item>, foldhash::fast::FixedState>,
}

impl Open {
    fn seqnum_id(&self) -> Id {
        self.file.header().seqnum_id
    }

    /// Reads the head of the next entry; passes over those that are damaged.
    fn look(&mut self, report: Report<'_>) {
        self.head = None;
        let mut is_new = false;
        while self.next < self.file.len() {
            match self.file.head(self.next) {
                Ok(entry) => {
                    self.head = Some(entry);
                    return;
                }
                // journald may have written while the header was read: the number of entries of after, and the end of
                // the file of before.
                Err(JournalError::Damaged { .. })
                    if !is_new && self.file.header().state == State::Online =>
                {
                    is_new = true;
                    if let Err(error) = self.file.refresh() {
                        return report(&self.path, &error.to_string());
                    }
                }
                Err(error @ JournalError::Damaged { .. }) => {
                    if self.next < self.file.len() {
                        report(&self.path, &format!("an entry is lost: {error}"));
                        self.next += 1;
                    } else {
                        let lost = self.file.header().entries - self.next;
                        report(&self.path, &format!("{lost} entries are lost: {error}"));
                    }
                }
                Err(error) => return report(&self.path, &error.to_string()),
            }
        }
    }
}

/// A journal, and how far it is read.
pub(super) struct Entries {
    fs: Arc<dyn Fs>,
    place: files::Place,
    matches: Arc<Matches>,
    start: Start,
    /// Where the run before ended.
    resume: Place,
    open: Vec<Open>,
    /// Files that are read to their end for good, as they were then.
    done: HashMap<FileId, (Timestamp, u64)>,
    /// Directories in which files may appear.
    pub(super) directories: Vec<PathBuf>,
    /// Files were found: others have appeared since then.
    has_scanned: bool,
    /// Why there is nothing to read, as of the last scan.
    pub(super) trouble: Option<String>,
    /// Paths of which a problem was reported.
    reported: BTreeSet<PathBuf>,
    /// The file with the next entry, and the first entry of all others.
    current: Option<(usize, Option<(Entry, Id)>)>,
    last: Option<Cursor>,
    /// A boot, as a field.
    boot: Option<(Id, Arc<Item>)>,
    offsets: Vec<u64>,
    payload: Vec<u8>,
}

impl Entries {
    pub(super) fn new(
        fs: Arc<dyn Fs>,
        place: files::Place,
        matches: Arc<Matches>,
        start: Start,
        resume: Place,
    ) -> Self {
        Self {
            fs,
            place,
            matches,
            start,
            last: resume.cursor,
            boot: None,
            resume,
            open: Vec::new(),
            done: HashMap::new(),
            directories: Vec::new(),
            has_scanned: false,
            trouble: None,
            reported: BTreeSet::new(),
            current: None,
            offsets: Vec::new(),
            payload: Vec::new(),
        }
    }

    /// Looks for new files, and forgets those that are read and gone. Returns the position of each file that is open.
    pub(super) fn scan(&mut self, report: Report<'_>) -> BTreeMap<Id, u64> {
        let mut there = BTreeSet::new();
        self.trouble = None;
        // A rotation gives a file another name and creates one: what was renamed between two looks is in neither list, and
        // its entries come before those of the new file.
        for _ in 0..LISTS_MAX {
            if !self.open_listed(&mut there, report) {
                break;
            }
        }
        self.done.retain(|id, _| there.contains(id));
        let done = &self.done;
        // One that is gone may still have entries.
        self.open.retain(|open| {
            let is_gone = !there.contains(&open.id) && open.head.is_none();
            !is_gone && !done.contains_key(&open.id)
        });
        self.current = None;
        if !self.open.is_empty() || !self.done.is_empty() {
            // A file that is damaged is reported, and the others are read.
            self.trouble = None;
        }
        if !self.has_scanned && !self.open.is_empty() {
            self.has_scanned = true;
            self.check_resumed(report);
        }
        self.open.iter().map(|open| (open.file.header().file_id, position(open))).collect()
    }

    /// Lists the files and opens those that are new; `there` becomes the ids of those that were found. Returns whether files
    /// have appeared or moved.
    fn open_listed(&mut self, there: &mut BTreeSet<FileId>, report: Report<'_>) -> bool {
        let fs = Arc::clone(&self.fs);
        let mut problems = Vec::new();
        let listed = self
            .place
            .list(&*fs, &mut |path, error: io::Error| problems.push((path.to_owned(), error)));
        for (path, error) in problems {
            self.report_once(&path, &error.to_string(), report);
        }
        self.directories = listed.directories;
        if listed.files.is_empty() && self.trouble.is_none() {
            self.trouble = Some(self.place.no_file());
        }
        let is_read = |open: &Open| {
            open.head.is_none()
                && open.next >= open.file.len()
                && open.file.header().state == State::Archived
        };
        there.clear();
        let mut has_changed = false;
        for path in listed.files {
            let Ok(metadata) = fs.metadata(&path) else {
                has_changed = true;
                continue;
            };
            let (id, print) = (metadata.id(), (metadata.modified, metadata.size));
            there.insert(id);
            if let Some(open) = self.open.iter_mut().find(|open| open.id == id) {
                open.path = path;
                if is_read(open) {
                    self.done.insert(id, print);
                }
                continue;
            }
            if self.done.get(&id) != Some(&print) {
                has_changed |= self.open_file(&path, id, report);
            }
        }
        has_changed
    }

    fn report_once(&mut self, path: &Path, error: &str, report: Report<'_>) {
        if self.trouble.is_none() {
            let is_named = self.place.is_at(path);
            let text = if is_named { String::new() } else { format!("{}: ", path.display()) };
            self.trouble = Some(text + error);
        }
        if self.reported.insert(path.to_owned()) {
            report(path, error);
        }
    }

    /// Opens a file; returns whether it was, or whether another one is at its path now.
    fn open_file(&mut self, path: &Path, id: FileId, report: Report<'_>) -> bool {
        let opened = open_same(&*self.fs, path, id).map_err(JournalError::from).and_then(|file| {
            let mut file = JournalFile::open(file)?;
            let next = self.first(&mut file)?;
            Ok((file, next))
        });
        let (file, next) = match opened {
            Ok(opened) => opened,
            // journald writes the header next.
            Err(JournalError::NoJournal) if path.extension().is_some_and(|it| it == "journal") => {
                return false;
            }
            // It was renamed.
            Err(JournalError::Io(error))
                if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::NotFound) =>
            {
                return true;
            }
            Err(error) => {
                self.report_once(path, &error.to_string(), report);
                return false;
            }
        };
        self.reported.remove(path);
        let items = HashMap::default();
        let mut open = Open { path: path.to_owned(), id, file, next, head: None, read: 0, items };
        open.look(report);
        open.file.release();
        self.open.push(open);
        true
    }

    /// The first entry of a file that is to be read.
    fn first(&self, file: &mut JournalFile) -> Result<u64, JournalError> {
        let (id, seqnum_id) = (file.header().file_id, file.header().seqnum_id);
        if let Some(seqnum) = self.resume.files.get(&id).copied() {
            return file.first_not(|entry| entry.seqnum <= seqnum);
        }
        match (self.resume.cursor, self.start) {
            (Some(cursor), _) if cursor.seqnum_id == seqnum_id => {
                file.first_not(|entry| entry.seqnum <= cursor.seqnum)
            }
            // It has appeared since then.
            _ if self.has_scanned => Ok(0),
            (Some(cursor), _) => file.first_not(|entry| entry.realtime <= cursor.realtime),
            (None, Start::Head) => Ok(0),
            (None, Start::Since(time)) => file.first_not(|entry| entry.realtime < time),
        }
    }

    /// Reports that the entry of the cursor is gone: entries between it and the next one may be gone, too.
    fn check_resumed(&mut self, report: Report<'_>) {
        let Some(cursor) = self.resume.cursor else { return };
        let mut first: Option<u64> = None;
        for open in &mut self.open {
            let header = open.file.header();
            if header.seqnum_id != cursor.seqnum_id {
                continue;
            }
            first = Some(first.map_or(header.head_seqnum, |first| first.min(header.head_seqnum)));
        }
        let is_gone = first.is_none_or(|first| first > cursor.seqnum + 1);
        if is_gone {
            let path = self.open.first().map(|open| open.path.clone()).unwrap_or_default();
            let next = match first {
                Some(first) => format!("entries {} to {} are gone", cursor.seqnum + 1, first - 1),
                None => "entries behind it may be gone".to_owned(),
            };
            let text = format!(
                "the last entry that was read ({cursor}) is not in the journal any more; {next}, reading the next \
                 ones; keep the journal for longer than skidder may be down (`SystemMaxUse=` of journald)"
            );
            report(&path, &text);
        }
    }

    /// Looks for new entries in the files that are open.
    pub(super) fn refresh(&mut self, report: Report<'_>) {
        for open in &mut self.open {
            match open.file.refresh() {
                Ok(_) if open.head.is_none() => open.look(report),
                Ok(_) | Err(JournalError::NoJournal) => {}
                Err(error) => report(&open.path, &error.to_string()),
            }
        }
        self.current = None;
    }

    /// Frees buffers until something is read again.
    pub(super) fn release(&mut self) {
        for open in &mut self.open {
            open.file.release();
            open.items = HashMap::default();
        }
        self.payload = Vec::new();
    }

    /// Reads the next entry; adds its fields to `items` if it is wanted. `None` if there is none for now.
    pub(super) fn next(&mut self, items: &mut Vec<Arc<Item>>, report: Report<'_>) -> Option<Read> {
        let at = self.choose()?;
        let open = &mut self.open[at];
        let head = open.head.take()?;
        let cursor = Cursor::of(&head, open.seqnum_id());
        let file_id = open.file.header().file_id;
        let read = open.file.entry(open.next, &mut self.offsets);
        (open.next, open.read) = (open.next + 1, head.seqnum);
        let is_wanted = match read {
            Err(error) => {
                report(&open.path, &format!("an entry is lost: {error}"));
                false
            }
            // A copy of a file that is there, too.
            Ok(_) if self.last == Some(cursor) => false,
            Ok(_) => self.take(at, head.boot_id, items, report),
        };
        let open = &mut self.open[at];
        open.look(report);
        if open.head.is_none() {
            open.items = HashMap::default();
        }
        self.last = Some(cursor);
        Some(Read { cursor, file_id, is_wanted })
    }

    /// Reads the fields of the entry at `offsets`, of this boot; returns whether it is wanted.
    fn take(
        &mut self,
        at: usize,
        boot: Id,
        items: &mut Vec<Arc<Item>>,
        report: Report<'_>,
    ) -> bool {
        let (start, open) = (items.len(), &mut self.open[at]);
        for offset in &self.offsets {
            if let Some(item) = open.items.get(offset) {
                items.push(Arc::clone(item));
                continue;
            }
            self.payload.clear();
            if let Err(error) = open.file.data(*offset, &mut self.payload) {
                report(&open.path, &format!("a field of an entry is lost: {error}"));
                continue;
            }
            let terms = self.matches.met_by(&self.payload);
            let item = Arc::new(Item::new(&self.payload, terms));
            if item.is_common() && self.payload.len() <= ITEM_BYTES_MAX {
                if open.items.len() >= ITEMS_MAX {
                    open.items.clear();
                }
                open.items.insert(*offset, Arc::clone(&item));
            }
            items.push(item);
        }
        let read = &items[start..];
        let is_met = |term| read.iter().any(|item| item.terms.contains(&term));
        let is_wanted = self.matches.is_empty() || self.matches.accept(is_met);
        if is_wanted {
            let boot = self.boot_item(boot);
            match items[start..].iter_mut().find(|item| item.is_boot()) {
                Some(item) => *item = boot,
                None => items.push(boot),
            }
        } else {
            items.truncate(start);
        }
        is_wanted
    }

    /// The boot of an entry counts, and not its field `_BOOT_ID`, as for journalctl: they differ in files that were made of
    /// those of another machine.
    fn boot_item(&mut self, boot: Id) -> Arc<Item> {
        match &self.boot {
            Some((id, item)) if *id == boot => Arc::clone(item),
            _ => {
                let item = Item::new(format!("_BOOT_ID={boot}").as_bytes(), Box::default());
                let item = Arc::new(item);
                self.boot = Some((boot, Arc::clone(&item)));
                item
            }
        }
    }

    /// The file with the next entry.
    fn choose(&mut self) -> Option<usize> {
        if let Some((at, bound)) = &self.current
            && let Some(head) = &self.open[*at].head
            && bound.as_ref().is_none_or(|bound| {
                compare((head, self.open[*at].seqnum_id()), (&bound.0, bound.1)).is_le()
            })
        {
            return Some(*at);
        }
        if let Some((at, _)) = self.current.take()
            && self.open.len() > 1
        {
            self.open[at].file.release();
        }
        let mut best: Option<(usize, Entry, Id)> = None;
        let mut second: Option<(Entry, Id)> = None;
        for (at, open) in self.open.iter().enumerate() {
            let Some(head) = open.head else { continue };
            let id = open.seqnum_id();
            let is_before = |other: &(Entry, Id)| compare((&head, id), (&other.0, other.1)).is_lt();
            match &best {
                Some((_, entry, of)) if !is_before(&(*entry, *of)) => {
                    if second.as_ref().is_none_or(is_before) {
                        second = Some((head, id));
                    }
                }
                _ => {
                    if let Some((_, entry, id)) = best.replace((at, head, id)) {
                        second = Some((entry, id));
                    }
                }
            }
        }
        let (at, ..) = best?;
        self.current = Some((at, second));
        Some(at)
    }
}

/// The number of the entry before the next one of a file; 0 if all of it is to be read.
fn position(open: &Open) -> u64 {
    match open.head {
        Some(head) => head.seqnum.saturating_sub(1),
        // The next one cannot be read for now.
        None if open.next < open.file.len() => open.read,
        None => open.file.header().tail_seqnum,
    }
}

/// Which of two entries comes first; each with the id of its sequence.
fn compare((one, id): (&Entry, Id), (other, other_id): (&Entry, Id)) -> Ordering {
    let by_number = if id == other_id { one.seqnum.cmp(&other.seqnum) } else { Ordering::Equal };
    let by_boot = || {
        let is_same = one.boot_id == other.boot_id;
        if is_same { one.monotonic.cmp(&other.monotonic) } else { Ordering::Equal }
    };
    by_number
        .then_with(by_boot)
        .then_with(|| one.realtime.cmp(&other.realtime))
        .then_with(|| one.xor_hash.cmp(&other.xor_hash))
}
