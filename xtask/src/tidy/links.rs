//! Links of the documentation: files that are named must be there, and the headings that are pointed at too.

use crate::repository;
use anyhow::{Context, Result};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// A document: its anchors, and its links.
#[derive(Debug, Default)]
struct Document {
    /// Anchors of its headings, as GitHub makes them.
    anchors: BTreeSet<String>,
    /// Line and target of its links.
    links: Vec<(usize, String)>,
}

/// Checks all links of all tracked `.md` files that stay in the repository.
pub(super) fn check(offences: &mut Vec<String>) -> Result<()> {
    let root = repository::root();
    let mut documents = BTreeMap::new();
    for path in repository::tracked(&[".md"])? {
        let text = fs::read_to_string(root.join(&path))
            .with_context(|| format!("cannot read `{}`", path.display()))?;
        documents.insert(path, read(&text));
    }
    for (path, document) in &documents {
        // A fragment is read where it goes to: in CHANGELOG.md.
        let is_fragment = path.starts_with("changelog.d") && !path.ends_with("README.md");
        let read_at = if is_fragment { Path::new("CHANGELOG.md") } else { path };
        for (line, target) in &document.links {
            if let Some(why) =
                wrong(read_at, target, &documents, |path| fs::metadata(root.join(path)).is_ok())
            {
                offences.push(format!("{}:{line}: `{target}`: {why}", path.display()));
            }
        }
    }
    Ok(())
}

fn read(text: &str) -> Document {
    let mut document = Document::default();
    let mut heading: Option<String> = None;
    for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => {
                let anchor = anchor(&heading.take().unwrap_or_default());
                // The second of a name gets a number.
                let free = (0..).map(|number| match number {
                    0 => anchor.clone(),
                    _ => format!("{anchor}-{number}"),
                });
                let free = free.into_iter().find(|name| !document.anchors.contains(name));
                document.anchors.extend(free);
            }
            Event::Text(part) | Event::Code(part) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&part);
                }
            }
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                let line = text[..range.start].matches('\n').count() + 1;
                document.links.push((line, dest_url.into_string()));
            }
            _ => {}
        }
    }
    document
}

/// What GitHub makes of a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter_map(|character| match character {
        ' ' => Some('-'),
        '-' | '_' => Some(character),
        _ if character.is_alphanumeric() => Some(character),
        _ => None,
    });
    kept.flat_map(char::to_lowercase).collect()
}

/// The error of a link of the document at `from`.
fn wrong(
    from: &Path,
    target: &str,
    documents: &BTreeMap<PathBuf, Document>,
    is_there: impl Fn(&Path) -> bool,
) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = if file.is_empty() {
        from.to_path_buf()
    } else {
        normal(&from.parent().unwrap_or(Path::new("")).join(file))
    };
    if !is_there(&path) {
        return Some(format!("there is no `{}`", path.display()));
    }
    if anchor.is_empty() {
        return None;
    }
    match documents.get(&path) {
        Some(document) if document.anchors.contains(anchor) => None,
        Some(_) => Some(format!("`{}` has no heading `#{anchor}`", path.display())),
        None => Some(format!("`{}` is no document with headings", path.display())),
    }
}

/// The path without `..` that lead to a folder of the repository; those that lead out of it stay.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        let goes_up = part == Component::ParentDir && normal.file_name().is_some();
        if goes_up {
            normal.pop();
        } else {
            normal.push(part);
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_are_those_of_github() {
        for (heading, expected) in [
            ("Several outputs: `outputs` (ours)", "several-outputs-outputs-ours"),
            ("What works today, and what does not yet", "what-works-today-and-what-does-not-yet"),
            ("add_fields", "add_fields"),
        ] {
            let heading = heading.replace('`', "");
            assert_eq!(anchor(&heading), expected);
        }
    }

    #[test]
    fn dead_links_are_found_and_others_are_not() {
        let text = "# One\n\n## Two `x`\n\n## Two x\n\n[a](#two-x) [b](#two-x-1) [c](b.md#there)\n[d](https://x#y)\n\n\
                    ```\n[e](nowhere.md)\n```\n\n| a |\n|---|\n| [f](gone.md) |\n[g](b.md#no) [h](../up.md) [i](c.txt) [j](../../out.md)\n";
        let mut documents = BTreeMap::new();
        documents.insert(PathBuf::from("docs/a.md"), read(text));
        documents.insert(PathBuf::from("docs/b.md"), read("# There\n"));
        let there = |path: &Path| {
            documents.contains_key(path)
                || path == Path::new("docs/c.txt")
                || path == Path::new("up.md")
        };
        let from = Path::new("docs/a.md");
        let wrong: Vec<&str> = documents[from]
            .links
            .iter()
            .filter(|(_, target)| wrong(from, target, &documents, there).is_some())
            .map(|(_, target)| &**target)
            .collect();
        assert_eq!(wrong, ["gone.md", "b.md#no", "../../out.md"]);
        assert_eq!(documents[from].links[4], (16, "gone.md".to_owned()));
    }
}
