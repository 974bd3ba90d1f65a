//! Tables in pages of the documentation that are written from a list here.

use crate::repository;
use anyhow::{Context, Result, bail};
use std::fs;

/// Stands behind each table.
const END: &str = "<!-- end -->";

/// A page with the place of one table.
pub(super) struct Page {
    path: &'static str,
    /// Stands before the table and names the list.
    begin: &'static str,
    /// The text before `begin`.
    pub(super) before: String,
    table: String,
    after: String,
}

impl Page {
    /// Reads a page of the repository.
    pub(super) fn read(path: &'static str, begin: &'static str) -> Result<Self> {
        let text = fs::read_to_string(repository::root().join(path))
            .with_context(|| format!("cannot read `{path}`"))?;
        Self::of(path, begin, &text)
    }

    fn of(path: &'static str, begin: &'static str, text: &str) -> Result<Self> {
        let parts = text.split_once(begin).and_then(|(before, rest)| {
            let (table, after) = rest.split_once(END)?;
            Some((before.to_owned(), table.to_owned(), after.to_owned()))
        });
        let Some((before, table, after)) = parts else {
            bail!("`{path}` has no place for the table behind `{begin}`")
        };
        Ok(Self { path, begin, before, table, after })
    }

    /// Whether the page has this table; with `update` it is written there.
    pub(super) fn compare(
        &self,
        table: &str,
        update: bool,
        offences: &mut Vec<String>,
    ) -> Result<()> {
        let Self { path, begin, .. } = self;
        if self.table.trim() == table.trim() {
            return Ok(());
        }
        if update {
            return fs::write(repository::root().join(path), self.with(table))
                .with_context(|| format!("cannot write `{path}`"));
        }
        offences.push(format!("{path}: what stands behind `{begin}` is not up to date"));
        Ok(())
    }

    fn with(&self, table: &str) -> String {
        let Self { begin, before, after, .. } = self;
        format!("{before}{begin}\n\n{table}\n{END}{after}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_taken_apart_and_put_together_again() {
        let begin = "<!-- written by nobody -->";
        let page = Page::of("a.md", begin, &format!("a\n{begin}\nold\n{END}\nb\n")).unwrap();
        assert_eq!(page.before, "a\n");
        assert_eq!(page.with("| new |\n"), format!("a\n{begin}\n\n| new |\n\n{END}\nb\n"));
        let mut offences = Vec::new();
        page.compare("old", false, &mut offences).unwrap();
        assert_eq!(offences.len(), 0);
        page.compare("new", false, &mut offences).unwrap();
        assert!(offences[0].contains("not up to date"), "{offences:?}");
        assert!(Page::of("a.md", begin, "nothing").is_err());
    }
}
