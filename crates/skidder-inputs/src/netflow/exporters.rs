//! Packets of exporters become events: a source for each exporter, as far as there is room, and one for all others.

use super::event::{Internal, Writer};
use super::keep::{Keep, Place};
use super::keys::Keys;
use super::reports::Reports;
use crate::datagram::{Kept, Pool, Sink};
use foldhash::fast::RandomState;
use skidder_event::{Batch, Map, Progress, Text};
use skidder_input::{Flows, Intake, Source};
use skidder_net::Datagram;
use skidder_netflow::{Decoder, Extra, Flow, Settings};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// Exporters with a source of their own.
const SOURCES_MAX: usize = 1024;

/// A batch of so many bytes does not wait for the end of its call.
const BATCH_BYTES: usize = 1 << 20;

/// How often templates that are not used are looked for.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(5);

/// A batch that is being filled.
struct Filling {
    batch: Batch,
    keys: Keys,
    exporter: SocketAddr,
    /// The exporter's address with and without its port, in the batch.
    address: Text,
    ip: Text,
    /// The agent of sFlow that sent last through this exporter, if it has another address.
    agent: Option<(IpAddr, Text)>,
    bytes: u64,
}

/// An exporter with a source of its own.
struct Known {
    source: Source,
    filling: Option<Filling>,
    /// The call in which it sent last.
    round: u64,
}

/// Makes events of packets.
pub(super) struct Exporters {
    intake: Intake,
    decoder: Decoder,
    keep: Keep,
    internal: Internal,
    /// Exporters without a source of their own share this one; a batch has events of one of them.
    others: Known,
    known: HashMap<SocketAddr, Known, RandomState>,
    /// Those of `known` that sent in this round, in the order of their first packets.
    sent: Vec<SocketAddr>,
    round: u64,
    /// Of this round.
    bytes: u64,
    events: u64,
    pool: Arc<Pool>,
    scratch: String,
    expired: Duration,
    errors: Reports,
    /// The last error that the log does not have yet.
    unsaid: Option<(SocketAddr, String)>,
    missing: Reports,
}

impl Exporters {
    pub(super) fn new(
        intake: Intake,
        shown: &str,
        kept: Option<Kept>,
        (settings, internal, place): (Settings, Internal, Option<Arc<Place>>),
    ) -> Self {
        let now = intake.clock().monotonic().0;
        let before = kept.and_then(|kept| kept.downcast::<Decoder>().ok());
        let mut keep = Keep::new(place);
        let decoder = match before {
            Some(mut decoder) => {
                decoder.set(settings, now);
                *decoder
            }
            None => {
                let mut decoder = Decoder::new(settings);
                keep.load(&mut decoder, now);
                decoder
            }
        };
        let source = intake.open(shown, Map::new());
        let others = Known { source, filling: None, round: 0 };
        Self {
            intake,
            decoder,
            keep,
            internal,
            others,
            known: HashMap::default(),
            sent: Vec::new(),
            round: 1,
            bytes: 0,
            events: 0,
            pool: Arc::default(),
            scratch: String::new(),
            expired: now,
            errors: Reports::default(),
            unsaid: None,
            missing: Reports::default(),
        }
    }

    fn now(&self) -> Duration {
        self.intake.clock().monotonic().0
    }

    /// Opens the source of an exporter if there is room for it.
    fn know(&mut self, exporter: SocketAddr) {
        if self.known.contains_key(&exporter) {
            return;
        }
        if self.known.len() >= SOURCES_MAX {
            // Batches that wait for room name their source, which must stay.
            let oldest = self.known.iter().min_by_key(|(_, known)| known.round);
            let oldest = oldest.filter(|(_, known)| known.round < self.round).map(|(key, _)| *key);
            let Some(oldest) = oldest.filter(|_| !self.intake.has_backlog()) else { return };
            self.known.remove(&oldest);
        }
        let source = self.intake.open(&exporter.to_string(), Map::new());
        self.known.insert(exporter, Known { source, filling: None, round: 0 });
    }

    /// Takes note of what is wrong with a packet.
    fn failed(&mut self, exporter: SocketAddr, error: String) {
        match self.known.get(&exporter) {
            Some(known) => known.source.failed(&error),
            None => self.intake.metrics().failed(&exporter.to_string(), &error),
        }
        let packets = self.errors.add(1, self.now());
        self.unsaid = Some((exporter, error));
        self.say_error(packets);
    }

    /// Says that so many packets could not be decoded, and what was wrong with the last one.
    fn say_error(&mut self, packets: Option<u64>) {
        if let Some(packets) = packets
            && let Some((exporter, error)) = self.unsaid.take()
        {
            tracing::warn!(%exporter, %error, packets, "packets cannot be decoded");
        }
    }

    /// The input ends: says what was not said yet.
    fn say_rest(&mut self) {
        let packets = self.errors.rest();
        self.say_error(packets);
        if let Some(sets) = self.missing.rest() {
            tracing::warn!(sets, "more data came before its template since that was logged last");
        }
    }

    fn report_missing(&mut self, exporter: SocketAddr, sets: u64) {
        if sets > 0
            && let Some(sets) = self.missing.add(sets, self.now())
        {
            tracing::warn!(
                %exporter,
                sets,
                "data came before its template and waits for it: exporters send templates every few minutes; \
                 `skidder.netflow` below `/inputs/` counts what is given up"
            );
        }
    }

