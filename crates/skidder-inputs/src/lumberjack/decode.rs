//! Texts of JSON become events.

use skidder_event::{Batch, Path};
use skidder_parse::json_fields::{JsonFields, JsonFieldsError, Settings};
use std::sync::Arc;

/// Decodes the messages of batches. Keep one for each connection: it learns the keys.
#[derive(Debug)]
pub(super) struct Decoder {
    json: JsonFields,
    settings: Settings,
    /// Nothing: the root of the event.
    target: Option<Path>,
    error_message: Path,
    error_type: Path,
}

impl Decoder {
    pub(super) fn new(target: Option<Path>) -> Self {
        let settings = Settings {
            max_depth: 1,
            process_array: false,
            overwrite_keys: true,
            expand_keys: false,
            document_id: None,
        };
        let path = |name| Path::parse(name).expect("it is a path");
        Self {
            json: JsonFields::default(),
            settings,
            target,
            error_message: path("error.message"),
            error_type: path("error.type"),
        }
    }

    /// Decodes the message of each event. One that is no JSON stays as it is, with `error.message`; returns the first
    /// reason and their number.
    pub(super) fn run(&mut self, batch: &mut Batch) -> Option<(JsonFieldsError, u64)> {
        let base = Arc::clone(batch.base());
        let mut failed: Option<(JsonFieldsError, u64)> = None;
        for row in 0..batch.len() {
            let text = batch.rows()[row].message;
            let mut event = batch.event_mut(row, &base);
            let mark = event.mark();
            event.clear_message();
            let decoded = self.json.decode(&mut event, text, &self.settings, self.target.as_ref());
            let Err(error) = decoded else { continue };
            event.rollback(mark);
            let noted = event
                .put_text(&self.error_message, error.to_string().as_bytes())
                .and_then(|()| event.put_text(&self.error_type, b"json"));
            debug_assert!(noted.is_ok(), "a new event has no `error`");
            failed.get_or_insert((error, 0)).1 += 1;
        }
        batch.forget_changes();
        failed
    }
}
