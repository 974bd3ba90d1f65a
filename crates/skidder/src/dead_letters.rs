//! `skidder deadletters`: events that an output refused. Showing works while skidder is running; sending them again
//! and dropping them does not, because that writes the same file.

mod letter;
mod redrive;

use crate::cli::{DeadLettersCommand, Global, WhichLetters};
use crate::logging;
use crate::registry::{Site, Store};
use crate::system::System;
use crate::table::{or_dash, table};
use crate::terminal::{eprint, print};
use anyhow::{Context as _, Result, bail};
use letter::{Letter, LetterError};
use serde_json::{Value, json};
use skidder_os::Fs;
use skidder_pipeline::{KeptLetters, LetterFate};
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::process::ExitCode;
use tracing::Level;

/// Runs the subcommand.
pub(crate) fn dispatch(
    what: &DeadLettersCommand,
    global: &Global,
    system: &System,
) -> Result<ExitCode> {
    logging::start(if global.debug.is_some() { Level::DEBUG } else { Level::WARN });
    match what {
        DeadLettersCommand::List { which, each, limit, json } => {
            let stores = Site::of(global, system)?.stores(which.output.as_deref(), system)?;
            let rows = if *each {
                list_each(&stores, &system.absolute(which), *limit, system)?
            } else {
                list_reasons(&stores, &system.absolute(which), system)?
            };
            print(&if *json { rows.as_json() } else { rows.as_text(*each) })?;
            Ok(ExitCode::SUCCESS)
        }
        DeadLettersCommand::Show { wanted, output, json } => {
            let store = Site::of(global, system)?.store(output.as_deref(), system)?;
            show(&store, wanted, *json, system)
        }
        DeadLettersCommand::Redrive { which, dry_run } => {
            redrive::redrive(&system.absolute(which), *dry_run, global, system)
        }
        DeadLettersCommand::Drop { which, all, dry_run } => {
            if which.chooses() == *all {
                bail!("say which letters, or `--all`; `skidder deadletters list` shows them");
            }
            drop_letters(&system.absolute(which), *dry_run, global, system)
        }
    }
}

impl System {
    /// The same with the path that it has in events.
    fn absolute(&self, which: &WhichLetters) -> WhichLetters {
        let source = which.source.as_ref().map(|path| self.directory.join(path));
        WhichLetters { source, ..which.clone() }
    }
}

/// What a list shows: a row for each letter or reason.
#[derive(Default)]
struct Rows {
    shown: Vec<Value>,
    /// Letters that were meant.
    letters: u64,
    /// Lines that are no letters.
    unreadable: u64,
    /// Whether there are several outputs.
    named: bool,
}

impl Rows {
    fn as_json(&self) -> String {
        let Self { shown, letters, unreadable, .. } = self;
        format!("{:#}\n", json!({"count": letters, "unreadable": unreadable, "letters": shown}))
    }

    fn as_text(&self, each: bool) -> String {
        // A single output needs no id.
        let mut text = match (each, self.named) {
            (true, true) => self.table([
                "number",
                "@timestamp",
                "status",
                "output",
                "source",
                "offset",
                "kind",
                "reason",
            ]),
            (true, false) => {
                self.table(["number", "@timestamp", "status", "source", "offset", "kind", "reason"])
            }
            (false, true) => self.table([
                "count", "newest", "oldest", "number", "output", "status", "kind", "reason",
            ]),
            (false, false) => {
                self.table(["count", "newest", "oldest", "number", "status", "kind", "reason"])
            }
        };
        text.push_str(&format!("{} letters", self.letters));
        if self.unreadable > 0 {
            text.push_str(&format!("; {} lines are no letters", self.unreadable));
        }
        text.push('\n');
        text
    }

    fn table<const N: usize>(&self, keys: [&str; N]) -> String {
        let text = |row: &Value, key: &str| match &row[key] {
            Value::Null => "-".to_owned(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let head = keys.map(|key| key.trim_start_matches('@').to_uppercase());
        let rows: Vec<_> = self.shown.iter().map(|row| keys.map(|key| text(row, key))).collect();
        table(head.each_ref().map(String::as_str), &rows)
    }
}

/// Offline access to the letters of an output.
fn kept<'a>(store: &Store, fs: &'a dyn Fs) -> KeptLetters<'a> {
    KeptLetters::new(fs, &store.data).with_prepared(&hand_over)
}

