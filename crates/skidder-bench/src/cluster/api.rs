//! The API server: one thread for a connection, which answers one request.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use skidder_os::{Clock, SystemClock};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Between two bookmarks, as of the real server.
const BOOKMARKS: Duration = Duration::from_mins(1);

/// Bytes of a request that are read.
const REQUEST_MAX: u64 = 64 << 10;

/// How long a watch lasts that names no time.
const WATCH: u64 = 1_800;

/// An API server on the loopback interface. Its threads end with the process.
#[derive(Clone, Debug)]
pub struct Cluster {
    state: Arc<Mutex<State>>,
    address: String,
}

#[derive(Debug)]
struct State {
    version: u64,
    /// By their uids.
    pods: BTreeMap<String, Pod>,
    /// Each change since the start: version, node, text of the event.
    changes: Vec<(u64, String, String)>,
    watches: Vec<(Selected, Sender<String>)>,
    /// Lists and single objects that were requested, and watches that were opened.
    requests: Requests,
}

#[derive(Debug)]
struct Pod {
    node: String,
    object: Value,
}

/// How many requests came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// Pages of lists, and single objects.
    pub reads: u64,
    /// Watches that were opened.
    pub watches: u64,
}

/// The pods that a request selects.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Selected {
    All,
    Node(String),
    /// Objects of another kind, of which there are none.
    Nothing,
}

impl Selected {
    /// `None` if there is nothing like that.
    fn of(target: &str) -> Option<Self> {
        if !target.starts_with("/api/v1/pods") {
            let is_list = target.starts_with("/api/v1/n") || target.starts_with("/apis/");
            return (is_list && !target.contains("/kube-system/")).then_some(Self::Nothing);
        }
        let node = parameter(target, "fieldSelector")
            .and_then(|field| field.strip_prefix("spec.nodeName%3D").map(str::to_owned));
        Some(node.map_or(Self::All, Self::Node))
    }

    fn has(&self, node: &str) -> bool {
        match self {
            Self::All => true,
            Self::Node(selected) => selected == node,
            Self::Nothing => false,
        }
    }
}

/// A parameter of a query, as it came.
fn parameter<'a>(target: &'a str, name: &str) -> Option<&'a str> {
    let (_, query) = target.split_once('?')?;
    query.split('&').find_map(|one| one.strip_prefix(name)?.strip_prefix('='))
}

impl State {
    /// One page of a list. The text that continues is the number of pods that came before.
    fn list(&self, selected: &Selected, target: &str) -> String {
        let number = |name| parameter(target, name).and_then(|text| text.parse::<usize>().ok());
        let (limit, before) = (number("limit").unwrap_or(usize::MAX), number("continue"));
        let before = before.unwrap_or(0);
        let all: Vec<&Value> = self
            .pods
            .values()
            .filter(|pod| selected.has(&pod.node))
            .map(|pod| &pod.object)
            .collect();
        let page: Vec<&Value> = all.iter().skip(before).take(limit).copied().collect();
        let end = before + page.len();
        let next = if end < all.len() { end.to_string() } else { String::new() };
        let meta = json!({ "resourceVersion": self.version.to_string(), "continue": next });
        json!({ "metadata": meta, "items": page }).to_string()
    }

    fn watch(&mut self, selected: Selected, target: &str) -> Receiver<String> {
        let since = parameter(target, "resourceVersion").and_then(|text| text.parse::<u64>().ok());
        let since = since.unwrap_or(self.version);
        let (send, events) = channel();
        for (version, node, text) in &self.changes {
            if *version > since && selected.has(node) {
                // The other end is held by this function.
                drop(send.send(text.clone()));
            }
        }
        self.watches.push((selected, send));
        events
    }
}

impl Cluster {
    /// Starts it, without pods, and writes `kubeconfig` into `folder`.
    pub fn start(folder: &Path) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("cannot listen on 127.0.0.1")?;
        let address = listener.local_addr()?.to_string();
        let state = State {
            version: 1,
            pods: BTreeMap::new(),
            changes: Vec::new(),
            watches: Vec::new(),
            requests: Requests::default(),
        };
        let cluster = Self { state: Arc::new(Mutex::new(state)), address };
        let serving = cluster.clone();
        std::thread::Builder::new().name("api-server".to_owned()).spawn(move || {
            for stream in listener.incoming().flatten() {
                let serving = serving.clone();
                std::thread::spawn(move || serving.serve(stream));
            }
        })?;
        let config = json!({
            "current-context": "bench",
            "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
            "clusters": [{"name": "bench", "cluster": {"server": format!("http://{}", cluster.address)}}],
            "users": [{"name": "bench", "user": {"token": "secret"}}],
        });
        std::fs::write(folder.join("kubeconfig"), config.to_string())?;
        Ok(cluster)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What came since the start.
    pub fn requests(&self) -> Requests {
        self.state().requests
    }

