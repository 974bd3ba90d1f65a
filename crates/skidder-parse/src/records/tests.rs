//! Values of JSON in pieces of all sizes, as Filebeat has them.

use super::*;
use proptest::prelude::*;
use serde_json::Value;

/// Places and texts of the records, whatever the pieces; and the error.
fn found(expand: &str, content: &str) -> (Vec<(u64, String)>, Option<RecordError>) {
    let mut first = None;
    for size in [1, 2, 3, 7, 64, 4096] {
        for count_max in [1, 1000] {
            let all = found_in(expand, content, size, count_max, 1 << 20);
            let expected = first.get_or_insert_with(|| all.clone());
            assert_eq!(all.0, expected.0, "pieces of {size} bytes, {count_max} records");
            assert_eq!(all.1, expected.1, "pieces of {size} bytes, {count_max} records");
        }
    }
    let (records, error, too_long) = first.unwrap();
    assert_eq!(too_long, []);
    (records, error)
}

type All = (Vec<(u64, String)>, Option<RecordError>, Vec<(u64, u64)>);

fn found_in(expand: &str, content: &str, size: usize, count_max: usize, bytes_max: usize) -> All {
    let expand = match expand.strip_prefix("lists:") {
        Some(field) => Expand::of_lists(field),
        None => Expand::parse(expand),
    };
    let layout = Layout::Json(expand);
    let mut finder = Finder::new(&layout, bytes_max).unwrap();
    let (mut all, mut too_long, mut error) = (Vec::new(), Vec::new(), None);
    let mut take = |found: Found| {
        assert!(found.records.len() <= count_max);
        for record in found.records {
            let text = &found.text[record.start as usize..][..record.len as usize];
            assert!(content[..record.end as usize].ends_with(std::str::from_utf8(text).unwrap()));
            all.push((record.offset, String::from_utf8(text.to_vec()).unwrap()));
        }
        too_long.extend(found.too_long);
    };
    'all: for piece in content.as_bytes().chunks(size) {
        let mut taken = 0;
        while taken < piece.len() {
            let mut found = Found::default();
            let pushed = finder.push(&piece[taken..], &mut found, count_max);
            take(found);
            match pushed {
                Ok(count) => taken += count,
                Err(other) => {
                    error = Some(other);
                    break 'all;
                }
            }
        }
    }
    if error.is_none() {
        let mut found = Found::default();
        error = finder.end(&mut found).err();
        take(found);
    }
    (all, error, too_long)
}

fn records(expand: &str, content: &str) -> Vec<(u64, String)> {
    let (records, error) = found(expand, content);
    assert_eq!(error, None, "{content}");
    records
}

fn owned<const N: usize>(records: [(u64, &str); N]) -> Vec<(u64, String)> {
    records.map(|(place, text)| (place, text.to_owned())).to_vec()
}

#[test]
fn values_follow_each_other_with_and_without_whitespace() {
    let content = "\u{feff}{\"a\": [1, {\"b\": \"}\\\"]\"}]}\n\n {\n  \"c\": 2\n}[3]\"four \\\\\" 5.5e1 true\nnull";
    let expected = [
        "{\"a\": [1, {\"b\": \"}\\\"]\"}]}",
        "{\n  \"c\": 2\n}",
        "[3]",
        "\"four \\\\\"",
        "5.5e1",
        "true",
        "null",
    ];
    // The byte order mark is not counted.
    let expected = expected.map(|text| (content.find(text).unwrap() as u64 - 3, text));
    assert_eq!(records("", content), owned(expected));
    assert_eq!(records("", " \n "), []);
    assert_eq!(records("", ""), []);
}

#[test]
fn elements_of_a_field_have_the_places_that_filebeat_gives_them() {
    // As its json.Decoder counts: from the list, and from the comma before an element.
    let content =
        "{\"Other\": [[\"]\"], {}], \"Records\": [ {\"a\": 1},\n {\"b\": \"x\"}], \"n\": -1}\n";
    let list = content.find("[ {").unwrap() as u64;
    let comma = content.find(",\n").unwrap() as u64;
    let expected = owned([(2, "{\"a\": 1}"), (comma - list, "{\"b\": \"x\"}")]);
    assert_eq!(records("Records", content), expected);
    let second = format!("{content}{{\"Records\":[7,8]}}");
    let start = content.len() as u64;
    let more = owned([(start + 12, "7"), (start + 13, "8")]);
    assert_eq!(records("Records", &second), [expected, more].concat(), "no place comes twice");
    assert_eq!(records("Re\"cords", "{\"Re\\u0022cords\": [1]}"), owned([(1, "1")]));
    assert_eq!(records("Records", "{\"Records\": []}"), []);
}

#[test]
fn elements_of_a_list_are_records() {
    let expected = owned([(2, "1"), (3, "[2]"), (7, "{\"a\": 3}")]);
    assert_eq!(records(".[]", " [1,[2],{\"a\": 3}] ").len(), 3);
    assert_eq!(records(".[]", " [1,[2],{\"a\": 3}] "), expected);
    assert_eq!(records(".[]", "[][4]"), owned([(3, "4")]));
}

