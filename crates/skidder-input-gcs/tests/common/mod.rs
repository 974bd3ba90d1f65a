//! fake-gcs-server with objects, and the input with one output that takes everything.

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderValue, Method};
use serde_json::Value;
use skidder_config::{Problems, Settings};
use skidder_input::Input;
use skidder_input_gcs::{BucketSettings, GCS_BUCKET, GCS_INPUT, Listing, Reading};
use skidder_net::{Connection, Host, Pieces, Route, WithoutTls, percent_encoded};
use skidder_os::{Fs, RealFs};
use skidder_read::FilestreamSettings;
use skidder_read::scan::ScanSettings;
use skidder_testkit::servers::Server;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(20);

/// A server of a test's own.
pub(crate) struct Cloud {
    pub(crate) server: Server,
}

impl Cloud {
    /// With the buckets `logs` and `other`.
    pub(crate) async fn new() -> Self {
        let cloud = Self { server: Server::own_gcs().unwrap() };
        for name in ["logs", "other"] {
            cloud.make(name).await;
        }
        cloud
    }

    /// Makes a bucket.
    pub(crate) async fn make(&self, name: &str) {
        let body = serde_json::json!({ "name": name }).to_string();
        self.send(Method::POST, "/storage/v1/b?project=test", "application/json", body).await;
    }

    async fn send(&self, method: Method, path: &str, content_type: &str, body: impl Into<Bytes>) {
        let port = self.server.port();
        let route = Route {
            host: Host { name: "127.0.0.1".to_owned(), port },
            proxy: None,
            tls: None,
            http2: false,
            without_tls: WithoutTls::Http,
        };
        let mut connection = Connection::open(&route, None, SOON).await.unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_str(&format!("127.0.0.1:{port}")).unwrap());
        headers.insert(CONTENT_TYPE, HeaderValue::from_str(content_type).unwrap());
        let (uri, body) = (path.parse().unwrap(), Pieces::new(&[body.into()]));
        let mut answer = Vec::new();
        let sent = connection.send(method, uri, headers, body, &mut answer, SOON).await;
        let status = sent.unwrap().0;
        assert!((200..300).contains(&status), "{status}: {}", String::from_utf8_lossy(&answer));
    }

    /// Puts an object of a type; `encoding` is that of its content, empty for none.
    pub(crate) async fn put_as(
        &self,
        (bucket, name): (&str, &str),
        (content_type, encoding): (&str, &str),
        content: impl Into<Bytes>,
    ) {
        let (name, encoding) = (percent_encoded(name), percent_encoded(encoding));
        let path = format!(
            "/upload/storage/v1/b/{bucket}/o?uploadType=media&name={name}&contentEncoding={encoding}"
        );
        self.send(Method::POST, &path, content_type, content).await;
    }

    /// Puts an object into the bucket `logs`.
    pub(crate) async fn put(&self, name: &str, content: impl Into<Bytes>) {
        self.put_as(("logs", name), ("text/plain", ""), content).await;
    }

    /// The input of these settings, for the buckets of these names.
    pub(crate) fn input(&self, settings: &str, buckets: &[&str]) -> Box<dyn Input> {
        let port = self.server.port();
        let text =
            format!("{{project_id: p, alternative_host: 'http://127.0.0.1:{port}', {settings}}}");
        let problems = Problems::new();
        let yaml = Settings::parse("x", &text).expect("YAML");
        let section = yaml.root(&problems);
        section.declared_by(&GCS_INPUT);
        section.declared_by(&GCS_BUCKET);
        let listing = Listing::read(&section, None);
        let reading = FilestreamSettings::new("", ScanSettings::default());
        let reading = Reading::read(&section, reading);
        let bucket =
            |name: &&str| BucketSettings::new((*name).to_owned(), listing.clone(), reading.clone());
        let fs: Arc<dyn Fs> = Arc::new(RealFs);
        let buckets = buckets.iter().map(bucket).collect();
        let read = skidder_input_gcs::read(&section, &fs, buckets, |_| None);
        section.finish();
        Box::new(read.unwrap_or_else(|| panic!("{problems}")))
    }
}

pub(crate) fn lines(name: &str, count: usize) -> String {
    (0..count).fold(String::new(), |mut text, number| {
        writeln!(text, "{name} {number:06} of {count}").unwrap();
        text
    })
}

pub(crate) fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

/// The messages in order, each as often as it came.
pub(crate) fn sorted(events: &[Value]) -> Vec<String> {
    let text = |event: &Value| event["message"].as_str().unwrap().to_owned();
    let mut all: Vec<String> = events.iter().map(text).collect();
    all.sort_unstable();
    all
}

/// The lines of texts in order.
pub(crate) fn expected(texts: &[String]) -> Vec<String> {
    let lines = texts.iter().flat_map(|text| text.lines());
    let mut all: Vec<String> = lines.map(str::to_owned).collect();
    all.sort_unstable();
    all
}
