//! The servers of a domain, from its DNS (RFC 2782), for `translate_ldap_attribute` without an address.
//!
//! Filebeat: libbeat/processors/translate_ldap_attribute/discovery.go and discovery_other.go.

use crate::dns::{Question, Resolver, SYSTEM_SERVERS, Transport, server_of, system_servers};
use skidder_os::Fs;
use std::net::Ipv4Addr;
use std::time::Duration;

/// Settings of Kerberos, whose realm is usually the domain.
const KERBEROS: &str = "/etc/krb5.conf";
/// Largest file of the system that is read.
const BYTES_MAX: usize = 1 << 20;
/// For each nameserver.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The domain, and its DNS servers.
pub(super) struct Discovery {
    domain: String,
    resolver: Resolver,
}

impl Discovery {
    /// `domain` is the configured one; without one it is that of the machine. The error names what is missing.
    pub(super) fn new(domain: Option<String>, fs: &dyn Fs) -> Result<Self, String> {
        let read = |path: &str| {
            let file = fs.open(path.as_ref()).ok()?;
            let bytes = skidder_os::read_to_end(&*file, BYTES_MAX).ok()?;
            Some(String::from_utf8_lossy(&bytes).into_owned())
        };
        let resolver = read(SYSTEM_SERVERS).unwrap_or_default();
        let found = domain
            .filter(|domain| !domain.is_empty())
            .or_else(|| search_domain(&resolver))
            .or_else(|| realm(&read(KERBEROS)?))
            .or_else(|| domain_of_host(&rustix::system::uname().nodename().to_string_lossy()));
        let Some(domain) = found else {
            return Err(format!(
                "the domain is not known: `{SYSTEM_SERVERS}`, `{KERBEROS}` and the name of the machine have none"
            ));
        };
        let mut servers: Vec<_> =
            system_servers(&resolver).filter_map(|name| server_of(name, 53).ok()).collect();
        if servers.is_empty() {
            // As the resolver of the system does.
            servers.push((Ipv4Addr::LOCALHOST.to_string(), 53));
        }
        Ok(Self { domain, resolver: Resolver::new(servers, Transport::Udp, TIMEOUT) })
    }

    /// Addresses of servers in the order in which they are tried: those with TLS first.
    pub(super) fn find(&self) -> Vec<String> {
        let mut addresses = Vec::new();
        for scheme in ["ldaps", "ldap"] {
            let name = format!("_{scheme}._tcp.{}", self.domain);
            match self.resolver.ask(Question::Srv, &name) {
                Ok(answer) => {
                    addresses
                        .extend(answer.texts.iter().map(|place| format!("{scheme}://{place}")));
                }
                Err(error) => tracing::debug!(name, %error, "no LDAP servers under this name"),
            }
        }
        addresses
    }

    /// For messages.
    pub(super) fn domain(&self) -> &str {
        &self.domain
    }
}

/// The first domain of a `resolv.conf`.
fn search_domain(text: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        words.next().filter(|word| ["search", "domain"].contains(word))?;
        words.next().map(str::to_owned)
    })
}

/// The realm of a `krb5.conf`.
fn realm(text: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once('=')?;
        let value = value.trim();
        (name.trim() == "default_realm" && !value.is_empty()).then(|| value.to_lowercase())
    })
}

/// The part after the first dot of a machine's name.
fn domain_of_host(name: &str) -> Option<String> {
    let (_, domain) = name.split_once('.')?;
    (!domain.is_empty()).then(|| domain.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_domain_is_found_where_the_system_has_it() {
        let known = |domain: &str| Some(domain.to_owned());
        assert_eq!(
            search_domain("# x\nnameserver 1.2.3.4\nsearch a.test b.test\n"),
            known("a.test")
        );
        assert_eq!(search_domain("domain c.test"), known("c.test"));
        assert_eq!(search_domain("search\nnameserver x"), None);
        assert_eq!(realm("[libdefaults]\n default_realm = A.TEST\n"), known("a.test"));
        assert_eq!(realm("default_realm =\n"), None);
        assert_eq!(domain_of_host("web-3.forest.test"), known("forest.test"));
        assert_eq!(domain_of_host("web-3"), None);
    }
}
