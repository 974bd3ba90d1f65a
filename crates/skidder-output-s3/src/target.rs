//! The bucket: its host, the paths of its objects, and what every request to it has.

use super::config::Config;
use http::Uri;
use skidder_aws::escape;
use skidder_net::{Host, HostUrl, Proxy};

/// See the module's text.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// Where it is.
    pub(crate) address: Host,
    pub(crate) https: bool,
    /// The header `host`: the signed value must be the sent one.
    pub(crate) authority: String,
    /// Path of the bucket, escaped, without a slash at its end.
    root: String,
    /// The prefix of paths in requests through an HTTP proxy.
    before: String,
    /// The login at such a proxy.
    pub(crate) proxy_login: Option<String>,
}

impl Target {
    pub(crate) fn new(config: &Config) -> Self {
        let endpoint = config.endpoint.clone().unwrap_or_else(|| amazon(&config.region));
        let HostUrl { https, name, port, path, .. } = endpoint;
        let mut root = path;
        let name = if config.path_style {
            root.push('/');
            escape(&mut root, &config.bucket, None);
            name
        } else {
            format!("{}.{name}", config.bucket)
        };
        let shown = if name.contains(':') { format!("[{name}]") } else { name.clone() };
        let is_usual = port == usual_port(https);
        let authority = if is_usual { shown } else { format!("{shown}:{port}") };
        let address = Host { name, port };
        let proxy = config.proxy.of(https, &address);
        let (before, proxy_login) = match proxy.as_deref() {
            Some(Proxy::Http(proxy)) if !https => {
                (format!("http://{authority}"), proxy.authorization())
            }
            _ => (String::new(), None),
        };
        Self { address, https, authority, root, before, proxy_login }
    }

    /// The escaped path of an object, or of the bucket itself.
    pub(crate) fn path(&self, key: Option<&str>) -> String {
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

    /// A path as requests have it.
    pub(crate) fn uri(&self, path: &str) -> Uri {
        format!("{}{path}", self.before).parse().expect("an escaped path is one")
    }
}

pub(crate) fn usual_port(https: bool) -> u16 {
    if https { 443 } else { 80 }
}

/// Amazon's host of a region
/// (<https://docs.aws.amazon.com/general/latest/gr/s3.html>).
fn amazon(region: &str) -> HostUrl {
    let domain = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
    HostUrl {
        https: true,
        name: format!("s3.{region}.{domain}"),
        port: usual_port(true),
        path: String::new(),
        credentials: None,
    }
}
