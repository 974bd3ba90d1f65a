//! Docker's HTTP API on a unix socket: the list of containers and the stream of events.
#![allow(dead_code, reason = "not every test uses all of it")]
#![expect(clippy::unwrap_used, reason = "a test that cannot serve has failed")]

use crate::common::{Answer, Request, Requests, serve_unix};
use serde_json::{Value as Json, json};
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};

/// Running containers, and open streams of events.
#[derive(Clone, Default)]
pub(crate) struct Docker {
    containers: Arc<Mutex<Vec<Json>>>,
    listeners: Arc<Mutex<Vec<Sender<String>>>>,
    pub(crate) requests: Requests,
}

/// The id of a container: `letter`, 64 times.
pub(crate) fn id(letter: char) -> String {
    letter.to_string().repeat(64)
}

impl Docker {
    /// Serves on a socket for the rest of the test.
    pub(crate) fn serve(socket: &Path) -> Self {
        let mut docker = Self::default();
        let answering = docker.clone();
        docker.requests = serve_unix(socket, move |request| answering.answer(request));
        docker
    }

    fn answer(&self, request: &Request) -> Answer {
        let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
        let only = query.strip_prefix("filters=%7B%22id%22%3A%5B%22");
        match path {
            "/events" => {
                assert_eq!(query, "filters=%7B%22type%22%3A%5B%22container%22%5D%7D");
                let (sender, receiver) = channel();
                self.listeners.lock().unwrap().push(sender);
                Answer::Chunks(receiver)
            }
            "/containers/json" => {
                let containers = self.containers.lock().unwrap();
                let is_wanted = |container: &&Json| {
                    only.is_none_or(|id| id.starts_with(container["Id"].as_str().unwrap()))
                };
                let list: Vec<&Json> = containers.iter().filter(is_wanted).collect();
                Answer::ok(json!(list).to_string())
            }
            _ => Answer::not_found(),
        }
    }

    /// A container runs, without an event.
    pub(crate) fn run(&self, letter: char, name: &str, labels: Json) {
        let container = json!({
            "Id": id(letter), "Names": [format!("/{name}")], "Image": "image:1", "Labels": labels,
            "State": "running", "Created": 1_700_000_000, "Ports": [],
        });
        self.containers.lock().unwrap().push(container);
    }

    /// Sends an event of a container to all listeners.
    pub(crate) fn send_event(&self, action: &str, letter: char) {
        if action == "die" {
            self.containers.lock().unwrap().retain(|container| container["Id"] != id(letter));
        }
        let event = json!({"Type": "container", "Action": action, "Actor": {"ID": id(letter)}, "timeNano": 1});
        self.listeners
            .lock()
            .unwrap()
            .retain(|listener| listener.send(format!("{event}\n")).is_ok());
    }

    /// Everybody's stream ends.
    pub(crate) fn hang_up(&self) {
        self.listeners.lock().unwrap().clear();
    }
}
