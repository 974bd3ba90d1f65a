//! Reads inputs one by one, for one output: at the start and at a reload all of the configuration, and in between those
//! that autodiscover makes.

use crate::agent::Agent;
use crate::config_context::ConfigContext;
use crate::filestream::InputContext;
use crate::input_plan::{self, Common, OfType};
use crate::input_print::Prints;
use crate::input_settings::{ENABLED, ID};
use crate::inputs::{self, Input, Reads};
use crate::made_fields::MadeFields;
use crate::outputs::{Feeds, Place};
use crate::own_log::OwnLog;
use crate::processors;
use skidder_config::{Item, Section, Settings};
use skidder_modules::MODULE_NAME;
use skidder_os::Timestamp;
use skidder_processors::Context;
use skidder_read::{InputKind, Peer};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// What the readers of all outputs share.
#[derive(Clone)]
pub(crate) struct Shared {
    tasks: skidder_inputs::Context,
    processors: Context,
    directory: PathBuf,
    agent: Agent,
    started: Timestamp,
    /// Of the outputs, if there is a list of them.
    ids: Vec<String>,
    own_log: OwnLog,
    prints: Prints,
}

impl Shared {
    /// For this configuration; `ids` are those of the outputs, if there is a list of them.
    pub(crate) fn new(
        settings: &Settings,
        context: &ConfigContext<'_>,
        agent: &Agent,
        ids: &[String],
        own_log: OwnLog,
    ) -> Self {
        Self {
            tasks: skidder_inputs::Context {
                fs: Arc::clone(&context.fs),
                clock: Arc::clone(&context.clock),
                sockets: context.sockets.clone(),
                servers: context.servers.clone(),
                wanted: skidder_inputs::Wanted::default(),
                data: None,
            },
            processors: processors_of(context).with_trial(context.trial),
            directory: context.directory.to_owned(),
            agent: agent.clone(),
            started: context.clock.wall(),
            ids: ids.to_vec(),
            own_log,
            prints: Prints::of(settings),
        }
    }
}

/// The context of the processors, with all their kinds.
fn processors_of(context: &ConfigContext<'_>) -> Context {
    let bare = Context::new(Arc::clone(&context.fs), Arc::clone(&context.clock))
        .with_interrupt(Arc::clone(&context.interrupt));
    processors::OTHERS.iter().fold(bare, |context, kinds| context.with(kinds))
}

/// The same with addresses of its own, of which none is taken.
fn apart(tasks: &skidder_inputs::Context) -> skidder_inputs::Context {
    skidder_inputs::Context { wanted: skidder_inputs::Wanted::default(), ..tasks.clone() }
}

/// Reads inputs for one output: what processors and parsers remember is each output's own.
pub(crate) struct InputReader {
    shared: Shared,
    /// The number of the output in the configuration.
    pub(crate) output: usize,
    place: Place,
    processors: Context,
    common: Common,
}

/// What an item of a list of inputs is.
pub(crate) enum Found {
    /// An input, and which outputs it feeds.
    Input(Box<Input>, Feeds),
    /// It is turned off.
    Off,
    /// Something is wrong with it, which is reported.
    Wrong,
}

impl InputReader {
    /// For the output with this number and place. `root` has the settings that every input has a part in.
    pub(crate) fn new(root: &Section<'_>, shared: &Shared, output: usize, place: Place) -> Self {
        // The addresses that inputs listen on are those of one output.
        let tasks =
            skidder_inputs::Context { data: Some(place.data.clone()), ..apart(&shared.tasks) };
        let shared = Shared { tasks, ..shared.clone() };
        let processors = shared.processors.clone().with_data(&place.data);
        let common = Common::read(root, &processors, &shared.agent);
        Self { shared, output, place, processors, common }
    }

    /// Reads an input, which gets this number. `is_new` returns whether no other `filestream` input has an id. `made` are
    /// fields of all of its events.
    pub(crate) fn read(
        &self,
        item: &Item<'_>,
        number: usize,
        is_new: &mut dyn FnMut(&str) -> bool,
        made: Option<&MadeFields>,
    ) -> Found {
        self.read_with(&self.shared.tasks, item, number, is_new, made)
    }

    /// Finds the mistakes in an input that may never run, apart from all others: it can have their id and address.
    pub(crate) fn try_out(&self, item: &Item<'_>) {
        self.read_with(&apart(&self.shared.tasks), item, 0, &mut |_| true, None);
    }

