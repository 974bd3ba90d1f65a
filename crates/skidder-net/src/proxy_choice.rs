//! Which proxy a host is reached by: that of the settings, or one of the environment.
//!
//! The environment is read as Go's `net/http` does (golang.org/x/net/http/httpproxy): `HTTPS_PROXY` for hosts with
//! TLS, `HTTP_PROXY` for the others, neither for those in `NO_PROXY` and for this machine itself; lower-case names as
//! well.

use crate::address::PROXY_HINT;
use crate::{Host, HttpProxy, Proxy, SocksProxy, read_headers};
use skidder_config::{Group, Key, Secret, Section, settings};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

settings! {
    /// The proxy of an output or input over HTTP.
    pub static PROXY = Group::new("proxy", "The proxy to servers of HTTP.");

    PROXY_URL: Secret = Key::new("proxy_url")
        .default_words("the environment's")
        .noun("the URL of a proxy")
        .about(
            "`http://`, `https://` or `socks5://[user:password@]host[:port]`; without it `HTTPS_PROXY`, `HTTP_PROXY` \
             and `NO_PROXY` hold, as in Go",
        );
    PROXY_HEADERS: BTreeMap<String, String> =
        Key::new("proxy_headers").secret().about("sent to the proxy with `CONNECT`");
    PROXY_DISABLE: bool = Key::new("proxy_disable").default(false).about("never use a proxy");
}

/// See the module's text.
#[derive(Clone, Debug, Default)]
pub enum ProxyChoice {
    /// None.
    #[default]
    Direct,
    /// That of `proxy_url`, for all hosts.
    Always(Arc<Proxy>),
    /// Those of the environment.
    Environment(Environment),
}

/// The variables.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    http: Option<Arc<Proxy>>,
    https: Option<Arc<Proxy>>,
    except: Vec<Except>,
}

/// One entry of `NO_PROXY`.
#[derive(Clone, Debug, PartialEq)]
enum Except {
    All,
    Network(IpAddr, u8),
    /// A name, with the names below it (`true`), or only those (a leading dot); and a port.
    Name {
        name: String,
        itself: bool,
        port: Option<u16>,
    },
    Address(IpAddr, Option<u16>),
}

impl ProxyChoice {
    /// Reads `proxy_url`, `proxy_headers` and `proxy_disable`. `environment` gives the value of a variable.
    pub fn read(section: &Section<'_>, environment: impl Fn(&str) -> Option<String>) -> Self {
        let headers = read_headers(section, &PROXY_HEADERS);
        let url = section.get(&PROXY_URL).hint(PROXY_HINT);
        let url = url.try_map(|url| parse(url.reveal())).optional();
        if section.get(&PROXY_DISABLE).value() {
            return Self::Direct;
        }
        let with_headers = |mut via: Proxy| {
            if let Proxy::Http(proxy) = &mut via {
                proxy.headers.clone_from(&headers);
            }
            Arc::new(via)
        };
        if let Some(via) = url {
            return Self::Always(with_headers(via));
        }
        match Environment::read(environment) {
            Ok(mut found) => {
                for via in [&mut found.http, &mut found.https].into_iter().flatten() {
                    *via = with_headers((**via).clone());
                }
                Self::Environment(found)
            }
            Err(message) => {
                let hint = "set `proxy_disable: true` to connect directly";
                section.problem("", message, hint);
                Self::Direct
            }
        }
    }

    /// The proxy for one host.
    pub fn of(&self, https: bool, host: &Host) -> Option<Arc<Proxy>> {
        match self {
            Self::Direct => None,
            Self::Always(via) => Some(Arc::clone(via)),
            Self::Environment(environment) => environment.of(https, host),
        }
    }
}

/// Reads the URL of a proxy; one without a scheme is one of HTTP.
fn parse(url: &str) -> Result<Proxy, String> {
    let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
    match scheme {
        "http" => Ok(Proxy::Http(HttpProxy::parse(false, rest)?)),
        "https" => Ok(Proxy::Http(HttpProxy::parse(true, rest)?)),
        "socks5" | "socks5h" => {
            Ok(Proxy::Socks(SocksProxy::parse(&format!("socks5://{rest}"), false)?))
        }
        _ => Err("its scheme is none of `http`, `https` and `socks5`".to_owned()),
    }
}

