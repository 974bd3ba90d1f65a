//! `add_cloudfoundry_metadata`: names of an application, its space and its organisation, by its id.
//!
//! From the Cloud Controller's API, version 2 (<https://v2-apidocs.cloudfoundry.org/>), with a token of the UAA. Answers
//! are cached, failures too; only for an id that is not in the cache the event waits for a request.

use crate::cache::Cache;
use crate::tls;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use serde_json::Value as Json;
use skidder_config::{Group, Key, Secret, Section, mask_address, settings};
use skidder_event::{EventMut, Map, Path, ValueRef};
use skidder_net::{HttpClient, HttpError, HttpRequest, percent_encoded};
use skidder_os::Clock;
use skidder_processors::{Constants, Context, Failure, Footprint, Outcome, Processor};
use skidder_tls::{TlsClient, TlsError, TlsSettings};
use std::fmt;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

settings! {
    /// Settings of `add_cloudfoundry_metadata`.
    pub(crate) static ADD_CLOUDFOUNDRY_METADATA = Group::new("processor.add_cloudfoundry_metadata", "Adds the names of an application in Cloud Foundry, of its space and \
                               of its organisation, by `cloudfoundry.app.id`.").include(&[&tls::TLS]).deprecated(&[
        ("doppler_address", "only an input uses it"),
        ("rlp_address", "only an input uses it"),
        ("shard_id", "only an input uses it"),
    ]);

    API_ADDRESS: String = Key::new("api_address")
        .required()
        .about("the address of the Cloud Controller");
    CLIENT_ID: String = Key::new("client_id")
        .required()
        .about("the name to get tokens with");
    CLIENT_SECRET: Secret = Key::new("client_secret")
        .required()
        .about("its secret");
    UAA_ADDRESS: String = Key::new("uaa_address")
        .default_words("as the API says")
        .about("where tokens come from");
    CACHE_DURATION: Duration = Key::new("cache_duration")
        .default(Duration::from_mins(2))
        .about("how long an application is remembered");
    CACHE_RETRY_DELAY: Duration = Key::new("cache_retry_delay")
        .default(Duration::from_secs(20))
        .about("how long it is remembered that one could not be found");
}

/// How long an event waits for answers that are not in the cache, all together.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Applications that are remembered.
const APPLICATIONS_MAX: usize = 10_000;

static CLOUDFOUNDRY: LazyLock<Path> = LazyLock::new(|| path("cloudfoundry"));
static APP_ID: LazyLock<Path> = LazyLock::new(|| path("cloudfoundry.app.id"));
/// An event that has all of them needs nothing.
static OTHERS: LazyLock<[Path; 5]> = LazyLock::new(|| {
    let names = ["app.name", "space.id", "space.name", "org.id", "org.name"];
    names.map(|name| path(&format!("cloudfoundry.{name}")))
});

fn path(text: &str) -> Path {
    Path::parse(text).expect("a constant path")
}

/// Adds `cloudfoundry.*` to events with an application.
pub(crate) struct AddCloudFoundryMetadata {
    api: HttpClient,
    tls: Option<Arc<TlsClient>>,
    /// Overrides the address from the API.
    uaa: Option<String>,
    id: String,
    secret: Secret,
    found: Cache<Arc<Map>>,
    found_time: Duration,
    failed: Cache<()>,
    failed_time: Duration,
    clock: Arc<dyn Clock>,
}

/// Why an application is not known.
#[derive(Debug, thiserror::Error)]
enum AskError {
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error("{0}")]
    Address(String),
    #[error("no answer within {} s", TIMEOUT.as_secs())]
    Timeout,
    #[error("no runtime for sockets: {0}")]
    Runtime(#[from] std::io::Error),
}

impl AddCloudFoundryMetadata {
    /// Reads the settings.
    pub(crate) fn read(settings: &Section<'_>, context: &Context) -> Option<Self> {
        let address = settings.get(&API_ADDRESS).required();
        let id = settings.get(&CLIENT_ID).required();
        let secret = settings.get(&CLIENT_SECRET).required();
        let uaa = settings.get(&UAA_ADDRESS).optional();
        let found_time = settings.get(&CACHE_DURATION).value();
        let failed_time = settings.get(&CACHE_RETRY_DELAY).value();
        let configured = tls::read(settings, context).ok()?;
        let tls = match configured {
            None if address.starts_with("https") => {
                let report =
                    |error: TlsError| settings.problem(tls::SSL.name(), error.to_string(), "");
                let client = TlsClient::new(&TlsSettings::default(), Arc::clone(&context.fs));
                Some(client.map_err(report).ok()?)
            }
            configured => configured,
        };
        let report = |error| {
            let (path, shown) = (settings.path_of(API_ADDRESS.name()), mask_address(&address));
            let message = format!("`{path}` is `{shown}`; {error}");
            settings.problem(API_ADDRESS.name(), message, "");
        };
        let api = HttpClient::parse(&address, tls.clone(), TIMEOUT).map_err(report).ok()?;
        if id.is_empty() || secret.is_empty() {
            return None;
        }
        Some(Self {
            api,
            tls,
            uaa,
            id,
            secret,
            found: Cache::new(0, APPLICATIONS_MAX),
            found_time,
            failed: Cache::new(0, APPLICATIONS_MAX),
            failed_time,
            clock: Arc::clone(&context.clock),
        })
    }

