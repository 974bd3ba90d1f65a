//! `add_tags`: appends to a list, without looking for duplicates.

use crate::plan::Constants;
use crate::plan::Footprint;
use crate::plan::{Failure, append};
use crate::plan::{Outcome, Processor};
use skidder_config::{Group, Key, Section, settings};
use skidder_event::{EventMut, Path, Value};

settings! {
    /// Settings of `add_tags`.
    pub(crate) static ADD_TAGS = Group::new("processor.add_tags", "Appends texts to a list, and makes the list if it is missing.");

    TAGS: Vec<String> = Key::new("tags")
        .required()
        .about("the texts");
    TARGET: String = Key::new("target")
        .default(AddTags::TARGET)
        .about("the list");
}

/// Appends tags to a list of the event, which is made if it is missing.
#[derive(Clone, Debug)]
pub struct AddTags {
    tags: Vec<Value>,
    target: Path,
}

impl AddTags {
    /// Default of the list.
    pub const TARGET: &'static str = "tags";

    /// Appends `tags` to the list `target`.
    pub fn new(target: Path, tags: &[String]) -> Self {
        Self { tags: tags.iter().map(|tag| Value::from(tag.as_str())).collect(), target }
    }

    /// `tags` and `target`.
    pub(crate) fn read(settings: &Section<'_>) -> Option<Self> {
        let tags = settings.get(&TAGS).required();
        let target = settings.get(&TARGET).check(|text| is_path(text)).value();
        // An empty target is the default one, as in Filebeat.
        let target = if target.is_empty() { Self::TARGET } else { &target };
        Some(Self::new(Path::parse(target).ok()?, &tags))
    }

    fn failure(&self, why: &str) -> Failure {
        Failure::unnoted(format!("Failed to add tags to {}: {why}", self.target))
    }
}

fn is_path(text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Ok(());
    }
    Path::parse(text).map(|_| ()).map_err(|error| error.to_string())
}

impl Processor for AddTags {
    fn name(&self) -> &'static str {
        "add_tags"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        if self.tags.is_empty() {
            return Ok(Outcome::Done);
        }
        append(event, &self.target, &self.tags).map_err(|why| self.failure(why))?;
        Ok(Outcome::Done)
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        Footprint { writes: vec![self.target.clone()], ..Footprint::default() }
    }

    fn fold(&self, constants: &mut Constants) -> bool {
        if self.tags.is_empty() {
            return true;
        }
        let mut tags = match constants.get(&self.target) {
            None => Vec::new(),
            Some(Value::List(old)) => old.clone(),
            Some(_) => return false,
        };
        tags.extend(self.tags.iter().cloned());
        constants.set(&self.target, Value::List(tags))
    }

    /// It fails on an event whose target is not a list, but then the event's own value hides the list
    /// of the layer, before and after.
    fn is_repeatable(&self) -> bool {
        true
    }

    fn can_fail(&self) -> bool {
        true
    }

    /// Filebeat takes no notice of tags that cannot be added.
    fn can_stop(&self) -> bool {
        false
    }

    fn describe(&self) -> String {
        let tags: Vec<_> = self
            .tags
            .iter()
            .filter_map(|tag| if let Value::Str(text) = tag { Some(&**text) } else { None })
            .collect();
        format!("add_tags {} to {}", tags.join(", "), self.target)
    }
}
