//! The options that all inputs share, and the plan of an input that they become.

use crate::agent::{Agent, COMPATIBLE_VERSION};
use crate::input_settings::{
    DISABLE_HOST, FIELDS, FIELDS_UNDER_ROOT, INDEX, PIPELINE, PROCESSORS, SERVICE_TYPE, TAGS,
};
use crate::made_fields::MadeFields;
use crate::program_pages;
use crate::step_times::StepTimes;
use skidder_config::Section;
use skidder_event::{Base, Batch, DropReason, Format, Map, Path};
use skidder_modules::{FILESET_NAME, MODULE_NAME};
use skidder_processors::{
    AddFields, AddTags, BoundPlan, Compiled, Condition, Context, FailureCount, Fate, Meter, Plan,
    RawIndex, Shape, StepCounts, StepNote, Template, fields_of, read_processors,
};
use skidder_read::{Bind, Bound};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

/// A template and its epoch.
type Made = Option<(u64, Option<Arc<Template>>)>;

/// The plan of an input, and what all its events share. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct InputPlan {
    plan: Arc<Plan>,
    metadata: Map,
    shape: Shape,
    /// What the plan is for all sources but for the fields of their files, if that can be said, and of which epoch
    /// it is.
    template: Arc<RwLock<Made>>,
    /// Of one of several outputs: for which events it is.
    condition: Option<Condition>,
    /// What its steps cost.
    times: Arc<StepTimes>,
}

/// A plan bound to a source, as the reader sees it.
#[derive(Debug)]
pub(crate) struct SourcePlan {
    plan: BoundPlan,
    condition: Option<Condition>,
    times: Arc<StepTimes>,
}

impl InputPlan {
    /// The same for an output that gets only the events for which the condition holds behind all processors.
    pub(crate) fn for_output(&self, condition: Option<&Condition>) -> Self {
        let times = Arc::new(self.times.anew());
        Self { condition: condition.cloned(), times, ..self.clone() }
    }

    /// For which events the output is; nothing means for all.
    pub(crate) fn condition(&self) -> Option<&Condition> {
        self.condition.as_ref()
    }

    /// What runs over the batches of a source with these fields.
    pub(crate) fn bind_source(&self, fields: &Map) -> SourcePlan {
        let template = self.template(fields);
        let bound = template.and_then(|template| template.bind(fields));
        let plan = bound.unwrap_or_else(|| self.plan.bind(fields, &self.metadata, self.shape));
        SourcePlan { plan, condition: self.condition.clone(), times: Arc::clone(&self.times) }
    }

    /// Made with the fields of the first source.
    fn template(&self, fields: &Map) -> Option<Arc<Template>> {
        // Read before binding: what changes meanwhile belongs to the next epoch.
        let epoch = self.plan.epoch();
        if let Some((of, template)) = &*self.template.read().unwrap_or_else(PoisonError::into_inner)
            && *of == epoch
        {
            return template.clone();
        }
        let template = self.plan.template(fields, &self.metadata, self.shape).map(Arc::new);
        *self.template.write().unwrap_or_else(PoisonError::into_inner) =
            Some((epoch, template.clone()));
        // Scan, first connection and first binding are over; buffers begin to fill.
        program_pages::give_back();
        template
    }

    /// What becomes of each step for a source with these fields.
    pub(crate) fn describe(&self, fields: &Map) -> Vec<StepNote> {
        let mut notes = self.plan.describe(fields, &self.metadata, self.shape);
        notes.extend(self.condition.as_ref().map(|condition| StepNote {
            fate: Fate::PerEvent,
            step: format!("for this output only if {condition}"),
        }));
        notes
    }

    /// What the steps cost that are left for each event.
    pub(crate) fn times(&self) -> &StepTimes {
        &self.times
    }

    /// The failures of every processor.
    pub(crate) fn failures(&self) -> Vec<Arc<FailureCount>> {
        self.plan.failures()
    }
}

