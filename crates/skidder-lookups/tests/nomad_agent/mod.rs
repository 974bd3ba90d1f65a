//! An agent of Nomad whose allocations change, with blocking queries.
#![allow(dead_code, reason = "each test program uses a part of it")]

use crate::http_api::{Answer, Request, Requests, serve};
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// The id of its node.
pub(crate) const NODE: &str = "id-1";

/// The agent, for the rest of the test.
pub(crate) struct Agent {
    address: String,
    requests: Requests,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    index: u64,
    allocations: BTreeMap<String, Json>,
    tokens: BTreeSet<String>,
    refuses: bool,
    hides_index: bool,
    /// Grows when waiting queries are to end without an answer.
    breaks: usize,
}

impl Agent {
    /// Without allocations.
    pub(crate) fn start() -> Self {
        let shared = Arc::new(Shared::default());
        let answering = Arc::clone(&shared);
        let (address, requests) = serve(move |request| answering.answer(request));
        Self { address, requests, shared }
    }

    pub(crate) fn address(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Requests in their order.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    /// The tokens that came.
    pub(crate) fn tokens(&self) -> Vec<String> {
        self.state().tokens.iter().cloned().collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap()
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
        self.shared.changed.notify_all();
    }

    /// An allocation is there, or is another than before; `meta` is that of its task `web`.
    pub(crate) fn put(&self, id: &str, status: &str, meta: Json) {
        self.set(id, status, meta, 1_000);
    }

    /// The same with the time of its last change, in nanoseconds since 1970.
    pub(crate) fn put_at(&self, id: &str, status: &str, time: i64) {
        self.set(id, status, json!({}), time);
    }

    fn set(&self, id: &str, status: &str, meta: Json, time: i64) {
        self.change(|state| {
            state.index += 1;
            let allocation = json!({
                "ID": id, "Name": format!("shop.web[{id}]"), "Namespace": "shop", "NodeName": "node-1",
                "ClientStatus": status, "TaskGroup": "web", "ModifyIndex": state.index,
                "ModifyTime": time, "CreateTime": 1,
                "Job": {
                    "Name": "shop", "Type": "service", "Region": "global", "Datacenters": ["dc1"],
                    "TaskGroups": [{ "Name": "web", "Tasks": [{ "Name": "web", "Meta": meta }] }],
                },
            });
            state.allocations.insert(id.to_owned(), allocation);
        });
    }

    /// An allocation is no longer known.
    pub(crate) fn remove(&self, id: &str) {
        self.change(|state| {
            state.index += 1;
            state.allocations.remove(id);
        });
    }

    /// Queries get 403 with what they sent, or answers again.
    pub(crate) fn refuse(&self, refuses: bool) {
        self.change(|state| state.refuses = refuses);
    }

    /// Queries that wait end without an answer.
    pub(crate) fn break_queries(&self) {
        self.change(|state| state.breaks += 1);
    }

    /// The state is that of this index.
    pub(crate) fn restore(&self, index: u64) {
        self.change(|state| state.index = index);
    }

    /// Answers have no index.
    pub(crate) fn hide_index(&self) {
        self.change(|state| state.hides_index = true);
    }
}

impl Shared {
    fn answer(&self, request: &Request) -> Answer {
        let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
        let of = |name: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
        };
        let mut state = self.state.lock().unwrap();
        let token = request.header("x-nomad-token").to_owned();
        let refusal = Answer::Now(403, format!("Permission denied for {token}"));
        state.tokens.insert(token);
        if state.refuses {
            return refusal;
        }
        let body = match path {
            "/v1/agent/self" => json!({
                "member": { "Name": "node-1.global" }, "stats": { "client": { "node_id": NODE } },
            }),
            "/v1/nodes" => json!([{ "ID": NODE, "Name": "node-1" }]),
            "/v1/allocations" | "/v1/node/id-1/allocations" => {
                let since: u64 = of("index").unwrap_or("0").parse().unwrap();
                let wait = of("wait").unwrap_or("1000ms").trim_end_matches("ms").parse().unwrap();
                let wait = Duration::from_millis(if since == 0 { 0 } else { wait });
                let breaks = state.breaks;
                let is_waiting = |state: &mut State| {
                    state.index <= since && state.breaks == breaks && !state.refuses
                };
                let waited = self.changed.wait_timeout_while(state, wait, is_waiting);
                state = waited.unwrap().0;
                if state.refuses {
                    return refusal;
                }
                if state.breaks != breaks {
                    return Answer::Broken;
                }
                let mut list: Vec<Json> = state.allocations.values().cloned().collect();
                if path == "/v1/allocations" {
                    for item in &mut list {
                        item.as_object_mut().unwrap().remove("Job");
                    }
                }
                Json::Array(list)
            }
            _ => match path.strip_prefix("/v1/allocation/") {
                Some(id) if state.allocations.contains_key(id) => state.allocations[id].clone(),
                _ => return Answer::not_found(),
            },
        };
        let index = (!state.hides_index).then(|| ("X-Nomad-Index", state.index.to_string()));
        Answer::With(index, body.to_string())
    }
}
