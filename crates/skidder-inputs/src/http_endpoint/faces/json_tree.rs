//! A tree of JSON of any depth: what is deeper than a limit is cut off, so that one deep value costs no others.
//!
//! `serde_json` refuses a body with more than 128 levels as a whole.

use super::super::syntax::{skip_space, value_end};
use serde_json::{Map, Value};

/// Stands for what is deeper; no face takes it where objects and lists may be.
const CUT_OFF: Value = Value::Bool(true);

/// Reads a body, which is one value. Objects and lists below `levels` others are `true`.
///
/// # Errors
/// It is no JSON.
pub(super) fn read(body: &[u8], levels: u32) -> Result<Value, String> {
    let start = skip_space(body, 0);
    let end = value_end(body, start)?;
    if skip_space(body, end) < body.len() {
        return Err(format!("something follows the value at byte {end}"));
    }
    Tree { body, at: start }.value(levels)
}

/// What is left of a body that is valid.
struct Tree<'a> {
    body: &'a [u8],
    at: usize,
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
        while self.next_item() {
            let name = self.leaf()?;
            self.at = skip_space(self.body, skip_space(self.body, self.at) + 1);
            let value = self.value(levels)?;
            if let Value::String(name) = name {
                members.insert(name, value);
            }
        }
        Ok(Value::Object(members))
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
        let value = serde_json::from_slice(&self.body[self.at..end]);
        self.at = end;
        value.map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_that_of_another_reader() {
        for text in [
            "{}",
            " [ ] ",
            "[[],{},[{}]]",
            r#"{"a":{"b":[1,-2.5e3,"x\u00e9\"",true,null]} , "" : [ {"c":{}} , [] ]}"#,
            r#"{"a":1,"a":{"b":2}}"#,
            "7",
        ] {
            let expected: Value = serde_json::from_str(text).unwrap();
            assert_eq!(read(text.as_bytes(), 100), Ok(expected), "{text}");
        }
        for text in ["", "{", "{} {}", "[1,]", "{\"a\" 1}", "\"\\ud83d\"", "[\"\u{7}\"]"] {
            assert!(read(text.as_bytes(), 100).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_too_deep_is_cut_off() {
        let read = |text: &str, levels| read(text.as_bytes(), levels).unwrap().to_string();
        assert_eq!(read("[[[1]],{\"a\":{}},2]", 2), "[[true],{\"a\":true},2]");
        let deep = "[".repeat(5000) + &"]".repeat(5000);
        assert_eq!(read(&deep, 1), "[true]");
    }
}
