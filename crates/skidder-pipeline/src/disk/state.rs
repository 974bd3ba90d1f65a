//! The small file that says how far the queue was delivered. It is written in place, one of two copies at a time, so that
//! one of them is whole whatever happens.

use super::format::{Place, QueueId, STATE_VERSION, u32_at, u64_at};
use skidder_os::{File, write_all_at};
use std::io;

const MAGIC: [u8; 8] = *b"SKIDDERS";
const BYTES: usize = 80;

/// Where the copies stand: a sector of its own for each.
const COPIES: [u64; 2] = [0, 4096];

/// The last known state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) queue: QueueId,
    /// All before it have their verdict.
    pub(crate) settled: Place,
    /// All before it were durable.
    pub(crate) durable: Place,
}

/// The file; its lock keeps other processes out as long as this lives.
pub(crate) struct StateFile {
    file: Box<dyn File>,
    /// Grows with each copy that is written.
    serial: u64,
}

impl StateFile {
    pub(crate) fn new(file: Box<dyn File>) -> Self {
        Self { file, serial: 0 }
    }

    /// The newest whole copy.
    pub(crate) fn read(&mut self) -> io::Result<Option<State>> {
        let found = read(&*self.file)?;
        self.serial = found.map_or(0, |(serial, _)| serial);
        Ok(found.map(|(_, state)| state))
    }

    /// Reserves the room for both copies, so that they can be written to a full disk.
    pub(crate) fn reserve(&mut self, state: &State) -> io::Result<()> {
        if self.file.metadata()?.size < COPIES[1] + BYTES as u64 {
            self.write(state)?;
            self.write(state)?;
        }
        Ok(())
    }

    /// Writes over the older copy, durably.
    pub(crate) fn write(&mut self, state: &State) -> io::Result<()> {
        let serial = self.serial + 1;
        let copy = COPIES[(serial % 2) as usize];
        write_all_at(&*self.file, &encode(serial, state), copy)?;
        self.file.sync()?;
        self.serial = serial;
        Ok(())
    }
}

/// The newest whole copy in a file, and its serial number.
pub(crate) fn read(file: &dyn File) -> io::Result<Option<(u64, State)>> {
    let mut newest = None;
    for copy in COPIES {
        let mut bytes = [0; BYTES];
        match skidder_os::read_exact_at(file, &mut bytes, copy) {
            Ok(()) => newest = newest.max_by_serial(decode(&bytes)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {}
            Err(error) => return Err(error),
        }
    }
    Ok(newest)
}

trait Newest {
    fn max_by_serial(self, other: Self) -> Self;
}

impl Newest for Option<(u64, State)> {
    fn max_by_serial(self, other: Self) -> Self {
        match (self, other) {
            (Some(one), Some(other)) => Some(if one.0 > other.0 { one } else { other }),
            (one, other) => one.or(other),
        }
    }
}

fn encode(serial: u64, state: &State) -> [u8; BYTES] {
    let mut out = [0; BYTES];
    out[..8].copy_from_slice(&MAGIC);
    out[8..12].copy_from_slice(&STATE_VERSION.to_le_bytes());
    out[16..32].copy_from_slice(&state.queue);
    let numbers = [
        serial,
        state.settled.sequence,
        state.settled.event,
        state.durable.sequence,
        state.durable.event,
    ];
    for (at, number) in numbers.into_iter().enumerate() {
        out[32 + at * 8..40 + at * 8].copy_from_slice(&number.to_le_bytes());
    }
    let crc = crc32fast::hash(&out[..76]);
    out[76..].copy_from_slice(&crc.to_le_bytes());
    out
}

fn decode(bytes: &[u8; BYTES]) -> Option<(u64, State)> {
    let is_whole = bytes[..8] == MAGIC && crc32fast::hash(&bytes[..76]) == u32_at(bytes, 76);
    if !is_whole || u32_at(bytes, 8) != STATE_VERSION {
        return None;
    }
    let mut queue = QueueId::default();
    queue.copy_from_slice(&bytes[16..32]);
    let place = |at| Place { sequence: u64_at(bytes, at), event: u64_at(bytes, at + 8) };
    Some((u64_at(bytes, 32), State { queue, settled: place(40), durable: place(56) }))
}
