//! Hosts and `ssl` of the outputs over plain TCP.

use super::Host;
use super::address::read_address;
use skidder_config::Section;
use skidder_tls::TlsSettings;

/// `hosts`, as `name[:port]`. Mistakes are told to the section's problems; empty after one.
pub(crate) fn read_hosts(section: &Section<'_>, port: u16) -> Vec<Host> {
    let parse = |texts: Vec<String>| {
        if texts.is_empty() {
            return Err("expected at least one host".to_owned());
        }
        let host = |text: &String| {
            if text.contains("://") || text.contains(['/', '@']) {
                return Err(format!("`{text}` is a URL; expected `host` or `host:port`"));
            }
            let (name, port) = read_address(text, port)?;
            Ok(Host { name, port })
        };
        texts.iter().map(host).collect()
    };
    section
        .strings("hosts")
        .named("a list of hosts, as in `[\"localhost\"]`")
        .try_map(parse)
        .required()
}

/// `ssl`, if there is one that is not turned off.
pub(crate) fn read_tls(section: &Section<'_>) -> Option<TlsSettings> {
    if !section.has("ssl") {
        return None;
    }
    let ssl = section.section("ssl");
    let settings = TlsSettings::read(&ssl);
    settings.enabled.then_some(settings)
}
