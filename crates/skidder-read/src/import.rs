//! Taking over entries of Filebeat's registry: which file is meant, where it goes on, and under which key.
//!
//! Nothing is written and nothing is started: the outcome is a plan, which a person can look at first. An
//! entry is taken over only for a file that is there and is recognised by what Filebeat recognised it by;
//! its cursor is checked as far as the file allows, and where it cannot be right the file is read from the
//! start, which repeats lines and loses none.

mod back;
mod cursor;
mod files;
mod keys;
mod own;
mod words;

use crate::settings::{Compression, FilestreamSettings, InputKind};
pub use back::WayBack;
use cursor::{Checked, check, stands};
use files::{Files, Matched};
use keys::{Keyed, keys};
use own::Own;
use skidder_os::{Fs, Timestamp};
use skidder_registry::FileEntry;
use skidder_registry::filebeat::{FilebeatEntry, Owner};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;

/// The outcome for an entry and one input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Adoption {
    /// The file goes on at this byte.
    Continue {
        /// Decompressed bytes.
        offset: u64,
    },
    /// The compressed file was read to its end.
    Finished,
    /// The file is read from the start.
    Restart(Restart),
    /// There is an entry of our own, which stays.
    Known {
        /// Where it stands.
        offset: u64,
    },
    /// Nothing is taken over.
    Skip(Skip),
}

/// Why a file cannot go on where Filebeat stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Restart {
    /// Nothing was delivered of it.
    Unread,
    /// It is shorter than what was read.
    Shorter,
    /// The cursor is inside a line: it is not the file that was read.
    InsideLine,
    /// It is too short to be recognised again.
    TooShort,
    /// It cannot be read.
    Unreadable(String),
}

/// How keys of Filebeat's input `journald` begin.
const JOURNAL_PREFIX: &str = "journald::";
/// The same of the inputs that list objects.
const OBJECTS_PREFIXES: [&str; 3] = ["filebeat::aws-s3::", "azure-blob-storage::", "gcs::"];

/// Why nothing is taken over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Skip {
    /// No file is there that it could be.
    NoFile,
    /// The file at its path does not begin with what Filebeat saw of it.
    OtherFile,
    /// Another file is at its path, and its own is nowhere.
    Replaced,
    /// A file with its inode is at a path that has nothing to do with it: the inode was used again.
    OtherPath,
    /// No input of the configuration reads the file.
    NoInput,
    /// Filebeat marked it for removal.
    Removed,
    /// It has the same content as another file, which is read instead.
    SameAs(PathBuf),
    /// Another entry is of the same file, and newer.
    Superseded,
    /// It is the place in a journal, which is not taken over.
    Journal,
    /// It is of objects of a store, which are not taken over.
    Objects,
    /// It is of an input that reads no files, or the file is recognised by something unknown.
    Foreign,
}

/// One row of the plan.
#[derive(Clone, Debug)]
pub struct Adopted {
    /// Number of the entry.
    pub entry: usize,
    /// The `id` of the input that gets it; `None` if none does.
    pub input: Option<String>,
    /// The configuration has no such input: it is kept for one.
    pub absent_input: bool,
    /// Where the file is, or was seen last.
    pub path: PathBuf,
    /// Its size in bytes as stored.
    pub size: Option<u64>,
    /// Its outcome.
    pub adoption: Adoption,
    /// The device has another number than it had.
    pub other_device: bool,
    /// The entry to put into the registry.
    pub put: Option<(String, FileEntry)>,
    /// The key of an older entry of ours for the same file, which goes.
    pub remove: Option<String>,
}

impl Adopted {
    /// Whether lines that Filebeat delivered may come again although their file is there: an entry is left out, and
    /// neither is its file gone nor is another entry of it taken. An entry without a path is of no file, but may be of objects.
    pub fn is_lost(&self) -> bool {
        use Skip::{Foreign, NoInput, Objects, OtherFile, OtherPath};
        if matches!(self.adoption, Adoption::Skip(Objects)) {
            return true;
        }
        let is_left_out =
            matches!(self.adoption, Adoption::Skip(OtherFile | OtherPath | NoInput | Foreign));
        is_left_out && !self.path.as_os_str().is_empty()
    }
}

