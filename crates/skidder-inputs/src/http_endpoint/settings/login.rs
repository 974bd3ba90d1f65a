//! The settings that say what a request needs before it is taken: login, secret, signature, challenge.

use super::super::crc::{Crc, Provider};
use super::super::validate::{Hmac, Validator};
use super::{
    BASIC_AUTH, CONTENT_TYPE, CRC_PROVIDER, CRC_SECRET, HMAC_HEADER, HMAC_KEY, HMAC_PREFIX,
    HMAC_TYPE, METHOD, OPTIONS_HEADERS, OPTIONS_RESPONSE_CODE, PASSWORD, SECRET_HEADER,
    SECRET_VALUE, USERNAME, read_status,
};
use hyper::header::{HeaderName, HeaderValue};
use skidder_config::{Key, Secret, Section};

/// Something is wrong, which is reported.
struct Reported;

/// A pair of settings of which neither or both are set. An error if only one is.
fn both<T>(
    section: &Section<'_>,
    (one, of_one): (&str, Option<T>),
    (other, of_other): (&str, Option<Secret>),
) -> Result<Option<(T, Secret)>, Reported> {
    match (of_one, of_other) {
        (Some(one), Some(other)) => Ok(Some((one, other))),
        (None, None) => Ok(None),
        (is_one, _) => {
            let (there, missing) = if is_one.is_some() { (one, other) } else { (other, one) };
            let message =
                format!("`{}` needs `{}`", section.path_of(there), section.path_of(missing));
            section.problem(there, message, "set both, or none");
            Err(Reported)
        }
    }
}

/// The name of a header in the settings.
fn read_header_name(
    section: &Section<'_>,
    key: &Key<String>,
) -> Result<Option<HeaderName>, Reported> {
    let setting = section.get(key);
    let is_wrong = setting.is_wrong();
    let Some(name) = setting.optional().filter(|name| !name.is_empty()) else {
        return if is_wrong { Err(Reported) } else { Ok(None) };
    };
    HeaderName::try_from(name.as_str()).map(Some).map_err(|_| {
        let message = format!("`{}` is `{name}`; expected a header", section.path_of(key.name()));
        section.problem(key.name(), message, "letters, digits and `-`");
        Reported
    })
}

/// A text that is set and not empty.
pub(super) fn read_secret(section: &Section<'_>, key: &Key<Secret>) -> Option<Secret> {
    section.get(key).optional().filter(|secret| !secret.reveal().is_empty())
}

/// Reads what requests need. `None` if something is wrong, which is reported.
pub(super) fn read_validator(section: &Section<'_>) -> Option<Validator> {
    let method = section.get(&METHOD).value();
    let content_type = section.get(&CONTENT_TYPE).value();
    let user = read_user(section);
    let secret = read_secret_header(section);
    let hmac = read_hmac(section);
    let options = read_options(section);
    let options_status = read_status(section, &OPTIONS_RESPONSE_CODE);
    Some(Validator {
        method,
        content_type,
        user: user.ok()?,
        secret: secret.ok()?,
        hmac: hmac.ok()?,
        options: options.ok()?,
        options_status,
    })
}

fn read_user(section: &Section<'_>) -> Result<Option<(String, Secret)>, Reported> {
    let is_basic = section.get(&BASIC_AUTH).value();
    let username = section.get(&USERNAME).optional().filter(|name| !name.is_empty());
    let password = read_secret(section, &PASSWORD);
    match (is_basic, username, password) {
        (false, None, None) => Ok(None),
        (false, name, _) => {
            let key = if name.is_some() { USERNAME.name() } else { PASSWORD.name() };
            let message = format!(
                "`{}` has no effect without `{}`: anybody can send",
                section.path_of(key),
                section.path_of(BASIC_AUTH.name())
            );
            section.warning(key, message, "set `basic_auth: true`");
            Ok(None)
        }
        (true, Some(name), Some(password)) => Ok(Some((name, password))),
        (true, ..) => {
            let message = format!("`{}` needs a user", section.path_of(BASIC_AUTH.name()));
            section.problem(BASIC_AUTH.name(), message, "set `username` and `password`");
            Err(Reported)
        }
    }
}

