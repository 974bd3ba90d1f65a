//! `stdin`: lines of the standard input.
//!
//! Events are Filebeat's (filebeat/input/stdin, filebeat/input/log). Nothing can be read twice: what was read becomes events
//! or, in a reload, goes to the next input; a full queue stops the reading, so that the pipe fills. How the settings are
//! read is with those of the `log` input, which they are a part of.

mod descriptor;
mod text;

#[cfg(test)]
mod tests;

use descriptor::{Chunk, Descriptor, Reading, Then};
use regex::bytes::Regex;
use skidder_decode::encoding::{BomError, Encoding};
use skidder_decode::lines::LineTerminator;
use skidder_event::{Map, Progress};
use skidder_input::{Input, InputError, InputFuture, Intake, Source, Stopped};
use skidder_net::{Claim, SocketKey, Sockets};
use skidder_parse::chain::{Chain, Ending};
use skidder_read::CHUNK_BYTES;
use std::io;
use std::sync::Arc;
use text::{Left, Text};

/// What the type is called.
pub const KIND: &str = "stdin";

/// How bytes become events.
#[derive(Clone, Debug)]
pub struct TextSettings {
    /// `encoding`; UTF-8 counts as plain.
    pub encoding: Encoding,
    /// `line_terminator`, which exists in the encoding.
    pub line_terminator: LineTerminator,
    /// `json` and `multiline`.
    pub parsers: Chain,
    /// `max_bytes`: longer messages are cut.
    pub message_max_bytes: usize,
    /// `include_lines`: if there are any, a message must match one.
    pub include_lines: Vec<Regex>,
    /// `exclude_lines`: no message may match one.
    pub exclude_lines: Vec<Regex>,
    /// `harvester_buffer_size`: the least that is read at once, in bytes.
    pub buffer_size: usize,
}

/// Reads the standard input.
pub struct Stdin {
    settings: TextSettings,
    claim: Claim,
    descriptor: Descriptor,
}

/// Why the reading ended.
enum End {
    /// There is no more.
    Input,
    /// The input is to end.
    Asked,
    /// No output takes anything any more.
    Stopped,
    /// It cannot go on.
    Failed(String),
}

impl Stdin {
    /// An input with these settings. Both it and its predecessor in a reload have the same `sockets`.
    pub fn new(settings: TextSettings, sockets: &Sockets) -> Self {
        Self::of(settings, sockets, Arc::new(io::stdin()))
    }

    fn of(settings: TextSettings, sockets: &Sockets, descriptor: Descriptor) -> Self {
        Self { settings, claim: sockets.claim(SocketKey::Stdin), descriptor }
    }
}

impl Input for Stdin {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn run(self: Box<Self>, intake: Intake) -> InputFuture {
        Box::pin(async move {
            let Self { settings, claim, descriptor } = *self;
            let left = claim.take::<Left>().unwrap_or_default();
            let most = settings.buffer_size.max(CHUNK_BYTES);
            let failed = |error: io::Error| InputError(format!("{CANNOT_READ}: {error}"));
            let reading = Reading::new(descriptor, most).map_err(failed)?;
            let mut fields = Map::new();
            fields.insert_path("log.file.path", "");
            let source = intake.open(KIND, fields);
            Run { intake, source, reading, text: Text::new(settings, left) }.run(&claim).await
        })
    }
}

/// The beginning of an error.
const CANNOT_READ: &str = "cannot read the standard input";

/// The input while it runs.
struct Run {
    intake: Intake,
    source: Source,
    reading: Reading,
    text: Text,
}

