//! `translate_ldap_attribute`: an attribute of the object that another attribute names, from an LDAP server.
//!
//! One connection is kept and made anew when it breaks. Answers are cached for a while, also empty
//! ones; only for other values the event waits for a request, at most the time limit. A server
//! that does not answer is left alone for a while, so that it does not hold up every event.

mod client;
mod discover;
mod guid;
pub(super) mod read;

use client::{Client, Values};
use skidder_event::{Cell, EventMut, Path, ValueRef};
use skidder_processors::{Constants, Failure, Footprint, Outcome, Processor};
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;

/// Whether GUIDs are turned into the bytes that Active Directory has, and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Translation {
    /// For the attribute `objectGUID`.
    Auto,
    Always,
    Never,
}

/// Looks up one field.
pub(crate) struct TranslateLdapAttribute {
    field: Path,
    target: Path,
    ignore_missing: bool,
    ignore_failure: bool,
    /// Whether the value of the field is a GUID.
    guid_asked: bool,
    client: Client,
}

impl TranslateLdapAttribute {
    fn look_up(&self, text: &[u8]) -> Result<Values, Arc<str>> {
        let value = if self.guid_asked {
            let bytes = guid::parse(&String::from_utf8_lossy(text));
            let bytes = bytes.map_err(|error| format!("failed to convert GUID: {error}"))?;
            guid::escape_all(&bytes)
        } else {
            guid::escape(text)
        };
        self.client.find(value)
    }

    fn translate(&self, event: &mut EventMut<'_>) -> Result<(), Failure> {
        let found = match event.as_ref().get(&self.field) {
            None if self.ignore_missing => return Ok(()),
            None => return Err(Failure::new("key not found")),
            Some(ValueRef::Str(text)) => self.look_up(text),
            Some(_) => Err("search attribute field value is not a string".into()),
        };
        let values = found.map_err(|reason| Failure::new(&*reason))?;
        let mut cells: SmallVec<[Cell; 8]> = SmallVec::new();
        for value in values.iter() {
            cells.push(Cell::Str(event.store_text(value.as_bytes())));
        }
        let list = event.store_list(&cells);
        event.put_cell(&self.target, list).map_err(|error| Failure::new(error.to_string()))
    }
}

impl fmt::Debug for TranslateLdapAttribute {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = out.debug_struct("TranslateLdapAttribute");
        out.field("field", &self.field).finish_non_exhaustive()
    }
}

impl Processor for TranslateLdapAttribute {
    fn name(&self) -> &'static str {
        "translate_ldap_attribute"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        match self.translate(event) {
            Ok(()) => Ok(Outcome::Done),
            Err(failure) => Err(failure.ignored(self.ignore_failure)),
        }
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        let (reads, writes) = (vec![self.field.clone()], vec![self.target.clone()]);
        Footprint { reads, writes, ..Footprint::default() }
    }

    fn describe(&self) -> String {
        format!("translate_ldap_attribute {} to {}", self.field, self.target)
    }
}
