//! The payload of a frame: where its events come from, and the events, as two items of CBOR. See `FORMAT.md`,
//! "Payload".

use crate::settle::SourceName;
use minicbor::{Decoder, Encoder};
use skidder_event::{Bases, Batch, FilePart, Progress, Provenance, RestoreError, SourceId};
use skidder_registry::SourceAbout;
use std::ffi::OsStr;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// Where events come from, for messages about them: the program that delivers them may know nothing of their source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Where a file was seen last, or the name of another source.
    pub name: SourceName,
    /// Its key in the registry, or a name that no other source has.
    pub key: Arc<str>,
}

/// The source of events from the disk queue: no reader has it.
pub(crate) const STORED: SourceId = SourceId(u64::MAX);

/// Items of the head of form 1, which knew only files, and of form 2.
const HEAD_1: u64 = 5;
const HEAD_2: u64 = 6;

/// Appends the payload of some rows of a batch.
pub(crate) fn encode(batch: &Batch, rows: Range<u32>, origin: Option<&Origin>, out: &mut Vec<u8>) {
    let provenance = batch.provenance();
    let range = provenance.file().map_or(0..provenance.bytes(), |part| part.range.clone());
    let (input, name) = match origin.map(|origin| &origin.name) {
        Some(name @ SourceName::Source(about)) => (&*about.input, name.as_bytes()),
        Some(name @ SourceName::File(_)) => ("", name.as_bytes()),
        None => ("", &[][..]),
    };
    let key = origin.map_or("", |origin| &origin.key);
    let mut head = Encoder::new(&mut *out);
    let written = head.array(HEAD_2).and_then(|head| {
        head.str(input)?.bytes(name)?.str(key)?.u32(provenance.generation())?;
        head.u64(range.start)?.u64(range.end)
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
    let input = match head.array()? {
        Some(HEAD_1) => "",
        Some(HEAD_2) => head.str()?,
        _ => return Err(RestoreError),
    };
    let (name, key) = (head.bytes()?, head.str()?);
    let generation = head.u32()?;
    let range = head.u64()?..head.u64()?;
    let (name, progress) = if input.is_empty() {
        let path = Path::new(OsStr::from_bytes(name)).into();
        let part = FilePart { generation, ..FilePart::new(range) };
        (SourceName::File(path), Progress::File(part))
    } else {
        let name = std::str::from_utf8(name).map_err(|_| RestoreError)?.into();
        let bytes = range.end.checked_sub(range.start).ok_or(RestoreError)?;
        let about = SourceAbout { input: input.into(), name };
        (SourceName::Source(about), Progress::Nothing(bytes))
    };
    let origin = (!key.is_empty()).then(|| Origin { name, key: key.into() });
    let provenance = Provenance { source: STORED, progress };
    let batch = Batch::restore(&payload[head.position()..], provenance, bases)?;
    Ok((batch, origin))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{batch, numbered};

    fn through(batch: &Batch, origin: Option<&Origin>) -> (Batch, Option<Origin>) {
        let mut payload = Vec::new();
        encode(batch, 0..batch.len() as u32, origin, &mut payload);
        decode(&payload, &mut Bases::default()).expect("it was just written")
    }

    #[test]
    fn a_file_and_any_other_source_come_back() {
        let path = Path::new(OsStr::from_bytes(b"/logs/\xff.log"));
        let file = Origin { name: SourceName::File(path.into()), key: "k".into() };
        let (back, origin) = through(&batch(1, 3, 50, 2), Some(&file));
        assert_eq!(origin.as_ref(), Some(&file));
        let part = back.provenance().file().expect("it is of a file");
        assert_eq!((part.generation, part.range.clone(), back.len()), (3, 50..70, 2));
        assert!(through(&batch(1, 3, 50, 2), None).1.is_none());

        let about = SourceAbout { input: "tcp".into(), name: "10.0.0.7:4711".into() };
        let peer = Origin { name: SourceName::Source(about), key: "tcp::a::1".into() };
        let (back, origin) = through(&numbered(1, 7, 2), Some(&peer));
        assert_eq!(origin.as_ref(), Some(&peer));
        assert!(back.provenance().file().is_none());
        assert_eq!((back.provenance().bytes(), back.rows()[1].offset), (20, 8));
    }
}