impl Environment {
    fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let any = |upper: &str, lower: &str| {
            variable(upper).filter(|text| !text.is_empty()).or_else(|| variable(lower))
        };
        let proxy = |name: &str, text: Option<String>| match text.filter(|text| !text.is_empty()) {
            // The text may hold a password.
            Some(text) => match parse(&text) {
                Ok(via) => Ok(Some(Arc::new(via))),
                Err(error) => {
                    Err(format!("the environment variable `{name}` is no proxy: {error}"))
                }
            },
            None => Ok(None),
        };
        let except = any("NO_PROXY", "no_proxy").unwrap_or_default();
        Ok(Self {
            http: proxy("HTTP_PROXY", any("HTTP_PROXY", "http_proxy"))?,
            https: proxy("HTTPS_PROXY", any("HTTPS_PROXY", "https_proxy"))?,
            except: except.split(',').filter_map(Except::parse).collect(),
        })
    }

    fn of(&self, https: bool, host: &Host) -> Option<Arc<Proxy>> {
        let via = if https { &self.https } else { &self.http };
        let name = host.name.trim_end_matches('.').to_ascii_lowercase();
        let address = name.parse::<IpAddr>().ok();
        let is_here = name == "localhost" || address.is_some_and(|address| address.is_loopback());
        if is_here || self.except.iter().any(|except| except.holds(&name, address, host.port)) {
            return None;
        }
        via.clone()
    }
}

impl Except {
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim().to_ascii_lowercase();
        if text.is_empty() {
            return None;
        }
        if text == "*" {
            return Some(Self::All);
        }
        if let Some((address, bits)) = text.split_once('/')
            && let (Ok(address), Ok(bits)) = (address.parse(), bits.parse())
        {
            return Some(Self::Network(address, bits));
        }
        if let Ok(address) = text.trim_matches(['[', ']']).parse() {
            return Some(Self::Address(address, None));
        }
        let (name, port) = match text.rsplit_once(':') {
            Some((name, port)) => (name, Some(port.parse().ok()?)),
            None => (text.as_str(), None),
        };
        if let Ok(address) = name.trim_matches(['[', ']']).parse() {
            return Some(Self::Address(address, port));
        }
        let name = name.strip_prefix('*').unwrap_or(name);
        Some(match name.strip_prefix('.') {
            Some(name) => Self::Name { name: name.to_owned(), itself: false, port },
            None => Self::Name { name: name.to_owned(), itself: true, port },
        })
    }

    fn holds(&self, host: &str, address: Option<IpAddr>, host_port: u16) -> bool {
        let same_port = |port: &Option<u16>| port.is_none_or(|port| port == host_port);
        match self {
            Self::All => true,
            Self::Network(network, bits) => {
                address.is_some_and(|address| is_inside(address, *network, *bits))
            }
            Self::Address(own, port) => address == Some(*own) && same_port(port),
            Self::Name { name, itself, port } => {
                let below =
                    host.strip_suffix(name.as_str()).is_some_and(|rest| rest.ends_with('.'));
                (below || (*itself && host == name)) && same_port(port)
            }
        }
    }
}

/// Whether the first `bits` are the same.
fn is_inside(address: IpAddr, network: IpAddr, bits: u8) -> bool {
    let number = |address: IpAddr| match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()) << 96, 32),
        IpAddr::V6(address) => (address.to_bits(), 128),
    };
    let ((address, length), (network, other)) = (number(address), number(network));
    let shift = 128 - u32::from(bits.min(128));
    length == other && (shift == 128 || address >> shift == network >> shift)
}

#[cfg(test)]
mod tests {
    use super::*;
    use skidder_config::{Problems, Settings};

    fn choice(settings: &str, variables: &[(&str, &str)]) -> (ProxyChoice, String) {
        let problems = Problems::new();
        let settings = Settings::parse("x", settings).unwrap();
        let root = settings.root(&problems);
        let variable = |name: &str| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let choice = ProxyChoice::read(&root, variable);
        root.finish();
        (choice, problems.to_string())
    }