    /// Shows the counters.
    fn show(&self) {
        let (shown, counts) = (&self.intake.metrics().listening().flows, self.decoder.counts());
        let shown = shown.get_or_init(Flows::default);
        for (gauge, number) in [
            (&shown.flows, counts.flows),
            (&shown.packets, counts.packets),
            (&shown.errors, counts.errors),
            (&shown.sources, self.decoder.sources() as u64),
            (&shown.without_template, counts.without_template),
            (&shown.decoded_later, counts.decoded_later),
            (&shown.given_up, counts.given_up),
            (&shown.templates_refused, counts.templates_refused),
            (&shown.templates_forgotten, counts.templates_forgotten),
            (&shown.resets, counts.resets),
            (&shown.skipped, counts.skipped),
            (&shown.lost, counts.lost),
        ] {
            gauge.set(number);
        }
    }

    fn expire(&mut self, now: Duration) {
        if now.saturating_sub(self.expired) >= EXPIRY_INTERVAL {
            self.expired = now;
            self.decoder.expire(now);
        }
    }
}

impl Filling {
    /// The address of the device that has seen the flow: an agent of sFlow says it, and need not be the one that sends.
    fn observer(&mut self, flow: &Flow<'_>) -> Text {
        let Extra::Agent { address: Some(agent), .. } = flow.header.extra else { return self.ip };
        let agent = agent.to_canonical();
        if agent == self.exporter.ip() {
            return self.ip;
        }
        match self.agent {
            Some((known, text)) if known == agent => text,
            _ => {
                let text = self.batch.append(agent.to_string().as_bytes());
                self.agent = Some((agent, text));
                text
            }
        }
    }
}

impl Known {
    /// Adds the event of a flow, whose packet had `bytes` bytes of which none is counted yet.
    fn add(
        &mut self,
        flow: &Flow<'_>,
        bytes: u32,
        created: i64,
        (internal, pool, scratch): (&Internal, &Arc<Pool>, &mut String),
    ) {
        // Of the exporters that share a source one after the other is in a batch.
        if self.filling.as_ref().is_some_and(|filling| filling.exporter != flow.from) {
            self.offer();
        }
        let Self { source, filling, .. } = self;
        let filling = filling.get_or_insert_with(|| {
            let mut batch = source.batch_of(pool.take(), 0);
            batch.set_recycle(Arc::clone(pool) as _);
            let keys = Keys::append(&mut batch);
            let address = batch.append(flow.from.to_string().as_bytes());
            let ip = batch.append(flow.from.ip().to_string().as_bytes());
            Filling { batch, keys, exporter: flow.from, address, ip, agent: None, bytes: 0 }
        });
        let ip = filling.observer(flow);
        let Filling { batch, keys, address, bytes: all, .. } = filling;
        *all += u64::from(bytes);
        let row = source.push(batch, Text::default(), bytes, flow.header.time.unwrap_or(created));
        let base = Arc::clone(batch.base());
        let mut event = batch.event_mut(row, &base);
        Writer::new(&mut event, keys, internal, scratch).write(flow, created, *address, ip);
    }

    fn is_large(&self) -> bool {
        self.filling.as_ref().is_some_and(|filling| filling.batch.memory_bytes() >= BATCH_BYTES)
    }

    /// Offers what there is.
    fn offer(&mut self) {
        if let Some(Filling { batch, bytes, .. }) = self.filling.take() {
            self.source.offer(batch, Progress::Nothing(bytes));
        }
    }
}

impl Sink for Exporters {
    fn add(&mut self, datagram: &Datagram<'_>) {
        let Some(peer) = datagram.peer else { return };
        let exporter = SocketAddr::new(peer.ip().to_canonical(), peer.port());
        let (now, created) = (self.now(), self.intake.clock().wall().0);
        let len = datagram.bytes.len() as u32;
        self.bytes += u64::from(len);
        let before = self.decoder.counts();
        self.know(exporter);
        let Self { decoder, known, others, internal, pool, scratch, sent, round, .. } = self;
        let to = match known.get_mut(&exporter) {
            Some(known) => {
                if known.round < *round {
                    known.round = *round;
                    sent.push(exporter);
                }
                known
            }
            None => others,
        };
        let mut bytes = len;
        let decoded = decoder.packet(datagram.bytes, exporter, now, &mut |flow| {
            to.add(flow, std::mem::take(&mut bytes), created, (internal, pool, scratch));
            if to.is_large() {
                to.offer();
            }
        });
        let after = self.decoder.counts();
        self.events += after.flows - before.flows;
        self.report_missing(exporter, after.without_template - before.without_template);
        if let Err(error) = decoded {
            let why =
                if datagram.truncated { ": it is longer than `max_message_size`" } else { "" };
            self.failed(exporter, format!("{error}{why}"));
        } else if datagram.truncated {
            self.failed(exporter, "a packet is longer than `max_message_size`".to_owned());
        }
    }

    fn flush(&mut self, _time: i64) -> (u64, u64) {
        for exporter in self.sent.drain(..) {
            if let Some(known) = self.known.get_mut(&exporter) {
                known.offer();
            }
        }
        self.others.offer();
        self.round += 1;
        let now = self.now();
        self.expire(now);
        self.keep.save_if_due(&mut self.decoder, now);
        self.show();
        (std::mem::take(&mut self.events), std::mem::take(&mut self.bytes))
    }

    fn rest(&mut self) -> Option<i64> {
        let now = self.now();
        self.expire(now);
        self.show();
        let due = self.keep.save_if_due(&mut self.decoder, now);
        let expiry = (self.decoder.sources() > 0).then_some(EXPIRY_INTERVAL);
        let next = due.into_iter().chain(expiry).min()?;
        i64::try_from(next.as_nanos()).ok()
    }

    fn leave(&mut self) -> Option<Kept> {
        self.say_rest();
        self.keep.save(&mut self.decoder);
        let settings = self.decoder.settings().clone();
        Some(Box::new(std::mem::replace(&mut self.decoder, Decoder::new(settings))))
    }

    fn finish(&mut self) {
        self.say_rest();
        self.keep.save(&mut self.decoder);
    }
}
