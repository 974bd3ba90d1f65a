//! The outputs of a configuration: the one of `output`, or those that `outputs` lists. Each has its own queue, dead
//! letters and state; which inputs feed it is in `feeds.rs`, where its state is in `places.rs`.

mod feeds;
mod kinds;
mod places;
mod queue;

pub(crate) use feeds::{Feeds, quoted};
use kinds::OTHER_OUTPUTS;
pub(crate) use places::{Place, Places};
pub(crate) use queue::{QueueSettings, key_of_file};

use crate::inputs::Input;
use skidder_config::{Group, Item, Key, Part, Parts, Section, Size, settings};
use skidder_os::Timestamp;
use skidder_output_elasticsearch::Setup;
use skidder_outputs::{
    Built, Context as OutputContext, OUTPUTS as OUTPUTS_OF_CRATE, Other, QUEUE, Tuning,
};
use skidder_pipeline::{DeadLettersLimits, DiskQueueSettings, Output, QueueLimits};
use std::sync::Arc;

mod dead_letters {
    use super::*;

    settings! {
        /// `dead_letters`.
        pub(crate) static DEAD_LETTERS =
            Group::new("dead_letters", "Events that the output can never take, kept locally.").inline();

        pub(super) ENABLED: bool = Key::new("enabled").default(true).ours().about(
            "events that the output can never take are kept locally ([0008](decisions/0008-dead-letters.md)); \
             `false`: dropped and counted",
        );
        pub(super) MAX_BYTES: Size = Key::new("max_bytes")
            .default(DeadLettersLimits::BYTES)
            .ours()
            .about("size of that file beyond which refused events are dropped and counted");
    }
}

use dead_letters::DEAD_LETTERS;

settings! {
    /// An item of `outputs`. The name of its one kind is beside these.
    static OUTPUTS_ITEM =
        Group::new("outputs.item", "An output: exactly one kind.").include(&[&OUTPUTS_OF_CRATE, &OTHER_OUTPUTS]);

    pub(crate) ID: String = Key::new("id").required().about(
        "letters, digits, `_`, `.`, `-`; names its state on the disk, its metrics and its log lines. Never change it: \
         under another id it begins anew",
    );
    ENABLED: bool = Key::new("enabled").default(true).about(
        "`false`: the output does not run; what it has to get stays in the files, as long as they are there",
    );
    OWN_QUEUE: Part = Key::part("queue", &QUEUE)
        .default_words("that at the root")
        .about("the queue of this output, in memory or on the disk; each has one of its own");
    OWN_DEAD_LETTERS: Part = Key::part("dead_letters", &DEAD_LETTERS)
        .default_words("that at the root")
        .about("the dead letters of this output");
}

mod at_root {
    use super::*;

    /// `output`.
    static ONE_OUTPUT: Group = Group::new("output", "Where events go: exactly one output.")
        .include(&[&OUTPUTS_OF_CRATE, &OTHER_OUTPUTS]);

    settings! {
        /// Settings at the root for outputs.
        pub(crate) static AT_ROOT = Group::new("root.outputs", "Outputs, and what is before them.");

        pub(super) OUTPUT: Part =
            Key::part("output", &ONE_OUTPUT).about("where events go: exactly one output");
        pub(crate) OUTPUTS: Parts =
            Key::parts("outputs", &OUTPUTS_ITEM).about("several outputs, in the place of `output`").ours();
        pub(super) ROOT_QUEUE: Part = Key::part("queue", &QUEUE).about("the queue before each output");
        pub(super) ROOT_DEAD_LETTERS: Part = Key::part("dead_letters", &DEAD_LETTERS)
            .about("events that the output can never take, kept locally")
            .ours();
    }
}

pub(crate) use at_root::{AT_ROOT, OUTPUTS};
use at_root::{OUTPUT, ROOT_DEAD_LETTERS, ROOT_QUEUE};

/// Longest id, so that it can be the name of a directory.
const ID_BYTES_MAX: usize = 100;

/// Keys of an item of `outputs` that are no kind of output.
const BESIDE: [&str; 4] = [ID.name(), ENABLED.name(), OWN_QUEUE.name(), OWN_DEAD_LETTERS.name()];

