//! Nomad's HTTP API: an agent with one node, and its allocations.

use crate::common::{Answer, Request, serve};
use serde_json::{Value as Json, json};

/// The id of the allocation that runs.
pub(crate) const ALLOCATION: &str = "43205e0e-3d55-f561-83cb-bed15e23b862";

/// The address.
pub(crate) fn serve_nomad() -> String {
    serve(answer).0
}

fn allocation(id: &str, status: &str) -> Json {
    json!({
        "ID": id, "Name": "job.group[0]", "Namespace": "default", "ClientStatus": status,
        "NodeName": "node-1",
        "Job": {"Name": "my-job", "Type": "service", "Region": "global", "Datacenters": ["dc1", "dc2"]},
    })
}

fn answer(request: &Request) -> Answer {
    let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
    if query == "namespace=secret&region=eu" && request.header("x-nomad-token") != "token" {
        return Answer::Now(403, "Permission denied".to_owned());
    }
    let running = allocation(ALLOCATION, "running");
    let ended = allocation("00000000-3d55-f561-83cb-bed15e23b862", "complete");
    let answer = match path {
        "/v1/agent/self" => {
            json!({"member": {"Name": "node-1.global"}, "stats": {"client": {"node_id": "id-1"}}})
        }
        "/v1/nodes" => json!([{"ID": "id-1", "Name": "node-1"}]),
        "/v1/node/id-1/allocations" => json!([running, ended]),
        "/v1/allocations" => json!([{"ID": ALLOCATION}]),
        _ if path == format!("/v1/allocation/{ALLOCATION}") => running,
        _ => return Answer::not_found(),
    };
    Answer::ok(answer.to_string())
}
