//! One worker's way to one server, over gRPC or over HTTP.

use super::answer::{Verdict, of_grpc, of_http};
use super::config::{Config, Protocol};
use bytes::Bytes;
use http::header::{
    AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HOST, PROXY_AUTHORIZATION, TE, USER_AGENT,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use skidder_net::{
    AGENT, Connection, ConnectionError, HostUrl, Http2, Http2Answer, Pieces, Proxy, Redactor,
    Route, Stream, WithoutTls, basic_login_of, proxy_login, request_uri, secret_header, within,
};
use skidder_tls::TlsClient;
use std::sync::Arc;
use std::time::Duration;

/// The path of gRPC requests.
const SERVICE: &str = "/opentelemetry.proto.collector.logs.v1.LogsService/Export";
/// The end of a URL, which is added if it is missing.
const PATH: &str = "/v1/logs";

/// A server that no request can be made for.
#[derive(Debug, thiserror::Error)]
#[error("no request can be made for `{0}`")]
pub struct TargetError(String);

/// One server, with all of a request but its body.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) host: HostUrl,
    pub(crate) route: Route,
    protocol: Protocol,
    uri: Uri,
    headers: HeaderMap,
}

impl Target {
    pub(crate) fn new(
        host: &HostUrl,
        config: &Config,
        tls: Option<&Arc<TlsClient>>,
    ) -> Result<Self, TargetError> {
        let proxy = config.proxy.of(host.https, &host.address());
        let wrong = || TargetError(host.to_string());
        let uri = uri(host, config.protocol, proxy.as_deref()).ok_or_else(wrong)?;
        let headers = headers(host, config, proxy.as_deref()).ok_or_else(wrong)?;
        let route = Route {
            host: host.address(),
            proxy,
            tls: tls.filter(|_| host.https).cloned(),
            http2: config.protocol == Protocol::Grpc,
            without_tls: WithoutTls::Http,
        };
        Ok(Self { host: host.clone(), route, protocol: config.protocol, uri, headers })
    }

    pub(crate) fn is_grpc(&self) -> bool {
        self.protocol == Protocol::Grpc
    }

    /// The protocol over an open connection.
    pub(crate) async fn over(
        &self,
        stream: Box<dyn Stream>,
        timeout: Duration,
    ) -> Result<Link, ConnectionError> {
        within(timeout, async {
            Ok(match self.protocol {
                Protocol::Grpc => Link::Grpc(Http2::over(stream).await?),
                Protocol::Http => Link::Http(Connection::over(stream, None).await?),
            })
        })
        .await
    }

    /// Sends a request over a connection; returns the verdict of the answer, and its length.
    pub(crate) async fn ask(
        &self,
        link: &mut Link,
        body: &[Bytes],
        timeout: Duration,
    ) -> Result<(Verdict, usize), ConnectionError> {
        let (uri, headers, body) = (self.uri.clone(), self.headers.clone(), Pieces::new(body));
        // Remarks to what was taken are shown, too.
        let sent = Redactor::of(&headers);
        match link {
            Link::Grpc(connection) => {
                let mut answer = connection.exchange(uri, headers, body, timeout).await?;
                sent.hide(&mut answer.body);
                sent.hide_in_header(&mut answer.headers, "grpc-message");
                sent.hide_in_header(&mut answer.trailers, "grpc-message");
                Ok((of_grpc(&answer), answer.body.len()))
            }
            Link::Http(connection) => {
                let mut answer = Http2Answer::default();
                let into = &mut answer.body;
                let exchanged =
                    connection.send(Method::POST, uri, headers, body, into, timeout).await?;
                (answer.status, answer.headers) = exchanged;
                sent.hide(&mut answer.body);
                Ok((of_http(&answer), answer.body.len()))
            }
        }
    }
}

/// An open connection.
#[derive(Debug)]
pub(crate) enum Link {
    Grpc(Http2),
    Http(Connection),
}

impl Link {
    /// Whether a request can be sent over it.
    pub(crate) fn is_open(&self) -> bool {
        match self {
            Self::Grpc(connection) => connection.is_open(),
            Self::Http(connection) => connection.is_open(),
        }
    }
}

fn uri(host: &HostUrl, protocol: Protocol, proxy: Option<&Proxy>) -> Option<Uri> {
    match protocol {
        Protocol::Grpc => {
            let scheme = if host.https { "https" } else { "http" };
            format!("{scheme}://{}{SERVICE}", host.authority()).parse().ok()
        }
        Protocol::Http => request_uri(host, PATH, proxy),
    }
}

fn headers(host: &HostUrl, config: &Config, proxy: Option<&Proxy>) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    let codec = config.compression.name().map(HeaderValue::from_static);
    match config.protocol {
        Protocol::Grpc => {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
            headers.insert(TE, HeaderValue::from_static("trailers"));
            if let Some(codec) = codec {
                headers.insert(HeaderName::from_static("grpc-encoding"), codec);
            }
            let milliseconds = config.timeout.as_millis().min(u128::from(GRPC_TIMEOUT_MAX));
            let timeout = HeaderValue::from_str(&format!("{milliseconds}m")).ok()?;
            headers.insert(HeaderName::from_static("grpc-timeout"), timeout);
        }
        Protocol::Http => {
            headers.insert(HOST, HeaderValue::from_str(&host.authority()).ok()?);
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
            if let Some(codec) = codec {
                headers.insert(CONTENT_ENCODING, codec);
            }
            if let Some(login) = proxy_login(host, proxy) {
                headers.insert(PROXY_AUTHORIZATION, secret_header(&login)?);
            }
        }
    }
    if let Some(login) = basic_login_of(host) {
        headers.insert(AUTHORIZATION, secret_header(&login)?);
    }
    for (name, value) in &config.headers {
        headers.insert(name.clone(), value.clone());
    }
    Some(headers)
}

/// The number in `grpc-timeout` has at most eight digits.
const GRPC_TIMEOUT_MAX: u64 = 99_999_999;
