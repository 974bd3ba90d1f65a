//! Objects that are put on every event, whole.

use skidder_event::{EventMut, Map, Path, Value};
use skidder_processors::{Constants, Failure, Footprint, Outcome, Processor};

/// Puts values at paths: each as a whole, and unless `overwrite` only where nothing is.
#[derive(Debug)]
pub(crate) struct Put {
    name: &'static str,
    values: Vec<(Path, Value)>,
    overwrite: bool,
}

impl Put {
    /// Every key of `fields` is put by itself.
    pub(crate) fn new(name: &'static str, fields: &Map, overwrite: bool) -> Self {
        let value = |(key, value): (&str, &Value)| Some((Path::parse(key).ok()?, value.clone()));
        Self { name, values: fields.iter().filter_map(value).collect(), overwrite }
    }
}

impl Processor for Put {
    fn name(&self) -> &'static str {
        self.name
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        for (path, value) in &self.values {
            if self.overwrite || !event.as_ref().has(path) {
                event.put(path, value).map_err(|error| Failure::new(error.to_string()))?;
            }
        }
        Ok(Outcome::Done)
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        let writes = self.values.iter().map(|(path, _)| path.clone()).collect();
        Footprint { writes, open: true, ..Footprint::default() }
    }

    fn fold(&self, constants: &mut Constants) -> bool {
        for (path, value) in &self.values {
            if self.overwrite || constants.get(path).is_none() {
                constants.remove(path);
                constants.set(path, value.clone());
            }
        }
        true
    }

    /// Only keys of the top: nothing can be in the way.
    fn can_fail(&self) -> bool {
        false
    }
}
