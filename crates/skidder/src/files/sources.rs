//! Open sources of inputs that read no files: connections, peers and the like.

use super::DataSource;
use crate::assemble::Parts;
use crate::endpoint;
use crate::inputs::Input;
use crate::outputs::quoted;
use crate::status::{SOURCE_HEAD, SourceLook};
use crate::table::table;
use anyhow::Result;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The output that is wanted, if it is one of several: one alone is not known by its id.
pub(super) fn one_of_several<'a>(parts: &Parts, output: Option<&'a str>) -> Option<&'a str> {
    output.filter(|_| parts.running().count() > 1)
}

/// Asks the running skidder for the open sources, of one input or of all.
pub(super) fn ask(
    parts: &Parts,
    output: Option<&str>,
    input: Option<&str>,
    sort: &str,
) -> Result<Vec<Value>> {
    let mut open: Vec<Value> = Vec::new();
    let is_wanted = |source: &Value| {
        input.is_none_or(|name| source["input_name"] == *name || source["input"] == *name)
    };
    endpoint::sources(&parts.http, one_of_several(parts, output), &mut |source| {
        if is_wanted(source) {
            open.push(source.clone());
        }
    })?;
    if sort == "path" {
        open.sort_by(|one, other| one["name"].as_str().cmp(&other["name"].as_str()));
    } else {
        let rate = |source: &Value| source["events_rate"].as_f64().unwrap_or(-1.0);
        let silent = |source: &Value| source["silent_ms"].as_u64().unwrap_or(u64::MAX);
        open.sort_by(|one, other| {
            rate(other).total_cmp(&rate(one)).then(silent(one).cmp(&silent(other)))
        });
    }
    Ok(open)
}

/// What the inputs are called that listen now, of the running skidder: all of them or one.
pub(super) fn listening(parts: &Parts, input: Option<&str>) -> Result<Vec<String>> {
    let inputs = endpoint::get(&parts.http, "/inputs/")?;
    let listens = |entry: &&Value| {
        let address = entry.get("device").or_else(|| entry.get("path"));
        address.is_some() && entry["skidder"]["trouble"].is_null()
    };
    let called = |entry: &Value| entry["skidder"]["name"].as_str().map(str::to_owned);
    let is_wanted = |name: &String| input.is_none_or(|wanted| name == wanted);
    let inputs = inputs.as_array().map_or(&[][..], Vec::as_slice);
    // One that feeds several outputs is there for each.
    let names: BTreeSet<String> =
        inputs.iter().filter(listens).filter_map(called).filter(is_wanted).collect();
    Ok(names.into_iter().collect())
}

/// What the inputs are called that read no files, or one of them.
pub(super) fn receiving(parts: &Parts, wanted: Option<&str>) -> Vec<String> {
    let inputs = parts.running().flat_map(|output| &output.inputs);
    let is_wanted =
        |input: &&Input| input.files().is_none() && wanted.is_none_or(|name| input.is_called(name));
    // One that feeds several outputs is there once.
    let names: BTreeMap<usize, String> =
        inputs.filter(is_wanted).map(|input| (input.number, input.name())).collect();
    names.into_values().collect()
}

/// The table of the open sources, or why they are not known; nothing if all inputs read files. `listening` are the
/// inputs that could get some, if there are none.
pub(super) fn text(
    open: &[Value],
    receiving: &[String],
    listening: &[String],
    data_source: DataSource,
) -> String {
    if receiving.is_empty() && open.is_empty() {
        return String::new();
    }
    let of = quoted(receiving);
    match data_source {
        DataSource::Registry => {
            format!("no open sources of {of}: skidder is not running\n")
        }
        DataSource::RegistryOfRunning => {
            format!("the open sources of {of} are not known: `http.enabled` is off\n")
        }
        DataSource::Endpoint => {
            let rows: Vec<_> = open.iter().map(|source| SourceLook::of(source).row()).collect();
            let count = rows.len();
            let have = if count == 1 { "source is" } else { "sources are" };
            let table = if rows.is_empty() { String::new() } else { table(SOURCE_HEAD, &rows) };
            let listen = match listening {
                [] => String::new(),
                [one] => format!(" (`{one}` listens)"),
                more => format!(" ({} listen)", quoted(more)),
            };
            format!("{table}{count} {have} open{listen}; from the running skidder\n")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_source_is_a_row_with_its_rate_its_age_and_its_last_error() {
        let source = json!({
            "input": "", "input_name": "tcp :9000", "name": "10.0.0.7:41234", "events": 12345, "bytes": 2048,
            "events_rate": 10.4, "bytes_rate": 1024.0, "open_ms": 61_000, "silent_ms": 2_000,
            "last_error": "reset\u{7} by peer", "last_error_ms": 61_000});
        let fresh =
            json!({"input_name": "tcp :9000", "name": "b", "events": 0, "bytes": 0, "open_ms": 20});
        let receiving = ["tcp :9000".to_owned()];
        let shown = text(&[source, fresh], &receiving, &[], DataSource::Endpoint);
        let lines: Vec<Vec<&str>> = shown
            .lines()
            .map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect())
            .collect();
        assert_eq!(lines[0], SOURCE_HEAD);
        assert_eq!(
            lines[1],
            [
                "10",
                "1.0 KiB",
                "12,345",
                "2.0 KiB",
                "2 s ago",
                "1 m 1 s",
                "tcp :9000",
                "10.0.0.7:41234; last error 1 m 1 s ago: reset\\u0007 by peer"
            ]
        );
        assert_eq!(lines[2], ["-", "-", "0", "0 B", "-", "20 ms", "tcp :9000", "b"]);
        assert_eq!(lines[3], ["2 sources are open; from the running skidder"]);
    }

    #[test]
    fn without_a_running_skidder_it_says_why_there_are_no_sources() {
        let receiving = ["apps".to_owned(), "udp :1".to_owned()];
        assert_eq!(text(&[], &[], &[], DataSource::Registry), "", "all inputs read files");
        assert_eq!(
            text(&[], &receiving, &[], DataSource::Registry),
            "no open sources of `apps`, `udp :1`: skidder is not running\n"
        );
        assert!(
            text(&[], &receiving, &[], DataSource::RegistryOfRunning)
                .contains("`http.enabled` is off")
        );
        for (listening, open) in [
            (&receiving[..0], "0 sources are open; from the running skidder\n"),
            (&receiving[..1], "0 sources are open (`apps` listens); from the running skidder\n"),
            (
                &receiving[..],
                "0 sources are open (`apps`, `udp :1` listen); from the running skidder\n",
            ),
        ] {
            assert_eq!(text(&[], &receiving, listening, DataSource::Endpoint), open);
        }
    }
}