/// Why an entry of no file is left out.
fn skip_of(key: &str) -> Skip {
    if key.starts_with(JOURNAL_PREFIX) {
        Skip::Journal
    } else if OBJECTS_PREFIXES.iter().any(|prefix| key.starts_with(prefix)) {
        Skip::Objects
    } else {
        Skip::Foreign
    }
}

/// Plans the import of `entries`. `known` holds the entries of our own registry, by key.
pub fn plan(
    fs: &dyn Fs,
    inputs: &[&FilestreamSettings],
    entries: &[FilebeatEntry],
    known: &HashMap<String, FileEntry>,
    now: Timestamp,
) -> Vec<Adopted> {
    let own = &Own::new(known);
    let mut plan = Vec::new();
    // What is left over when the inputs had their turn.
    let mut unclaimed: Vec<usize> = Vec::new();
    let mut claims: Vec<Vec<usize>> = vec![Vec::new(); inputs.len()];
    for (at, entry) in entries.iter().enumerate() {
        if entry.owner == Owner::Other {
            plan.push(Adopted::skip(at, entry, skip_of(&entry.key)));
        } else if entry.ttl == 0 {
            plan.push(Adopted::skip(at, entry, Skip::Removed));
        } else {
            let mine = inputs_for(entry, inputs);
            if mine.is_empty() {
                unclaimed.push(at);
            }
            for input in mine {
                claims[input].push(at);
            }
        }
    }
    let mut missed: HashMap<usize, (Skip, usize)> = HashMap::new();
    for (input, claims) in inputs.iter().zip(claims) {
        let mut files = Files::scan(fs, input);
        let mut one = OneInput { fs, input, entries, own, now, absent: false };
        one.run(&mut files, &claims, &mut plan, &mut missed);
    }
    adopt_absent(fs, entries, unclaimed, own, now, &mut plan);
    for (at, (skip, _)) in missed {
        // An entry of all log inputs is missed only if none of them has the file.
        if !plan.iter().any(|row| row.entry == at) {
            plan.push(Adopted::skip(at, &entries[at], skip));
        }
    }
    // Inputs that share their keys have one entry together.
    let mut put = HashSet::new();
    plan.retain(|row| row.put.as_ref().is_none_or(|(key, _)| put.insert(key.clone())));
    plan.sort_by(|one, other| one.path.cmp(&other.path).then(one.entry.cmp(&other.entry)));
    plan
}

/// The inputs that an entry may go to, if they have the file.
fn inputs_for(entry: &FilebeatEntry, inputs: &[&FilestreamSettings]) -> Vec<usize> {
    let with = |wanted: &dyn Fn(&FilestreamSettings) -> bool| -> Vec<usize> {
        let reads = |&at: &usize| inputs[at].key_suffix == entry.stream && wanted(inputs[at]);
        (0..inputs.len()).filter(reads).collect()
    };
    let is_filestream = |input: &FilestreamSettings| input.kind == InputKind::Filestream;
    let id = match &entry.owner {
        Owner::Filestream { input } => input,
        Owner::Log | Owner::Other => return with(&|_| true),
    };
    let mine = with(&|input| is_filestream(input) && input.id == *id);
    if mine.is_empty() && id.is_empty() {
        // An input that has been given an `id` since takes over what it had without.
        return with(&is_filestream);
    }
    mine
}

