//! Reading the store: the newest checkpoint, then the log of what changed since.
//!
//! Filebeat stops at the first line of the log that it cannot read. Here such a line is named, and what
//! follows is still taken: each operation holds all of one entry, and a cursor that is older than it could
//! be repeats lines, while one that is left out repeats the whole file.

use super::entry::FilebeatEntry;
use super::{KEY, LOG, META, VERSION};
use serde_json::{Map, Value};
use skidder_os::{Fs, read_to_end};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// The largest file of a registry that is read, in bytes: about 3 million entries.
const FILE_BYTES_MAX: usize = 1 << 30;

/// Why there is no registry to read.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// Look elsewhere.
    #[error("there is no registry of Filebeat in `{}`", .directory.display())]
    Nothing {
        /// Where it was looked for.
        directory: PathBuf,
    },
    /// Mend the disk or the permissions.
    #[error("cannot look for a registry in `{}`", .directory.display())]
    Disk {
        /// Where it was looked for.
        directory: PathBuf,
        /// What failed.
        source: io::Error,
    },
}

/// Why a registry cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Let Filebeat migrate it, or use a newer program.
    #[error(
        "the registry in `{}` has version `{version}`, and `{VERSION}` can be read; start Filebeat 7.17 \
         once if it is older", .directory.display()
    )]
    Version {
        /// The directory.
        directory: PathBuf,
        /// Its version.
        version: String,
    },
    /// Mend the disk or the permissions.
    #[error("cannot read `{}`", .path.display())]
    Disk {
        /// The file.
        path: PathBuf,
        /// What failed.
        source: io::Error,
    },
}

/// A registry as it was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FilebeatRegistry {
    /// All entries, in the order of their keys.
    pub entries: Vec<FilebeatEntry>,
    /// The problems, one sentence each with file and line.
    pub problems: Vec<String>,
    /// Whether entries may be missing. A last operation that is cut off is none of it: Filebeat was killed while it wrote
    /// that, and would leave it out itself.
    pub is_damaged: bool,
    /// Number of the newest operation.
    pub newest: u64,
}

/// Finds the registry at or below a path: a data path, its `registry`, or the directory of the store.
pub fn find(fs: &dyn Fs, from: &Path) -> Result<PathBuf, FindError> {
    for directory in [from.join("registry/filebeat"), from.join("filebeat"), from.to_owned()] {
        let held = holds_registry(fs, &directory);
        if held.map_err(|source| FindError::Disk { directory: from.to_owned(), source })? {
            return Ok(directory);
        }
    }
    Err(FindError::Nothing { directory: from.to_owned() })
}

/// Whether a directory holds entries of Filebeat.
pub fn holds_registry(fs: &dyn Fs, directory: &Path) -> io::Result<bool> {
    match fs.metadata(&directory.join(LOG)) {
        Ok(_) => return Ok(true),
        Err(error) if is_missing(&error) => {}
        Err(error) => return Err(error),
    }
    Ok(!checkpoints(fs, directory)?.is_empty())
}

/// Reads all entries of the store in `directory`.
pub fn load(fs: &dyn Fs, directory: &Path) -> Result<FilebeatRegistry, LoadError> {
    let mut state = State::default();
    check_version(fs, directory, &mut state)?;
    let listed = checkpoints(fs, directory);
    let numbers =
        listed.map_err(|source| LoadError::Disk { path: directory.to_owned(), source })?;
    if let Some(&newest) = numbers.last() {
        state.newest = newest;
        let name = format!("{newest}.json");
        if let Some(text) = read(fs, &directory.join(&name))? {
            state.checkpoint(&name, &text);
        }
    }
    if let Some(text) = read(fs, &directory.join(LOG))? {
        state.log(&text);
    }
    let mut entries = Vec::new();
    for (key, value) in std::mem::take(&mut state.entries) {
        match FilebeatEntry::read(&key, &value) {
            Ok(entry) => entries.push(entry),
            Err(what) => state.damage(format!("entry `{key}`: {what}")),
        }
    }
    let State { newest, problems, is_damaged, .. } = state;
    Ok(FilebeatRegistry { entries, problems, is_damaged, newest })
}

