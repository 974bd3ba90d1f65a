//! Rows in pieces of all sizes, against what Filebeat's own decoder made of the same texts (`golden.jsonl`, written by
//! `x-pack/libbeat/reader/decoder` of Filebeat 9 with Go 1.26).

use super::*;
use crate::records::{Finder, Layout};
use proptest::prelude::*;
use serde_json::Value;

type All = (Vec<(u64, String)>, Option<RecordError>);

fn found_in(rules: &CsvRules, content: &[u8], size: usize, count_max: usize) -> All {
    bounded(rules, content, size, count_max, 1 << 16)
}

fn bounded(
    rules: &CsvRules,
    content: &[u8],
    size: usize,
    count_max: usize,
    bytes_max: usize,
) -> All {
    let layout = Layout::Csv(Arc::new(rules.clone()));
    let mut finder = Finder::new(&layout, bytes_max).unwrap();
    let (mut all, mut place) = (Vec::new(), 0);
    let mut take = |found: Found| {
        assert!(found.records.len() <= count_max && found.too_long.is_empty());
        for record in found.records {
            let text = &found.text[record.start as usize..][..record.len as usize];
            assert!(record.offset >= place && record.end > record.offset, "no place twice");
            place = record.end;
            all.push((record.offset, String::from_utf8(text.to_vec()).unwrap()));
        }
    };
    for piece in content.chunks(size) {
        let mut taken = 0;
        while taken < piece.len() {
            let mut found = Found::default();
            let pushed = finder.push(&piece[taken..], &mut found, count_max);
            take(found);
            match pushed {
                Ok(count) => taken += count,
                Err(error) => return (all, Some(error)),
            }
        }
    }
    let mut found = Found::default();
    let error = finder.end(&mut found).err();
    take(found);
    (all, error)
}

/// Places and objects of the rows, whatever the pieces; and the error.
fn found(rules: &CsvRules, content: &[u8]) -> All {
    let expected = found_in(rules, content, usize::MAX >> 1, usize::MAX);
    for (size, count_max) in [(1, 1), (2, 1000), (3, 2), (7, 1), (64, 1000)] {
        let all = found_in(rules, content, size, count_max);
        assert_eq!(all, expected, "pieces of {size} bytes, {count_max} rows");
    }
    expected
}

fn rules_of(case: &Value) -> CsvRules {
    let letter = |name: &str| case[name].as_str().and_then(|text| text.chars().next());
    let names = case["fields_names"].as_array().into_iter().flatten();
    CsvRules {
        comma: letter("comma").unwrap_or(','),
        comment: letter("comment"),
        lazy_quotes: case["lazy_quotes"] == true,
        trim_leading_space: case["trim_leading_space"] == true,
        names: names.map(|name| name.as_str().unwrap().to_owned()).collect(),
        keys: CsvKeys::Sorted,
    }
}

#[test]
fn rows_are_those_of_filebeat() {
    let mut count = 0;
    for line in include_str!("golden.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let text = case["text"].as_str().unwrap().as_bytes();
        let mut rules = rules_of(&case);
        let (events, error) = found(&rules, text);
        let of_filebeat = case["events"].as_array().unwrap().iter();
        let of_filebeat: Vec<(u64, String)> = of_filebeat
            .map(|event| (event[0].as_u64().unwrap(), event[1].as_str().unwrap().to_owned()))
            .collect();
        assert_eq!(events, of_filebeat, "{case}");
        // An empty object is no mistake here.
        let is_wrong = case["error"].as_str().is_some_and(|error| error != "EOF");
        assert_eq!(error.is_some(), is_wrong, "{case}: {error:?}");
        rules.keys = CsvKeys::InOrder;
        let (plain, _) = found(&rules, text);
        let of_filebeat: Vec<&str> =
            case["plain"].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect();
        assert_eq!(plain.len(), of_filebeat.len(), "{case}");
        for ((_, ours), theirs) in plain.iter().zip(of_filebeat) {
            // It escapes nothing there, so that not all of it is JSON.
            if serde_json::from_str::<Value>(theirs).is_ok() && !theirs.contains('\\') {
                assert_eq!(ours, theirs, "{case}");
            }
            serde_json::from_str::<Value>(ours).unwrap();
        }
        count += 1;
    }
    assert_eq!(count, 128);
}