/// Warns that half a letter at the end is skipped, or is dropped with the next one that is written.
fn warn_of_torn(kept: &KeptLetters<'_>) -> Result<()> {
    let path = kept.path().display();
    let bytes = kept.torn_bytes().with_context(|| format!("cannot read `{path}`"))?;
    if bytes > 0 {
        eprint(&format!(
            "warning: `{path}`: the last letter is not whole ({bytes} bytes), and is left out; it is being written, or a \
             crash has cut it off\n"
        ));
    }
    Ok(())
}

/// Calls `each` with the number, the first being 1, of every selected letter. Returns how many lines are no letters.
fn for_each(
    kept: &KeptLetters<'_>,
    which: &WhichLetters,
    mut each: impl FnMut(u64, Letter),
) -> Result<u64> {
    let mut unreadable = 0;
    warn_of_torn(kept)?;
    let read = kept.each(&mut |number, line| {
        match Letter::read(line) {
            Ok(letter) if letter.is_in(which) => each(number + 1, letter),
            Ok(_) => {}
            Err(why @ LetterError::Newer(_)) => warn_of_unsendable(kept, number + 1, &why),
            Err(LetterError::NoLetter) => unreadable += 1,
        }
        true
    });
    read.with_context(|| format!("cannot read `{}`", kept.path().display()))?;
    Ok(unreadable)
}

/// One row for each status and kind of reason.
fn list_reasons(stores: &[Store], which: &WhichLetters, system: &System) -> Result<Rows> {
    let mut listed = Rows { named: stores.len() > 1, ..Rows::default() };
    for store in stores {
        let mut reasons: BTreeMap<(u16, String), Value> = BTreeMap::new();
        listed.unreadable += for_each(&kept(store, &*system.fs), which, |number, letter| {
            listed.letters += 1;
            let kind = letter.kind();
            let row = reasons.entry((letter.status, kind.clone())).or_insert_with(|| {
                json!({"count": 0, "status": letter.status, "kind": kind, "oldest": letter.time,
                       "newest": "", "output": store.output})
            });
            row["count"] = (row["count"].as_u64().unwrap_or(0) + 1).into();
            if row["oldest"].as_str() > Some(&letter.time) {
                row["oldest"] = letter.time.as_str().into();
            }
            if row["newest"].as_str() <= Some(&letter.time) {
                row["number"] = number.into();
                row["reason"] = letter.why().into();
                row["newest"] = letter.time.into();
            }
        })?;
        listed.shown.extend(reasons.into_values());
    }
    listed.shown.sort_by(|one, other| other["newest"].as_str().cmp(&one["newest"].as_str()));
    Ok(listed)
}

/// One row for each of the newest letters.
fn list_each(
    stores: &[Store],
    which: &WhichLetters,
    limit: usize,
    system: &System,
) -> Result<Rows> {
    let mut listed = Rows { named: stores.len() > 1, ..Rows::default() };
    for store in stores {
        let mut newest: VecDeque<Value> = VecDeque::new();
        listed.unreadable += for_each(&kept(store, &*system.fs), which, |number, letter| {
            listed.letters += 1;
            if newest.len() == limit {
                newest.pop_front();
            }
            newest.push_back(json!({
                "number": number, "@timestamp": letter.time, "status": letter.status,
                "kind": letter.kind(), "reason": letter.why(), "source": letter.source,
                "offset": letter.place(), "id": letter.id, "output": store.output,
            }));
            newest.truncate(limit);
        })?;
        listed.shown.extend(newest);
    }
    listed
        .shown
        .sort_by(|one, other| other["@timestamp"].as_str().cmp(&one["@timestamp"].as_str()));
    listed.shown.truncate(limit);
    Ok(listed)
}

