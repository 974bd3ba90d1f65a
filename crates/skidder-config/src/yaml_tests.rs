//! Tests of reading YAML: scalars beside their text, bounds, mistakes in words.

use super::*;
use proptest::prelude::*;

fn read(text: &str) -> (Option<Node>, String) {
    let problems = Problems::new();
    let node = parse(&Source::new(0, "a.yml"), text, &problems);
    (node, problems.to_string())
}

fn good(text: &str) -> Node {
    let (node, problems) = read(text);
    assert_eq!(problems, "", "{text}");
    node.unwrap()
}

fn at<'a>(node: &'a Node, key: &str) -> &'a Node {
    &node.as_map().unwrap().get(key).unwrap().value
}

#[test]
fn scalars_keep_their_text_beside_their_value() {
    let node = good("mode: 0644\nversion: 1.10\nquoted: '0644'\non: yes\nempty:\n");
    let table = [
        ("mode", Content::Int(420), "0644"),
        ("version", Content::Float(1.1), "1.10"),
        ("quoted", Content::String, "0644"),
        ("on", Content::Bool(true), "yes"),
        ("empty", Content::Null, ""),
    ];
    for (key, content, text) in table {
        assert_eq!((at(&node, key).content(), at(&node, key).text()), (&content, Some(text)));
    }
}

#[test]
fn keys_and_values_know_their_places() {
    let node = good("a:\n  - b: 1\n    ü: c\n");
    let list = at(&node, "a");
    let item = &list.as_list().unwrap()[0];
    let entry = item.as_map().unwrap().get("ü").unwrap();
    assert_eq!(entry.key_position.to_string(), "a.yml:3:5");
    assert_eq!(entry.value.position().to_string(), "a.yml:3:8");
    assert_eq!(item.position().to_string(), "a.yml:2:5");
}

#[test]
fn tags_of_yaml_set_the_type_and_others_change_nothing() {
    let node = good("a: !!str 12\nb: !mine 12\nc: !!float 1\nd: ! 12\ne: !!int '7'\n");
    assert_eq!(at(&node, "a").content(), &Content::String);
    assert_eq!(at(&node, "b").content(), &Content::Int(12));
    assert_eq!(at(&node, "c").content(), &Content::Int(1));
    assert_eq!(at(&node, "e").content(), &Content::Int(7));
    let (_, problems) = read("a: !!int x");
    assert_eq!(problems, "error: a.yml:1:4: `x` is not what its tag `!!int` says");
}

#[test]
fn merge_keys_fill_in_what_is_not_set() {
    let node = good(
        "base: &base {a: 1, b: 2}\nmore: &more {b: 3, c: 4}\n\
         one:\n  b: 9\n  <<: *base\ntwo: {<<: [*base, *more], d: 5}\n",
    );
    let shown = |key: &str| format!("{:?}", at(&node, key).to_value());
    let map = |pairs: &[(&str, i64)]| {
        let pair = |(key, value): &(&str, i64)| ((*key).to_owned(), crate::Value::Int(*value));
        format!("{:?}", crate::Value::Map(pairs.iter().map(pair).collect()))
    };
    assert_eq!(shown("one"), map(&[("a", 1), ("b", 9)]));
    assert_eq!(shown("two"), map(&[("a", 1), ("b", 2), ("c", 4), ("d", 5)]));
    let (_, problems) = read("a: {<<: 5}");
    assert!(problems.starts_with("error: a.yml:1:9: `<<` takes a map"), "{problems}");
}

#[test]
fn an_alias_is_a_copy_with_the_place_of_its_use() {
    let node = good("a: &x [1, 2]\nb: *x\n");
    assert_eq!(at(&node, "b").to_value(), at(&node, "a").to_value());
    assert_eq!(at(&node, "b").position().to_string(), "a.yml:2:4");
}

#[test]
fn a_key_set_twice_is_told_with_both_places() {
    let (node, problems) = read("a: 1\nb: 2\na: 3\n");
    assert_eq!(
        problems,
        "error: a.yml:3:1: `a` is already set at a.yml:1:1\n\
         hint: remove one of the two; YAML does not add them up"
    );
    assert_eq!(at(&node.unwrap(), "a").content(), &Content::Int(1));
}

#[test]
fn only_the_first_document_is_read_and_the_user_is_told() {
    let (node, problems) = read("---\na: 1\n---\nb: 2\n");
    assert!(problems.starts_with("warning: a.yml:3:1: a second YAML document"), "{problems}");
    assert!(node.unwrap().as_map().unwrap().get("b").is_none());
}

#[test]
fn nothing_at_all_is_a_null() {
    for text in ["", "\n", "# only a comment\n", "---\n", "\u{feff}"] {
        assert!(good(text).is_null(), "{text:?}");
    }
    assert_eq!(at(&good("\u{feff}a: 1"), "a").content(), &Content::Int(1));
    assert_eq!(at(&good("a: 1\r\nb: x\r\n"), "b").text(), Some("x"));
}

