//! A run in miniature: sources whose counters have known values, and golden files.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]
#![allow(dead_code, reason = "not every test needs all of it")]

use skidder_event::{Base, Batch, DropReason, Map, Parts, Provenance, Row, SourceId, Text};
use skidder_observe::{
    Counts, InputList, InputSource, InputState, LagNumbers, OutputSource, OutputState, Process,
    Program, Snapshot, Sources, Start, System,
};
use skidder_os::Timestamp;
use skidder_pipeline::{
    Delivery, OutputMetrics, Queue, QueueLimits, RegistrarMetrics, Settle, TakeLimits,
};
use skidder_read::FileError;
use skidder_read::ReadMetrics;
use skidder_testkit::{SimClock, SimFs};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of every line here.
pub(crate) const LINE_BYTES: u64 = 10;

/// A run with simulated clock and files.
pub(crate) struct Run {
    pub(crate) clock: SimClock,
    pub(crate) sources: Arc<Sources>,
    /// Held by a worker of the output, so that its room in the queue stays taken.
    held: Option<Delivery>,
}

impl Run {
    /// A run that has done nothing yet.
    pub(crate) fn idle() -> Self {
        let clock = SimClock::new();
        let fs = SimFs::new(&clock);
        fs.create_dir_as_other("/proc/self");
        // Ticks of 10 ms: 1.5 s in user mode, 0.5 s in the kernel.
        let stat = "7 (skidder) S 1 7 7 0 -1 0 1 0 0 0 150 50 0 0 20 0 3 0 500 104857600 2560 1\n";
        fs.write_as_other("/proc/self/stat", stat.as_bytes());
        let settle = Settle::new();
        let program = Program {
            beat: "filebeat".to_owned(),
            name: "forest \"one\"".to_owned(),
            version: "9.5.0".to_owned(),
            hostname: "forest".to_owned(),
            uuid: "7b1d0e9c-3c1e-4a53-9f0a-0d6f3f6f7a11".to_owned(),
            ephemeral_id: "0e5f8a51-5d1b-4e7c-8b8e-6a6c6f3d2b22".to_owned(),
            build_commit: None,
            build_time: None,
            output: "elasticsearch".to_owned(),
            start: Start::now(&clock),
        };
        let input = |number, id: &str, kind: &str| InputSource {
            id: id.to_owned(),
            title: id.to_owned(),
            kind: kind.to_owned(),
            number,
            slot: number,
            counts: Counts::Files(Arc::new(ReadMetrics::default())),
            plan: None,
            survey: None,
        };
        let output = OutputSource {
            id: None,
            kind: "elasticsearch".to_owned(),
            inputs: InputList::new(vec![
                input(0, "nginx", "filestream"),
                input(1, "pipe", "stdin"),
            ]),
            queue: Queue::new(QueueLimits::default(), Arc::clone(&settle)),
            disk: None,
            settle,
            metrics: Arc::new(OutputMetrics::new(Arc::new(clock.clone()))),
            ended: Arc::default(),
            looks: None,
            registrar: Some(Arc::new(RegistrarMetrics::default())),
            dead_letters: None,
        };
        let sources = Sources {
            program: Arc::new(program),
            outputs: vec![output],
            reloads: Arc::default(),
            log: None,
            lag: Arc::default(),
            explain: None,
            clock: Arc::new(clock.clone()),
            fs: Arc::new(fs),
        };
        Self { clock, sources: Arc::new(sources), held: None }
    }

    /// A run of 90 s with lines of every fate: 20 read = 9 delivered + 8 dropped + 2 dead-lettered
    /// + 1 in flight.
    pub(crate) fn busy() -> Self {
        let mut run = Self::idle();
        let mut batch = batch(0, 13);
        batch.count_dropped(DropReason::Empty, 2);
        batch.count_dropped(DropReason::LineFilter, 1);
        batch.count_dropped(DropReason::Processor, 4);
        run.sources.outputs[0].queue.push(batch).unwrap();
        let delivery = run.take();
        delivery.ticket.delivered(9);
        delivery.ticket.dead_lettered(2);
        delivery.ticket.dropped(DropReason::Rejected, 1);
        run.held = Some(delivery);

        let output = &run.sources.outputs[0].metrics;
        output.total.add(16);
        output.acked.add(9);
        output.failed.add(3);
        output.dropped.add(1);
        output.dead_letter.add(2);
        output.too_many.add(3);
        output.active.add(1);
        output.batches.add(4);
        output.latency_ns.add(250_000_000);
        output.write_bytes.add(4096);
        output.read_bytes.add(512);
        let inputs = run.sources.outputs[0].inputs.list();
        let read = files(&inputs[0]);
        read.opened.add(3);
        read.closed.add(1);
        read.open.set(2);
        read.gzip_opened.add(1);
        read.gzip_errors.add(1);
        read.errors.add(1);
        read.lines.add(18);
        read.bytes.add(180);
        read.files_matched.set(5);
        read.files_held.set(1);
        read.resume_skipped_bytes.add(70_000);
        files(&inputs[1]).lines.add(2);
        files(&inputs[1]).bytes.add(20);
        run.sources.outputs[0].registrar.as_ref().unwrap().succeeded.add(6);
        run.clock.advance(Duration::from_secs(90));
        run
    }

