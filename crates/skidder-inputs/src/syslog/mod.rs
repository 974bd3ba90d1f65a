//! `syslog`: messages of RFC 3164 and RFC 5424 over TCP, UDP or a unix socket.
//!
//! Settings, grammars and fields are Filebeat's (filebeat/input/syslog): not `log.syslog.*` as of the processor and the
//! parser of the same name, but `hostname`, `process`, `syslog` and `event`. What receives is what `tcp`, `udp` and `unix`
//! have; a parser changes the events of each batch before the processors see them.

mod fields;
mod headers;
mod message;
mod rfc3164;
mod rfc5424;
#[cfg(test)]
mod tests;
mod time;

use crate::Context;
use crate::bind::no_hosts;
use crate::common::{EVERY_INPUT, WORKERS, begin, read_workers};
use crate::datagram::DatagramServer;
use crate::stream::{StreamServer, StreamSettings, serve};
use crate::tcp::{self, TCP_SERVER};
use crate::udp::{self, UDP_SERVER};
use crate::unix::{self, UNIX_SERVER, Unix};
use headers::Headers;
use jiff::tz::TimeZone;
use message::{Format, Message};
use skidder_config::{Group, Key, OneOf, Part, Section, settings};
use skidder_event::{Base, Batch, Map, Text};
use skidder_input::{Input, InputFuture, Intake, OnBatch};
use skidder_os::Clock;
use skidder_parse::syslog::timezone;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use time::Zone;

/// The name of the type.
const KIND: &str = "syslog";

/// How often the log says that messages could not be parsed, at most.
const REPORT_INTERVAL: Duration = Duration::from_mins(1);

/// Settings of `protocol.tcp`.
static SYSLOG_TCP: Group =
    Group::new("input.syslog.tcp", "Syslog over TCP.").include(&[&TCP_SERVER, &WORKERS]);

/// Settings of `protocol.unix`.
static SYSLOG_UNIX: Group = Group::new("input.syslog.unix", "Syslog over a unix socket.")
    .include(&[&UNIX_SERVER, &WORKERS]);

mod datagrams {
    use super::*;

    settings! {
        /// Settings of `protocol.udp`.
        pub static SYSLOG_UDP =
            Group::new("input.syslog.udp", "Syslog in datagrams.").include(&[&WORKERS, &UDP_SERVER]);

        pub(super) HOST: String = Key::new("host")
            .required()
            .noun("an address to listen on, as in `localhost:514`")
            .about("as for `tcp`");
    }
}

use datagrams::SYSLOG_UDP;

settings! {
    /// Settings of `syslog`.
    pub static SYSLOG = Group::new("input.syslog", "Syslog messages.")
        .include(&[&EVERY_INPUT])
        .called_elsewhere(&[
            ("path", "protocol", "it belongs to the protocol: `protocol.unix.path`"),
            ("port", "protocol", "it belongs to the protocol, as in `protocol.udp.host: \"localhost:514\"`"),
            ("socket_mode", "protocol", "it belongs to the protocol: `protocol.unix.mode`"),
        ]);

    FORMAT: OneOf<Format> = Key::one_of("format", &Format::WORDS)
        .default("rfc3164")
        .about("`auto`: each message by how it begins");
    TIMEZONE: String = Key::new("timezone")
        .default("Local")
        .about("of times without one: `UTC`, a name as `Europe/Berlin`, an offset as `+0200`");
    OVER_TCP: Part =
        Key::part("protocol.tcp", &SYSLOG_TCP).about("options of [`tcp`](#tcp-unix)");
    OVER_UDP: Part = Key::part("protocol.udp", &SYSLOG_UDP)
        .about("options of [`udp`](#udp); `host` is required");
    OVER_UNIX: Part =
        Key::part("protocol.unix", &SYSLOG_UNIX).about("options of [`unix`](#tcp-unix)");
}

