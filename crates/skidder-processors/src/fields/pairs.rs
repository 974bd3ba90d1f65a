//! What processors over several fields share: `from` and `to`, paths in settings, and working through a list
//! of which one may fail.

use crate::plan::Constants;
use skidder_config::{Group, Key, Parts, Section, Setting, settings};
use skidder_event::{EventMut, Path};

settings! {
    /// An item of `fields`: from where to where.
    pub(crate) static PAIR = Group::new("processor.pair", "From where to where.").inline();

    FROM: String = Key::new("from").required().about("a field");
    TO: String = Key::new("to").required().about("where it goes");
}

/// The list of `from` and `to` at `key`. Returns `None`, and reports the problem, if it is missing
/// or has an invalid entry.
pub(crate) fn read_pairs(settings: &Section<'_>, key: &Key<Parts>) -> Option<Vec<(Path, Path)>> {
    let sections = settings.parts(key);
    if sections.is_empty() {
        let message = format!("`{}` is missing", settings.path_of(key.name()));
        settings.problem(key.name(), message, "give a list of `from: name` with `to: name`");
        return None;
    }
    let pairs: Vec<_> = sections.iter().map(read_pair).collect();
    pairs.into_iter().collect()
}

/// One `from` and `to`. Returns `None` if one is missing or not a path; reports both.
pub(crate) fn read_pair(section: &Section<'_>) -> Option<(Path, Path)> {
    let (from, to) = (required_path(section, &FROM), required_path(section, &TO));
    from.zip(to)
}

/// The field path at `key`. Returns `None`, and reports the problem, if it is missing or invalid.
pub(crate) fn required_path(section: &Section<'_>, key: &Key<String>) -> Option<Path> {
    let path = section.get(key).try_map(parse).optional();
    if !section.has_key(key) {
        let message = format!("`{}` is missing", section.path_of(key.name()));
        section.problem(key.name(), message, "");
    }
    path
}

/// The field path at `key`, if it is set and not empty; reports an invalid one.
pub(crate) fn optional_path(section: &Section<'_>, key: &Key<String>) -> Option<Path> {
    filled_path(section.get(key))
}

/// The field path of a setting, if it is set and not empty; reports an invalid one.
pub(crate) fn filled_path(setting: Setting<'_, String>) -> Option<Path> {
    let parse = |text: String| if text.is_empty() { Ok(None) } else { parse(text).map(Some) };
    setting.try_map(parse).optional().flatten()
}

/// The field path at `key`, or its default if it is not set. Returns `None`, and reports the problem,
/// if it is invalid.
pub(crate) fn path_at(section: &Section<'_>, key: &Key<String>) -> Option<Path> {
    let path = section.get(key).try_map(parse);
    if path.is_set() { path.optional() } else { Path::parse(key.default_value()?).ok() }
}

/// The field paths at `key`, at least one. Returns `None`, and reports the problem, if there are
/// none or one is invalid.
pub(crate) fn required_paths(section: &Section<'_>, key: &Key<Vec<String>>) -> Option<Vec<Path>> {
    let strings = section.get(key);
    let paths = if strings.is_set() { strings.try_map(parse_all).optional()? } else { Vec::new() };
    if paths.is_empty() {
        let message = format!("`{}` names no field", section.path_of(key.name()));
        section.problem(key.name(), message, "give a list of field names");
        return None;
    }
    Some(paths)
}

/// The field paths at `key`, perhaps none; reports invalid ones.
pub(crate) fn optional_paths(section: &Section<'_>, key: &Key<Vec<String>>) -> Vec<Path> {
    section.get(key).try_map(parse_all).optional().unwrap_or_default()
}

fn parse_all(texts: Vec<String>) -> Result<Vec<Path>, String> {
    texts.into_iter().map(parse).collect()
}

fn parse(text: String) -> Result<Path, String> {
    Path::parse(&text).map_err(|error| error.to_string())
}

/// Does `work` with every item. With `stop` one that fails ends the list; otherwise what it did to
/// the event is undone, and the others go on.
///
/// # Errors
/// That of the first item that failed, with `stop`. What it and those before it did is not undone:
/// the caller of the processor does that.
pub(crate) fn run_each<T>(
    event: &mut EventMut<'_>,
    items: &[T],
    stop: bool,
    mut work: impl FnMut(&mut EventMut<'_>, &T) -> Result<(), String>,
) -> Result<(), String> {
    if stop {
        return items.iter().try_for_each(|item| work(event, item));
    }
    for item in items {
        let mark = event.mark();
        if work(event, item).is_err() {
            event.rollback(mark);
        }
    }
    Ok(())
}

/// The same with the constants of a source. `false`: an item failed, with `stop`, and they are as they were.
pub(crate) fn fold_each<T>(
    constants: &mut Constants,
    items: &[T],
    stop: bool,
    mut work: impl FnMut(&mut Constants, &T) -> bool,
) -> bool {
    let mut after = constants.clone();
    for item in items {
        let mut next = after.clone();
        if work(&mut next, item) {
            after = next;
        } else if stop {
            return false;
        }
    }
    *constants = after;
    true
}
