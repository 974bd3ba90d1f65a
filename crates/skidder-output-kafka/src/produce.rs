//! The request that carries batches, and its answer
//! (<https://kafka.apache.org/protocol#The_Messages_Produce>, versions 3 to 8).

use crate::codes::Code;
use crate::compress::Compressor;
use crate::record::{HEAD_BYTES, Records, Sequence};
use crate::wire::{self, Api, Nonsense, Reader};
use std::io::IoSlice;
use std::sync::Arc;

/// Records up to this size are copied next to their head, so that a small request is one piece.
const COPIED_BYTES_MAX: usize = 8 << 10;
/// Pieces that are given to the system at once.
const PIECES_MAX: usize = 64;

/// One batch with its address.
#[derive(Debug)]
pub(crate) struct Parcel {
    pub(crate) topic: Arc<str>,
    pub(crate) partition: i32,
    pub(crate) records: Records,
    pub(crate) sequence: Option<Sequence>,
}

/// The outcome of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) code: Code,
    /// The records that were at fault, by their place in the batch; none if the broker does not report them.
    pub(crate) rows: Vec<usize>,
    /// The broker's message.
    pub(crate) text: Option<String>,
}

impl Outcome {
    pub(crate) fn of(code: Code) -> Self {
        Self { code, rows: Vec::new(), text: None }
    }
}

/// A request as it is sent: heads in one piece of memory, records where they were written.
#[derive(Debug, Default)]
pub(crate) struct Frame {
    heads: Vec<u8>,
    /// Records, and the place in `heads` that they stand before.
    parts: Vec<(usize, Vec<u8>)>,
    length: usize,
    written: usize,
}

/// The constant part of all requests to a broker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms<'a> {
    pub(crate) version: i16,
    pub(crate) client_id: &'a str,
    pub(crate) acks: i8,
    /// Milliseconds that the broker waits for its replicas.
    pub(crate) timeout: i32,
}

impl Frame {
    /// Of these parcels, where those of a topic stand together. Memory that is not needed any more goes to `free`.
    pub(crate) fn new(
        number: i32,
        parcels: Vec<Parcel>,
        terms: &Terms<'_>,
        compressor: &mut Compressor,
        mut free: impl FnMut(Vec<u8>),
    ) -> Self {
        let mut frame = Self::default();
        let heads = &mut frame.heads;
        wire::begin_request(heads, Api::Produce, terms.version, number, terms.client_id);
        // No transaction.
        heads.extend_from_slice(&[0xff, 0xff]);
        heads.extend_from_slice(&i16::from(terms.acks).to_be_bytes());
        heads.extend_from_slice(&terms.timeout.to_be_bytes());
        let groups = parcels.chunk_by(|a, b| a.topic == b.topic);
        let counts: Vec<usize> = groups.map(<[Parcel]>::len).collect();
        frame.heads.extend_from_slice(&(counts.len() as i32).to_be_bytes());
        let mut parcels = parcels.into_iter();
        let mut elsewhere = 0;
        for count in counts {
            for (place, parcel) in parcels.by_ref().take(count).enumerate() {
                if place == 0 {
                    wire::put_text(&mut frame.heads, &parcel.topic);
                    frame.heads.extend_from_slice(&(count as i32).to_be_bytes());
                }
                elsewhere += frame.add(parcel, compressor, &mut free);
            }
        }
        frame.length = frame.heads.len() + elsewhere;
        wire::end_request(&mut frame.heads, elsewhere);
        frame
    }

