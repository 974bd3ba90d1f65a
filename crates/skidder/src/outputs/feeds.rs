//! Which outputs an input feeds, and with which of its events: `outputs` of an input.

use crate::input_settings::{OUTPUTS, feed};
use skidder_config::{Item, Section, nearest};
use skidder_processors::Condition;

/// The outputs that an input feeds.
#[derive(Clone, Debug)]
pub(crate) enum Feeds {
    /// All of them, with every event.
    All,
    /// These, by their numbers, with the events for which the condition holds.
    These(Vec<(usize, Option<Condition>)>),
}

/// The way from an input to an output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Route<'a> {
    /// For which events; nothing means for all.
    pub(crate) condition: Option<&'a Condition>,
}

impl Feeds {
    /// Reads `outputs` of an input; `ids` are those of the outputs, none if there is only `output`.
    pub(crate) fn read(section: &Section<'_>, ids: &[String]) -> Self {
        let Some(list) = section.any(&OUTPUTS) else { return Self::All };
        if ids.is_empty() {
            let message = format!("`{}` chooses among several outputs", list.path());
            let hint = "list them at the root: `outputs: [{id: main, elasticsearch: {…}}]`";
            list.problem(message, hint);
            return Self::All;
        }
        let items = list.clone().into_items();
        if items.is_empty() {
            let message = format!("`{}` names no output", list.path());
            list.problem(message, "leave it out to feed all of them");
        }
        let mut these = Vec::new();
        for item in items {
            let Some((number, condition)) = read_one(&item, ids) else { continue };
            if these.iter().any(|(other, _)| *other == number) {
                let message = format!("`{}` names the output `{}` twice", list.path(), ids[number]);
                item.problem(message, "`or` of two conditions is one condition");
            }
            these.push((number, condition));
        }
        Self::These(these)
    }

    /// The way to an output, if there is one.
    pub(crate) fn to(&self, number: usize) -> Option<Route<'_>> {
        match self {
            Self::All => Some(Route { condition: None }),
            Self::These(these) => these
                .iter()
                .find(|(other, _)| *other == number)
                .map(|(_, condition)| Route { condition: condition.as_ref() }),
        }
    }
}

/// An id, or an id with a condition.
fn read_one(item: &Item<'_>, ids: &[String]) -> Option<(usize, Option<Condition>)> {
    if !item.is_map() {
        let id = item.string().required();
        return Some((number_of(&id, item, ids)?, None));
    }
    let section = item.section();
    section.declared_by(&feed::FEED);
    let id = section.get(&feed::ID).required();
    let condition = section.item_of(&feed::WHEN).map(|item| Condition::read(&item));
    section.finish();
    if id.is_empty() {
        return None;
    }
    let number = number_of(&id, item, ids)?;
    match condition {
        None => Some((number, None)),
        Some(condition) => Some((number, Some(condition?))),
    }
}

fn number_of(id: &str, item: &Item<'_>, ids: &[String]) -> Option<usize> {
    let number = ids.iter().position(|other| other == id);
    if number.is_none() {
        let hint = match nearest(id, ids.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there are {}", quoted(ids)),
        };
        item.problem(format!("`{}`: there is no output `{id}`", item.path()), hint);
    }
    number
}

/// Names for a message.
pub(crate) fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
