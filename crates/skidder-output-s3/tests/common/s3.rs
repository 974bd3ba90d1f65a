//! A scripted bucket that checks signatures and digests as S3 specifies them, by other code than ours.

use super::number;
use skidder_contract::{ReceivedRequest, Signer, listen, serve_all};
use std::collections::{BTreeMap, VecDeque};
use std::io::Read as _;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio_rustls::TlsAcceptor;

/// The keys that may do everything.
pub(crate) const KEYS: (&str, &str) = ("AKIDTEST", "a/secret+of=tests");
pub(crate) const BUCKET: &str = "logs";
pub(crate) const REGION: &str = "eu-test-1";

/// What to do with one object.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    /// Keep it.
    Ok,
    /// Refuse it with a status and a code.
    Error(u16, &'static str),
    /// Too large, if it has more lines than this. Stays in the script.
    AtMost(usize),
    /// Too large, if it has this line. Stays in the script.
    NeverLine(usize),
    /// Close the connection without an answer.
    Close,
    /// Keep it, and close the connection without an answer.
    KeepAndClose,
    /// Answer in another language.
    Nonsense,
    /// Begin an answer and close.
    Half,
    /// Answer 200, like a portal that knows nothing of S3, and keep nothing.
    Portal,
    /// Answer this, as though it were success, and keep nothing.
    Reply(&'static str),
    /// Send nothing until the other side gives up.
    Silence,
}

#[derive(Default)]
pub(crate) struct State {
    script: VecDeque<Act>,
    pub(crate) objects: BTreeMap<String, Vec<u8>>,
    /// Keys of objects that were kept, also of those that were replaced.
    pub(crate) puts: Vec<String>,
    pub(crate) requests: Vec<ReceivedRequest>,
    /// Status and code for methods that are not allowed.
    pub(crate) forbidden: BTreeMap<&'static str, (u16, &'static str)>,
    /// Keys besides, as of credentials that were replaced.
    pub(crate) secret: Option<String>,
}

#[derive(Clone)]
pub(crate) struct FakeBucket {
    pub(crate) address: String,
    pub(crate) state: Arc<Mutex<State>>,
}

impl FakeBucket {
    pub(crate) async fn start(script: impl IntoIterator<Item = Act>) -> Self {
        Self::start_with(script, None).await
    }

    pub(crate) async fn start_with(
        script: impl IntoIterator<Item = Act>,
        tls: Option<TlsAcceptor>,
    ) -> Self {
        let (listener, address) = listen().await;
        let state = State { script: script.into_iter().collect(), ..State::default() };
        let bucket = Self { address: address.to_string(), state: Arc::new(Mutex::new(state)) };
        let serving = bucket.clone();
        let accepted = || {};
        serve_all(listener, tls, accepted, move |stream| {
            let bucket = serving.clone();
            async move { drop(bucket.serve(stream).await) }
        });
        bucket
    }

    /// How often each line is in the bucket.
    pub(crate) fn taken(&self) -> BTreeMap<usize, usize> {
        let mut taken = BTreeMap::new();
        for (key, body) in &self.state.lock().unwrap().objects {
            for line in lines_of(key, body) {
                *taken.entry(line).or_default() += 1;
            }
        }
        taken
    }

    /// Lines of each object that is there, by its key.
    pub(crate) fn objects(&self) -> BTreeMap<String, Vec<usize>> {
        let state = self.state.lock().unwrap();
        state.objects.iter().map(|(key, body)| (key.clone(), lines_of(key, body))).collect()
    }

    async fn serve(&self, stream: impl AsyncRead + AsyncWrite + Unpin) -> std::io::Result<()> {
        let mut stream = BufReader::new(stream);
        while let Some(received) = ReceivedRequest::read(&mut stream).await? {
            let (answer, lives) = self.answer(&received);
            if let Some(answer) = answer {
                stream.write_all(answer.as_bytes()).await?;
                stream.flush().await?;
            } else if lives {
                std::future::pending::<()>().await;
            }
            if !lives {
                return Ok(());
            }
        }
        Ok(())
    }

