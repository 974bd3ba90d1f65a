//! Tests of variables: what wins, types, defaults, cycles, bounds.

use super::*;
use crate::{Problems, Settings, Value};
use proptest::prelude::*;

const ENVIRONMENT: &[(&str, &str)] = &[
    ("HOST", "es1"),
    ("PORT", "9200"),
    ("EMPTY", ""),
    ("LIST", "a:1,b:2"),
    ("ARRAY", "[1, two]"),
    ("OBJECT", "{k: v}"),
    ("QUOTED", "'1,2'"),
    ("ZERO", "007"),
    ("FLAG", "true"),
    ("WORD", "it's {broken"),
    ("NAME", "HOST"),
    ("top", "from environment"),
    ("SHADOWED", "not the secret"),
    ("BLANK", ""),
    ("self", "environment of self"),
];
const KEYSTORE: &[(&str, &str)] = &[
    ("SECRET", "s3cr,et"),
    ("NUMBER", "12"),
    ("SHADOWED", "the secret"),
    ("BLANK", "for a blank"),
];

fn look_up(table: &[(&str, &str)], name: &str) -> Option<String> {
    table.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
}

fn expanded(text: &str) -> Node {
    let problems = Problems::new();
    let source = crate::Source::new(0, "a.yml");
    let tree = crate::yaml::parse(&source, text, &problems).unwrap();
    let tree = tree::expand_dots(tree, &problems);
    assert_eq!(problems.to_string(), "");
    let lookups = Lookups {
        values: &|_, _| None,
        extra: &|_| None,
        keystore: &|name| look_up(KEYSTORE, name),
        environment: &|name| look_up(ENVIRONMENT, name),
        data_comes_later: true,
    };
    expand(&tree, &tree, lookups)
}

fn value(text: &str) -> Value {
    let root = expanded(&format!("top: 5\nnothing:\nmap: {{inner: [x, z]}}\nv: {text}\n"));
    let node = &root.as_map().unwrap().get("v").unwrap().value;
    if let Some(problem) = node.unresolved_problem("v") {
        return Value::String(format!("problem: {problem}"));
    }
    node.to_value()
}

fn text(text: &str) -> Value {
    Value::String(text.to_owned())
}

#[test]
fn variables_take_settings_then_environment_then_keystore() {
    assert_eq!(value("${top}"), Value::Int(5));
    assert_eq!(value("${SECRET}"), text("s3cr,et"));
    assert_eq!(value("${SHADOWED}"), text("not the secret"));
    assert_eq!(value("${BLANK}"), text("for a blank"));
    assert_eq!(value("${HOST}"), text("es1"));
    assert_eq!(value("${map.inner.1}"), text("z"));
    assert_eq!(value("${map}"), value("{inner: [x, z]}"));
}

#[test]
fn environment_values_are_typed_and_keystore_values_are_not() {
    let table = [
        ("${PORT}", Value::Int(9200)),
        ("${FLAG}", Value::Bool(true)),
        ("${LIST}", Value::List(vec![text("a:1"), text("b:2")])),
        ("${ARRAY}", Value::List(vec![Value::Int(1), text("two")])),
        ("${OBJECT}", value("{k: v}")),
        ("${QUOTED}", text("1,2")),
        ("${ZERO}", Value::Int(7)),
        ("${WORD}", text("it's {broken")),
        ("${NUMBER}", text("12")),
        ("${HOST}:${PORT}", text("es1:9200")),
        ("${PORT}1", Value::Int(92001)),
        ("'${HOST},${HOST}'", Value::List(vec![text("es1"), text("es1")])),
        ("${SECRET}1", text("s3cr,et1")),
    ];
    for (written, expected) in table {
        assert_eq!(value(written), expected, "{written}");
    }
}

#[test]
fn defaults_messages_and_escapes() {
    let table = [
        ("${UNSET:x}", text("x")),
        ("${UNSET:12}", Value::Int(12)),
        ("${UNSET:a,b}", Value::List(vec![text("a"), text("b")])),
        ("'${UNSET:}'", text("")),
        ("${EMPTY:x}", text("x")),
        ("${nothing:x}", text("x")),
        ("${HOST:x}", text("es1")),
        ("${UNSET:${PORT}}", Value::Int(9200)),
        ("${UNSET:${ALSO:deep}}", text("deep")),
        ("${${NAME}}", text("es1")),
        ("'${UNSET:http://h:1/}'", text("http://h:1/")),
        ("${HOST:+set}", text("set")),
        ("'${UNSET:+set}'", text("")),
        ("${HOST:?needed}", text("es1")),
        ("$${HOST}", text("${HOST}")),
        ("a$b$", text("a$b$")),
        ("$${12}", text("${12}")),
    ];
    for (written, expected) in table {
        assert_eq!(value(written), expected, "{written}");
    }
}

