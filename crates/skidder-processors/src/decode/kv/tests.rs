//! Tests of splitting and trimming; whole events are in `golden/kv.yml`.

use super::split::{Class, Splitter};
use super::without_brackets;

fn parts<'a>(expression: &str, text: &'a str) -> Vec<&'a str> {
    let splitter = Splitter::new(expression).unwrap();
    let mut parts = splitter.parts(text.as_bytes());
    let mut found = Vec::new();
    while let Some(part) = parts.next().unwrap() {
        found.push(&text[part]);
    }
    found
}

#[test]
fn texts_are_split_at_expressions() {
    assert_eq!(parts(" ", "a=1 b=2  c=3 "), ["a=1", "b=2", "c=3"]);
    assert_eq!(parts(r"\s+", "a=1 \t b=2"), ["a=1", "b=2"]);
    assert_eq!(parts(r"[&;]", "a=1&b=2;c"), ["a=1", "b=2", "c"]);
    assert_eq!(parts(", ", "no comma"), ["no comma"]);
    assert!(parts(" ", "  ").is_empty());
}

#[test]
fn a_look_ahead_at_the_end_decides_which_places_count() {
    let text = "op=adding group to /etc id=10 res=no";
    assert_eq!(parts(r"\s+(?=[^\s]+=)", text), ["op=adding group to /etc", "id=10", "res=no"]);
    assert_eq!(parts(r"\s(?![\w]+(\s|$))", "a=x y b=2"), ["a=x y", "b=2"]);
    assert_eq!(parts(r"(?: |;)(?=\w+=)", "a=1 2;b=3"), ["a=1 2", "b=3"]);
    // A bracket in a class is none.
    assert_eq!(parts(r"[ )](?=[(]?\w+=)", "a=1 x)(b=2"), ["a=1 x", "(b=2"]);
}

#[test]
fn wrong_expressions_are_refused_with_a_reason() {
    let error = |expression| Splitter::new(expression).unwrap_err();
    assert_eq!(error("a*"), "it matches an empty text");
    assert_eq!(error(""), "it matches an empty text");
    assert!(error(r" |;(?=\w)").contains("into a group"));
    assert!(error(r"(?<!\\)=").contains("look-around"), "{}", error(r"(?<!\\)="));
    assert!(error(r"(?=a)b").contains("look-around"));
    assert!(error("(").contains("unclosed group"));
}

#[test]
fn a_hostile_text_ends_the_look_aheads() {
    let splitter = Splitter::new(" (?=.*=)").unwrap();
    let text = " ".repeat(1 << 20);
    let mut parts = splitter.parts(text.as_bytes());
    assert!(parts.next().unwrap_err().contains("more than 65536 places"));
}

#[test]
fn classes_are_trimmed_from_both_ends() {
    let trimmed = |class: &str, text: &[u8]| {
        let class = Class::new(class).unwrap();
        let range = class.trim(text, 0..text.len());
        text[range].to_vec()
    };
    assert_eq!(trimmed("<>", b"<<a>b>"), b"a>b");
    assert_eq!(trimmed(r"\s,", b" a b,\t"), b"a b");
    assert_eq!(trimmed("»«", "«a»".as_bytes()), b"a");
    assert_eq!(trimmed("x", b"xx"), b"");
    assert_eq!(trimmed("x", b"x\xffx"), b"\xff");
    assert!(Class::new("z-a").unwrap_err().contains("invalid"));
}

#[test]
fn brackets_and_quotes_are_removed_once_from_each_end() {
    let stripped = |text: &str| text[without_brackets(text.as_bytes(), 0..text.len())].to_owned();
    for (text, expected) in [
        ("(a)", "a"),
        ("\"a", "a"),
        ("a'", "a"),
        ("[[a]]", "[a]"),
        ("\"", ""),
        ("", ""),
        ("a", "a"),
    ] {
        assert_eq!(stripped(text), expected, "{text}");
    }
}
