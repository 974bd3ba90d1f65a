//! The documentation of the processors, written from their golden files.

use crate::case::{Case, Expected, Kind};
use crate::file::GoldenFile;
use anyhow::{Context as _, Result, ensure};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// What a processor costs on an event of its first example.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Nanoseconds.
    pub nanoseconds: f64,
    /// Heap allocations.
    pub allocations: f64,
}

/// Characters of a line of documentation.
const WIDTH_MAX: usize = 110;

/// The text before the processors.
const HEAD: &str = "\
# Processors

<!-- written from the golden files of the processors (crates/*/golden) by
     `SKIDDER_UPDATE=1 cargo test -p skidder-golden`, whose examples are tests; tables of options by
     `SKIDDER_UPDATE=1 cargo test -p skidder --bins schema` -->

`processors:` is a list, at the root and in inputs. Each item has one name with its settings, or `if`, `then`
and optionally `else`. Each takes `when`; conditions are in [settings.md](settings.md). Processors of the
input run first, then missing `agent.*`, `ecs.version` and `host.name` are added, then those of the root run.

A step whose result is the same for all events of a file runs once per file.
`skidder explain -c filebeat.yml --sample FILE` shows the remaining steps and their cost, `skidder process`
the resulting events.

A processor that fails leaves the event exactly as it was, with the failure in `error.message`, and the next
processor runs; in an `if` the rest of the branch is left out. `skidder explain` and the metrics count
failures.

In examples, words in capitals, such as `DNS` and `ID_A`, stand for the addresses and ids of test servers.

Costs are for one event of the first example with the fields as the event's own, on one core (see [the
table](../benches/results/processors/README.md)); with fields that all events of a file share, most processors
cost nothing for an event.
";

/// The page. `costs` are by the name of the processor. Tables of options are those of `before`, the page as it is:
/// the test of the program that has all declarations writes them.
///
/// # Errors
/// A processor whose cost is missing though it has an example, or an example that is not written as they are.
pub fn page(files: &[GoldenFile], costs: &BTreeMap<String, Cost>, before: &str) -> Result<String> {
    let mut files: Vec<&GoldenFile> = files.iter().collect();
    files.sort_by(|left, right| left.processor.cmp(&right.processor));
    let mut text = HEAD.to_owned();
    text.push_str("\n| processor | what it does | ns an event |\n|---|---|---|\n");
    for file in &files {
        let cost = costs.get(&file.processor);
        let cost = cost.map_or_else(|| "-".to_owned(), |cost| format!("{:.0}", cost.nanoseconds));
        let sentence = file.summary.split_inclusive(". ").next().unwrap_or_default().trim_end();
        let name = &file.processor;
        writeln!(text, "| [`{name}`](#{name}) | {} | {cost} |", cell(sentence))?;
    }
    for file in &files {
        let is_shown = file.cases.iter().any(|case| case.kind == Kind::Normal);
        ensure!(
            !is_shown || costs.contains_key(&file.processor),
            "the cost of `{}` is missing; see benches/results/processors/README.md",
            file.processor
        );
        section(&mut text, file, costs.get(&file.processor), before)
            .with_context(|| file.path.display().to_string())?;
    }
    Ok(text)
}

fn section(text: &mut String, file: &GoldenFile, cost: Option<&Cost>, before: &str) -> Result<()> {
    write!(text, "\n## {}\n\n{}\n\n", file.processor, wrapped(&file.summary))?;
    writeln!(text, "{}", table(&file.processor, before))?;
    write!(text, "\n{}\n", wrapped(&format!("**Failure.** {}", file.fails)))?;
    if let Some(differs) = &file.differs {
        write!(text, "\n{}\n", wrapped(&format!("**Not as in Filebeat.** {differs}")))?;
    }
    if let Some(Cost { nanoseconds, allocations }) = cost {
        write!(
            text,
            "\n**Cost.** {nanoseconds:.0} ns and {allocations:.2} allocations an event.\n"
        )?;
    }
    let Some(case) = file.cases.iter().find(|case| case.kind == Kind::Normal) else {
        return Ok(());
    };
    write!(text, "\n```yaml\n{}```\n", settings_of(file, case)?)?;
    example(text, case)
}

/// The table of options of a processor with its marks, as it is on the page; without rows if it is not there yet.
fn table(processor: &str, before: &str) -> String {
    const END: &str = "<!-- end -->";
    let begin = format!("<!-- settings: processor.{processor} -->");
    let there = before.split_once(&begin).and_then(|(_, behind)| behind.split_once(END));
    let rows = there.map_or("\n", |(rows, _)| rows);
    format!("{begin}{rows}{END}")
}

/// The event before and after.
fn example(text: &mut String, case: &Case) -> Result<()> {
    for step in &case.steps {
        let after = match &step.expected {
            Expected::Dropped => "nothing: it is dropped".to_owned(),
            Expected::Document(document, _) => serde_json::to_string_pretty(document)?,
        };
        let before: &Json = &step.event;
        write!(text, "\n```json\n{}\n```\n\nbecomes\n", serde_json::to_string_pretty(before)?)?;
        match &step.expected {
            Expected::Dropped => write!(text, "\n{after}\n")?,
            Expected::Document(..) => write!(text, "\n```json\n{after}\n```\n")?,
        }
    }
    Ok(())
}

/// The `processors:` of a case as they stand in the file.
fn settings_of(file: &GoldenFile, case: &Case) -> Result<String> {
    let lines: Vec<&str> = file.text.lines().collect();
    let named = |line: &&str| {
        let rest = line.trim_start().strip_prefix("- name:");
        rest.is_some_and(|rest| rest.trim().trim_matches(['"', '\'']) == case.name)
    };
    let start = lines.iter().position(named).context("a case without `- name:`")?;
    let is_processors = |line: &&str| line.trim_end() == "    processors:";
    let start = lines[start..]
        .iter()
        .position(is_processors)
        .map(|place| start + place)
        .context("`processors:` of a case does not stand alone, indented by four")?;
    let mut text = String::from("processors:\n");
    for line in &lines[start + 1..] {
        let indent = line.len() - line.trim_start().len();
        if indent <= 4 && !line.trim().is_empty() && !line.trim_start().starts_with("- ") {
            break;
        }
        if indent < 4 && !line.trim().is_empty() {
            break;
        }
        text.push_str(line.get(4..).unwrap_or_default());
        text.push('\n');
    }
    Ok(format!("{}\n", text.trim_end()))
}

/// A paragraph in lines that `cargo xtask tidy` accepts; code spans are not broken.
fn wrapped(paragraph: &str) -> String {
    let mut is_code = false;
    let words = paragraph.split(|character: char| {
        is_code ^= character == '`';
        character.is_whitespace() && !is_code
    });
    let mut text = String::new();
    let mut width = 0;
    for word in words.filter(|word| !word.is_empty()) {
        let length = word.chars().count();
        let is_full = width + 1 + length > WIDTH_MAX;
        match width {
            0 => {}
            _ if is_full => text.push('\n'),
            _ => text.push(' '),
        }
        width = if is_full { length } else { width + usize::from(width > 0) + length };
        text.push_str(word);
    }
    text
}

/// A text for a cell of a table.
fn cell(text: &str) -> String {
    text.trim().replace('|', "\\|").replace('\n', " ")
}
