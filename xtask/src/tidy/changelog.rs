//! Fragments in `changelog.d/`: none before the first release, well-formed ones after it.

use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

/// Kinds of changes: the last word of a fragment's name before `.md`.
const KINDS: [&str; 4] = ["added", "changed", "fixed", "removed"];

/// Checks that fragments are named `SUBJECT.KIND.md` and are not empty. Before the first release there must be
/// none: `CHANGELOG.md` has one section, and fixes of unreleased code do not belong into it.
pub(super) fn check(root: &Path, offences: &mut Vec<String>) -> Result<()> {
    let changelog =
        fs::read_to_string(root.join("CHANGELOG.md")).context("cannot read `CHANGELOG.md`")?;
    let released = has_release(&changelog);
    for entry in fs::read_dir(root.join("changelog.d")).context("cannot list `changelog.d`")? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name == "README.md" {
            continue;
        }
        if !released {
            offences.push(format!(
                "changelog.d/{name}: nothing is released; edit the section of CHANGELOG.md instead"
            ));
        }
        if !is_fragment(&name) {
            offences.push(format!(
                "changelog.d/{name}: is not named SUBJECT.KIND.md with a KIND of {}",
                KINDS.join(", ")
            ));
        }
        if fs::read_to_string(entry.path())?.trim().is_empty() {
            offences.push(format!("changelog.d/{name}: is empty"));
        }
    }
    Ok(())
}

/// Whether a section of `changelog` has the number of a version: `## [0.1.0] - 2026-12-01` or `## 0.1.0`.
fn has_release(changelog: &str) -> bool {
    changelog.lines().filter_map(|line| line.strip_prefix("## ")).any(|title| {
        title.trim_start_matches('[').starts_with(|first: char| first.is_ascii_digit())
    })
}

fn is_fragment(name: &str) -> bool {
    let stem = name.strip_suffix(".md").and_then(|stem| stem.rsplit_once('.'));
    stem.is_some_and(|(subject, kind)| !subject.is_empty() && KINDS.contains(&kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_fragment_shows_its_kind() {
        assert!(is_fragment("gzip-resume.added.md"));
        for name in ["gzip.md", "gzip.better.md", ".added.md", "gzip.added.txt"] {
            assert!(!is_fragment(name), "{name}");
        }
    }

    #[test]
    fn a_release_is_a_section_with_a_number() {
        assert!(has_release("# Changelog\n\n## [0.1.0] - 2026-12-01\n"));
        assert!(has_release("## 0.1.0\n"));
        assert!(!has_release("# Changelog\n\n## First version (unreleased)\n\n### 1 thing\n"));
    }

    #[test]
    fn fragments_are_offences_until_there_is_a_release() {
        let root = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(root.path().join(name), text).unwrap();
        fs::create_dir(root.path().join("changelog.d")).unwrap();
        write("CHANGELOG.md", "## First version (unreleased)\n");
        write("changelog.d/README.md", "what a fragment is");
        write("changelog.d/gzip.added.md", "gzip");

        let mut offences = Vec::new();
        check(root.path(), &mut offences).unwrap();
        assert_eq!(offences.len(), 1, "{offences:?}");

        write("CHANGELOG.md", "## First version\n\n## 0.1.0\n");
        offences.clear();
        check(root.path(), &mut offences).unwrap();
        assert!(offences.is_empty(), "{offences:?}");

        write("changelog.d/empty.better.md", " ");
        check(root.path(), &mut offences).unwrap();
        assert_eq!(offences.len(), 2, "{offences:?}");
    }
}