#[test]
fn bytes_that_are_no_text_become_the_replacement_character() {
    let content = b"a,b\xff\n\xc3,\xf0\x9f\x98x\n";
    let (events, error) = found(&CsvRules::default(), content);
    assert_eq!(error, None);
    let expected = r#"{"a":"\ufffd","b\ufffd":"\ufffd\ufffd\ufffdx"}"#;
    assert_eq!(events, [(5, expected.to_owned())]);
}

#[test]
fn a_mistake_names_the_row_and_the_remedy() {
    let table = [
        ("a,b\n1,2\n\n3\n", 8, "line 4 has 1 values, and there are 2 names"),
        ("a,b\n1,2\n\"3\n\",4,5\n", 8, "line 3 has 3 values, and there are 2 names"),
        ("a,b\n1,2\"\n", 4, "`lazy_quotes: true`"),
        ("a,b\n1,2\n\"x\n\n", 8, "line 3 has a quote"),
        ("a\"\n1,2\n", 0, "line 1 has a quote"),
    ];
    for (text, offset, expected) in table {
        let (_, error) = found(&CsvRules::default(), text.as_bytes());
        let error = error.unwrap();
        assert_eq!(error.offset, offset, "{text:?}");
        assert!(error.message.contains(expected), "{text:?}: {error}");
    }
}

#[test]
fn a_row_of_more_than_the_bound_is_an_error_and_nothing_more_is_kept() {
    let rules = CsvRules::default();
    let (row, quoted) = ("x".repeat(99), format!("\"{}", "y\n".repeat(60)));
    let whole = format!("a\n{row}\n");
    assert_eq!(bounded(&rules, whole.as_bytes(), 7, 10, 110).1, None);
    for text in [format!("a\n1\nx{}\n", "x".repeat(200)), format!("a\n1\n{quoted}")] {
        for size in [1, 64, 4096] {
            let (events, error) = bounded(&rules, text.as_bytes(), size, 10, 110);
            assert_eq!(events.len(), 1);
            let error = error.unwrap();
            assert!(error.offset == 4 && error.message.contains("`max_bytes`"), "{error}");
        }
    }
    // Long names, whose rows are short.
    let text = format!("{},{}\n1,2\n", "n".repeat(60), "m".repeat(30));
    assert_eq!(bounded(&rules, text.as_bytes(), 4096, 10, 110).0.len(), 1);
    let text = format!("{},{}\n1,2\n", "n".repeat(60), "m".repeat(48));
    assert!(bounded(&rules, text.as_bytes(), 4096, 10, 110).1.is_some());
    // A batch of them is bounded as well.
    let text = format!("{}\n{}", "n".repeat(60_000), "1\n".repeat(100));
    let layout = Layout::Csv(Arc::new(rules));
    let mut finder = Finder::new(&layout, 1 << 16).unwrap();
    let mut found = Found::default();
    let count = finder.push(text.as_bytes(), &mut found, 1000).unwrap();
    assert!(count < text.len() && found.text.len() < TEXT_BYTES_MAX + (1 << 16));
}

proptest! {
    #[test]
    fn what_is_written_with_quotes_is_read_again(
        rows in prop::collection::vec(prop::collection::vec("[a-c\",\n é#]{0,6}", 3), 0..20),
        size in 1_usize..40,
    ) {
        let quoted = |value: &String| format!("\"{}\"", value.replace('"', "\"\""));
        let line = |row: &Vec<String>| row.iter().map(quoted).collect::<Vec<_>>().join(",") + "\n";
        let text: String = rows.iter().map(line).collect();
        let rules = CsvRules {
            names: ["x", "y", "z"].map(str::to_owned).to_vec(),
            ..CsvRules::default()
        };
        let (events, error) = found_in(&rules, text.as_bytes(), size, 3);
        prop_assert_eq!(error, None);
        prop_assert_eq!(events.len(), rows.len());
        let mut place = 0;
        for ((offset, event), row) in events.iter().zip(&rows) {
            let object: Value = serde_json::from_str(event).unwrap();
            prop_assert_eq!(object, serde_json::json!({"x": row[0], "y": row[1], "z": row[2]}));
            prop_assert_eq!(*offset, place);
            place += line(row).len() as u64;
        }
    }

    #[test]
    fn garbage_is_an_error_or_rows_and_nothing_else(content: Vec<u8>, size in 1_usize..40, lazy: bool) {
        let rules = CsvRules { lazy_quotes: lazy, ..CsvRules::default() };
        let whole = found_in(&rules, &content, content.len().max(1), 1000);
        prop_assert_eq!(found_in(&rules, &content, size, 2), whole);
    }
}
