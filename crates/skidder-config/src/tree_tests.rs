//! Tests of dotted keys, layers and overrides.

use super::*;
use crate::Settings;
use proptest::prelude::*;

/// The layers as YAML texts and overrides merged, as YAML; problems behind it.
fn merged(files: &[&str], overrides: &[&str]) -> (String, String) {
    let problems = Problems::new();
    let mut root =
        Node::collection(Position::whole(&Source::new(0, "none")), Content::Map(Map::default()));
    let mut order = 0;
    for text in files {
        order += 1;
        let source = Source::new(order, format!("{order}.yml"));
        let node = crate::yaml::parse(&source, text, &problems).unwrap();
        merge(&mut root, expand_dots(node, &problems), &problems);
    }
    for text in overrides {
        order += 1;
        if let Some(tree) = parse_override("-E", text, order, &problems) {
            merge(&mut root, tree, &problems);
        }
    }
    settle_lists(&mut root);
    (crate::export::to_yaml(&root), problems.to_string())
}

fn same(left: &[&str], overrides: &[&str], right: &str) {
    let (left, problems) = merged(left, overrides);
    assert_eq!(problems, "");
    assert_eq!(left, merged(&[right], &[]).0);
}

#[test]
fn dotted_and_nested_keys_are_one() {
    same(&["a.b: 1"], &[], "a: {b: 1}");
    same(&["a.b: 1\na: {c: 2}\na.d.e: 3"], &[], "a: {b: 1, c: 2, d: {e: 3}}");
    same(&["a: {b.c: 1, b: {d: 2}}"], &[], "a: {b: {c: 1, d: 2}}");
    same(&["l: [{a.b: 1, a: {c: 2}}]"], &[], "l: [{a: {b: 1, c: 2}}]");
}

#[test]
fn an_empty_setting_gives_way_in_the_same_file() {
    same(&["setup.kibana:\nsetup.kibana.host: x"], &[], "setup: {kibana: {host: x}}");
    same(&["setup.kibana.host: x\nsetup.kibana:"], &[], "setup: {kibana: {host: x}}");
}

#[test]
fn one_setting_written_twice_in_a_file_is_a_conflict() {
    let table = [
        ("a.b: 1\na: {b: 2}", "error: 1.yml:2:8: `a.b` is already set at 1.yml:1:6"),
        ("a.b: 1\na: 2", "error: 1.yml:2:4: `a` is already set at 1.yml:1:1"),
        ("a: 2\na.b: 1", "error: 1.yml:2:1: `a` is already set at 1.yml:1:4"),
        ("a.b: [1]\na: {b: [2]}", "error: 1.yml:2:8: `a.b` is already set at 1.yml:1:6"),
    ];
    for (text, expected) in table {
        let (_, problems) = merged(&[text], &[]);
        assert!(problems.starts_with(expected), "{text}: {problems}");
    }
}

#[test]
fn later_files_win_maps_are_merged_and_lists_replaced() {
    same(&["a: {b: 1, c: 2}", "a.c: 3"], &[], "a: {b: 1, c: 3}");
    same(&["l: [1, 2, 3]", "l: [4]"], &[], "l: [4]");
    same(&["a: 1", "a: {b: 2}"], &[], "a: {b: 2}");
    same(&["a: {b: 2}", "a: 1"], &[], "a: 1");
    same(&["a: {b: 2}\nl: [1]", "a:\nl:"], &[], "a: {b: 2}\nl: [1]");
    same(&["a: 1", "a:"], &[], "a:");
    same(&["a: 1", ""], &[], "a: 1");
}

#[test]
fn numbers_in_dotted_keys_name_list_items() {
    same(&["l: [{a: 1}, {a: 2}]\nl.1.b: 3"], &[], "l: [{a: 1}, {a: 2, b: 3}]");
    same(&["l.1.b: 3\nl: [{a: 1}, {a: 2}]"], &[], "l: [{a: 1}, {a: 2, b: 3}]");
    same(&["l: [{a: 1}]", "l.0.a: 2"], &[], "l: [{a: 2}]");
    same(&["l: [1]"], &["l.1=2"], "l: [1, 2]");
    same(&["l.0.a: 1\nl.1.a: 2"], &[], "l: [{a: 1}, {a: 2}]");
    same(&["m: {'200': a, '404': b}"], &[], "m: {'200': a, '404': b}");
    same(&["m: {'0': a}"], &[], "m: {'0': a}");
    let (_, problems) = merged(&["l: [1]"], &["l.5=2"]);
    assert_eq!(
        problems,
        "error: -E l.5: `l[5]` does not exist; `l` has 1 items\nhint: items count from 0"
    );
}

#[test]
fn overrides_win_over_files() {
    let file = "filebeat.inputs: [{id: a, enabled: true}]\noutput.sink: {hosts: [x, y], n: 1}";
    same(
        &[file],
        &["filebeat.inputs.0.enabled=false", "output.sink.hosts=[a, b]", "output.sink.n=0x10"],
        "filebeat.inputs: [{id: a, enabled: false}]\noutput.sink: {hosts: [a, b], n: 0x10}",
    );
    same(&[], &["a.b"], "a: {b: true}");
    same(&[], &["a=x=y"], "a: x=y");
    same(&[], &["a=one,two"], "a: [one, two]");
    same(&[], &["a={b.c: 1}"], "a: {b: {c: 1}}");
    same(&[], &["a='1,2'"], "a: '1,2'");
    same(&[], &["a=1", "a=2"], "a: 2");
}

