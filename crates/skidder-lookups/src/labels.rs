//! Labels and annotations, whose names have dots.

use skidder_event::{Map, Value};

/// Puts a label under its name. With `dedot` its dots are `_`; otherwise they make objects, and where a name is both a
/// value and an object (`app` and `app.kubernetes.io/name`) the value is `app.value`, as in Filebeat.
pub(crate) fn put(labels: &mut Map, name: &str, value: &str, dedot: bool) {
    if dedot {
        labels.insert(&name.replace('.', "_"), value);
    } else {
        put_nested(labels, name, value);
    }
}

fn put_nested(map: &mut Map, name: &str, value: &str) {
    let Some((head, rest)) = name.split_once('.') else {
        match map.get(name) {
            Some(Value::Map(_)) => put_nested(map, &format!("{name}.value"), value),
            _ => map.insert(name, value),
        }
        return;
    };
    let mut inner = match map.get(head) {
        Some(Value::Map(inner)) => inner.clone(),
        Some(old) => {
            let mut inner = Map::new();
            inner.insert("value", old.clone());
            inner
        }
        None => Map::new(),
    };
    put_nested(&mut inner, rest, value);
    map.insert(head, inner);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_a_value_and_an_object_is_both() {
        let mut dedotted = Map::new();
        put(&mut dedotted, "a.b/c", "1", true);
        assert_eq!(dedotted.get("a_b/c"), Some(&Value::from("1")));
        for names in [["a", "a.b"], ["a.b", "a"]] {
            let mut labels = Map::new();
            for name in names {
                put(&mut labels, name, name, false);
            }
            assert_eq!(labels.get_path("a.value"), Some(&Value::from("a")));
            assert_eq!(labels.get_path("a.b"), Some(&Value::from("a.b")));
        }
    }
}