    /// The answer, and whether the connection lives on. Nothing on a connection that lives is silence.
    fn answer(&self, received: &ReceivedRequest) -> (Option<String>, bool) {
        let mut state = self.state.lock().unwrap();
        state.requests.push(received.clone());
        let secret = state.secret.clone().unwrap_or_else(|| KEYS.1.to_owned());
        if let Err((status, code)) = check(received, &secret) {
            return (Some(refusal(status, code)), true);
        }
        if let Some((status, code)) = state.forbidden.get(&*received.method) {
            // An answer to HEAD has no body.
            let refusal = refusal(*status, code);
            let head = refusal.split("\r\n\r\n").next().unwrap();
            let is_head = received.method == "HEAD";
            return (Some(if is_head { format!("{head}\r\n\r\n") } else { refusal }), true);
        }
        let path = received.path();
        let Some(key) = path.strip_prefix(&format!("/{BUCKET}")) else {
            return (Some(refusal(404, "NoSuchBucket")), true);
        };
        let key = key.trim_start_matches('/').to_owned();
        match (&*received.method, &*key) {
            ("HEAD", "") => (Some(good("")), true),
            ("DELETE", _) => {
                let answer = "HTTP/1.1 204 No Content\r\n\r\n";
                state.objects.remove(&key);
                (Some(answer.to_owned()), true)
            }
            ("PUT", _) if !key.is_empty() => put(&mut state, key, received),
            _ => (Some(refusal(405, "MethodNotAllowed")), true),
        }
    }
}

fn put(state: &mut State, key: String, received: &ReceivedRequest) -> (Option<String>, bool) {
    let act = match state.script.front().copied() {
        Some(act @ (Act::AtMost(_) | Act::NeverLine(_))) => act,
        _ => state.script.pop_front().unwrap_or(Act::Ok),
    };
    let is_too_large = match act {
        Act::AtMost(most) => lines_of(&key, &received.body).len() > most,
        Act::NeverLine(line) => lines_of(&key, &received.body).contains(&line),
        _ => false,
    };
    if is_too_large {
        return (Some(refusal(400, "EntityTooLarge")), true);
    }
    let etag = "etag: \"0123\"\r\n";
    let (keeps, answer, lives) = match act {
        Act::Ok | Act::AtMost(_) | Act::NeverLine(_) => (true, Some(good(etag)), true),
        Act::Error(status, code) => (false, Some(refusal(status, code)), true),
        Act::Close => (false, None, false),
        Act::KeepAndClose => (true, None, false),
        Act::Nonsense => (false, Some("-ERR unknown command\r\n".to_owned()), false),
        Act::Half => (false, Some("HTTP/1.1 200 OK\r\netag: \"01".to_owned()), false),
        Act::Portal => (false, Some(good("content-type: text/html\r\n")), true),
        Act::Reply(answer) => (false, Some(answer.to_owned()), true),
        Act::Silence => (false, None, true),
    };
    if keeps {
        state.puts.push(key.clone());
        let before = state.objects.insert(key, received.body.clone());
        assert!(
            before.is_none_or(|before| before == received.body),
            "a retry sends the same bytes"
        );
    }
    (answer, lives)
}

fn good(headers: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{headers}content-length: 0\r\n\r\n")
}

fn refusal(status: u16, code: &str) -> String {
    let body =
        format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>no</Message></Error>");
    format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

/// Checks signature, digests and checksum.
fn check(received: &ReceivedRequest, secret: &str) -> Result<(), (u16, &'static str)> {
    received.check(Signer { id: KEYS.0, secret, region: REGION, service: "s3" })?;
    if received.method == "PUT" {
        let sum = crc32fast::hash(&received.body).to_be_bytes();
        let sum = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, sum);
        assert_eq!(sum, received.header("x-amz-checksum-crc32"));
    }
    Ok(())
}

/// Numbers of the lines of an object.
pub(crate) fn lines_of(key: &str, body: &[u8]) -> Vec<usize> {
    let text = text_of(key, body);
    let number = |line: &str| match serde_json::from_str::<serde_json::Value>(line) {
        Ok(event) => event["message"].as_str().filter(|text| text.starts_with("line ")).map(number),
        Err(_) => Some(number(line)),
    };
    // The object of `test output` is no line.
    text.lines().filter_map(number).collect()
}

/// The text of an object, by the end of its name.
pub(crate) fn text_of(key: &str, body: &[u8]) -> String {
    let mut text = Vec::new();
    match key.rsplit_once('.').map(|(_, end)| end) {
        Some("gz") => {
            flate2::read::GzDecoder::new(body).read_to_end(&mut text).unwrap();
        }
        Some("zst") => {
            text.reserve(16 << 20);
            zstd_safe::decompress(&mut text, body).unwrap();
        }
        _ => text.extend_from_slice(body),
    }
    String::from_utf8(text).unwrap()
}
