//! A tree of JSON of any depth: what is deeper than a limit is cut off, so that one deep value costs no others.
//!
//! `serde_json` refuses a body as a whole that has more than 128 levels, half a surrogate pair, or a number that `f64`
//! cannot have.

use super::super::syntax::{skip_space, value_end};
use serde_json::{Map, Value};
use skidder_parse::json::string_of;

/// Stands for what is deeper or too large, and for an object that has a name twice, of which one value would
/// be lost; no face takes it where objects, lists and numbers may be.
const CUT_OFF: Value = Value::Bool(true);

/// Reads a body, which is one value. Objects and lists below `levels` others, and objects that have a name
/// twice, are `true`. Members get the names that `name_of` makes of theirs.
///
/// # Errors
/// It is no JSON.
pub(super) fn read(
    body: &[u8],
    levels: u32,
    name_of: fn(String) -> String,
) -> Result<Value, String> {
    let start = skip_space(body, 0);
    let end = value_end(body, start)?;
    if skip_space(body, end) < body.len() {
        return Err(format!("something follows the value at byte {end}"));
    }
    Tree { body, at: start, name_of }.value(levels)
}

/// What is left of a body that is valid.
struct Tree<'a> {
    body: &'a [u8],
    at: usize,
    name_of: fn(String) -> String,
}

impl Tree<'_> {
    fn value(&mut self, levels: u32) -> Result<Value, String> {
        match self.body[self.at] {
            b'{' | b'[' if levels == 0 => {
                self.at = value_end(self.body, self.at)?;
                Ok(CUT_OFF)
            }
            b'{' => self.object(levels - 1),
            b'[' => self.list(levels - 1),
            _ => self.leaf(),
        }
    }

    fn object(&mut self, levels: u32) -> Result<Value, String> {
        let mut members = Map::new();
        let mut is_doubled = false;
        while self.next_item() {
            let name = self.leaf()?;
            self.at = skip_space(self.body, skip_space(self.body, self.at) + 1);
            let value = self.value(levels)?;
            if let Value::String(name) = name {
                is_doubled |= members.insert((self.name_of)(name), value).is_some();
            }
        }
        Ok(if is_doubled { CUT_OFF } else { Value::Object(members) })
    }

    fn list(&mut self, levels: u32) -> Result<Value, String> {
        let mut items = Vec::new();
        while self.next_item() {
            items.push(self.value(levels)?);
        }
        Ok(Value::Array(items))
    }

    /// Goes on from a bracket, or from behind an item, to the next item; `false` behind the closing bracket.
    fn next_item(&mut self) -> bool {
        self.at = skip_space(self.body, self.at);
        if matches!(self.body[self.at], b'{' | b'[' | b',') {
            self.at = skip_space(self.body, self.at + 1);
        }
        let is_there = !matches!(self.body[self.at], b'}' | b']');
        self.at += usize::from(!is_there);
        is_there
    }

    fn leaf(&mut self) -> Result<Value, String> {
        let end = value_end(self.body, self.at)?;
        let text = &self.body[self.at..end];
        self.at = end;
        if text[0] == b'"' {
            return string_of(text).map(Value::String).map_err(|error| error.to_string());
        }
        // A number may be beyond all that `f64` has.
        Ok(serde_json::from_slice(text).unwrap_or(CUT_OFF))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::convert::identity;

    #[test]
    fn a_tree_is_that_of_another_reader() {
        for text in [
            "{}",
            " [ ] ",
            "[[],{},[{}]]",
            r#"{"a":{"b":[1,-2.5e3,"x\u00e9\"",true,null]} , "" : [ {"c":{}} , [] ]}"#,
            "7",
        ] {
            let expected: Value = serde_json::from_str(text).unwrap();
            assert_eq!(read(text.as_bytes(), 100, identity), Ok(expected), "{text}");
        }
        for text in ["", "{", "{} {}", "[1,]", "{\"a\" 1}", "[\"\u{7}\"]"] {
            assert!(read(text.as_bytes(), 100, identity).is_err(), "{text}");
        }
    }

    #[test]
    fn an_object_that_has_a_name_twice_is_none() {
        type Names = fn(String) -> String;
        let read = |text: &str, names: Names| read(text.as_bytes(), 100, names).unwrap();
        let text = r#"{"a":1,"b":[{"\u0061":[1],"a":[2]},{"a":{"A":3}}]}"#;
        let expected = json!({"a": 1, "b": [true, {"a": {"A": 3}}]});
        assert_eq!(read(text, identity), expected);
        let lower: Names = |name| name.to_ascii_lowercase();
        assert_eq!(
            read(r#"[{"A":1,"B":{"a":2}},{"A":1,"a":2}]"#, lower),
            json!([{"a": 1, "b": {"a": 2}}, true])
        );
    }

    #[test]
    fn one_value_that_is_no_unicode_or_too_large_spoils_no_others() {
        let read = |text: &[u8]| read(text, 100, identity).unwrap();
        let texts = br#"["\ud83d", "a\ude00\n\ud83d\ude00b", 1]"#;
        assert_eq!(read(texts), json!(["\u{fffd}", "a\u{fffd}\n\u{1f600}b", 1]));
        assert_eq!(read(b"{\"a\xff\": \"\xc3\"}"), json!({"a\u{fffd}": "\u{fffd}"}));
        assert_eq!(read(b"[1e999, -1e999, 2]"), json!([true, true, 2]));
    }

    #[test]
    fn what_is_too_deep_is_cut_off() {
        let read =
            |text: &str, levels| read(text.as_bytes(), levels, identity).unwrap().to_string();
        assert_eq!(read("[[[1]],{\"a\":{}},2]", 2), "[[true],{\"a\":true},2]");
        let deep = "[".repeat(5000) + &"]".repeat(5000);
        assert_eq!(read(&deep, 1), "[true]");
    }
}