    /// Takes a batch from the queue.
    pub(crate) fn take(&self) -> Delivery {
        let mut deliveries = Vec::new();
        let limits = TakeLimits { events: 0, bytes: usize::MAX };
        assert!(self.sources.outputs[0].queue.try_take(limits, &mut deliveries));
        deliveries.pop().unwrap()
    }

    /// The same, of files that are behind: the second input is blocked on its output.
    pub(crate) fn behind(&self) -> Snapshot {
        let mut snapshot = self.snapshot();
        let path: Arc<Path> = Arc::from(Path::new("/var/log/a.gz"));
        let error =
            FileError { at: Timestamp(1_767_225_601_500_000_000), path, text: "torn".to_owned() };
        let of = |states: [(&'static str, u64); 2], bytes| LagNumbers {
            files: states.iter().map(|(_, count)| count).sum(),
            states: states.into_iter().collect(),
            behind_files: 1,
            behind_bytes: bytes,
            unknown: 1,
            behind_for: Duration::from_millis(61_250),
            rate: 100.0,
            deleted_in: Some(Duration::from_hours(2)),
            empty: 1,
            unreadable: 2,
            ingested: [1, 2, 3],
            age: Duration::from_millis(250),
            outputs: Vec::new(),
            stuck: None,
        };
        let lags =
            [of([("idle", 2), ("ignored", 3)], 1000), of([("reading", 1), ("held", 1)], 500)];
        let mut total = LagNumbers { age: lags[0].age, ..LagNumbers::default() };
        for (input, lag) in snapshot.inputs.iter_mut().zip(lags) {
            let sum = |old: u64, more: u64| old + more;
            total.files = sum(total.files, lag.files);
            total.behind_bytes = sum(total.behind_bytes, lag.behind_bytes);
            total.rate += lag.rate;
            total.deleted_in = lag.deleted_in;
            input.lag = Some(lag);
        }
        snapshot.inputs[0].state = Some(InputState::Idle);
        snapshot.inputs[0].error = Some(skidder_observe::InputError::OfFile(error));
        snapshot.inputs[1].state = Some(InputState::Blocked);
        let since = Duration::from_millis(12_500);
        snapshot.inputs[1].blocked = Some(("elasticsearch".to_owned(), since));
        snapshot.state = Some((OutputState::Blocked, Some(since)));
        snapshot.lag = Some(total);
        snapshot
    }

    /// A snapshot whose machine does not change from run to run.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let mut snapshot = self.sources.snapshot();
        // The bytes in the queue depend on how a batch is laid out in memory.
        assert!(snapshot.queue.bytes > 0 || snapshot.queue.events == 0);
        snapshot.queue.bytes = snapshot.queue.events * 64;
        snapshot.process = Process {
            resident_bytes: Some(10 << 20),
            descriptors: Some(12),
            descriptors_soft: Some(1024),
            descriptors_hard: None,
            ..snapshot.process
        };
        snapshot.system = System { cores: 4, load: [2.0, 1.0, 0.5] };
        snapshot
    }
}

/// A batch of `rows` events, each of one line.
pub(crate) fn batch(source: u64, rows: u32) -> Batch {
    let text = "a message\n".repeat(rows as usize);
    let lines = (0..rows).map(|row| {
        let start = row * LINE_BYTES as u32;
        Row::new(u64::from(start), LINE_BYTES as u32, Text { start, len: 9 }, 0)
    });
    let parts = Parts { bytes: text.into_bytes(), rows: lines.collect(), ..Parts::default() };
    let provenance = Provenance::new(SourceId(source), 0..u64::from(rows) * LINE_BYTES);
    let base = Arc::new(Base::new(&Map::new(), &Map::new()));
    Batch::with_lines(parts, 0, base, provenance)
}

/// Compares `text` with a golden file; `UPDATE_GOLDEN=1` writes it instead.
pub(crate) fn assert_golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/v1/run").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text, expected, "{} differs; UPDATE_GOLDEN=1 accepts it", path.display());
}

/// The counts of an input that reads files.
pub(crate) fn files(input: &InputSource) -> &ReadMetrics {
    match &input.counts {
        Counts::Files(metrics) => metrics,
        Counts::Task { .. } => panic!("it reads files"),
    }
}