impl SourcePlan {
    /// Runs step by step, to measure. The condition of the output is the last step; `steps` are before it.
    pub(crate) fn run_measured(&self, batch: &mut Batch, steps: usize, meter: &mut dyn Meter) {
        self.plan.run_measured(batch, meter);
        if let Some(condition) = &self.condition {
            meter.begin();
            let events = batch.len() as u64;
            choose(condition, batch);
            let dropped = events - batch.len() as u64;
            meter.end(steps, StepCounts { events, dropped, failed: 0 });
        }
    }
}

/// Takes out the events that are not for the output.
fn choose(condition: &Condition, batch: &mut Batch) {
    let base = Arc::clone(batch.base());
    let mut others = false;
    for row in 0..batch.len() {
        if !condition.check(batch.event(row)) {
            batch.event_mut(row, &base).set_dropped();
            others = true;
        }
    }
    if others {
        batch.remove_dropped(DropReason::NotForOutput);
    }
}

impl Bind for InputPlan {
    fn bind(&self, fields: &Map) -> Arc<dyn Bound> {
        Arc::new(self.bind_source(fields))
    }

    fn can_hold(&self) -> bool {
        self.plan.can_hold()
    }

    fn hold(&self, fields: &Map) -> Option<Duration> {
        self.plan.hold(fields, &self.metadata)
    }

    fn epoch(&self) -> u64 {
        self.plan.epoch()
    }
}

impl Bound for SourcePlan {
    fn base(&self) -> &Arc<Base> {
        self.plan.input_base()
    }

    fn run(&self, batch: &mut Batch) {
        match self.times.next(self.plan.steps()) {
            None => self.plan.run(batch),
            Some(mut timed) => self.plan.run_watched(batch, &mut timed),
        }
        if let Some(condition) = &self.condition {
            choose(condition, batch);
        }
    }
}

/// Settings at the root that every input has a part in.
pub(crate) struct Common {
    tags: Vec<String>,
    fields: Map,
    under_root: bool,
    processors: Vec<Compiled>,
    pub(crate) agent: Agent,
    /// What adds the fields of the agent, without `host.name` and with it. It takes some kilobytes.
    builtin: [Compiled; 2],
}

impl Common {
    pub(crate) fn read(root: &Section<'_>, context: &Context, agent: &Agent) -> Self {
        Self {
            tags: root.get(&TAGS).value(),
            fields: read_fields(root),
            under_root: root.get(&FIELDS_UNDER_ROOT).value(),
            processors: read_processors(root.items_of(&PROCESSORS), context),
            agent: agent.clone(),
            builtin: [false, true].map(|host| Plan::builtin(&agent.fields(host))),
        }
    }
}

/// What the type of an input and its own options add to its events.
#[derive(Clone, Debug, Default)]
pub(crate) struct OfType {
    /// A tag of all of them.
    pub(crate) tag: Option<&'static str>,
    /// They may have fields of their own.
    pub(crate) makes_fields: bool,
    /// They are complete events of other programs.
    pub(crate) relays: bool,
    /// `@metadata` of all of them.
    pub(crate) metadata: Map,
}

