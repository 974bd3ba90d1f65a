//! `stdin`: lines of the standard input.
//!
//! Events are Filebeat's (filebeat/input/stdin, filebeat/input/log). Nothing can be read twice: what was read becomes events
//! or, in a reload, goes to the next input; a full queue stops the reading, so that the pipe fills. How the settings are
//! read is with those of the `log` input, which they are a part of.

mod descriptor;

#[cfg(test)]
mod tests;

use crate::bind::take_over;
use crate::text::{Left, Origin, Text};
use descriptor::{Chunk, Descriptor, Reading, Then};
use skidder_decode::encoding::BomError;
use skidder_event::{Map, Progress};
use skidder_input::{Input, InputError, InputFuture, Intake, Sending, Source, Stopped};
use skidder_net::{Claim, SocketKey, Sockets};
use skidder_parse::chain::Ending;
use skidder_read::CHUNK_BYTES;
use std::fs::File;
use std::io;
use std::sync::Arc;

pub use crate::text::TextSettings;

/// The name of the type.
pub const KIND: &str = "stdin";

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

    fn over_sample(self: Box<Self>, sample: File) -> Box<dyn Input> {
        Box::new(Self { descriptor: Arc::new(sample), ..*self })
    }

    fn run(self: Box<Self>, intake: Intake) -> InputFuture {
        Box::pin(async move {
            let Self { settings, claim, descriptor } = *self;
            let HandedOver { left, sending } =
                take_over::<HandedOver>(&claim, &intake).await.unwrap_or_default();
            let most = settings.buffer_size.max(CHUNK_BYTES);
            let failed = |error: io::Error| InputError(format!("{CANNOT_READ}: {error}"));
            let reading = Reading::new(descriptor, most).map_err(failed)?;
            let mut fields = Map::new();
            fields.insert_path("log.file.path", "");
            let source = intake.open(KIND, fields);
            let text = Text::new(settings, Origin::Stdin, left);
            Run { intake, source, reading, text, sending }.run(&claim).await
        })
    }
}

/// The beginning of an error.
const CANNOT_READ: &str = "cannot read the standard input";

/// The state that the next input continues with.
#[derive(Debug, Default)]
struct HandedOver {
    left: Left,
    /// Events that had no room in a queue yet: what follows goes behind them.
    sending: Option<Sending>,
}

/// The input while it runs.
struct Run {
    intake: Intake,
    source: Source,
    reading: Reading,
    text: Text,
    /// Events without room in a queue, of the input before or because this one is to end.
    sending: Option<Sending>,
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
            End::Stopped => {}
            End::Failed(error) => self.source.failed(error),
        }
        let mut is_refused = matches!(end, End::Stopped);
        if let Some(sending) = self.sending.take() {
            is_refused |= sending.await.is_err();
        }
        let delivered = match self.deliver(Ending::Last).await {
            Ok(()) => Ok(()),
            // Each batch was counted as dropped.
            Err(End::Stopped) => {
                is_refused = true;
                Ok(())
            }
            Err(End::Failed(error)) => Err(InputError(error)),
            Err(End::Input | End::Asked) => unreachable!("deliver() does not read"),
        };
        if is_refused {
            tracing::warn!(
                "no output takes anything any more: what was read of the standard input counts as dropped, and the rest is not read"
            );
        }
        match end {
            End::Failed(error) => Err(InputError(error)),
            _ => delivered,
        }
    }

    /// Leaves what no output has yet to the next input; returns whether there is one.
    fn hand_over(&mut self, claim: &Claim) -> bool {
        let left = HandedOver { left: self.text.take_left(), sending: self.sending.take() };
        let Err(HandedOver { left, sending }) = claim.leave(left) else { return true };
        self.text.put_left(left);
        self.sending = sending;
        false
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
        if let Some(sending) = self.sending.take()
            && let Err(end) = self.sent(sending).await
        {
            return end;
        }
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

    /// Waits until events are in the queues; when the input is to end it keeps them.
    async fn sent(&mut self, mut sending: Sending) -> Result<(), End> {
        let is_sent = tokio::select! {
            biased;
            sent = &mut sending => Some(sent),
            () = self.intake.stopped() => None,
        };
        match is_sent {
            Some(sent) => sent.map_err(|Stopped| End::Stopped),
            None => {
                self.sending = Some(sending);
                Err(End::Asked)
            }
        }
    }

    /// Sends the events that are complete. At the end all are sent, even if some were not taken.
    async fn deliver(&mut self, ending: Ending) -> Result<(), End> {
        let mut result = Ok(());
        let now = self.intake.clock().wall();
        loop {
            match self.text.next(&mut self.source, ending, now) {
                Ok(None) => return result,
                Ok(Some((batch, bytes))) => {
                    let sending = self.source.send(batch, Progress::Nothing(bytes));
                    if ending != Ending::Last {
                        self.sent(sending).await?;
                    } else if let Err(Stopped) = sending.await {
                        result = Err(End::Stopped);
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
