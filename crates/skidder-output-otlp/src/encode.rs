//! Events to an `ExportLogsServiceRequest`, each written once.
//!
//! <https://github.com/open-telemetry/opentelemetry-proto>: `collector/logs/v1`, `logs/v1`, `resource/v1`, `common/v1`.
//! Events that follow one another and come from the same resource share their `ResourceLogs`.

use super::body::Packer;
use super::config::Config;
use super::fields::Naming;
use super::record::RecordWriter;
use super::wire::{Open, open, write_bytes};
use bytes::Bytes;
use skidder_outputs::Context;
use skidder_pipeline::Delivery;
use std::collections::VecDeque;
use std::sync::Arc;

/// Field of `ExportLogsServiceRequest`.
const RESOURCE_LOGS: u8 = 1;
/// Fields of `ResourceLogs`.
const RESOURCE: u8 = 1;
const SCOPE_LOGS: u8 = 2;
/// Fields of `ScopeLogs`.
const SCOPE: u8 = 1;
const LOG_RECORDS: u8 = 2;
/// Fields of `InstrumentationScope`.
const NAME: u8 = 1;
const VERSION: u8 = 2;
/// The name of the scope.
const US: &[u8] = b"skidder";
/// Bytes that are written before other tasks get a chance to run.
const PIECE_BYTES: usize = 64 << 10;

/// Most of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Events; 0 = as many as there are.
    pub(crate) events: usize,
    /// Bytes before they are compressed; a single larger event goes alone.
    pub(crate) bytes: usize,
}

/// The size of a request.
#[derive(Debug, Default)]
pub(crate) struct Content {
    /// The rows that are in it.
    pub(crate) deliveries: Vec<Delivery>,
    pub(crate) events: usize,
}

/// Writes requests. One for each worker.
#[derive(Debug)]
pub(crate) struct RequestWriter {
    records: RecordWriter,
    /// The scope of all records.
    scope: Vec<u8>,
    /// The resource of the group that is open.
    resource: Vec<u8>,
    group: Option<(Open, Open)>,
}

impl RequestWriter {
    pub(crate) fn new(naming: Arc<Naming>, context: &Context) -> Self {
        let mut scope = Vec::new();
        write_bytes(&mut scope, NAME, US);
        write_bytes(&mut scope, VERSION, env!("CARGO_PKG_VERSION").as_bytes());
        let records = RecordWriter::new(naming, context.precision);
        Self { records, scope, resource: Vec::new(), group: None }
    }

    /// Replaces the content of `out` by a request of the first events of `waiting`, which it takes. `observed`
    /// is in nanoseconds since 1970.
    pub(crate) async fn write(
        &mut self,
        out: &mut Vec<u8>,
        waiting: &mut VecDeque<Delivery>,
        limits: Limits,
        observed: u64,
    ) -> Content {
        out.clear();
        let mut content = Content::default();
        let mut piece_from = 0;
        'full: while let Some(front) = waiting.front_mut() {
            let base = self.records.base(&front.batch);
            let mut taken = front.clone();
            taken.rows.end = taken.rows.start;
            // The group is of this base until an event has a different one.
            let mut is_open = false;
            while front.rows.start < front.rows.end {
                let is_full = limits.events > 0 && content.events == limits.events;
                let before = out.len();
                if !is_full {
                    let event = front.batch.event(front.rows.start as usize);
                    let own = self.records.look(&base, event);
                    let resource = own.unwrap_or(base.resource());
                    if own.is_some() || !is_open {
                        let Self { scope, resource: current, group, .. } = self;
                        regroup(out, group, current, resource, scope);
                    }
                    is_open = own.is_none();
                    self.records.write(out, LOG_RECORDS, &base, event, observed);
                }
                if is_full || (out.len() > limits.bytes && content.events > 0) {
                    // It begins the next request.
                    out.truncate(before);
                    self.group = self.group.filter(|(outer, _)| outer.is_before(before));
                    push(&mut content, taken);
                    break 'full;
                }
                content.events += 1;
                front.rows.start += 1;
                taken.rows.end += 1;
                if out.len() - piece_from >= PIECE_BYTES {
                    piece_from = out.len();
                    tokio::task::yield_now().await;
                }
            }
            push(&mut content, taken);
            waiting.pop_front();
        }
        close(out, &mut self.group);
        content
    }
}

fn push(content: &mut Content, taken: Delivery) {
    if !taken.is_empty() {
        content.deliveries.push(taken);
    }
}

/// Opens the group of a resource, unless it is open.
fn regroup(
    out: &mut Vec<u8>,
    group: &mut Option<(Open, Open)>,
    current: &mut Vec<u8>,
    resource: &[u8],
    scope: &[u8],
) {
    if group.is_some() && current == resource {
        return;
    }
    close(out, group);
    current.clear();
    current.extend_from_slice(resource);
    let outer = open(out, RESOURCE_LOGS);
    write_bytes(out, RESOURCE, resource);
    let inner = open(out, SCOPE_LOGS);
    write_bytes(out, SCOPE, scope);
    *group = Some((outer, inner));
}

fn close(out: &mut [u8], group: &mut Option<(Open, Open)>) {
    if let Some((outer, inner)) = group.take() {
        inner.close(out);
        outer.close(out);
    }
}

/// The encoder by itself, for the benchmark.
#[doc(hidden)]
pub struct ExportBench(RequestWriter, Packer, Limits, Vec<u8>);

impl ExportBench {
    /// An encoder with these settings.
    pub fn new(config: &Config, context: &Context) -> Self {
        let writer = RequestWriter::new(Arc::clone(&config.naming), context);
        let limits = Limits { events: 0, bytes: config.bulk_max_bytes };
        Self(writer, Packer::new(config.compression, true), limits, Vec::new())
    }

    /// Encodes one delivery as a request; gives its bytes before and after compression.
    pub async fn encode(&mut self, delivery: &Delivery) -> (usize, usize) {
        let mut waiting = VecDeque::from([delivery.clone()]);
        let Self(writer, packer, limits, plain) = self;
        writer.write(plain, &mut waiting, *limits, 1).await;
        let bytes = plain.len();
        (bytes, packer.pack(plain).await.iter().map(Bytes::len).sum())
    }
}

impl std::fmt::Debug for ExportBench {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("ExportBench")
    }
}
