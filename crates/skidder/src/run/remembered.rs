//! The containers and pods that have inputs, in a file of the data directory.
//!
//! After a crash the API does not list a pod that was deleted meanwhile. Its log may still be there, with lines that were
//! not read: so the inputs of such pods begin again, read to the end, and end.
//!
//! The file has a line for each change, and is written anew at the start and when most of its lines are out of date. New
//! lines are not synced: they must survive a crash of this program, and a node that loses its power keeps its pods.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value as Json, json};
use skidder_autodiscover::Saved;
use skidder_os::{File, Fs, PRIVATE_DIRECTORY, read_to_end, replace_file, write_all_at};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// In the data directory.
const FILE: &str = "autodiscover.jsonl";

/// The first line.
const HEADER: &str = "{\"skidder_autodiscover\":1}";

/// A larger file is not ours.
const FILE_BYTES_MAX: usize = 256 << 20;

/// The file is written anew when it has so many more lines than there are objects.
const SPARE_LINES: usize = 1000;

const PERMISSIONS: u32 = 0o600;

/// An object: the number of its provider, and its id.
type Place = (usize, String);

/// The file, and what it says.
pub(super) struct Remembered {
    fs: Arc<dyn Fs>,
    path: PathBuf,
    known: BTreeMap<Place, Saved>,
    /// Open to append, with its length.
    file: Option<(Box<dyn File>, u64)>,
    lines: usize,
    is_broken: bool,
}

impl Remembered {
    /// Reads what the last run has left. Problems are logged: they cost only what is said in the log.
    pub(super) fn open(fs: Arc<dyn Fs>, data: &Path) -> Self {
        let path = data.join(FILE);
        let known = match read(&*fs, &path) {
            Ok(known) => known,
            Err(error) => {
                tracing::warn!(
                    path = %path.display(),
                    error = format!("{error:#}"),
                    "which containers were read in the last run is not known; logs of those that are gone are not read to the end"
                );
                BTreeMap::new()
            }
        };
        Self { fs, path, known, file: None, lines: 0, is_broken: false }
    }

    /// What the last run has left.
    pub(super) fn all(&self) -> impl Iterator<Item = &Saved> {
        self.known.values()
    }

    /// These have inputs now, and those whose ids `is_needed` names have inputs that end.
    pub(super) fn update(&mut self, now: Vec<Saved>, is_needed: &dyn Fn(&str) -> bool) {
        let mut text = String::new();
        let mut lines = 0;
        let mut add = |line: Json| {
            text += &line.to_string();
            text.push('\n');
            lines += 1;
        };
        let mut present = BTreeSet::new();
        for saved in now {
            let place = (saved.provider, saved.id.clone());
            present.insert(place.clone());
            let is_known = |known: &Saved| known.kind == saved.kind && known.fact == saved.fact;
            if !self.known.get(&place).is_some_and(is_known) {
                add(line_of(&saved));
                self.known.insert(place, saved);
            }
        }
        self.known.retain(|place, _| {
            let stays = present.contains(place) || is_needed(&place.1);
            if !stays {
                add(json!({ "provider": place.0, "id": place.1, "gone": true }));
            }
            stays
        });
        self.lines += lines;
        let is_bulky = self.lines > 2 * self.known.len() + SPARE_LINES;
        if text.is_empty() && self.file.is_some() {
            return;
        }
        let written = match &mut self.file {
            Some((file, length)) if !is_bulky => append(&**file, length, &text),
            _ => self.write_anew(),
        };
        match written {
            Ok(()) => self.is_broken = false,
            Err(error) => {
                // Everything is written with the next change.
                self.file = None;
                if !std::mem::replace(&mut self.is_broken, true) {
                    tracing::warn!(
                        path = %self.path.display(),
                        %error,
                        "which containers are read cannot be saved; after a crash, logs of those that are gone by then are not read to the end"
                    );
                }
            }
        }
    }

    fn write_anew(&mut self) -> io::Result<()> {
        let mut text = format!("{HEADER}\n");
        for saved in self.known.values() {
            text += &line_of(saved).to_string();
            text.push('\n');
        }
        let directory = self.path.parent().unwrap_or(Path::new("."));
        self.fs.create_dir_all(directory, PRIVATE_DIRECTORY)?;
        let file = replace_file(&*self.fs, &self.path, text.as_bytes(), PERMISSIONS)?;
        self.lines = self.known.len();
        self.file = Some((file, text.len() as u64));
        Ok(())
    }
}

