//! The nearest known name for a misspelt one.

/// The name of `known` that was most likely meant by `written`, if any is near enough: at most one
/// edit for every three characters. Case, `-` and `_` do not count.
pub fn nearest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let folded = fold(written);
    let edits_max = (folded.len() / 3).max(1);
    known
        .into_iter()
        .map(|name| (distance(&folded, &fold(name)), name))
        .filter(|(edits, name)| *edits <= edits_max && *edits < name.chars().count())
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, name)| name)
}

/// Whether the setting at this path deletes files or state, by its name: `clean_inactive`, `delete`, `delete.enabled`.
pub(crate) fn deletes(path: &str) -> bool {
    let (above, name) = path.rsplit_once('.').unwrap_or(("", path));
    let starts = |name: &str| ["clean", "delet"].iter().any(|start| name.starts_with(start));
    let turns_on = name == "enabled" && starts(above.rsplit('.').next().unwrap_or_default());
    starts(name) || turns_on
}

fn fold(name: &str) -> Vec<char> {
    name.chars()
        .filter(|character| !matches!(character, '_' | '-'))
        .map(|character| character.to_ascii_lowercase())
        .take(100)
        .collect()
}

/// Edits between two words, as [`nearest`] counts them.
pub(crate) fn distance_between(left: &str, right: &str) -> usize {
    distance(&fold(left), &fold(right))
}

/// Edits between two words; two neighbours swapped count as one.
fn distance(left: &[char], right: &[char]) -> usize {
    let width = right.len() + 1;
    let mut before: Vec<usize> = vec![0; width];
    let mut previous: Vec<usize> = (0..width).collect();
    for (row, character) in left.iter().enumerate() {
        let mut current = vec![row + 1; width];
        for (column, other) in right.iter().enumerate() {
            let replaced = previous[column] + usize::from(character != other);
            let mut best = replaced.min(previous[column + 1] + 1).min(current[column] + 1);
            let swapped =
                row > 0 && column > 0 && *character == right[column - 1] && left[row - 1] == *other;
            if swapped {
                best = best.min(before[column - 1] + 1);
            }
            current[column + 1] = best;
        }
        before = previous;
        previous = current;
    }
    previous[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_delete_are_known_by_their_names() {
        for path in ["clean_inactive", "a.clean_removed", "delete", "a[0].delete.enabled"] {
            assert!(deletes(path), "{path}");
        }
        for path in ["enabled", "close", "delete.grace_period", "clean.x.enabled"] {
            assert!(!deletes(path), "{path}");
        }
    }

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        let known = ["scan_frequency", "paths", "id", "enabled", "max_bytes", "check_interval"];
        let table = [
            ("scan_frequenzy", Some("scan_frequency")),
            ("scanFrequency", Some("scan_frequency")),
            ("path", Some("paths")),
            ("pahts", Some("paths")),
            ("Enabled", Some("enabled")),
            ("max-bytes", Some("max_bytes")),
            ("di", Some("id")),
            ("x", None),
            ("tags", None),
            ("", None),
        ];
        for (written, expected) in table {
            assert_eq!(nearest(written, known), expected, "{written}");
        }
    }
}
