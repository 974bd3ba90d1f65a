//! The settings of `translate_ldap_attribute`.

use super::client::{Address, Client, Directory};
use super::discover::Discovery;
use super::{TranslateLdapAttribute, Translation};
use rustls::ClientConfig;
use skidder_config::{Group, Key, Part, Secret, Section, settings};
use skidder_event::Path;
use skidder_processors::Context;
use skidder_tls::{SSL, TlsSettings};
use std::sync::Arc;
use std::time::Duration;

settings! {
    /// Settings of `translate_ldap_attribute`.
    pub(crate) static TRANSLATE_LDAP_ATTRIBUTE = Group::new("processor.translate_ldap_attribute", "Replaces a value by an attribute of the object in an LDAP directory \
                               that has it, such as a GUID of Active Directory by a name.");

    FIELD: String = Key::new("field")
        .required()
        .about("the field with the value to search for, a text");
    TARGET_FIELD: String = Key::new("target_field")
        .default_words("that of `field`")
        .about("where the values go, always a list");
    ADDRESS: String = Key::new("ldap_address")
        .default_words("those that DNS names")
        .about("the server: `ldap://host:port` or `ldaps://host:port` (without a port 389 and 636), \
                or `ldapi://` with the path of a socket, its slashes as `%2f`. Without it the \
                servers that DNS has under `_ldaps._tcp` and `_ldap._tcp` of the domain, one after \
                the other");
    DOMAIN: String = Key::new("ldap_domain")
        .default_words("that of the machine")
        .about("the domain whose servers are looked for: the first that `/etc/resolv.conf` \
                searches, else the realm of `/etc/krb5.conf`, else what follows the name of the \
                machine");
    BASE_DN: String = Key::new("ldap_base_dn")
        .default_words("asked from the server")
        .about("the object below which is searched; without it the `defaultNamingContext` of the \
                server, else the first of its `namingContexts`, else the domain of its name");
    BIND_USER: String = Key::new("ldap_bind_user")
        .default_words("none")
        .about("the name to bind with");
    BIND_PASSWORD: Secret = Key::new("ldap_bind_password")
        .default_words("none")
        .about("its password; without one the bind is anonymous");
    SEARCH_ATTRIBUTE: String = Key::new("ldap_search_attribute")
        .default(GUID_ATTRIBUTE)
        .about("the attribute that has the value");
    MAPPED_ATTRIBUTE: String = Key::new("ldap_mapped_attribute")
        .default("cn")
        .about("the attribute whose values are taken");
    SEARCH_TIME_LIMIT: u32 = Key::new("ldap_search_time_limit")
        .default(30)
        .range(1, TIME_LIMIT_MAX)
        .about("seconds that a look-up takes at most, 1 to 3600, with connecting if need be");
    LDAP_SSL: Part = Key::part("ldap_ssl", &SSL)
        .default_words("the certificate authorities of the system")
        .about("[TLS](outputs.md#ssl), for `ldaps://`");
    GUID_TRANSLATION: String = Key::new("ad_guid_translation")
        .default("auto")
        .about("whether a GUID is turned into the bytes that Active Directory has: `auto` (when \
                `objectGUID` is searched for), `always` or `never`; a mapped `objectGUID` becomes a \
                text unless it is `never`");
    IGNORE_MISSING: bool = Key::new("ignore_missing")
        .default(false)
        .about("an event without the field goes on as it is");
    IGNORE_FAILURE: bool = Key::new("ignore_failure")
        .default(false)
        .about("an event that fails goes on as it is");
}

/// Largest `ldap_search_time_limit`, in seconds: an hour.
const TIME_LIMIT_MAX: u32 = 3600;
/// Default of `ldap_search_attribute`, and what [`Translation::Auto`] is about.
const GUID_ATTRIBUTE: &str = "objectGUID";

impl TranslateLdapAttribute {
    pub(crate) fn read(settings: &Section<'_>, context: &Context) -> Option<Self> {
        let parse = |text: String| Path::parse(&text).map_err(|error| error.to_string());
        if !settings.has_key(&FIELD) {
            let message = format!("`{}` is missing", settings.path_of(FIELD.name()));
            settings.problem(FIELD.name(), message, "give the field with the value to search for");
        }
        let field = settings.get(&FIELD).try_map(parse).optional();
        let target = settings.get(&TARGET_FIELD);
        let target = target.try_map(|text| match &*text {
            "" => Ok(None),
            _ => parse(text).map(Some),
        });
        let target = target.optional().flatten();
        let (address, tls) = read_address(settings, context);
        let search = read_attribute(settings, &SEARCH_ATTRIBUTE);
        let mapped = read_attribute(settings, &MAPPED_ATTRIBUTE);
        let translation =
            settings.get(&GUID_TRANSLATION).try_map(|text| match &*text.trim().to_lowercase() {
                "" | "auto" => Ok(Translation::Auto),
                "always" => Ok(Translation::Always),
                "never" => Ok(Translation::Never),
                _ => Err("expected `auto`, `always` or `never`".to_owned()),
            });
        let translation = translation.value();
        let limit = settings.get(&SEARCH_TIME_LIMIT).value();
        let base = settings.get(&BASE_DN).optional().unwrap_or_default();
        let user = settings.get(&BIND_USER).optional().unwrap_or_default();
        let password = settings.get(&BIND_PASSWORD).optional();
        let ignore_missing = settings.get(&IGNORE_MISSING).value();
        let ignore_failure = settings.get(&IGNORE_FAILURE).value();
        let guid_asked = match translation {
            Translation::Auto => search.eq_ignore_ascii_case(GUID_ATTRIBUTE),
            Translation::Always => true,
            Translation::Never => false,
        };
        let field = field?;
        let directory = Directory {
            address: address?,
            base,
            user,
            password: password.unwrap_or_else(|| Secret::new("")),
            search,
            guid_found: translation != Translation::Never
                && mapped.eq_ignore_ascii_case(GUID_ATTRIBUTE),
            mapped,
            limit: Duration::from_secs(limit.into()),
            tls,
        };
        Some(Self {
            target: target.unwrap_or_else(|| field.clone()),
            field,
            ignore_missing,
            ignore_failure,
            guid_asked,
            client: Client::new(directory, Arc::clone(&context.clock)),
        })
    }
}

