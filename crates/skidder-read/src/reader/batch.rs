//! The common part of all batches of a reader: where they come from, the plan and the fields of the source.

use super::{InputContext, Reader};
use crate::settings::InputKind;
use skidder_event::Bound;
use skidder_event::{
    Batch, FilePart, Map, Parts, Path as FieldPath, Provenance, ResumePoint, Value,
};
use std::sync::Arc;

impl Reader {
    /// A batch without lines that only carries the news of the end.
    pub(crate) fn empty_batch(&mut self, context: &InputContext, eof: bool) -> Batch {
        let provenance = self.provenance(0, eof);
        let base = Arc::clone(self.bound(context).base());
        Batch::with_lines(Parts::default(), 0, base, provenance)
    }

    pub(super) fn provenance(&mut self, bytes: u64, eof: bool) -> Provenance {
        let range = self.offset..self.offset + bytes;
        self.offset = range.end;
        let due = self.checkpoint.as_ref().is_some_and(|point| point.offset() <= range.end);
        let resume = if due { self.checkpoint.take() } else { None };
        let part = FilePart {
            generation: self.generation,
            range,
            end_of_file: eof,
            tail: self.tail,
            resume: resume.map(|point| -> Arc<dyn ResumePoint> { point }),
        };
        Provenance::of_file(self.id, part)
    }

    #[cold]
    pub(super) fn report_too_long(&self, offset: u64, bytes: usize) {
        tracing::error!(path = %self.target.path.display(), offset, bytes,
            "a line is longer than four times `message_max_bytes` and is skipped");
    }

    /// The plan bound to this file.
    pub(super) fn bound(&mut self, context: &InputContext) -> Arc<dyn Bound> {
        let epoch = context.bind.epoch();
        if let Some((of, bound)) = &self.bound
            && *of == epoch
        {
            return Arc::clone(bound);
        }
        let bound = context.bind.bind(&self.fields(context));
        self.bound = Some((epoch, Arc::clone(&bound)));
        bound
    }

    /// `log.file.*` and `input.type`.
    pub(super) fn fields(&self, context: &InputContext) -> Map {
        let mut file = Map::new();
        let path = self.target.shown.as_ref().unwrap_or(&self.target.path);
        file.insert_constant("path", &*path.to_string_lossy());
        // As with Filebeat, events of the older inputs do not have them.
        if context.settings.kind == InputKind::Filestream {
            file.insert_constant("device_id", self.target.device.to_string());
            file.insert_constant("inode", self.target.inode.to_string());
        }
        if context.settings.include_file_fingerprint
            && let Some(fingerprint) = self.target.shown_print()
        {
            file.insert_constant("fingerprint", fingerprint);
        }
        self.add_owners(context, &mut file);
        let (mut log, mut input, mut fields) = (Map::new(), Map::new(), Map::new());
        log.insert_constant("file", file);
        input.insert_constant("type", context.settings.kind.name());
        fields.insert_constant("log", log);
        fields.insert_constant("input", input);
        if let Some(more) = &self.more_fields {
            fields.merge(more);
        }
        fields
    }

    /// `log.file.owner` and `log.file.group`, if they are enabled and have names.
    fn add_owners(&self, context: &InputContext, file: &mut Map) {
        let settings = &context.settings;
        if !settings.include_owner && !settings.include_group {
            return;
        }
        let path = self.target.path.display();
        let looked = self.file.as_ref().map(|file| file.metadata());
        let Some(Ok(meta)) = looked else {
            tracing::warn!(%path, "the owner of a file cannot be had; its events go without");
            return;
        };
        let owner = settings.include_owner.then(|| skidder_os::user_name(meta.uid));
        let group = settings.include_group.then(|| skidder_os::group_name(meta.gid));
        for (field, name) in [("owner", owner), ("group", group)] {
            match name {
                Some(Ok(Some(name))) => file.insert_constant(field, name),
                Some(Err(error)) => tracing::warn!(%path, field, %error,
                    "a name cannot be had; events of the file go without it"),
                // The system knows no name for the number.
                Some(Ok(None)) | None => {}
            }
        }
    }
}

/// Adds to `log.flags`.
pub(super) fn flag(batch: &mut Batch, row: usize, name: &str) {
    let path = FieldPath::parse("log.flags").expect("the path is a constant");
    let base = Arc::clone(batch.base());
    let list = Value::List(vec![name.into()]);
    batch.event_mut(row, &base).put(&path, &list).expect("`log` of a fresh event is an object");
}
