//! From one node to one typed value. Each function returns what it expected if it refuses.

use crate::node::{Content, Node};
use crate::setting::{Place, Refusal};
use crate::units::{self, SignedDuration};
use crate::{scalar, tree};
use std::collections::BTreeMap;
use std::time::Duration;

pub(crate) const BOOL: &str = "`true` or `false`";
pub(crate) const WHOLE: &str = "a whole number";
pub(crate) const NUMBER: &str = "a number";
pub(crate) const TEXT: &str = "a text";
pub(crate) const TEXTS: &str = "a list of texts";
pub(crate) const PATHS: &str = "a list of paths";
pub(crate) const DURATION: &str = "a duration like `30s`, `5m`, `1h30m`, `100ms`";
pub(crate) const SIZE: &str = "a size like `10MiB`, `512KB` or a number of bytes";
pub(crate) const PERMISSIONS: &str = "permissions in octal, like `0640`";
pub(crate) const TEXT_MAP: &str = "a map of names to texts";

fn expected<T>(what: &str) -> Result<T, Refusal> {
    Err(Refusal::Expected(what.to_owned()))
}

/// Scalars as written in quotes or in the keystore count like unquoted ones.
fn plain(node: &Node) -> Content {
    match (&node.content, &node.text) {
        (Content::String, Some(text)) => scalar::resolve(text.trim()),
        (content, _) => content.clone(),
    }
}

pub(crate) fn boolean(node: &Node) -> Result<bool, Refusal> {
    match (plain(node), &node.content, node.text.as_deref()) {
        (Content::Bool(value), ..) => Ok(value),
        // A text, as Go's `strconv.ParseBool` has it besides.
        (_, Content::String, Some("1" | "t" | "T")) => Ok(true),
        (_, Content::String, Some("0" | "f" | "F")) => Ok(false),
        _ => expected(BOOL),
    }
}

/// A whole number that fits `T`; `1e3` and `5.0` are whole.
pub(crate) fn whole<T: TryFrom<i128>>(node: &Node) -> Result<T, Refusal> {
    let number = match plain(node) {
        Content::Int(value) => i128::from(value),
        Content::UInt(value) => i128::from(value),
        // Beyond 2^53 a float is not exact.
        Content::Float(value) if value.fract() == 0.0 && value.abs() < 9e15 => value as i128,
        _ => return expected(WHOLE),
    };
    match T::try_from(number) {
        Ok(value) => Ok(value),
        Err(_) if number < 0 && T::try_from(-1).is_err() => {
            Err(Refusal::Because("it cannot be negative".to_owned()))
        }
        Err(_) => Err(Refusal::Because("it is too large".to_owned())),
    }
}

pub(crate) fn float(node: &Node) -> Result<f64, Refusal> {
    match plain(node) {
        Content::Int(value) => Ok(value as f64),
        Content::UInt(value) => Ok(value as f64),
        Content::Float(value) => Ok(value),
        _ => expected(NUMBER),
    }
}

/// The original text of a scalar, or of a list from the environment (`a,b` may be a password).
pub(crate) fn text(node: &Node) -> Result<&str, Refusal> {
    match &node.text {
        Some(text) => Ok(text),
        None => expected(TEXT),
    }
}

pub(crate) fn duration(node: &Node) -> Result<Duration, Refusal> {
    units::not_negative(signed_duration(node)?).map_err(Refusal::Expected)
}

/// A number counts by its value, as in Filebeat: `0x10` and `1_000` are seconds. In quotes they are texts.
pub(crate) fn signed_duration(node: &Node) -> Result<SignedDuration, Refusal> {
    let parsed = match node.content {
        Content::Int(value) => units::seconds(i128::from(value) * 1_000_000_000),
        Content::UInt(value) => units::seconds(i128::from(value) * 1_000_000_000),
        Content::Float(value) if !value.is_finite() => return expected(DURATION),
        Content::Float(value) => {
            let exact = text(node).ok().and_then(|text| units::parse_signed_duration(text).ok());
            exact.map_or_else(|| units::seconds((value * 1e9) as i128), Ok)
        }
        _ => {
            let Ok(text) = text(node) else { return expected(DURATION) };
            units::parse_signed_duration(text)
        }
    };
    parsed.map_err(Refusal::Expected)
}

pub(crate) fn size(node: &Node) -> Result<u64, Refusal> {
    match &node.content {
        // `1_000` or `0x400` are sizes by their value, not by their text.
        Content::Int(value) if *value >= 0 => Ok(value.unsigned_abs()),
        Content::UInt(value) => Ok(*value),
        _ => {
            let Ok(text) = text(node) else { return expected(SIZE) };
            units::parse_size(text).map_err(Refusal::Expected)
        }
    }
}

pub(crate) fn permissions(node: &Node) -> Result<u32, Refusal> {
    let Ok(text) = text(node) else { return expected(PERMISSIONS) };
    units::parse_permissions(text).map_err(Refusal::Expected)
}

