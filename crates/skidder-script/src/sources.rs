//! The text of a program: in the configuration, in a file, in several files.

use skidder_config::{Group, Key, Section, settings};
use skidder_os::{FileKind, Fs, read_to_end};
use std::path::{Path, PathBuf};

settings! {
    /// Where the text of a program is.
    pub(crate) static SOURCES = Group::new("script.sources", "Where the text of a program is.");

    pub(crate) SOURCE: String = Key::new("source")
        .about("the program; exactly one of `source`, `file` and `files` is needed");
    pub(crate) FILE: String = Key::new("file")
        .about("the file of the program, relative to the folder of the configuration; `*`, `?` and \
                `[…]` in its name stand for several");
    pub(crate) FILES: Vec<String> = Key::new("files")
        .default_words("none")
        .about("several such files, in this order");
}

/// Bytes of a program, all its files together. More is refused at the start.
const SOURCE_BYTES_MAX: usize = 4 << 20;

/// The key that the program is under, its name for messages, and its text. Returns `None`, and
/// reports the problem, if there is none.
pub(crate) fn read(settings: &Section<'_>, fs: &dyn Fs) -> Option<(&'static str, String, String)> {
    let source = settings.get(&SOURCE).optional().filter(|source| !source.is_empty());
    let file = settings.get(&FILE).optional().filter(|file| !file.is_empty());
    let files = settings.get(&FILES).optional().unwrap_or_default();
    let given = [source.is_some(), file.is_some(), !files.is_empty()];
    match given.iter().filter(|given| **given).count() {
        0 => {
            let message = format!("`{}` has no script", settings.path());
            settings.problem("", message, "give it as `source`, or name its `file` or `files`");
            return None;
        }
        1 => {}
        _ => {
            let message = format!("`{}` has more than one script", settings.path());
            settings.problem("", message, "only one of `source`, `file` and `files` can be");
            return None;
        }
    }
    if let Some(source) = source {
        return Some((SOURCE.name(), "inline.js".to_owned(), source));
    }
    let (key, names) = match file {
        Some(file) => (FILE.name(), vec![file]),
        None => (FILES.name(), files),
    };
    match load(settings, fs, &names) {
        Ok((name, text)) => Some((key, name, text)),
        Err(why) => {
            settings.problem(key, format!("`{}`: {why}", settings.path_of(key)), "");
            None
        }
    }
}

/// The texts of all files, one after the other. A relative name is relative to the configuration's folder.
fn load(settings: &Section<'_>, fs: &dyn Fs, names: &[String]) -> Result<(String, String), String> {
    let source = settings.position().map(|position| position.source().name().to_owned());
    let folder = source.as_deref().map(Path::new).and_then(Path::parent).unwrap_or(Path::new(""));
    let mut paths = Vec::new();
    for name in names {
        let path = folder.join(name);
        if name.contains(['*', '?', '[']) {
            matching(fs, &path, &mut paths)?;
        } else {
            paths.push(path);
        }
    }
    if paths.is_empty() {
        return Err(format!("no sources were found in {}", names.join(", ")));
    }
    let mut text = String::new();
    for path in &paths {
        let shown = path.display();
        let wrong = |error: std::io::Error| format!("failed to read file {shown}: {error}");
        let file = fs.open(path).map_err(wrong)?;
        let bytes = read_to_end(&*file, SOURCE_BYTES_MAX - text.len()).map_err(wrong)?;
        text.push_str(&String::from_utf8(bytes).map_err(|_| format!("{shown} is not UTF-8"))?);
    }
    let names: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
    Ok((names.join(";"), text))
}

/// The files of a folder whose names fit the last part of `pattern`, in the order of their names.
fn matching(fs: &dyn Fs, pattern: &Path, out: &mut Vec<PathBuf>) -> Result<(), String> {
    let folder = pattern.parent().unwrap_or(Path::new(""));
    if folder.to_string_lossy().contains(['*', '?', '[']) {
        return Err(format!("{}: only the name of a file may have wildcards", pattern.display()));
    }
    let wanted = pattern.file_name().unwrap_or_default().to_string_lossy();
    let wanted: Vec<char> = wanted.chars().collect();
    let mut found = Vec::new();
    let listed = fs.read_dir(folder, &mut |entry| {
        let name: Vec<char> = entry.name.to_string_lossy().chars().collect();
        if entry.kind != FileKind::Directory && fits(&wanted, &name) {
            found.push(folder.join(entry.name));
        }
    });
    listed.map_err(|error| format!("failed to list {}: {error}", folder.display()))?;
    found.sort();
    out.append(&mut found);
    Ok(())
}

/// Whether a name fits a pattern of `*`, `?` and `[a-c]`.
fn fits(pattern: &[char], name: &[char]) -> bool {
    match pattern {
        [] => name.is_empty(),
        ['*', rest @ ..] => (0..=name.len()).any(|skip| fits(rest, &name[skip..])),
        ['?', rest @ ..] => !name.is_empty() && fits(rest, &name[1..]),
        ['[', rest @ ..] => {
            let Some(end) = rest.iter().skip(1).position(|letter| *letter == ']') else {
                return false;
            };
            let (class, rest) = (&rest[..=end], &rest[end + 2..]);
            name.first().is_some_and(|letter| in_class(class, *letter)) && fits(rest, &name[1..])
        }
        [letter, rest @ ..] => name.first() == Some(letter) && fits(rest, &name[1..]),
    }
}

fn in_class(class: &[char], letter: char) -> bool {
    let (negated, class) = match class {
        ['^', rest @ ..] if !rest.is_empty() => (true, rest),
        class => (false, class),
    };
    let mut rest = class;
    let mut found = false;
    loop {
        rest = match rest {
            [] => return found != negated,
            [low, '-', high, behind @ ..] => {
                found |= (*low..=*high).contains(&letter);
                behind
            }
            [one, behind @ ..] => {
                found |= *one == letter;
                behind
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_patterns() {
        let fits = |pattern: &str, name: &str| {
            fits(&pattern.chars().collect::<Vec<_>>(), &name.chars().collect::<Vec<_>>())
        };
        for (pattern, name) in [
            ("*.js", "a.js"),
            ("?.js", "a.js"),
            ("[a-c]*.js", "b1.js"),
            ("[^a]", "b"),
            ("a*c", "abbc"),
        ] {
            assert!(fits(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("*.js", "a.jsx"),
            ("?.js", ".js"),
            ("[a-c]", "d"),
            ("[^a]", "a"),
            ("[a", "a"),
            ("a", ""),
        ] {
            assert!(!fits(pattern, name), "{pattern} {name}");
        }
    }
}