/// The input.
enum Syslog {
    Stream(Box<StreamServer>),
    Datagram(DatagramServer),
}

/// Reads its settings.
pub fn read(section: &Section<'_>, context: &Context) -> Option<Box<dyn Input>> {
    begin(section, &SYSLOG);
    let format = section.get(&FORMAT).value();
    let zone = section.get(&TIMEZONE).try_map(|name| timezone(&name).map_err(|it| it.to_string()));
    let zone = zone.optional().unwrap_or_else(TimeZone::system);
    let parser = Parser::new(format, zone, Arc::clone(&context.clock)).on_batch();
    let tcp = section.optional_part(&OVER_TCP);
    let udp = section.optional_part(&OVER_UDP);
    let unix = section.optional_part(&OVER_UNIX);
    let server = match (tcp, udp, unix) {
        (Some(tcp), None, None) => read_tcp(&tcp, context),
        (None, Some(udp), None) => read_udp(&udp, context),
        (None, None, Some(unix)) => {
            read_workers(&unix);
            unix::read_either(&unix, context).map(|server| match server {
                Unix::Stream(server) => Syslog::Stream(server),
                Unix::Datagram(server) => Syslog::Datagram(server),
            })
        }
        (tcp, udp, unix) => {
            let protocols: Vec<_> = [tcp, udp, unix].into_iter().flatten().collect();
            not_one_protocol(section, protocols);
            None
        }
    };
    no_host(section);
    let mut server = server?;
    match &mut server {
        Syslog::Stream(server) => server.on_batch = Some(parser),
        Syslog::Datagram(server) => server.settings.on_batch = Some(parser),
    }
    Some(Box::new(server))
}

fn read_tcp(section: &Section<'_>, context: &Context) -> Option<Syslog> {
    read_workers(section);
    let settings = StreamSettings::read(section);
    let server = tcp::read_server(section, context, settings)?;
    Some(Syslog::Stream(Box::new(server)))
}

fn read_udp(section: &Section<'_>, context: &Context) -> Option<Syslog> {
    read_workers(section);
    let host = section.get(&datagrams::HOST);
    let is_there = host.is_set() && !host.is_wrong();
    let host = host.required();
    no_hosts(section, "host");
    if host.is_empty() && is_there {
        section.problem("host", format!("`{}` is empty", section.path_of("host")), "");
    }
    let host = Some(host).filter(|host| !host.is_empty());
    udp::read_server(section, context, host).map(Syslog::Datagram)
}

/// Reports that there is no protocol, or more than one; what is in them does not matter then.
fn not_one_protocol(section: &Section<'_>, protocols: Vec<Section<'_>>) {
    let name = section.path_of("protocol");
    if protocols.is_empty() {
        let hint = "as in `protocol.udp: {host: \"localhost:9000\"}`";
        section.missing("protocol", "has to be one of `tcp`, `udp` and `unix`", hint);
    } else {
        let message = format!("`{name}` has several; it has to be one of `tcp`, `udp` and `unix`");
        section.problem("protocol", message, "make an input of each");
    }
    protocols.into_iter().for_each(Section::skip);
}

/// Reports `host`, which is in another place.
fn no_host(section: &Section<'_>) {
    let hint = "it belongs to the protocol: `protocol.tcp.host` or `protocol.udp.host`";
    section.unknown("host", "protocol", hint);
}

impl Input for Syslog {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn address(&self) -> Option<&str> {
        Some(match self {
            Self::Stream(server) => &server.device,
            Self::Datagram(server) => &server.settings.device,
        })
    }

    fn stops_last(&self) -> bool {
        matches!(self, Self::Datagram(_))
    }

    fn metadata(&self) -> Map {
        let mut metadata = Map::new();
        // Filebeat for Linux does not notice that a datagram was cut; `log.flags` says so here.
        metadata.insert("truncated", false);
        metadata
    }

