//! Hosts and `ssl` of the outputs over plain TCP.

use crate::Host;
use crate::address::read_host;
use http::{HeaderName, HeaderValue};
use skidder_config::Section;
use skidder_tls::TlsSettings;

/// `hosts`, as `name[:port]`. Mistakes are told to the section's problems; empty after one.
pub fn read_hosts(section: &Section<'_>, port: u16) -> Vec<Host> {
    let host = |text: &str| {
        if text.contains("://") || text.contains(['/', '@']) {
            return Err("a URL; expected `host` or `host:port`".to_owned());
        }
        let (name, port) = read_host(text, port)?;
        Ok(Host { name, port })
    };
    let hosts = section.strings("hosts").named("a list of hosts, as in `[\"localhost\"]`");
    hosts.try_each(host).at_least_one("host").required()
}

/// Headers that a request carries, under `key`. Mistakes are told to the section's problems; empty after one.
pub fn read_headers(section: &Section<'_>, key: &str) -> Vec<(HeaderName, HeaderValue)> {
    let headers = section.string_map(key).try_map(|headers| {
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
    if !section.has("ssl") {
        return None;
    }
    let ssl = section.section("ssl");
    let settings = TlsSettings::read(&ssl);
    settings.enabled.then_some(settings)
}
