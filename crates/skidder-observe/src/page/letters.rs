//! The newest dead letters, a page at a time, and how many there are of each reason.
//!
//! The file is read from its end backwards, at most [`BYTES_MAX`] for one answer, however large it and its lines are.

use super::query::Query;
use crate::snapshot::Sources;
use serde_json::{Value as Json, json};
use skidder_os::{Fs, read_exact_at};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// Letters of one answer by default.
const LIMIT: usize = 50;
/// Letters of one answer, at most.
const LIMIT_MAX: usize = 500;
/// Bytes of the file that are read for one answer. A line that is longer is counted, and not shown.
const BYTES_MAX: u64 = 4 << 20;
/// Bytes that are read first.
const BYTES_FIRST: u64 = 128 << 10;
/// Distinct reasons, and sources that are named of each.
const GROUPS_MAX: usize = 50;
const SOURCES_MAX: usize = 3;
/// Shown bytes of a reason.
const REASON_BYTES: usize = 500;

/// Some of a file's lines, the newest first.
struct Lines {
    /// Where each begins, and its text; nothing if it is too long.
    found: Vec<(u64, Option<Vec<u8>>)>,
    /// Where the lines before them end; nothing if there are none.
    before: Option<u64>,
    size: u64,
}

/// The requested output, or the first that keeps dead letters, and its file.
fn output_of<'a>(
    sources: &'a Sources,
    query: &Query,
) -> Option<(&'a crate::OutputSource, &'a PathBuf)> {
    let id = query.get("output");
    let mut kept = sources.outputs.iter().filter_map(|of| Some((of, of.dead_letters.as_ref()?)));
    kept.find(|(of, _)| id.is_none() || of.id.as_deref() == id)
}

/// Answers `?output=ID`: the newest letters by status and kind of reason, those with most first.
pub(crate) fn reasons(sources: &Sources, query: &Query) -> Result<Json, String> {
    let Some((_, path)) = output_of(sources, query) else {
        return Ok(json!({ "groups": [], "looked_at": 0 }));
    };
    let lines = lines_before(&*sources.fs, path, None, usize::MAX)
        .map_err(|error| format!("cannot read `{}`: {error}", path.display()))?;
    let mut groups: BTreeMap<(u64, String), Group> = BTreeMap::new();
    for (_, line) in &lines.found {
        let Some(Ok(letter)) = line.as_deref().map(serde_json::from_slice::<Json>) else {
            continue;
        };
        let key = (letter["status"].as_u64().unwrap_or(0), kind_of(&letter));
        if groups.len() < GROUPS_MAX || groups.contains_key(&key) {
            groups.entry(key).or_default().add(&letter);
        }
    }
    let mut groups: Vec<((u64, String), Group)> = groups.into_iter().collect();
    groups.sort_by_key(|(_, group)| std::cmp::Reverse(group.count));
    let group_json = |((status, kind), group): ((u64, String), Group)| {
        json!({
            "status": status,
            "kind": kind,
            "reason": group.why,
            "count": group.count,
            "newest": group.newest,
            "oldest": group.oldest,
            "sources": group.sources,
        })
    };
    let groups: Vec<Json> = groups.into_iter().map(group_json).collect();
    let from = lines.found.last().map_or(lines.size, |(at, _)| *at);
    Ok(json!({ "groups": groups, "looked_at": lines.size - from }))
}

/// Letters of one kind; they come the newest first.
#[derive(Default)]
struct Group {
    count: u64,
    why: String,
    newest: Json,
    oldest: Json,
    sources: Vec<String>,
}

impl Group {
    fn add(&mut self, letter: &Json) {
        if self.count == 0 {
            self.why = why_of(letter);
            self.newest = letter["@timestamp"].clone();
        }
        self.count += 1;
        self.oldest = letter["@timestamp"].clone();
        if let Some(source) = letter["source"].as_str()
            && self.sources.len() < SOURCES_MAX
            && !self.sources.iter().any(|known| known == source)
        {
            self.sources.push(source.to_owned());
        }
    }
}

