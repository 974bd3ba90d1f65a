//! The settings of `translate_ldap_attribute`.

use super::client::{Address, Client, Directory};
use super::discover::Discovery;
use super::{TranslateLdapAttribute, Translation};
use rustls::ClientConfig;
use skidder_config::{Secret, Section};
use skidder_event::Path;
use skidder_processors::Context;
use skidder_tls::TlsSettings;
use std::sync::Arc;
use std::time::Duration;

/// Default of `ldap_search_time_limit`, in seconds.
const TIME_LIMIT: u32 = 30;
/// Largest `ldap_search_time_limit`, in seconds: an hour.
const TIME_LIMIT_MAX: u32 = 3600;
/// Default of `ldap_search_attribute`, and what [`Translation::Auto`] is about.
const GUID_ATTRIBUTE: &str = "objectGUID";

impl TranslateLdapAttribute {
    pub(crate) fn read(settings: &Section<'_>, context: &Context) -> Option<Self> {
        let parse = |text: String| Path::parse(&text).map_err(|error| error.to_string());
        if !settings.has("field") {
            let message = format!("`{}` is missing", settings.path_of("field"));
            settings.problem("field", message, "give the field with the value to search for");
        }
        let field = settings.string("field").try_map(parse).optional();
        let target = settings.string("target_field");
        let target = target.try_map(|text| match &*text {
            "" => Ok(None),
            _ => parse(text).map(Some),
        });
        let target = target.optional().flatten();
        let (address, tls) = read_address(settings, context);
        let search = read_attribute(settings, "ldap_search_attribute", GUID_ATTRIBUTE);
        let mapped = read_attribute(settings, "ldap_mapped_attribute", "cn");
        let translation = settings.string("ad_guid_translation").try_map(|text| {
            match &*text.trim().to_lowercase() {
                "" | "auto" => Ok(Translation::Auto),
                "always" => Ok(Translation::Always),
                "never" => Ok(Translation::Never),
                _ => Err("expected `auto`, `always` or `never`".to_owned()),
            }
        });
        let translation = translation.or(Translation::Auto);
        let limit = settings.u32("ldap_search_time_limit").range(1..=TIME_LIMIT_MAX);
        let limit = limit.or(TIME_LIMIT);
        let base = settings.string("ldap_base_dn").optional().unwrap_or_default();
        let user = settings.string("ldap_bind_user").optional().unwrap_or_default();
        let password = settings.secret("ldap_bind_password").optional();
        let ignore_missing = settings.bool("ignore_missing").or(false);
        let ignore_failure = settings.bool("ignore_failure").or(false);
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

/// The address, and the TLS of one that has it. What is wrong was told.
fn read_address(
    settings: &Section<'_>,
    context: &Context,
) -> (Option<Address>, Option<Arc<ClientConfig>>) {
    let section = settings.optional_section("ldap_ssl");
    let own = section.as_ref().map(TlsSettings::read);
    let given = settings.string("ldap_address");
    let is_given = given.is_set();
    let address = given.try_map(|text| check_address(&text).map(|()| text)).optional();
    let domain = settings.string("ldap_domain").optional();
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
                settings.problem("ldap_address", error, hint);
                (None, None)
            }
        };
    };
    if domain.is_some() {
        let message = format!("`{}` has no effect", settings.path_of("ldap_domain"));
        settings.warning("ldap_domain", message, "it is for servers that are looked for");
    }
    if !address.starts_with("ldaps://") {
        if own.is_some_and(|own| own.enabled) {
            let message = format!(
                "`{}` has no effect with `{address}`: nothing is encrypted",
                settings.path_of("ldap_ssl")
            );
            settings.warning("ldap_ssl", message, "use `ldaps://`");
        }
        return (Some(Address::Given(address)), None);
    }
    with_tls(Address::Given(address), settings, section.as_ref(), own, context)
}

/// The address with what is needed to connect with TLS.
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
            let key = section.map_or("ldap_address", |_| "ldap_ssl");
            let message = format!("{}: {error}", settings.path_of(key));
            settings.problem(key, message, "");
            (None, None)
        }
    }
}

/// What is wrong with the address of a server.
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
fn read_attribute(settings: &Section<'_>, key: &str, default: &str) -> String {
    let name = settings.string(key).check(|name| {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-.;_".contains(&byte);
        if !name.is_empty() && name.bytes().all(is_part) {
            Ok(())
        } else {
            Err("expected the name of an attribute: letters, digits, `-`, `.`, `;`".to_owned())
        }
    });
    name.or(default)
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
