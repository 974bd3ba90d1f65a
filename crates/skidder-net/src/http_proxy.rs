//! HTTP proxies (RFC 9110, 9.3.6): a tunnel with `CONNECT` for encrypted connections.

use crate::address::{read_address, read_credentials};
use crate::headers::basic_login;
use crate::route::{Host, NetError, Stream, WithoutTls, dial, encrypt, resolve};
use http::{HeaderName, HeaderValue};
use skidder_config::Secret;
use skidder_tls::TlsSettings;
use std::fmt;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Largest head of an answer.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// Bytes of an answer that a message shows.
const SHOWN_BYTES_MAX: usize = 200;

/// A proxy of HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpProxy {
    /// Whether the proxy itself is spoken to over TLS, with the authorities of the system.
    pub https: bool,
    /// Where it listens.
    pub host: Host,
    /// User and password of the URL.
    pub credentials: Option<(String, Secret)>,
    /// `proxy_headers`: sent with `CONNECT`.
    pub headers: Vec<(HeaderName, HeaderValue)>,
}

impl fmt::Display for HttpProxy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}://{}", if self.https { "https" } else { "http" }, self.host)
    }
}

impl HttpProxy {
    /// Reads `http[s]://[user:password@]host[:port][/]`, without its scheme.
    pub fn parse(https: bool, rest: &str) -> Result<Self, String> {
        let rest = rest.trim_end_matches('/');
        if rest.contains(['/', '?', '#']) {
            return Err("the URL of a proxy has no path".to_owned());
        }
        let (credentials, address) = match rest.rsplit_once('@') {
            Some((user, address)) => (Some(read_credentials(user)?), address),
            None => (None, rest),
        };
        let (name, port) = read_address(address, if https { 443 } else { 80 })?;
        Ok(Self { https, host: Host { name, port }, credentials, headers: Vec::new() })
    }

    /// `Proxy-Authorization`, if it has a user.
    pub fn authorization(&self) -> Option<String> {
        let (user, password) = self.credentials.as_ref()?;
        Some(basic_login(user, password))
    }

    /// A connection to the proxy itself.
    pub async fn open(&self) -> Result<Box<dyn Stream>, NetError> {
        let tcp = dial(&resolve(&self.host.name, self.host.port).await?).await?;
        if !self.https {
            return Ok(Box::new(tcp));
        }
        let tls = TlsSettings::default().client(&skidder_os::RealFs);
        let tls = tls.map_err(|error| self.error(format!("cannot be checked: {error}")))?;
        Ok(Box::new(encrypt(tcp, &self.host.name, &tls, WithoutTls::Http).await?))
    }

    /// A tunnel through the proxy to `target`.
    pub async fn tunnel(&self, target: &Host) -> Result<Box<dyn Stream>, NetError> {
        let mut stream = self.open().await?;
        self.ask(&mut stream, target).await.map_err(|what| self.error(what))?;
        Ok(stream)
    }

    fn error(&self, what: String) -> NetError {
        NetError::Proxy { proxy: self.to_string(), what }
    }

    async fn ask(&self, stream: &mut Box<dyn Stream>, target: &Host) -> Result<(), String> {
        let mut request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n").into_bytes();
        if let Some(authorization) = self.authorization() {
            request
                .extend_from_slice(format!("Proxy-Authorization: {authorization}\r\n").as_bytes());
        }
        for (name, value) in &self.headers {
            request.extend_from_slice(name.as_str().as_bytes());
            request.extend_from_slice(b": ");
            request.extend_from_slice(value.as_bytes());
            request.extend_from_slice(b"\r\n");
        }
        request.extend_from_slice(b"\r\n");
        let broke = |error| format!("broke the connection: {error}");
        stream.write_all(&request).await.map_err(broke)?;
        stream.flush().await.map_err(broke)?;
        let head = read_head(stream).await?;
        let line = head.lines().next().unwrap_or_default();
        match line.split(' ').nth(1) {
            Some("200") => Ok(()),
            Some("407") if self.credentials.is_none() => {
                Err("wants a user and a password; put them into `proxy_url`".to_owned())
            }
            Some("407") => Err("refuses the user and password of `proxy_url`".to_owned()),
            _ => {
                let shown: String = line.chars().take(SHOWN_BYTES_MAX).collect();
                Err(format!("does not connect to {target}: it answers `{shown}`"))
            }
        }
    }
}

/// The head of an answer, and not a byte more: what follows belongs to the tunnel.
async fn read_head(stream: &mut Box<dyn Stream>) -> Result<String, String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() == HEAD_BYTES_MAX {
            return Err("answers without an end".to_owned());
        }
        let byte = stream.read_u8().await;
        head.push(byte.map_err(|error| format!("broke the connection: {error}"))?);
    }
    String::from_utf8(head).map_err(|_| "does not answer as HTTP does".to_owned())
}