    fn on_batch(&self) -> Option<OnBatch> {
        match self {
            Self::Stream(server) => server.on_batch.clone(),
            Self::Datagram(server) => server.settings.on_batch.clone(),
        }
    }

    fn run(self: Box<Self>, intake: Intake) -> InputFuture {
        match *self {
            Self::Stream(server) => Box::pin(serve(*server, intake)),
            Self::Datagram(server) => Box::pin(server.run(intake)),
        }
    }
}

/// Parses the events of batches.
struct Parser {
    format: Format,
    zone: Zone,
    /// For the year of times without one.
    clock: Arc<dyn Clock>,
    unparsed: Unparsed,
}

/// Messages that could not be parsed.
#[derive(Default)]
struct Unparsed {
    count: AtomicU64,
    /// When the log says so the next time, in milliseconds of the monotonic clock.
    due: AtomicU64,
}

impl Unparsed {
    /// Counts some, and logs the number from time to time.
    fn add(&self, count: u64, format: Format, clock: &dyn Clock) {
        let messages = self.count.fetch_add(count, Ordering::Relaxed) + count;
        let now = u64::try_from(clock.monotonic().0.as_millis()).unwrap_or(u64::MAX);
        let next = now.saturating_add(REPORT_INTERVAL.as_millis() as u64);
        let due = self.due.load(Ordering::Relaxed);
        let is_due = now >= due
            && self.due.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if is_due {
            tracing::warn!(
                messages,
                format = format.name(),
                "messages are not in the `format` of this input, and are sent as they are"
            );
        }
    }
}

impl Parser {
    fn new(format: Format, zone: TimeZone, clock: Arc<dyn Clock>) -> Self {
        Self { format, zone: Zone::new(zone), clock, unparsed: Unparsed::default() }
    }

    /// Applied to each batch.
    fn on_batch(self) -> OnBatch {
        OnBatch::new(move |batch| self.run(batch))
    }

    /// Parses each message. One that cannot be parsed stays as it is, as in Filebeat.
    fn run(&self, batch: &mut Batch) {
        let mut work = Work {
            texts: fields::Texts::append(batch),
            headers: Headers::default(),
            message: Message::default(),
            year: self.zone.year(self.clock.wall().0),
            base: Arc::clone(batch.base()),
        };
        let unparsed = (0..batch.len()).filter(|row| !self.parse(batch, *row, &mut work)).count();
        if unparsed > 0 {
            self.unparsed.add(unparsed as u64, self.format, &*self.clock);
        }
    }

    /// Parses the message of one event; `false` if it cannot be parsed.
    fn parse(&self, batch: &mut Batch, row: usize, work: &mut Work) -> bool {
        let of_row = &batch.rows()[row];
        let (Some(line), is_bare) = (of_row.text(), !of_row.has_own()) else { return true };
        let (message, headers) = (&mut work.message, &mut work.headers);
        let find = |of: &Message, rest: &[u8]| {
            if is_bare { headers.find(batch, of, rest) } else { None }
        };
        if !message.parse(batch.text(line), self.format, &find) {
            return false;
        }
        let Some(time) = message.stamp.nanoseconds(work.year, &self.zone) else { return false };
        let mut event = batch.event_mut(row, &work.base);
        event.set_time(time);
        if let Some(known) = message.known {
            event.set_message(span(line, &message.text));
            headers.put(batch, row, known);
            return true;
        }
        fields::put(&mut event, line, message, &mut work.texts);
        if is_bare && !message.header.is_empty() {
            headers.add(row, span(line, &message.header), message);
        }
        true
    }
}

/// The state from one message of a batch to the next.
struct Work {
    texts: fields::Texts,
    headers: Headers,
    message: Message,
    /// The year of times without one.
    year: i64,
    base: Arc<Base>,
}

/// The span in the batch of a part of the line.
fn span(line: Text, part: &Range<usize>) -> Text {
    Text { start: line.start + part.start as u32, len: part.len() as u32 }
}
