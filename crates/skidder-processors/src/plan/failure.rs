//! A processor that failed on an event, and the notes about it on the event.

use skidder_event::{Cell, EventMut, Path, Value, ValueRef};
use smallvec::{SmallVec, smallvec};
use std::sync::LazyLock;

/// Where the failure of a processor is noted.
pub(crate) static ERROR_MESSAGE: LazyLock<Path> =
    LazyLock::new(|| Path::parse("error.message").expect("a constant that is a path"));

/// Where parsers and processors add flags.
pub(crate) static LOG_FLAGS: LazyLock<Path> =
    LazyLock::new(|| Path::parse("log.flags").expect("a constant that is a path"));

/// Why a processor failed on an event. The caller restores the event, writes the notes on it, and goes on with
/// the next processor.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{reason}")]
pub struct Failure {
    reason: String,
    how: How,
    notes: Vec<Note>,
}

/// Where a failure is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// Counted, in `error.message`, and the end of an `if`/`then`/`else` branch.
    Noted,
    /// The same, but `error.message` keeps what it has, and becomes a list.
    NotedBehind,
    /// Counted, and the end of a branch; the event only gets the notes.
    Counted,
    /// The configuration ignores it: the event only gets the notes, everything goes on.
    Ignored,
}

/// A note on an event whose processor failed.
#[derive(Clone, Debug, PartialEq)]
enum Note {
    Put(Path, Value),
    /// One more element of a list, which is made if need be.
    Append(Path, Value),
}

impl Failure {
    /// A failure that is noted in `error.message`.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), how: How::Noted, notes: Vec::new() }
    }

    /// A failure that is noted in `error.message`, after an existing message.
    pub fn behind(reason: impl Into<String>) -> Self {
        Self { how: How::NotedBehind, ..Self::new(reason) }
    }

    /// A failure that is counted, and of which the event only gets the notes.
    pub fn unnoted(reason: impl Into<String>) -> Self {
        Self { how: How::Counted, ..Self::new(reason) }
    }

    /// Makes it an ignored failure if `ignore` (`ignore_failure`): the event goes on
    /// as it came, with the notes alone.
    pub fn ignored(mut self, ignore: bool) -> Self {
        if ignore {
            self.how = How::Ignored;
        }
        self
    }

    /// Adds `flag` to `log.flags`.
    pub fn flag(self, flag: &str) -> Self {
        self.append(LOG_FLAGS.clone(), flag)
    }

    /// Adds an element to the list at `path`.
    pub fn append(mut self, path: Path, element: &str) -> Self {
        self.notes.push(Note::Append(path, Value::from(element)));
        self
    }

    /// Sets the field at `path`.
    pub fn put(mut self, path: Path, value: impl Into<Value>) -> Self {
        self.notes.push(Note::Put(path, value.into()));
        self
    }

    /// In words.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Whether it counts as a failure of its processor, and ends a branch.
    pub(crate) fn counts(&self) -> bool {
        self.how != How::Ignored
    }

    /// Notes the failure on a restored event. Omits notes where a value that is not an object or list is in the
    /// way.
    pub(crate) fn note(&self, event: &mut EventMut<'_>) {
        if self.how == How::Noted {
            let mark = event.mark();
            if event.put_text(&ERROR_MESSAGE, self.reason.as_bytes()).is_err() {
                event.rollback(mark);
            }
        } else if self.how == How::NotedBehind {
            add_error(event, &self.reason, true);
        }
        for note in &self.notes {
            let mark = event.mark();
            let written = match note {
                Note::Put(path, value) => event.put(path, value).is_ok(),
                Note::Append(path, value) => {
                    append(event, path, std::slice::from_ref(value)).is_ok()
                }
            };
            if !written {
                event.rollback(mark);
            }
        }
    }
}

/// Adds a text to `error.message`: the value if there is none, else one more element of a list. One
/// that is there already is not added unless `twice`; a field that holds neither a text nor a list
/// stays as it is.
pub(crate) fn add_error(event: &mut EventMut<'_>, text: &str, twice: bool) {
    event.prepare(&ERROR_MESSAGE);
    let mark = event.mark();
    let mut cells: SmallVec<[Cell; 16]> = match event.copy(&ERROR_MESSAGE) {
        None => SmallVec::new(),
        Some(cell @ Cell::Str(_)) => smallvec![cell],
        Some(list @ Cell::List(_)) => event.list_cells(list),
        Some(_) => return,
    };
    let is_known = |cell: &Cell| match cell {
        Cell::Str(known) => event.text(*known) == text.as_bytes(),
        _ => false,
    };
    if !twice && cells.iter().any(is_known) {
        return;
    }
    let new = Cell::Str(event.store_text(text.as_bytes()));
    let value = if cells.is_empty() {
        new
    } else {
        cells.push(new);
        event.store_list(&cells)
    };
    if event.put_cell(&ERROR_MESSAGE, value).is_err() {
        event.rollback(mark);
    }
}

/// A message, made only if it is used.
pub(crate) fn message_if(is_used: bool, message: std::fmt::Arguments<'_>) -> String {
    if is_used { message.to_string() } else { String::new() }
}

/// Appends values to the list at a path, which is made if it is missing. The error names the value in
/// the way; the event may be half changed then.
pub(crate) fn append(
    event: &mut EventMut<'_>,
    path: &Path,
    values: &[Value],
) -> Result<(), &'static str> {
    event.prepare(path);
    let list = match event.as_ref().get(path) {
        None => event.store_items(values),
        Some(ValueRef::List(_)) => {
            let mut cells: SmallVec<[Cell; 16]> = SmallVec::new();
            cells.extend(event.copy(path).into_iter().flat_map(|list| event.list_cells(list)));
            for value in values {
                cells.push(event.store(value));
            }
            event.store_list(&cells)
        }
        Some(_) => return Err("it exists and is not a list"),
    };
    event.put_cell(path, list).map_err(|error| match error {
        skidder_event::EditError::NotAnObject(_) => "a part of its path is not an object",
        skidder_event::EditError::NotATime => "it takes only a time",
    })
}
