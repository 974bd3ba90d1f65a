//! `docs/hints.md`: its tables are those of the declarations, its configurations are valid, its tests exist.

mod common;

use common::read;
use serde_json::Value as Json;
use skidder_autodiscover::AUTODISCOVER;
use skidder_config::table;
use std::fs;
use std::path::{Path, PathBuf};

const END: &str = "<!-- end -->";

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/hints.md")
}

#[test]
fn tables_are_those_of_the_declarations() {
    let groups = AUTODISCOVER.reachable();
    let text = fs::read_to_string(page()).unwrap();
    let mut written = String::new();
    let mut rest = text.as_str();
    while let Some((before, behind)) = rest.split_once("<!-- settings: ") {
        let (name, behind) = behind.split_once(" -->").unwrap();
        let (_, behind) = behind.split_once(END).unwrap();
        let (id, prefix) = name.split_once(' ').unwrap_or((name, ""));
        let group =
            groups.iter().find(|group| group.id == id).unwrap_or_else(|| panic!("no group `{id}`"));
        written += &format!("{before}<!-- settings: {name} -->\n\n{}\n{END}", table(group, prefix));
        rest = behind;
    }
    written += rest;
    if std::env::var_os("SKIDDER_UPDATE").is_some() {
        fs::write(page(), written).unwrap();
    } else {
        assert!(
            text == written,
            "run this test with `SKIDDER_UPDATE=1`, which writes docs/hints.md"
        );
    }
}

#[test]
fn configurations_are_valid() {
    let text = fs::read_to_string(page()).unwrap();
    let blocks: Vec<&str> = text.split("```").skip(1).step_by(2).collect();
    assert!(blocks.len() >= 2);
    for block in blocks {
        let block = block.strip_prefix("yaml").unwrap_or(block).replace("${NODE_NAME}", "n1");
        let (made, problems) = read(&block);
        assert!(made.is_some(), "{block}\n{problems}");
        assert_eq!(problems, "", "{block}");
    }
}

#[test]
fn tests_of_hints_exist() {
    let text = fs::read_to_string(page()).unwrap();
    let cases: Vec<Json> = serde_json::from_str(include_str!("golden/filebeat-9.6.json")).unwrap();
    let state = include_str!("state.rs");
    let (_, rest) = text.split_once("| hint | effect | tests |\n|---|---|---|\n").unwrap();
    let (rows, _) = rest.split_once("\n\n").unwrap();
    assert!(rows.lines().count() >= 12);
    for row in rows.lines() {
        let tests = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        for name in tests.split('`').skip(1).step_by(2) {
            let start = name.trim_end_matches('…');
            let is_case = cases.iter().any(|case| {
                let (_, known) = case["name"].as_str().unwrap().split_once(": ").unwrap();
                known == name || start != name && known.starts_with(start)
            });
            assert!(
                is_case || state.contains(&format!("fn {name}()")),
                "there is no test `{name}`"
            );
        }
    }
}
