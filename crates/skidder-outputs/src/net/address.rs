//! Parts of URLs, as users write them.

use skidder_config::Secret;

/// `user[:password]` of a URL, percent-encoded.
pub(crate) fn read_credentials(text: &str) -> Result<(String, Secret), String> {
    let (user, password) = text.split_once(':').unwrap_or((text, ""));
    Ok((decode_percent(user)?, Secret::new(decode_percent(password)?)))
}

/// `name[:port]`, with IPv6 addresses in brackets if they have a port. The error ends the sentence
/// "`hosts` is …; ".
pub(crate) fn read_address(text: &str, default_port: u16) -> Result<(String, u16), String> {
    if let Some(inner) = text.strip_prefix('[') {
        let (name, behind) =
            inner.split_once(']').ok_or_else(|| format!("`{text}` has no closing `]`"))?;
        return match behind.strip_prefix(':') {
            Some(port) => Ok((name.to_owned(), read_port(port)?)),
            None if behind.is_empty() => Ok((name.to_owned(), default_port)),
            None => Err(format!("`{behind}` behind `]` is no port")),
        };
    }
    // An IPv6 address without brackets has no port.
    if text.matches(':').count() > 1 {
        return Ok((text.to_owned(), default_port));
    }
    let (name, port) = match text.split_once(':') {
        Some((name, port)) => (name, read_port(port)?),
        None => (text, default_port),
    };
    let name = if name.is_empty() { "localhost" } else { name };
    if name.bytes().any(|byte| byte.is_ascii_whitespace() || byte.is_ascii_control()) {
        return Err(format!("`{name}` is no host name"));
    }
    Ok((name.to_owned(), port))
}

fn read_port(text: &str) -> Result<u16, String> {
    match text.parse() {
        Ok(port) if port > 0 => Ok(port),
        _ => Err(format!("`{text}` is no port")),
    }
}

fn decode_percent(text: &str) -> Result<String, String> {
    let wrong = || "the user or password is not percent-encoded correctly".to_owned();
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        rest = behind;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = rest.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let digits = digits.ok_or_else(wrong)?;
        bytes.push(u8::from_str_radix(digits, 16).map_err(|_| wrong())?);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}