#[test]
fn what_is_not_set_is_told_with_its_place_and_a_way_out() {
    assert_eq!(
        value("${UNSET}"),
        text(
            "problem: error: a.yml:4:4: `v` uses `${UNSET}`, which is not set\n\
             hint: set the environment variable `UNSET`, add it to the keystore, or give a \
             default: `${UNSET:default}`"
        )
    );
    let table = [
        ("x${EMPTY}", "`v` uses `${EMPTY}`, which is empty"),
        ("'${UNSET:?give me ${HOST}}'", "`v` needs `${UNSET}`: give me es1"),
        ("${UNSET:${ALSO}}", "`v` uses `${ALSO}`, which is not set"),
        ("'${HOST'", "`v` has a `${` without its `}`"),
        ("'${}'", "`v` has a variable without a name"),
        ("x${map}", "`v` puts a map into a text"),
    ];
    for (written, expected) in table {
        let Value::String(problem) = value(written) else { panic!("{written} has a value") };
        assert!(problem.contains(expected), "{written}: {problem}");
    }
}

#[test]
fn a_circle_falls_back_to_the_environment_or_is_told() {
    let root = expanded("self: ${self}\na: ${b}\nb: ${c}x\nc: ${a}\nm: {n: '${m}'}");
    let find = |key: &str| tree::find(&root, key).unwrap();
    assert_eq!(find("self").to_value(), text("environment of self"));
    let problem = find("a").unresolved_problem("a").unwrap();
    assert_eq!(problem.message, "`a` refers to itself: `b` → `c` → `a` → `b`");
    assert!(find("m.n").unresolved_problem("m.n").is_some() || find("m.n").as_map().is_some());
}

#[test]
fn settings_reached_through_references_are_found() {
    let root = expanded("a: {b: 1}\nc: ${a}\nd: ${c.b}");
    assert_eq!(tree::find(&root, "d").unwrap().to_value(), Value::Int(1));
}

#[test]
fn settings_that_repeat_each_other_cannot_fill_the_memory() {
    let mut yaml = "a0: xxxxxxxxxxxxxxxx\n".to_owned();
    for level in 1..40 {
        yaml.push_str(&format!("a{level}: '${{a{0}}}${{a{0}}}'\n", level - 1));
    }
    let root = expanded(&yaml);
    let problem = tree::find(&root, "a39").unwrap().unresolved_problem("a39").unwrap();
    assert!(problem.message.contains("grow without bound"), "{problem}");

    let mut yaml = "b0: [x, x]\n".to_owned();
    for level in 1..40 {
        yaml.push_str(&format!("b{level}: ['${{b{0}}}', '${{b{0}}}']\n", level - 1));
    }
    assert!(expanded(&yaml).measure().weight < 2_000_000);
}

#[test]
fn a_template_is_expanded_when_its_values_are_known() {
    let yaml =
        "path.data: /d\ntemplate: {hosts: ['${data.host}:${data.port:80}'], p: '${path.data}'}";
    let settings = Settings::parse("a.yml", yaml).unwrap();
    let template = tree::find(settings.node(), "template").unwrap();
    let known = |name: &str| (name == "data.host").then(|| "h1".to_owned());
    let node = settings.expand(template, &known, &|_| None);
    let settings = settings.with_root(node);
    let problems = Problems::new();
    let section = settings.root(&problems);
    assert_eq!(section.strings("hosts").required(), ["h1:80"]);
    assert_eq!(section.string("p").required(), "/d");
    section.finish();
    assert!(problems.is_empty(), "{problems}");
}

#[test]
fn variables_that_are_not_set_are_found_in_messages() {
    let root = expanded("a: ${ABSENT}\nb: 'x ${ABSENT}'\nc: ${OTHER}\nd: ${EMPTY}\ne: ${HOST}");
    let map = root.as_map().unwrap();
    let problem = |key: &str| map.get(key).unwrap().value.unresolved_problem(key);
    let text: Vec<String> = ["a", "b", "c", "d", "e"]
        .into_iter()
        .filter_map(problem)
        .map(|it| it.to_string())
        .collect();
    assert_eq!(unset_variables(&text.join("\n")), ["ABSENT", "OTHER"], "{text:?}");
}

#[test]
fn secrets_of_kubernetes_wait_for_autodiscover_also_with_a_default() {
    let variable = "${kubernetes.shop.login.token:none}";
    let root = expanded(&format!(
        "filebeat.autodiscover.t: '{variable}'\noutput.x: '{variable}'\nfilebeat.autodiscover.o: '${{other.b.c.d:x}}'"
    ));
    let at = |path: &str| tree::find(&root, path).unwrap().clone();
    assert!(at("filebeat.autodiscover.t").is_unresolved());
    assert_eq!(at("output.x").to_value(), text("none"));
    assert_eq!(at("filebeat.autodiscover.o").to_value(), text("x"));
}

#[test]
fn secrets_of_the_keystore_are_never_shown() {
    let root = expanded("a: ${SECRET}\nb: 'x ${SECRET}'\nc: ${a}");
    let yaml = crate::export::to_yaml(&root);
    assert_eq!(yaml, "a: xxxxx\nb: xxxxx\nc: xxxxx\n");
    assert!(!format!("{root:?}").contains("s3cr"));
}

proptest! {
    #[test]
    fn random_templates_never_panic(text in "[${}:?+a.0,\\[\\]'\" ]{0,40}") {
        let quoted = text.replace('\'', "''");
        expanded(&format!("a: '{quoted}'\n0: '{quoted}'\na0: ['{quoted}']"));
    }
}
