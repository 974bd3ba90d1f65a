//! Clients that make trouble: a request is taken whole or not at all, and others are served.

use super::*;
use std::io::Write as _;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bomb_of_gzip_is_refused_at_the_limit() {
    let (address, sockets) = free_address();
    let mut bench = Bench::start(input(address, ", max_body_bytes: 1MiB", &sockets), 100);
    let bomb = gzip(&vec![b' '; 64 << 20]);
    assert!(bomb.len() < 100_000);
    let headers = format!("{JSON}Content-Encoding: gzip\r\n");
    let answered = exchange(address, &bytes_of("POST", "/", &headers, &bomb)).await;
    assert_eq!(answered.status, 413, "{answered:?}");
    // Cut off anywhere: nothing of it is an event.
    let packed = gzip(b"{\"a\":1}\n{\"a\":2}\n");
    for end in 0..packed.len() {
        let answered = exchange(address, &bytes_of("POST", "/", &headers, &packed[..end])).await;
        assert!([400, 500].contains(&answered.status), "{end}: {answered:?}");
    }
    let answered = exchange(address, &bytes_of("POST", "/", &headers, &packed)).await;
    assert_eq!(answered.status, 200);
    bench.events(2).await;
    bench.stop().await;
    assert_eq!(bench.events.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_breaks_off_is_no_event() {
    let (address, sockets) = free_address();
    let mut bench = Bench::start(input(address, "", &sockets), 100);
    // The first line is complete, as Filebeat would take it.
    let bytes = post("/", "{\"a\":1}\n{\"a\":2}\n");
    for cut in 1..10 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(&bytes[..bytes.len() - cut]).await.unwrap();
        drop(stream);
    }
    let chunked = format!("POST / HTTP/1.1\r\nHost: h\r\n{JSON}Transfer-Encoding: chunked\r\n\r\n");
    let wrong = [chunked.as_bytes(), b"8\r\n{\"a\":1}\n\r\nzz\r\n"].concat();
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(&wrong).await.unwrap();
    if let Some(answered) = Answered::read(&mut stream, &mut Vec::new()).await {
        assert_eq!(answered.status, 400, "{answered:?}");
    }
    let right = [chunked.as_bytes(), b"8\r\n{\"a\":3}\n\r\n0\r\n\r\n"].concat();
    assert_eq!(exchange(address, &right).await.status, 200);
    bench.events(1).await;
    assert_eq!(bench.events[0]["json"], json!({"a": 3}));
    bench.stop().await;
    assert_eq!(bench.events.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_in_a_row_are_answered_in_their_order() {
    let (address, sockets) = free_address();
    let mut bench = Bench::start(input(address, "", &sockets), 1000);
    let mut stream = TcpStream::connect(address).await.unwrap();
    let mut bytes = Vec::new();
    for number in 0..100 {
        let body = if number % 10 == 9 { "no".to_owned() } else { format!("{{\"n\":{number}}}") };
        bytes.extend(post("/", &body));
    }
    stream.write_all(&bytes).await.unwrap();
    let mut buffer = Vec::new();
    for number in 0..100 {
        let expected = if number % 10 == 9 { 400 } else { 200 };
        let answered = Answered::read(&mut stream, &mut buffer).await.unwrap();
        assert_eq!(answered.status, expected, "{number}");
    }
    bench.events(90).await;
    let numbers: Vec<u64> =
        bench.events.iter().map(|event| event["json"]["n"].as_u64().unwrap()).collect();
    assert!(numbers.is_sorted());
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_http_holds_up_no_other_client() {
    let (address, sockets) = free_address();
    let mut bench = Bench::start(input(address, "", &sockets), 100);
    let mut idle = Vec::new();
    for number in 0..500 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let bytes: &[u8] = match number % 4 {
            0 => b"",
            1 => b"POST / HTTP/1.1\r\nContent-Le",
            2 => b"\x16\x03\x01\x02\x00\x01garbage\r\n\r\n",
            _ => b"POST / HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: 9999\r\n\r\n{\"a\":",
        };
        stream.write_all(bytes).await.unwrap();
        idle.push(stream);
    }
    let long = format!("{JSON}X-Long: {}\r\n", "x".repeat(300_000));
    assert_eq!(exchange(address, &bytes_of("POST", "/", &long, b"{}")).await.status, 431);
    let huge = format!("POST / HTTP/1.1\r\nHost: h\r\n{JSON}Content-Length: 99999999999\r\n\r\n");
    assert_eq!(exchange(address, huge.as_bytes()).await.status, 413);
    assert_eq!(exchange(address, &post("/", "{\"a\":1}")).await.status, 200);
    bench.events(1).await;
    bench.stop().await;
    assert_eq!(bench.events.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn random_bodies_are_whole_or_nothing() {
    use skidder_testkit::Random;
    let (address, sockets) = free_address();
    let mut bench = Bench::start(input(address, "", &sockets), 10_000);
    let pieces = [
        "{\"a\":1}",
        "{}",
        "[",
        "]",
        ",",
        "\n",
        " ",
        "{\"b\":[{}",
        "}",
        "1",
        "null",
        "\"x\"",
        "[{\"c\":2},3]",
    ];
    let mut stream = TcpStream::connect(address).await.unwrap();
    let mut buffer = Vec::new();
    let (mut taken, mut refused) = (0, 0);
    for seed in 0..2000 {
        let mut random = Random::new(seed);
        let count = 1 + random.below(6);
        let body: String =
            (0..count).map(|_| pieces[random.below(pieces.len() as u64) as usize]).collect();
        stream.write_all(&post("/", &body)).await.unwrap();
        let answered = Answered::read(&mut stream, &mut buffer).await.unwrap();
        // Another reader of JSON is the judge.
        let values: Result<Vec<Value>, _> =
            serde_json::Deserializer::from_str(&body).into_iter().collect();
        let mut expected = Vec::new();
        let mut is_right = !body.trim().is_empty();
        for value in values.unwrap_or_else(|_| {
            is_right = false;
            Vec::new()
        }) {
            match value {
                Value::Object(_) => expected.push(value),
                Value::Array(items) => expected.extend(items.into_iter().filter(Value::is_object)),
                _ => is_right = false,
            }
        }
        if is_right {
            assert_eq!(answered.status, 200, "{seed}: {body:?} {answered:?}");
            bench.events(expected.len()).await;
            let came: Vec<Value> =
                bench.events.drain(..).map(|mut event| event["json"].take()).collect();
            assert_eq!(came, expected, "{seed}: {body:?}");
            taken += 1;
        } else {
            assert!([400, 406].contains(&answered.status), "{seed}: {body:?} {answered:?}");
            refused += 1;
        }
    }
    bench.take();
    assert!(bench.events.is_empty(), "what was refused is no event: {:?}", bench.events);
    assert!(taken > 100 && refused > 100, "{taken} {refused}");
    bench.stop().await;
}
