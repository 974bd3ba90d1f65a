//! The table of a group for the documentation.

use super::{Declared, Group};
use serde_json::json;

/// The table of a group in Markdown: option, default, meaning. The names are those of the group with `prefix` before
/// them.
pub fn table(group: &'static Group, prefix: &str) -> String {
    let mut table = "| option | default | meaning |\n|---|---|---|\n".to_owned();
    add_rows(group, prefix, &mut table);
    table
}

fn add_rows(group: &'static Group, prefix: &str, table: &mut String) {
    for group in group.all().into_iter().filter(|group| !group.is_common) {
        for key in group.keys {
            let inline = key.inner().filter(|inner| inner.group.is_inline && !inner.is_list);
            if inline.is_none() || !is_only_map(*key) {
                table.push_str(&row(*key, prefix));
            }
            if let Some(inner) = inline {
                add_rows(inner.group, &format!("{prefix}{}.", key.spec().name), table);
            }
        }
    }
}

/// It is a map, and neither a list of maps nor a map or a word.
fn is_only_map(key: &dyn Declared) -> bool {
    key.inner().is_some_and(|inner| !inner.is_list) && key.schema() == json!({})
}

fn row(key: &dyn Declared, prefix: &str) -> String {
    let spec = key.spec();
    let below = if is_only_map(key) { ".*" } else { "" };
    let mut name = format!("`{prefix}{}{below}`", spec.name);
    if !spec.alias.is_empty() {
        name.push_str(&format!(" (or `{prefix}{}`)", spec.alias));
    }
    if spec.is_ours {
        name.push_str(" (**ours**)");
    }
    let default = match (spec.is_required, spec.default_words, key.default_text()) {
        (true, "", _) => "required".to_owned(),
        (_, "", Some(text)) if text.is_empty() => "–".to_owned(),
        (_, "", Some(text)) => format!("`{text}`"),
        (_, "", None) => "–".to_owned(),
        (_, words, _) => words.to_owned(),
    };
    let default = match spec.differs {
        "" => default,
        differs => format!("{default} ({differs})"),
    };
    format!("| {name} | {default} | {} |\n", spec.about)
}
