//! An input over the lines of a sample, to try what is done with its events without its far side.

use crate::{Input, InputError, InputFuture, Intake, OnBatch, Source, Stopped};
use skidder_event::{Batch, Map, Progress, Row, Text};
use std::fs::File;
use std::io::{BufRead, BufReader};

/// Lines of a batch.
const BATCH_LINES: usize = 1000;

/// An input that takes each line of a file as a message of another input.
pub(crate) struct Sample {
    kind: &'static str,
    makes_fields: bool,
    relays: bool,
    metadata: Map,
    on_batch: Option<OnBatch>,
    file: File,
}

impl Sample {
    /// In the place of `input`.
    pub(crate) fn of(input: &(impl Input + ?Sized), file: File) -> Self {
        Self {
            kind: input.kind(),
            makes_fields: input.makes_fields(),
            relays: input.relays(),
            metadata: input.metadata(),
            on_batch: input.on_batch(),
            file,
        }
    }

    /// Reads some lines; returns them, and how many bytes of the file they are.
    fn lines(
        reader: &mut impl BufRead,
        source: &mut Source,
        time: i64,
    ) -> std::io::Result<(Batch, usize)> {
        let mut bytes = Vec::new();
        let mut places = Vec::new();
        while places.len() < BATCH_LINES {
            let start = bytes.len();
            let read = reader.read_until(b'\n', &mut bytes)?;
            if read == 0 {
                break;
            }
            let line = &bytes[start..];
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            places.push((Text { start: start as u32, len: line.len() as u32 }, read as u32));
        }
        let (utf8, read) = (std::str::from_utf8(&bytes).map_or(0, str::len), bytes.len());
        let rows = places.iter().map(|(text, read)| Row::numbered(0, *read, *text, time));
        let parts = skidder_event::Parts { rows: rows.collect(), bytes, ..Default::default() };
        Ok((source.batch_of(parts, utf8), read))
    }
}

impl Input for Sample {
    fn kind(&self) -> &'static str {
        self.kind
    }

    fn makes_fields(&self) -> bool {
        self.makes_fields
    }

    fn relays(&self) -> bool {
        self.relays
    }

    fn metadata(&self) -> Map {
        self.metadata.clone()
    }

    fn run(self: Box<Self>, intake: Intake) -> InputFuture {
        Box::pin(async move {
            let mut source = intake.open("sample", Map::new());
            let mut reader = BufReader::new(self.file);
            while !intake.is_stopped() {
                let time = intake.clock().wall().0;
                let lines = Self::lines(&mut reader, &mut source, time);
                let (mut batch, read) = lines
                    .map_err(|error| InputError(format!("cannot read the sample: {error}")))?;
                if batch.is_empty() {
                    break;
                }
                if let Some(on_batch) = &self.on_batch {
                    on_batch.run(&mut batch);
                }
                if let Err(Stopped) = source.send(batch, Progress::Nothing(read as u64)).await {
                    break;
                }
            }
            Ok(())
        })
    }
}
