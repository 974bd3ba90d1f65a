//! The page over real sockets: access, and headers of the answers.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::{Run, batch};
use serde_json::Value as Json;
use skidder_config::Secret;
use skidder_net::BoundAddress;
use skidder_observe::{Endpoint, Explain, HttpAuth, HttpConfig, ProviderTrouble, Sources, serve};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

/// The token of the data directory, as it is sent.
const OWNER: &str = "authorization: Bearer token-of-the-data\r\n";

/// As a run has it that is not configured otherwise.
fn by_default() -> HttpAuth {
    HttpAuth { own: Some(Secret::new("token-of-the-data")), ..HttpAuth::default() }
}

struct Server {
    address: SocketAddr,
    sources: Arc<Sources>,
    _stop: oneshot::Sender<()>,
}

struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn json(&self) -> Json {
        serde_json::from_str(&self.body).unwrap()
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

async fn start(host: &str, auth: HttpAuth) -> Server {
    serve_sources(host, auth, Run::busy().sources).await
}

async fn serve_sources(host: &str, auth: HttpAuth, sources: Arc<Sources>) -> Server {
    let (stop, stopped) = oneshot::channel();
    let shutdown = async {
        drop(stopped.await);
    };
    let endpoint = Endpoint::Tcp { host: host.to_owned(), port: 0 };
    let config = HttpConfig { enabled: true, endpoint, auth, ..HttpConfig::default() };
    let serving = serve(&config, Arc::clone(&sources), shutdown).await.unwrap();
    let BoundAddress::Tcp(mut address) = serving.address else { panic!("not TCP") };
    if address.ip().is_unspecified() {
        address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
    }
    Server { address, sources, _stop: stop }
}

impl Server {
    async fn ask(&self, path: &str, headers: &str) -> Answer {
        self.request("GET", path, headers).await
    }

    async fn request(&self, method: &str, path: &str, headers: &str) -> Answer {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let host = if headers.contains("host:") { "" } else { "host: localhost\r\n" };
        let request =
            format!("{method} {path} HTTP/1.1\r\n{host}{headers}connection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head: head.to_lowercase(), body: body.to_owned() }
    }
}

#[tokio::test]
async fn a_browser_is_led_to_the_page_and_a_collector_gets_json_as_before() {
    let server = start("localhost", by_default()).await;
    let browser =
        server.ask("/", "accept: text/html,application/xhtml+xml;q=0.9,*/*;q=0.8\r\n").await;
    assert_eq!((browser.status, browser.header("location")), (302, Some("/ui/")));
    for accept in ["", "accept: */*\r\n", "accept: application/json\r\n"] {
        let collector = server.ask("/", accept).await;
        assert_eq!(collector.status, 200);
        assert_eq!(collector.json()["beat"], "filebeat");
    }
    assert_eq!(server.ask("/ui", "").await.header("location"), Some("/ui/"));
}

#[tokio::test]
async fn the_page_has_a_strict_policy_and_is_not_sent_twice() {
    let server = start("localhost", by_default()).await;
    let page = server.ask("/ui/", "").await;
    assert_eq!(page.status, 200);
    assert!(page.body.starts_with("<!doctype html>"), "{}", page.body);
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(page.header("access-control-allow-origin"), None);
    let tag = page.header("etag").unwrap();
    let again = server.ask("/ui/", &format!("if-none-match: {tag}\r\n")).await;
    assert_eq!((again.status, &*again.body), (304, ""));
    for script in page.body.split("src=\"").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        assert_eq!(server.ask(&format!("/ui/{script}"), "").await.status, 200, "{script}");
    }
    assert_eq!(server.ask("/ui/nothing", "").await.status, 404);
}

#[tokio::test]
async fn the_overview_has_a_ledger_whose_sum_is_told() {
    let server = start("localhost", by_default()).await;
    let live = server.ask("/ui/live", "").await.json();
    let ledger = &live["ledger"];
    assert_eq!((&ledger["read"], &ledger["adds_up"]), (&20.into(), &true.into()));
    let sum = ["delivered", "dropped", "dead_lettered", "stored", "in_flight"]
        .map(|part| ledger[part].as_u64().unwrap());
    assert_eq!(sum.iter().sum::<u64>(), 20);
    assert_eq!(ledger["reasons"]["drop_event"], 4);
    assert_eq!(live["outputs"][0]["state"], "delivering");
    assert_eq!(live["outputs"][0]["retried"], 3);
    let lag = server.ask("/lag", "").await.json();
    assert_eq!((&lag["totals"]["files"], &lag["files"]), (&0.into(), &Json::Array(Vec::new())));
    let sources = server.ask("/sources", "").await.json();
    let number = |name: &str| sources[name].as_u64();
    assert_eq!(
        (number("inputs"), number("file_inputs"), number("open")),
        (Some(0), Some(2), Some(0))
    );
    for wrong in [
        "/sources?sort=color",
        "/sources?order=up",
        "/sources?input=x",
        "/ui/letters?limit=x",
        "/lag?sort=color",
        "/lag?order=up",
        "/lag?limit=x",
    ] {
        assert_eq!(server.ask(wrong, OWNER).await.status, 400, "{wrong}");
    }
}

#[tokio::test]
async fn a_name_that_was_pointed_to_the_loopback_gets_nothing() {
    let server = start("localhost", by_default()).await;
    let shown =
        ["/ui/", "/ui/live", "/ui/letters", "/ui/plan", "/ui/files", "/ui/tail", "/ui/search"];
    for path in shown.into_iter().chain(["/files", "/sources", "/lag", "/problems", "/ui/session"])
    {
        let refused = server.ask(path, &format!("host: evil.example\r\n{OWNER}")).await;
        assert_eq!(refused.status, 403, "{path}");
        assert!(!refused.body.contains("elasticsearch"), "{}", refused.body);
        let foreign = server.ask(path, "sec-fetch-site: cross-site\r\n").await;
        assert_eq!(foreign.status, if path == "/ui/" { 200 } else { 403 }, "{path}");
    }
    assert_eq!(server.ask("/stats", "host: evil.example\r\n").await.status, 200, "as before");
}

#[tokio::test]
async fn elsewhere_than_on_the_loopback_the_page_is_closed_and_filebeats_paths_are_not() {
    // Clients on this machine are let in by any address of it, so that `skidder status` works there.
    let at_all = start("0.0.0.0", by_default()).await;
    assert_eq!(at_all.ask("/lag", "").await.status, 200);
    assert_eq!(at_all.ask("/ui/tail?viewer=a", "").await.status, 401, "events need more");
    assert_eq!(at_all.ask("/lag", "host: logs.example\r\n").await.status, 403);
    let Some(own) = own_address() else { return };
    let server = Server { address: SocketAddr::new(own, at_all.address.port()), ..at_all };
    let shown =
        ["/ui/", "/ui/live", "/ui/letters", "/ui/plan", "/ui/tail?viewer=a", "/ui/search?q=x"];
    for path in shown.into_iter().chain(["/files", "/sources", "/lag", "/problems", "/ui/session"])
    {
        let refused = server.ask(path, OWNER).await;
        assert_eq!(refused.status, 403, "{path}");
        assert!(refused.body.contains("http.auth.token"), "{}", refused.body);
    }
    for path in ["/", "/stats", "/state", "/inputs/", "/metrics"] {
        assert_eq!(server.ask(path, "").await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn with_a_token_the_page_asks_for_it_everywhere() {
    for host in ["0.0.0.0", "localhost"] {
        let auth = HttpAuth { token: Some(Secret::new("long-enough")), ..HttpAuth::default() };
        let server = start(host, auth).await;
        let unauthorized = server.ask("/ui/", "").await;
        assert_eq!(unauthorized.status, 401);
        assert!(unauthorized.header("www-authenticate").unwrap().starts_with("basic realm"));
        assert!(!unauthorized.body.contains("long-enough"));
        let known = server.ask("/ui/live", "authorization: Bearer long-enough\r\n").await;
        assert_eq!(known.status, 200);
        let wrong = server.ask("/ui/live", "authorization: Bearer long-enougx\r\n").await;
        assert_eq!(wrong.status, 401);
        assert_eq!(server.ask("/stats", "").await.status, 200, "collectors are not asked");
    }
}

/// An address of this machine that is not the loopback, if it has one: nothing is sent to find it.
fn own_address() -> Option<std::net::IpAddr> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.connect("192.0.2.1:9").ok()?;
    Some(socket.local_addr().unwrap().ip()).filter(|address| !address.is_loopback())
}

#[tokio::test]
async fn events_are_for_who_knows_the_token_and_a_browser_keeps_a_session_of_two_parts() {
    let server = start("localhost", by_default()).await;
    for path in ["/ui/tail?viewer=a", "/ui/search?q=x", "/ui/letters", "/ui/session"] {
        let refused = server.ask(path, "").await;
        assert_eq!(refused.status, 401, "{path}");
        assert!(refused.body.contains("skidder page"), "{}", refused.body);
        assert_eq!(refused.header("www-authenticate"), Some("bearer realm=\"skidder\""));
        assert_eq!(server.ask(path, OWNER).await.status, 200, "{path}");
    }
    for path in [
        "/ui/",
        "/ui/live",
        "/ui/plan",
        "/ui/files",
        "/ui/sources",
        "/files",
        "/sources",
        "/lag",
        "/problems",
    ] {
        let shown = server.ask(path, "").await;
        assert!(!matches!(shown.status, 401 | 403), "{path} shows no events: {}", shown.body);
        assert!(!shown.body.contains("token-of-the-data"));
    }
    // A server's reason may quote the event.
    server.sources.outputs[0].metrics.note_refused(1, "it said: 'a secret'");
    for path in ["/problems", "/ui/problems"] {
        let (others, owner) = (server.ask(path, "").await, server.ask(path, OWNER).await);
        assert!(others.body.contains("refused 1 event"), "{path}: {}", others.body);
        assert!(!others.body.contains("a secret"), "{path}: {}", others.body);
        assert!(owner.body.contains("a secret"), "{}", owner.body);
    }
    let session = server.ask("/ui/session", OWNER).await;
    let cookie = session.header("set-cookie").unwrap();
    for part in ["httponly", "samesite=strict", "path=/ui/"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    let pair = cookie.split(';').next().unwrap();
    assert!(!session.head.contains("token-of-the-data") && !session.body.contains("token-of"));
    let key = session.json()["key"].as_str().unwrap().to_owned();
    let both = format!("cookie: {pair}\r\nx-skidder-key: {key}\r\n");
    assert_eq!(server.ask("/ui/letters", &both).await.status, 200);
    let again = server.ask("/ui/session", &both).await;
    assert_eq!((again.status, again.header("set-cookie").is_some()), (200, true), "it goes on");
    for half in [format!("cookie: {pair}\r\n"), format!("x-skidder-key: {key}\r\n")] {
        assert_eq!(server.ask("/ui/letters", &half).await.status, 401, "{half}");
    }
    // With `http.auth` the browser prompts, and there is no session.
    let auth = HttpAuth { token: Some(Secret::new("long-enough")), ..by_default() };
    let server = start("localhost", auth).await;
    assert_eq!(server.ask("/ui/letters", OWNER).await.status, 401, "what is configured counts");
    for path in ["/files", "/sources", "/lag", "/problems"] {
        assert_eq!(server.ask(path, "").await.status, 401, "{path}");
    }
    let session = server.ask("/ui/session", "authorization: Bearer long-enough\r\n").await;
    assert_eq!((session.header("set-cookie"), &session.json()["key"]), (None, &Json::Null));
}

/// A run with autodiscover, which has seen a container.
fn with_autodiscover() -> Arc<Sources> {
    let mut sources = (*Run::busy().sources).clone();
    let explanation = serde_json::json!({"providers": [{"kind": "docker", "position": "f.yml:2:3", "objects": [
        {"id": "abc", "name": "container web", "state": "there", "events": [], "inputs": [
            {"key": "k", "origin": "hints", "runs": true, "reason": "", "configuration": "type: filestream"},
        ]},
    ]}]});
    let failures = vec![("container web".to_owned(), "the hint is wrong".to_owned()); 2];
    sources.explain = Some(Explain {
        explain: Arc::new(move || explanation.clone()),
        failures: Arc::new(move || failures.clone()),
        troubles: Arc::new(|| {
            vec![ProviderTrouble {
                provider: "provider `docker` (f.yml:2:3)".to_owned(),
                error: "no socket".to_owned(),
                remedy: "start it".to_owned(),
                blocks: true,
            }]
        }),
    });
    Arc::new(sources)
}

#[tokio::test]
async fn containers_are_searched_on_the_server_and_configurations_are_for_the_owner() {
    let server = serve_sources("localhost", by_default(), with_autodiscover()).await;
    assert_eq!(server.ask("/ui/live", "").await.json()["autodiscover"], true);
    let refused = server.ask("/ui/autodiscover", "").await;
    assert_eq!(refused.status, 401, "{}", refused.body);
    assert!(!refused.body.contains("filestream"));
    let all = server.ask("/ui/autodiscover", OWNER).await.json();
    assert_eq!(all["objects"][0]["inputs"][0]["configuration"], "type: filestream");
    assert_eq!(all["objects"][0]["read"], "read");
    let none = server.ask("/ui/autodiscover?q=nginx", OWNER).await.json();
    assert_eq!((&none["matched"], &none["total"]), (&0.into(), &1.into()));
    assert_eq!(server.ask("/ui/autodiscover?state=x", OWNER).await.status, 400);

    let problem = |problems: Json| {
        let all = problems["problems"].as_array().unwrap().clone();
        all.into_iter().find(|one| one["kind"] == "not_discovered")
    };
    let seen = problem(server.ask("/problems", OWNER).await.json()).unwrap();
    assert_eq!(seen["what"], "autodiscover: inputs of 2 objects do not run, such as container web");
    assert_eq!((&seen["severity"], &seen["cause"]), (&"error".into(), &"the hint is wrong".into()));
    let hidden = problem(server.ask("/problems", "").await.json()).unwrap();
    assert_eq!(hidden["cause"], Json::Null, "it may quote an annotation");

    let without = start("localhost", by_default()).await;
    assert_eq!(without.ask("/ui/live", "").await.json()["autodiscover"], false);
    assert!(problem(without.ask("/problems", OWNER).await.json()).is_none());
    assert_eq!(without.ask("/ui/autodiscover", OWNER).await.status, 404);
}

/// Polls as a viewer until so many events came, and returns their numbers and how many were missed.
async fn watch(server: &Server, question: &str, events: usize) -> (BTreeSet<u64>, u64) {
    let (mut seen, mut missed) = (BTreeSet::new(), 0);
    let look = async {
        while seen.len() < events {
            let answer = server.ask(&format!("/ui/tail?{question}"), OWNER).await;
            assert_eq!(answer.status, 200, "{}", answer.body);
            let answer = answer.json();
            for event in answer["events"].as_array().unwrap() {
                assert_eq!(event["event"]["message"], "a message");
                assert!(seen.insert(event["number"].as_u64().unwrap()), "twice: {event}");
            }
            missed += answer["missed"].as_u64().unwrap();
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), look).await.unwrap();
    (seen, missed)
}

/// Waits for what another thread does.
async fn until(condition: impl Fn() -> bool) {
    let met = async {
        while !condition() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), met).await.expect("it never comes");
}

#[tokio::test]
async fn the_tap_closes_a_minute_after_the_last_look_and_not_before() {
    let run = Run::busy();
    let clock = run.clock.clone();
    let server = serve_sources("localhost", by_default(), Arc::clone(&run.sources)).await;
    let queue = &server.sources.outputs[0].queue;
    assert!(!queue.tap().is_open(), "nobody has looked");
    let first = server.ask("/ui/tail?viewer=a", OWNER).await.json();
    assert_eq!(first["last"], 0);
    // Looked at again in time: what passes two minutes after the first look is still shown.
    clock.advance(Duration::from_secs(59));
    server.ask("/ui/tail?viewer=a", OWNER).await;
    clock.advance(Duration::from_secs(59));
    // Behind two rounds at this time it is clear that it stays open.
    for rows in [1, 2] {
        queue.push(batch(0, rows)).unwrap();
        until(|| queue.tap().waiting() == 0).await;
    }
    assert!(queue.tap().is_open(), "it closes too early");
    assert_eq!(watch(&server, "viewer=b", 3).await.0, [1, 2, 3].into());
    clock.advance(Duration::from_secs(61));
    until(|| !queue.tap().is_open()).await;
    queue.push(batch(1, 2)).unwrap();
    let late = server.ask("/ui/tail?viewer=b", OWNER).await.json();
    assert_eq!(late["events"], Json::Array(Vec::new()), "what passed meanwhile is not kept");
    assert_eq!(late["last"], 3);
}

#[tokio::test]
async fn events_are_watched_as_they_pass_each_once_and_those_before_are_not_kept() {
    let server = start("localhost", by_default()).await;
    let queue = &server.sources.outputs[0].queue;
    let first = server.ask("/ui/tail?viewer=a", OWNER).await.json();
    assert_eq!((&first["events"], &first["last"]), (&Json::Array(Vec::new()), &0.into()));
    queue.push(batch(0, 7)).unwrap();
    assert_eq!(watch(&server, "viewer=a", 7).await, ((1..=7).collect(), 0));
    // Another one scrolls back to the kept events, and a filter of its own begins anew.
    assert_eq!(watch(&server, "viewer=b&after=2", 5).await.0, (3..=7).collect());
    assert_eq!(watch(&server, "viewer=a&q=message:MESSAGE", 7).await.0.len(), 7);
    let other = server.ask("/ui/tail?viewer=a&q=-message", OWNER).await.json();
    assert_eq!(other["events"], Json::Array(Vec::new()));
    for id in ["c", "d"] {
        assert_eq!(server.ask(&format!("/ui/tail?viewer={id}"), OWNER).await.status, 200);
    }
    let refused = server.ask("/ui/tail?viewer=e", OWNER).await;
    assert_eq!(refused.status, 400);
    assert!(refused.body.contains("4 others watch already"), "{}", refused.body);
    assert_eq!(server.ask("/ui/tail", OWNER).await.status, 400);
}

#[tokio::test]
async fn a_question_for_the_head_alone_takes_no_event_and_starts_no_search() {
    let server = start("localhost", by_default()).await;
    let queue = &server.sources.outputs[0].queue;
    server.ask("/ui/tail?viewer=a", OWNER).await;
    queue.push(batch(0, 7)).unwrap();
    // Another viewer polls until all are there to be taken.
    watch(&server, "viewer=b", 7).await;
    for path in ["/ui/tail?viewer=a", "/ui/search?q=x"] {
        let head = server.request("HEAD", path, OWNER).await;
        assert_eq!((head.status, &*head.body), (200, ""), "{path}");
        assert_eq!(head.header("content-length"), None, "{path}");
    }
    assert_eq!(watch(&server, "viewer=a", 7).await.0.len(), 7);
    let refused = server.request("HEAD", "/ui/tail?viewer=a", "host: evil.example\r\n").await;
    assert_eq!(refused.status, 403);
}

#[tokio::test]
async fn what_is_too_much_to_show_is_counted_and_holds_nobody_up() {
    let server = start("localhost", by_default()).await;
    let queue = &server.sources.outputs[0].queue;
    server.ask("/ui/tail?viewer=a", OWNER).await;
    for _ in 0..3 {
        // There is no waiting: `push` goes on at once, though nothing reads what is shown.
        queue.push(batch(0, 700)).unwrap();
    }
    let mut total = 0;
    let look = async {
        while total < 2100 {
            let (seen, missed) = watch(&server, "viewer=a", 1).await;
            assert!(seen.len() <= 500, "one answer has a bound");
            total += seen.len() as u64 + missed;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), look).await.unwrap();
    assert_eq!(total, 2100, "shown or counted");
}

#[tokio::test]
async fn a_search_tells_its_end_and_a_wrong_one_is_refused() {
    let server = start("localhost", by_default()).await;
    let answer = server.ask("/ui/search?q=x", OWNER).await;
    assert_eq!(answer.header("content-type"), Some("application/x-ndjson; charset=utf-8"));
    let records: Vec<&str> = answer.body.lines().filter(|line| line.starts_with('{')).collect();
    let end: Json = serde_json::from_str(records.last().unwrap()).unwrap();
    assert_eq!((&end["end"]["reason"], &end["end"]["files"]), (&"all".into(), &0.into()));
    for wrong in ["", "?from=x", "?q=x&limit=y"] {
        assert_eq!(server.ask(&format!("/ui/search{wrong}"), OWNER).await.status, 400, "{wrong}");
    }
}