    fn read_with(
        &self,
        tasks: &skidder_inputs::Context,
        item: &Item<'_>,
        number: usize,
        is_new: &mut dyn FnMut(&str) -> bool,
        made: Option<&MadeFields>,
    ) -> Found {
        let section = section_of(item);
        if !item.is_map() {
            inputs::refuse_empty(item);
            return Found::Wrong;
        }
        if !section.get(&ENABLED).value() {
            inputs::turned_off(section);
            return Found::Off;
        }
        let shared = &self.shared;
        let context = InputContext {
            fs: &*shared.tasks.fs,
            directory: &shared.directory,
            started: shared.started,
            first_start: shared.agent.first_start,
            first_use: shared.agent.first_use,
        };
        let Some(mut reads) = inputs::read(&section, &context, tasks) else {
            inputs::wrong(section, |section| {
                section.get(&ID).value();
                Feeds::read(section, &shared.ids);
                let of_type = OfType::default();
                input_plan::read(section, &self.common, &self.processors, of_type, made);
            });
            return Found::Wrong;
        };
        let id = match &mut reads {
            Reads::Files(settings) => {
                shared.own_log.leave_out(&section, settings);
                settings.pin.directory = Some(self.place.data.join("pins"));
                let is_new = settings.kind != InputKind::Filestream || is_new(&settings.id);
                if !is_new && !settings.shares_keys {
                    let message = format!("two inputs have the id `{}`", settings.id);
                    let hint = "give each its own `id`, and never change it";
                    section.problem("id", message, hint);
                }
                settings.id.clone()
            }
            Reads::Task(_) => section.get(&ID).value(),
        };
        let feeds = Feeds::read(&section, &shared.ids);
        let of_type = reads.of_type();
        let plan = input_plan::read(&section, &self.common, &self.processors, of_type, made);
        let plan = Arc::new(plan);
        section.finish();
        let bind = Arc::clone(&plan) as _;
        let print = shared.prints.of_input(item.node());
        let object = None;
        let input = Input { number, id, object, reads, print, bind, plan, peer: None };
        Found::Input(Box::new(input), feeds)
    }
}

/// The settings of an input; unknown ones in the template of a module are no mistake of the user.
fn section_of<'a>(item: &Item<'a>) -> Section<'a> {
    let section = item.section();
    if section.has(MODULE_NAME.name()) {
        section.forgive();
    }
    section
}

/// The inputs that feed an output, as they do.
pub(crate) fn feeding(inputs: Vec<(Input, Feeds)>, output: usize) -> Vec<Input> {
    let mut feeding = Vec::new();
    for (mut input, feeds) in inputs {
        let Some(route) = feeds.to(output) else { continue };
        if route.condition.is_some() {
            input.plan = Arc::new(input.plan.for_output(route.condition));
            input.bind = Arc::clone(&input.plan) as _;
        }
        feeding.push(input);
    }
    feeding
}

/// The parts of an input that feeds several outputs know of each other.
pub(crate) fn acquaint<'a>(inputs: impl Iterator<Item = &'a mut Input>) {
    let mut alike: BTreeMap<usize, Vec<&mut Input>> = BTreeMap::new();
    for input in inputs {
        alike.entry(input.number).or_default().push(input);
    }
    for inputs in alike.into_values().filter(|inputs| inputs.len() > 1) {
        if inputs[0].files().is_none() {
            continue;
        }
        let peers = Peer::seats(inputs.len());
        for (input, peer) in inputs.into_iter().zip(peers) {
            input.peer = Some(peer);
        }
    }
}

/// Of inputs with one id, each must know that others have its keys.
pub(crate) fn share_keys(inputs: &mut [(Input, Feeds)]) {
    let keys = |input: &Input| input.files().map(|files| (files.kind, files.id.clone()));
    let all: Vec<(InputKind, String)> =
        inputs.iter().filter_map(|(input, _)| keys(input)).collect();
    for (input, _) in inputs {
        let Some(own) = keys(input) else { continue };
        let Some(settings) = input.files_mut() else { continue };
        settings.shares_keys |= all.iter().filter(|other| **other == own).count() > 1;
        // An input that did not share them before starts over.
        let shares_keys = settings.shares_keys;
        input.print.note(shares_keys);
    }
}
