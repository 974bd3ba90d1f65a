//! Paths of URLs, as Go's `net/http` cleans and matches them.

/// The path of the setting `url`, decoded.
pub(super) fn of_url(url: &str) -> Result<String, String> {
    let rest = match url.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or("/", |at| &rest[at..]),
        None => url,
    };
    let end = rest.find(['?', '#']).unwrap_or(rest.len());
    let path = &rest[..end];
    if end < rest.len() {
        // A request with a query that is not known is refused, as in Filebeat.
        return Err(format!("requests are found by their path alone: write `{path}`"));
    }
    let path = decoded(path);
    if path.starts_with('/') {
        Ok(path)
    } else {
        Err("expected a path that begins with `/`".to_owned())
    }
}

/// The text without `%XX`; sequences that are none stay.
pub(super) fn decoded(text: &str) -> String {
    if !text.contains('%') {
        return text.to_owned();
    }
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let value = |byte: u8| char::from(byte).to_digit(16);
        let pair = bytes.get(at + 1..at + 3).map(|pair| (value(pair[0]), value(pair[1])));
        match (bytes[at], pair) {
            (b'%', Some((Some(high), Some(low)))) => {
                out.push((high * 16 + low) as u8);
                at += 3;
            }
            (byte, _) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The path without `.`, `..` and empty parts; a slash at its end stays.
pub(super) fn cleaned(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let mut out = String::with_capacity(path.len() + 1);
    for part in &parts {
        out.push('/');
        out.push_str(part);
    }
    if out.is_empty() || path.ends_with('/') {
        out.push('/');
    }
    out
}

/// How well a pattern fits a path: the more the better; `None` if it does not.
pub(super) fn fit(pattern: &str, path: &str) -> Option<usize> {
    if pattern == path {
        return Some(usize::MAX);
    }
    (pattern.ends_with('/') && path.starts_with(pattern)).then_some(pattern.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_cleaned_and_fit_as_in_go() {
        for (path, clean) in [
            ("/", "/"),
            ("", "/"),
            ("//", "/"),
            ("/a//b", "/a/b"),
            ("/a/./b/", "/a/b/"),
            ("/a/../b", "/b"),
            ("/../a/..", "/"),
        ] {
            assert_eq!(cleaned(path), clean, "{path}");
        }
        assert_eq!(fit("/a", "/a"), Some(usize::MAX));
        assert_eq!(fit("/a", "/a/b"), None);
        assert_eq!(fit("/a/", "/a/b"), Some(3));
        assert_eq!(fit("/", "/a/b"), Some(1));
    }

    #[test]
    fn the_setting_is_a_path_or_a_url() {
        for (url, path) in
            [("/a%20b", "/a b"), ("/a b", "/a b"), ("http://h:1/x", "/x"), ("http://h", "/")]
        {
            assert_eq!(of_url(url).as_deref(), Ok(path), "{url}");
        }
        for (url, expected) in [
            ("hook", "begins with `/`"),
            ("/a?c=d", "by their path alone: write `/a`"),
            ("/a#b", "by their path alone: write `/a`"),
            ("/a b?c=d", "by their path alone: write `/a b`"),
        ] {
            let error = of_url(url).expect_err(url);
            assert!(error.contains(expected), "{url}: {error}");
        }
        assert_eq!(decoded("%zz%4"), "%zz%4");
    }
}
