//! Filters of topics (MQTT 5, 4.7 and 4.8.2).

/// How the filter of a shared subscription begins.
pub(super) const SHARED: &str = "$share/";

/// Longest filter: lengths have 16 bits.
const BYTES_MAX: usize = u16::MAX as usize;

/// Checks a filter; the error ends the sentence "`topics[0]` is `a#`; ".
pub(super) fn check(filter: &str) -> Result<(), String> {
    if filter.len() > BYTES_MAX {
        return Err(format!("a filter has at most {BYTES_MAX} bytes"));
    }
    let topic = match filter.strip_prefix(SHARED) {
        None => filter,
        Some(shared) => {
            let (group, topic) = shared.split_once('/').unwrap_or((shared, ""));
            if group.is_empty() || group.contains(['+', '#']) || topic.is_empty() {
                return Err("a shared subscription is `$share/GROUP/TOPIC`, with no `+` and no `#` in the group".to_owned());
            }
            topic
        }
    };
    if topic.is_empty() || topic.contains('\0') {
        return Err("a filter is not empty and has no NUL".to_owned());
    }
    let mut levels = topic.split('/').peekable();
    while let Some(level) = levels.next() {
        let is_last = levels.peek().is_none();
        let is_right = match level {
            "+" => true,
            "#" => is_last,
            level => !level.contains(['+', '#']),
        };
        if !is_right {
            return Err("`+` stands for a whole level, and `#` for all levels at the end, as in `a/+/b` and `a/#`".to_owned());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_are_whole_levels() {
        for filter in
            ["#", "+", "a", "/", "a/+/b/#", "$SYS/#", "$share/g/a/#", "$share/g//", "é/x y"]
        {
            assert_eq!(check(filter), Ok(()), "{filter}");
        }
        let long = "x".repeat(BYTES_MAX + 1);
        for (filter, expected) in [
            ("", "not empty"),
            ("a\0", "NUL"),
            ("a#", "whole level"),
            ("#/a", "whole level"),
            ("a+/b", "whole level"),
            ("$share/g", "shared subscription"),
            ("$share//a", "shared subscription"),
            ("$share/g+/a", "shared subscription"),
            ("$share/g/a#", "whole level"),
            (&long, "at most 65535 bytes"),
        ] {
            let error = check(filter).expect_err(filter);
            assert!(error.contains(expected), "{filter}: {error}");
        }
    }
}
