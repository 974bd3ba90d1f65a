//! `filebeat.autodiscover`, searched and cut into pages: what `/autodiscover` answers, small enough for a browser.

use super::Query;
use serde_json::{Value as Json, json};

/// Containers of one answer by default.
const LIMIT: usize = 100;
/// Containers of one answer, at most.
const LIMIT_MAX: usize = 1_000;

/// What is read of a container, a pod or another object.
const STATES: [&str; 3] = ["not read", "in part", "read"];

/// Answers `?q=TEXT&state=STATE&offset=N&limit=N` from the whole explanation. Each word of `q` has to be in what is
/// known of the object. Those that are not read come first, otherwise the order is that of the explanation.
pub(super) fn containers(explanation: &Json, query: &Query) -> Result<Json, String> {
    let offset: usize = query.number("offset")?.unwrap_or(0);
    let limit: usize = query.number("limit")?.unwrap_or(LIMIT).min(LIMIT_MAX);
    let state = query.get("state");
    if let Some(unknown) = state.filter(|state| !STATES.contains(state)) {
        return Err(format!("`state` is `{unknown}`; expected one of {}", STATES.join(", ")));
    }
    let text = query.get("q").unwrap_or_default().to_lowercase();
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut counts = [0_usize; STATES.len()];
    let mut found = Vec::new();
    let mut kinds = Vec::new();
    for provider in explanation["providers"].as_array().into_iter().flatten() {
        let objects = provider["objects"].as_array().map_or(&[][..], Vec::as_slice);
        kinds.push(json!({
            "kind": provider["kind"], "position": provider["position"], "objects": objects.len(),
        }));
        for object in objects {
            let is = state_of(object);
            counts[is] += 1;
            if state.is_none_or(|state| state == STATES[is]) && matches(object, &words) {
                found.push((is, provider, object));
            }
        }
    }
    found.sort_by_key(|(is, _, _)| *is);
    let shown = found.iter().skip(offset).take(limit).map(|(is, provider, object)| {
        let mut object = (*object).clone();
        object["kind"] = provider["kind"].clone();
        object["position"] = provider["position"].clone();
        object["read"] = STATES[*is].into();
        object
    });
    let shown: Vec<Json> = shown.collect();
    let counted = |(state, count): (&&str, usize)| ((*state).to_owned(), Json::from(count));
    let states: Json = STATES.iter().zip(counts).map(counted).collect();
    Ok(json!({
        "providers": kinds, "total": counts.iter().sum::<usize>(), "states": states,
        "matched": found.len(), "objects": shown,
    }))
}

/// The index in [`STATES`].
fn state_of(object: &Json) -> usize {
    let inputs = object["inputs"].as_array().map_or(&[][..], Vec::as_slice);
    let running = inputs.iter().filter(|input| input["runs"] == true).count();
    match running {
        0 => 0,
        _ if running < inputs.len() => 1,
        _ => 2,
    }
}

/// Whether each of `words`, which are in lower case, is in a text of the object.
fn matches(object: &Json, words: &[&str]) -> bool {
    let mut texts = Vec::new();
    collect(object, &mut texts);
    words.iter().all(|word| texts.iter().any(|text| text.contains(word)))
}

fn collect(value: &Json, texts: &mut Vec<String>) {
    match value {
        Json::String(text) => texts.push(text.to_lowercase()),
        Json::Array(items) => items.iter().for_each(|item| collect(item, texts)),
        Json::Object(map) => map.values().for_each(|item| collect(item, texts)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explanation() -> Json {
        let input =
            |runs: bool, reason: &str| json!({ "runs": runs, "reason": reason, "origin": "hints" });
        let object = |id: &str, inputs: Json| json!({ "id": id, "name": format!("container {id}"), "inputs": inputs });
        json!({ "providers": [
            { "kind": "docker", "position": "f.yml:3:3", "objects": [
                object("a", json!([input(true, "")])),
                object("b", json!([input(true, ""), input(false, "the ID is taken")])),
            ]},
            { "kind": "kubernetes", "position": "f.yml:9:3", "objects": [
                object("c", json!([])),
                object("d", json!([input(false, "no path")])),
            ]},
        ]})
    }

    /// The ids of the objects that are shown, and how many match.
    fn ids(query: &str) -> (String, u64) {
        let answer = containers(&explanation(), &Query::parse(query)).expect("a valid query");
        let objects = answer["objects"].as_array().expect("a list");
        let ids = objects.iter().filter_map(|object| object["id"].as_str()).collect();
        (ids, answer["matched"].as_u64().expect("a number"))
    }

    #[test]
    fn what_is_not_read_comes_first_and_pages_are_cut_from_what_matches() {
        for (query, shown, matched) in [
            ("", "cdba", 4),
            ("state=read", "a", 1),
            ("state=in%20part", "b", 1),
            ("state=not+read", "cd", 2),
            ("q=taken", "b", 1),
            ("q=TAKEN+id", "b", 1),
            ("q=hints", "dba", 3),
            ("q=hints+nothing", "", 0),
            ("limit=1&offset=1", "d", 4),
            ("offset=9", "", 4),
        ] {
            assert_eq!(ids(query), (shown.to_owned(), matched), "{query}");
        }
        let all = containers(&explanation(), &Query::default()).expect("a valid query");
        assert_eq!(all["states"], json!({ "not read": 2, "in part": 1, "read": 1 }));
        assert_eq!(all["objects"][0]["kind"], "kubernetes");
        assert_eq!(
            all["providers"][1],
            json!({"kind": "kubernetes", "position": "f.yml:9:3", "objects": 2})
        );
        let wrong = containers(&explanation(), &Query::parse("state=x")).expect_err("no state");
        assert!(
            wrong.contains("`state` is `x`; expected one of not read, in part, read"),
            "{wrong}"
        );
    }
}