/// Entries of inputs that the configuration does not have: kept under their ids, if the files are there.
fn adopt_absent(
    fs: &dyn Fs,
    entries: &[FilebeatEntry],
    unclaimed: Vec<usize>,
    own: &Own<'_>,
    now: Timestamp,
    plan: &mut Vec<Adopted>,
) {
    let mut by_id: BTreeMap<(&str, &'static str), Vec<usize>> = BTreeMap::new();
    for at in unclaimed {
        let stream = entries[at].stream;
        match &entries[at].owner {
            Owner::Filestream { input } => by_id.entry((input, stream)).or_default().push(at),
            Owner::Log | Owner::Other => {
                plan.push(Adopted::skip(at, &entries[at], Skip::NoInput));
            }
        }
    }
    for ((id, stream), claims) in by_id {
        let mut input = FilestreamSettings::new(id, crate::scan::ScanSettings::default());
        input.key_suffix = stream;
        input.compression = Compression::Auto;
        let mut files = Files::at(fs, &input, claims.iter().map(|&at| &entries[at].source));
        let mut missed = HashMap::new();
        let mut one = OneInput { fs, input: &input, entries, own, now, absent: true };
        one.run(&mut files, &claims, plan, &mut missed);
        for (at, (skip, _)) in missed {
            plan.push(Adopted::skip(at, &entries[at], skip));
        }
    }
}

/// The plan of one input.
struct OneInput<'a> {
    fs: &'a dyn Fs,
    input: &'a FilestreamSettings,
    entries: &'a [FilebeatEntry],
    own: &'a Own<'a>,
    now: Timestamp,
    absent: bool,
}