fn read_secret_header(section: &Section<'_>) -> Result<Option<(HeaderName, Secret)>, Reported> {
    let header = read_header_name(section, &SECRET_HEADER);
    let value = read_secret(section, &SECRET_VALUE);
    let secret = both(section, (SECRET_HEADER.name(), header?), (SECRET_VALUE.name(), value))?;
    if secret.is_none() && (section.has_key(&SECRET_HEADER) || section.has_key(&SECRET_VALUE)) {
        let name = SECRET_VALUE.name();
        let message =
            format!("`{}` is empty, and is not asked for: anybody can send", section.path_of(name));
        section.warning(name, message, "set `secret.header` and `secret.value`, or remove them");
    }
    Ok(secret)
}

fn read_hmac(section: &Section<'_>) -> Result<Option<Hmac>, Reported> {
    let header = read_header_name(section, &HMAC_HEADER);
    let key = read_secret(section, &HMAC_KEY);
    let kind = section.get(&HMAC_TYPE).optional();
    let prefix = section.get(&HMAC_PREFIX).value();
    let pair = both(section, (HMAC_HEADER.name(), header?), (HMAC_KEY.name(), key))?;
    let Some((header, key)) = pair else { return Ok(None) };
    let Some(kind) = kind else {
        // A wrong one was reported.
        if !section.has_key(&HMAC_TYPE) {
            section.missing(
                HMAC_TYPE.name(),
                "is missing; expected `sha256` or `sha1`",
                "without it Filebeat checks no signature at all",
            );
        }
        return Err(Reported);
    };
    Ok(Some(Hmac { header, key, kind, prefix }))
}

/// `options_headers`, if there are any.
fn read_options(section: &Section<'_>) -> Result<Option<Vec<(HeaderName, HeaderValue)>>, Reported> {
    if !section.has_key(&OPTIONS_HEADERS) {
        section.accept_key(&OPTIONS_HEADERS);
        return Ok(None);
    }
    let inner = section.names(&OPTIONS_HEADERS);
    let mut headers = Vec::new();
    let mut is_right = true;
    for name in inner.keys() {
        let values = inner.strings(name).optional().unwrap_or_default();
        for value in values {
            match (HeaderName::try_from(name), HeaderValue::try_from(value)) {
                (Ok(name), Ok(value)) => headers.push((name, value)),
                _ => {
                    let message = format!("`{}` cannot be sent", inner.path_of(name));
                    inner.problem(name, message, "expected a header and its values");
                    is_right = false;
                }
            }
        }
    }
    inner.finish();
    if is_right { Ok(Some(headers)) } else { Err(Reported) }
}

/// `crc`; the inner `None` if there is none.
#[expect(clippy::option_option, reason = "the outer one says that the settings are wrong")]
pub(super) fn read_crc(section: &Section<'_>) -> Option<Option<Crc>> {
    let provider = section.get(&CRC_PROVIDER).try_map(|name| match &*name {
        "" => Ok(None),
        name if name.eq_ignore_ascii_case("zoom") => Ok(Some(Provider::Zoom)),
        _ => Err("expected `zoom`".to_owned()),
    });
    let is_wrong = section.has_key(&CRC_PROVIDER);
    let provider = provider.optional();
    let secret = read_secret(section, &CRC_SECRET);
    if is_wrong && provider.is_none() {
        return None;
    }
    let pair =
        both(section, (CRC_PROVIDER.name(), provider.flatten()), (CRC_SECRET.name(), secret));
    pair.ok().map(|pair| pair.map(|(provider, secret)| Crc { provider, secret }))
}