/// One output with the inputs that feed it. Each has a pipeline of its own.
pub(crate) struct OutputParts {
    /// Its id; nothing if it is the one of `output`.
    pub(crate) id: Option<String>,
    /// None, if no input feeds it: then it does not run.
    pub(crate) inputs: Vec<Input>,
    pub(crate) output: Box<dyn Output>,
    pub(crate) tuning: Tuning,
    pub(crate) queue: QueueLimits,
    /// Its queue is on the disk.
    pub(crate) disk: Option<DiskQueueSettings>,
    pub(crate) dead_letters: Option<DeadLettersLimits>,
    pub(crate) place: Place,
}

/// The outputs as they are configured.
pub(crate) struct Outputs {
    /// The ids of `outputs`, also of those that are turned off; empty if there is `output`.
    pub(crate) ids: Vec<String>,
    /// Each with its number among the ids. Those that are turned off or wrong are not here.
    pub(crate) built: Vec<(usize, OneOutput)>,
    /// Whether there are errors, all reported.
    pub(crate) wrong: bool,
}

/// One output, before its inputs are known.
pub(crate) struct OneOutput {
    pub(crate) built: Built,
    pub(crate) queue: QueueSettings,
    pub(crate) dead_letters: Option<DeadLettersLimits>,
}

/// The settings at the root for all outputs.
struct AtRoot {
    queue: QueueSettings,
    has_queue: bool,
    dead_letters: Option<DeadLettersLimits>,
    /// Outputs in crates of their own.
    others: Vec<Other>,
}

impl Outputs {
    /// Reads `output` or `outputs`, with `queue` and `dead_letters` at the root. `setup` is for outputs to Elasticsearch.
    pub(crate) fn read(
        root: &Section<'_>,
        context: &OutputContext,
        setup: Arc<Setup>,
        started: Timestamp,
    ) -> Self {
        let queue = root.optional_part(&ROOT_QUEUE);
        let at_root = AtRoot {
            has_queue: queue.is_some(),
            queue: queue.map_or_else(QueueSettings::default, |own| {
                QueueSettings::read(own, &QueueSettings::default(), true, &*context.fs)
            }),
            dead_letters: read_dead_letters(root.part(&ROOT_DEAD_LETTERS), None),
            others: kinds::others(setup),
        };
        root.accept_key(&OUTPUTS);
        match root.item(OUTPUTS.name()) {
            None => Self::single(root, &at_root, context, started),
            Some(list) => Self::several(root, &list, &at_root, context, started),
        }
    }

    fn single(
        root: &Section<'_>,
        at_root: &AtRoot,
        context: &OutputContext,
        started: Timestamp,
    ) -> Self {
        let outputs = root.part(&OUTPUT);
        let built = skidder_outputs::build(&outputs, &[], context, started, &at_root.others);
        let inside = queue_of_kind(&outputs, &[]);
        if at_root.has_queue && inside.is_some() {
            let message = "`queue` stands at the root and in the output";
            root.problem("queue", message, "leave one of them out");
        }
        outputs.finish();
        let given = at_root.has_queue || inside.is_some();
        let queue = match inside {
            Some(inside) => QueueSettings::read(inside, &at_root.queue, false, &*context.fs),
            None => at_root.queue.clone(),
        };
        let wins = |built: &Built| built.queue.events.is_some() && !built.queue.gives_way;
        if built.as_ref().is_some_and(wins) && at_root.has_queue && !queue.is_on_disk() {
            let message = "the preset of the output overrides `queue.mem`";
            root.warning("queue", message, "use `preset: custom` to set it yourself");
        }
        let wrong = built.is_none();
        let one =
            built.map(|built| (0, OneOutput::new(built, (queue, given), at_root.dead_letters)));
        Self { ids: Vec::new(), built: one.into_iter().collect(), wrong }
    }

    fn several(
        root: &Section<'_>,
        list: &Item<'_>,
        at_root: &AtRoot,
        context: &OutputContext,
        started: Timestamp,
    ) -> Self {
        let mut outputs = Self { ids: Vec::new(), built: Vec::new(), wrong: false };
        if root.has("output") {
            let message = "`output` and `outputs` are both there";
            root.problem("outputs", message, "make the output of `output` an item of `outputs`");
            outputs.wrong = true;
        }
        root.part(&OUTPUT).skip();
        let items = if list.is_list() { list.clone().into_items() } else { Vec::new() };
        if items.is_empty() {
            let hint = "for example `outputs: [{id: main, elasticsearch: {hosts: [...]}}]`";
            list.problem("`outputs` is no list of outputs", hint);
            outputs.wrong = true;
        }
        for item in items {
            let section = item.section();
            outputs.read_one(&section, at_root, context, started);
            section.finish();
        }
        if outputs.built.is_empty() && !outputs.wrong {
            list.problem("no output is enabled", "set `enabled: true` for one");
            outputs.wrong = true;
        }
        outputs
    }

