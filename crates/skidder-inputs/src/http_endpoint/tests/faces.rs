//! Clients of other servers: each face keeps the contract of inputs, and answers as its server does.

use super::*;
use std::fmt::Write as _;

fn body_of(answered: &Answered) -> Value {
    serde_json::from_str(&answered.body).unwrap_or_else(|_| panic!("{answered:?}"))
}

fn get(path: &str) -> Vec<u8> {
    bytes_of("GET", path, "", b"")
}

const NDJSON: &str = "Content-Type: application/x-ndjson\r\n";

fn bulk(path: &str, body: &str) -> Vec<u8> {
    bytes_of("POST", path, NDJSON, body.as_bytes())
}

const ELASTICSEARCH: Dialect = Dialect {
    settings: ", accept: elasticsearch",
    request: |lines| {
        let mut body = String::new();
        for &number in lines {
            let document = json!({"message": line(number)});
            writeln!(body, "{{\"create\":{{\"_index\":\"i\"}}}}\n{document}").unwrap();
        }
        bulk("/_bulk", &body)
    },
    is_taken: |answered| answered.status == 200 && body_of(answered)["errors"] == false,
    garbage: || {
        let bodies =
            ["{\"create\":{}}\n{\"message\":\"line 0\"}\nline 0\n", "", "{\"create\":{}}\n"];
        bodies.map(|body| bulk("/_bulk", body)).to_vec()
    },
};

#[tokio::test(flavor = "multi_thread")]
async fn elasticsearch_keeps_the_contract_of_inputs() {
    keep_input(|| Client::new(ELASTICSEARCH)).await;
}

fn face(address: SocketAddr, more: &str, sockets: &Sockets) -> Box<dyn Input> {
    input(address, more, sockets)
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_of_elasticsearch_find_what_they_look_for_before_they_send() {
    let (address, sockets) = free_address();
    let login = ", accept: [elasticsearch], basic_auth: true, username: u, password: p";
    let mut bench = Bench::start(face(address, login, &sockets), 100);
    let anonymous = exchange(address, &get("/")).await;
    assert_eq!(anonymous.status, 401);
    assert_eq!(body_of(&anonymous)["error"]["type"], "security_exception");
    let ask = async |method: &str, path: &str| {
        let headers = "Authorization: Basic dTpw\r\n";
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(&bytes_of(method, path, headers, b"")).await.unwrap();
        if method == "HEAD" {
            // There is a length, but no body.
            let mut head = [0; 15];
            stream.read_exact(&mut head).await.unwrap();
            return (String::from_utf8_lossy(&head[9..12]).parse().unwrap(), json!(null), None);
        }
        let answered = Answered::read(&mut stream, &mut Vec::new()).await.unwrap();
        let product = answered.headers.get("x-elastic-product").cloned();
        (answered.status, body_of(&answered), product)
    };
    let (status, info, product) = ask("GET", "/").await;
    assert_eq!((status, &info["version"]["number"]), (200, &json!("9.6.0")));
    assert_eq!(product, Some(vec!["Elasticsearch".to_owned()]));
    let (status, license, _) = ask("GET", "/_license?human=false").await;
    assert_eq!((status, &license["license"]["status"]), (200, &json!("active")));
    assert_eq!(ask("GET", "/_xpack").await.1["features"]["ilm"]["enabled"], true);
    assert_eq!(ask("GET", "/_cluster/health").await.1["status"], "green");
    assert_eq!(ask("PUT", "/_index_template/a").await.1["acknowledged"], true);
    for (method, path) in [("HEAD", "/"), ("HEAD", "/_index_template/a"), ("GET", "/_ilm/policy/a")]
    {
        assert_eq!(ask(method, path).await.0, 200, "{method} {path}");
    }
    assert_eq!(ask("GET", "/i/_search").await.0, 404);
    assert_eq!(ask("POST", "/_bulk").await.0, 400, "a body is missing");
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_are_events_and_each_has_its_answer() {
    let (address, sockets) = free_address();
    let mut bench = Bench::start(face(address, ", accept: elasticsearch", &sockets), 100);
    let body = "{\"index\":{\"_index\":\"i\",\"_id\":\"7\"}}\n\
                {\"@timestamp\":\"2026-01-02T03:04:05.678Z\",\"message\":\"a\",\"host\":{\"name\":\"h\"},\"n\":1.50}\n\
                {\"create\":{}}\n{\"broken\":\n{\"create\":{}}\n[1]\n\
                {\"delete\":{\"_index\":\"i\",\"_id\":\"7\"}}\n\
                {\"create\":{}}\n{\"message\":\"b\",\"input\":{\"type\":\"x\"}}\n";
    let asking = bulk("/logs/_bulk?pipeline=p&filter_path=errors", body);
    let asking = tokio::spawn(async move { exchange(address, &asking).await });
    bench.events(2).await;
    let answered = asking.await.unwrap();
    assert_eq!(answered.status, 200);
    let answer = body_of(&answered);
    let items = answer["items"].as_array().unwrap();
    let seen: Vec<_> = items
        .iter()
        .map(|item| {
            let (verb, result) = item.as_object().unwrap().iter().next().unwrap();
            (verb.as_str(), result["_index"].as_str().unwrap(), result["status"].as_u64().unwrap())
        })
        .collect();
    let expected = [
        ("index", "i", 201),
        ("create", "logs", 400),
        ("create", "logs", 400),
        ("delete", "i", 400),
        ("create", "logs", 201),
    ];
    assert_eq!(seen, expected);
    assert_eq!(answer["errors"], true);
    let events = [
        json!({"message": "a", "host": {"name": "h"}, "n": 1.50, "input": {"type": "http_endpoint"}}),
        json!({"message": "b", "input": {"type": "x"}}),
    ];
    assert_eq!(bench.events, events);
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_no_room_or_no_verdict_in_time_is_answered_with_429() {
    let (address, sockets) = free_address();
    let more = ", accept: elasticsearch, completion_timeout: 100ms, retry_after: 3";
    let mut bench = Bench::start(face(address, more, &sockets), 1);
    bench.is_stuck = true;
    let one = bulk("/_bulk", "{\"create\":{}}\n{\"message\":\"a\"}\n");
    for reason in ["no verdict within completion_timeout", "the queue is full"] {
        let busy = exchange(address, &one).await;
        assert_eq!((busy.status, &busy.headers["retry-after"][0][..]), (429, "3"));
        let error = &body_of(&busy)["error"];
        assert_eq!(error["type"], "es_rejected_execution_exception");
        assert_eq!(error["reason"], reason);
    }
    bench.is_stuck = false;
    bench.events(1).await;
    // A first batch that gets in, and a second one that does not.
    let large = "x".repeat(300_000);
    let two = format!("{{\"create\":{{}}}}\n{{\"message\":\"{large}\"}}\n").repeat(2);
    let asking = tokio::spawn(async move { exchange(address, &bulk("/_bulk", &two)).await });
    bench.events(2).await;
    bench.is_stuck = true;
    let answer = body_of(&asking.await.unwrap());
    let statuses: Vec<_> =
        answer["items"].as_array().unwrap().iter().map(|item| &item["create"]["status"]).collect();
    assert_eq!(statuses[0], 201);
    assert!([json!(201), json!(429)].contains(statuses[1]), "{statuses:?}");
    bench.stop_without_taking().await;
}