/// The error of Elasticsearch in a letter; other outputs have any text.
fn error_of(letter: &Json) -> Option<Json> {
    let error: Json = serde_json::from_str(letter["reason"].as_str()?).ok()?;
    error["type"].is_string().then_some(error)
}

/// The kind of a refusal: the type of the server's error, or the beginning of the reason. `skidder deadletters` takes
/// it as `--reason`.
fn kind_of(letter: &Json) -> String {
    match error_of(letter) {
        Some(error) => error["type"].as_str().unwrap_or_default().to_owned(),
        None => cut(letter["reason"].as_str().unwrap_or_default(), 80),
    }
}

/// The reason for people.
fn why_of(letter: &Json) -> String {
    let Some(error) = error_of(letter) else {
        return cut(letter["reason"].as_str().unwrap_or_default(), REASON_BYTES);
    };
    let mut parts: Vec<&str> = error["type"].as_str().into_iter().collect();
    let mut next = Some(&error);
    while let Some(error) = next {
        parts.extend(error["reason"].as_str());
        next = error.get("caused_by").filter(|cause| cause.is_object());
    }
    cut(&parts.join(": "), REASON_BYTES)
}

fn cut(text: &str, bytes: usize) -> String {
    text[..text.floor_char_boundary(bytes)].to_owned()
}

/// Answers `?output=ID&before=OFFSET&limit=N&status=N&reason=KIND&source=PATH`; without an output for the first that has dead
/// letters. With the last three `before` may lead on although a page is empty.
pub(crate) fn letters(sources: &Sources, query: &Query) -> Result<Json, String> {
    let limit = query.number("limit")?.unwrap_or(LIMIT).clamp(1, LIMIT_MAX);
    let before = query.number("before")?;
    let status = query.number::<u64>("status")?;
    let (kind, source) = (query.get("reason"), query.get("source"));
    let Some((output, path)) = output_of(sources, query) else {
        return Ok(json!({ "letters": [], "before": null, "size": 0, "path": null }));
    };
    let chooses = status.is_some() || kind.is_some() || source.is_some();
    let looked = if chooses { usize::MAX } else { limit };
    let mut lines = lines_before(&*sources.fs, path, before, looked)
        .map_err(|error| format!("cannot read `{}`: {error}", path.display()))?;
    let holds = |letter: &Json| {
        status.is_none_or(|status| letter["status"] == status)
            && kind.is_none_or(|kind| kind_of(letter) == kind)
            && source.is_none_or(|source| letter["source"] == source)
    };
    let mut letters = Vec::new();
    for (at, line) in lines.found {
        let letter = letter(at, line);
        if !chooses || holds(&letter) {
            letters.push(letter);
        }
        if letters.len() == limit {
            lines.before = (at > 0).then_some(at);
            break;
        }
    }
    Ok(json!({
        "output": output.id,
        "path": path.to_string_lossy(),
        "size": lines.size,
        "before": lines.before,
        "letters": letters,
    }))
}

fn letter(at: u64, line: Option<Vec<u8>>) -> Json {
    let Some(line) = line else {
        return json!({ "at": at, "problem": "this letter is too long to be shown" });
    };
    match serde_json::from_slice::<Json>(&line) {
        Ok(Json::Object(mut letter)) => {
            letter.insert("at".to_owned(), at.into());
            let mut letter = Json::Object(letter);
            letter["why"] = why_of(&letter).into();
            letter
        }
        _ => json!({ "at": at, "problem": "this line is no letter" }),
    }
}

