//! Fills a buffer from a file, and reports files that cannot be decoded.

use super::{CodecPoint, InputContext, Reader, Scratch, TurnEnd};
use skidder_decode::{DecodeError, Decoder, Note, ReadState};
use std::io;
use std::path::Path;
use std::sync::Arc;

impl Reader {
    /// Reads until the buffer is full or there is an end.
    pub(super) fn fill(
        &mut self,
        context: &InputContext,
        scratch: &mut Scratch,
        buffer: &mut [u8],
        filled: &mut usize,
    ) -> TurnEnd {
        let (Some(file), Some(decoder)) = (&self.file, &mut self.decoder) else {
            return TurnEnd::Displaced;
        };
        *filled += self.carry.lend(&mut buffer[*filled..]);
        while *filled < buffer.len() {
            let stored = decoder.stored_offset();
            match decoder.read(&**file, &mut scratch.compressed, &mut buffer[*filled..]) {
                Ok(progress) => {
                    *filled += progress.produced;
                    #[cfg(test)]
                    super::carry::watched::read(progress.produced);
                    self.stored_seen = decoder.seen_offset();
                    context.metrics.stored_bytes.add(decoder.stored_offset() - stored);
                    if let Some(note) = progress.note {
                        self.unverified |= matches!(note, Note::Mismatch { .. });
                        let path = &self.target.path;
                        if let Some(text) = report(context, path, note) {
                            let errors = &context.metrics.last_errors;
                            errors.note(Some(self.id), path, text, self.turn_at);
                        }
                    }
                    if let Some(point) = decoder.take_checkpoint()
                        && point.decompressed_offset() > self.offset
                    {
                        self.checkpoint = Some(Arc::new(CodecPoint(point)));
                    }
                    match progress.state {
                        ReadState::More => {}
                        ReadState::Waiting => {
                            self.report_cut_off(context);
                            return TurnEnd::Waiting;
                        }
                        ReadState::End => return TurnEnd::Finished,
                    }
                }
                Err(error) => return self.decode_error(context, error),
            }
        }
        TurnEnd::More
    }

    /// A compressed file that is read once and ends inside its data will not be continued: it is damaged.
    fn report_cut_off(&mut self, context: &InputContext) {
        if !context.settings.final_line || !self.target.compressed || self.damage_reported {
            return;
        }
        self.damage_reported = true;
        context.metrics.gzip_errors.add(1);
        let offset = self.decoder.as_ref().map_or(self.offset, Decoder::offset);
        tracing::error!(path = %self.target.path.display(), offset,
            "a compressed file is cut off; everything before that was read");
        self.note_error(context, format!("cut off; everything before byte {offset} was read"));
    }

    pub(super) fn note_error(&self, context: &InputContext, text: String) {
        context.metrics.last_errors.note(Some(self.id), &self.target.path, text, self.turn_at);
    }

    pub(super) fn decode_error(&mut self, context: &InputContext, error: DecodeError) -> TurnEnd {
        match error {
            DecodeError::Read { source, .. } => TurnEnd::Failed(source),
            DecodeError::Memory => TurnEnd::Failed(io::ErrorKind::OutOfMemory.into()),
            DecodeError::Damaged(_) if self.damage_reported => TurnEnd::Damaged,
            DecodeError::Damaged(damage) => {
                self.damage_reported = true;
                context.metrics.gzip_errors.add(1);
                let offset = self.decoder.as_ref().map_or(self.offset, Decoder::offset);
                tracing::error!(
                    path = %self.target.path.display(), offset, error = %damage,
                    "a compressed file is damaged; everything before the damage was read"
                );
                self.note_error(context, format!("damaged behind byte {offset}: {damage}"));
                TurnEnd::Damaged
            }
        }
    }
}

/// Logs a note of the decoder; returns its text if it is an error.
fn report(context: &InputContext, path: &Path, note: Note) -> Option<String> {
    match note {
        Note::Mismatch { kind, member_offset, decompressed_offset, expected, found } => {
            context.metrics.gzip_errors.add(1);
            tracing::error!(
                path = %path.display(), ?kind, member_offset, decompressed_offset,
                expected = format_args!("{expected:#010x}"), found = format_args!("{found:#010x}"),
                "a compressed file fails its integrity check; its lines are delivered all the same"
            );
            Some(format!("it fails its integrity check at byte {decompressed_offset}"))
        }
        Note::TrailingGarbage { offset } => {
            tracing::warn!(
                path = %path.display(), offset,
                "what follows the compressed data belongs to nothing compressed and is ignored"
            );
            None
        }
    }
}
