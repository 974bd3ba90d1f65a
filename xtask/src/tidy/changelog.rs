//! Each visible change leaves a fragment in `changelog.d/`.

use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

/// Kinds of changes: the last word of a fragment's name before `.md`.
const KINDS: [&str; 4] = ["added", "changed", "fixed", "removed"];

/// Checks that there are fragments, that they are named `SUBJECT.KIND.md`, and that they say something.
pub(super) fn check(folder: &Path, offences: &mut Vec<String>) -> Result<()> {
    let listed = match fs::read_dir(folder) {
        Ok(listed) => listed,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            offences.push("changelog.d: missing; each visible change leaves a fragment".to_owned());
            return Ok(());
        }
        Err(error) => return Err(error).context("cannot list `changelog.d`"),
    };
    let mut fragments = 0;
    for entry in listed {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name == "README.md" {
            continue;
        }
        fragments += 1;
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
    if fragments == 0 {
        offences.push("changelog.d: has no fragment".to_owned());
    }
    Ok(())
}

fn is_fragment(name: &str) -> bool {
    let stem = name.strip_suffix(".md").and_then(|stem| stem.rsplit_once('.'));
    stem.is_some_and(|(subject, kind)| !subject.is_empty() && KINDS.contains(&kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_fragment_tells_its_kind() {
        assert!(is_fragment("gzip-resume.added.md"));
        for name in ["gzip.md", "gzip.better.md", ".added.md", "gzip.added.txt"] {
            assert!(!is_fragment(name), "{name}");
        }
    }

    #[test]
    fn a_missing_or_empty_folder_is_an_offence() {
        let folder = tempfile::tempdir().unwrap();
        let mut offences = Vec::new();
        check(folder.path(), &mut offences).unwrap();
        check(&folder.path().join("none"), &mut offences).unwrap();
        assert_eq!(offences.len(), 2, "{offences:?}");
    }
}