/// The options that all inputs share. `made` are fields from autodiscover.
pub(crate) fn read(
    section: &Section<'_>,
    common: &Common,
    context: &Context,
    of: OfType,
    made: Option<&MadeFields>,
) -> InputPlan {
    let mut fields = Map::new();
    add_fields(&mut fields, &common.fields, common.under_root);
    let own = read_fields(section);
    add_fields(&mut fields, &own, section.get(&FIELDS_UNDER_ROOT).value());
    let mut tags = common.tags.clone();
    tags.extend(section.get(&TAGS).value());
    tags.extend(of.tag.map(str::to_owned));
    let mut metadata = of.metadata;
    if let Some(pipeline) = section.get(&PIPELINE).optional() {
        metadata.insert("pipeline", pipeline);
    }
    let mut dated = None;
    if let Some(index) = read_index(section, &common.agent) {
        match index.constant() {
            Some(index) => metadata.insert("raw_index", index),
            None => dated = RawIndex::new(index),
        }
    }
    add_module(section, &mut fields);
    let host = !section.get(&DISABLE_HOST).value();
    // Tags first, then fields, and both over what a parser found.
    let mut processors = Vec::new();
    if !tags.is_empty() {
        let target = Path::parse(AddTags::TARGET).expect("a constant that is a path");
        processors.push(Compiled::new(AddTags::new(target, &tags), None));
    }
    if !fields.is_empty() {
        processors.push(Compiled::new(AddFields::new("", &fields), None));
    }
    processors.extend(made.map(|fields| Compiled::new(fields.clone(), None)));
    processors.extend(dated.map(|index| Compiled::new(index, None)));
    processors.extend(read_processors(section.items_of(&PROCESSORS), context));
    // Which agent read an event, and on which host, says the event itself then, or nothing does.
    let builtin =
        if of.relays { &[] } else { std::slice::from_ref(&common.builtin[usize::from(host)]) };
    let plan = Plan::of_lists([&processors, builtin, &common.processors]);
    // What a parser finds may have the name of anything that processors add or read.
    let shape = if of.makes_fields { Shape::Any } else { Shape::Lines };
    let times = Arc::new(StepTimes::new(Arc::clone(&context.clock)));
    InputPlan {
        plan: Arc::new(plan),
        metadata,
        shape,
        template: Arc::default(),
        condition: None,
        times,
    }
}

/// `service.type`, and the fields that say which module made the input.
fn add_module(section: &Section<'_>, fields: &mut Map) {
    let module = section.get(&MODULE_NAME).optional();
    let fileset = section.get(&FILESET_NAME).optional();
    let service = section.get(&SERVICE_TYPE).optional().or_else(|| module.clone());
    if let Some(service) = service {
        fields.insert_path("service.type", service);
    }
    if let Some(fileset) = &fileset {
        fields.insert_path("fileset.name", fileset.clone());
    }
    if let Some(module) = module {
        if let Some(fileset) = fileset {
            fields.insert_path("event.dataset", format!("{module}.{fileset}"));
        }
        fields.insert_path("event.module", module);
    }
}

/// `fields` of a section.
fn read_fields(section: &Section<'_>) -> Map {
    match section.get(&FIELDS).optional() {
        None => Map::new(),
        Some(skidder_config::Value::Map(map)) => fields_of(&map),
        // As in Filebeat, which takes a list without a word.
        Some(skidder_config::Value::List(_)) => {
            let message =
                format!("`{}` is a list and has no effect", section.path_of(FIELDS.name()));
            section.warning(
                FIELDS.name(),
                message,
                "names are needed, as in `fields: {env: test}`",
            );
            Map::new()
        }
        Some(_) => {
            let shown = section.any(&FIELDS).map(|item| item.node().shown()).unwrap_or_default();
            let path = section.path_of(FIELDS.name());
            let message = format!("`{path}` is {shown}; expected a map of names to values");
            section.problem(FIELDS.name(), message, "for example `fields: {env: test}`");
            Map::new()
        }
    }
}

fn add_fields(fields: &mut Map, more: &Map, under_root: bool) {
    if more.is_empty() {
        return;
    }
    let mut rooted = more.clone();
    if !under_root {
        rooted = Map::new();
        rooted.insert("fields", more.clone());
    }
    fields.merge(&rooted);
}

/// `index` of an input: may name the agent and the date, not fields of an event.
fn read_index(section: &Section<'_>, agent: &Agent) -> Option<Format> {
    let mut format = section
        .get(&INDEX)
        .try_map(|text| Format::parse(&text).map_err(|error| error.to_string()))
        .optional()?;
    format.bind(|field| match field {
        "agent.version" | "beat.version" | "observer.version" => {
            Some(COMPATIBLE_VERSION.to_owned())
        }
        "agent.name" | "beat.name" => Some(agent.name.clone()),
        _ => None,
    });
    if !format.is_dated_only() {
        let message =
            "an input's `index` may hold `%{[agent.version]}`, `%{[agent.name]}` and a date";
        section.problem(
            INDEX.name(),
            message,
            "other fields can stand in `output.elasticsearch.index`",
        );
        return None;
    }
    Some(format)
}
