//! One event as a `LogRecord`, with its resource and scope.
//!
//! The resource of a source's base is the same for all of its events: it is written once and copied.

use super::fields::{FieldWriter, Naming, Place, Taken};
use super::wire::{open, write_fixed64};
use skidder_event::{Base, Batch, EventRef, Precision, ValueRef};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// Fields of `LogRecord`.
const TIME: u8 = 1;
const OBSERVED_TIME: u8 = 11;
/// Bases that are remembered; beyond that all are forgotten.
const BASES_MAX: usize = 256;

/// A base as it is written into requests.
#[derive(Debug)]
pub(crate) struct Rendered {
    /// Held so that its address stays its own.
    base: Arc<Base>,
    /// The content of a `Resource`.
    resource: Vec<u8>,
    /// Members of a `LogRecord`.
    record: Vec<u8>,
    /// One for each field of the base.
    pieces: Vec<Piece>,
    taken: Taken,
}

/// A field of a base.
#[derive(Debug)]
struct Piece {
    place: Place,
    /// In the bytes of its place.
    range: Range<usize>,
    taken: Taken,
}

impl Rendered {
    /// The resource of events without resource fields of their own.
    pub(crate) fn resource(&self) -> &[u8] {
        &self.resource
    }

    fn new(base: &Arc<Base>, fields: &mut FieldWriter) -> Self {
        let (mut resource, mut record) = (Vec::new(), Vec::new());
        let (mut pieces, mut all) = (Vec::new(), Taken::default());
        for node in base.nodes() {
            let place = fields.naming.place(node.key.as_bytes());
            let out = match place {
                Place::Resource => &mut resource,
                Place::Record => &mut record,
            };
            let start = out.len();
            // Each by itself: what it takes an event may put another field in the place of.
            let before = all;
            fields.write_base(out, place, node, &mut all);
            let taken = all.without(before);
            pieces.push(Piece { place, range: start..out.len(), taken });
        }
        fields.write_given(&mut resource);
        Self { base: Arc::clone(base), resource, record, pieces, taken: all }
    }
}

/// Writes records. One for each worker.
#[derive(Debug)]
pub(crate) struct RecordWriter {
    fields: FieldWriter,
    /// By address.
    bases: HashMap<usize, Arc<Rendered>>,
    /// Fields of the base that the event has something in the place of.
    hidden: Vec<usize>,
    /// The resource of an event with resource fields of its own.
    own_resource: Vec<u8>,
}

impl RecordWriter {
    pub(crate) fn new(naming: Arc<Naming>, precision: Precision) -> Self {
        Self {
            fields: FieldWriter::new(naming, precision),
            bases: HashMap::new(),
            hidden: Vec::new(),
            own_resource: Vec::new(),
        }
    }

    /// The base of a batch, for [`RecordWriter::look`] and [`RecordWriter::write`].
    pub(crate) fn base(&mut self, batch: &Batch) -> Arc<Rendered> {
        let base = batch.base();
        let address = Arc::as_ptr(base) as usize;
        if let Some(known) = self.bases.get(&address) {
            return Arc::clone(known);
        }
        if self.bases.len() == BASES_MAX {
            self.bases.clear();
        }
        let rendered = Arc::new(Rendered::new(base, &mut self.fields));
        self.bases.insert(address, Arc::clone(&rendered));
        rendered
    }

    /// Looks at an event before it is written; gives its resource if that is not the one of its base.
    pub(crate) fn look(&mut self, base: &Rendered, event: EventRef<'_>) -> Option<&[u8]> {
        let Self { fields, hidden, own_resource, .. } = self;
        hidden.clear();
        let nodes = base.base.nodes();
        let mut has_resource = false;
        event.root().for_each_own(|key, _| {
            has_resource |= fields.naming.place(key) == Place::Resource;
            hidden.extend(nodes.iter().position(|node| node.key.as_bytes() == key));
        });
        if !has_resource {
            return None;
        }
        own_resource.clear();
        for (at, piece) in base.pieces.iter().enumerate() {
            if piece.place == Place::Resource && !hidden.contains(&at) {
                own_resource.extend_from_slice(&base.resource[piece.range.clone()]);
            }
        }
        let mut taken = Taken::default();
        event.root().for_each_own(|key, value| {
            if let Some(value) = value
                && fields.naming.place(key) == Place::Resource
            {
                fields.write(own_resource, Place::Resource, key, value, &mut taken);
            }
        });
        fields.write_given(own_resource);
        Some(own_resource)
    }

    /// Appends the event that was looked at last as `field` of the message around it. `observed` is in nanoseconds since
    /// 1970.
    pub(crate) fn write(
        &mut self,
        out: &mut Vec<u8>,
        field: u8,
        base: &Rendered,
        event: EventRef<'_>,
        observed: u64,
    ) {
        let Self { fields, hidden, .. } = self;
        let record = open(out, field);
        let time = event.row().time;
        match u64::try_from(time) {
            Ok(time @ 1..) => write_fixed64(out, TIME, time),
            // 0 would mean unknown, and there is nothing before that.
            _ => fields.write_attribute(out, "@timestamp", ValueRef::Time(time)),
        }
        write_fixed64(out, OBSERVED_TIME, observed);
        let mut taken = Taken::default();
        if let Some(text) = event.message() {
            taken.take(Taken::BODY);
            fields.write_body(out, ValueRef::Str(text));
        }
        if let Some(offset) = event.offset() {
            fields.write_attribute(out, "log.offset", ValueRef::UInt(offset));
        }
        event.root().for_each_own(|key, value| {
            if let Some(value) = value
                && fields.naming.place(key) == Place::Record
            {
                fields.write(out, Place::Record, key, value, &mut taken);
            }
        });
        if hidden.is_empty() && !taken.overlaps(base.taken) {
            out.extend_from_slice(&base.record);
        } else {
            for (at, piece) in base.pieces.iter().enumerate() {
                if piece.place == Place::Resource || hidden.contains(&at) {
                    continue;
                }
                if taken.overlaps(piece.taken) {
                    fields.write_base(out, Place::Record, &base.base.nodes()[at], &mut taken);
                } else {
                    out.extend_from_slice(&base.record[piece.range.clone()]);
                }
            }
        }
        record.close(out);
    }
}
