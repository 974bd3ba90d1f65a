//! `output.console`: events as lines on standard output.
//!
//! When its reader is gone (`skidder … | head`) the output closes its queue and ends, and with
//! it the program: there is no target left, and no error to correct. What was not printed
//! as a whole batch is read again by the next start.

use crate::codec::{Codec, CodecConfig, WITH_CODEC};
use crate::context::Context;
use crate::lines::{self, LineSink, Lines};
use crate::settings::{EVERY_OUTPUT, events};
use skidder_config::{Group, Key, Section, settings};
use skidder_pipeline::{Feed, Output, OutputFuture, TakeLimits};
use std::fmt;
use std::io::{self, Write};

/// Most bytes of messages that are written at once.
const TAKE_BYTES_MAX: usize = 8 << 20;

settings! {
    /// Settings of `output.console`.
    pub static CONSOLE = Group::new("output.console", "Events as lines on standard output.")
        .include(&[&WITH_CODEC, &EVERY_OUTPUT]);

    PRETTY: bool = Key::new("pretty").default(false).about("indented, over several lines");
    BULK_MAX_SIZE: i64 = Key::new("bulk_max_size")
        .default(ConsoleConfig::BULK_MAX_SIZE as i64)
        .noun("a number of events")
        .about("events written at once; 0 or less: the queue decides");
}

/// Settings of `output.console`. Names are those of the YAML.
#[derive(Clone, Debug, PartialEq)]
pub struct ConsoleConfig {
    /// `codec`, with `pretty` worked in.
    pub codec: CodecConfig,
    /// `bulk_max_size`: most events written at once; 0 = the queue decides.
    pub bulk_max_size: usize,
}

impl ConsoleConfig {
    /// Default of `bulk_max_size`.
    pub const BULK_MAX_SIZE: usize = 2048;

    /// Reads `output.console`. Reports mistakes to the section's problems.
    pub fn read(section: &Section<'_>) -> Self {
        section.declared_by(&CONSOLE);
        let pretty = section.get(&PRETTY).value();
        Self {
            codec: CodecConfig::read(section, pretty),
            bulk_max_size: events(section.get(&BULK_MAX_SIZE)).value(),
        }
    }
}

impl Default for ConsoleConfig {
    fn default() -> Self {
        Self { codec: CodecConfig::default(), bulk_max_size: Self::BULK_MAX_SIZE }
    }
}

/// The output, ready to run.
pub struct Console {
    config: ConsoleConfig,
    context: Context,
    target: Box<dyn Write + Send>,
}

impl fmt::Debug for Console {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Console").field("config", &self.config).finish_non_exhaustive()
    }
}

impl Console {
    /// Writes to standard output.
    pub fn new(config: ConsoleConfig, context: Context) -> Self {
        Self::to(Box::new(io::stdout()), config, context)
    }

    /// Writes to `target`.
    pub fn to(target: Box<dyn Write + Send>, config: ConsoleConfig, context: Context) -> Self {
        Self { config, context, target }
    }
}

impl Output for Console {
    fn kind(&self) -> &'static str {
        "console"
    }

    fn run(self: Box<Self>, feed: Feed) -> OutputFuture {
        let codec = Codec::new(&self.config.codec, &self.context, &self.context.beat);
        let limits = TakeLimits { events: self.config.bulk_max_size, bytes: TAKE_BYTES_MAX };
        Box::pin(lines::run(ConsoleSink(self.target), codec, limits, feed))
    }
}

struct ConsoleSink(Box<dyn Write + Send>);

impl LineSink for ConsoleSink {
    const KIND: &'static str = "console";

    fn place(&self) -> String {
        "the standard output".to_owned()
    }

    fn write(&mut self, lines: &mut Lines) -> io::Result<()> {
        while !lines.rest().is_empty() {
            match self.0.write(lines.rest()) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => lines.advance(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.0.flush()
    }

    fn is_final(&self, error: &io::Error) -> bool {
        error.kind() == io::ErrorKind::BrokenPipe
    }

    fn finish(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