fn append(file: &dyn File, length: &mut u64, text: &str) -> io::Result<()> {
    write_all_at(file, text.as_bytes(), *length)?;
    *length += text.len() as u64;
    Ok(())
}

fn line_of(saved: &Saved) -> Json {
    json!({ "provider": saved.provider, "id": saved.id, "kind": saved.kind, "fact": &*saved.fact })
}

fn read(fs: &dyn Fs, path: &Path) -> Result<BTreeMap<Place, Saved>> {
    let file = match fs.open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        opened => opened?,
    };
    let bytes = read_to_end(&*file, FILE_BYTES_MAX)?;
    let text = String::from_utf8(bytes).context("it is not UTF-8")?;
    // What follows the last line feed was being written when the program ended.
    let (text, _) = text.rsplit_once('\n').unwrap_or_default();
    let mut lines = text.lines();
    ensure!(lines.next() == Some(HEADER), "line 1 is not that of this version of skidder");
    let mut known = BTreeMap::new();
    for (number, line) in lines.enumerate() {
        apply(&mut known, line).with_context(|| format!("line {} is damaged", number + 2))?;
    }
    Ok(known)
}

fn apply(known: &mut BTreeMap<Place, Saved>, line: &str) -> Result<()> {
    let line: Json = serde_json::from_str(line)?;
    let text = |key: &str| line[key].as_str().with_context(|| format!("`{key}` is no text"));
    let provider = line["provider"].as_u64().context("`provider` is no number")?;
    let provider = usize::try_from(provider)?;
    let place = (provider, text("id")?.to_owned());
    if line["gone"] == true {
        known.remove(&place);
    } else {
        let (kind, fact) = (text("kind")?.to_owned().into(), text("fact")?.into());
        known.insert(place.clone(), Saved { provider, id: place.1, kind, fact });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use skidder_os::RealFs;

    fn saved(id: &str, fact: &str) -> Saved {
        Saved { provider: 0, id: id.to_owned(), kind: "pod".into(), fact: fact.into() }
    }

    fn ids(remembered: &Remembered) -> Vec<(&str, &str)> {
        remembered.all().map(|saved| (&*saved.id, &*saved.fact)).collect()
    }

    #[test]
    fn what_has_inputs_is_known_after_a_crash_and_what_has_none_any_more_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Remembered::open(Arc::new(RealFs), folder.path());
        let mut first = open();
        assert!(ids(&first).is_empty());
        first.update(vec![saved("a", "1"), saved("b", "1")], &|_| false);
        first.update(vec![saved("a", "2"), saved("b", "1"), saved("c", "1")], &|_| false);
        // `b` ends, and `c` still has an input that ends.
        first.update(vec![saved("a", "2")], &|id| id == "c");
        drop(first);
        let mut second = open();
        assert_eq!(ids(&second), [("a", "2"), ("c", "1")]);
        second.update(Vec::new(), &|_| false);
        assert!(ids(&open()).is_empty());
    }

    #[test]
    fn a_torn_line_is_left_out_and_a_damaged_file_is_no_obstacle() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let open = || Remembered::open(Arc::new(RealFs), folder.path());
        open().update(vec![saved("a", "1")], &|_| false);
        let whole = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{whole}{{\"provider\":0,\"id\":\"b")).unwrap();
        assert_eq!(ids(&open()), [("a", "1")]);
        for damaged in
            [whole.replace("\"id\"", "\"ix\""), whole.replace(":1}", ":2}"), "x\n".into()]
        {
            std::fs::write(&path, damaged).unwrap();
            let mut opened = open();
            assert!(ids(&opened).is_empty());
            opened.update(vec![saved("c", "1")], &|_| false);
            assert_eq!(ids(&open()), [("c", "1")]);
        }
    }

    #[test]
    fn lines_that_are_out_of_date_do_not_pile_up() {
        let folder = tempfile::tempdir().unwrap();
        let mut remembered = Remembered::open(Arc::new(RealFs), folder.path());
        for round in 0..5 * SPARE_LINES {
            remembered.update(vec![saved("a", &round.to_string())], &|_| false);
        }
        let text = std::fs::read_to_string(folder.path().join(FILE)).unwrap();
        assert!(text.lines().count() < 2 * SPARE_LINES);
        let open = Remembered::open(Arc::new(RealFs), folder.path());
        assert_eq!(ids(&open), [("a", &*(5 * SPARE_LINES - 1).to_string())]);
    }
}
