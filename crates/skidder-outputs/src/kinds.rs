//! From the name in `output.<name>` to a constructor.

use crate::console::{CONSOLE, Console, ConsoleConfig};
use crate::context::Context;
use crate::discard::{DISCARD, Discard};
use crate::file::{FILE, FileConfig, FileOutput};
use crate::logstash::{self, Logstash};
use crate::queue::QueueSettings;
use crate::redis::{self, Redis};
use crate::settings::{ENABLED, OWN_QUEUE};
use crate::trial::Tuning;
use skidder_config::{Group, Key, Part, Section, nearest, settings};
use skidder_os::Timestamp;
use skidder_pipeline::Output;

settings! {
    /// The outputs of this crate, by their names.
    pub static OUTPUTS = Group::new("outputs", "The outputs, of which one is enabled.").common();

    LOGSTASH: Part = Key::part("logstash", &logstash::LOGSTASH).about(logstash::LOGSTASH.about);
    REDIS: Part = Key::part("redis", &redis::REDIS).about(redis::REDIS.about);
    OF_FILE: Part = Key::part("file", &FILE).about(FILE.about);
    OF_CONSOLE: Part = Key::part("console", &CONSOLE).about(CONSOLE.about);
    OF_DISCARD: Part = Key::part("discard", &DISCARD).about(DISCARD.about);
}

/// The outputs there are.
const SUPPORTED: [&str; 5] = ["logstash", "redis", "file", "console", "discard"];

/// Why `skidder tune` does not try an output without sizes.
const NO_SIZES: &str = "this output has no sizes to choose";

/// The constructor of an output in another crate. Reports mistakes to the section's problems.
pub type BuildOther = Box<dyn Fn(&Section<'_>, &Context, Timestamp) -> Option<Built>>;

/// An output of another crate: its name and its constructor.
pub type Other = (&'static str, BuildOther);

/// An output with its settings of the queue before it.
pub struct Built {
    /// The output, ready to run.
    pub output: Box<dyn Output>,
    /// For `skidder tune`.
    pub tuning: Tuning,
    /// Settings of the queue that a preset of the output implies; they win over the user's.
    pub queue: QueueSettings,
}

impl std::fmt::Debug for Built {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Built")
            .field("output", &self.output.kind())
            .field("queue", &self.queue)
            .finish()
    }
}

/// Reads `output`, or an item of `outputs`, in which exactly one kind must be enabled. Reports all mistakes to the
/// section's problems; `None` means that there is at least one.
///
/// `queue` of the kind is left to the caller, and so are the names in `other_settings`. `started` is the program's
/// start, for `path` of `output.file`. `others` are outputs of other crates.
pub fn build(
    outputs: &Section<'_>,
    other_settings: &[&str],
    context: &Context,
    started: Timestamp,
    others: &[Other],
) -> Option<Built> {
    let supported: Vec<&str> =
        SUPPORTED.into_iter().chain(others.iter().map(|(name, _)| *name)).collect();
    let mut built = None;
    let mut enabled = Vec::new();
    let mut wrong = false;
    for name in outputs.keys().into_iter().filter(|name| !other_settings.contains(name)) {
        if !supported.contains(&name) {
            let known = supported.iter().chain(other_settings).copied();
            let hint = match nearest(name, known) {
                Some(name) => format!("did you mean `{name}`?"),
                None => String::new(),
            };
            let path = outputs.path_of(name);
            outputs.problem(name, format!("unknown output `{path}`"), hint);
            wrong = true;
            continue;
        }
        let section = outputs.section(name);
        if !section.get(&ENABLED).value() {
            if let Some(group) = outputs.declared_part(name) {
                section.declared_by(group);
            }
            section.off();
            continue;
        }
        enabled.push(name);
        if enabled.len() > 1 {
            section.skip();
            continue;
        }
        section.accept(OWN_QUEUE.name());
        built = match others.iter().find(|(other, _)| *other == name) {
            Some((_, build)) => build(&section, context, started),
            None => one(name, &section, context, started),
        };
        section.finish();
    }
    match enabled[..] {
        [_] if !wrong => built,
        [_] => None,
        [] => {
            if !wrong {
                let message = "no output is enabled; expected exactly one";
                let hint = "for example `output.elasticsearch.hosts: ['localhost:9200']`, or `output.console.enabled: true`";
                outputs.problem("", message, hint);
            }
            None
        }
        [first, second, ..] => {
            let message =
                format!("`{first}` and `{second}` are both enabled; expected exactly one");
            outputs.problem(second, message, "set `enabled: false` for one of them");
            None
        }
    }
}

fn one(name: &str, section: &Section<'_>, context: &Context, started: Timestamp) -> Option<Built> {
    let (output, tuning): (Box<dyn Output>, Tuning) = match name {
        "logstash" => {
            let output = match Logstash::new(logstash::Config::read(section)?, context.clone()) {
                Ok(output) => output,
                Err(error) => {
                    error.report(section);
                    return None;
                }
            };
            (Box::new(output.clone()), Ok(Box::new(output)))
        }
        "redis" => {
            let config = redis::Config::read(section, &context.beat)?;
            let output = match Redis::new(config, context.clone()) {
                Ok(output) => output,
                Err(error) => {
                    error.report(section);
                    return None;
                }
            };
            (Box::new(output), Err(redis::NO_TRIAL))
        }
        "file" => {
            let config = FileConfig::read(section, context, started)?;
            let output = FileOutput::new(config, context.clone());
            (Box::new(output), Err("`output.file` has no sizes to choose"))
        }
        "console" => {
            let output = Console::new(ConsoleConfig::read(section), context.clone());
            (Box::new(output), Err(NO_SIZES))
        }
        "discard" => {
            section.declared_by(&DISCARD);
            (Box::new(Discard), Err(NO_SIZES))
        }
        _ => return None,
    };
    Some(Built { output, tuning, queue: QueueSettings::default() })
}

#[cfg(test)]
mod tests;