impl OneInput<'_> {
    fn run(
        &mut self,
        files: &mut Files<'_>,
        claims: &[usize],
        plan: &mut Vec<Adopted>,
        missed: &mut HashMap<usize, (Skip, usize)>,
    ) {
        let mut of_file: BTreeMap<usize, (usize, bool)> = BTreeMap::new();
        let mut elsewhere = Vec::new();
        for &at in claims {
            match files.find(&self.entries[at]) {
                Matched::File { file, other_device } => {
                    let rival = of_file.get(&file).copied();
                    let loser = match rival {
                        Some((rival, _)) if !self.is_better(at, rival) => Some(at),
                        Some((rival, _)) => {
                            of_file.insert(file, (at, other_device));
                            Some(rival)
                        }
                        None => {
                            of_file.insert(file, (at, other_device));
                            None
                        }
                    };
                    if let Some(loser) = loser {
                        plan.push(self.row(loser, files, file, Adoption::Skip(Skip::Superseded)));
                    }
                }
                matched => elsewhere.push((at, matched)),
            }
        }
        for (at, matched) in elsewhere {
            // What is found by its own entry is no other file that only begins alike.
            let is_free = |file: &usize| !of_file.contains_key(file);
            match files.find_moved(&self.entries[at], &is_free) {
                Some(file) => {
                    of_file.insert(file, (at, false));
                }
                None => self.miss(at, self.why_missed(at, matched), missed),
            }
        }
        let chosen: Vec<usize> = of_file.keys().copied().collect();
        let keyed = keys(files, &chosen);
        for (file, (at, other_device)) in of_file {
            let mut row = self.adopt(at, files, file, &keyed);
            row.other_device = other_device;
            plan.push(row);
        }
    }

    fn why_missed(&self, at: usize, matched: Matched) -> Skip {
        match matched {
            Matched::Other => Skip::OtherFile,
            Matched::Replaced => Skip::Replaced,
            Matched::Elsewhere => Skip::OtherPath,
            Matched::Foreign => Skip::Foreign,
            Matched::File { .. } | Matched::Nothing => {
                match self.fs.metadata(&self.entries[at].source) {
                    Ok(_) => Skip::NoInput,
                    Err(_) => Skip::NoFile,
                }
            }
        }
    }

    /// Of several reasons the one that says most about the file.
    fn miss(&self, at: usize, skip: Skip, missed: &mut HashMap<usize, (Skip, usize)>) {
        let weight = match skip {
            Skip::OtherFile | Skip::Replaced | Skip::OtherPath => 3,
            Skip::NoInput => 2,
            _ => 1,
        };
        let known = missed.entry(at).or_insert((skip.clone(), weight));
        if known.1 < weight {
            *known = (skip, weight);
        }
    }

    /// Whether an entry says more about a file than another: that of the input itself before the one of all
    /// log inputs, then the newer one.
    fn is_better(&self, one: usize, other: usize) -> bool {
        let rank = |at: usize| {
            let entry = &self.entries[at];
            (entry.owner != Owner::Log, entry.updated, entry.offset)
        };
        rank(one) > rank(other)
    }

    fn row(&self, at: usize, files: &Files<'_>, file: usize, adoption: Adoption) -> Adopted {
        let found = files.found(file);
        Adopted {
            entry: at,
            input: Some(self.input.id.clone()),
            absent_input: self.absent,
            path: found.path.clone(),
            size: Some(found.metadata.size),
            adoption,
            other_device: false,
            put: None,
            remove: None,
        }
    }

    fn adopt(
        &self,
        at: usize,
        files: &mut Files<'_>,
        file: usize,
        keyed: &HashMap<usize, Keyed>,
    ) -> Adopted {
        let keyed = keyed.get(&file).expect("each chosen file was given a key or a reason");
        let key = match keyed.value() {
            Ok(value) => self.input.key(&value),
            Err(adoption) => return self.row(at, files, file, adoption),
        };
        let entry = &self.entries[at];
        let checked = check(files, file, entry);
        let own = self.own.of(files, file, &key);
        if let Some((_, own)) = own
            && !self.goes_beyond(files, file, &checked, entry, own)
        {
            let offset = own.cursor.offset;
            return self.row(at, files, file, Adoption::Known { offset });
        }
        let mut cursor = match checked {
            Checked::Cursor(cursor) => cursor,
            Checked::Restart(why) => {
                return self.row(at, files, file, Adoption::Restart(why));
            }
        };
        cursor.generation = own.map_or(0, |(_, own)| own.cursor.generation);
        let adoption = if cursor.eof {
            Adoption::Finished
        } else {
            Adoption::Continue { offset: cursor.offset }
        };
        let mut row = self.row(at, files, file, adoption);
        let put = FileEntry {
            cursor,
            meta: files.meta(file, keyed.print()),
            // That it was read to its end is believed only if it was not changed since.
            updated: entry.updated.unwrap_or(if cursor.eof { Timestamp(0) } else { self.now }),
            ttl: None,
        };
        row.remove = own.map(|(own, _)| own.to_owned()).filter(|own| *own != key);
        row.put = Some((key, put));
        row
    }

    /// Whether Filebeat ran behind us and read on, so that its cursor holds and not our own. It must have been
    /// written later; and be further, or the file is not the one any more in which ours stood.
    fn goes_beyond(
        &self,
        files: &mut Files<'_>,
        file: usize,
        theirs: &Checked,
        entry: &FilebeatEntry,
        own: &FileEntry,
    ) -> bool {
        if entry.updated.is_none_or(|updated| updated <= own.updated) {
            return false;
        }
        let is_further = match theirs {
            Checked::Cursor(theirs) => {
                (theirs.offset, theirs.eof) > (own.cursor.offset, own.cursor.eof)
            }
            Checked::Restart(_) => false,
        };
        is_further || !stands(files, file, &own.cursor)
    }
}

impl Adopted {
    fn skip(at: usize, entry: &FilebeatEntry, skip: Skip) -> Self {
        let input = match &entry.owner {
            Owner::Filestream { input } => Some(input.clone()),
            Owner::Log | Owner::Other => None,
        };
        Self {
            entry: at,
            input,
            absent_input: false,
            path: entry.source.clone(),
            size: None,
            adoption: Adoption::Skip(skip),
            other_device: false,
            put: None,
            remove: None,
        }
    }
}

#[cfg(test)]
mod tests;
