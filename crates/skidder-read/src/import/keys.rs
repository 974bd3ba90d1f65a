//! Keys of files that are adopted together: files that begin alike get longer fingerprints, as in the
//! catalog.

use super::files::Files;
use super::{Adoption, Restart, Skip};
use crate::compare::{Comparison, Longer, Side, Verdict, fingerprint_of};
use crate::fingerprint::Fingerprint;
use std::collections::{BTreeMap, HashMap};
use std::io;

/// Bytes that a pair of files that begin alike is compared up to.
const COMPARE_BYTES: u64 = 256 << 20;

/// How a file is known from now on.
#[derive(Clone, Debug)]
pub(super) enum Keyed {
    /// By this.
    Print(Fingerprint),
    /// By a name.
    Name(String),
    /// It is not taken over.
    No(Adoption),
}

impl Keyed {
    /// What stands in the key, unless the file is not taken over.
    pub(super) fn value(&self) -> Result<String, Adoption> {
        match self {
            Self::Print(print) => Ok(print.hex()),
            Self::Name(name) => Ok(name.clone()),
            Self::No(adoption) => Err(adoption.clone()),
        }
    }

    /// Its fingerprint, if it is known by that.
    pub(super) fn print(&self) -> Option<Fingerprint> {
        match self {
            Self::Print(print) => Some(*print),
            Self::Name(_) | Self::No(_) => None,
        }
    }
}

/// How these files are known.
pub(super) fn keys(files: &mut Files<'_>, chosen: &[usize]) -> HashMap<usize, Keyed> {
    if !files.settings.identity.is_content() {
        let named = |&file: &usize| {
            let none = || unreadable(&"the marker file cannot be read");
            (file, files.name(file).map_or_else(none, Keyed::Name))
        };
        return chosen.iter().map(named).collect();
    }
    let usual = files.settings.fingerprint.length as usize;
    let least = if files.settings.fingerprint.growing { 1 } else { usual };
    let mut keyed = HashMap::new();
    let mut alike: BTreeMap<[u8; 32], Vec<usize>> = BTreeMap::new();
    for &file in chosen {
        match files.head(file) {
            Ok(head) if head.bytes.len() >= least => {
                alike.entry(Fingerprint::of(&head.bytes).hash).or_default().push(file);
            }
            Ok(_) => {
                keyed.insert(file, Keyed::No(Adoption::Restart(Restart::TooShort)));
            }
            Err(error) => {
                let error = unreadable(error);
                keyed.insert(file, error);
            }
        }
    }
    for group in alike.into_values() {
        distinguish(files, &group, &mut keyed);
    }
    keyed
}

/// Gives each file of a group as long a fingerprint as it takes to differ from the others.
fn distinguish(files: &mut Files<'_>, group: &[usize], keyed: &mut HashMap<usize, Keyed>) {
    let offset = files.settings.fingerprint.offset;
    // The byte behind the first one in which a file differs from another.
    let mut needed: HashMap<usize, u64> = HashMap::new();
    for (at, &one) in group.iter().enumerate() {
        for &other in &group[..at] {
            if matches!(keyed.get(&other), Some(Keyed::No(_))) {
                continue;
            }
            match compare(files, one, other) {
                Ok(Some((differs, longer))) => {
                    for (file, side) in [(one, Longer::One), (other, Longer::Other)] {
                        if longer.is_none_or(|longer| longer == side) {
                            let needed = needed.entry(file).or_default();
                            *needed = (*needed).max(differs + 1);
                        }
                    }
                }
                Ok(None) => {
                    let same = files.found(other).path.clone();
                    keyed.insert(one, Keyed::No(Adoption::Skip(Skip::SameAs(same))));
                }
                Err(error) => {
                    keyed.insert(one, unreadable(&error));
                }
            }
        }
    }
    for &file in group {
        if keyed.contains_key(&file) {
            continue;
        }
        let needed = needed.get(&file).map_or(0, |end| end.saturating_sub(offset));
        let print = longer_print(files, file, needed);
        keyed.insert(file, print);
    }
}

fn longer_print(files: &mut Files<'_>, file: usize, needed: u64) -> Keyed {
    let head = match files.head(file) {
        Ok(head) => head.clone(),
        Err(error) => return unreadable(error),
    };
    if needed <= head.bytes.len() as u64 {
        return Keyed::Print(Fingerprint::of(&head.bytes));
    }
    let Ok(len) = u32::try_from(needed) else {
        return Keyed::No(Adoption::Restart(Restart::TooShort));
    };
    let print = side(files, file).and_then(|side| {
        fingerprint_of(side, files.settings.fingerprint.offset, len, &mut files.scratch)
    });
    match print {
        Ok(Some(print)) => Keyed::Print(print),
        Ok(None) => Keyed::No(Adoption::Restart(Restart::TooShort)),
        Err(error) => unreadable(&error),
    }
}

fn unreadable(error: &dyn std::fmt::Display) -> Keyed {
    Keyed::No(Adoption::Restart(Restart::Unreadable(error.to_string())))
}

/// The first byte in which two files differ, and which one goes on if the other has ended there; nothing
/// if they are the same as far as is looked.
fn compare(
    files: &mut Files<'_>,
    one: usize,
    other: usize,
) -> io::Result<Option<(u64, Option<Longer>)>> {
    let mut comparison = Comparison::new(side(files, one)?, side(files, other)?);
    let mut budget = COMPARE_BYTES;
    Ok(match comparison.step(&mut files.scratch, &mut budget)? {
        Verdict::Differ { at, longer } => Some((at, longer)),
        Verdict::Same | Verdict::Undecided => None,
    })
}

fn side(files: &mut Files<'_>, file: usize) -> io::Result<Side> {
    let compressed = files.head(file).as_ref().is_ok_and(|head| head.compressed);
    let open = files.open(file)?;
    Ok(Side::new(open, compressed, &files.decoders))
}
