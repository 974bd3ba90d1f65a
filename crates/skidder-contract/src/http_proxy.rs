//! A proxy of HTTP that wants a user: tunnels for `CONNECT`, whole URLs for the rest.

use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Carries everything to one server, whatever the request.
#[derive(Debug)]
pub struct FakeHttpProxy {
    /// `host:port`.
    pub address: String,
    heads: Arc<Mutex<Vec<String>>>,
}

impl FakeHttpProxy {
    /// Starts one that requires `authorization`, before `server`.
    pub async fn start(server: &str, authorization: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let (seen, server) = (Arc::clone(&heads), server.to_owned());
        tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                let (seen, server) = (Arc::clone(&seen), server.clone());
                tokio::spawn(async move { serve(client, &server, authorization, &seen).await });
            }
        });
        Self { address, heads }
    }

    /// Heads of the requests that were carried.
    pub fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

async fn serve(
    mut client: TcpStream,
    server: &str,
    authorization: &str,
    seen: &Mutex<Vec<String>>,
) {
    let mut upstream = TcpStream::connect(server).await.unwrap();
    while let Some(head) = head(&mut client).await {
        let wanted = format!("proxy-authorization: {authorization}\r\n").to_ascii_lowercase();
        if !head.to_ascii_lowercase().contains(&wanted) {
            let refusal =
                b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n";
            drop(client.write_all(refusal).await);
            return;
        }
        seen.lock().unwrap().push(head.replace("X-Who", "x-who"));
        if head.starts_with("CONNECT ") {
            client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.unwrap();
            drop(tokio::io::copy_bidirectional(&mut client, &mut upstream).await);
            return;
        }
        let (method, rest) = head.split_once(" http://").expect("a whole URL");
        let path = &rest[rest.find('/').unwrap()..];
        upstream.write_all(format!("{method} {path}").as_bytes()).await.unwrap();
        let lower = head.to_ascii_lowercase();
        carry(&mut client, &mut upstream, length(&lower)).await;
        let answer = self::head(&mut upstream).await.unwrap();
        client.write_all(answer.as_bytes()).await.unwrap();
        carry(&mut upstream, &mut client, length(&answer.to_ascii_lowercase())).await;
    }
}

fn length(head: &str) -> usize {
    let value = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    value.map_or(0, |value| value.parse().unwrap())
}

async fn carry(from: &mut TcpStream, to: &mut TcpStream, bytes: usize) {
    let mut body = vec![0; bytes];
    from.read_exact(&mut body).await.unwrap();
    to.write_all(&body).await.unwrap();
}

async fn head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    Some(String::from_utf8(head).unwrap())
}
