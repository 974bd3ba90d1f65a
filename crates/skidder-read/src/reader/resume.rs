//! Bringing the decoder of a compressed file to the cursor: from the saved checkpoint, or from the start.

use super::{InputContext, Reader, SKIP_BYTES_PER_TURN, Scratch, TAIL_BYTES_MAX, TurnEnd};
use crate::compare::codec_of;
use crate::pool::CHUNK_BYTES;
use crate::settings::Compression;
use skidder_decode::{Checkpoint, Codec, Decoder, ReadState, ResumeError};
use skidder_os::File;
use std::io;
use std::path::Path;

/// Warns if name and content suggest a compressed file that will be read as text.
fn warn_if_compressed(file: &dyn File, path: &Path) {
    let is_named_so =
        path.extension().is_some_and(|end| Codec::ALL.iter().any(|codec| end == codec.extension()));
    if is_named_so && let Ok(Some(codec)) = Codec::detect(file) {
        tracing::warn!(path = %path.display(), %codec,
            "a compressed file is read as text, as `compression` is not set; set `compression: auto`, or leave the file out by `prospector.scanner.exclude_files`");
    }
}

impl Reader {
    /// The decoder for what follows the cursor; one of a compressed file may still be before it.
    pub(super) fn start_decoder(&self, context: &InputContext) -> io::Result<Decoder> {
        let Some(file) = &self.file else { return Ok(Decoder::plain(self.offset)) };
        if !self.target.compressed {
            if self.offset == 0 && context.settings.compression == Compression::None {
                warn_if_compressed(&**file, &self.target.path);
            }
            return Ok(Decoder::plain(self.offset));
        }
        let codec = codec_of(&**file);
        let mut decoder = Decoder::start(Some(codec), &context.decoders);
        if self.offset > 0 {
            let saved = context.cursors.checkpoint(&self.key).map_err(io::Error::other)?;
            let point = saved.and_then(|bytes| match Checkpoint::from_bytes(&bytes) {
                Ok(point) => Some(point),
                Err(error) => {
                    tracing::warn!(path = %self.target.path.display(), %error,
                        "a saved checkpoint is damaged; decompressing from the start");
                    None
                }
            });
            let usable = |point: &Checkpoint| {
                point.codec() == codec && point.decompressed_offset() <= self.offset
            };
            if let Some(point) = point.filter(usable) {
                match Decoder::resume(&point, &**file, &context.decoders) {
                    Ok(resumed) => decoder = resumed,
                    Err(ResumeError::Read { source, .. }) => return Err(source),
                    // Compressed anew, or by another program: the content is what counts.
                    Err(_) => tracing::debug!(path = %self.target.path.display(),
                        "the checkpoint is not of this file; decompressing from the start"),
                }
            }
            tracing::debug!(
                path = %self.target.path.display(),
                offset = self.offset,
                skipped_bytes = self.offset - decoder.offset(),
                "reader resumed"
            );
            let skipped = self.offset - decoder.offset();
            context.metrics.resume_skipped_bytes.add(skipped);
        }
        Ok(decoder)
    }

    /// Skips decompressed bytes up to `offset`, of which the last are compared with what was read before;
    /// an end means that the turn is over.
    pub(super) fn reach_offset(
        &mut self,
        context: &InputContext,
        scratch: &mut Scratch,
    ) -> io::Result<Option<TurnEnd>> {
        let (Some(file), Some(decoder)) = (&self.file, &mut self.decoder) else {
            return Ok(None);
        };
        if !decoder.is_compressed() {
            return Ok(None);
        }
        let start = decoder.offset();
        if start >= self.offset {
            return Ok(None);
        }
        let tail = self.tail.filter(|tail| tail.len as usize <= TAIL_BYTES_MAX);
        let tail_start = self.offset - tail.map_or(0, |tail| u64::from(tail.len));
        // Behind it, the checkpoint has proved what it could.
        let tail = tail.filter(|_| start <= tail_start);
        let skip_end = if tail.is_some() { tail_start } else { self.offset };
        scratch.skipped.resize(CHUNK_BYTES, 0);
        let pause = start + (skip_end.saturating_sub(start)).min(SKIP_BYTES_PER_TURN);
        let (compressed, skipped) = (&mut scratch.compressed, &mut scratch.skipped);
        let mut checked = 0;
        let end = loop {
            let at = decoder.offset();
            if at >= self.offset {
                let same = tail.is_none_or(|tail| crc32fast::hash(&skipped[..checked]) == tail.crc);
                return Ok((!same).then_some(TurnEnd::Rewritten));
            }
            let step = if at < pause {
                decoder.skip_to(&**file, compressed, skipped, pause)
            } else if at < skip_end {
                break TurnEnd::More;
            } else {
                let left = (self.offset - at) as usize;
                decoder.read(&**file, compressed, &mut skipped[checked..checked + left])
            };
            match step {
                Ok(progress) => {
                    checked += if at >= skip_end { progress.produced } else { 0 };
                    match progress.state {
                        _ if decoder.offset() > at => {}
                        ReadState::More => {}
                        // Shorter than what was read: not what it was.
                        ReadState::End => break TurnEnd::Rewritten,
                        // Compressed anew and not yet written as far as it was read before.
                        ReadState::Waiting => break TurnEnd::Waiting,
                    }
                }
                Err(error) => break self.decode_error(context, error),
            }
        };
        Ok(Some(end))
    }
}
