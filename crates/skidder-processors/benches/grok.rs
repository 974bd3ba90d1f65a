//! `grok` beside a hand-written expression of the `regex` crate with the same captures, as ratios.
//!
//! Both sides put their values into events, in turn on the same lines; a row is the median of many batches.

#![expect(clippy::print_stdout, reason = "the table is the result")]

use regex::bytes::{CaptureLocations, Regex};
use skidder_config::{Problems, Settings};
use skidder_event::*;
use skidder_os::{Clock, RealFs, SystemClock};
use skidder_processors::*;
use std::cell::RefCell;
use std::sync::Arc;

const ROWS: usize = 1000;

/// Batches of each side; odd, for the median.
const BATCHES: usize = 61;

/// One comparison.
struct Case {
    name: &'static str,
    grok: &'static str,
    /// With a group for each field, in the same order.
    written: &'static str,
    fields: &'static [&'static str],
    line: fn(usize) -> String,
}

const CASES: [Case; 5] = [
    Case {
        name: "access log, names of patterns",
        grok: r#"^%{IPORHOST:a} %{NOTSPACE:b} %{NOTSPACE:c} \[%{HTTPDATE:d}\] "%{WORD:e} %{NOTSPACE:f} HTTP/%{NUMBER:g}" %{INT:h} %{INT:i} "%{DATA:j}" "%{DATA:k}""#,
        written: r#"^([0-9A-Za-z.:-]+) (\S+) (\S+) \[([^\]]+)\] "([A-Z]+) (\S+) HTTP/([0-9.]+)" ([0-9]+) ([0-9]+) "([^"]*)" "([^"]*)""#,
        fields: &["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"],
        line: access,
    },
    Case {
        name: "access log, `COMBINEDAPACHELOG`",
        grok: "%{COMBINEDAPACHELOG}",
        written: r#"^([0-9A-Za-z.:-]+) (\S+) (\S+) \[([^\]]+)\] "(?:([A-Z]+) (\S+)(?: HTTP/([0-9.]+))?|([^"]*))" (?:-|([0-9]+)) (?:-|([0-9]+)) ("[^"]*") ("[^"]*")"#,
        fields: &[
            "clientip",
            "ident",
            "auth",
            "timestamp",
            "verb",
            "request",
            "httpversion",
            "rawrequest",
            "response",
            "bytes",
            "referrer",
            "agent",
        ],
        line: access,
    },
    Case {
        name: "syslog, `SYSLOGLINE` to another field",
        grok: "%{SYSLOGTIMESTAMP:a} %{SYSLOGHOST:b} %{NOTSPACE:c}: %{GREEDYDATA:d}",
        written: r"^([A-Z][a-z]{2} +[0-9]{1,2} [0-9:]{8}) (\S+) (\S+): (.*)",
        fields: &["a", "b", "c", "d"],
        line: syslog,
    },
    Case {
        name: "program, time, level, words",
        grok: r"^%{TIMESTAMP_ISO8601:a} \[%{DATA:b}\] %{LOGLEVEL:c} +%{JAVACLASS:d} - %{GREEDYDATA:e}",
        written: r"^([0-9T:.,Z-]+) \[([^\]]*)\] ([A-Z]+) +([\w.]+) - (.*)",
        fields: &["a", "b", "c", "d", "e"],
        line: program,
    },
    Case {
        name: "a match in the middle",
        grok: r"user=%{USER:a} from %{IP:b}",
        written: r"user=([\w.-]+) from ([0-9A-Fa-f.:]+)",
        fields: &["a", "b"],
        line: middle,
    },
];

/// The same captures without `grok`.
#[derive(Debug)]
struct Written {
    regex: Regex,
    message: Path,
    paths: Vec<Option<Path>>,
}

thread_local! {
    static PLACES: RefCell<Option<CaptureLocations>> = const { RefCell::new(None) };
}

