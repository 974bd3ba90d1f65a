//! Log lines of benchmarks and of `make run`: one third Apache combined, one third JSON in ECS, one third Kubernetes
//! CRI around the text of a Java service.
//!
//! A line is about 240 bytes; GNU `gzip -6` shrinks the whole 5.4 times and zlib-rs at level 6, which
//! writes the `.gz` files here, 5.8 times. A test holds both. Each line carries its number as `seq=` and ten digits, which survive JSON escaping, so that a sink or a
//! reader of the output can find lost, repeated and invented lines. The same seed and first number
//! give the same bytes for ever.

mod calendar;
mod file;
mod random;
mod words;

pub use calendar::civil;
pub use file::{Generated, Plan, generate, sample_ratio};

use calendar::Calendar;
pub use random::Random;

/// What stands before the ten digits of a line's number.
pub const SEQUENCE_MARK: &[u8] = b"seq=";
/// Digits of a line's number; numbers have leading zeros.
pub const SEQUENCE_DIGITS: usize = 10;

/// What the lines look like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// A third of each: Apache combined, JSON, container records. Every line is numbered.
    #[default]
    Mixed,
    /// Apache combined only.
    Apache,
    /// JSON in ECS only.
    Json,
    /// Container records (CRI) only.
    Container,
    /// Container records (CRI) around JSON in ECS.
    ContainerJson,
    /// Container records (CRI) around small JSON objects most of whose fields are there only now and then, as those of
    /// VictoriaMetrics' log-collectors-benchmark.
    Collectors,
    /// Java log records, one in four with a stack trace of [`TRACE_LINES`] more lines. Records are numbered,
    /// the lines of a trace are not.
    Trace,
}

impl Kind {
    /// In names of files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mixed => "app",
            Self::Apache => "apache",
            Self::Json => "json",
            Self::Container => "container",
            Self::ContainerJson => "container-json",
            Self::Collectors => "collectors",
            Self::Trace => "trace",
        }
    }
}

/// Lines of a stack trace behind its record.
pub const TRACE_LINES: u64 = 12;

/// Makes records, one after the other, without allocating.
#[derive(Debug)]
pub struct Workload {
    kind: Kind,
    random: Random,
    calendar: Calendar,
    sequence: u64,
}

impl Workload {
    /// Lines numbered from `first`; `first + lines` must stay below ten digits.
    pub fn new(seed: u64, first: u64) -> Self {
        Self::of(Kind::Mixed, seed, first)
    }

    /// The same for lines of one kind.
    pub fn of(kind: Kind, seed: u64, first: u64) -> Self {
        let random = Random::new(seed ^ first.wrapping_mul(0x2545_f491_4f6c_dd1d));
        Self { kind, random, calendar: Calendar::new(), sequence: first }
    }

    /// Appends the next record with its newline to `out`; returns how many lines it has.
    pub fn line(&mut self, out: &mut Vec<u8>) -> u64 {
        self.calendar.advance_micros(u64::from(self.random.skewed(4_000)));
        let mut lines = 1;
        match self.kind {
            Kind::Apache => self.apache(out),
            Kind::Json => self.ecs_json(out),
            Kind::Container => self.container(out),
            Kind::ContainerJson => {
                self.container_head(out);
                self.ecs_json(out);
            }
            Kind::Collectors => {
                self.container_head(out);
                self.sparse_json(out);
            }
            Kind::Trace => lines += self.trace(out),
            Kind::Mixed => match self.random.below(3) {
                0 => self.apache(out),
                1 => self.ecs_json(out),
                _ => self.container(out),
            },
        }
        out.push(b'\n');
        self.sequence += 1;
        lines
    }

