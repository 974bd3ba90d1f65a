//! What tokenizers make of texts. The cases are those that Filebeat and Logstash share, and more.

use super::*;
use proptest::prelude::*;

/// The fields of a text, joined.
fn fields(tokenizer: &str, text: &str) -> Result<Vec<(String, String)>, DissectError> {
    let tokenizer = Tokenizer::new(tokenizer).unwrap();
    let mut spans = Vec::new();
    tokenizer.split(text.as_bytes(), |span| spans.push(span))?;
    let found = tokenizer.outputs().iter().map(|output| {
        let name = match &output.name {
            Name::Fixed(name) => name.to_string(),
            Name::Of(key) => text[spans[*key].clone()].to_owned(),
        };
        let value = output.parts.iter().map(|part| {
            format!("{}{}", String::from_utf8_lossy(&part.joint), &text[spans[part.key].clone()])
        });
        (name, value.collect())
    });
    Ok(found.collect())
}

/// A tokenizer, a text, and the fields.
type Case<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)]);

#[test]
fn texts_are_cut_at_their_delimiters() {
    let cases: &[Case<'_>] = &[
        ("%{key}", "foobar", &[("key", "foobar")]),
        ("%{key1} %{key2}", "foo bar", &[("key1", "foo"), ("key2", "bar")]),
        ("/var/%{key}/log", "/var/foobar/log", &[("key", "foobar")]),
        ("/var/%{key}/log", "/var/foobar/log/and more", &[("key", "foobar")]),
        ("/var/%{key}", "/var/foobar/log", &[("key", "foobar/log")]),
        ("/var/%{a}/log/%{b}.log", "/var/x/log/apache.log", &[("a", "x"), ("b", "apache")]),
        ("%{a} %{b}", "hello ", &[("a", "hello"), ("b", "")]),
        ("%{a}%{b}", "hello", &[("a", ""), ("b", "hello")]),
        ("%{+key/3} %{+key/1} %{+key/2}", "1 2 3", &[("key", "2 3 1")]),
        ("%{key}-%{+key}-%{+key}", "1-2-3", &[("key", "1-2-3")]),
        ("%{+a}, %{b} %{+a}", "1, 2 3", &[("a", "1 3"), ("b", "2")]),
        ("%{?key} %{&key}", "hello world", &[("hello", "world")]),
        ("%{*key} %{&key}", "hello world", &[("hello", "world")]),
        ("%{&key} %{?key}", "hello world", &[("world", "hello")]),
        ("%{} %{key}", "hello world", &[("key", "world")]),
        ("%{?a} %{b}", "hello world", &[("b", "world")]),
        ("%{?a} %{a} %{b}", "1 2 3", &[("b", "3")]),
        ("%{a} %{a}", "1 2", &[("a", "2")]),
        (
            "%{a},%{b},%{c}",
            "Jane Doe,,New York",
            &[("a", "Jane Doe"), ("b", ""), ("c", "New York")],
        ),
        ("%{a} %{b->} %{c}", "1 2    3", &[("a", "1"), ("b", "2"), ("c", "3")]),
        ("%{a} %{b->} ", "1 2    ", &[("a", "1"), ("b", "2")]),
        ("%{a->} %{b}", "1    2 3", &[("a", "1"), ("b", "2 3")]),
        ("%{->} %{b}", "1    2", &[("b", "2")]),
        ("%{?x->} %{b}", "1    2", &[("b", "2")]),
        ("%{a->}, %{b}", "1, , 2", &[("a", "1"), ("b", ", 2")]),
        ("%{a->}", "1  ", &[("a", "1  ")]),
        ("{%{a}}{%{b}} %{rest}", "{c}{d} more", &[("a", "c"), ("b", "d"), ("rest", "more")]),
        ("%{a#2}%{b#3}-%{c}", "12345-6", &[("a", "12"), ("b", "345"), ("c", "6")]),
        ("%{a#2};", "12;more", &[("a", "12")]),
        ("%{a}%{b#2}", "12", &[("a", ""), ("b", "12")]),
        ("%{a/b} %{c->/2}", "1 2", &[("a/b", "1"), ("c->", "2")]),
        ("%{a|9}", "1", &[("a|9", "1")]),
        ("%{a} %%{b}", "1 %2", &[("a", "1"), ("b", "2")]),
        ("é%{a}→%{b}", "éx→y", &[("a", "x"), ("b", "y")]),
    ];
    for (tokenizer, text, expected) in cases {
        let expected: Vec<_> =
            expected.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        assert_eq!(fields(tokenizer, text), Ok(expected), "{tokenizer} on {text}");
    }
}

