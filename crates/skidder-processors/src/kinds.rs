//! From the YAML name of a processor to its constructor, and `processors:` lists as a whole.

use crate::condition::{CONDITION, Condition};
use crate::lookup::{Caches, Machine, SharedFiles, ThisMachine};
use crate::plan::{Compiled, Processor};
use crate::{decode, fields, lookup};
use choice::{ELSE, IF, THEN};
use skidder_config::{Group, Item, Key, Part, Problem, Section, Subject, nearest, settings};
use skidder_os::{Clock, Fs};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Reads the settings of a processor. Returns `None`, and reports the problems, if they are wrong.
pub type Read = fn(&Section<'_>, &Context) -> Option<Arc<dyn Processor>>;

/// A processor that a configuration can name: its name, its settings, and what reads them.
pub type Kind = (&'static str, &'static Group, Read);

settings! {
    /// What every processor has.
    pub static EVERY_PROCESSOR = Group::new("processor.*", "What every processor has.").common();

    WHEN: Part = Key::part("when", &CONDITION).about("only events for which the condition holds");
}

/// The forms of an entry that is no processor: `if`, `then`, `else`.
pub(crate) mod choice {
    use crate::condition::CONDITION;
    use skidder_config::{Group, Key, NamedParts, Part, settings};

    settings! {
        /// Processors for events for which a condition holds, and for others.
        pub static CHOICE = Group::new("processor.if", "Processors by a condition.");

        pub(super) IF: Part = Key::part("if", &CONDITION).about("the condition, with `then` and perhaps `else`");
        pub(super) THEN: NamedParts = Key::named_parts("then", "processor").about("for events for which it holds");
        pub(super) ELSE: NamedParts = Key::named_parts("else", "processor").about("for all others");
    }
}

/// A processor, if it could be read, to be shared.
pub fn shared(processor: Option<impl Processor + 'static>) -> Option<Arc<dyn Processor>> {
    processor.map(|processor| -> Arc<dyn Processor> { Arc::new(processor) })
}

/// What processors may look at outside the event.
#[derive(Clone)]
pub struct Context {
    /// Files of the machine.
    pub fs: Arc<dyn Fs>,
    /// For caches that expire.
    pub clock: Arc<dyn Clock>,
    /// What the kernel reports about the machine.
    pub machine: Arc<dyn Machine>,
    /// `path.data`: where a processor may keep files.
    pub data: PathBuf,
    /// What caches remember, shared by their ids.
    pub caches: Arc<Caches>,
    /// What was read from files, shared by their paths.
    pub files: Arc<SharedFiles>,
    /// Lines are only tried: nothing is written that lasts.
    pub trial: bool,
    /// Set when the program ends and waits for nothing more: what takes its time stops, and its
    /// events are not sent.
    pub interrupt: Arc<AtomicBool>,
    /// Processors of other crates.
    pub others: Vec<&'static [Kind]>,
}

impl Context {
    /// With the machine this program runs on.
    pub fn new(fs: Arc<dyn Fs>, clock: Arc<dyn Clock>) -> Self {
        Self {
            fs,
            clock,
            machine: Arc::new(ThisMachine),
            data: PathBuf::from("data"),
            caches: Arc::default(),
            files: Arc::default(),
            trial: false,
            interrupt: Arc::default(),
            others: Vec::new(),
        }
    }

    /// With another place for files than `data` in the working directory.
    pub fn with_data(mut self, data: impl Into<PathBuf>) -> Self {
        self.data = data.into();
        self
    }

    /// Whether lines are only tried.
    pub fn with_trial(mut self, trial: bool) -> Self {
        self.trial = trial;
        self
    }

    /// With a flag that is set when the program ends.
    pub fn with_interrupt(mut self, interrupt: Arc<AtomicBool>) -> Self {
        self.interrupt = interrupt;
        self
    }

    /// With processors of another crate.
    pub fn with(mut self, kinds: &'static [Kind]) -> Self {
        self.others.push(kinds);
        self
    }

    /// All processors there are.
    pub fn kinds(&self) -> impl Iterator<Item = &'static Kind> {
        own_kinds().chain(self.others.iter().copied().flatten())
    }
}

/// The processors of this crate.
pub fn own_kinds() -> impl Iterator<Item = &'static Kind> {
    [fields::KINDS, decode::KINDS, lookup::KINDS].into_iter().flatten()
}

/// Processors of Filebeat that are not here yet.
const UNSUPPORTED: &[&str] = &[];

