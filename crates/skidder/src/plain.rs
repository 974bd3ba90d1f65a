//! Text that is safe to print: a name of a file can hold any character, and one that controls a terminal could hide a line,
//! change its colours or send keys.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::Path;

/// Text for a place within a line: control characters are escaped, line feeds and tabs among them. An escape that JSON also
/// has (`\n`, `\u001b`), so that JSON stays what it is.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    escape(text, is_control)
}

/// Lines for a terminal: control characters are escaped, but line feeds and tabs are kept.
pub(crate) fn lines(text: &str) -> Cow<'_, str> {
    escape(text, |char| is_control(char) && char != '\n' && char != '\t')
}

/// A path for a place within a line.
pub(crate) fn shown(path: &Path) -> String {
    plain(&path.to_string_lossy()).into_owned()
}

/// Whether a terminal does something else with it than to show it; characters that turn the direction of a text are among
/// them.
fn is_control(char: char) -> bool {
    char.is_control()
        || matches!(char, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn escape(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for char in text.chars() {
        match char {
            char if !is_escaped(char) => out.push(char),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            char => {
                write!(out, "\\u{:04x}", u32::from(char)).expect("writing to a string cannot fail");
            }
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_and_the_rest_is_as_it_was() {
        assert!(matches!(plain("/var/log/ä b.log"), Cow::Borrowed("/var/log/ä b.log")));
        assert_eq!(
            plain("a\u{1b}[2Jb\nc\td\u{9b}1m\u{7f}\u{202e}\0"),
            "a\\u001b[2Jb\\nc\\td\\u009b1m\\u007f\\u202e\\u0000"
        );
        assert_eq!(lines("a\tb\nc\r\u{7}\n"), "a\tb\nc\\r\\u0007\n");
        assert_eq!(shown(Path::new("/a\nb")), "/a\\nb");
        let json: String = serde_json::from_str(&lines("\"x\u{9b}y\"")).expect("it is JSON still");
        assert_eq!(json, "x\u{9b}y");
    }
}
