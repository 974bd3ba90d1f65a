//! `/sources`: the connections, peers and the like that are open, of all inputs that read no files.

use crate::files::{millis, time_text};
use crate::page::Query;
use crate::snapshot::{InputSource, Sources};
use serde_json::{Value as Json, json};
use skidder_input::{InputTask, SourceStatus};
use skidder_os::Timestamp;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Sources of one answer by default.
const LIMIT: usize = 100;
/// Sources of one answer, at most.
const LIMIT_MAX: usize = 5_000;

/// The order of the sources.
#[derive(Clone, Copy)]
enum Sort {
    Opened,
    Name,
    Input,
    Events,
    Rate,
    Bytes,
    Behind,
    Activity,
}

impl Sort {
    const NAMES: [(&'static str, Self); 8] = [
        ("opened", Self::Opened),
        ("name", Self::Name),
        ("input", Self::Input),
        ("events", Self::Events),
        ("rate", Self::Rate),
        ("bytes", Self::Bytes),
        ("behind", Self::Behind),
        ("last_activity", Self::Activity),
    ];

    fn compare(self, one: &Found, other: &Found) -> Ordering {
        let (a, b) = (&one.status, &other.status);
        match self {
            // As they were found.
            Self::Opened => Ordering::Equal,
            Self::Name => a.name.cmp(&b.name),
            Self::Input => one.input.title.cmp(&other.input.title),
            Self::Events => a.events.cmp(&b.events),
            Self::Rate => {
                let rate = |of: &SourceStatus| of.rate.map_or(-1.0, |(events, _)| events);
                rate(a).total_cmp(&rate(b)).then(a.last_activity.cmp(&b.last_activity))
            }
            Self::Bytes => a.bytes.cmp(&b.bytes),
            Self::Behind => a.behind.cmp(&b.behind),
            Self::Activity => a.last_activity.cmp(&b.last_activity),
        }
    }
}

struct Found<'a> {
    input: &'a InputSource,
    status: SourceStatus,
}

/// Answers `?q=TEXT&output=ID&input=N&sort=BY&order=desc&offset=N&limit=N`; N of `input` is its number in the
/// configuration. An input that feeds several outputs is there once.
pub(crate) fn sources(sources: &Sources, query: &Query) -> Result<Json, String> {
    let by = query.get("sort").unwrap_or("opened");
    let sort = Sort::NAMES.iter().find(|(name, _)| *name == by).map(|(_, sort)| *sort);
    let Some(sort) = sort else {
        let names: Vec<&str> = Sort::NAMES.iter().map(|(name, _)| *name).collect();
        return Err(format!("`sort` is `{by}`; expected one of {}", names.join(", ")));
    };
    let is_down = match query.get("order") {
        None | Some("asc") => false,
        Some("desc") => true,
        Some(other) => return Err(format!("`order` is `{other}`; expected `asc` or `desc`")),
    };
    let number: Option<usize> = query.number("input")?;
    let offset: usize = query.number("offset")?.unwrap_or(0);
    let limit = query.number("limit")?.unwrap_or(LIMIT).min(LIMIT_MAX);
    let text = query.get("q").map(str::to_lowercase);
    let now = sources.clock.monotonic();
    let tasks = tasks(sources, query.get("output"))?;
    let file_inputs: BTreeSet<usize> =
        sources.outputs.iter().flat_map(|output| output.inputs.of_files()).collect();
    let mut open = 0;
    let mut found = Vec::new();
    for (input, task) in &tasks {
        let all = task.metrics().sources.all(now);
        open += all.len();
        let is_wanted = number.is_none_or(|number| number == input.number);
        let all = all.into_iter().map(|status| Found { input, status });
        found.extend(all.filter(|one| is_wanted && one.has(text.as_deref())));
    }
    found.sort_by(|one, other| {
        let order = sort.compare(one, other);
        if is_down { order.reverse() } else { order }
    });
    let wall = sources.clock.wall();
    let page = found.iter().skip(offset).take(limit);
    let page: Vec<Json> = page.map(|one| source_json(one.input, &one.status, wall)).collect();
    Ok(json!({
        "time": time_text(wall),
        "uptime_ms": millis(now.since(sources.program.start.monotonic)),
        "inputs": tasks.len(),
        "file_inputs": file_inputs.len(),
        "open": open,
        "matched": found.len(),
        "offset": offset,
        "sources": page,
    }))
}

/// The inputs of an output that read no files, or those of all outputs.
fn tasks(
    sources: &Sources,
    output: Option<&str>,
) -> Result<Vec<(InputSource, Arc<InputTask>)>, String> {
    let Some(id) = output.filter(|_| sources.outputs.len() > 1) else {
        let all = sources.outputs.iter().flat_map(|output| output.inputs.tasks(true));
        return Ok(all.collect());
    };
    let of = sources.outputs.iter().find(|output| output.id.as_deref() == Some(id));
    let of = of.ok_or_else(|| format!("there is no output `{id}`"))?;
    Ok(of.inputs.tasks(false))
}

impl Found<'_> {
    fn has(&self, wanted: Option<&str>) -> bool {
        let has = |text: &str, wanted: &str| text.to_lowercase().contains(wanted);
        wanted.is_none_or(|wanted| {
            let Self { input, status } = self;
            has(&status.name, wanted)
                || has(&input.title, wanted)
                || has(&input.kind, wanted)
                || status.last_error.as_ref().is_some_and(|error| has(error, wanted))
        })
    }
}

/// A source as `/sources` and `/files` show it.
pub(crate) fn source_json(input: &InputSource, status: &SourceStatus, now: Timestamp) -> Json {
    let since = |then: Timestamp| u64::try_from((now.0 - then.0) / 1_000_000).unwrap_or(0);
    let (events_rate, bytes_rate) = status.rate.unzip();
    let mut source = json!({
        "input": input.id,
        "input_name": input.title,
        "input_number": input.number,
        "type": input.kind,
        "number": status.number,
        "name": &*status.name,
        "opened": time_text(status.opened),
        "open_ms": since(status.opened),
        "events": status.events,
        "events_rate": events_rate,
        "bytes": status.bytes,
        "bytes_rate": bytes_rate,
        "last_activity": status.last_activity.map(time_text),
        "silent_ms": status.last_activity.map(since),
        "last_error": status.last_error,
        "last_error_ms": status.last_error_at.map(since),
        "behind": status.behind,
    });
    if let Some(requests) = status.requests {
        source["requests"] = requests.into();
    }
    if let Some(newest) = status.newest {
        source["newest_ms"] = since(newest).into();
    }
    if let Some(oldest) = status.oldest {
        source["oldest_ms"] = since(oldest).into();
    }
    if let Some(position) = status.position {
        source["position"] = position.into();
        source["size"] = status.size.into();
    }
    source
}