impl Processor for Written {
    fn name(&self) -> &'static str {
        "written"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        PLACES.with_borrow_mut(|places| {
            let places = places.get_or_insert_with(|| self.regex.capture_locations());
            let text = event.own_message().expect("each line is a message");
            if self.regex.captures_read(places, event.text(text)).is_none() {
                return Err(Failure::new("no match"));
            }
            let put: Result<bool, ()> = event.put_new(&self.paths, text, |_, fields| {
                for group in 1..=self.paths.len() {
                    match places.get(group) {
                        Some((start, end)) => fields.put(start..end),
                        None => fields.skip(),
                    }
                }
                Ok(())
            });
            assert_eq!(put, Ok(true));
            Ok(Outcome::Done)
        })
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        Footprint {
            reads: vec![self.message.clone()],
            writes: self.paths.iter().flatten().cloned().collect(),
            ..Footprint::default()
        }
    }
}

fn access(number: usize) -> String {
    format!(
        "10.1.{}.7 - - [21/Nov/2026:20:52:57 +0000] \"GET /shop/item?n={number} HTTP/1.1\" 200 {} \
         \"https://example.org/shop\" \"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko\"",
        number % 250,
        number * 37
    )
}

fn syslog(number: usize) -> String {
    format!(
        "Nov 25 16:00:{:02} web-{} sshd[{number}]: Accepted publickey for ann from 10.0.0.1 port 51000 ssh2",
        number % 60,
        number % 9
    )
}

fn program(number: usize) -> String {
    format!(
        "2026-11-25T16:00:{:02}.123Z [worker-{}] INFO  org.example.shop.Cart - order {number} accepted and queued for payment",
        number % 60,
        number % 16
    )
}

fn middle(number: usize) -> String {
    format!(
        "some words that stand before the place, request {number}: user=ann.{number} from 10.0.{}.1 and words behind",
        number % 250
    )
}

fn batch(base: &Arc<Base>, line: fn(usize) -> String) -> Batch {
    let mut bytes = Vec::new();
    let mut rows = Vec::new();
    for number in 0..ROWS {
        let line = line(number);
        let text = Text { start: bytes.len() as u32, len: line.len() as u32 };
        rows.push(Row::new(u64::from(text.start), text.len + 1, text, 1_795_294_377_123_000_000));
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
    }
    let provenance = Provenance::new(SourceId(1), 0..bytes.len() as u64);
    let mut batch = Batch::new(bytes, true, Arc::clone(base), provenance);
    for row in rows {
        batch.push(row);
    }
    batch
}

fn grok(pattern: &str) -> Vec<Compiled> {
    let yaml = format!("processors: [{{grok: {{patterns: ['{pattern}']}}}}]");
    let settings = Settings::parse("bench.yml", &yaml).expect("the text above is YAML");
    let problems = Problems::new();
    let context = Context::new(Arc::new(RealFs), Arc::new(SystemClock::new()));
    let list = read_processors(settings.root(&problems).items("processors"), &context);
    assert!(problems.is_empty(), "{problems}");
    list
}

fn written(case: &Case) -> Vec<Compiled> {
    let path = |name: &&str| Path::parse(name).expect("a name");
    let written = Written {
        regex: Regex::new(case.written).expect("an expression"),
        message: Path::parse("message").expect("a name"),
        paths: case.fields.iter().map(|name| Some(path(name))).collect(),
    };
    vec![Compiled::shared(Arc::new(written), None)]
}

fn main() {
    let clock = SystemClock::new();
    println!("| lines | `grok` ns | `regex` ns | ratio |\n|---|---|---|---|");
    for case in &CASES {
        PLACES.set(None);
        let sides = [grok(case.grok), written(case)];
        let mut seen = [Vec::new(), Vec::new()];
        for _ in 0..BATCHES {
            for (list, seen) in sides.iter().zip(&mut seen) {
                let plan = Plan::compile(list, &Map::new(), &[]);
                let bound = plan.bind(&Map::new(), &Map::new(), Shape::Lines);
                let mut batch = batch(bound.input_base(), case.line);
                let started = clock.monotonic();
                bound.run(&mut batch);
                seen.push(clock.monotonic().since(started).as_nanos() as f64 / ROWS as f64);
            }
        }
        let [grok, regex] = seen.map(|mut times| {
            times.sort_by(f64::total_cmp);
            times[times.len() / 2]
        });
        println!("| {} | {grok:.0} | {regex:.0} | {:.2} |", case.name, grok / regex);
    }
}