#[test]
fn mistakes_are_told_in_words_with_their_place() {
    let table = [
        ("a:\n\tb: 1\n", "a.yml:2:1: invalid YAML: a tab is used for indentation"),
        ("a:\n  b: 1\n \tc: 2\n", "a.yml:3:2: invalid YAML: a tab is used for indentation"),
        ("a: b: c\n", "a.yml:1:5: invalid YAML: a `:` followed by a space is not allowed here"),
        ("a: @x\n", "a.yml:1:4: invalid YAML: a value cannot begin with `@`"),
        ("a: \"x\n", "invalid YAML: a quote is opened but never closed"),
        ("a: \"\\d\"\n", "invalid YAML: unknown escape after `\\`"),
        ("a: *nobody\n", "a.yml:1:4: invalid YAML: this alias names an anchor"),
        ("a: [1, 2\nb: 3\n", "invalid YAML: "),
        ("a: [${HOSTS}]\n", "invalid YAML: "),
        ("a: [1, 2\nb: 3", "2:2: invalid YAML: a `:` is not allowed here; a `[` or `{` above"),
        ("a: 1\n  b: 2\n", "a.yml:2:4: invalid YAML: a `:` followed by a space is not allowed"),
        ("key:value\nb: 1", "invalid YAML: line 1 is not a `key: value`"),
        ("output\n  # x\n  hosts: [a]\n", "invalid YAML: line 1 is not a `key: value`"),
        ("a: \"x\nb: 2\n", "a.yml:1:4: invalid YAML: a quote is opened here but not closed"),
        ("p: [[:space:]]+", "1:15: invalid YAML: this text does not belong to the value before"),
        ("a: >x\n  b", "1:4: invalid YAML: a text that begins with `|` or `>` must start on"),
        ("a: 1\nb: x\u{0}y\nc: 2", "a.yml:2:5: invalid YAML: the control character U+0000"),
        ("a:\n    b: 1\n  c: 2\n", "invalid YAML: this line does not fit the indentation"),
        ("a: 1\nword\nb: 2\n", "invalid YAML: expected `key: value`"),
        ("? [a]\n: b\n", "a key must be a word, not a list or a map"),
        ("a: &x [*x]\n", "a.yml:1:8: this alias refers to itself"),
    ];
    for (text, expected) in table {
        let (_, problems) = read(text);
        assert!(problems.starts_with("error: a.yml:"), "{text:?}: {problems}");
        assert!(problems.contains(expected), "{text:?}: {problems}");
    }
}

#[test]
fn aliases_of_aliases_cannot_fill_the_memory() {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let previous = format!("*a{}", level - 1);
        let list = vec![previous; 10].join(", ");
        text.push_str(&format!("a{level}: &a{level} [{list}]\n"));
    }
    let (node, problems) = read(&text);
    assert!(node.is_none());
    assert!(problems.contains("more than 500000 values"), "{problems}");
}

#[test]
fn depth_is_bounded_also_through_aliases() {
    for (open, close) in [("[", "]"), ("{a: ", "}")] {
        let (node, problems) = read(&format!("{}{}", open.repeat(90), close.repeat(90)));
        assert!(node.is_none());
        assert!(problems.contains("nested more than 64 levels"), "{problems}");
    }
    let blocks: Vec<String> = (0..5000).map(|level| " ".repeat(level) + "a:\n").collect();
    let blocks = blocks.concat();
    assert!(read(&blocks).1.contains("nested more than 64 levels"));
    let mut chain = "a0: &a0 [1]\n".to_owned();
    for level in 1..200 {
        chain.push_str(&format!("a{level}: &a{level} [*a{}]\n", level - 1));
    }
    assert!(read(&chain).1.contains("nested more than 64 levels"));
}

proptest! {
    #[test]
    fn random_text_never_panics(text in "\\PC*") {
        read(&text);
    }

    #[test]
    fn random_yaml_signs_never_panic(text in "[-\\[\\]{}:,&*!|>'\"%@`#?~<a0\\\\.\n\t \u{e4}\u{1f600}]{0,60}") {
        read(&text);
    }

    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        read(&String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn quoted_texts_may_go_on_where_their_key_begins() {
    // As in Filebeat's module `coredns`; go-yaml reads the same texts.
    let node =
        good("a:\n  - b: 'one \"two\n    it''s ''\n\n    three'\n    c: \"x\\\"\n    y\"\nd: 1\n");
    let item = &at(&node, "a").as_list().unwrap()[0];
    assert_eq!(at(item, "b").text().unwrap(), "one \"two it's '\nthree");
    assert_eq!(at(item, "c").text().unwrap(), "x\" y");
    assert_eq!(at(&node, "d").content(), &Content::Int(1));
}

#[test]
fn a_quote_that_is_missing_is_reported_where_the_text_begins() {
    for text in ["a: 'x\nb: 'y'\n", "a:\n  b: 'x\n  c: 'y'\nd: 1\n", "a:\n  b: \"x\n  c: y\n"] {
        let (node, problems) = read(text);
        assert!(node.is_none(), "{text}");
        assert!(problems.contains("a quote is opened"), "{text}: {problems}");
    }
}
