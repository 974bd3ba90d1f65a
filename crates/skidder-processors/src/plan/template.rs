//! A plan that is bound to what all sources of an input share, and has only the fields of the file put in for
//! each of them.
//!
//! Binding costs as much as reading a small file, and usually no processor looks at `log.file`.
//! Then the layer is the same for all sources but for that object. It is not if a condition or a
//! footprint of the list touches `log.file`, or if anything is left to be done for each event: such
//! a list is bound for each source.

use super::bound::{BoundPlan, GuardFilter};
use super::constants::Constants;
use super::shared::Uniform;
use super::{Binder, Plan, Shape};
use skidder_event::{Base, Map, Path, Value};
use std::sync::{Arc, LazyLock};

/// The object that differs from source to source.
static FILE: LazyLock<Path> =
    LazyLock::new(|| Path::parse("log.file").expect("a constant that is a path"));

/// A list bound to everything but `log.file`.
#[derive(Debug)]
pub struct Template {
    /// The fields it was bound to.
    shared: Map,
    base: Arc<Base>,
    input_base: Arc<Base>,
}

impl Plan {
    /// What [`Plan::bind`] gives for all sources that differ only in the object `log.file`, if it
    /// gives the same for all of them but for that object.
    pub fn template(&self, fields: &Map, metadata: &Map, shape: Shape) -> Option<Template> {
        file_of(fields)?;
        let mut shared = fields.clone();
        shared.remove_path(FILE.as_str());
        let mut binder = Binder::new(Constants::new(&shared, metadata), shape).watching(&FILE);
        binder.add_all(&self.steps);
        if binder.has_met() {
            return None;
        }
        let (plan, _) = binder.finish(&self.forms);
        let BoundPlan { base, input_base, .. } = plan.is_constant().then_some(plan)?;
        // With an object that others take the keys of.
        let file = file_of(fields)?;
        let put = |base: &Base| base.with_inside("log", "file", file).map(Arc::new);
        let is_one = Arc::ptr_eq(&base, &input_base);
        let base = put(&base)?;
        let input_base = if is_one { Arc::clone(&base) } else { put(&input_base)? };
        Some(Template { shared, base, input_base })
    }
}

impl Template {
    /// What [`Plan::bind`] would give for these fields; `None` if they differ in more than `log.file`.
    pub fn bind(&self, fields: &Map) -> Option<BoundPlan> {
        let file = file_of(fields)?;
        if !is_same_but_file(&self.shared, fields) {
            return None;
        }
        let put = |base: &Base| base.with_inside("log", "file", file).map(Arc::new);
        let base = put(&self.base)?;
        let input_base = if Arc::ptr_eq(&self.base, &self.input_base) {
            Arc::clone(&base)
        } else {
            put(&self.input_base)?
        };
        Some(BoundPlan {
            base,
            input_base,
            steps: Box::default(),
            guards: GuardFilter::of(&[]),
            drops: false,
            uniform: Some(Uniform::default()),
            form: None,
            steps_in_slots: 0,
        })
    }
}

/// The object `log.file`.
fn file_of(fields: &Map) -> Option<&Map> {
    match fields.get("log")? {
        Value::Map(log) => match log.get("file")? {
            Value::Map(file) => Some(file),
            _ => None,
        },
        _ => None,
    }
}

/// Whether `fields` are those in `shared`, besides `log.file`, which `shared` does not have.
fn is_same_but_file(shared: &Map, fields: &Map) -> bool {
    let (Some(Value::Map(shared_log)), Some(Value::Map(log))) =
        (shared.get("log"), fields.get("log"))
    else {
        return false;
    };
    shared.len() == fields.len()
        && shared_log.len() + 1 == log.len()
        && shared.iter().all(|(key, value)| key == "log" || fields.get(key) == Some(value))
        && shared_log.iter().all(|(key, value)| log.get(key) == Some(value))
}
