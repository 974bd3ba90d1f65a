//! A container: how its requests are signed and sent, and what a refusal means.

use crate::VERSION;
use crate::credentials::{Credential, CredentialsError, Provider, Shown};
use crate::refused::Refused;
use crate::sign::ToSign;
use crate::time::http_time;
use http::header::AUTHORIZATION;
use http::{HeaderMap, Method, Uri};
use skidder_config::Secret;
use skidder_net::cloud::{
    self, Ask, HeaderError, Meter, RefusedAnswer, Sender, Signer, SignerFuture, Target,
    insert_secret,
};
use skidder_net::{encode_path, percent_decoded, redact};
use skidder_os::{Clock, Timestamp};
use skidder_tls::TlsClient;
use std::sync::Arc;
use std::time::Duration;

/// How messages call the service.
pub(crate) const AZURE: &str = "Azure Blob Storage";

/// Why a request was not taken.
pub type Failure = cloud::Failure<CredentialsError, Refused>;
/// One worker's way to a container.
pub type Client = cloud::Client<Service>;
/// The content of a blob, in pieces.
pub type Content<'a> = cloud::Content<&'a Sender<Service>>;

pub(crate) fn unexpected(status: u16, what: impl Into<String>) -> Failure {
    Failure::Unexpected { service: AZURE, status, what: what.into() }
}

/// A container and how to get there. Each worker has a [`Client`] of it.
#[derive(Clone, Debug)]
pub struct Service {
    /// Where its account is, as `https://NAME.blob.core.windows.net`; with the emulator the name stands in the path.
    pub target: Arc<Target>,
    /// Its name, as [`crate::check_container_name`] takes it.
    pub container: String,
    /// For an account with TLS, whose absence there is a mistake of the configuration.
    pub tls: Option<Arc<TlsClient>>,
    /// Gives the credentials.
    pub provider: Arc<Provider>,
    /// Of connecting, and of a request with its answer, or of each piece of that.
    pub timeout: Duration,
}

impl Service {
    /// A client without a connection yet.
    pub fn client(&self, meter: Arc<dyn Meter>, clock: Arc<dyn Clock>) -> Client {
        Client::new(self.clone(), self.target.route(self.tls.clone()), meter, clock)
    }

    /// The escaped path of the container, or of a blob in it.
    fn path(&self, blob: Option<&str>) -> String {
        let mut path = format!("{}/{}", self.target.root, self.container);
        if let Some(blob) = blob {
            path.push('/');
            encode_path(&mut path, blob);
        }
        path
    }

    fn signed(
        &self,
        ask: &Ask<'_>,
        shown: &Shown<'_>,
        now: Timestamp,
    ) -> Result<(Uri, HeaderMap), HeaderError> {
        let path = self.path(ask.key);
        let (time, length) = (http_time(now), ask.body_bytes().to_string());
        let mut signed = ask.headers.clone();
        signed.push(("x-ms-date", &time));
        signed.push(("x-ms-version", VERSION));
        if ask.method == Method::PUT || ask.method == Method::POST {
            signed.push(("content-length", &length));
        }
        let mut headers = self.target.headers(&signed)?;
        let mut query = ask.escaped_query();
        let login = match shown {
            Shown::Key(key) => {
                let method = ask.method.as_str();
                let to_sign = ToSign { method, path: &path, query: &ask.query, headers: &signed };
                key.authorization(&to_sign)
            }
            Shown::Token(token) => format!("Bearer {}", token.reveal()),
            Shown::Sas(sas) => {
                add_sas(&mut query, sas);
                let uri = self.target.uri(&path, &query);
                let wrong = |_| HeaderError("the shared access signature".to_owned());
                return Ok((uri.map_err(wrong)?, headers));
            }
        };
        insert_secret(&mut headers, AUTHORIZATION, &login)?;
        Ok((self.target.uri(&path, &query)?, headers))
    }
}

impl Signer for Service {
    type Credentials = CredentialsError;
    type Refused = Refused;

    fn timeout(&self) -> Duration {
        self.timeout
    }