fn show(store: &Store, wanted: &str, as_json: bool, system: &System) -> Result<ExitCode> {
    let kept = kept(store, &*system.fs);
    let number: Option<u64> = wanted.parse().ok();
    let mut found: Option<(u64, Vec<u8>)> = None;
    let read = kept.each(&mut |at, line| {
        let is_it = number == Some(at + 1)
            || Letter::read(line).is_ok_and(|letter| letter.id.as_deref() == Some(wanted));
        if is_it {
            found = Some((at + 1, line.to_vec()));
        }
        // A letter with this number wins over one with such an `_id`.
        !(is_it && number == Some(at + 1))
    });
    read.with_context(|| format!("cannot read `{}`", kept.path().display()))?;
    let Some((number, line)) = found else {
        let file = kept.path().display();
        bail!("`{file}` has no letter `{wanted}`, neither as a number nor as an `_id`");
    };
    let text = String::from_utf8_lossy(&line).into_owned();
    if as_json {
        print(&format!("{text}\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let letter = Letter::read(&line)
        .with_context(|| format!("line {number} of `{}`", kept.path().display()))?;
    let rows = [
        ["refused".to_owned(), letter.time.clone()],
        ["status".to_owned(), letter.status.to_string()],
        ["kind".to_owned(), letter.kind()],
        ["reason".to_owned(), letter.why()],
        ["source".to_owned(), or_dash(letter.source.as_ref())],
        [
            if letter.is_of_file() { "offset" } else { "number" }.to_owned(),
            letter.place().to_string(),
        ],
        ["generation".to_owned(), or_dash(letter.generation)],
        ["_id".to_owned(), or_dash(letter.id.as_ref())],
    ];
    let event: Value = serde_json::from_str(letter.event.get())?;
    print(&table(["letter", &number.to_string()], &rows))?;
    print(&format!("{event:#}\n"))?;
    Ok(ExitCode::SUCCESS)
}

fn drop_letters(
    which: &WhichLetters,
    dry_run: bool,
    global: &Global,
    system: &System,
) -> Result<ExitCode> {
    let site = Site::of(global, system)?;
    let _lock = site.lock(system)?;
    for store in site.stores(which.output.as_deref(), system)? {
        let kept = kept(&store, &*system.fs);
        warn_of_torn(&kept)?;
        let mut count: u64 = 0;
        let mut is_meant = |line: &[u8]| {
            let is_meant = match Letter::read(line) {
                Ok(letter) => letter.is_in(which),
                Err(_) => !which.chooses(),
            };
            count += u64::from(is_meant);
            is_meant
        };
        if dry_run {
            let read = kept.each(&mut |_, line| {
                is_meant(line);
                true
            });
            read.with_context(|| format!("cannot read `{}`", kept.path().display()))?;
        } else {
            refuse_of_others(&kept, system)?;
            let written = kept.rewrite(&mut |_, line| {
                if is_meant(line) { LetterFate::Remove } else { LetterFate::Keep }
            });
            written.with_context(|| format!("cannot write `{}`", kept.path().display()))?;
        }
        let verb = if dry_run { "would drop" } else { "dropped" };
        print(&format!("{verb} {count} letters of {}\n", kept.path().display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The file is rewritten, and must keep its owner: a skidder that runs as another user could not add to it any more.
/// Only root can restore the owner; other users are refused.
fn refuse_of_others(kept: &KeptLetters<'_>, system: &System) -> Result<()> {
    let us = rustix::process::geteuid();
    match system.fs.metadata(kept.path()) {
        Ok(meta) if meta.uid != us.as_raw() && !us.is_root() => bail!(
            "`{}` belongs to the user with the number {}, who could not write it any more; run this as that user or root",
            kept.path().display(),
            meta.uid
        ),
        _ => Ok(()),
    }
}

/// Gives a new file the owner of the file that it replaces.
fn hand_over(path: &Path) -> std::io::Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let old = rustix::fs::stat(path.with_extension(""))?;
    let owner = rustix::fs::Uid::from_raw(old.st_uid);
    let group = rustix::fs::Gid::from_raw(old.st_gid);
    Ok(rustix::fs::chown(path, Some(owner), Some(group))?)
}

/// Warns of a letter that cannot be sent.
fn warn_of_unsendable(kept: &KeptLetters<'_>, number: u64, why: &dyn std::fmt::Display) {
    eprint(&format!("warning: {}:{number}: {why:#}; it stays\n", kept.path().display()));
}
