//! Files and functions that are over their limit: each may shrink, none may grow or be added.

use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Where the list is kept, from the root.
pub(super) const FILE: &str = ".config/tidy-ratchet.txt";
const HEAD: &str = "\
# Files and functions over the limits of `cargo xtask tidy`: lines, then file or file::function.
# A number may only go down: `cargo xtask tidy --update` does that.
";

/// Something longer than its limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Size {
    /// A path, or a path and a function.
    pub(super) what: String,
    pub(super) limit: usize,
    pub(super) lines: usize,
}

/// The list: what may be how long.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Limits(BTreeMap<String, usize>);

impl Limits {
    pub(super) fn load(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path)
            .with_context(|| format!("cannot read `{}`", path.display()))?;
        Self::parse(&text).with_context(|| format!("`{}`", path.display()))
    }

    fn parse(text: &str) -> Result<Self> {
        let mut limits = BTreeMap::new();
        for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
            let (lines, what) =
                line.split_once(' ').with_context(|| format!("not understood: `{line}`"))?;
            let lines = lines.parse().with_context(|| format!("not a number: `{line}`"))?;
            limits.insert(what.to_owned(), lines);
        }
        Ok(Self(limits))
    }

    pub(super) fn save(&self, path: &Path) -> Result<()> {
        fs::write(path, self.render()).with_context(|| format!("cannot write `{}`", path.display()))
    }

    fn render(&self) -> String {
        let mut text = HEAD.to_owned();
        for (what, lines) in &self.0 {
            text.push_str(&format!("{lines} {what}\n"));
        }
        text
    }

    /// Reports sizes over the limit that are not in the list, or larger than there.
    pub(super) fn check(&self, sizes: &[Size], offences: &mut Vec<String>) {
        for size in sizes {
            let allowed = self.0.get(&size.what).copied().unwrap_or(size.limit);
            if size.lines > allowed {
                offences.push(format!(
                    "{}: {} lines, at most {allowed} are allowed",
                    size.what, size.lines
                ));
            }
        }
    }

    /// Takes over smaller numbers, and drops entries within their limit again.
    pub(super) fn lower(&mut self, sizes: &[Size]) {
        self.0.retain(|what, allowed| match sizes.iter().find(|size| size.what == *what) {
            None => false,
            Some(size) => {
                *allowed = (*allowed).min(size.lines);
                true
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(what: &str, lines: usize) -> Size {
        Size { what: what.to_owned(), limit: 70, lines }
    }

    #[test]
    fn what_is_listed_may_shrink_and_not_grow() {
        let limits = Limits::parse("# head\n90 a.rs::f\n").unwrap();
        for (lines, expected) in [(89, 0), (90, 0), (91, 1)] {
            let mut offences = Vec::new();
            limits.check(&[size("a.rs::f", lines)], &mut offences);
            assert_eq!(offences.len(), expected, "{lines}: {offences:?}");
        }
    }

    #[test]
    fn what_is_not_listed_is_refused() {
        let mut offences = Vec::new();
        Limits::default().check(&[size("b.rs::g", 71)], &mut offences);
        assert_eq!(offences, ["b.rs::g: 71 lines, at most 70 are allowed"]);
    }

    #[test]
    fn an_update_only_lowers() {
        let mut limits = Limits::parse("90 a\n80 gone\n75 grown\n").unwrap();
        limits.lower(&[size("a", 85), size("grown", 99), size("new", 99)]);
        assert_eq!(limits, Limits::parse("85 a\n75 grown\n").unwrap());
        assert_eq!(Limits::parse(&limits.render()).unwrap(), limits);
    }
}