    fn sign<'a>(
        &'a self,
        ask: &'a Ask<'a>,
        clock: &'a Arc<dyn Clock>,
    ) -> SignerFuture<'a, Result<(Uri, HeaderMap), Failure>> {
        Box::pin(async move {
            let shown = self.provider.get(clock).await.map_err(Failure::Credentials)?;
            Ok(self.signed(ask, &shown, clock.wall())?)
        })
    }

    fn refused<'a>(&'a self, answer: RefusedAnswer<'a>) -> SignerFuture<'a, Refused> {
        let RefusedAnswer { status, headers, body, .. } = answer;
        Box::pin(async move {
            // A proxy may show the URL in its answer.
            let refused = match self.provider.credential() {
                Credential::Sas(sas) => Refused::read(status, headers, &without(body, sas)),
                _ => Refused::read(status, headers, body),
            };
            if refused.is_about_credentials() {
                self.provider.forget().await;
            }
            refused
        })
    }
}

/// Puts the token of a shared access signature behind a query.
fn add_sas(query: &mut String, sas: &Secret) {
    if !query.is_empty() && !sas.reveal().is_empty() {
        query.push('&');
    }
    query.push_str(sas.reveal());
}

/// An answer without the signature of a shared access signature, as a URL has it and as it is.
fn without(answer: &[u8], sas: &Secret) -> Vec<u8> {
    let mut text = String::from_utf8_lossy(answer).into_owned();
    let signatures = sas.reveal().split('&').filter_map(|part| part.strip_prefix("sig="));
    for signature in signatures.filter(|signature| !signature.is_empty()) {
        let plain = percent_decoded(signature, b'+');
        for form in std::iter::once(signature).chain(plain.as_deref()) {
            text = redact(&text, form);
        }
    }
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use skidder_net::{HostUrl, ProxyChoice, usual_port};
    use skidder_os::RealFs;

    fn service(url: &str, container: &str, sas: &str) -> Service {
        let (url, direct) = (HostUrl::parse(url, "", "", usual_port).unwrap(), ProxyChoice::Direct);
        let provider = Credential::Sas(Secret::new(sas));
        Service {
            target: Arc::new(Target::at(url, &direct)),
            container: container.to_owned(),
            tls: None,
            provider: Arc::new(Provider::new(provider, direct, Arc::new(RealFs)).unwrap()),
            timeout: Duration::from_secs(1),
        }
    }

    #[test]
    fn names_stand_in_paths_as_urls_have_them() {
        let azure = service("https://logs.blob.core.windows.net/", "in", "");
        assert_eq!(
            (&*azure.target.authority, azure.target.https),
            ("logs.blob.core.windows.net", true)
        );
        assert_eq!(azure.target.url(), "https://logs.blob.core.windows.net");
        assert_eq!(azure.path(None), "/in");
        assert_eq!(azure.path(Some("a b/ä+%25?//c")), "/in/a%20b/%C3%A4%2B%2525%3F//c");
        let emulator = service("http://127.0.0.1:10000/devstoreaccount1", "$logs", "");
        assert_eq!(emulator.path(Some("x")), "/devstoreaccount1/$logs/x");
        assert_eq!(emulator.target.url(), "http://127.0.0.1:10000/devstoreaccount1");
    }

    #[test]
    fn a_shared_access_signature_stands_behind_the_query() {
        let uri = |query: &[(&'static str, &'static str)], sas: &str| {
            let azure = service("https://logs.blob.core.windows.net", "in", "");
            let mut ask = Ask::empty(Method::GET, None);
            ask.query = query.to_vec();
            let signed = azure.signed(&ask, &Shown::Sas(&Secret::new(sas)), Timestamp(0));
            signed.map(|(uri, _)| uri.to_string())
        };
        let (list, sas) = ([("comp", "list")], "sv=2021&sig=x%2By");
        assert_eq!(uri(&[], "").unwrap(), "/in");
        assert_eq!(uri(&list, "").unwrap(), "/in?comp=list");
        assert_eq!(uri(&list, sas).unwrap(), "/in?comp=list&sv=2021&sig=x%2By");
        assert_eq!(uri(&[], sas).unwrap(), "/in?sv=2021&sig=x%2By");
        assert_eq!(uri(&[], "a b"), Err(HeaderError("the shared access signature".to_owned())));
    }

    #[test]
    fn an_answer_shows_no_signature() {
        let sas = Secret::new("sv=1&sig=abc%2Bdef%3D&se=2");
        let answer = without(b"GET /in?sv=1&amp;sig=abc%2Bdef%3D: abc+def= is wrong", &sas);
        let expected = "GET /in?sv=1&amp;sig=xxxxxxxxxxxx: xxxxxxxx is wrong";
        assert_eq!(String::from_utf8(answer).unwrap(), expected);
        assert_eq!(without(b"no", &Secret::new("sv=1&sig=")), b"no");
    }
}
