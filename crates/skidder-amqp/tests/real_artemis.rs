//! The client with Apache Artemis, a broker in Java, whose messages come from a client in JavaScript.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

use skidder_amqp::{AmqpError, Attach, Connection, Login, Message, Opening, Receiver};
use skidder_net::{Host, Route, WithoutTls};
use skidder_os::{Fs, RealFs};
use skidder_testkit::servers::Server;
use skidder_tls::{Pem, TlsClient, TlsSettings};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(20);

struct Broker(Server);

impl Broker {
    fn start() -> Self {
        Self(Server::own_artemis().unwrap())
    }

    fn send(&self, queue: &str, count: usize, bytes: usize) {
        let program: PathBuf = self.0.file("send");
        let sent = Command::new(program)
            .args([queue, &count.to_string(), &bytes.to_string()])
            .status()
            .unwrap();
        assert!(sent.success());
    }

    async fn open(&self, password: &str, is_secure: bool) -> Result<Connection, AmqpError> {
        let fs: Arc<dyn Fs> = Arc::new(RealFs);
        let authorities = vec![Pem::File(self.0.file("certs/ca.crt"))];
        let settings =
            TlsSettings { certificate_authorities: authorities, ..TlsSettings::default() };
        let tls = is_secure.then(|| TlsClient::new(&settings, fs).unwrap());
        let port = self.0.port() + u16::from(is_secure);
        let route = Route {
            host: Host { name: "localhost".to_owned(), port },
            proxy: None,
            tls,
            http2: false,
            without_tls: WithoutTls::NoSsl,
        };
        let stream = route.open(TIMEOUT).await.unwrap();
        let opening = Opening {
            container: "test".to_owned(),
            host: "localhost".to_owned(),
            login: Login::Plain { user: "test".to_owned(), password: password.to_owned() },
            timeout: TIMEOUT,
        };
        Connection::open(stream, &opening).await
    }
}

fn attach(node: &str, credit: u32) -> Attach<'_> {
    Attach { node, filter: None, properties: &[], credit, message_bytes_max: 1 << 20 }
}

fn number(message: &Message) -> usize {
    let body = message.body().unwrap().unwrap();
    let text = String::from_utf8(body.to_vec()).unwrap();
    let number: usize = text.trim().parse().unwrap();
    let annotation = message.annotation("x-opt-sequence-number").unwrap().unwrap();
    assert_eq!(annotation.number(), Some(number as i64));
    number
}

async fn read(receiver: &mut Receiver, count: usize) -> Vec<Message> {
    let mut all = Vec::new();
    while all.len() < count {
        let message = tokio::time::timeout(TIMEOUT, receiver.next()).await;
        all.push(message.expect("a message").unwrap());
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn all_messages_come_in_order_with_any_credit_and_without_more_than_that() {
    let broker = Broker::start();
    for (queue, credit, is_secure) in [("one", 1, false), ("ten", 10, true), ("many", 1000, false)]
    {
        let connection = broker.open("secret", is_secure).await.unwrap();
        let mut receiver = connection.receiver(attach(queue, credit)).await.unwrap();
        broker.send(queue, 1000, 100);
        let all = read(&mut receiver, 1000).await;
        assert_eq!(all.iter().map(number).collect::<Vec<_>>(), (0..1000).collect::<Vec<_>>());
        assert!(receiver.next_here().unwrap().is_none());
        // What one receiver has no credit for another one gets.
        broker.send(queue, 100, 10);
        tokio::time::sleep(Duration::from_millis(200)).await;
        if credit == 10 {
            let mut other = connection.receiver(attach(queue, 1000)).await.unwrap();
            read(&mut other, 90).await;
        }
        read(&mut receiver, if credit == 10 { 10 } else { 100 }).await;
        drop(receiver);
        connection.close().await;
        assert!(matches!(connection.receiver(attach(queue, 1)).await, Err(AmqpError::Gone)));
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn a_message_of_many_frames_is_one() {
    let broker = Broker::start();
    let connection = broker.open("secret", false).await.unwrap();
    let mut receiver = connection.receiver(attach("large", 4)).await.unwrap();
    broker.send("large", 20, 500_000);
    for (at, message) in read(&mut receiver, 20).await.iter().enumerate() {
        assert_eq!((number(message), message.body().unwrap().unwrap().len()), (at, 500_000));
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn refusals_are_told_apart() {
    let broker = Broker::start();
    let error = broker.open("wrong", false).await.unwrap_err();
    assert!(
        matches!(&error, AmqpError::Login(what) if what.contains("wrong name or password")),
        "{error}"
    );
    let connection = broker.open("secret", false).await.unwrap();
    // Artemis has no selector like that.
    let wrong = Attach { filter: Some("no selector >"), ..attach("queue", 1) };
    let refused = connection.receiver(wrong).await;
    let error = match refused {
        Ok(mut receiver) => receiver.next().await.unwrap_err(),
        Err(error) => error,
    };
    assert!(error.is_of_link() && error.condition().is_some(), "{error}");
    // The connection goes on.
    let mut receiver = connection.receiver(attach("queue", 1)).await.unwrap();
    broker.send("queue", 1, 1);
    read(&mut receiver, 1).await;
}
