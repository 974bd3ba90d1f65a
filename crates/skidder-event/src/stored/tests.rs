//! Events that are stored, come back, and are damaged on the way.

use super::*;
use crate::encode::{Encoder, Precision};
use crate::path::Path;
use crate::provenance::{FilePart, SourceId};

fn provenance() -> Provenance {
    Provenance::of_file(SourceId(1), FilePart { generation: 3, ..FilePart::new(0..100) })
}

fn base() -> Arc<Base> {
    let mut fields = Map::new();
    fields.insert_path("agent.name", "web");
    fields.insert_path("log.file.path", "/var/log/a.log");
    fields.insert_path("numbers.big", Value::UInt(u64::MAX));
    fields.insert_path("numbers.float", Value::Float(1.5));
    fields.insert_path("numbers.least", i64::MIN);
    fields.insert_path("since", Value::Time(-7));
    fields.insert_path("tags", Value::List(vec!["a".into(), Value::Null, true.into()]));
    let mut metadata = Map::new();
    metadata.insert("pipeline", "p");
    Arc::new(Base::new(&fields, &metadata))
}

fn batch(lines: &[&[u8]]) -> Batch {
    let bytes = lines.join(&b'\n');
    let utf8 = std::str::from_utf8(&bytes).is_ok();
    let mut batch = Batch::new(bytes, utf8, base(), provenance());
    let mut at = 0;
    for line in lines {
        let text = Text { start: at, len: line.len() as u32 };
        batch.push(Row::new(u64::from(at), line.len() as u32 + 1, text, i64::from(at) * 1_000_000));
        at += line.len() as u32 + 1;
    }
    batch
}

fn documents(batch: &Batch) -> Vec<String> {
    let mut encoder = Encoder::with_metadata(Precision::Nanosecond, "filebeat", "9");
    let document = |row| {
        let mut out = Vec::new();
        encoder.write(&mut out, batch, row);
        String::from_utf8(out).expect("a document is UTF-8")
    };
    (0..batch.len()).map(document).collect()
}

fn stored(batch: &Batch) -> Vec<u8> {
    let mut out = Vec::new();
    batch.store(0..batch.len() as u32, &mut out);
    out
}

fn restored(bytes: &[u8]) -> Result<Batch, RestoreError> {
    Batch::restore(bytes, provenance(), &mut Bases::default())
}

fn path(text: &str) -> Path {
    Path::parse(text).expect("a good path")
}

/// Events with everything that an event can have.
fn edited() -> Batch {
    let mut batch = batch(&[b"one", "zw\u{f6}lf".as_bytes(), b"\xc3", b"\xb6 half", b""]);
    let base = Arc::clone(batch.base());
    let mut inner = Map::new();
    inner.insert_path("a.b", 1);
    inner.insert("list", Value::List(vec![Value::Map(inner.clone()), Value::Float(0.5)]));
    let mut event = batch.event_mut(1, &base);
    event.put(&path("agent.name"), &"another".into()).expect("room");
    event.put(&path("deep.er"), &Value::Map(inner)).expect("room");
    event.put(&path("@metadata.id"), &"7".into()).expect("room");
    event.put(&path("when"), &Value::Time(1)).expect("room");
    event.put(&path("big"), &Value::UInt(u64::MAX)).expect("room");
    event.put(&path("nothing"), &Value::Null).expect("room");
    let number = event.store_text(b"1.50e2");
    event.put_cell(&path("written"), Cell::Number(number)).expect("room");
    let text = event.store_text(b"not \xff UTF-8");
    event.put_cell(&path("bytes"), Cell::Str(text)).expect("room");
    let mut event = batch.event_mut(0, &base);
    assert!(event.delete(&path("log.file.path")) && event.delete(&path("tags")));
    let empty = Cell::Map { first: NodeId::NONE, opaque: true };
    event.put_cell(&path("numbers"), empty).expect("room");
    let mut event = batch.event_mut(4, &base);
    assert!(event.delete(&path("message")));
    event.put(&path("log.offset"), &"far".into()).expect("room");
    batch.forget_changes();
    batch.finish();
    batch
}

#[test]
fn events_come_back_as_they_were() {
    let before = edited();
    let bytes = stored(&before);
    let after = restored(&bytes).expect("what was stored");
    assert_eq!(documents(&after), documents(&before));
    assert_eq!(stored(&after), bytes, "and are stored the same again");
    let rows = |batch: &Batch| {
        batch.rows().iter().map(|row| (row.offset, row.time, row.line_bytes)).collect::<Vec<_>>()
    };
    assert_eq!(rows(&after), rows(&before));
}

#[test]
fn some_rows_are_stored_without_the_others() {
    let before = edited();
    let mut bytes = Vec::new();
    before.store(1..3, &mut bytes);
    let after = restored(&bytes).expect("what was stored");
    assert_eq!(documents(&after), documents(&before)[1..3]);
}

#[test]
fn events_of_one_source_share_their_base() {
    let (bytes, mut bases) = (stored(&edited()), Bases::default());
    let mut again = || {
        let batch = Batch::restore(&bytes, provenance(), &mut bases).expect("what was stored");
        Arc::clone(batch.base())
    };
    let first = again();
    assert!(Arc::ptr_eq(&first, &again()));
}

#[test]
fn what_was_cut_or_has_more_behind_it_is_refused() {
    let mut bytes = stored(&edited());
    for end in 0..bytes.len() {
        assert_eq!(restored(&bytes[..end]).err(), Some(RestoreError), "{end} bytes");
    }
    bytes.push(0);
    assert_eq!(restored(&bytes).err(), Some(RestoreError));
}

#[test]
fn damage_is_refused_or_makes_an_event_that_can_be_written() {
    let bytes = stored(&edited());
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << bit;
            if let Ok(batch) = restored(&damaged) {
                documents(&batch);
            }
        }
    }
}

#[test]
fn lists_inside_each_other_have_a_bound() {
    let mut bytes = vec![0x83, 0xa0, 0xa0, 0x81, 0x87, 0, 0, 0, 0, 0x40, 0xa1, 0x41, b'a'];
    bytes.extend(std::iter::repeat_n(0x81, 100_000));
    bytes.extend([0xf6, 0xa0]);
    let thread = std::thread::Builder::new().stack_size(Batch::RESTORE_STACK_BYTES);
    let work = move || assert_eq!(restored(&bytes).err(), Some(RestoreError));
    thread.spawn(work).expect("a thread").join().expect("no overflow");
}