#[test]
fn texts_that_do_not_fit_say_where() {
    let cases = [
        ("%{a}", "", DissectError::Empty),
        ("/var/%{a}.log", "foobar", DissectError::Begin),
        ("/var/%{a}.log", " /var/a.log", DissectError::Begin),
        ("/var/%{a}.log", "/var/foobar", DissectError::Delimiter { key: 1, offset: 5 }),
        ("%{a} %{b}-%{c}", "1 2 3", DissectError::Delimiter { key: 2, offset: 2 }),
        ("%{a#5}-%{b}", "1234", DissectError::Length { key: 1, offset: 0 }),
        ("%{a#4}-%{b}", "1234", DissectError::Length { key: 1, offset: 0 }),
        ("%{a} %{b#2}", "1 234", DissectError::Length { key: 2, offset: 2 }),
    ];
    for (tokenizer, text, expected) in cases {
        assert_eq!(fields(tokenizer, text), Err(expected), "{tokenizer} on {text}");
    }
}

#[test]
fn tokenizers_that_are_none_say_why() {
    let cases = [
        ("", TokenizerError::NoKey),
        ("hello", TokenizerError::NoKey),
        ("%{hello", TokenizerError::NoKey),
        ("%{a|}", TokenizerError::MissingType("a|".into())),
        ("%{a|number}", TokenizerError::UnknownType("a|number".into())),
        ("%{+&a}", TokenizerError::AppendIndirect("+&a".into())),
        ("%{&+a}", TokenizerError::IndirectAppend("&+a".into())),
        ("%{+}", TokenizerError::NoName("+".into())),
        ("%{|integer}", TokenizerError::NoName("|integer".into())),
        ("%{a->}%{b}", TokenizerError::NothingToRepeat("a->".into())),
        ("%{a} %{&b}", TokenizerError::NoReference("b".into())),
        ("%{a} %{&a}", TokenizerError::NoReference("a".into())),
    ];
    for (tokenizer, expected) in cases {
        assert_eq!(Tokenizer::new(tokenizer).unwrap_err(), expected, "{tokenizer}");
    }
}

#[test]
fn types_belong_to_what_is_kept() {
    let kinds = |tokenizer: &str| -> Vec<_> {
        let tokenizer = Tokenizer::new(tokenizer).unwrap();
        tokenizer.outputs().iter().map(|output| output.kind).collect()
    };
    assert_eq!(kinds("%{a|integer} %{b}"), [Some(Type::Integer), None]);
    assert_eq!(kinds("%{a/1#2->|ip} x"), [Some(Type::Ip)]);
    assert_eq!(kinds("%{?a|ip} %{&a|long} %{+b|long}"), [Some(Type::Long), None]);
    assert!(Tokenizer::new("%{a|boolean}").unwrap().is_typed());
    let idle = Tokenizer::new("%{+a|boolean}%{?b|ip} %{c|ip}").unwrap();
    assert!(idle.is_typed());
    assert_eq!(idle.idle_types().collect::<Vec<_>>(), ["+a|boolean", "?b|ip"]);
    assert!(!Tokenizer::new("%{+a|boolean}").unwrap().is_typed());
}

proptest! {
    #[test]
    fn what_was_put_together_is_taken_apart(values in proptest::collection::vec("[a-zé]{0,6}", 1..6)) {
        let keys: Vec<_> = (0..values.len()).map(|key| format!("%{{k{key}}}")).collect();
        for delimiter in [" ", "::", " - "] {
            let found = fields(&keys.join(delimiter), &format!("{}!", values.join(delimiter))).unwrap();
            let mut found: Vec<_> = found.into_iter().map(|(_, value)| value).collect();
            prop_assert_eq!(found.last_mut().unwrap().pop(), Some('!'));
            prop_assert_eq!(&found, &values);
        }
    }

    #[test]
    fn spans_are_in_order_and_inside(
        text in "[ab ,é]{0,30}",
        tokenizer in "([ab ,]{0,2}%\\{[a-c]?(#[0-9])?\\}){1,4}[ab ,]{0,2}"
    ) {
        let Ok(tokenizer) = Tokenizer::new(&tokenizer) else { return Ok(()) };
        let mut at = 0;
        let mut spans = 0;
        let done = tokenizer.split(text.as_bytes(), |span| {
            assert!(at <= span.start && span.start <= span.end && span.end <= text.len());
            at = span.end;
            spans += 1;
        });
        prop_assert!(done.is_err() || spans == tokenizer.keys());
    }
}
