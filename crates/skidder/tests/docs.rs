//! The configurations in the documentation can be loaded as they stand there.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::program::{Program, command};
use std::fs;
use std::path::{Path, PathBuf};

/// A configuration in a page.
struct Snippet {
    page: PathBuf,
    line: usize,
    text: String,
}

/// The blocks of a page that are marked as YAML. Those of lists are indented.
fn snippets(page: &Path) -> Vec<Snippet> {
    let text = fs::read_to_string(page).unwrap();
    let mut found = Vec::new();
    let mut open: Option<(usize, Snippet)> = None;
    for (at, line) in text.lines().enumerate() {
        let trimmed = line.trim_start();
        match &mut open {
            None if trimmed == "```yaml" => {
                let snippet = Snippet { page: page.to_owned(), line: at + 1, text: String::new() };
                open = Some((line.len() - trimmed.len(), snippet));
            }
            Some(_) if trimmed == "```" => found.extend(open.take().map(|(_, snippet)| snippet)),
            Some((indent, snippet)) => {
                snippet.text.push_str(line.get(*indent..).unwrap_or_default());
                snippet.text.push('\n');
            }
            None => {}
        }
    }
    assert!(open.is_none(), "{}: a block has no end", page.display());
    found
}

/// What a part of a configuration lacks to be a whole one.
fn complete(text: &str) -> String {
    let has = |key: &str| text.lines().any(|line| line.starts_with(key));
    let mut text = text.to_owned();
    if !has("filebeat.") {
        text.push_str("filebeat.inputs: [{type: filestream, id: rest, paths: [/var/log/*.log]}]\n");
    }
    if !has("output") {
        text.push_str("output.discard: {}\n");
    }
    text
}

#[test]
fn every_configuration_of_the_documentation_loads() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = vec![root.join("README.md")];
    for entry in fs::read_dir(root.join("docs")).unwrap() {
        let path = entry.unwrap().path();
        // The examples of processors.md are written from tests of their own.
        if path.extension().is_some_and(|end| end == "md") && !path.ends_with("processors.md") {
            pages.push(path);
        }
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("filebeat.yml");
    let mut loaded = 0;
    for snippet in pages.iter().flat_map(|page| snippets(page)) {
        fs::write(&file, complete(&snippet.text)).unwrap();
        let mut test = command(["test", "config", "-c", "filebeat.yml"]);
        let ended = Program::run(test.current_dir(directory.path()));
        let place = format!("{}:{}", snippet.page.display(), snippet.line);
        assert_eq!((&*ended.out, &*ended.log), ("Config OK\n", ""), "{place}:\n{}", snippet.text);
        loaded += 1;
    }
    assert!(loaded >= 3, "only {loaded} were found");
}