#[test]
fn elements_are_taken_for_a_list_at_the_top() {
    let content = "[{\"a\": 1}, [2]] {\"b\": 3}\n";
    let expected = owned([(1, "{\"a\": 1}"), (9, "[2]"), (16, "{\"b\": 3}")]);
    assert_eq!(records("lists:", content), expected);
    let content = "[{\"x\": [1, 2]}, {\"y\": 0, \"x\": [3, [4]]}, {\"x\": []}]";
    let place = |text: &str| content.find(text).unwrap() as u64;
    let expected = [(2, "1"), (3, "2"), (place("3, "), "3"), (place(", [4]"), "[4]")];
    assert_eq!(records("lists:x", content), owned(expected));
    assert_eq!(records("lists:x", "{\"x\": [[5]]}"), owned([(1, "[5]")]));
    let (_, error) = found("lists:x", "[{\"x\": [{\"a\": 1}]}, [2]]");
    assert!(
        error.is_some_and(|error| error.offset == 20 && error.message.contains("not an object"))
    );
}

#[test]
fn what_is_no_json_is_an_error_that_names_the_place_and_comes_behind_what_is() {
    for (expand, content, offset, message) in [
        ("", "{\"a\": 1} <html>", 9, "no value of JSON begins so"),
        ("", "{\"a\": 1} {\"a\" 2}", 9, "is no JSON: expected `:`"),
        ("", "{\"a\": 1} {\"b\": \"", 9, "has no end"),
        ("", "{\"a\": 1} truefalse", 9, "is no JSON"),
        (".[]", "[{\"a\": 1}] {}", 11, "not a list, and `expand_event_list_from_field` is `.[]`"),
        (".[]", "[{\"a\": 1},", 0, "has no end"),
        ("x", "{\"x\": [{\"a\": 1}]} []", 18, "not an object"),
        ("x", "{\"x\": [{\"a\": 1}]} {\"x\": 2}", 24, "`x` is not a list"),
        ("x", "{\"x\": [{\"a\": 1}]} {\"y\": {\"x\": []}}", 18, "no field `x`"),
        ("x", "{\"x\": [{\"a\": 1}], 7}", 18, "name of a field must stand here"),
        ("x", "{\"x\": [{\"a\": 1}], \"y\"}", 21, "a colon must follow"),
        ("x", "{\"x\": [{\"a\": 1}]", 0, "has no end"),
    ] {
        let (records, error) = found(expand, content);
        let error = error.unwrap_or_else(|| panic!("{content}"));
        assert!(error.message.contains(message), "{content}: {error}");
        assert_eq!((error.offset, records.len()), (offset, 1), "{content}: {error}");
        assert_eq!(records[0].1, "{\"a\": 1}");
    }
}

#[test]
fn a_value_that_is_too_long_is_left_out_and_told() {
    let content = format!("[1] [\"{}\"] [2]", "x".repeat(100));
    for size in [1, 50, 1000] {
        let (records, error, too_long) = found_in("", &content, size, 10, 50);
        assert_eq!(records, [(0, "[1]".to_owned()), (109, "[2]".to_owned())]);
        assert_eq!((error, too_long), (None, vec![(4, 104)]));
    }
}

#[test]
fn the_beginning_decides_if_it_is_not_known_what_content_is() {
    let decide =
        |beginning: &str| Layout::JsonOrLines(Expand::default()).decide(beginning.as_bytes());
    for beginning in ["{", "\u{feff} \n[1", "  {\"a\""] {
        assert_eq!(decide(beginning), Layout::Json(Expand::default()), "{beginning}");
    }
    for beginning in ["", "  ", "a line {", "127.0.0.1 - -", "<14>"] {
        assert_eq!(decide(beginning), Layout::Lines, "{beginning}");
    }
    assert_eq!(Layout::Lines.decide(b"{"), Layout::Lines);
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-c\"\\\\\n\\[\\]{},:é]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 30, 5, |inner| {
        let members = proptest::collection::vec(("[a-c\"\\\\]{1,3}", inner.clone()), 0..5);
        prop_oneof![
            proptest::collection::vec(inner, 0..5).prop_map(Value::from),
            members.prop_map(|all| all.into_iter().collect::<serde_json::Map<_, _>>().into()),
        ]
    })
}

proptest! {
    #[test]
    fn random_values_are_found_where_another_parser_finds_them(
        all in proptest::collection::vec((values(), any::<bool>(), "[ \n\t]{1,3}"), 0..8), size in 1_usize..40
    ) {
        let mut content = String::new();
        for (value, is_pretty, space) in &all {
            let text = if *is_pretty { serde_json::to_string_pretty(value) } else { serde_json::to_string(value) };
            content.push_str(&text.unwrap());
            content.push_str(space);
        }
        let mut expected = Vec::new();
        let mut stream = serde_json::Deserializer::from_str(&content).into_iter::<serde::de::IgnoredAny>();
        let mut before = 0;
        while let Some(Ok(_)) = stream.next() {
            let text = &content[before..stream.byte_offset()];
            let start = before + text.len() - text.trim_start().len();
            expected.push((start as u64, text.trim_start().to_owned()));
            before = stream.byte_offset();
        }
        let (found, error, _) = found_in("", &content, size, 3, 1 << 20);
        prop_assert_eq!((found, error), (expected, None));
        // The same values as elements of a field.
        let texts: Vec<String> = all.iter().map(|(value, _, _)| value.to_string()).collect();
        let content = format!("{{\"a\": {}, \"x\" : [{}]}}", Value::from(texts.clone()), texts.join(" , "));
        let (found, error, _) = found_in("x", &content, size, 3, 1 << 20);
        let found: Vec<String> = found.into_iter().map(|(_, text)| text).collect();
        prop_assert_eq!((found, error), (texts, None));
    }
}
