//! What `--help` adds to the text of clap: commands in groups, two examples for each, and the
//! options of every command in one line.

use super::CommandLine;
use clap::{Command, CommandFactory as _};
use std::fmt::Write as _;

/// The commands of the first screen, in their groups.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Ship", &["run", "ship"]),
    (
        "Prepare a configuration",
        &[
            "test", "process", "explain", "diff", "tune", "export", "modules", "generate", "setup",
            "keystore", "migrate",
        ],
    ),
    ("See what it does", &["status", "top", "page", "files", "autodiscover"]),
    ("State", &["registry", "deadletters", "queue"]),
    ("The program", &["version", "completion", "man", "help"]),
];

/// Examples of a command, by its words.
const EXAMPLES: [(&str, [&str; 2]); 49] = [
    ("run", ["skidder run -c filebeat.yml -e", "skidder run -c filebeat.yml --once"]),
    (
        "ship",
        [
            "skidder ship '/var/log/*.log' --to -",
            "skidder ship '/var/log/*.log*' --to http://localhost:9200 --index demo",
        ],
    ),
    ("test", ["skidder test config -c filebeat.yml", "skidder test output -c filebeat.yml"]),
    (
        "test config",
        [
            "skidder test config -c filebeat.yml",
            "skidder test config -c filebeat.yml -E compat=lenient",
        ],
    ),
    (
        "test output",
        [
            "skidder test output -c filebeat.yml",
            "skidder test output -E 'output.elasticsearch.hosts=[https://es:9200]'",
        ],
    ),
    (
        "export",
        ["skidder export config -c filebeat.yml", "skidder export schema > filebeat.schema.json"],
    ),
    (
        "export config",
        ["skidder export config -c filebeat.yml", "skidder export config -c a.yml -c b.yml"],
    ),
    (
        "export schema",
        ["skidder export schema > filebeat.schema.json", "skidder export schema | less"],
    ),
    (
        "process",
        [
            "skidder process -c filebeat.yml sample.log --pretty",
            "tail -100 app.log | skidder process -c filebeat.yml | head -1",
        ],
    ),
    (
        "explain",
        ["skidder explain -c filebeat.yml", "skidder explain -c filebeat.yml --sample app.log"],
    ),
    (
        "diff",
        [
            "skidder diff -c old.yml -c new.yml --sample app.log",
            "skidder diff -c old.yml -c new.yml --sample app.log --events 3",
        ],
    ),
    (
        "tune",
        [
            "skidder tune -c filebeat.yml --sample app.log",
            "skidder tune -c filebeat.yml --sample app.log --workers 1,4 --html tune.html",
        ],
    ),
    (
        "files",
        ["skidder files -c filebeat.yml", "skidder files -c filebeat.yml /var/log/app --sort size"],
    ),
    (
        "migrate",
        ["skidder migrate --dry-run", "skidder migrate --from /etc/filebeat --to /etc/skidder"],
    ),
    (
        "status",
        [
            "skidder status -c filebeat.yml",
            "skidder status -c filebeat.yml --path.data /var/lib/skidder --json",
        ],
    ),
    (
        "autodiscover",
        [
            "skidder autodiscover explain -c filebeat.yml",
            "skidder autodiscover explain -c filebeat.yml --json",
        ],
    ),
    (
        "autodiscover explain",
        [
            "skidder autodiscover explain -c filebeat.yml",
            "skidder autodiscover explain -c filebeat.yml web-1 --json",
        ],
    ),
    ("page", ["skidder page -c filebeat.yml", "skidder page -c filebeat.yml --print"]),
    ("top", ["skidder top -c filebeat.yml", "skidder top -c filebeat.yml --every 5"]),
    (
        "registry",
        [
            "skidder registry list -c filebeat.yml",
            "skidder registry forget -c filebeat.yml /var/log/a.log",
        ],
    ),
    (
        "registry list",
        ["skidder registry list -c filebeat.yml", "skidder registry list -c filebeat.yml --json"],
    ),
    (
        "registry show",
        [
            "skidder registry show -c filebeat.yml /var/log/a.log",
            "skidder registry show -c filebeat.yml /var/log/a.log --json",
        ],
    ),
    (
        "registry forget",
        [
            "skidder registry forget -c filebeat.yml /var/log/a.log --dry-run",
            "skidder registry forget -c filebeat.yml /var/log/a.log",
        ],
    ),
    (
        "registry import",
        [
            "skidder registry import -c filebeat.yml --from /var/lib/filebeat --dry-run",
            "skidder registry import -c filebeat.yml --from /var/lib/filebeat",
        ],
    ),
    (
        "registry export",
        [
            "skidder registry export -c filebeat.yml --to /var/lib/filebeat",
            "skidder registry export -c filebeat.yml --to copy --force",
        ],
    ),
    (
        "deadletters",
        ["skidder deadletters list -c filebeat.yml", "skidder deadletters redrive -c filebeat.yml"],
    ),
    (
        "deadletters list",
        [
            "skidder deadletters list -c filebeat.yml",
            "skidder deadletters list -c filebeat.yml --json",
        ],
    ),
    (
        "deadletters show",
        [
            "skidder deadletters show -c filebeat.yml 1",
            "skidder deadletters show -c filebeat.yml 1 --json",
        ],
    ),
    (
        "deadletters drop",
        [
            "skidder deadletters drop -c filebeat.yml --status 400 --dry-run",
            "skidder deadletters drop -c filebeat.yml --all",
        ],
    ),
    (
        "deadletters redrive",
        [
            "skidder deadletters redrive -c filebeat.yml --dry-run",
            "skidder deadletters redrive -c filebeat.yml",
        ],
    ),
    ("queue", ["skidder queue inspect -c filebeat.yml", "skidder queue repair -c filebeat.yml"]),
    (
        "queue inspect",
        [
            "skidder queue inspect -c filebeat.yml",
            "skidder queue inspect --path /var/lib/skidder/diskqueue",
        ],
    ),
    (
        "queue repair",
        [
            "skidder queue repair -c filebeat.yml",
            "skidder queue repair --path /var/lib/skidder/diskqueue",
        ],
    ),
    (
        "setup",
        [
            "skidder setup -c filebeat.yml --dashboards -E setup.kibana.host=kibana:5601",
            "skidder setup -c filebeat.yml --pipelines --modules nginx -M nginx.access.enabled=true",
        ],
    ),
    ("modules", ["skidder modules list", "skidder modules enable nginx system"]),
    (
        "modules list",
        ["skidder modules list -c filebeat.yml", "skidder modules list --path.config /etc/skidder"],
    ),
    (
        "modules enable",
        ["skidder modules enable nginx", "skidder modules enable -c filebeat.yml nginx system"],
    ),
    (
        "modules disable",
        ["skidder modules disable nginx", "skidder modules disable -c filebeat.yml nginx system"],
    ),
    ("generate", ["skidder generate module shop", "skidder generate fileset shop orders"]),
    (
        "generate module",
        [
            "skidder generate module shop",
            "skidder generate module shop --modules-path /etc/skidder",
        ],
    ),
    (
        "generate fileset",
        [
            "skidder generate fileset shop orders -c filebeat.yml",
            "skidder generate fileset shop orders --modules-path /etc/skidder",
        ],
    ),
    (
        "generate fields",
        [
            "skidder generate fields shop orders -c filebeat.yml",
            "skidder generate fields shop orders --without-documentation",
        ],
    ),
    (
        "keystore",
        [
            "skidder keystore create -c filebeat.yml",
            "skidder keystore add -c filebeat.yml ES_PASSWORD",
        ],
    ),
    (
        "keystore create",
        [
            "skidder keystore create -c filebeat.yml",
            "skidder keystore create -c filebeat.yml --force",
        ],
    ),
    (
        "keystore add",
        [
            "skidder keystore add -c filebeat.yml ES_PASSWORD",
            "cat password | skidder keystore add -c filebeat.yml ES_PASSWORD --stdin",
        ],
    ),
    (
        "keystore list",
        [
            "skidder keystore list -c filebeat.yml",
            "skidder keystore list --path.data /var/lib/skidder",
        ],
    ),
    (
        "keystore remove",
        [
            "skidder keystore remove -c filebeat.yml ES_PASSWORD",
            "skidder keystore remove --path.data /var/lib/skidder A B",
        ],
    ),
    (
        "completion",
        [
            "skidder completion bash > /etc/bash_completion.d/skidder",
            "skidder completion zsh > ~/.zfunc/_skidder",
        ],
    ),
    ("man", ["skidder man | man -l -", "skidder man /usr/share/man/man1"]),
];

