//! Which fields a step touches: what decides whether it can be done once for all events.

use super::failure::ERROR_MESSAGE;
use skidder_event::{Map, Path, Value};

/// The fields that a processor may read and write.
#[derive(Clone, Debug, Default)]
pub struct Footprint {
    /// It looks at these, or at anything inside or around them.
    pub reads: Vec<Path>,
    /// It sets or removes these.
    pub writes: Vec<Path>,
    /// The fields it writes may be objects with anything inside.
    pub open: bool,
    /// It may read and write every field; the lists are ignored.
    pub everything: bool,
}

impl Footprint {
    /// The footprint of a processor that can touch every field.
    pub fn everything() -> Self {
        Self { everything: true, ..Self::default() }
    }

    /// The footprint of merging `fields` over those in `below`: the leaves, and every place where
    /// `below` has something else than the object that comes there, because it is replaced.
    pub fn of_merge(fields: &Map, metadata: &Map, below: (&Map, &Map)) -> Self {
        let mut writes = Vec::new();
        let known = leaves(fields, Some(below.0), "", &mut writes)
            && leaves(metadata, Some(below.1), "@metadata.", &mut writes);
        if known { Self { writes, ..Self::default() } } else { Self::everything() }
    }

    /// Whether it touches a field at, inside or around a path.
    pub(crate) fn overlaps(&self, path: &Path) -> bool {
        let mut all = self.reads.iter().chain(&self.writes);
        self.everything || all.any(|own| own.overlaps(path))
    }

    /// Whether it touches what every event has for itself: `message`, `@timestamp`, `log.offset`.
    pub(crate) fn touches_row(&self, row: &[Path]) -> bool {
        let all = self.reads.iter().chain(&self.writes);
        self.everything || all.into_iter().any(|path| row.iter().any(|own| own.overlaps(path)))
    }
}

/// Collects the paths of all leaves; `false` if a path cannot name a key.
fn leaves(map: &Map, below: Option<&Map>, prefix: &str, out: &mut Vec<Path>) -> bool {
    for (key, value) in map.iter() {
        if key.contains('.') {
            return false;
        }
        let name = format!("{prefix}{key}");
        let under = below.and_then(|below| below.get(key));
        let inner_below = match under {
            Some(Value::Map(inner)) => Some(inner),
            _ => None,
        };
        let inner = match value {
            Value::Map(inner) if !inner.is_empty() => Some(inner),
            _ => None,
        };
        let replaces = under.is_some() && inner_below.is_none();
        if inner.is_none() || replaces {
            match Path::parse(&name) {
                Ok(path) => out.push(path),
                Err(_) => return false,
            }
        }
        if let Some(inner) = inner
            && !leaves(inner, inner_below, &format!("{name}."), out)
        {
            return false;
        }
    }
    true
}

/// The paths that events may have for themselves at one point of the plan.
#[derive(Clone, Debug)]
pub(crate) struct Touched {
    everything: bool,
    open: bool,
    paths: Vec<Path>,
}

impl Touched {
    pub(crate) fn paths(paths: Vec<Path>) -> Self {
        Self { everything: false, open: false, paths }
    }

    pub(crate) fn everything() -> Self {
        Self { everything: true, open: true, paths: Vec::new() }
    }

    /// Whether an event may have something of its own at, around or inside a path.
    pub(crate) fn overlaps(&self, path: &Path) -> bool {
        self.everything || self.paths.iter().any(|own| own.overlaps(path))
    }

    pub(crate) fn overlaps_footprint(&self, footprint: &Footprint) -> bool {
        if footprint.everything {
            return true;
        }
        footprint.reads.iter().chain(&footprint.writes).any(|path| self.overlaps(path))
    }

    /// Adds what a step that runs on events may write.
    pub(crate) fn add(&mut self, footprint: &Footprint, can_fail: bool) {
        self.everything |= footprint.everything;
        self.open |= footprint.open;
        self.paths.extend(footprint.writes.iter().cloned());
        if can_fail {
            self.paths.push(ERROR_MESSAGE.clone());
        }
    }

    /// All paths, when nothing but leaves at exactly these can be there.
    pub(crate) fn known(&self) -> Option<&[Path]> {
        (!self.everything && !self.open).then_some(&self.paths)
    }
}
