//! The content of a queue's directory: its state and its segments, read and not changed.

use super::format::{
    FrameKey, HeaderError, KeyId, Place, QueueId, SEGMENT_HEADER, SegmentHeader, VERSION_MAX,
};
use super::state::{self, State};
use super::walk::{Step, Walk};
use super::{DiskQueueError, foreign};
use skidder_os::{File, FileKind, Fs, read_exact_at};
use std::io;
use std::path::{Path, PathBuf};

/// Name of the state file.
pub(crate) const STATE_FILE: &str = "queue.state";

/// Ending of a segment's name.
const ENDING: &str = ".skq";

/// A directory of a queue.
pub(crate) struct Survey {
    pub(crate) state: Option<State>,
    /// The queue's own name; `None` if nothing here has it.
    pub(crate) queue: Option<QueueId>,
    /// In the order of their numbers.
    pub(crate) segments: Vec<Found>,
    /// Number of the next segment.
    pub(crate) next_number: u64,
}

/// A segment as it was found.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) number: u64,
    pub(crate) path: PathBuf,
    /// Bytes of the file.
    pub(crate) size: u64,
    /// Whether its header is as it was written.
    pub(crate) header_is_whole: bool,
    /// Where its first frame stands in the queue: from the header, else from the first whole frame.
    pub(crate) first: Option<Place>,
    /// The key of its frames: from the header, else from the first whole frame.
    pub(crate) key: Option<KeyId>,
}

/// The path of a segment.
pub(crate) fn segment_path(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("{number:012}{ENDING}"))
}

impl Survey {
    /// Looks at a directory; one that is not there is empty.
    pub(crate) fn of(fs: &dyn Fs, directory: &Path) -> Result<Self, DiskQueueError> {
        let failed = |source| DiskQueueError::io(directory, source);
        let mut numbers = Vec::new();
        let listed = fs.read_dir(directory, &mut |entry| {
            let name = entry.name.to_string_lossy();
            let number: Option<u64> =
                name.strip_suffix(ENDING).and_then(|number| number.parse().ok());
            if entry.kind == FileKind::Regular {
                numbers.extend(number);
            }
        });
        match listed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => numbers.sort_unstable(),
        }
        foreign::check(fs, directory)?;
        let state = read_state(fs, directory).map_err(failed)?;
        let mut survey = Self {
            state,
            queue: state.map(|state| state.queue),
            segments: Vec::new(),
            next_number: numbers.last().map_or(1, |last| last + 1),
        };
        for number in numbers {
            survey.add(fs, directory, number)?;
        }
        survey.complete(fs).map_err(failed)?;
        Ok(survey)
    }

    fn add(&mut self, fs: &dyn Fs, directory: &Path, number: u64) -> Result<(), DiskQueueError> {
        let path = segment_path(directory, number);
        let failed = |source| DiskQueueError::io(&path, source);
        let file = fs.open(&path).map_err(failed)?;
        let size = file.metadata().map_err(failed)?.size;
        let mut found = Found {
            number,
            path: path.clone(),
            size,
            header_is_whole: false,
            first: None,
            key: None,
        };
        match read_header(&*file).map_err(failed)? {
            Ok(header) if self.queue.is_some_and(|queue| queue != header.queue) => {
                return Err(DiskQueueError::Another { path });
            }
            Ok(header) => {
                self.queue = Some(header.queue);
                found.header_is_whole = header.number == number;
                found.first = Some(header.first).filter(|_| found.header_is_whole);
                found.key = header.key;
            }
            Err(HeaderError::Newer(version)) => {
                return Err(DiskQueueError::Newer { path, version, known: VERSION_MAX });
            }
            Err(HeaderError::Damaged) => {}
        }
        self.segments.push(found);
        Ok(())
    }

    /// Finds the first frames of segments whose header is damaged.
    fn complete(&mut self, fs: &dyn Fs) -> io::Result<()> {
        let Some(queue) = self.queue else { return Ok(()) };
        for found in self.segments.iter_mut().filter(|found| found.first.is_none()) {
            let file = fs.open(&found.path)?;
            let mut walk = found.walk(queue);
            if let Step::Frame(header) = walk.find(&*file, found.size)? {
                (found.first, found.key) = (Some(header.place), header.key);
            }
        }
        Ok(())
    }

    /// The place before which all have their verdict according to the state, or the beginning of the first segment.
    pub(crate) fn settled(&self) -> Place {
        let first = self.segments.iter().find_map(|found| found.first);
        self.state.map(|state| state.settled).or(first).unwrap_or_default()
    }
}

impl Found {
    /// A way through the segment.
    pub(crate) fn walk(&self, queue: QueueId) -> Walk {
        Walk { key: FrameKey { queue, segment: self.number }, at: SEGMENT_HEADER as u64 }
    }

    /// Behind the last whole frame: its end in bytes and in the queue. Payloads are looked at from `known` on.
    pub(crate) fn end(
        &self,
        file: &dyn File,
        queue: QueueId,
        known: Place,
    ) -> io::Result<(u64, Option<Place>)> {
        let mut walk = self.walk(queue);
        let mut end = (walk.at.min(self.size), self.first);
        let mut payload = Vec::new();
        while let Step::Frame(header) = walk.find(file, self.size)? {
            let is_whole = if header.place < known {
                walk.pass(&header);
                true
            } else {
                walk.read(file, &header, &mut payload)?
            };
            if is_whole {
                end = (walk.at, Some(header.end()));
            }
        }
        Ok(end)
    }
}

fn read_state(fs: &dyn Fs, directory: &Path) -> io::Result<Option<State>> {
    match fs.open(&directory.join(STATE_FILE)) {
        Ok(file) => Ok(state::read(&*file)?.map(|(_, state)| state)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The header of a segment.
pub(crate) fn read_header(file: &dyn File) -> io::Result<Result<SegmentHeader, HeaderError>> {
    let mut bytes = [0; SEGMENT_HEADER];
    match read_exact_at(file, &mut bytes, 0) {
        Ok(()) => Ok(SegmentHeader::decode(&bytes)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(Err(HeaderError::Damaged)),
        Err(error) => Err(error),
    }
}
