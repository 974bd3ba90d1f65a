//! Repairs of messages that are no JSON, as some services of Azure write them
//! (`x-pack/filebeat/input/azureeventhub/sanitizers.go`).

use regex::bytes::Regex;
use std::borrow::Cow;

/// A repair.
#[derive(Clone, Debug)]
pub(crate) enum Sanitizer {
    /// Removes the ends of lines.
    NewLines,
    /// Makes double quotes of single ones that stand outside of texts.
    SingleQuotes,
    /// Replaces what an expression finds; `$1` is its first group.
    ReplaceAll(Regex, String),
}

impl Sanitizer {
    pub(crate) fn run<'a>(&self, message: &'a [u8]) -> Cow<'a, [u8]> {
        match self {
            Self::NewLines if message.contains(&b'\n') => {
                Cow::Owned(message.iter().copied().filter(|byte| *byte != b'\n').collect())
            }
            Self::NewLines => Cow::Borrowed(message),
            Self::SingleQuotes => Cow::Owned(single_quotes(message)),
            Self::ReplaceAll(pattern, replacement) => {
                pattern.replace_all(message, replacement.as_bytes())
            }
        }
    }
}

fn single_quotes(message: &[u8]) -> Vec<u8> {
    let (mut is_inside, mut before) = (false, 0);
    let repaired = message.iter().map(|byte| {
        if *byte == b'"' && before != b'\\' {
            is_inside = !is_inside;
        }
        before = *byte;
        if *byte == b'\'' && !is_inside { b'"' } else { *byte }
    });
    repaired.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_repairs_what_it_is_for() {
        let replace =
            Sanitizer::ReplaceAll(Regex::new(r"\[\s*([^\[\]{},\s]+)\s*\]").unwrap(), "${1}".into());
        for (sanitizer, message, expected) in [
            (Sanitizer::NewLines, "{\"a\": \"b\nc\"}\n", "{\"a\": \"bc\"}"),
            (Sanitizer::NewLines, "{}", "{}"),
            (
                Sanitizer::SingleQuotes,
                "{'a': \"it's\", 'b': \"\\\"'\"}",
                "{\"a\": \"it's\", \"b\": \"\\\"'\"}",
            ),
            (replace, "{\"a\": [x ]}", "{\"a\": x}"),
        ] {
            let repaired = sanitizer.run(message.as_bytes());
            assert_eq!(String::from_utf8_lossy(&repaired), expected, "{sanitizer:?}");
        }
    }
}
