//! Events of datagrams: one source for each peer that sends many at a time, and one for all others.

use super::sink::Sink;
use foldhash::fast::RandomState;
use skidder_event::{Batch, Cell, Map, Parts, Path, Progress, Recycle, Text};
use skidder_input::{Intake, OnBatch, Source};
use skidder_net::Datagram;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// Peers with a source of their own.
const PEERS_MAX: usize = 1024;

/// Datagrams of one call that make a batch of their own worth its cost.
const OWN_MIN: usize = 16;

/// With at most so many peers in one call, each has a batch of its own.
const FEW_PEERS: usize = 4;

/// Buffers that are used again.
const KEPT_MAX: usize = 16;

/// Fields and values of events whose room is kept, as of streams.
const KEPT_FIELDS_MAX: usize = 32 << 10;

/// Bytes of the largest buffer that is used again.
const KEPT_BYTES_MAX: usize = 1 << 20;

static ADDRESS: LazyLock<Path> = LazyLock::new(|| path("log.source.address"));
static FLAGS: LazyLock<Path> = LazyLock::new(|| path("log.flags"));

fn path(text: &str) -> Path {
    Path::parse(text).expect("a constant that is a path")
}

/// Where a datagram stands.
#[derive(Clone, Copy)]
struct Place {
    text: Text,
    /// Which of the peers of this round.
    peer: usize,
    truncated: bool,
}

/// A peer of this round.
struct Sender {
    address: Option<SocketAddr>,
    count: usize,
    own: bool,
}

struct Known {
    source: Source,
    /// The round in which it sent last.
    round: u64,
}

/// Makes events of datagrams and offers them.
pub(super) struct Peers {
    intake: Intake,
    /// Of peers without a source of their own.
    others: Source,
    known: HashMap<SocketAddr, Known, RandomState>,
    round: u64,
    bytes: Vec<u8>,
    places: Vec<Place>,
    senders: Vec<Sender>,
    numbers: HashMap<SocketAddr, usize, RandomState>,
    pool: Arc<Pool>,
    on_batch: Option<OnBatch>,
}

impl Sink for Peers {
    /// One without bytes is no event, as in Filebeat.
    fn add(&mut self, datagram: &Datagram<'_>) {
        if datagram.bytes.is_empty() {
            return;
        }
        if self.bytes.capacity() == 0 {
            self.bytes = self.pool.take().bytes;
        }
        let peer = self.sender(datagram.peer);
        self.senders[peer].count += 1;
        let (start, len) = (self.bytes.len() as u32, datagram.bytes.len() as u32);
        self.bytes.extend_from_slice(datagram.bytes);
        // Between two of them, so that all of them are UTF-8 if the whole is.
        self.bytes.push(b'\n');
        let text = Text { start, len };
        self.places.push(Place { text, peer, truncated: datagram.truncated });
    }

    fn flush(&mut self, time: i64) -> (u64, u64) {
        if self.places.is_empty() {
            return (0, 0);
        }
        self.round += 1;
        let few = self.senders.len() <= FEW_PEERS;
        for at in 0..self.senders.len() {
            let sender = &self.senders[at];
            let Some(address) = sender.address else { continue };
            let wanted = few || sender.count >= OWN_MIN;
            self.senders[at].own = wanted && self.know(address);
        }
        let places = std::mem::take(&mut self.places);
        let bytes = std::mem::take(&mut self.bytes);
        if self.senders.len() == 1 {
            self.offer_whole(bytes, &places, time);
        } else {
            self.offer_parts(bytes, &places, time);
        }
        let events = places.len() as u64;
        let total = places.iter().map(|place| u64::from(place.text.len)).sum();
        self.places = places;
        self.places.clear();
        self.senders.clear();
        self.numbers.clear();
        (events, total)
    }
}

impl Peers {
    pub(super) fn new(intake: Intake, name: &str, on_batch: Option<OnBatch>) -> Self {
        let others = intake.open(name, Map::new());
        Self {
            intake,
            others,
            known: HashMap::default(),
            round: 0,
            bytes: Vec::new(),
            places: Vec::new(),
            senders: Vec::new(),
            numbers: HashMap::default(),
            pool: Arc::default(),
            on_batch,
        }
    }

    fn sender(&mut self, address: Option<SocketAddr>) -> usize {
        let last = self.places.last().map(|place| place.peer);
        if let Some(last) = last.filter(|last| self.senders[*last].address == address) {
            return last;
        }
        let new = self.senders.len();
        let number = address.map_or(0, |key| *self.numbers.entry(key).or_insert(new));
        if number == new {
            self.senders.push(Sender { address, count: 0, own: false });
        }
        number
    }

    /// Opens the source of a peer if there is none; `false` if there is no place for it.
    fn know(&mut self, address: SocketAddr) -> bool {
        let round = self.round;
        if let Some(known) = self.known.get_mut(&address) {
            known.round = round;
            return true;
        }
        if self.known.len() >= PEERS_MAX {
            // Batches that wait for room name their source, which must stay.
            let oldest = self.known.iter().min_by_key(|(_, known)| known.round);
            let oldest = oldest.filter(|(_, known)| known.round < round).map(|(key, _)| *key);
            let Some(oldest) = oldest.filter(|_| !self.intake.has_backlog()) else { return false };
            self.known.remove(&oldest);
        }
        let text = address.to_string();
        let mut fields = Map::new();
        fields.insert_path("log.source.address", text.as_str());
        let source = self.intake.open(&text, fields);
        self.known.insert(address, Known { source, round });
        true
    }