/// Processors that Filebeat has for itself; it does not know their names in a configuration either.
const INTERNAL: &[(&str, &str)] = &[(
    "add_data_stream",
    "set `index` of the input or of the output, or `data_stream.*` with `add_fields`",
)];

/// Reads a list of processors; reports and leaves out wrong items.
pub fn read_processors(items: Vec<Item<'_>>, context: &Context) -> Vec<Compiled> {
    read_list(items, context, false)
}

/// Reads a list; in a `branch` there is a condition around everything.
fn read_list(items: Vec<Item<'_>>, context: &Context, branch: bool) -> Vec<Compiled> {
    items.iter().filter_map(|item| read_entry(item, context, branch)).collect()
}

/// One entry: `{name: settings}`, or `{if, then, else}`.
fn read_entry(item: &Item<'_>, context: &Context, branch: bool) -> Option<Compiled> {
    let entry = item.section();
    let names = entry.keys();
    if names.contains(&"if") {
        return read_choice(&entry, context);
    }
    let name = match names[..] {
        [name] => name,
        [] => {
            if item.is_map() || item.node().is_null() {
                item.problem(format!("`{}` names no processor", item.path()), "");
            }
            return None;
        }
        _ => {
            for name in &names {
                entry.accept(name);
            }
            let message = format!(
                "`{}` has {} keys ({}); expected exactly one, the name of a processor",
                item.path(),
                names.len(),
                names.join(", ")
            );
            let hint = "every processor begins with its own `-`, its settings are indented below";
            item.problem(message, hint);
            return None;
        }
    };
    let settings = entry.section(name);
    match context.kinds().find(|(known, ..)| *known == name) {
        Some((_, group, read)) => {
            settings.declared_by(group);
            settings.declared_by(&EVERY_PROCESSOR);
            compile(name, &settings, *read, context, branch)
        }
        None => {
            settings.skip();
            refuse_name(item, &entry, name, context);
            None
        }
    }
}

/// Reads a processor and its `when`.
fn compile(
    name: &str,
    settings: &Section<'_>,
    read: Read,
    context: &Context,
    branch: bool,
) -> Option<Compiled> {
    if name == "drop_event" && !branch && !settings.has_key(&WHEN) {
        let message = format!("`{}` without a condition drops every event", settings.path());
        settings.warning("", message, "give it a `when`");
    }
    let when = settings.item_of(&WHEN).map(|item| Condition::read(&item));
    let processor = read(settings, context)?;
    match when {
        None => Some(Compiled::shared(processor, None)),
        Some(condition) => Some(Compiled::shared(processor, Some(condition?))),
    }
}

fn read_choice(entry: &Section<'_>, context: &Context) -> Option<Compiled> {
    entry.declared_by(&choice::CHOICE);
    let condition = entry.item_of(&IF).and_then(|item| Condition::read(&item));
    if !entry.has_key(&IF) {
        entry.problem(IF.name(), format!("`{}` has no condition", entry.path_of(IF.name())), "");
    }
    if !entry.has_key(&THEN) {
        let message = format!("`{}` is missing", entry.path_of(THEN.name()));
        entry.problem(THEN.name(), message, "an `if` needs a `then` with one processor or a list");
    }
    let then = read_list(entry.items_of(&THEN), context, true);
    let otherwise = read_list(entry.items_of(&ELSE), context, true);
    Some(Compiled::choose(condition?, then, otherwise))
}

fn refuse_name(item: &Item<'_>, entry: &Section<'_>, name: &str, context: &Context) {
    let known = UNSUPPORTED.contains(&name);
    let subject = if known { Subject::Unsupported } else { Subject::Unknown };
    let internal = INTERNAL.iter().find(|(internal, _)| *internal == name);
    let (message, hint) = if let Some((_, hint)) = internal {
        let message =
            format!("processor `{name}` is internal to Filebeat, a configuration cannot name it");
        (message, (*hint).to_owned())
    } else if known {
        let message =
            format!("processor `{name}` is known to Filebeat, but not supported by skidder yet");
        (message, String::new())
    } else {
        let all = context.kinds().map(|(known, ..)| *known).chain(UNSUPPORTED.iter().copied());
        let hint = nearest(name, all).map(|near| format!("did you mean `{near}`?"));
        (format!("unknown processor `{name}`"), hint.unwrap_or_default())
    };
    let written = item.node().as_map().and_then(|map| map.get(name));
    let position = written.map_or(item.node().position(), |entry| &entry.key_position).clone();
    let problems = entry.problems();
    let severity = problems.unknown_severity();
    let problem = Problem::error(position, message).about(subject).hint(hint);
    problems.push(Problem { severity, ..problem });
}