impl Run {
    async fn run(mut self, claim: &Claim) -> Result<(), InputError> {
        let end = self.read().await;
        match &end {
            End::Input if self.intake.is_once() => tracing::debug!("the standard input has ended"),
            End::Input => {
                tracing::info!(
                    "the standard input has ended, and nothing more comes; with `--once`, skidder ends then"
                );
            }
            End::Asked => {
                let chunk = self.reading.call_off().await;
                self.add(chunk.bytes);
                if self.hand_over(claim) {
                    return Ok(());
                }
                self.drain(chunk.then).await;
            }
            End::Stopped => {
                tracing::warn!(
                    "no output takes anything any more: what was read of the standard input counts as dropped, and the rest is not read"
                );
            }
            End::Failed(error) => self.source.failed(error),
        }
        let delivered = match self.deliver(Ending::Last).await {
            // Each batch was counted as dropped.
            Ok(()) | Err(End::Stopped) => Ok(()),
            Err(End::Failed(error)) => Err(InputError(error)),
            Err(End::Input | End::Asked) => unreachable!("deliver() does not read"),
        };
        match end {
            End::Failed(error) => Err(InputError(error)),
            _ => delivered,
        }
    }

    /// Leaves what is no event yet to the next input; returns whether there is one.
    fn hand_over(&mut self, claim: &Claim) -> bool {
        let has_successor = claim.has_successor();
        if has_successor {
            claim.leave(self.text.take_left());
        }
        has_successor
    }

    /// Reads what the system has received, unless it is known that nothing follows.
    async fn drain(&mut self, mut then: Then) {
        if matches!(then, Then::CalledOff) {
            let chunk = self.reading.drain().await;
            self.add(chunk.bytes);
            then = chunk.then;
        }
        match then {
            Then::End => {}
            Then::Failed(error) => {
                self.source.failed(&error.to_string());
                tracing::warn!(%error, "{CANNOT_READ} to its end");
            }
            _ => tracing::info!("stops before the end of the standard input; the rest is not read"),
        }
    }

    /// Reads and sends until there is no more, or the input is to end.
    async fn read(&mut self) -> End {
        // What a predecessor has left may have whole lines with the settings of today.
        let mut ending = self.waiting();
        loop {
            if let Err(end) = self.deliver(ending).await {
                return end;
            }
            let now = self.intake.clock().monotonic();
            let flush = self.text.flush_at().map(|at| tokio::time::sleep(at.since(now)));
            let chunk = tokio::select! {
                biased;
                () = self.intake.stopped() => return End::Asked,
                chunk = self.reading.next() => chunk,
                () = async { match flush { Some(sleep) => sleep.await, None => std::future::pending().await } } => {
                    ending = self.waiting();
                    continue;
                }
            };
            let Chunk { bytes, then } = chunk;
            self.add(bytes);
            ending = match then {
                Then::More => Ending::More,
                Then::Idle | Then::CalledOff => self.waiting(),
                Then::End => return End::Input,
                Then::Failed(error) => return End::Failed(format!("{CANNOT_READ}: {error}")),
            };
        }
    }

    /// Nothing more is there for now.
    fn waiting(&self) -> Ending {
        Ending::Waiting(self.intake.clock().monotonic().0)
    }

    fn add(&mut self, bytes: Vec<u8>) {
        self.intake.metrics().bytes.add(bytes.len() as u64);
        self.text.add(bytes);
    }

    /// Sends the events that are complete. At the end all are sent, even if some were not taken.
    async fn deliver(&mut self, ending: Ending) -> Result<(), End> {
        let mut result = Ok(());
        let now = self.intake.clock().wall();
        loop {
            match self.text.next(&mut self.source, ending, now) {
                Ok(None) => return result,
                Ok(Some((batch, bytes))) => {
                    if let Err(Stopped) = self.source.send(batch, Progress::Nothing(bytes)).await {
                        result = Err(End::Stopped);
                        if ending != Ending::Last {
                            return result;
                        }
                    }
                }
                Err(error) => {
                    let (batch, bytes) = self.text.give_up(&mut self.source);
                    // The input ends either way.
                    let _sent = self.source.send(batch, Progress::Nothing(bytes)).await;
                    return Err(End::Failed(bom_error(error)));
                }
            }
        }
    }
}

fn bom_error(error: BomError) -> String {
    let hint = "the encoding needs a byte order mark; name the byte order, as in `utf-16le`";
    format!("{CANNOT_READ}: {error}: {hint}")
}
