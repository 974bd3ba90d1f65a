//! Where requests go: host, prefix of paths, proxy, and the headers that every request has.

use super::failure::HeaderError;
use crate::url::{HostUrl, encode_path, usual_port};
use crate::{AGENT, Host, Proxy, ProxyChoice, Route, WithoutTls, secret_header};
use http::header::{HeaderName, PROXY_AUTHORIZATION, USER_AGENT};
use http::{HeaderMap, HeaderValue, Uri};
use skidder_tls::TlsClient;
use std::sync::Arc;

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Target {
    /// Where it is.
    pub address: Host,
    /// Whether the connection is encrypted.
    pub https: bool,
    /// The header `host`; a signed value must be the sent one.
    pub authority: String,
    /// The prefix of paths, escaped, without a slash at its end.
    pub root: String,
    /// The prefix of paths in requests through an HTTP proxy.
    before: String,
    /// The login at such a proxy.
    proxy_login: Option<String>,
    proxy: Option<Arc<Proxy>>,
}

impl Target {
    /// The server at this URL.
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

    /// Its URL, without a slash at its end.
    pub fn url(&self) -> String {
        let scheme = if self.https { "https" } else { "http" };
        format!("{scheme}://{}{}", self.authority, self.root)
    }

    /// The escaped path of an object whose name is `key`, or of the target itself.
    pub fn path(&self, key: Option<&str>) -> String {
        let mut path = self.root.clone();
        match key {
            Some(key) => {
                path.push('/');
                encode_path(&mut path, key);
            }
            None if path.is_empty() => path.push('/'),
            None => {}
        }
        path
    }

    /// A path as requests have it, with an escaped query unless that is empty.
    ///
    /// # Errors
    ///
    /// One of them has characters that no URL has.
    pub fn uri(&self, path: &str, query: &str) -> Result<Uri, HeaderError> {
        let mark = if query.is_empty() { "" } else { "?" };
        let uri = format!("{}{path}{mark}{query}", self.before).parse();
        uri.map_err(|_| HeaderError("the URL".to_owned()))
    }

    /// `host`, `user-agent`, the login at a proxy, and `others`.
    ///
    /// # Errors
    ///
    /// One of them cannot be sent.
    pub fn headers(&self, others: &[(&str, &str)]) -> Result<HeaderMap, HeaderError> {
        let mut headers = HeaderMap::new();
        for (name, text) in [("host", &*self.authority)].iter().chain(others) {
            let wrong = || HeaderError((*name).to_owned());
            let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
            headers.insert(header, HeaderValue::from_str(text).map_err(|_| wrong())?);
        }
        if let Some(login) = &self.proxy_login {
            insert_secret(&mut headers, PROXY_AUTHORIZATION, login)?;
        }
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        Ok(headers)
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

/// Inserts a header that no log shows.
///
/// # Errors
///
/// It cannot be sent.
pub fn insert_secret(
    headers: &mut HeaderMap,
    name: HeaderName,
    text: &str,
) -> Result<(), HeaderError> {
    let value = secret_header(text).ok_or_else(|| HeaderError(name.to_string()))?;
    headers.insert(name, value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header::HOST;

    #[test]
    fn a_target_has_a_url_and_paths() {
        let table = [
            ("https://logs.example/", "logs.example", "https://logs.example", "/", "/a%20b/%C3%A4"),
            ("http://[::1]:9000/x", "[::1]:9000", "http://[::1]:9000/x", "/x", "/x/a%20b/%C3%A4"),
        ];
        for (text, authority, url, root, path) in table {
            let target = HostUrl::parse(text, "", "", usual_port).unwrap();
            let target = Target::at(target, &ProxyChoice::Direct);
            assert_eq!((&*target.authority, &*target.url()), (authority, url));
            assert_eq!((&*target.path(None), &*target.path(Some("a b/ä"))), (root, path));
            let headers = target.headers(&[("x-a", "1")]).unwrap();
            assert!(headers[HOST] == authority && headers["x-a"] == "1", "{headers:?}");
            assert_eq!(target.uri(path, "a=b").unwrap().to_string(), format!("{path}?a=b"));
            assert_eq!(target.uri(path, "").unwrap().to_string(), path);
            assert!(target.uri(path, "a b").is_err());
            let error = target.headers(&[("x-a", "1\n")]).unwrap_err();
            assert_eq!(error, HeaderError("x-a".to_owned()));
        }
    }
}
