//! `/files`: what every file is doing and why, a page at a time.

use crate::snapshot::{InputSource, OutputSource, Sources};
use crate::sources::source_json;
use serde_json::{Map, Value as Json, json};
use skidder_event::{DropReason, Precision, TimeText};
use skidder_input_file::AskError;
use skidder_os::Timestamp;
use skidder_pipeline::Ledger;
use skidder_read::{FileError, FileLook, FileQuery, FileState};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Files of one answer by default: about 2 MB.
const LIMIT: usize = 5000;
/// Files of one answer, at most.
const LIMIT_MAX: usize = 10_000;
/// How long an answer is waited for: a scan of very many files comes first.
const PATIENCE: Duration = Duration::from_secs(20);

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FilesError {
    /// Ask otherwise.
    Question(String),
    /// Ask again later.
    Later(String),
}

/// A query: `?output=ID&input=N&after=PATH&limit=N&path=PATH…`. Inputs are counted on from one output to the next,
/// or within the given one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FilesQuestion {
    output: Option<String>,
    input: usize,
    query: FileQuery,
}

impl FilesQuestion {
    /// Reads the query of a URL.
    pub(crate) fn parse(query: &str) -> Result<Self, FilesError> {
        let mut question = Self::default();
        question.query.limit = LIMIT;
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let number = || {
                value.parse::<usize>().map_err(|_| {
                    FilesError::Question(format!("`{name}` is `{value}`; expected a number"))
                })
            };
            match name {
                "output" => question.output = Some(value.to_owned()),
                "input" => question.input = number()?,
                "limit" => question.query.limit = number()?.clamp(1, LIMIT_MAX),
                "after" => question.query.after = Some(path_of(value)),
                "path" => question.query.paths.push(path_of(value)),
                "pretty" => {}
                name => {
                    let message = format!(
                        "there is no `{name}` here; `output`, `input`, `after`, `limit`, `path` are"
                    );
                    return Err(FilesError::Question(message));
                }
            }
        }
        Ok(question)
    }
}

/// Asks the scanner; blocks until it answers. The document has `files`, and in `next` the query for those
/// behind them, or nothing if these were the last.
pub(crate) fn files(sources: &Sources, question: FilesQuestion) -> Result<Json, FilesError> {
    let FilesQuestion { output, input, query } = question;
    let several = sources.outputs.len() > 1;
    let wanted =
        |of: &&OutputSource| output.is_none() || (several && of.id.as_deref() == output.as_deref());
    let outputs: Vec<&OutputSource> = sources.outputs.iter().filter(wanted).collect();
    if outputs.is_empty() {
        let message = format!("there is no output `{}`", output.unwrap_or_default());
        return Err(FilesError::Question(message));
    }
    let lists: Vec<_> = outputs.iter().map(|of| of.inputs.list()).collect();
    let inputs = lists.iter().map(|list| list.len()).sum();
    let Some((of, source)) = find(&outputs, &lists, input) else {
        let message = format!("there is no input number {input}; the first one is 0");
        return Err(FilesError::Question(message));
    };
    if let Some(task) = source.counts.task() {
        let next =
            (input + 1 < inputs).then(|| question_of(input + 1, None, &query, output.as_deref()));
        // Sources have no path, so a question with paths is about files.
        let most = if query.paths.is_empty() { query.limit } else { 0 };
        let (open, _) = task.metrics().sources.list(most, sources.clock.monotonic());
        let now = sources.clock.wall();
        let open: Vec<Json> = open.iter().map(|of| source_json(source, of, now)).collect();
        return Ok(json!({"files": [], "sources": open, "next": next}));
    }
    let Some(looks) = &of.looks else {
        return Err(FilesError::Later("there are no files here".to_owned()));
    };
    let page = looks.page(source.slot, query.clone(), PATIENCE).map_err(|error| match error {
        AskError::NoInput(_) => FilesError::Question(error.to_string()),
        AskError::Busy | AskError::Ended => FilesError::Later(error.to_string()),
    })?;
    let output_full = of.queue.is_blocked();
    let next = match page.files.last().filter(|_| page.more) {
        Some(last) => Some((input, Some(&*last.path))),
        None => (input + 1 < inputs).then_some((input + 1, None)),
    };
    let next = next.map(|(input, after)| question_of(input, after, &query, output.as_deref()));
    let id = of.id.as_deref().filter(|_| several);
    let name = Some(&source.title).filter(|title| **title != source.id);
    let to_json = |file| {
        let mut json = file_json(&source.id, id, file, output_full);
        if let Some(name) = name {
            json["input_name"] = name.as_str().into();
        }
        json
    };
    let files: Vec<Json> = page.files.iter().map(to_json).collect();
    Ok(json!({"files": files, "next": next}))
}

/// An input, and the output that it feeds there.
fn find<'a>(
    outputs: &[&'a OutputSource],
    lists: &'a [Arc<[InputSource]>],
    mut input: usize,
) -> Option<(&'a OutputSource, &'a InputSource)> {
    for (&output, list) in outputs.iter().zip(lists) {
        if let Some(source) = list.get(input) {
            return Some((output, source));
        }
        input -= list.len();
    }
    None
}

