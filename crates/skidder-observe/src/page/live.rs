//! The numbers of the overview, small enough for a request each second.

use crate::files::{ledger_json, millis, time_text};
use crate::numbers::{OutputNumbers, QueueNumbers, ReadNumbers};
use crate::process::Process;
use crate::snapshot::{OutputSource, Sources};
use crate::states::OutputState;
use serde_json::{Value as Json, json};
use skidder_log::masked;
use skidder_os::Monotonic;
use skidder_pipeline::Ledger;

/// All of it, at one moment.
pub(crate) fn live(sources: &Sources) -> Json {
    let now = sources.clock.monotonic();
    let mut total = Ledger::default();
    let mut read = ReadNumbers::default();
    let mut outputs = Vec::new();
    for output in &sources.outputs {
        let ledger = output.settle.total();
        total.add(&ledger);
        read.add(&output.inputs.total());
        outputs.push(output_json(output, &ledger, now));
    }
    let process = Process::look(&*sources.fs);
    let program = &sources.program;
    json!({
        "time_ms": sources.clock.wall().0 / 1_000_000,
        "uptime_ms": millis(now.since(program.start.monotonic)),
        "name": program.name,
        "host": program.hostname,
        "version": env!("CARGO_PKG_VERSION"),
        "autodiscover": sources.explain.is_some(),
        "ledger": ledger_json(&total),
        "read": {
            "open": read.open,
            "matched": read.files_matched,
            "errors": read.errors + read.gzip_errors,
            "lost": read.files_lost,
            "stalled": read.files_stalled,
        },
        "outputs": outputs,
        "process": {
            "resident_bytes": process.resident_bytes,
            "cpu_ms": process.cpu_total().map(millis),
            "descriptors": process.descriptors,
        },
    })
}

fn output_json(output: &OutputSource, ledger: &Ledger, now: Monotonic) -> Json {
    let queue = QueueNumbers::of(&output.queue, output.disk.as_deref());
    let counts = OutputNumbers::of(&output.metrics);
    let (state, blocked) = OutputState::of(output, ledger, now);
    let inputs = output.inputs.list();
    let ids: Vec<&str> = inputs.iter().map(|input| &*input.id).collect();
    json!({
        "id": output.id,
        "kind": output.kind,
        "inputs": ids,
        "state": state.name(),
        "blocked_ms": blocked.map(millis),
        "ledger": ledger_json(ledger),
        "queue": {
            "events": queue.events,
            "events_max": queue.events_max,
            "bytes": queue.bytes,
            "bytes_max": queue.bytes_max,
            "disk": queue.disk.is_some(),
        },
        "requests": counts.batches,
        "latency_ns": counts.latency_ns,
        "active": counts.active,
        "acked": counts.acked,
        "retried": counts.failed,
        "too_many": counts.too_many,
        "duplicates": counts.duplicates,
        "errors": counts.write_errors + counts.read_errors,
        "write_bytes": counts.write_bytes,
        "rates": output.rates(now).map(|rates| json!({
            "read": rates.read,
            "read_bytes": rates.read_bytes,
            "delivered": rates.delivered,
        })),
        "last_error": output.metrics.last_failure().map(|failing| json!({
            "at": time_text(failing.last),
            "since": time_text(failing.since),
            "times": failing.times,
            "place": failing.place,
            "text": masked(&failing.error),
            "over": !output.metrics.is_failing(),
        })),
        "dead_letters": output.dead_letters.is_some(),
    })
}
