//! Tokens of a server in memory of the test, which counts its questions.

use super::*;
use skidder_config::Secret;
use skidder_os::{Monotonic, RealFs};
use std::sync::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

const START: i64 = 1_440_938_160;

/// A clock that is set.
#[derive(Debug, Default)]
struct SetClock(Mutex<i64>);

impl Clock for SetClock {
    fn monotonic(&self) -> Monotonic {
        Monotonic(Duration::from_secs(0))
    }

    fn wall(&self) -> Timestamp {
        Timestamp((START + *self.0.lock().unwrap()) * 1_000_000_000)
    }
}

/// A server that gives each question the next of these answers, and returns the questions.
async fn serve(answers: Vec<(u16, String)>) -> (u16, tokio::task::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = tokio::spawn(async move {
        let mut questions = Vec::new();
        for (status, body) in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut question = Vec::new();
            let mut piece = [0; 4096];
            loop {
                let count = stream.read(&mut piece).await.unwrap();
                question.extend_from_slice(&piece[..count]);
                let text = String::from_utf8_lossy(&question).into_owned();
                let Some((head, rest)) = text.split_once("\r\n\r\n") else { continue };
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
                if rest.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                    questions.push(text);
                    break;
                }
            }
            let length = body.len();
            let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\n\r\n{body}");
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
        questions
    });
    (port, serving)
}

fn token(name: &str) -> (u16, String) {
    (
        200,
        format!(
            "{{\"access_token\": \"{name}\", \"expires_in\": 3599, \"token_type\": \"Bearer\"}}"
        ),
    )
}

fn tokens(source: Source) -> Tokens {
    Tokens::new(source, "https://scope/read", ProxyChoice::Direct, Arc::new(RealFs)).unwrap()
}

fn account(port: u16) -> String {
    serde_json::json!({
        "type": "service_account", "client_email": "a@b", "private_key_id": "k1",
        "private_key": include_str!("../testdata/key.pem"),
        "token_uri": format!("http://127.0.0.1:{port}/token"),
    })
    .to_string()
}

#[tokio::test]
async fn a_token_is_kept_and_replaced_before_it_ends_or_when_it_is_refused() {
    let failed = (503, "busy".to_owned());
    let answers = vec![token("t1"), failed.clone(), token("t2"), token("t3")];
    let (port, serving) = serve(answers).await;
    let tokens = tokens(Source::of_text(&Secret::new(account(port))).unwrap());
    let set = Arc::new(SetClock::default());
    let clock: Arc<dyn Clock> = set.clone();
    let at = async |seconds: i64| {
        *set.0.lock().unwrap() = seconds;
        tokens.get(&clock).await.unwrap().unwrap()
    };
    let first = at(0).await;
    assert_eq!(first, "Bearer t1");
    assert!(first.is_sensitive());
    assert_eq!(at(3_300).await, "Bearer t1", "it holds");
    assert_eq!(at(3_400).await, "Bearer t1", "another one failed, and this one holds");
    assert_eq!(at(3_405).await, "Bearer t1", "it is not asked for so soon");
    let second = at(3_411).await;
    assert_eq!(second, "Bearer t2");
    tokens.forget(&first).await;
    assert_eq!(at(3_412).await, "Bearer t2", "one that is not used any more is not missed");
    tokens.forget(&second).await;
    assert_eq!(at(3_413).await, "Bearer t3");
    let questions = serving.await.unwrap();
    assert!(questions[0].starts_with("POST /token HTTP/1.1\r\n"), "{}", questions[0]);
    let grant = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=ey";
    assert!(questions.iter().all(|question| question.contains(grant)), "{questions:?}");
}

#[tokio::test]
async fn a_user_and_a_machine_have_tokens_too_and_a_file_is_read_again() {
    let (port, serving) = serve(vec![token("u1"), token("f1"), token("m1")]).await;
    let clock: Arc<dyn Clock> = Arc::new(SetClock::default());
    let user = serde_json::json!({
        "type": "authorized_user", "client_id": "c", "client_secret": "s&", "refresh_token": "r/",
        "token_uri": format!("http://127.0.0.1:{port}/token"),
    });
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("key.json");
    std::fs::write(&path, user.to_string()).unwrap();
    let of_file = tokens(Source::of_file(&RealFs, path.clone()).unwrap());
    let header = of_file.get(&clock).await.unwrap().unwrap();
    assert_eq!(header, "Bearer u1");
    std::fs::write(&path, account(port)).unwrap();
    of_file.forget(&header).await;
    assert_eq!(of_file.get(&clock).await.unwrap().unwrap(), "Bearer f1");
    let machine = HostUrl::parse(&format!("127.0.0.1:{port}"), "http", "", usual_port).unwrap();
    let of_machine = tokens(Source::Machine(machine));
    assert_eq!(of_machine.get(&clock).await.unwrap().unwrap(), "Bearer m1");
    let questions = serving.await.unwrap();
    let form = "grant_type=refresh_token&client_id=c&client_secret=s%26&refresh_token=r%2F";
    assert!(questions[0].ends_with(form), "{}", questions[0]);
    assert!(questions[1].contains("assertion="), "{}", questions[1]);
    let path = "GET /computeMetadata/v1/instance/service-accounts/default/token?scopes=https%3A%2F%2Fscope%2Fread ";
    let flavor = "metadata-flavor: Google\r\n";
    assert!(questions[2].starts_with(path) && questions[2].contains(flavor), "{}", questions[2]);
}

#[tokio::test]
async fn a_refusal_says_why_and_shows_no_secret() {
    let refused =
        "{\"error\": \"invalid_grant\", \"error_description\": \"Invalid JWT Signature.\"}";
    let answers = vec![(400, refused.to_owned()), (200, "{}".to_owned())];
    let (port, serving) = serve(answers).await;
    let clock: Arc<dyn Clock> = Arc::new(SetClock::default());
    let of_key = tokens(Source::of_text(&Secret::new(account(port))).unwrap());
    let error = of_key.get(&clock).await.unwrap_err().to_string();
    assert!(error.contains("answered 400: `invalid_grant`: Invalid JWT Signature."), "{error}");
    let error = of_key.get(&clock).await.unwrap_err().to_string();
    assert!(error.contains("answered without one"), "{error}");
    serving.await.unwrap();
    let nowhere = HostUrl::parse(&format!("127.0.0.1:{port}"), "http", "", usual_port).unwrap();
    let error = tokens(Source::Machine(nowhere)).get(&clock).await.unwrap_err().to_string();
    assert!(error.contains("GOOGLE_APPLICATION_CREDENTIALS"), "{error}");
    assert_eq!(tokens(Source::None).get(&clock).await.unwrap(), None);
}
