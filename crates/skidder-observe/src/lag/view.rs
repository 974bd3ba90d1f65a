//! Questions about the files of a round: searched, sorted, a page at a time.

use super::numbers::LagNumbers;
use super::{BoardFile, Round};
use crate::files::{file_json, ledger_json, millis};
use crate::page::Query;
use crate::snapshot::Sources;
use serde_json::{Value as Json, json};
use skidder_os::Monotonic;
use skidder_read::FileLook;
use std::cmp::Ordering;
use std::time::Duration;

/// Files of one answer by default.
const LIMIT: usize = 100;
/// Files of one answer, at most.
const LIMIT_MAX: usize = 1_000;
/// The least age of a round that may be requested.
const AGE_MIN: Duration = Duration::from_millis(50);

/// What to show of a round.
pub(super) struct View {
    text: Option<String>,
    state: Option<String>,
    sort: Sort,
    descending: bool,
    offset: usize,
    limit: usize,
    /// The greatest accepted age of the round.
    pub(super) age: Option<Duration>,
}

#[derive(Clone, Copy)]
enum Sort {
    Path,
    State,
    Size,
    Cursor,
    Behind,
    BehindFor,
    Rate,
    DeletedIn,
    Modified,
}

impl Sort {
    const NAMES: [(&'static str, Self); 9] = [
        ("path", Self::Path),
        ("state", Self::State),
        ("size", Self::Size),
        ("cursor", Self::Cursor),
        ("behind", Self::Behind),
        ("behind_ms", Self::BehindFor),
        ("rate", Self::Rate),
        ("deleted_in_ms", Self::DeletedIn),
        ("modified", Self::Modified),
    ];

    fn compare(self, one: &BoardFile, other: &BoardFile) -> Ordering {
        let (a, b) = (&one.look, &other.look);
        match self {
            Self::Path => Ordering::Equal,
            Self::State => a.state.name().cmp(b.state.name()),
            Self::Size => a.size.cmp(&b.size),
            Self::Cursor => a.cursor.cmp(&b.cursor),
            Self::Behind => a.behind.cmp(&b.behind),
            Self::BehindFor => one.behind_for.cmp(&other.behind_for),
            Self::Rate => one.rate.unwrap_or(-1.0).total_cmp(&other.rate.unwrap_or(-1.0)),
            // Unknown values come last.
            Self::DeletedIn => {
                let of = |look: &FileLook| look.deleted_in.unwrap_or(Duration::MAX);
                of(a).cmp(&of(b))
            }
            Self::Modified => a.modified.cmp(&b.modified),
        }
    }
}

impl View {
    pub(super) fn parse(query: &Query) -> Result<Self, String> {
        let sort = match query.get("sort") {
            None => Sort::Behind,
            Some(name) => {
                let found = Sort::NAMES.iter().find(|(known, _)| *known == name);
                let names: Vec<&str> = Sort::NAMES.iter().map(|(name, _)| *name).collect();
                let message =
                    || format!("`sort` is `{name}`; expected one of {}", names.join(", "));
                found.ok_or_else(message)?.1
            }
        };
        let descending = match query.get("order") {
            None => query.get("sort").is_none(),
            Some("asc") => false,
            Some("desc") => true,
            Some(other) => return Err(format!("`order` is `{other}`; expected `asc` or `desc`")),
        };
        Ok(Self {
            text: query.get("q").map(str::to_lowercase),
            state: query.get("state").map(str::to_owned),
            sort,
            descending,
            offset: query.number("offset")?.unwrap_or(0),
            limit: query.number("limit")?.unwrap_or(LIMIT).min(LIMIT_MAX),
            age: query.number("age_ms")?.map(|age| Duration::from_millis(age).max(AGE_MIN)),
        })
    }

    pub(super) fn show(&self, sources: &Sources, round: &Round, now: Monotonic) -> Json {
        let mut found: Vec<&BoardFile> =
            round.files.iter().filter(|file| self.wants(file)).collect();
        found.sort_by(|one, other| {
            let order = self.sort.compare(one, other);
            let order = if self.descending { order.reverse() } else { order };
            let path = one.look.path.cmp(&other.look.path);
            let is_path_down = matches!(self.sort, Sort::Path) && self.descending;
            order.then(if is_path_down { path.reverse() } else { path })
        });
        let matched = found.len();
        let page = found.into_iter().skip(self.offset).take(self.limit);
        let files: Vec<Json> = page.map(|file| shown(sources, file)).collect();
        let totals = LagNumbers { age: now.since(round.made), ..round.sums.total.clone() };
        let mut json = totals_json(&totals);
        json["never"] = totals.stuck.clone().into();
        json!({
            "age_ms": millis(totals.age),
            "totals": json,
            "kept": round.files.len(),
            "matched": matched,
            "offset": self.offset,
            "files": files,
        })
    }

    fn wants(&self, file: &BoardFile) -> bool {
        let state = file.look.state.name();
        let has = |text: &str, wanted: &str| text.to_lowercase().contains(wanted);
        self.state.as_ref().is_none_or(|wanted| wanted == state)
            && self.text.as_ref().is_none_or(|wanted| {
                has(&file.look.path.to_string_lossy(), wanted)
                    || state == wanted
                    || has(&file.input, wanted)
                    || file
                        .look
                        .reason
                        .as_ref()
                        .is_some_and(|reason| has(&reason.to_string(), wanted))
            })
    }
}

fn shown(sources: &Sources, file: &BoardFile) -> Json {
    let of = &sources.outputs[file.output];
    let several = sources.outputs.len() > 1;
    let id = of.id.as_deref().filter(|_| several);
    let mut json = file_json(&file.input, id, &file.look, of.queue.is_blocked());
    json["rate"] = file.rate.into();
    json["behind_ms"] = millis(file.behind_for).into();
    json["catch_up_ms"] = file.catch_up().map(millis).into();
    if let Some(status) = file.look.source.and_then(|source| of.settle.status(source)) {
        json["ledger"] = ledger_json(&status.ledger);
    }
    json
}

/// The sums in `/lag` and `/inputs/`.
pub(crate) fn totals_json(totals: &LagNumbers) -> Json {
    json!({
        "files": totals.files,
        "states": totals.states,
        "behind_files": totals.behind_files,
        "behind_bytes": totals.behind_bytes,
        "behind_unknown": totals.unknown,
        "behind_ms": millis(totals.behind_for),
        "rate": totals.rate,
        "catch_up_ms": totals.catch_up().map(millis),
        "deleted_in_ms": totals.deleted_in.map(millis),
    })
}
