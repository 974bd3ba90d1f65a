//! The configurations in the documentation can be loaded as they stand there, and the page of the commands is what the
//! program says of itself.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::program::{Program, command};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

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
        test.env("NODE_NAME", "node-1");
        // Of clouds; keys of Azure are in Base64.
        for name in ["AZURE_KEY", "MINIO_KEY", "MINIO_SECRET"] {
            test.env(name, "a2V5");
        }
        let ended = Program::run(test.current_dir(directory.path()));
        let place = format!("{}:{}", snippet.page.display(), snippet.line);
        // Their files are not here.
        let rest: Vec<&str> = ended.log.lines().filter(|line| !is_of_survey(line)).collect();
        assert_eq!(ended.out, "Config OK\n", "{place}:\n{}{}", snippet.text, ended.log);
        assert!(rest.is_empty(), "{place}:\n{}{rest:?}", snippet.text);
        loaded += 1;
    }
    assert!(loaded >= 3, "only {loaded} were found");
}

/// Whether a line reports that an input finds no file.
fn is_of_survey(line: &str) -> bool {
    let is_warning = line.starts_with("warning: input `") && line.contains(" no file matches ");
    is_warning || line.starts_with("hint: check the path;")
}

/// What stands in `docs/commands.md` above the commands.
const COMMANDS_HEAD: &str = "# Commands

<!-- Written from the program's own help by `SKIDDER_UPDATE=1 cargo test -p skidder --test docs` -->

What `skidder COMMAND --help` says. Options that every command has stand once, at the top.
";

/// The help of a command.
fn help(path: &[String]) -> String {
    let mut command = command(path);
    // However wide the terminal of the tests is.
    let command = command.arg("--help").env("COLUMNS", "100").stdin(Stdio::null());
    let ended = Program::run(command);
    assert_eq!(ended.log, "", "skidder {}", path.join(" "));
    ended.out
}

/// The options in a help text, each with the lines that explain it.
fn options(help: &str) -> Vec<Vec<&str>> {
    let mut all: Vec<Vec<&str>> = Vec::new();
    for line in help.lines().skip_while(|line| *line != "Options:").skip(1) {
        match all.last_mut() {
            Some(last) if !line.trim_start().starts_with('-') => last.push(line),
            _ => all.push(vec![line]),
        }
    }
    all
}

/// The same option has other columns beside others.
fn words(lines: &[&str]) -> String {
    lines.join(" ").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The names below `Commands:`; in the help of the program they are in groups.
fn commands(help: &str) -> Vec<String> {
    let is_root = help.contains("\nShip:\n");
    let start = if is_root { "Ship:" } else { "Commands:" };
    let below = help.lines().skip_while(|line| *line != start).skip(1);
    let lines =
        below.take_while(|line| if is_root { *line != "Options:" } else { !line.is_empty() });
    let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next().map(str::to_owned));
    names.filter(|name| name != "help").collect()
}

/// Adds a command and those below it.
fn describe(path: &[String], of_all: &[String], page: &mut String) {
    let help = help(path);
    let title = [&["skidder".to_owned()], path].concat().join(" ");
    page.push_str(&format!("\n## `{title}`\n\n```\n"));
    let before = help.split("\nOptions:\n").next().unwrap();
    page.push_str(before.trim_end());
    let own = options(&help).into_iter().filter(|option| !of_all.contains(&words(option)));
    let own: Vec<&str> = own.flatten().map(str::trim_end).collect();
    if !own.is_empty() {
        page.push_str("\n\nOptions:\n");
        page.push_str(own.join("\n").trim_end());
    }
    page.push_str("\n```\n");
    for name in commands(&help) {
        describe(&[path, &[name]].concat(), of_all, page);
    }
}

#[test]
fn the_page_of_the_commands_is_what_the_program_says_of_itself() {
    let root = help(&[]);
    let mut page = COMMANDS_HEAD.to_owned();
    page.push_str(&format!("\n## `skidder`\n\n```\n{}\n```\n", root.trim_end()));
    let of_all: Vec<String> = options(&root).iter().map(|option| words(option)).collect();
    for name in commands(&root) {
        describe(&[name], &of_all, &mut page);
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/commands.md");
    if std::env::var_os("SKIDDER_UPDATE").is_some() {
        fs::write(&path, &page).unwrap();
    }
    assert!(
        fs::read_to_string(&path).unwrap_or_default() == page,
        "docs/commands.md is not what the commands say; `SKIDDER_UPDATE=1 cargo test -p skidder --test docs` writes it"
    );
}

/// The blocks of a page that are marked as shell, one after the other.
fn shell(page: &Path) -> String {
    let text = fs::read_to_string(page).unwrap();
    let mut script = String::new();
    let mut is_open = false;
    for line in text.lines() {
        match line {
            "```sh" => is_open = true,
            "```" => is_open = false,
            line if is_open => script.push_str(&format!("{line}\n")),
            _ => {}
        }
    }
    script
}

#[test]
fn the_first_steps_work_word_by_word_from_an_empty_folder() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/first-steps.md");
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("s");
    // A port may be taken by another test; a person looks when the program is there.
    let endpoint = format!("http: {{enabled: true, host: 'unix://{}'}}", socket.display());
    let waiting =
        format!("\nuntil test -S '{}'; do kill -0 $!; sleep 0.1; done\n", socket.display());
    let of = |line: &str| {
        if line.contains(" &   ") { format!("{line}{waiting}") } else { format!("{line}\n") }
    };
    let script: String =
        shell(&page).replace("http.enabled: true  ", &endpoint).lines().map(of).collect();
    let has = |text: &str| script.contains(text);
    assert!(has(&endpoint) && has(&waiting) && has("ship"), "{script}");
    let program = Path::new(env!("CARGO_BIN_EXE_skidder")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let mut command = std::process::Command::new("sh");
    // What runs until it is stopped must not outlive a failure.
    let script = format!("set -e\ntrap 'kill $! 2>/dev/null || true' EXIT\n{script}wait $!\n");
    command.args(["-c", &script]).current_dir(directory.path()).env("PATH", path);
    let ended = Program::run(&mut command);
    assert_eq!(ended.code(), Some(0), "{}\n{}", ended.out, ended.log);
    for wanted in ["= delivered      1,001", "Config OK", "all is well", "app.log"] {
        assert!(ended.out.contains(wanted), "{wanted}: {}\n{}", ended.out, ended.log);
    }
}