    fn apache(&mut self, out: &mut Vec<u8>) {
        self.address(out);
        out.extend_from_slice(b" - - [");
        out.extend_from_slice(self.calendar.clf());
        out.extend_from_slice(b"] \"");
        text(out, self.random.pick(words::METHODS));
        out.push(b' ');
        self.path(out);
        out.extend_from_slice(b"?sid=");
        self.token(out, 16);
        self.token(out, 8);
        out.push(b'&');
        self.sequence(out);
        out.extend_from_slice(b" HTTP/1.1\" ");
        text(out, self.random.pick(words::STATUSES));
        out.push(b' ');
        let size = self.random.skewed(60_000);
        decimal(out, u64::from(size));
        out.extend_from_slice(b" \"");
        text(out, self.random.pick(words::REFERRERS));
        out.extend_from_slice(b"\" \"");
        text(out, self.random.pick(words::AGENTS));
        out.push(b'"');
    }

    fn ecs_json(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"@timestamp\":\"");
        out.extend_from_slice(self.calendar.iso_seconds());
        out.push(b'.');
        digits(out, self.calendar.micros() / 1_000, 3);
        out.extend_from_slice(b"Z\",\"log.level\":\"");
        text(out, self.random.pick(words::LEVELS));
        out.extend_from_slice(b"\",\"message\":\"");
        text(out, self.random.pick(words::EVENTS));
        out.push(b' ');
        self.sequence(out);
        out.extend_from_slice(b"\",\"service.name\":\"");
        text(out, self.random.pick(words::SERVICES));
        out.extend_from_slice(b"\",\"event.duration\":");
        let duration = self.random.skewed(90_000_000);
        decimal(out, u64::from(duration));
        out.extend_from_slice(b",\"trace.id\":\"");
        self.token(out, 16);
        self.token(out, 16);
        out.extend_from_slice(b"\",\"client.ip\":\"");
        self.address(out);
        out.extend_from_slice(b"\",\"url.path\":\"");
        self.path(out);
        out.extend_from_slice(b"\"}");
    }

    /// An object of three fields and up to twelve more.
    fn sparse_json(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"generated_at\":17670000");
        digits(out, self.sequence, 11);
        out.extend_from_slice(b",\"_msg\":\"");
        text(out, self.random.pick(words::EVENTS));
        out.push(b' ');
        self.sequence(out);
        out.extend_from_slice(b"\",\"sequence_id\":");
        decimal(out, self.sequence);
        // How many of a hundred objects have a word, and how many have a number.
        let words: [(u32, &str, &[&str]); 8] = [
            (80, "level", words::LEVELS),
            (90, "component", words::SERVICES),
            (70, "method", words::METHODS),
            (15, "environment", words::SERVICES),
            (20, "region", words::SERVICES),
            (10, "error_type", words::LEVELS),
            (25, "trace_id", words::STATUSES),
            (18, "protocol", words::METHODS),
        ];
        let numbers = [
            (85, "status_code", 600),
            (75, "duration_ms", 1_000),
            (60, "user_id", 10_000),
            (65, "bytes_sent", 10_000),
        ];
        for (percent, name, choices) in words {
            if self.random.below(100) < percent {
                field(out, name);
                out.push(b'"');
                text(out, self.random.pick(choices));
                out.push(b'"');
            }
        }
        for (percent, name, bound) in numbers {
            if self.random.below(100) < percent {
                field(out, name);
                decimal(out, u64::from(self.random.below(bound)));
            }
        }
        out.push(b'}');
    }

    fn container(&mut self, out: &mut Vec<u8>) {
        self.container_head(out);
        self.java(out);
    }

    fn container_head(&mut self, out: &mut Vec<u8>) {
        let micros = self.calendar.micros();
        out.extend_from_slice(self.calendar.iso_seconds());
        out.push(b'.');
        digits(out, micros, 6);
        digits(out, self.sequence * 37 % 1_000, 3);
        out.extend_from_slice(b"Z stdout F ");
    }

    /// A record; behind it, now and then, a stack trace. Returns the lines of the trace.
    fn trace(&mut self, out: &mut Vec<u8>) -> u64 {
        out.extend_from_slice(&self.calendar.iso_seconds()[..10]);
        out.push(b' ');
        self.java(out);
        if self.random.below(4) != 0 {
            return 0;
        }
        out.extend_from_slice(b"\njava.lang.IllegalStateException: order ");
        self.token(out, 8);
        out.extend_from_slice(b" is closed");
        for frame in 1..TRACE_LINES {
            let class = words::FRAMES[(frame as usize * 5) % words::FRAMES.len()];
            out.extend_from_slice(b"\n\tat ");
            text(out, class);
            let line = self.random.skewed(900);
            decimal(out, u64::from(line));
            out.push(b')');
        }
        TRACE_LINES
    }

    /// What a Java service writes, from the time of day on.
    fn java(&mut self, out: &mut Vec<u8>) {
        let micros = self.calendar.micros();
        out.extend_from_slice(&self.calendar.iso_seconds()[11..]);
        out.push(b'.');
        digits(out, micros / 1_000, 3);
        let level: &[u8] = if self.random.below(8) == 0 { b"  WARN" } else { b"  INFO" };
        out.extend_from_slice(level);
        out.extend_from_slice(b" 1 --- [shop-order,");
        self.token(out, 16);
        out.extend_from_slice(b"] [");
        text(out, self.random.pick(words::THREADS));
        out.extend_from_slice(b"] ");
        let [logger, before, between, after] = *self.random.pick(words::JAVA);
        text(out, logger);
        out.extend_from_slice(b" : ");
        self.sequence(out);
        out.push(b' ');
        text(out, before);
        let amount = self.random.skewed(900_000);
        decimal(out, u64::from(amount));
        text(out, between);
        let other = self.random.below(20_000);
        decimal(out, u64::from(other));
        text(out, after);
    }

    /// A client's address; half a million clients, some busier.
    fn address(&mut self, out: &mut Vec<u8>) {
        let client = u64::from(self.random.skewed(1 << 19)) * 2_654_435_761;
        let nets = ["203.0.", "198.51.", "10.42.", "192.0.", "172.16.", "100.64.", "81.2.", "5.9."];
        text(out, nets[(client >> 5 & 7) as usize]);
        decimal(out, client >> 8 & 0xff);
        out.push(b'.');
        decimal(out, client >> 16 & 0xff);
    }

    fn path(&mut self, out: &mut Vec<u8>) {
        let path = self.random.pick(words::PATHS);
        text(out, path);
        if path.ends_with('/') {
            let identifier = self.random.skewed(40_000);
            decimal(out, u64::from(identifier));
        }
    }

    /// `width` hexadecimal digits, 16 at most: what cannot be compressed.
    fn token(&mut self, out: &mut Vec<u8>, width: u32) {
        let bits = self.random.bits();
        for place in (0..width).rev() {
            out.push(b"0123456789abcdef"[(bits >> (place * 4) & 0xf) as usize]);
        }
    }

    fn sequence(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(SEQUENCE_MARK);
        digits(out, self.sequence, SEQUENCE_DIGITS);
    }
}

/// The name of a further field of an object.
fn field(out: &mut Vec<u8>, name: &str) {
    out.extend_from_slice(b",\"");
    text(out, name);
    out.extend_from_slice(b"\":");
}

fn text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
}

/// `value` with leading zeros to `width` digits (20 at most); higher digits are cut.
fn digits(out: &mut Vec<u8>, value: u64, width: usize) {
    let mut buffer = [b'0'; 20];
    let mut rest = value;
    for digit in buffer[20 - width..].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    out.extend_from_slice(&buffer[20 - width..]);
}

fn decimal(out: &mut Vec<u8>, value: u64) {
    let width = value.checked_ilog10().map_or(1, |log| log as usize + 1);
    digits(out, value, width);
}

/// The number a line carries; `None` when there is none.
pub fn sequence_of(line: &[u8]) -> Option<u64> {
    let at = memchr::memmem::find(line, SEQUENCE_MARK)? + SEQUENCE_MARK.len();
    let digits = line.get(at..at + SEQUENCE_DIGITS)?;
    let mut number = 0;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        number = number * 10 + u64::from(digit - b'0');
    }
    Some(number)
}

#[cfg(test)]
mod tests;
