//! Hosts and `ssl` of the outputs over plain TCP.

use crate::Host;
use crate::address::read_host;
use http::{HeaderName, HeaderValue};
use skidder_config::{Group, Key, Part, Section, settings};
use skidder_os::Fs;
use skidder_tls::{SSL, TlsClient, TlsSettings};
use std::collections::BTreeMap;
use std::sync::Arc;

settings! {
    /// `ssl` of an output or input that works without TLS.
    pub static TLS = Group::new("tls", "Whether TLS is used, and how.");

    SECTION: Part = Key::part("ssl", &SSL).about("[below](#ssl); TLS is off without a section `ssl`, or `rediss://` to Redis");
}

mod https {
    use super::*;

    settings! {
        /// `ssl` where TLS is used only with `https` URLs.
        pub static HTTPS = Group::new("https", "TLS with servers whose URL says `https`.");

        pub(super) SECTION: Part = Key::part("ssl", &SSL).about("[TLS](outputs.md#ssl) of `https`");
    }
}

pub use https::HTTPS;

/// `ssl` of a group that includes [`HTTPS`], also if there is none.
pub fn read_https(section: &Section<'_>) -> TlsSettings {
    TlsSettings::read(&section.part(&https::SECTION))
}

/// The problem stands in the problems of the section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reported;

/// What encrypts connections to `https` servers; `None` if none of them `needs_tls`. `off` is the message if TLS is turned off,
/// with its hint.
///
/// # Errors
///
/// TLS is turned off, or its settings have a mistake.
pub fn read_client(
    section: &Section<'_>,
    settings: &TlsSettings,
    needs_tls: bool,
    off: (&str, &str),
    fs: &Arc<dyn Fs>,
) -> Result<Option<Arc<TlsClient>>, Reported> {
    if !needs_tls {
        return Ok(None);
    }
    if !settings.enabled {
        section.problem("ssl.enabled", off.0, off.1);
        return Err(Reported);
    }
    let client = TlsClient::new(settings, Arc::clone(fs));
    client.map(Some).map_err(|error| {
        section.problem_named(error.setting(), &error);
        Reported
    })
}

/// The hosts of `key`, as `name[:port]`. Reports mistakes to the section's problems, and is empty after one.
pub fn read_hosts(section: &Section<'_>, key: &Key<Vec<String>>, port: u16) -> Vec<Host> {
    let host = |text: &str| {
        if text.contains("://") || text.contains(['/', '@']) {
            return Err("a URL; expected `host` or `host:port`".to_owned());
        }
        let (name, port) = read_host(text, port)?;
        Ok(Host { name, port })
    };
    section.get(key).try_each(host).at_least_one("host").required()
}

/// Headers that a request carries, under `key`. Reports mistakes to the section's problems; empty after one.
pub fn read_headers(
    section: &Section<'_>,
    key: &Key<BTreeMap<String, String>>,
) -> Vec<(HeaderName, HeaderValue)> {
    let headers = section.get(key).try_map(|headers| {
        let header = |(name, value): (String, String)| {
            let wrong = || format!("header `{name}` cannot be sent");
            let header = HeaderName::try_from(name.as_str()).map_err(|_| wrong())?;
            let mut value = HeaderValue::try_from(value).map_err(|_| wrong())?;
            // It may be a key.
            value.set_sensitive(true);
            Ok::<_, String>((header, value))
        };
        headers.into_iter().map(header).collect::<Result<Vec<_>, _>>()
    });
    headers.optional().unwrap_or_default()
}

/// `ssl`, if there is one that is not turned off.
pub fn read_tls(section: &Section<'_>) -> Option<TlsSettings> {
    if !section.has_key(&SECTION) {
        return None;
    }
    let ssl = section.part(&SECTION);
    let settings = TlsSettings::read(&ssl);
    settings.enabled.then_some(settings)
}
