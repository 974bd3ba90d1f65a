//! Where requests go: host, paths, and what every request to it has.

use http::Uri;
use skidder_aws::escape;
use skidder_net::{Host, HostUrl, Proxy, ProxyChoice, Route, WithoutTls};
use skidder_tls::TlsClient;
use std::sync::Arc;

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Target {
    /// Where it is.
    pub address: Host,
    /// Whether the connection is encrypted.
    pub https: bool,
    /// The header `host`: the signed value must be the sent one.
    pub authority: String,
    /// The prefix of paths, escaped, without a slash at its end.
    root: String,
    /// The prefix of paths in requests through an HTTP proxy.
    before: String,
    /// The login at such a proxy.
    pub(crate) proxy_login: Option<String>,
    proxy: Option<Arc<Proxy>>,
}

impl Target {
    /// A bucket: its name stands in the path, or before the name of the host. Without an `endpoint` it is Amazon's.
    pub fn bucket(
        endpoint: Option<HostUrl>,
        region: &str,
        (bucket, path_style): (&str, bool),
        proxy: &ProxyChoice,
    ) -> Self {
        let mut url = endpoint.unwrap_or_else(|| service_url("s3", region));
        if path_style {
            url.path.push('/');
            escape(&mut url.path, bucket, None);
        } else {
            url.name = format!("{bucket}.{}", url.name);
        }
        Self::at(url, proxy)
    }

    /// A server whose API has one path, as all that take JSON.
    pub fn at(url: HostUrl, proxy: &ProxyChoice) -> Self {
        let HostUrl { https, name, port, path: root, .. } = url;
        let shown = if name.contains(':') { format!("[{name}]") } else { name.clone() };
        let is_usual = port == usual_port(https);
        let authority = if is_usual { shown } else { format!("{shown}:{port}") };
        let address = Host { name, port };
        let proxy = proxy.of(https, &address);
        let (before, proxy_login) = match proxy.as_deref() {
            Some(Proxy::Http(proxy)) if !https => {
                (format!("http://{authority}"), proxy.authorization())
            }
            _ => (String::new(), None),
        };
        Self { address, https, authority, root, before, proxy_login, proxy }
    }

    /// The escaped path of an object, or of the target itself.
    pub fn path(&self, key: Option<&str>) -> String {
        let mut path = self.root.clone();
        match key {
            Some(key) => {
                path.push('/');
                escape(&mut path, key, Some('/'));
            }
            None if path.is_empty() => path.push('/'),
            None => {}
        }
        path
    }

    /// A path as requests have it, with an escaped query unless that is empty.
    pub(crate) fn uri(&self, path: &str, query: &str) -> Uri {
        let mark = if query.is_empty() { "" } else { "?" };
        format!("{}{path}{mark}{query}", self.before).parse().expect("an escaped path is one")
    }

    /// The way to it; `tls` is used if the target has TLS.
    pub fn route(&self, tls: Option<Arc<TlsClient>>) -> Route {
        Route {
            host: self.address.clone(),
            proxy: self.proxy.clone(),
            tls: tls.filter(|_| self.https),
            http2: false,
            without_tls: WithoutTls::Http,
        }
    }
}

/// The port of a URL without one.
pub fn usual_port(https: bool) -> u16 {
    if https { 443 } else { 80 }
}

/// Amazon's own server of a service, as `s3`, in a region
/// (<https://docs.aws.amazon.com/general/latest/gr/rande.html>).
pub fn service_url(service: &str, region: &str) -> HostUrl {
    let domain = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
    HostUrl {
        https: true,
        name: format!("{service}.{region}.{domain}"),
        port: usual_port(true),
        path: String::new(),
        credentials: None,
    }
}