/// The query for the files of an input behind `after`, among the same paths.
fn question_of(
    input: usize,
    after: Option<&Path>,
    query: &FileQuery,
    output: Option<&str>,
) -> String {
    let mut question = format!("input={input}&limit={}", query.limit);
    if let Some(after) = after {
        add(&mut question, "after", &encoded(after));
    }
    for path in &query.paths {
        add(&mut question, "path", &encoded(path));
    }
    if let Some(output) = output {
        add(&mut question, "output", output);
    }
    question
}

fn add(text: &mut String, name: &str, value: &str) {
    write!(text, "&{name}={value}").expect("writing to a string cannot fail");
}

/// A file as `/files` and `skidder files --json` show it; `output` is the id of one of several.
pub fn file_json(input: &str, output: Option<&str>, file: &FileLook, output_full: bool) -> Json {
    let (state, reason) = match (&file.reason, file.state) {
        (None, FileState::Reading) if output_full => ("blocked", Some("output is full".to_owned())),
        (reason, state) => (state.name(), reason.as_ref().map(ToString::to_string)),
    };
    let modified = (file.modified != Timestamp::default()).then(|| time_text(file.modified));
    let mut json = json!({
        "path": file.path.to_string_lossy(),
        "input": input,
        "key": file.key,
        "identity": file.identity,
        "fingerprint_len": file.fingerprint_len,
        "generation": file.generation,
        "size": file.size,
        "modified": modified,
        "compressed": file.compressed,
        "cursor": file.cursor,
        "read": file.read,
        "behind": file.behind,
        "state": state,
        "reason": reason,
        "deleted_in_ms": file.deleted_in.map(millis),
        "error": file.error.as_ref().map(error_json),
    });
    if let Some(output) = output {
        json["output"] = output.into();
    }
    json
}

/// An error as it is shown.
pub(crate) fn error_json(error: &FileError) -> Json {
    json!({ "at": time_text(error.at), "path": error.path.to_string_lossy(), "text": error.text })
}

/// The ledger with its sum: what comes in, and where it is.
pub(crate) fn ledger_json(ledger: &Ledger) -> Json {
    let dropped = ledger.dropped();
    let reasons = DropReason::ALL.into_iter().filter(|reason| dropped.get(*reason) > 0);
    let reasons: Map<String, Json> =
        reasons.map(|reason| (reason.name().to_owned(), dropped.get(reason).into())).collect();
    json!({
        "read": ledger.read(),
        "read_bytes": ledger.read_bytes(),
        "recovered": ledger.recovered(),
        "delivered": ledger.delivered(),
        "dropped": dropped.total(),
        "reasons": reasons,
        "dead_lettered": ledger.dead_lettered(),
        "stored": ledger.stored(),
        "in_flight": ledger.in_flight(),
        "adds_up": ledger.adds_up(),
    })
}

/// A time in RFC 3339.
pub(crate) fn time_text(at: Timestamp) -> String {
    let mut text = TimeText::new(Precision::Millisecond);
    String::from_utf8_lossy(text.format(at.0)).into_owned()
}

/// A span in whole milliseconds.
pub(crate) fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// A path as it may stand in a URL.
pub fn encoded(path: &Path) -> String {
    let mut text = String::new();
    for &byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            write!(text, "%{byte:02X}").expect("writing to a string cannot fail");
        }
    }
    text
}

/// The path that [`encoded`] made a text of.
pub(crate) fn path_of(text: &str) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        let digits = behind.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        if let Some(escaped) = escaped.filter(|_| byte == b'%') {
            bytes.push(escaped);
            rest = &behind[2..];
        } else {
            bytes.push(byte);
            rest = behind;
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    #[test]
    fn a_path_survives_the_way_through_a_url() {
        for bytes in [&b"/var/log/a b&c=d%.log"[..], b"/x\xff\n", "/tm\u{e9}.log".as_bytes(), b"%4"]
        {
            let path = Path::new(OsStr::from_bytes(bytes));
            let text = encoded(path);
            assert!(text.is_ascii() && !text.contains(['&', '=', ' ']), "{text}");
            assert_eq!(path_of(&text), path);
        }
    }

    #[test]
    fn a_question_is_read_and_a_wrong_one_is_told() {
        let question =
            FilesQuestion::parse("input=2&after=/a%20b&limit=7&path=/x&path=/y").unwrap();
        let query = FileQuery {
            after: Some("/a b".into()),
            limit: 7,
            paths: vec!["/x".into(), "/y".into()],
        };
        assert_eq!(question, FilesQuestion { output: None, input: 2, query });
        assert_eq!(FilesQuestion::parse("").unwrap().query.limit, LIMIT);
        assert_eq!(FilesQuestion::parse("limit=0&pretty").unwrap().query.limit, 1);
        for wrong in ["input=x", "limit=", "color=red"] {
            assert!(matches!(FilesQuestion::parse(wrong), Err(FilesError::Question(_))), "{wrong}");
        }
    }
}