/// The command line with its examples.
pub(crate) fn command() -> Command {
    with_examples(CommandLine::command(), "")
}

/// The command line as it is parsed and shown.
pub(crate) fn shown() -> Command {
    let mut whole = command();
    // Options of every command are known to the others from here on.
    whole.build();
    let whole = whole.mut_subcommands(hide_global);
    let groups = groups(&whole);
    whole.help_template(format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n\n{groups}Options:\n{{options}}"
    ))
}

/// Options of every command stand once, in `skidder --help`.
fn hide_global(command: Command) -> Command {
    command
        .mut_args(|argument| if argument.is_global_set() { argument.hide(true) } else { argument })
        .mut_subcommands(hide_global)
}

fn with_examples(command: Command, words: &str) -> Command {
    let name = command.get_name().to_owned();
    let words =
        if command.get_name() == "skidder" { String::new() } else { format!("{words} {name}") };
    let words = words.trim().to_owned();
    let examples = EXAMPLES.iter().find(|(of, _)| *of == words);
    let mut text = String::new();
    if let Some((_, [first, second])) = examples {
        text = format!("Examples:\n  {first}\n  {second}");
    }
    if !words.is_empty() {
        let more = "Options of every command (-c, -E, -e, -v, -d, --path.data, …): skidder --help";
        let space = if text.is_empty() { "" } else { "\n\n" };
        text.push_str(&format!("{space}{more}"));
    }
    let command = if text.is_empty() { command } else { command.after_help(text) };
    command.mut_subcommands(|below| with_examples(below, &words))
}