/// The address, and the TLS of one that has it. Mistakes are reported.
fn read_address(
    settings: &Section<'_>,
    context: &Context,
) -> (Option<Address>, Option<Arc<ClientConfig>>) {
    let section = settings.optional_part(&LDAP_SSL);
    let own = section.as_ref().map(TlsSettings::read);
    let given = settings.get(&ADDRESS);
    let is_given = given.is_set();
    let address = given.try_map(|text| check_address(&text).map(|()| text)).optional();
    let domain = settings.get(&DOMAIN).optional();
    let Some(address) = address else {
        if is_given {
            return (None, None);
        }
        return match Discovery::new(domain, &*context.fs) {
            Ok(discovery) => {
                let address = Address::Discovered(Arc::new(discovery));
                with_tls(address, settings, section.as_ref(), own, context)
            }
            Err(error) => {
                let hint = "set `ldap_address`, as in `ldaps://dc1.example.com`, or `ldap_domain`";
                settings.problem(ADDRESS.name(), error, hint);
                (None, None)
            }
        };
    };
    if domain.is_some() {
        let message = format!("`{}` has no effect", settings.path_of(DOMAIN.name()));
        settings.warning(DOMAIN.name(), message, "it is for servers that are looked for");
    }
    if !address.starts_with("ldaps://") {
        if own.is_some_and(|own| own.enabled) {
            let message = format!(
                "`{}` has no effect with `{address}`: nothing is encrypted",
                settings.path_of(LDAP_SSL.name())
            );
            settings.warning(LDAP_SSL.name(), message, "use `ldaps://`");
        }
        return (Some(Address::Given(address)), None);
    }
    with_tls(Address::Given(address), settings, section.as_ref(), own, context)
}

/// The address with the settings of TLS.
fn with_tls(
    address: Address,
    settings: &Section<'_>,
    section: Option<&Section<'_>>,
    own: Option<TlsSettings>,
    context: &Context,
) -> (Option<Address>, Option<Arc<ClientConfig>>) {
    let tls = own.filter(|own| own.enabled).unwrap_or_default();
    match tls.client(&*context.fs) {
        Ok(config) => (Some(address), Some(config)),
        Err(error) => {
            let key = section.map_or(ADDRESS.name(), |_| LDAP_SSL.name());
            let message = format!("{}: {error}", settings.path_of(key));
            settings.problem(key, message, "");
            (None, None)
        }
    }
}

/// The mistake in the address of a server.
fn check_address(text: &str) -> Result<(), String> {
    let expected = "expected `ldap://host:port` or `ldaps://host:port`";
    let (scheme, rest) = text.split_once("://").ok_or(expected)?;
    match scheme {
        "ldap" | "ldaps" => {
            let authority = rest.split(['/', '?']).next().unwrap_or_default();
            let address = skidder_net::read_address(authority, 389);
            address.map(drop).map_err(|error| format!("{error}; {expected}"))
        }
        "ldapi" => Ok(()),
        _ => Err(format!("`{scheme}` is none of `ldap`, `ldaps` and `ldapi`")),
    }
}

/// The name of an attribute. It becomes a part of a filter, and must not change its meaning.
fn read_attribute(settings: &Section<'_>, key: &Key<String>) -> String {
    let name = settings.get(key).check(|name| {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-.;_".contains(&byte);
        if !name.is_empty() && name.bytes().all(is_part) {
            Ok(())
        } else {
            Err("expected the name of an attribute: letters, digits, `-`, `.`, `;`".to_owned())
        }
    });
    name.value()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_checked_at_the_start() {
        for (address, wrong) in [
            ("ldap://localhost", None),
            ("ldap://127.0.0.1:389", None),
            ("ldaps://[::1]:636/", None),
            ("ldapi://%2frun%2fslapd", None),
            ("localhost:389", Some("expected `ldap://host:port`")),
            ("http://localhost", Some("`http` is none of")),
            ("ldap://", Some("expected `ldap://host:port`")),
            ("ldap://localhost:a", Some("expected `ldap://host:port`")),
            ("ldap://localhost:99999", Some("expected `ldap://host:port`")),
        ] {
            match (check_address(address), wrong) {
                (Ok(()), None) => {}
                (Err(error), Some(wrong)) => assert!(error.contains(wrong), "{address}: {error}"),
                (got, _) => panic!("{address}: {got:?}"),
            }
        }
    }
}