#[test]
fn overrides_in_brackets_are_lists_and_no_texts() {
    let read = |text: &str| {
        let tree = parse_override("-E", text, 1, &Problems::new()).unwrap();
        let Content::Map(map) = tree.content else { panic!("no map") };
        map.get("k").unwrap().value.text().map(str::to_owned)
    };
    for list in ["k=[a,b]", "k= [a]", "k=[a],b", "k={x: y}", "k=[]"] {
        assert_eq!(read(list), None, "{list}");
    }
    for (text, expected) in [("k=a,b", "a,b"), ("k='[a,b]'", "[a,b]"), ("k=x[a]", "x[a]")] {
        assert_eq!(read(text).as_deref(), Some(expected), "{text}");
    }
}

#[test]
fn unreadable_overrides_are_told_without_their_value() {
    let (_, problems) = merged(&["a: 1"], &["password=[hunter2", "=x", "a="]);
    assert_eq!(
        problems,
        "error: -E password: the value of `password` cannot be read: the closing `]` is missing\n\
         hint: put it in single quotes (inside those of the shell) to keep it as text\n\
         error: -E : the name of the setting is missing\n\
         hint: write `-E key=value`, for example `-E output.console.pretty=true`\n\
         warning: -E a: `a` has no value after `=`; it is left as it is\n\
         hint: use `''` for an empty text"
    );
}

#[test]
fn keys_of_too_many_levels_are_refused() {
    let (_, problems) = merged(&[&format!("{}: 1", vec!["a"; 40].join("."))], &[]);
    assert!(problems.contains("more than 20 levels"), "{problems}");
}

/// A tree for the property test.
#[derive(Clone, Debug)]
enum Tree {
    Leaf(i64),
    List(Vec<Tree>),
    Branch(std::collections::BTreeMap<String, Tree>),
}

fn trees() -> impl Strategy<Value = Tree> {
    let leaf = any::<i64>().prop_map(Tree::Leaf);
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 1..4).prop_map(Tree::List),
            proptest::collection::btree_map("[a-z]{1,3}x", inner, 1..5).prop_map(Tree::Branch),
        ]
    })
}

fn nested(tree: &Tree) -> String {
    match tree {
        Tree::Leaf(number) => number.to_string(),
        Tree::List(items) => {
            format!("[{}]", items.iter().map(nested).collect::<Vec<_>>().join(", "))
        }
        Tree::Branch(map) => {
            let parts: Vec<_> =
                map.iter().map(|(key, value)| format!("{key}: {}", nested(value))).collect();
            format!("{{{}}}", parts.join(", "))
        }
    }
}

fn dotted(tree: &Tree, path: &str, lines: &mut Vec<String>) {
    match tree {
        Tree::Branch(map) => {
            for (key, value) in map {
                dotted(value, &join(path, key), lines);
            }
        }
        other => lines.push(format!("{path}: {}", nested(other))),
    }
}

proptest! {
    #[test]
    fn nested_and_dotted_trees_are_the_same(tree in trees(), seed in any::<u64>()) {
        let wrapped = Tree::Branch(std::iter::once(("top".to_owned(), tree)).collect());
        let mut lines = Vec::new();
        dotted(&wrapped, "", &mut lines);
        // Any order of lines: rotate and swap by the seed.
        let shift = (seed % lines.len() as u64) as usize;
        lines.rotate_left(shift);
        let written = Settings::parse("a", &lines.join("\n")).unwrap();
        let expected = Settings::parse("b", &nested(&wrapped)).unwrap();
        prop_assert!(written.pending.is_empty());
        prop_assert_eq!(written.node().to_value(), expected.node().to_value());
    }

    #[test]
    fn exported_settings_read_back_the_same(tree in trees(), text in "\\PC{0,20}") {
        let mut yaml = nested(&Tree::Branch(std::iter::once(("top".to_owned(), tree)).collect()));
        let escaped: String = text.chars().flat_map(|found| match found {
            '"' | '\\' => vec!['\\', found],
            '$' => vec!['$', '$'],
            other => vec![other],
        }).collect();
        yaml.insert_str(1, &format!("text: \"{escaped}\", "));
        let settings = Settings::parse("a", &yaml).unwrap();
        let again = Settings::parse("b", &settings.export_yaml()).unwrap();
        prop_assert_eq!(again.node().to_value(), settings.node().to_value());
    }

    #[test]
    fn random_overrides_never_panic(text in "\\PC{0,40}", signs in "[-a.0=\\[\\]{}:,'\"\\\\ ]{0,30}") {
        merged(&["l: [1, {a: 2}]"], &[&text, &signs, &format!("l.{signs}")]);
    }
}

#[test]
fn a_section_is_laid_upon_another_and_its_settings_win() {
    let text = "output.sink: {hosts: [a], tls: {ca: x, on: true}}\nown: {tls.on: false, period: 1s}\nrest: 1\n";
    let settings = Settings::parse("f.yml", text).unwrap();
    let layered = settings.layered("output.sink", "own");
    let problems = Problems::new();
    let root = layered.root(&problems);
    let own = root.section("own");
    assert_eq!(own.strings("hosts").or([]), ["a"]);
    assert_eq!(own.string("tls.ca").or(""), "x");
    assert!(!own.bool("tls.on").or(true));
    assert_eq!(own.string("period").or(""), "1s");
    assert!(root.has("rest") && root.has("output.sink.hosts"));
    for (under, over) in [("output.none", "own"), ("output.sink", "deep.new")] {
        let layered = settings.layered(under, over);
        let root = layered.root(&problems);
        assert!(root.has(&format!("{over}.tls")), "{over}");
        root.skip();
    }
    own.skip();
    root.skip();
}