/// Texts of a list; a single scalar is a list of one, an inner list (from a variable that stands
/// for several) is taken apart. Wrong items are reported one by one.
pub(crate) fn texts(node: &Node, place: &Place<'_>) -> Result<Vec<String>, Refusal> {
    let mut found = Vec::new();
    match &node.content {
        Content::List(list) => {
            let mut right = true;
            for (index, item) in list.iter().enumerate() {
                let path = format!("{}[{index}]", place.path);
                right &= add_texts(item, &path, place, &mut found);
            }
            if right { Ok(found) } else { Err(Refusal::Reported) }
        }
        Content::Map(_) => expected(TEXTS),
        _ => {
            found.push(text(node)?.to_owned());
            Ok(found)
        }
    }
}

/// Paths of a list, as [`texts`]: a bare number or `true` is not a path.
pub(crate) fn paths(node: &Node, place: &Place<'_>) -> Result<Vec<String>, Refusal> {
    let is_path = |node: &Node| matches!(node.content, Content::String | Content::Null);
    match &node.content {
        Content::List(list) => {
            let mut right = true;
            for (index, item) in list.iter().enumerate() {
                if item.text.is_some() && item.as_list().is_none() && !is_path(item) {
                    let path = format!("{}[{index}]", place.path);
                    let message = format!("`{path}` is {}; expected a path", item.shown_at(&path));
                    place.problems.push(crate::Problem::error(item.position.clone(), message));
                    right = false;
                }
            }
            if right { texts(node, place) } else { Err(Refusal::Reported) }
        }
        _ if is_path(node) => texts(node, place),
        _ => expected(PATHS),
    }
}

fn add_texts(item: &Node, path: &str, place: &Place<'_>, found: &mut Vec<String>) -> bool {
    if let Some(problem) = item.unresolved_problem(path) {
        place.problems.push(problem);
        return false;
    }
    match (&item.content, &item.text) {
        (Content::List(inner), Some(_)) => {
            inner.iter().fold(true, |right, item| right & add_texts(item, path, place, found))
        }
        (Content::Null | Content::Map(_) | Content::List(_), _) | (_, None) => {
            let message = format!("`{path}` is {}; expected a text", item.shown_at(path));
            place.problems.push(crate::Problem::error(item.position.clone(), message));
            false
        }
        (_, Some(text)) => {
            found.push(text.clone());
            true
        }
    }
}

/// Names and texts. Names may hold dots: the levels that were made of them are joined again.
pub(crate) fn text_map(
    node: &Node,
    place: &Place<'_>,
) -> Result<BTreeMap<String, String>, Refusal> {
    let mut found = BTreeMap::new();
    if !matches!(node.content, Content::Map(_)) {
        return expected(TEXT_MAP);
    }
    let mut right = true;
    for_each_leaf(node, "", &mut |name, leaf| {
        let path = tree::join(&place.path, name);
        if let Some(problem) = leaf.unresolved_problem(&path) {
            place.problems.push(problem);
            right = false;
            return;
        }
        match &leaf.text {
            Some(text) => {
                found.insert(name.to_owned(), text.clone());
            }
            None => {
                let message = format!("`{path}` is {}; expected a text", leaf.shown_at(&path));
                place.problems.push(crate::Problem::error(leaf.position.clone(), message));
                right = false;
            }
        }
    });
    if right { Ok(found) } else { Err(Refusal::Reported) }
}

/// Calls `each` with the dotted name of every value below `node` that is not a map with keys.
/// Items of the list at the top (from keys `0`, `1`, …) have their number as name.
pub(crate) fn for_each_leaf<'a>(node: &'a Node, name: &str, each: &mut dyn FnMut(&str, &'a Node)) {
    match &node.content {
        Content::Map(map) if !map.is_empty() => {
            for entry in map.iter() {
                for_each_leaf(&entry.value, &tree::join(name, &entry.key), each);
            }
        }
        Content::Map(_) if name.is_empty() => {}
        Content::List(list) if name.is_empty() => {
            for (index, item) in list.iter().enumerate() {
                for_each_leaf(item, &index.to_string(), each);
            }
        }
        _ => each(name, node),
    }
}

/// Reports every unresolved variable in `node`; returns whether there was none.
pub(crate) fn report_unresolved(node: &Node, place: &Place<'_>) -> bool {
    let mut resolved = true;
    if let Some(problem) = node.unresolved_problem(&place.path) {
        place.problems.push(problem);
        resolved = false;
    }
    let mut descend = |child: &Node, path: String| {
        let inner = Place { path, ..place.clone() };
        resolved &= report_unresolved(child, &inner);
    };
    match &node.content {
        Content::List(list) => {
            for (index, item) in list.iter().enumerate() {
                descend(item, format!("{}[{index}]", place.path));
            }
        }
        Content::Map(map) => {
            for entry in map.iter() {
                descend(&entry.value, tree::join(&place.path, &entry.key));
            }
        }
        _ => {}
    }
    resolved
}
