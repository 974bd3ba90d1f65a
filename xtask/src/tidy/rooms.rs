//! The modules at the top of the program know each other without a circle, as crates do.

use super::source;
use crate::repository;
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// Where they are.
const PROGRAM: &str = "crates/skidder/src/";

/// Looks for circles.
pub(super) fn check(offences: &mut Vec<String>) -> Result<()> {
    let mut files = Vec::new();
    for path in repository::tracked(&[".rs"])? {
        let shown = path.to_string_lossy().into_owned();
        let Some(inside) = shown.strip_prefix(PROGRAM) else { continue };
        if inside == "main.rs" || source::is_test_file(&shown) {
            continue;
        }
        let text = fs::read_to_string(repository::root().join(&path))
            .with_context(|| format!("cannot read `{shown}`"))?;
        files.push((inside.to_owned(), source::blank_comments_and_strings(&text)));
    }
    if let Some(circle) = circle(&known(&files)) {
        offences.push(format!("{PROGRAM}: these modules know each other in a circle: {circle}"));
    }
    Ok(())
}

/// The module at the top that a file belongs to.
fn room(inside: &str) -> &str {
    inside.split(['/', '.']).next().unwrap_or(inside)
}

/// Which module names which others.
fn known(files: &[(String, String)]) -> BTreeMap<&str, BTreeSet<&str>> {
    let all: BTreeSet<&str> = files.iter().map(|(path, _)| room(path)).collect();
    let mut known: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (path, text) in files {
        let from = room(path);
        for (at, _) in text.match_indices("crate::") {
            let rest = &text[at + "crate::".len()..];
            let names = match rest.strip_prefix('{') {
                // The names at the first level of a list.
                Some(list) => list.split('}').next().unwrap_or(list).split(',').collect(),
                None => vec![rest],
            };
            let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
            for name in names {
                let name = name.trim_start();
                let end = name.find(|letter| !is_name(letter)).unwrap_or(name.len());
                if let Some(to) = all.get(&name[..end]).filter(|to| **to != from) {
                    known.entry(from).or_default().insert(to);
                }
            }
        }
    }
    known
}

/// One circle, if there is any: the modules left after removing those that know no other, again and again.
fn circle(known: &BTreeMap<&str, BTreeSet<&str>>) -> Option<String> {
    let mut left = known.clone();
    loop {
        let before = left.len();
        let names: BTreeSet<&str> = left.keys().copied().collect();
        left.retain(|_, to| to.iter().any(|to| names.contains(to)));
        if left.len() == before {
            break;
        }
    }
    let mut at = *left.keys().next()?;
    let mut way = vec![at];
    loop {
        at = left[at].iter().find(|to| left.contains_key(**to))?;
        if let Some(start) = way.iter().position(|seen| *seen == at) {
            way.push(at);
            return Some(way[start..].join(" -> "));
        }
        way.push(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circle_of(files: &[(&str, &str)]) -> Option<String> {
        let files: Vec<_> =
            files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        circle(&known(&files))
    }

    #[test]
    fn a_circle_is_found_in_any_form_of_import() {
        let straight = [("a.rs", "use crate::b::X;"), ("b/c.rs", "use crate::{d, unknown::Y};")];
        assert_eq!(circle_of(&straight), None);
        let back =
            [("a.rs", "use crate::b::X;"), ("b/c.rs", "use crate::{d, a::Y};"), ("d.rs", "")];
        assert_eq!(circle_of(&back).unwrap(), "a -> b -> a");
        let path =
            [("a.rs", "crate::b::f()"), ("b.rs", "crate::c::f()"), ("c.rs", "crate::b::g()")];
        assert_eq!(circle_of(&path).unwrap(), "b -> c -> b");
        assert_eq!(circle_of(&[("a/x.rs", "crate::a::y()"), ("a/y.rs", "crate::a::x()")]), None);
    }
}