    /// All datagrams are of one peer.
    fn offer_whole(&mut self, bytes: Vec<u8>, places: &[Place], time: i64) {
        let sender = &self.senders[0];
        let own = sender.own.then_some(sender.address).flatten();
        let source = own.and_then(|address| self.known.get_mut(&address));
        let (source, address) = match source {
            Some(known) => (&mut known.source, None),
            None => (&mut self.others, sender.address),
        };
        let texts = places.iter().map(|place| (*place, address));
        offer(source, self.pool.parts(bytes), texts, time, (&self.pool, self.on_batch.as_ref()));
    }

    fn offer_parts(&mut self, bytes: Vec<u8>, places: &[Place], time: i64) {
        let pool = Arc::clone(&self.pool);
        // Those with a source of their own, each with a copy of its datagrams.
        let mut own: Vec<(Vec<u8>, Vec<Place>)> = Vec::new();
        own.resize_with(self.senders.len(), Default::default);
        let mut others = Vec::new();
        for place in places {
            if !self.senders[place.peer].own {
                others.push((*place, self.senders[place.peer].address));
                continue;
            }
            let (copy, copies) = &mut own[place.peer];
            let (start, len) = (place.text.start as usize, place.text.len as usize);
            let text = Text { start: copy.len() as u32, len: place.text.len };
            copy.extend_from_slice(&bytes[start..=start + len]);
            copies.push(Place { text, ..*place });
        }
        for (sender, (copy, copies)) in self.senders.iter().zip(own) {
            let known = sender.address.filter(|_| sender.own);
            if let Some(known) = known.and_then(|address| self.known.get_mut(&address)) {
                let texts = copies.iter().map(|place| (*place, None));
                offer(
                    &mut known.source,
                    pool.parts(copy),
                    texts,
                    time,
                    (&pool, self.on_batch.as_ref()),
                );
            }
        }
        if others.is_empty() {
            pool.recycle(Parts { bytes, ..Parts::default() });
            return;
        }
        offer(
            &mut self.others,
            pool.parts(bytes),
            others.into_iter(),
            time,
            (&pool, self.on_batch.as_ref()),
        );
    }
}

/// Offers the events of these texts; those with an address get it as a field of their own.
fn offer(
    source: &mut Source,
    parts: Parts,
    texts: impl Iterator<Item = (Place, Option<SocketAddr>)>,
    time: i64,
    (pool, on_batch): (&Arc<Pool>, Option<&OnBatch>),
) {
    let utf8 = simdutf8::basic::from_utf8(&parts.bytes).map_or(0, str::len);
    let mut batch = source.batch_of(parts, utf8);
    batch.set_recycle(Arc::clone(pool) as _);
    let (mut total, mut last) = (0, None);
    for (place, address) in texts {
        let row = source.push(&mut batch, place.text, place.text.len, time);
        total += u64::from(place.text.len);
        if let Some(address) = address {
            let text = match last {
                Some((known, text)) if known == address => text,
                _ => batch.append(address.to_string().as_bytes()),
            };
            last = Some((address, text));
            put(&mut batch, row, &ADDRESS, |_| Cell::Str(text));
        }
        if place.truncated {
            put(&mut batch, row, &FLAGS, |event| {
                let flag = Cell::Str(event.store_text(b"truncated"));
                event.store_list(&[flag])
            });
        }
    }
    if let Some(on_batch) = on_batch {
        on_batch.run(&mut batch);
    }
    source.offer(batch, Progress::Nothing(total));
}

fn put(
    batch: &mut Batch,
    row: usize,
    path: &Path,
    value: impl FnOnce(&mut skidder_event::EventMut<'_>) -> Cell,
) {
    let base = Arc::clone(batch.base());
    let mut event = batch.event_mut(row, &base);
    let value = value(&mut event);
    // Processors have folded something else into `log`, which wins.
    drop(event.put_cell(path, value));
}

/// Buffers that are used again.
#[derive(Debug, Default)]
pub(crate) struct Pool(Mutex<Vec<Parts>>);

impl Pool {
    /// The parts of a batch that is gone, without what was in them.
    pub(crate) fn take(&self) -> Parts {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    /// Parts of a batch around these bytes.
    fn parts(&self, bytes: Vec<u8>) -> Parts {
        Parts { bytes, ..self.take() }
    }
}

impl Recycle for Pool {
    fn recycle(&self, mut parts: Parts) {
        parts.bytes.clear();
        parts.rows.clear();
        if parts.nodes.capacity() > KEPT_FIELDS_MAX || parts.cells.capacity() > KEPT_FIELDS_MAX {
            (parts.nodes, parts.cells) = (Vec::new(), Vec::new());
        }
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < KEPT_MAX && parts.bytes.capacity() <= KEPT_BYTES_MAX {
            kept.push(parts);
        }
    }
}
