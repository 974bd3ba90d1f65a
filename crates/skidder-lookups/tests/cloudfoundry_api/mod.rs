//! The Cloud Controller's API and the UAA, on one port.

use crate::common::{Answer, Request, serve};
use serde_json::json;

/// The address of the API.
pub(crate) fn serve_api() -> String {
    let (uaa, _) = serve(uaa);
    serve(move |request| api(request, &uaa)).0
}

/// Accepts `me:a secret`, with the blank escaped.
fn uaa(request: &Request) -> Answer {
    let right = request.method == "POST"
        && request.target == "/oauth/token"
        && request.header("authorization") == "Basic bWU6YSUyMHNlY3JldA=="
        && request.body == "grant_type=client_credentials";
    if !right {
        return Answer::Now(401, "unauthorized".to_owned());
    }
    Answer::ok(json!({"access_token": "token", "token_type": "bearer"}).to_string())
}

fn api(request: &Request, uaa: &str) -> Answer {
    if request.target == "/v2/info" {
        return Answer::ok(json!({"authorization_endpoint": format!("http://{uaa}")}).to_string());
    }
    if request.header("authorization") != "Bearer token" {
        return Answer::Now(401, "unauthorized".to_owned());
    }
    if request.target != "/v2/apps/app-1?inline-relations-depth=2" {
        return Answer::Now(404, json!({"error_code": "CF-AppNotFound"}).to_string());
    }
    let organisation = json!({"metadata": {"guid": "org-1"}, "entity": {"name": "my org"}});
    let space = json!({"name": "my space", "organization": organisation});
    let space = json!({"metadata": {"guid": "space-1"}, "entity": space});
    let app = json!({"metadata": {"guid": "app-1"}, "entity": {"name": "my app", "space": space}});
    Answer::ok(app.to_string())
}
