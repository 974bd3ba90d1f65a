//! Several inputs over one server, reloads, and TLS.

use super::*;
use std::io::Write as _;
use std::process::{Command, Stdio};

#[tokio::test(flavor = "multi_thread")]
async fn inputs_share_a_server_and_each_ends_by_itself() {
    let (address, sockets) = free_address();
    let all = context(&sockets);
    let mut one = Bench::start(input_of(address, ", url: /", &all), 100);
    let two = ", url: /two, prefix: two, basic_auth: true, username: u, password: p";
    let mut two = Bench::start(input_of(address, two, &all), 100);
    let login = "Authorization: Basic dTpw\r\nContent-Type: application/json\r\n";
    let to_two = bytes_of("POST", "/two", login, b"{\"a\":2}");
    // The second one may not have begun.
    let mut answered = exchange(address, &to_two).await;
    while two.input.metrics().events.get() == 0 {
        answered = exchange(address, &to_two).await;
    }
    assert_eq!(answered.status, 200);
    two.events(1).await;
    assert_eq!(two.events[0]["two"], json!({"a": 2}));
    assert_eq!(exchange(address, &post("/two", "{}")).await.status, 401);
    assert_eq!(exchange(address, &post("/other", "{\"a\":1}")).await.status, 200);
    one.until("its event", |bench| {
        bench.events.last().is_some_and(|last| last["json"] == json!({"a": 1}))
    })
    .await;
    // The one that accepts connections ends; a connection that is open learns it.
    let mut open = TcpStream::connect(address).await.unwrap();
    open.write_all(&to_two).await.unwrap();
    let mut buffer = Vec::new();
    assert_eq!(Answered::read(&mut open, &mut buffer).await.unwrap().status, 200);
    one.stop().await;
    assert!(Answered::read(&mut open, &mut buffer).await.is_none(), "it is closed");
    assert_eq!(exchange(address, &to_two).await.status, 200);
    let gone = exchange(address, &post("/other", "{}")).await.status;
    assert_eq!(gone, 503, "it may come back");
    two.events(3).await;
    two.stop().await;
    drop(all);
    assert!(TcpStream::connect(address).await.is_err(), "the last one closes the socket");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_refuses_no_connection() {
    let (address, sockets) = free_address();
    let all = context(&sockets);
    let mut bench = Bench::start(input_of(address, "", &all), 10_000);
    assert_eq!(exchange(address, &post("/", "{}")).await.status, 200);
    let asking = tokio::spawn(async move {
        let mut statuses = BTreeSet::new();
        for _ in 0..200 {
            statuses.insert(exchange(address, &post("/", "{}")).await.status);
        }
        statuses
    });
    for code in [201, 202] {
        let next = Context { wanted: crate::Wanted::default(), ..all.clone() };
        bench.replace(input_of(address, &format!(", response_code: {code}"), &next)).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    bench.until("all were asked", |_| asking.is_finished()).await;
    let statuses = asking.await.unwrap();
    // Between two inputs there is no path; the client sends again.
    assert!(statuses.iter().all(|status| [200, 201, 202, 503].contains(status)), "{statuses:?}");
    assert_eq!(exchange(address, &post("/", "{}")).await.status, 202);
    bench.stop().await;
}

/// A client that has connected sends its first request when its input has ended: the next input answers it.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_whose_first_request_is_on_its_way_outlives_its_input() {
    let (address, sockets) = free_address();
    let all = context(&sockets);
    let mut bench = Bench::start(input_of(address, "", &all), 100);
    let mut silent = TcpStream::connect(address).await.unwrap();
    let mut begun = TcpStream::connect(address).await.unwrap();
    let request = post("/", "{}");
    begun.write_all(&request[..9]).await.unwrap();
    // They were accepted before this one.
    assert_eq!(exchange(address, &request).await.status, 200);
    let next = Context { wanted: crate::Wanted::default(), ..all.clone() };
    bench.replace(input_of(address, ", response_code: 201", &next)).await;
    // It has the path.
    while exchange(address, &request).await.status != 201 {}
    for (client, rest) in [(&mut silent, &request[..]), (&mut begun, &request[9..])] {
        client.write_all(rest).await.unwrap();
        let mut buffer = Vec::new();
        let answered = Answered::read(client, &mut buffer).await.expect("there is an answer");
        assert_eq!(answered.status, 201);
        assert!(Answered::read(client, &mut buffer).await.is_none(), "then it is closed");
    }
    bench.stop().await;
}

#[test]
fn inputs_of_one_server_must_agree() {
    let certificates = Certificates::new();
    let ssl = format!("ssl: {{{}}}", certificates.server());
    for (one, other, expected) in [
        ("url: /a", "url: /b", ""),
        ("url: /a", "url: /a", "has the same `url` there"),
        ("url: /a", "listen_port: 8001", ""),
        ("url: /a", "listen_address: '', url: /b", "listens there, too"),
        (&*format!("url: /a, {ssl}"), "url: /b", "another `ssl`"),
        (&*format!("url: /a, {ssl}"), &*format!("url: /b, {ssl}"), ""),
    ] {
        let context = context(&Sockets::default());
        let (first, problems) = read_text(&format!("{{{one}}}"), &context);
        assert_eq!(problems, "", "{one}");
        let (_, problems) = read_text(&format!("{{{other}}}"), &context);
        assert!(problems.contains(expected), "{other}: {problems}");
        assert_eq!(problems.is_empty(), expected.is_empty(), "{other}: {problems}");
        drop(first);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn openssl_sends_a_request_with_a_certificate_and_not_without_one() {
    let certificates = Certificates::new();
    let (address, sockets) = free_address();
    let ssl = format!(", ssl: {{{}}}", certificates.server());
    let mut bench = Bench::start(input(address, &ssl, &sockets), 100);
    let client = |has_certificate: bool| {
        let mut command = Command::new("openssl");
        command.args(["s_client", "-quiet", "-no_ign_eof", "-connect", &address.to_string()]);
        if has_certificate {
            let (pem, key) = (certificates.path("shipper.pem"), certificates.path("shipper.key"));
            command.args(["-cert", &pem, "-key", &key]);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut client = command.spawn().expect("openssl is installed");
        let mut stdin = client.stdin.take().unwrap();
        // One without a certificate may be gone already.
        drop(stdin.write_all(&post("/", "{\"a\":1}")));
        (client, stdin)
    };
    let (mut refused, stdin) = client(false);
    bench.until("it is refused", |bench| bench.input.metrics().errors.get() > 0).await;
    drop(stdin);
    refused.wait().unwrap();
    assert!(bench.events.is_empty());
    let (mut taken, stdin) = client(true);
    bench.events(1).await;
    assert_eq!(bench.events[0]["json"], json!({"a": 1}));
    drop(stdin);
    taken.wait().unwrap();
    bench.stop().await;
}