fn check_version(fs: &dyn Fs, directory: &Path, state: &mut State) -> Result<(), LoadError> {
    let Some(text) = read(fs, &directory.join(META))? else {
        state.problems.push(format!("{META} is missing"));
        return Ok(());
    };
    match serde_json::from_slice::<Value>(&text) {
        Ok(meta) => match field(&meta, "version") {
            Some(Value::String(version)) if version == VERSION => {}
            other => {
                let version = other.map(Value::to_string).unwrap_or_default();
                let version = version.trim_matches('"').to_owned();
                return Err(LoadError::Version { directory: directory.to_owned(), version });
            }
        },
        Err(error) => state.problems.push(format!("{META} is damaged: {error}")),
    }
    Ok(())
}

/// The numbers of the checkpoints, the newest last.
pub(super) fn checkpoints(fs: &dyn Fs, directory: &Path) -> io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    let listed = fs.read_dir(directory, &mut |entry| {
        let name = entry.name.to_str().and_then(|name| name.strip_suffix(".json"));
        numbers.extend(name.and_then(|name| name.parse::<u64>().ok()));
    });
    match listed {
        Err(error) if !is_missing(&error) => return Err(error),
        _ => {}
    }
    numbers.sort_by(|&one, &other| {
        if one == other {
            std::cmp::Ordering::Equal
        } else if is_at_most(one, other) {
            std::cmp::Ordering::Less
        } else {
            std::cmp::Ordering::Greater
        }
    });
    Ok(numbers)
}

/// The result so far.
#[derive(Default)]
struct State {
    entries: BTreeMap<String, Map<String, Value>>,
    newest: u64,
    problems: Vec<String>,
    is_damaged: bool,
}

impl State {
    /// Something could not be read, and entries may be missing.
    fn damage(&mut self, problem: String) {
        self.problems.push(problem);
        self.is_damaged = true;
    }

    /// A JSON array of entries, one a line.
    fn checkpoint(&mut self, name: &str, text: &[u8]) {
        let (elements, error) = match serde_json::from_slice::<Vec<Value>>(text) {
            Ok(elements) => (elements, None),
            Err(error) => (readable_elements(text), Some(error)),
        };
        let (mut taken, mut wrong, mut keyless) = (0, Vec::new(), 0);
        for (at, element) in elements.into_iter().enumerate() {
            let Value::Object(mut entry) = element else {
                wrong.push(at + 1);
                continue;
            };
            let Some(Value::String(key)) = entry.remove(KEY) else {
                keyless += 1;
                continue;
            };
            self.entries.insert(key, entry);
            taken += 1;
        }
        if let Some(error) = error {
            self.damage(format!("{name} is damaged ({error}); {taken} entries were read"));
        }
        match wrong[..] {
            [] => {}
            [at] => self.damage(format!("{name}: element {at} is no entry; it is left out")),
            [first, ..] => self.damage(format!(
                "{name}: {} elements are no entries, the first is element {first}; they are left out",
                wrong.len()
            )),
        }
        match keyless {
            0 => {}
            1 => self.damage(format!("{name}: an entry has no key; it is left out")),
            _ => self.damage(format!("{name}: {keyless} entries have no key; they are left out")),
        }
    }

    /// Pairs of lines: what is done, and what it is done with.
    fn log(&mut self, text: &[u8]) {
        let mut action = None;
        let mut lines = text.split_inclusive(|byte| *byte == b'\n').enumerate().peekable();
        while let Some((at, line)) = lines.next() {
            let number = at + 1;
            if line.trim_ascii().is_empty() {
                continue;
            }
            let last = lines.peek().is_none();
            let Ok(parsed) = serde_json::from_slice::<Value>(line.trim_ascii_end()) else {
                action = None;
                if last {
                    self.problems.push(format!("{LOG} line {number} is cut off; it is left out"));
                } else {
                    self.damage(format!("{LOG} line {number} is damaged; it is left out"));
                }
                continue;
            };
            if let Some(name) = field(&parsed, "op").and_then(Value::as_str) {
                if action.is_some() {
                    self.damage(format!("{LOG} line {number}: an operation without data"));
                }
                action = Some((name.to_owned(), field(&parsed, "id").and_then(unsigned), number));
            } else {
                match action.take() {
                    Some((name, Some(id), _)) => self.apply(&name, id, parsed, number),
                    _ => self.damage(format!(
                        "{LOG} line {number}: data without an operation; it is left out"
                    )),
                }
            }
        }
        if let Some((_, _, number)) = action {
            self.problems.push(format!("{LOG} line {number}: the last operation is cut off"));
        }
    }

