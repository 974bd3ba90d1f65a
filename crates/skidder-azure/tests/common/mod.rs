//! Azurite and scripted servers, and clients of them.
#![allow(dead_code, reason = "each test program uses a part of it")]

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD as BASE64, URL_SAFE_NO_PAD};
use skidder_azure::{
    AccountKey, ConnectionString, Container, Credential, Failure, Provider, Refused, Service,
    Target,
};
use skidder_config::Secret;
use skidder_contract::{ReceivedRequest, listen, serve_all};
use skidder_net::{HostUrl, ProxyChoice, usual_port};
use skidder_os::{Clock, RealFs, SystemClock};
use skidder_tls::TlsClient;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};

pub(crate) const ACCOUNT: &str = "devstoreaccount1";

/// One answer: status, headers and body.
pub(crate) type Act = (u16, Vec<(&'static str, String)>, String);

pub(crate) fn act(status: u16, headers: &[(&'static str, &str)], body: &str) -> Act {
    let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    (status, headers, body.to_owned())
}

/// A server that answers requests in their order.
#[derive(Clone)]
pub(crate) struct Scripted {
    pub(crate) address: String,
    script: Arc<Mutex<VecDeque<Act>>>,
    requests: Arc<Mutex<Vec<ReceivedRequest>>>,
}

impl Scripted {
    pub(crate) async fn start(script: impl IntoIterator<Item = Act>) -> Self {
        let (listener, address) = listen().await;
        let script = Arc::new(Mutex::new(script.into_iter().collect()));
        let server = Self { address: address.to_string(), script, requests: Arc::default() };
        let serving = server.clone();
        serve_all(
            listener,
            None,
            || {},
            move |stream| {
                let server = serving.clone();
                async move { drop(server.serve(stream).await) }
            },
        );
        server
    }

    /// The requests since the last call.
    pub(crate) fn requests(&self) -> Vec<ReceivedRequest> {
        std::mem::take(&mut *self.requests.lock().unwrap())
    }

    pub(crate) fn one(&self) -> ReceivedRequest {
        let requests = self.requests();
        assert_eq!(requests.len(), 1, "{requests:?}");
        requests.into_iter().next().unwrap()
    }

    async fn serve(&self, stream: impl AsyncRead + AsyncWrite + Unpin) -> std::io::Result<()> {
        let mut stream = BufReader::new(stream);
        while let Some(request) = ReceivedRequest::read(&mut stream).await? {
            let is_head = request.method == "HEAD";
            self.requests.lock().unwrap().push(request);
            let act = self.script.lock().unwrap().pop_front();
            let (status, headers, body) = act.expect("an answer is left");
            let mut head = format!("HTTP/1.1 {status} X\r\n");
            for (name, value) in &headers {
                head += &format!("{name}: {value}\r\n");
            }
            if !headers.iter().any(|(name, _)| *name == "content-length") {
                head += &format!("content-length: {}\r\n", body.len());
            }
            let body = if is_head { "" } else { &*body };
            stream.write_all(format!("{head}\r\n{body}").as_bytes()).await?;
        }
        Ok(())
    }
}

pub(crate) fn url(text: &str) -> HostUrl {
    HostUrl::parse(text, "", "", usual_port).unwrap()
}

/// The key of the emulator.
pub(crate) fn key() -> Credential {
    ConnectionString::parse("UseDevelopmentStorage=true").unwrap().credential
}

pub(crate) fn service(url: HostUrl, container: &str, credential: Credential) -> Service {
    let direct = ProxyChoice::Direct;
    let provider = Provider::new(credential, direct.clone(), Arc::new(RealFs)).unwrap();
    Service {
        target: Arc::new(Target::at(url, &direct)),
        container: container.to_owned(),
        tls: None,
        provider: Arc::new(provider),
        timeout: Duration::from_secs(20),
    }
}

pub(crate) fn client(service: &Service, tls: Option<Arc<TlsClient>>) -> Container {
    let service = Service { tls, ..service.clone() };
    Container::new(service.client(Arc::new(()), Arc::new(SystemClock::new())))
}

pub(crate) fn refused(failure: Failure) -> Refused {
    match failure {
        Failure::Refused(refused) => *refused,
        other => panic!("{other}"),
    }
}

/// Seconds since 1970.
pub(crate) fn now() -> i64 {
    SystemClock::new().wall().0 / 1_000_000_000
}

/// A shared access signature of the emulator's account, for everything, until the year 2099
/// (<https://learn.microsoft.com/rest/api/storageservices/create-account-sas>).
pub(crate) fn sas(permissions: &str) -> Secret {
    let until = "2099-01-01T00:00:00Z";
    let text = format!("{ACCOUNT}\n{permissions}\nb\nco\n\n{until}\n\n\n2019-12-12\n");
    let key =
        "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &BASE64.decode(key).unwrap());
    let signature = BASE64.encode(ring::hmac::sign(&key, text.as_bytes()).as_ref());
    let signature = signature.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
    let until = until.replace(':', "%3A");
    Secret::new(format!("sv=2019-12-12&ss=b&srt=co&sp={permissions}&se={until}&sig={signature}"))
}

/// A token as Entra ID makes them for storage accounts, without a signature of Microsoft's.
pub(crate) fn token(seconds: i64) -> String {
    let payload = serde_json::json!({
        "aud": "https://storage.azure.com", "iss": "https://sts.windows.net/ab1f708d-50f6-404c-a006-d71b2ac7a606/",
        "iat": now() - 60, "nbf": now() - 60, "exp": now() + seconds, "oid": "x", "tid": "y", "ver": "1.0",
    });
    let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
    let header = part("{\"typ\":\"JWT\",\"alg\":\"RS256\"}");
    format!("{header}.{}.{}", part(&payload.to_string()), part("no signature"))
}

/// A key that the account does not have.
pub(crate) fn wrong_key() -> Credential {
    let key = AccountKey::new(ACCOUNT, &Secret::new(BASE64.encode("wrong"))).unwrap();
    Credential::Key(key)
}
