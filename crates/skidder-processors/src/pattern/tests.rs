//! Expressions of Go, and their translation.

use super::*;

#[test]
fn expressions_mean_what_they_mean_in_go() {
    let table: &[(&str, &str, bool)] = &[
        ("ab+c", "xabbcx", true),
        (r"^\d+$", "42", true),
        // Arabic-Indic digits, a letter with an accent, no-break space: ASCII classes in Go.
        (r"^\d+$", "\u{664}\u{662}", false),
        (r"^\w+$", "caf\u{e9}", false),
        (r"^\W$", "\u{e9}", true),
        (r"^\s$", "\u{a0}", false),
        (r"^\s$", "\u{b}", false),
        (r"^\S$", "\u{b}", true),
        (r"^[\d.]+$", "1.5", true),
        (r"^[\d.]+$", "\u{664}", false),
        (r"^[^\w]$", "\u{e9}", true),
        (r"^[\D]$", "x", true),
        (r"\bcaf", "\u{e9}caf", true),
        (r"^\Qa.b*\E.$", "a.b*c", true),
        (r"^\Qa.b", "a.b", true),
        (r"^\Qa.b", "axb", false),
        (r"end\z", "the end", true),
        (r"\Athe", "the end", true),
        (r"(?P<year>\d{4})-(?<month>\d\d)", "2026-11", true),
        ("^a{2,3}$", "aaa", true),
        ("^a{,3}$", "a{,3}", true),
        ("^{foo}$", "{foo}", true),
        ("^a{$", "a{", true),
        (r"^\{x\}$", "{x}", true),
        ("^[[]$", "[", true),
        ("^[]]$", "]", true),
        ("^[^]]$", "]", false),
        ("^[a&&b]+$", "a&b", true),
        ("^[a~~b]+$", "~", true),
        ("^[+--]+$", "+,-", true),
        ("^[a-c-]+$", "b-", true),
        ("^[-a]+$", "-a", true),
        ("^[[:alpha:]_]+$", "ab_", true),
        ("^[[:^alpha:]]+$", "12", true),
        (r"^[\]\-\\]+$", r"]-\", true),
        (r"^\<\>$", "<>", true),
        (r#"^\"\/\'\:$"#, "\"/':", true),
        (r"^\x41\x{1F600}\101$", "A\u{1F600}A", true),
        (r"^\pL\p{Greek}$", "a\u{3b1}", true),
        (r"(?i)^warn", "WARNING", true),
        (r"(?s)a.b", "a\nb", true),
        ("a.b", "a\nb", false),
        ("(?m)^b$", "a\nb\nc", true),
        ("(?U)a+", "aa", true),
        ("", "anything", true),
    ];
    for (pattern, text, expected) in table {
        let regex = compile_pattern(pattern).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(regex.is_match(text.as_bytes()), *expected, "`{pattern}` on `{text}`: {regex}");
    }
}

#[test]
fn what_cannot_be_is_refused_with_a_reason() {
    let table = [
        ("(a", "unclosed group"),
        ("a)", "unopened group"),
        ("[a", "`[` without `]`"),
        ("[b-a]", "invalid character class range"),
        ("*a", "repetition operator missing expression"),
        (r"(a)\1", "references back to a group are not supported"),
        ("a(?=b)", "look-around"),
        ("(?<!a)b", "look-around"),
        (r"\y", r"`\y` is not known"),
        (r"a\", "a backslash at the end"),
        (r"\Z", r"`\Z` is not known"),
        (r"\p{Nothing}", "Unicode property not found"),
        ("(?:a{1000}){1000}", "bytes when compiled"),
    ];
    for (pattern, reason) in table {
        let error = compile_pattern(pattern).expect_err(pattern);
        let text = error.to_string();
        assert!(text.starts_with(&format!("`{pattern}` is not a regular expression: ")), "{text}");
        assert!(text.contains(reason), "{text}");
    }
}