    /// A pod is there (`ADDED`), is another than before (`MODIFIED`), or is gone (`DELETED`).
    pub fn change(&self, kind: &str, mut object: Value) {
        let mut state = self.state();
        state.version += 1;
        let version = state.version;
        object["metadata"]["resourceVersion"] = version.to_string().into();
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        let node = object["spec"]["nodeName"].as_str().unwrap_or_default().to_owned();
        let text = format!("{}\n", json!({ "type": kind, "object": object }));
        state
            .watches
            .retain(|(selected, watch)| !selected.has(&node) || watch.send(text.clone()).is_ok());
        state.changes.push((version, node.clone(), text));
        if kind == "DELETED" {
            state.pods.remove(&uid);
        } else {
            state.pods.insert(uid, Pod { node, object });
        }
    }

    /// Answers one request. A client that goes away ends it.
    fn serve(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream);
        let Some(target) = target(&mut reader) else { return };
        let mut stream = reader.into_inner();
        let selected = Selected::of(&target);
        let is_watch = parameter(&target, "watch").is_some();
        match selected {
            Some(selected) if is_watch => {
                let events = {
                    let mut state = self.state();
                    state.requests.watches += 1;
                    state.watch(selected, &target)
                };
                let seconds =
                    parameter(&target, "timeoutSeconds").and_then(|text| text.parse().ok());
                drop(self.stream(
                    &mut stream,
                    &events,
                    Duration::from_secs(seconds.unwrap_or(WATCH)),
                ));
            }
            found => {
                let (status, body) = {
                    let mut state = self.state();
                    state.requests.reads += 1;
                    match found {
                        Some(selected) => ("200 OK", state.list(&selected, &target)),
                        None => ("404 Not Found", "{}".to_owned()),
                    }
                };
                let head = format!(
                    "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\n\
                     content-length: {}\r\n\r\n",
                    body.len()
                );
                drop(stream.write_all(format!("{head}{body}").as_bytes()));
            }
        }
    }

    /// Sends events, and a bookmark a minute.
    fn stream(
        &self,
        stream: &mut TcpStream,
        events: &Receiver<String>,
        life: Duration,
    ) -> std::io::Result<()> {
        let clock = SystemClock::new();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\
                    transfer-encoding: chunked\r\n\r\n";
        stream.write_all(head.as_bytes())?;
        while clock.monotonic().0 < life {
            let event = match events.recv_timeout(BOOKMARKS) {
                Ok(event) => event,
                Err(RecvTimeoutError::Timeout) => {
                    let version = self.state().version.to_string();
                    let object = json!({"metadata": {"resourceVersion": version}});
                    format!("{}\n", json!({"type": "BOOKMARK", "object": object}))
                }
                Err(RecvTimeoutError::Disconnected) => break,
            };
            stream.write_all(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes())?;
        }
        stream.write_all(b"0\r\n\r\n")
    }
}

/// Path and query of a request, whose headers are read.
fn target(stream: &mut impl BufRead) -> Option<String> {
    let mut stream = stream.take(REQUEST_MAX);
    let mut first = String::new();
    stream.read_line(&mut first).ok()?;
    let target = first.split(' ').nth(1)?.to_owned();
    loop {
        let mut header = String::new();
        if stream.read_line(&mut header).ok()? == 0 {
            return None;
        }
        if header.trim_end().is_empty() {
            return Some(target);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: &str, node: &str) -> Value {
        json!({"metadata": {"uid": name}, "spec": {"nodeName": node}})
    }

    fn get(cluster: &Cluster, target: &str) -> String {
        let mut stream = TcpStream::connect(&cluster.address).unwrap();
        stream.write_all(format!("GET {target} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn pods_of_a_node_are_listed_in_pages() {
        let folder = tempfile::tempdir().unwrap();
        let cluster = Cluster::start(folder.path()).unwrap();
        for (name, node) in [("a", "one"), ("b", "two"), ("c", "one"), ("d", "one")] {
            cluster.change("ADDED", pod(name, node));
        }
        cluster.change("DELETED", pod("a", "one"));
        let path = "/api/v1/pods?fieldSelector=spec.nodeName%3Done&limit=1&continue=";
        let first = get(&cluster, path);
        assert!(first.contains("\"uid\":\"c\"") && first.contains("\"continue\":\"1\""), "{first}");
        let second = get(&cluster, &format!("{path}1"));
        assert!(
            second.contains("\"uid\":\"d\"") && second.contains("\"continue\":\"\""),
            "{second}"
        );
        assert!(get(&cluster, "/api/v1/secrets").starts_with("HTTP/1.1 404"));
        assert_eq!(cluster.requests(), Requests { reads: 3, watches: 0 });
    }

    #[test]
    fn a_watch_begins_after_its_version_and_sends_only_what_it_selects() {
        let folder = tempfile::tempdir().unwrap();
        let cluster = Cluster::start(folder.path()).unwrap();
        cluster.change("ADDED", pod("old", "one"));
        cluster.change("ADDED", pod("new", "one"));
        let mut state = cluster.state();
        let selected = Selected::of("/api/v1/pods?fieldSelector=spec.nodeName%3Done&").unwrap();
        let events = state.watch(selected, "/api/v1/pods?resourceVersion=2");
        drop(state);
        cluster.change("ADDED", pod("elsewhere", "two"));
        cluster.change("DELETED", pod("new", "one"));
        let came: Vec<String> = events.try_iter().collect();
        assert_eq!(came.len(), 2, "{came:?}");
        assert!(came[0].contains("ADDED") && came[1].contains("DELETED"), "{came:?}");
    }
}