    fn look_up(&self, app: &str) -> Option<Arc<Map>> {
        let now = self.clock.monotonic();
        if let Some(fields) = self.found.get(app, now) {
            return Some(fields);
        }
        if self.failed.get(app, now).is_some() {
            return None;
        }
        match self.ask(app) {
            Ok(fields) => {
                let fields = Arc::new(fields);
                self.found.put(app, Arc::clone(&fields), self.clock.monotonic() + self.found_time);
                Some(fields)
            }
            Err(error) => {
                tracing::debug!(app, %error, "an application of Cloud Foundry is not known");
                self.failed.put(app, (), self.clock.monotonic() + self.failed_time);
                None
            }
        }
    }

    fn ask(&self, app: &str) -> Result<Map, AskError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let answer = runtime.block_on(async {
            let answer = tokio::time::timeout(TIMEOUT, self.application(app)).await;
            answer.unwrap_or(Err(AskError::Timeout))
        });
        // A name may still be looked up by a helper of the runtime, which cannot be stopped.
        runtime.shutdown_background();
        answer
    }

    async fn application(&self, app: &str) -> Result<Map, AskError> {
        let token = self.token().await?;
        let authorization = format!("Bearer {token}");
        let headers = [("authorization", authorization.as_str())];
        let path = format!("/v2/apps/{}?inline-relations-depth=2", percent_encoded(app));
        let app = self.api.json(HttpRequest::get(&path).headers(&headers)).await?;
        let space = &app["entity"]["space"];
        let organisation = &space["entity"]["organization"];
        let mut fields = Map::new();
        for (name, value) in [
            ("app.name", &app["entity"]["name"]),
            ("space.id", &space["metadata"]["guid"]),
            ("space.name", &space["entity"]["name"]),
            ("org.id", &organisation["metadata"]["guid"]),
            ("org.name", &organisation["entity"]["name"]),
        ] {
            let text = value.as_str().unwrap_or_default();
            fields.insert_path(&format!("cloudfoundry.{name}"), text);
        }
        Ok(fields)
    }

    /// A token by our own name and secret (RFC 6749, 4.4).
    async fn token(&self) -> Result<String, AskError> {
        let uaa = match &self.uaa {
            Some(uaa) => uaa.clone(),
            None => {
                let info = self.api.json(HttpRequest::get("/v2/info")).await?;
                text(&info["authorization_endpoint"])
            }
        };
        let server =
            HttpClient::parse(&uaa, self.tls.clone(), TIMEOUT).map_err(AskError::Address)?;
        let pair =
            format!("{}:{}", percent_encoded(&self.id), percent_encoded(self.secret.reveal()));
        let authorization = format!("Basic {}", STANDARD.encode(pair));
        let headers = [
            ("authorization", authorization.as_str()),
            ("content-type", "application/x-www-form-urlencoded"),
        ];
        let ask = HttpRequest {
            method: Method::POST,
            path: "/oauth/token",
            headers: &headers,
            body: "grant_type=client_credentials",
        };
        Ok(text(&server.json(ask).await?["access_token"]))
    }
}

fn text(value: &Json) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

impl fmt::Debug for AddCloudFoundryMetadata {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("AddCloudFoundryMetadata").field("api", &self.api).finish_non_exhaustive()
    }
}

impl Processor for AddCloudFoundryMetadata {
    fn name(&self) -> &'static str {
        "add_cloudfoundry_metadata"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        let own = event.as_ref();
        let full = |path| !matches!(own.get(path), None | Some(ValueRef::Str(b"")));
        let fields = match own.get(&APP_ID) {
            Some(ValueRef::Str(app)) if !app.is_empty() && !OTHERS.iter().all(full) => {
                std::str::from_utf8(app).ok().and_then(|app| self.look_up(app))
            }
            _ => None,
        };
        if let Some(fields) = fields {
            event.merge(&fields);
        }
        Ok(Outcome::Done)
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        Footprint { writes: vec![CLOUDFOUNDRY.clone()], open: true, ..Footprint::default() }
    }

    fn can_fail(&self) -> bool {
        false
    }
}
