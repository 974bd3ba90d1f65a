//! The content of a disk queue, for people: read frame by frame and not changed.

use super::DiskQueueError;
use super::cipher::{self, DiskQueueKey};
use super::format::{Place, QueueId};
use super::payload;
use super::survey::{Found, Survey};
use super::walk::Step;
use skidder_event::{Bases, Batch};
use skidder_os::{Fs, Timestamp};
use std::io;
use std::path::{Path, PathBuf};

/// The content of a disk queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiskQueueReport {
    /// In their order.
    pub segments: Vec<SegmentReport>,
    /// Events without a verdict that can be read.
    pub waiting: u64,
    /// Events without a verdict that cannot be read any more.
    pub missing: u64,
    /// Damaged places among those without a verdict.
    pub damaged: u64,
    /// Encrypted frames that were only counted: the key is not there, or another one.
    pub sealed: u64,
    /// Whether the state shows how far the queue was delivered.
    pub has_state: bool,
}

impl DiskQueueReport {
    /// Whether nothing is damaged, and nothing can be missing.
    pub fn is_whole(&self) -> bool {
        self.damaged == 0 && self.missing == 0 && !self.state_is_lost()
    }

    /// Whether there are segments and no state. The state is written before the first segment, so it was damaged or
    /// removed. Without it nothing shows what is missing in front of the first segment and behind the last frame.
    pub fn state_is_lost(&self) -> bool {
        !self.has_state && !self.segments.is_empty()
    }
}

/// The content of a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SegmentReport {
    /// The file.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// Whole frames.
    pub frames: u64,
    /// Events in them.
    pub events: u64,
    /// Those of them that have no verdict.
    pub waiting: u64,
    /// Damaged frames, stretches without one, and a damaged header.
    pub damaged: u64,
    /// Events that are missing at these places.
    pub missing: u64,
    /// Bytes behind the last frame, of a write that is under way or was cut off.
    pub unfinished: u64,
    /// `@timestamp` of its oldest event.
    pub oldest: Option<Timestamp>,
    /// `@timestamp` of its newest event.
    pub newest: Option<Timestamp>,
}

/// Looks at the queue in a directory. `key` is that of an encrypted one, of which less is known without. Works beside
/// a program that uses it, whose last events may be missing then.
pub fn inspect_disk_queue(
    fs: &dyn Fs,
    directory: &Path,
    key: Option<&DiskQueueKey>,
) -> Result<DiskQueueReport, DiskQueueError> {
    let survey = Survey::of(fs, directory)?;
    let mut report =
        DiskQueueReport { has_state: survey.state.is_some(), ..DiskQueueReport::default() };
    let Some(queue) = survey.queue else {
        if survey.segments.is_empty() {
            return Ok(report);
        }
        return Err(DiskQueueError::Unknown { directory: directory.to_path_buf() });
    };
    let durable = survey.state.map_or(Place::default(), |state| state.durable);
    let settled = survey.settled();
    let mut look = Look { queue, key, settled, next: settled, durable, sealed: 0 };
    if let Some(first) = survey.segments.iter().find_map(|found| found.first) {
        // What is before was delivered, and was only not removed yet.
        look.next = look.next.min(first);
    }
    for (at, found) in survey.segments.iter().enumerate() {
        let end = survey.segments[at + 1..].iter().find_map(|next| next.first);
        let segment = match look.segment(fs, found, end) {
            Ok(segment) => segment,
            // It was delivered and removed meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(DiskQueueError::io(&found.path, error)),
        };
        report.waiting += segment.waiting;
        report.segments.push(segment);
    }
    let last = look.next.max(durable).event;
    report.missing = last.saturating_sub(look.settled.event).saturating_sub(report.waiting);
    report.sealed = look.sealed;
    report.damaged = report.segments.iter().map(|segment| segment.damaged).sum();
    Ok(report)
}

struct Look<'a> {
    queue: QueueId,
    key: Option<&'a DiskQueueKey>,
    settled: Place,
    durable: Place,
    /// Behind the last frame that was seen or missed.
    next: Place,
    sealed: u64,
}

/// The content of a frame, as far as it is known.
enum Held {
    Events(Box<Batch>),
    /// It is as it was written, and cannot be read without its key.
    Sealed,
    Damaged,
}

impl Held {
    fn of(payload: &[u8], bases: &mut Bases) -> Self {
        match payload::decode(payload, bases) {
            Ok((batch, _)) => Self::Events(Box::new(batch)),
            Err(_) => Self::Damaged,
        }
    }
}

impl Look<'_> {
    fn segment(
        &mut self,
        fs: &dyn Fs,
        found: &Found,
        end: Option<Place>,
    ) -> io::Result<SegmentReport> {
        let file = fs.open(&found.path)?;
        let mut report = SegmentReport {
            path: found.path.clone(),
            bytes: found.size,
            damaged: u64::from(!found.header_is_whole && found.first.is_some()),
            ..SegmentReport::default()
        };
        let mut walk = found.walk(self.queue);
        let (mut payload, mut bases) = (Vec::new(), Bases::default());
        loop {
            let header = match walk.find(&*file, found.size)? {
                Step::Frame(header) if end.is_none_or(|end| header.place < end) => header,
                Step::Frame(_) => break,
                Step::End(rest) => {
                    report.unfinished = rest;
                    break;
                }
            };
            if header.place > self.next {
                self.miss(header.place, &mut report);
            }
            let whole = walk.read(&*file, &header, &mut payload)?;
            let held = match cipher::of(self.key, &header) {
                _ if !whole => Held::Damaged,
                Err(_) => Held::Sealed,
                Ok(Some(cipher)) if !cipher.open(&walk.key, &header, &mut payload) => Held::Damaged,
                Ok(_) => Held::of(&payload, &mut bases),
            };
            if matches!(held, Held::Damaged) {
                if header.place >= self.durable && end.is_none() {
                    report.unfinished += header.total();
                } else {
                    self.miss(header.end(), &mut report);
                }
                continue;
            }
            self.next = self.next.max(header.end());
            report.frames += 1;
            report.events += u64::from(header.rows);
            if header.place >= self.settled {
                report.waiting += u64::from(header.rows);
            }
            let Held::Events(batch) = held else {
                self.sealed += 1;
                continue;
            };
            for row in batch.rows() {
                let time = Timestamp(row.time);
                report.oldest = Some(report.oldest.map_or(time, |oldest| oldest.min(time)));
                report.newest = Some(report.newest.map_or(time, |newest| newest.max(time)));
            }
        }
        let end = end.unwrap_or(self.durable);
        if end > self.next {
            self.miss(end, &mut report);
            report.unfinished = 0;
        }
        Ok(report)
    }

    /// Everything up to `to` is missed.
    fn miss(&mut self, to: Place, report: &mut SegmentReport) {
        report.damaged += 1;
        report.missing += to.event.saturating_sub(self.next.event);
        self.next = to;
    }
}