    fn apply(&mut self, name: &str, id: u64, data: Value, line: usize) {
        if is_at_most(id, self.newest) {
            // From before the checkpoint.
            return;
        }
        if id != self.newest.wrapping_add(1) {
            self.damage(format!(
                "{LOG} line {line}: operation {id} follows {}; what was between is lost",
                self.newest
            ));
        }
        self.newest = id;
        let key = field(&data, "k").and_then(Value::as_str).map(str::to_owned);
        match (name, key, data) {
            ("set", Some(key), mut data) => {
                let value = data.as_object_mut().and_then(|data| {
                    let name = if data.contains_key("v") { "v" } else { "V" };
                    data.remove(name)
                });
                match value {
                    Some(Value::Object(value)) => {
                        self.entries.insert(key, value);
                    }
                    _ => self.damage(format!("{LOG} line {line}: `{key}` has no value")),
                }
            }
            ("remove", Some(key), _) => {
                self.entries.remove(&key);
            }
            (_, None, _) => self.damage(format!("{LOG} line {line}: there is no key")),
            (name, ..) => {
                self.damage(format!("{LOG} line {line}: unknown operation `{name}`"));
            }
        }
    }
}

/// The elements of a damaged array that can be read. Behind one that cannot, it goes on with the next line: each entry
/// stands on a line of its own.
fn readable_elements(text: &[u8]) -> Vec<Value> {
    let mut elements = Vec::new();
    let mut rest = text.trim_ascii_start();
    rest = rest.strip_prefix(b"[").unwrap_or(rest);
    loop {
        rest = rest.trim_ascii_start();
        rest = rest.strip_prefix(b",").unwrap_or(rest).trim_ascii_start();
        if rest.is_empty() || rest.starts_with(b"]") {
            return elements;
        }
        let mut stream = serde_json::Deserializer::from_slice(rest).into_iter::<Value>();
        let next = stream.next();
        let end = stream.byte_offset();
        if let Some(Ok(element)) = next {
            elements.push(element);
            rest = &rest[end..];
            continue;
        }
        let Some(line) = rest.iter().position(|byte| *byte == b'\n') else { return elements };
        rest = &rest[line..];
    }
}

/// A field, whatever the case of its name: older versions write them in capitals.
pub(super) fn field<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    let object = value.as_object()?;
    object
        .get(name)
        .or_else(|| object.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, v)| v))
}

/// A whole number; a checkpoint that was loaded and written again has them as floating point.
pub(super) fn unsigned(value: &Value) -> Option<u64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    value.as_u64().or_else(|| {
        let number = value.as_f64()?;
        ((0.0..=EXACT).contains(&number) && number.fract() == 0.0).then_some(number as u64)
    })
}

/// Whether `one` is not newer than `other`, of numbers that may have gone round.
fn is_at_most(one: u64, other: u64) -> bool {
    one == other || one.wrapping_sub(other) >= 1 << 63
}

/// The text of a file. Paths need not be UTF-8, and what is not stands as U+FFFD.
fn read(fs: &dyn Fs, path: &Path) -> Result<Option<Vec<u8>>, LoadError> {
    let result = fs.open(path).and_then(|file| read_to_end(&*file, FILE_BYTES_MAX));
    match result {
        Ok(bytes) if std::str::from_utf8(&bytes).is_err() => {
            Ok(Some(String::from_utf8_lossy(&bytes).into_owned().into_bytes()))
        }
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if is_missing(&error) => Ok(None),
        Err(source) => Err(LoadError::Disk { path: path.to_owned(), source }),
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
