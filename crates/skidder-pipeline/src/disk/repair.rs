//! Repair of a damaged queue: rewrites what can be read, and sets the rest aside.

use super::format::Place;
use super::reader::{Next, Reader};
use super::store::Store;
use super::writer::Writer;
use super::{DiskQueueError, DiskQueueKey, DiskQueueSettings, FLUSH_BYTES};
use skidder_os::{Fs, Timestamp};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Attempts to read a place before it is given up: a disk may fail for a moment.
const READS: u32 = 3;

/// The result of a repair.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiskQueueRepaired {
    /// Frames that were rewritten.
    pub frames: u64,
    /// Events in them.
    pub events: u64,
    /// Events that cannot be read any more. They are gone from the queue, and perhaps in the files that are kept aside.
    pub missing: u64,
    /// Places that were given up.
    pub damaged: u64,
    /// The directory of the old files.
    pub aside: PathBuf,
}

/// Writes all whole frames without a verdict of the queue in a directory to new segments, behind the old ones, which
/// are then kept in a directory beside them. No other process may use the queue. When the program ends on the way,
/// events may come twice, and none is lost. `key` is that of an encrypted queue, and encrypts what is written.
pub fn repair_disk_queue(
    fs: Arc<dyn Fs>,
    directory: &Path,
    key: Option<DiskQueueKey>,
    now: Timestamp,
) -> Result<DiskQueueRepaired, DiskQueueError> {
    let failed = |source| DiskQueueError::io(directory, source);
    let settings = DiskQueueSettings {
        path: directory.to_path_buf(),
        max_size: 0,
        segment_size: DiskQueueSettings::SEGMENT_SIZE_UNBOUNDED,
        read_ahead: 1,
        write_ahead: 1,
        retry_interval: Duration::ZERO,
        max_retry_interval: Duration::ZERO,
        key,
    };
    let (store, _) = Store::open(fs, settings, [0; 16])?;
    let aside = directory.join(format!("damaged-{}", now.0 / 1_000_000_000));
    let mut done = DiskQueueRepaired { aside: aside.clone(), ..DiskQueueRepaired::default() };
    let old: Vec<_> = store.lock().segments.iter().map(|segment| segment.number).collect();
    let end = store.lock().durable;
    let copied = copy(&store, &mut done);
    copied.map_err(failed)?;
    debug_assert!(end <= store.lock().durable, "new frames are behind the old ones");
    // The old files have two names before the state says that they are not needed.
    store.keep_aside(&old, &aside).map_err(failed)?;
    store.maintain();
    if store.lock().segments.iter().any(|segment| old.contains(&segment.number)) {
        return Err(failed(io::Error::other("the old segments cannot be removed")));
    }
    Ok(done)
}

fn copy(store: &Arc<Store>, done: &mut DiskQueueRepaired) -> io::Result<()> {
    let (mut reader, mut writer) = (Reader::new(Arc::clone(store)), Writer::new(Arc::clone(store)));
    let mut fails = (0, Place::default());
    let mut ended = Vec::new();
    loop {
        let next = match reader.next() {
            Ok(next) => next,
            Err(error) => {
                let place = reader.place();
                fails = if fails.1 == place { (fails.0 + 1, place) } else { (1, place) };
                if fails.0 < READS {
                    continue;
                }
                tracing::error!(%error, "the rest of a segment cannot be read");
                reader.give_up()
            }
        };
        match next {
            Next::Nothing => break,
            Next::Lost(events) => {
                done.missing += events;
                done.damaged += 1;
            }
            Next::Events(sequence, batch, origin) => {
                ended.push(sequence);
                let rows = 0..batch.len() as u32;
                if !batch.is_empty() {
                    writer.add(&batch, rows, origin.as_ref(), &mut || {})?;
                    done.frames += 1;
                    done.events += batch.len() as u64;
                }
                if writer.pending_bytes() >= FLUSH_BYTES {
                    writer.flush()?;
                }
            }
        }
    }
    writer.flush()?;
    writer.seal();
    for sequence in ended {
        store.end(sequence);
    }
    Ok(())
}
