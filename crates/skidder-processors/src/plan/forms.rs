//! The forms of a plan: which fields its steps keep in slots while they run on an event.

use skidder_event::{Form, FormBuilder, Path};
use std::sync::{Arc, Mutex, PoisonError};

/// The forms of all sources of a plan, which mostly have the same.
#[derive(Debug, Default)]
pub(crate) struct Forms(Mutex<Vec<Arc<Form>>>);

impl Forms {
    /// The form of a list whose steps read and write these fields (nothing = perhaps any), and how
    /// many of its steps, from the first one on, know all of their fields by it.
    pub(crate) fn of(&self, steps: &[Option<Vec<Path>>]) -> (Option<Arc<Form>>, usize) {
        let mut builder = FormBuilder::default();
        let known = |paths: &&Option<Vec<Path>>| paths.as_ref().is_some_and(|all| builder.add(all));
        let known = steps.iter().take_while(known).count();
        let mut forms = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(form) = forms.iter().find(|form| form.is_of(builder.paths())) {
            return (Some(Arc::clone(form)), known);
        }
        let form = builder.build().map(Arc::new);
        forms.extend(form.clone());
        (form, known)
    }
}