    fn read_one(
        &mut self,
        section: &Section<'_>,
        at_root: &AtRoot,
        context: &OutputContext,
        started: Timestamp,
    ) {
        section.declared_by(&OUTPUTS_ITEM);
        let id = section.get(&ID).check(|id| check_id(id)).required();
        if self.ids.contains(&id) && !id.is_empty() {
            let message = format!("two outputs have the id `{id}`");
            section.problem("id", message, "give each its own `id`, and never change it");
        }
        let number = self.ids.len();
        self.ids.push(id);
        if !section.get(&ENABLED).value() {
            section.off();
            return;
        }
        let built = skidder_outputs::build(section, &BESIDE, context, started, &at_root.others);
        let mut queue = at_root.queue.clone();
        let inside = [section.optional_part(&OWN_QUEUE), queue_of_kind(section, &BESIDE)];
        if inside.iter().all(Option::is_some) {
            let message = "`queue` stands beside the output and in it";
            section.problem("queue", message, "leave one of them out");
        }
        let given = at_root.has_queue || inside.iter().any(Option::is_some);
        for inside in inside.into_iter().flatten() {
            queue = QueueSettings::read(inside, &at_root.queue, false, &*context.fs);
        }
        let dead_letters = match section.optional_part(&OWN_DEAD_LETTERS) {
            Some(own) => read_dead_letters(own, at_root.dead_letters),
            None => at_root.dead_letters,
        };
        match built {
            Some(built) => {
                let one = OneOutput::new(built, (queue, given), dead_letters);
                self.built.push((number, one));
            }
            None => self.wrong = true,
        }
    }
}

impl OneOutput {
    /// A preset overrides the queue; sizes that are `auto` give way to a queue that is `given`.
    fn new(
        built: Built,
        (mut queue, given): (QueueSettings, bool),
        dead_letters: Option<DeadLettersLimits>,
    ) -> Self {
        if given && built.queue.gives_way {
            return Self { built, queue, dead_letters };
        }
        let limits = &mut queue.limits;
        limits.events = built.queue.events.unwrap_or(limits.events);
        limits.flush_min_events = built.queue.flush_min_events.unwrap_or(limits.flush_min_events);
        limits.flush_timeout = built.queue.flush_timeout.unwrap_or(limits.flush_timeout);
        Self { built, queue, dead_letters }
    }
}

/// An id is the name of a directory, a label of metrics and a part of a URL.
fn check_id(id: &str) -> Result<(), String> {
    let is_good = |letter: char| letter.is_ascii_alphanumeric() || "_.-".contains(letter);
    if !id.chars().all(is_good) {
        return Err("an id has letters, digits, `_`, `.` and `-`".to_owned());
    }
    if !id.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_') {
        return Err("an id begins with a letter, a digit or `_`".to_owned());
    }
    if id.len() > ID_BYTES_MAX {
        return Err(format!("an id has at most {ID_BYTES_MAX} letters"));
    }
    Ok(())
}

/// `queue` inside of a kind of output.
fn queue_of_kind<'a>(outputs: &Section<'a>, beside: &[&str]) -> Option<Section<'a>> {
    outputs.keys().into_iter().filter(|name| !beside.contains(name)).find_map(|name| {
        let section = outputs.section(name);
        let queue = section.optional_part(&skidder_outputs::OWN_QUEUE);
        section.skip();
        queue
    })
}

/// `dead_letters`; missing settings are as in `base`.
fn read_dead_letters(
    section: Section<'_>,
    base: Option<DeadLettersLimits>,
) -> Option<DeadLettersLimits> {
    section.declared_by(&DEAD_LETTERS);
    let enabled = section.get(&dead_letters::ENABLED).value();
    let default = base.map_or(DeadLettersLimits::BYTES, |base| base.bytes);
    let bytes = section.get(&dead_letters::MAX_BYTES).or(default);
    section.finish();
    enabled.then_some(DeadLettersLimits { bytes })
}

#[cfg(test)]
mod tests;
