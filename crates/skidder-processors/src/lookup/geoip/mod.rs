//! `geoip`: adds what a database says about an address.
//!
//! The database is in memory (`database.rs`) and shared by all processors that name its file. A plan is bound to
//! the database as it is, and again when a new one was read, so that an event needs no lock. Of a record only the
//! parts that a property needs are read (`record.rs`), as slices of the database.

mod database;
mod property;
pub(super) mod read;
mod record;
#[cfg(test)]
mod tests;

use crate::plan::{
    Constants, Failure, Footprint, LOG_FLAGS, Outcome, Processor, message_if, rehearse,
};
use database::{Database, DatabaseFile};
use property::Property;
use skidder_event::{EventMut, Path, ValueRef};
use smallvec::SmallVec;
use std::net::IpAddr;
use std::sync::Arc;

/// Addresses of an event; more are not looked up.
const ADDRESSES_MAX: usize = 64;

/// Bytes of a value that a message shows.
const SHOWN_BYTES_MAX: usize = 64;

/// Looks up addresses in a database that follows its file.
#[derive(Debug)]
pub(crate) struct GeoIp {
    rules: Arc<Rules>,
    database: Arc<DatabaseFile>,
}

/// What is looked up, and where it goes.
#[derive(Debug)]
struct Rules {
    field: Path,
    target: Path,
    properties: Box<[(Path, Property)]>,
    ignore_missing: bool,
    ignore_failure: bool,
    tags: Box<[String]>,
    tags_path: Path,
}

/// The same with the database as it was when the plan was bound.
#[derive(Debug)]
struct Bound {
    rules: Arc<Rules>,
    database: Arc<Database>,
}

impl Rules {
    /// The addresses at the field, in their order. `None` if it is missing, which is no failure.
    fn addresses(&self, event: &EventMut<'_>) -> Result<Option<SmallVec<[IpAddr; 4]>>, Failure> {
        let mut addresses = SmallVec::new();
        match event.as_ref().get(&self.field) {
            None if self.ignore_missing => return Ok(None),
            None => {
                return Err(self.failure(format_args!("the field `{}` is missing", self.field)));
            }
            Some(ValueRef::List(list)) => {
                let mut failure = None;
                list.for_each(|item| {
                    match self.address(item) {
                        Ok(address) => addresses.push(address),
                        Err(error) => failure = Some(error),
                    }
                    failure.is_none() && addresses.len() < ADDRESSES_MAX
                });
                if let Some(failure) = failure {
                    return Err(failure);
                }
            }
            Some(value) => addresses.push(self.address(value)?),
        }
        Ok(Some(addresses))
    }

    fn address(&self, value: ValueRef<'_>) -> Result<IpAddr, Failure> {
        let field = &self.field;
        let ValueRef::Str(text) = value else {
            let why = format_args!("the field `{field}` is neither a text nor a list of texts");
            return Err(self.failure(why));
        };
        match std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()) {
            Some(address) => Ok(address),
            None => {
                let shown = String::from_utf8_lossy(&text[..text.len().min(SHOWN_BYTES_MAX)]);
                Err(self.failure(format_args!("`{field}` is `{shown}`, which is no address")))
            }
        }
    }

    fn add(&self, event: &mut EventMut<'_>, database: &Database) -> Result<Outcome, Failure> {
        let Some(addresses) = self.addresses(event)? else { return Ok(Outcome::Done) };
        for address in addresses {
            let found = database.facts(address);
            let found = found.map_err(|error| self.failure(format_args!("{error}")))?;
            let Some((facts, network)) = found else { continue };
            if self.field == self.target {
                event.delete(&self.field);
            }
            for (path, property) in &self.properties {
                let Some(cell) = facts.value(event, *property, address, &network) else { continue };
                event
                    .put_cell(path, cell)
                    .map_err(|error| self.failure(format_args!("{error}")))?;
            }
            break;
        }
        Ok(Outcome::Done)
    }

    #[cold]
    fn failure(&self, why: std::fmt::Arguments<'_>) -> Failure {
        let reason = message_if(!self.ignore_failure, format_args!("geoip: {why}"));
        let flagged = Failure::new(reason).flag("geoip_error");
        let tagged = self
            .tags
            .iter()
            .fold(flagged, |failure, tag| failure.append(self.tags_path.clone(), tag));
        tagged.ignored(self.ignore_failure)
    }

    /// All that it may set or remove.
    fn fields(&self) -> impl Iterator<Item = &Path> {
        let replaced = (self.field == self.target).then_some(&self.target);
        self.properties
            .iter()
            .map(|(path, _)| path)
            .filter(move |_| replaced.is_none())
            .chain(replaced)
    }

    fn footprint(&self) -> Footprint {
        let mut writes: Vec<Path> = self.fields().cloned().collect();
        writes.push(LOG_FLAGS.clone());
        if !self.tags.is_empty() {
            writes.push(self.tags_path.clone());
        }
        Footprint { reads: vec![self.field.clone()], writes, ..Footprint::default() }
    }

    fn describe(&self) -> String {
        format!("geoip of {} to {}", self.field, self.target)
    }
}

impl Processor for GeoIp {
    fn name(&self) -> &'static str {
        "geoip"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        self.rules.add(event, &self.database.current())
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        self.rules.footprint()
    }

    fn bound(&self) -> Option<Arc<dyn Processor>> {
        let (rules, database) = (Arc::clone(&self.rules), self.database.current());
        Some(Arc::new(Bound { rules, database }))
    }

    fn looks_outside(&self) -> bool {
        true
    }

    fn epoch(&self) -> u64 {
        self.database.epoch()
    }

    fn describe(&self) -> String {
        self.rules.describe()
    }
}

impl Processor for Bound {
    fn name(&self) -> &'static str {
        "geoip"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        self.rules.add(event, &self.database)
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        self.rules.footprint()
    }

    fn fold(&self, constants: &mut Constants) -> bool {
        let writes: Vec<&Path> = self.rules.fields().collect();
        rehearse(self, constants, &writes)
    }

    fn describe(&self) -> String {
        self.rules.describe()
    }
}
