//! Reads conditions of a configuration. Every mistake is reported at its key.

use super::{Bounds, Condition, EqualsValue, Network};
use skidder_config::{Any, Content, Group, Item, Key, Part, Parts, Section, settings};
use skidder_event::Path;

settings! {
    /// A condition: exactly one of these.
    pub static CONDITION = Group::new("condition", "A condition on events: exactly one operator.");

    EQUALS: Any = Key::new("equals").about("fields and their values: a whole number, a text, `true` or `false`");
    CONTAINS: Any = Key::new("contains").about("fields and texts that are in them, or in an element of a list");
    REGEXP: Any = Key::new("regexp").about("fields and regular expressions");
    RANGE: Any = Key::new("range").about("fields and bounds: `gte`, `gt`, `lte`, `lt`");
    NETWORK: Any = Key::new("network").about(
        "fields and networks that their addresses are in: CIDR, or `loopback`, `global_unicast`, `unicast`, \
         `link_local_unicast`, `interface_local_multicast`, `link_local_multicast`, `multicast`, `unspecified`, \
         `private`, `public`",
    );
    HAS_FIELDS: Vec<String> = Key::new("has_fields").about("fields that are there");
    AND: Parts = Key::parts("and", &CONDITION).about("a list of conditions that all hold");
    OR: Parts = Key::parts("or", &CONDITION).about("a list of conditions of which one holds");
    NOT: Part = Key::part("not", &CONDITION).about("a condition that does not hold");
}

/// The operators of a condition.
fn operators() -> Vec<&'static str> {
    CONDITION.declared().map(|key| key.spec().name).collect()
}

impl Condition {
    /// Reads a condition: a map with exactly one operator. `None` if it has a mistake.
    pub fn read(item: &Item<'_>) -> Option<Self> {
        let section = item.section();
        section.declared_by(&CONDITION);
        let operators = operators();
        for operator in &operators {
            section.accept(operator);
        }
        let keys = section.keys();
        let mut used = operators.iter().copied().filter(|operator| keys.contains(operator));
        let operator = used.next();
        let others: Vec<&str> = used.collect();
        let Some(operator) = operator else {
            if keys.is_empty() {
                let message = format!("`{}` has no condition", item.path());
                item.problem(message, format!("use one of {}", operators.join(", ")));
            }
            return None;
        };
        if !others.is_empty() {
            let message = format!(
                "`{}` has several operators: {operator}, {}",
                item.path(),
                others.join(", ")
            );
            let hint =
                "make each an item of a list under `and`; Filebeat would use only one of them";
            item.problem(message, hint);
            return None;
        }
        read_operator(&section, operator)
    }
}

fn read_operator(section: &Section<'_>, operator: &str) -> Option<Condition> {
    match operator {
        "equals" => fields(section, &EQUALS, read_equals),
        "contains" => fields(section, &CONTAINS, |path, item| {
            Some(Condition::contains(path, &read_text(item)?))
        }),
        "regexp" => fields(section, &REGEXP, |path, item| {
            let pattern = read_text(item)?;
            match Condition::regexp(path, &pattern) {
                Ok(condition) => Some(condition),
                Err(error) => {
                    item.problem(format!("`{}`: {error}", item.path()), "");
                    None
                }
            }
        }),
        "range" => read_range(&section.names(&RANGE)),
        "network" => fields(section, &NETWORK, read_network),
        "has_fields" => {
            let names = section.get(&HAS_FIELDS).optional()?;
            let tests = names.iter().map(|name| match Path::parse(name) {
                Ok(path) => Some(Condition::has_field(path)),
                Err(error) => {
                    section.problem(operator, error.to_string(), "");
                    None
                }
            });
            all_of(tests.collect(), section, operator)
        }
        "not" => {
            let inner = section.item_of(&NOT).and_then(|item| Condition::read(&item))?;
            Some(Condition::Not(Box::new(inner)))
        }
        _ => {
            let items = section.items_of(if operator == AND.name() { &AND } else { &OR });
            let list: Vec<_> = items.iter().map(Condition::read).collect();
            if operator == AND.name() || list.is_empty() {
                return all_of(list, section, operator);
            }
            Some(Condition::Or(list.into_iter().collect::<Option<_>>()?))
        }
    }
}

/// Joins tests by `and`; `None` if one has a mistake, or if there are none.
fn all_of(
    tests: Vec<Option<Condition>>,
    section: &Section<'_>,
    operator: &str,
) -> Option<Condition> {
    if tests.is_empty() {
        section.problem(operator, format!("`{}` is empty", section.path_of(operator)), "");
        return None;
    }
    let mut tests = tests.into_iter().collect::<Option<Vec<_>>>()?;
    if tests.len() == 1 { tests.pop() } else { Some(Condition::And(tests)) }
}