/// The commands in their groups, each with what it does.
fn groups(whole: &Command) -> String {
    let mut text = String::new();
    for (group, names) in GROUPS {
        writeln!(text, "{group}:").expect("a string takes everything");
        for name in names {
            let command = whole.get_subcommands().find(|command| command.get_name() == *name);
            let about = command.and_then(|command| command.get_about()).map(ToString::to_string);
            writeln!(text, "  {name:<12} {}", about.unwrap_or_default())
                .expect("a string takes everything");
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaves(command: &Command, words: &str, each: &mut dyn FnMut(&str, &Command)) {
        for below in command
            .get_subcommands()
            .filter(|below| !below.is_hide_set() && below.get_name() != "help")
        {
            let words = format!("{words} {}", below.get_name()).trim().to_owned();
            each(&words, below);
            leaves(below, &words, each);
        }
    }

    #[test]
    fn every_command_is_in_a_group_and_every_example_is_of_a_command_and_can_be_parsed() {
        let whole = command();
        let mut all = Vec::new();
        leaves(&whole, "", &mut |words, _| all.push(words.to_owned()));
        let grouped: Vec<&str> =
            GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        for words in all.iter().filter(|words| !words.contains(' ')) {
            assert!(grouped.contains(&words.as_str()), "{words} is in no group");
        }
        for (words, examples) in EXAMPLES {
            assert!(all.iter().any(|known| known == words), "there is no command {words}");
            for example in examples {
                let (_, own) = example.split_once("skidder ").expect("an example of skidder");
                let own = own.split(['|', '>']).next().expect("the first part");
                let arguments = own.split_whitespace().map(|word| word.trim_matches('\''));
                let parsed = shown().try_get_matches_from(["skidder"].into_iter().chain(arguments));
                assert!(parsed.is_ok(), "{example}: {:?}", parsed.err());
            }
        }
        for words in &all {
            let is_known = EXAMPLES.iter().any(|(known, _)| known == words) || words == "version";
            assert!(is_known, "{words} has no examples");
        }
    }
}