/// Up to `limit` whole lines that end at `before` or earlier.
fn lines_before(fs: &dyn Fs, path: &Path, before: Option<u64>, limit: usize) -> io::Result<Lines> {
    let none = Lines { found: Vec::new(), before: None, size: 0 };
    let file = match fs.open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(none),
        Err(error) => return Err(error),
    };
    let size = file.metadata()?.size;
    let end = before.unwrap_or(size).min(size);
    let mut length = BYTES_FIRST.min(end);
    loop {
        let start = end - length;
        let mut bytes = vec![0; length as usize];
        read_exact_at(&*file, &mut bytes, start)?;
        let lines = whole_lines(&bytes, start, limit);
        let is_enough = lines.len() == limit || start == 0;
        if !is_enough && length < BYTES_MAX {
            length = (length * 4).min(BYTES_MAX).min(end);
            continue;
        }
        let first = lines.last().map(|(at, _)| *at);
        let mut lines: Vec<_> =
            lines.into_iter().map(|(at, line)| (at, Some(line.to_vec()))).collect();
        if let Some(at) = first {
            return Ok(Lines { found: lines, before: (at > 0).then_some(at), size });
        }
        if start > 0 {
            // The line that ends here is longer than all that was read.
            lines.push((start, None));
        }
        return Ok(Lines { found: lines, before: (start > 0).then_some(start), size });
    }
}

/// The last whole lines of a part of a file that begins at `start`, the newest first. A last line without an end is left out.
fn whole_lines(bytes: &[u8], start: u64, limit: usize) -> Vec<(u64, &[u8])> {
    let mut lines = Vec::new();
    let Some(mut end) = bytes.iter().rposition(|&byte| byte == b'\n') else { return lines };
    while lines.len() < limit {
        let feed = bytes[..end].iter().rposition(|&byte| byte == b'\n');
        match feed {
            Some(feed) => lines.push((start + feed as u64 + 1, &bytes[feed + 1..end])),
            None if start == 0 => lines.push((0, &bytes[..end])),
            None => {}
        }
        let Some(feed) = feed else { break };
        end = feed;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use skidder_testkit::{SimClock, SimFs};

    fn pages(text: &[u8], limit: usize) -> Vec<Vec<(u64, Option<usize>)>> {
        let fs = SimFs::new(&SimClock::new());
        fs.write_as_other("/letters", text);
        let mut pages = Vec::new();
        let mut before = None;
        loop {
            let page = lines_before(&fs, Path::new("/letters"), before, limit).expect("readable");
            let shown = |(at, line): &(u64, Option<Vec<u8>>)| (*at, line.as_ref().map(Vec::len));
            pages.push(page.found.iter().map(shown).collect());
            before = page.before;
            if before.is_none() {
                return pages;
            }
        }
    }

    #[test]
    fn the_newest_come_first_and_each_comes_once() {
        assert_eq!(pages(b"", 2), [vec![]]);
        assert_eq!(pages(b"half", 2), [vec![]]);
        let text = b"a\nbb\nccc\nhalf a line";
        assert_eq!(pages(text, 2), [vec![(5, Some(3)), (2, Some(2))], vec![(0, Some(1))]]);
        assert_eq!(pages(text, 3).concat(), pages(text, 1).concat());
    }

    #[test]
    fn a_line_beyond_the_bound_is_told_and_passed() {
        let mut text = b"first\n".to_vec();
        text.resize(text.len() + 2 * BYTES_MAX as usize, b'x');
        text.extend_from_slice(b"\nlast\n");
        let all = pages(&text, 10).concat();
        assert_eq!(all.first().map(|(_, length)| *length), Some(Some(4)));
        assert!(all.iter().any(|(_, length)| length.is_none()), "{all:?}");
        assert_eq!(all.last(), Some(&(0, Some(5))));
    }

    #[test]
    fn without_a_file_there_are_none() {
        let fs = SimFs::new(&SimClock::new());
        let page = lines_before(&fs, Path::new("/none"), None, 5).expect("no error");
        assert!(page.found.is_empty() && page.before.is_none());
    }
}