/// Reads the fields under an operator, nested or dotted.
fn fields(
    section: &Section<'_>,
    operator: &Key<Any>,
    read: impl Fn(Path, &Item<'_>) -> Option<Condition>,
) -> Option<Condition> {
    let leaves = section.names(operator).leaves();
    let tests = leaves.iter().map(|(name, item)| read(read_path(name, item)?, item));
    all_of(tests.collect(), section, operator.name())
}

fn read_path(name: &str, item: &Item<'_>) -> Option<Path> {
    match Path::parse(name) {
        Ok(path) => Some(path),
        Err(error) => {
            item.problem(format!("`{}`: {error}", item.path()), "");
            None
        }
    }
}

/// A text; numbers and booleans have to be quoted, as in Filebeat.
fn read_text(item: &Item<'_>) -> Option<String> {
    let text = item.string().optional()?;
    if matches!(item.node().content(), Content::String) {
        return Some(text);
    }
    let message = format!("`{}` is {}; expected a text", item.path(), item.node().shown());
    item.problem(message, "put it in quotes");
    None
}

fn read_equals(path: Path, item: &Item<'_>) -> Option<Condition> {
    if item.node().is_unresolved() {
        // Reading the text reports the unresolved variable.
        return item.string().optional().and(None);
    }
    let value = match item.node().content() {
        Content::Int(number) => EqualsValue::Int(*number as u64),
        Content::UInt(number) => EqualsValue::Int(*number),
        Content::Bool(truth) => EqualsValue::Bool(*truth),
        Content::String => EqualsValue::Str(item.node().text().unwrap_or_default().into()),
        Content::Null | Content::Float(_) | Content::List(_) | Content::Map(_) => {
            let shown = item.node().shown();
            let message = format!(
                "`{}` is {shown}; expected a whole number, a text or `true` or `false`",
                item.path()
            );
            item.problem(message, "");
            return None;
        }
    };
    Some(Condition::equals(path, value))
}

/// `field: {gte: 1, lt: 5}`, or `field.gte: 1`.
fn read_range(section: &Section<'_>) -> Option<Condition> {
    let mut ranges: Vec<(Path, Bounds)> = Vec::new();
    let mut right = true;
    for (name, item) in section.leaves() {
        match read_bound(&name, &item) {
            None => right = false,
            Some((path, sign, bound)) => {
                let at = ranges.iter().position(|(have, _)| *have == path).unwrap_or(ranges.len());
                if at == ranges.len() {
                    ranges.push((path, Bounds::default()));
                }
                let bounds = &mut ranges[at].1;
                match sign {
                    Sign::Gte => bounds.gte = Some(bound),
                    Sign::Gt => bounds.gt = Some(bound),
                    Sign::Lte => bounds.lte = Some(bound),
                    Sign::Lt => bounds.lt = Some(bound),
                }
            }
        }
    }
    if !right {
        return None;
    }
    if ranges.is_empty() {
        section.problem("", format!("`{}` is empty", section.path()), "");
        return None;
    }
    let mut tests: Vec<_> =
        ranges.into_iter().map(|(path, bounds)| Condition::range(path, bounds)).collect();
    if tests.len() == 1 { tests.pop() } else { Some(Condition::And(tests)) }
}

enum Sign {
    Gte,
    Gt,
    Lte,
    Lt,
}

fn read_bound(name: &str, item: &Item<'_>) -> Option<(Path, Sign, f64)> {
    let (field, sign) = name.rsplit_once('.').unwrap_or(("", name));
    let sign = match sign {
        "gte" => Sign::Gte,
        "gt" => Sign::Gt,
        "lte" => Sign::Lte,
        "lt" => Sign::Lt,
        _ => {
            let message = format!("`{}` does not end with `gte`, `gt`, `lte` or `lt`", item.path());
            item.problem(message, format!("write `{name}.gte: 1`, or `{name}: {{gte: 1}}`"));
            return None;
        }
    };
    let text = item.string().optional()?;
    let bound = match item.node().content() {
        Content::Int(number) => *number as f64,
        Content::UInt(number) => *number as f64,
        Content::Float(number) => *number,
        _ => match text.parse() {
            Ok(number) => number,
            Err(_) => {
                let shown = item.node().shown();
                item.problem(format!("`{}` is {shown}; expected a number", item.path()), "");
                return None;
            }
        },
    };
    Some((read_path(field, item)?, sign, bound))
}

/// One network or a list of them.
fn read_network(path: Path, item: &Item<'_>) -> Option<Condition> {
    let mut networks = Vec::new();
    let mut right = true;
    for one in item.clone().into_items() {
        let Some(text) = one.string().optional() else {
            right = false;
            continue;
        };
        match Network::parse(&text) {
            Ok(network) => networks.push(network),
            Err(error) => {
                one.problem(format!("`{}`: {error}", one.path()), "");
                right = false;
            }
        }
    }
    if right && networks.is_empty() {
        item.problem(format!("`{}` is empty", item.path()), "");
        return None;
    }
    right.then(|| Condition::network(path, networks))
}