    fn of(choice: &ProxyChoice, https: bool, host: &str) -> String {
        let (name, port) = crate::address::read_host(host, 9200).unwrap();
        let via = choice.of(https, &Host { name, port });
        via.map_or_else(|| "direct".to_owned(), |via| via.to_string())
    }

    #[test]
    fn the_settings_win_over_the_environment() {
        let variables =
            [("HTTP_PROXY", "proxy:3128"), ("https_proxy", "http://u:p@secure"), ("NO_PROXY", "")];
        let (plain, problems) = choice("{}", &variables);
        assert_eq!(problems, "");
        assert_eq!(of(&plain, false, "es"), "http://proxy:3128");
        assert_eq!(of(&plain, true, "es"), "http://secure:80");
        for here in ["localhost", "127.0.0.1", "[::1]"] {
            assert_eq!(of(&plain, true, here), "direct");
        }
        let (own, problems) = choice("proxy_url: https://own", &variables);
        assert_eq!(
            (of(&own, false, "localhost"), problems.as_str()),
            ("https://own:443".to_owned(), "")
        );
        let (socks, _) = choice("proxy_url: socks5://own", &variables);
        assert_eq!(of(&socks, true, "es"), "socks5://own:1080");
        let (off, _) = choice("{proxy_disable: true, proxy_url: own}", &variables);
        assert_eq!(of(&off, false, "es"), "direct");
        assert_eq!(of(&choice("{}", &[]).0, false, "es"), "direct");
    }

    #[test]
    fn proxies_that_are_none_are_told_without_passwords() {
        let none = |text: &str, what: &str| {
            let problems = choice(&format!("proxy_url: '{text}'"), &[]).1;
            assert!(
                problems.starts_with("error: x:1:12: `proxy_url` is `xxxxx`; "),
                "{text}: {problems}"
            );
            assert!(
                problems.contains(what) && problems.contains("\nhint: a proxy is"),
                "{text}: {problems}"
            );
            let (_, of_environment) = choice("{}", &[("HTTPS_PROXY", text)]);
            assert!(of_environment.contains(what), "{text}: {of_environment}");
            assert!(
                !format!("{problems}{of_environment}").contains("SECRET"),
                "{text}: {problems}"
            );
        };
        for text in ["http://", "http://u:SECRET@", "https://u:SECRET@/", "socks5://:1080", ":80"] {
            none(text, "it names no host");
        }
        for text in ["http://u:SECRET", "u:SECRET", "socks5://u:SECRET", "http://u:SECRET@a:0"] {
            none(text, "its port is no number");
        }
        for text in ["http://[]", "http://u:SECRET@a:b:c", "socks5://[SECRET]:1"] {
            none(text, "IPv6");
        }
        none("http://[SECRET", "its `[` is not closed");
        none("http://u:%SECRET@a", "percent-encoded");
        none("http://SEC RET", "has a space");
        none("ftp://u:SECRET@own", "its scheme");
        none("SECRET:x://own", "its scheme");
        none("http://u:SECRET@own/path", "has no path");
        none("http://u:SEC/RET@own", "has no path");
        assert!(choice("proxy_headers: {'a b': c}", &[]).1.contains("error"));
    }

    #[test]
    fn names_and_networks_can_be_left_out() {
        let table = [
            ("es", "es", true),
            ("es", "a.es", true),
            ("es", "yes", false),
            (".es", "es", false),
            (".es", "a.es", true),
            ("*.es", "a.es", true),
            ("*", "anything", true),
            ("es:9200", "es", true),
            ("es:9201", "es", false),
            ("10.0.0.0/8", "10.1.2.3", true),
            ("10.0.0.0/8", "11.1.2.3", false),
            ("fd00::/8", "[fd12::1]", true),
            ("0.0.0.0/0", "[fd12::1]", false),
            ("10.1.2.3", "10.1.2.3", true),
            ("10.1.2.3:1", "10.1.2.3", false),
            ("a, ES ,b", "Es.", true),
            (" , ", "es", false),
        ];
        for (except, host, left_out) in table {
            let (choice, _) = choice("{}", &[("HTTP_PROXY", "p"), ("NO_PROXY", except)]);
            assert_eq!(of(&choice, false, host) == "direct", left_out, "{except} {host}");
        }
    }
}
