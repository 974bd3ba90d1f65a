//! What a frame holds: where its events come from, and the events, as two items of CBOR.

use minicbor::{Decoder, Encoder};
use skidder_event::{Bases, Batch, Provenance, RestoreError, SourceId};
use std::ffi::OsStr;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// Where events come from, for messages about them: the program that delivers them may know nothing of their file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Where the file was seen last.
    pub path: Arc<Path>,
    /// Its key in the registry.
    pub key: Arc<str>,
}

/// The source of events from the disk queue: no reader has it.
pub(crate) const STORED: SourceId = SourceId(u64::MAX);

/// Appends the payload of some rows of a batch.
pub(crate) fn encode(batch: &Batch, rows: Range<u32>, origin: Option<&Origin>, out: &mut Vec<u8>) {
    let provenance = batch.provenance();
    let path = origin.map_or(&[][..], |origin| origin.path.as_os_str().as_bytes());
    let key = origin.map_or("", |origin| &origin.key);
    let mut head = Encoder::new(&mut *out);
    let written = head.array(5).and_then(|head| {
        head.bytes(path)?.str(key)?.u32(provenance.generation)?;
        head.u64(provenance.range.start)?.u64(provenance.range.end)
    });
    written.map(drop).expect("writing to memory does not fail");
    batch.store(rows, out);
}

/// The events of a payload.
pub(crate) fn decode(
    payload: &[u8],
    bases: &mut Bases,
) -> Result<(Batch, Option<Origin>), RestoreError> {
    let mut head = Decoder::new(payload);
    if head.array()? != Some(5) {
        return Err(RestoreError);
    }
    let (path, key) = (head.bytes()?, head.str()?);
    let generation = head.u32()?;
    let range = head.u64()?..head.u64()?;
    let origin = (!key.is_empty())
        .then(|| Origin { path: Path::new(OsStr::from_bytes(path)).into(), key: key.into() });
    let provenance = Provenance { generation, ..Provenance::new(STORED, range) };
    let batch = Batch::restore(&payload[head.position()..], provenance, bases)?;
    Ok((batch, origin))
}
