//! Where the blobs of an account are: host, paths, and what every request to it has.

use http::Uri;
use skidder_config::Secret;
use skidder_net::{Host, HostUrl, Proxy, ProxyChoice, Route, WithoutTls, encode_percent};
use skidder_tls::TlsClient;
use std::sync::Arc;

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Account {
    /// Where it is.
    pub address: Host,
    /// Whether the connection is encrypted.
    pub https: bool,
    /// The header `host`.
    pub authority: String,
    /// The prefix of paths, escaped, without a slash at its end: empty with Azure, `/devstoreaccount1` with its emulator.
    root: String,
    /// The prefix of paths in requests through an HTTP proxy.
    before: String,
    /// The login at such a proxy.
    pub(crate) proxy_login: Option<String>,
    proxy: Option<Arc<Proxy>>,
}

impl Account {
    /// The account at this URL, as `https://NAME.blob.core.windows.net`.
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

    /// The account's URL, without a slash at its end.
    pub fn url(&self) -> String {
        let scheme = if self.https { "https" } else { "http" };
        format!("{scheme}://{}{}", self.authority, self.root)
    }

    /// The escaped path of a container, or of a blob in it.
    pub(crate) fn path(&self, container: &str, blob: Option<&str>) -> String {
        let mut path = format!("{}/{container}", self.root);
        for part in blob.into_iter().flat_map(|blob| blob.split('/')) {
            path.push('/');
            encode_percent(&mut path, part);
        }
        path
    }

    /// A path as requests have it, with an escaped query unless that is empty, and the token of a shared access signature.
    /// `None` if the token has characters that no URL has.
    pub(crate) fn uri(&self, path: &str, query: &str, sas: Option<&Secret>) -> Option<Uri> {
        let sas = sas.map_or("", |sas| sas.reveal());
        let mark = if query.is_empty() && sas.is_empty() { "" } else { "?" };
        let and = if query.is_empty() || sas.is_empty() { "" } else { "&" };
        format!("{}{path}{mark}{query}{and}{sas}", self.before).parse().ok()
    }

    /// The way to it; `tls` is used if the account has TLS.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn account(url: &str) -> Account {
        Account::at(HostUrl::parse(url, "", "", usual_port).unwrap(), &ProxyChoice::Direct)
    }

    #[test]
    fn names_stand_in_paths_as_urls_have_them() {
        let azure = account("https://logs.blob.core.windows.net/");
        assert_eq!((&*azure.authority, azure.https), ("logs.blob.core.windows.net", true));
        assert_eq!(azure.url(), "https://logs.blob.core.windows.net");
        assert_eq!(azure.path("in", None), "/in");
        assert_eq!(azure.path("in", Some("a b/ä+%25?//c")), "/in/a%20b/%C3%A4%2B%2525%3F//c");
        let emulator = account("http://127.0.0.1:10000/devstoreaccount1");
        assert_eq!(emulator.path("$logs", Some("x")), "/devstoreaccount1/$logs/x");
        assert_eq!(emulator.url(), "http://127.0.0.1:10000/devstoreaccount1");
    }

    #[test]
    fn a_shared_access_signature_stands_behind_the_query() {
        let azure = account("https://logs.blob.core.windows.net");
        let sas = Secret::new("sv=2021&sig=x%2By");
        let uri =
            |query: &str, sas: Option<&Secret>| azure.uri("/in", query, sas).unwrap().to_string();
        assert_eq!(uri("", None), "/in");
        assert_eq!(uri("comp=list", None), "/in?comp=list");
        assert_eq!(uri("comp=list", Some(&sas)), "/in?comp=list&sv=2021&sig=x%2By");
        assert_eq!(uri("", Some(&sas)), "/in?sv=2021&sig=x%2By");
        assert!(azure.uri("/in", "", Some(&Secret::new("a b"))).is_none());
    }
}
