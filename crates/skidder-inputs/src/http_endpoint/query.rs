//! The query of a request: `wait_for_completion_timeout`.

use super::paths::decoded;
use std::collections::BTreeMap;
use std::time::Duration;

const WAIT: &str = "wait_for_completion_timeout";

/// How long to wait for verdicts; `None`: not at all.
///
/// # Errors
/// Filebeat's words for what is wrong.
pub(super) fn wait_of(query: Option<&str>) -> Result<Option<Duration>, String> {
    let mut pairs = BTreeMap::new();
    for part in query.unwrap_or_default().split('&') {
        // As in Go, which leaves out what is malformed.
        if part.is_empty() || part.contains(';') {
            continue;
        }
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let text = |text: &str| decoded(&text.replace('+', " "));
        pairs.entry(text(name)).or_insert_with(|| text(value));
    }
    let given = pairs.remove(WAIT);
    if !pairs.is_empty() {
        let names: Vec<_> = pairs.into_keys().collect();
        return Err(format!("unexpected URL query: {}", names.join(", ")));
    }
    let Some(text) = given.filter(|text| !text.is_empty()) else { return Ok(None) };
    match parse(&text) {
        Ok(wait) if wait.is_zero() => Ok(None),
        Ok(wait) => Ok(Some(wait)),
        Err(why) => Err(why),
    }
}

fn parse(text: &str) -> Result<Duration, String> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.chars().all(|digit| digit.is_ascii_digit() || digit == '.') && digits != "0" {
        let what = if digits.is_empty() { "invalid duration" } else { "missing unit in duration" };
        return Err(format!("could not parse {WAIT} parameter: time: {what} {text:?}"));
    }
    if text.starts_with('-')
        && digits != "0"
        && skidder_config::units::parse_duration(digits).is_ok()
    {
        return Err(format!("negative {WAIT} parameter"));
    }
    skidder_config::units::parse_duration(digits)
        .map_err(|_| format!("could not parse {WAIT} parameter: time: invalid duration {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_wait_is_taken() {
        let seconds = |count| Ok(Some(Duration::from_secs(count)));
        assert_eq!(wait_of(None), Ok(None));
        assert_eq!(wait_of(Some("")), Ok(None));
        assert_eq!(wait_of(Some("wait_for_completion_timeout=1m")), seconds(60));
        assert_eq!(wait_of(Some("wait_for_completion_timeout=%31s")), seconds(1));
        assert_eq!(wait_of(Some("wait_for_completion_timeout=0s")), Ok(None));
        assert_eq!(wait_of(Some("wait_for_completion_timeout=0")), Ok(None));
        for (query, error) in [
            ("b=1&a=2&wait_for_completion_timeout=1s", "unexpected URL query: a, b"),
            ("x", "unexpected URL query: x"),
            ("wait_for_completion_timeout=5", "missing unit in duration \"5\""),
            ("wait_for_completion_timeout=soon", "invalid duration \"soon\""),
            ("wait_for_completion_timeout=-1s", "negative"),
        ] {
            let message = wait_of(Some(query)).unwrap_err();
            assert!(message.contains(error), "{query}: {message}");
        }
    }
}