    /// Adds a batch; gives how many bytes of it are not among the heads.
    fn add(
        &mut self,
        parcel: Parcel,
        compressor: &mut Compressor,
        free: &mut impl FnMut(Vec<u8>),
    ) -> usize {
        let Parcel { partition, mut records, sequence, .. } = parcel;
        self.heads.extend_from_slice(&partition.to_be_bytes());
        let is_plain = matches!(compressor, Compressor::None);
        let body = std::mem::take(&mut records.bytes);
        if is_plain && body.len() > COPIED_BYTES_MAX {
            self.put_length(HEAD_BYTES + body.len());
            self.heads.extend_from_slice(&records.head(0, &body, sequence));
            let length = body.len();
            self.parts.push((self.heads.len(), body));
            return length;
        }
        let at = self.heads.len();
        self.heads.resize(at + 4 + HEAD_BYTES, 0);
        compressor.add(&body, &mut self.heads);
        free(body);
        let (heads, body) = self.heads.split_at_mut(at + 4 + HEAD_BYTES);
        let length = (HEAD_BYTES + body.len()) as i32;
        heads[at..at + 4].copy_from_slice(&length.to_be_bytes());
        heads[at + 4..].copy_from_slice(&records.head(compressor.number(), body, sequence));
        0
    }

    fn put_length(&mut self, length: usize) {
        self.heads.extend_from_slice(&(length as i32).to_be_bytes());
    }

    pub(crate) fn len(&self) -> usize {
        self.length
    }

    pub(crate) fn is_written(&self) -> bool {
        self.written == self.length
    }

    /// So many bytes more were written.
    pub(crate) fn advance(&mut self, count: usize) {
        self.written += count;
    }

    /// The next pieces that are to be written.
    pub(crate) fn rest(&self) -> Vec<IoSlice<'_>> {
        let mut skip = self.written;
        let mut slices = Vec::with_capacity(PIECES_MAX.min(2 * self.parts.len() + 1));
        let mut from = 0;
        let ends = self.parts.iter().map(|(at, part)| (*at, &part[..]));
        for (at, part) in ends.chain([(self.heads.len(), &[][..])]) {
            for piece in [&self.heads[from..at], part] {
                let left = piece.get(skip..).unwrap_or_default();
                skip = skip.saturating_sub(piece.len());
                if !left.is_empty() && slices.len() < PIECES_MAX {
                    slices.push(IoSlice::new(left));
                }
            }
            from = at;
        }
        slices
    }

    /// The memory of the records.
    pub(crate) fn into_parts(self) -> impl Iterator<Item = Vec<u8>> {
        self.parts.into_iter().map(|(_, part)| part)
    }
}

/// The outcome of each batch, in the order of `addresses`.
pub(crate) fn read_answer(
    answer: &[u8],
    version: i16,
    addresses: &[(Arc<str>, i32)],
) -> Result<Vec<Outcome>, Nonsense> {
    let mut outcomes: Vec<Option<Outcome>> = vec![None; addresses.len()];
    let mut reader = Reader(answer);
    let mut next = 0;
    for _ in 0..reader.count()? {
        let topic = reader.text()?.ok_or(Nonsense("a topic has no name"))?;
        for _ in 0..reader.count()? {
            let partition = reader.i32()?;
            let outcome = read_outcome(&mut reader, version)?;
            // They usually come in the order in which they were sent.
            let is_it = |(name, number): &(Arc<str>, i32)| **name == *topic && *number == partition;
            let place = if addresses.get(next).is_some_and(is_it) {
                next
            } else {
                let found = addresses.iter().position(is_it);
                found.ok_or(Nonsense("it is about what was not sent"))?
            };
            outcomes[place].get_or_insert(outcome);
            next = place + 1;
        }
    }
    let all: Option<Vec<Outcome>> = outcomes.into_iter().collect();
    all.ok_or(Nonsense("it does not say what became of a batch"))
}

fn read_outcome(reader: &mut Reader<'_>, version: i16) -> Result<Outcome, Nonsense> {
    let code = Code(reader.i16()?);
    reader.i64()?;
    reader.i64()?;
    if version >= 5 {
        reader.i64()?;
    }
    let mut outcome = Outcome::of(code);
    if version >= 8 {
        for _ in 0..reader.count()? {
            outcome.rows.extend(usize::try_from(reader.i32()?));
            if let Some(text) = reader.text()? {
                outcome.text.get_or_insert(text);
            }
        }
        if let Some(text) = reader.text()? {
            outcome.text.get_or_insert(text);
        }
    }
    Ok(outcome)
}

#[cfg(test)]
mod tests;
