//! How an input gives its files to another one, on a simulated disk and clock.

use super::*;
use crate::SavedCursors;
use skidder_event::Unprocessed;
use skidder_os::{Clock, Fs};
use skidder_parse::chain::{Chain, Multiline, Parser, Rule};
use skidder_pipeline::{Registrar, Ticket};
use skidder_read::glob::Pattern;
use skidder_read::scan::ScanSettings;
use skidder_read::{
    BufferPool, DecoderPool, FilestreamSettings, InputContext, Next, ReadMetrics, Readers,
    ReadersLimits, Scratch, SourceIds, Turn, TurnEnd,
};
use skidder_registry::{Options, Registry};
use skidder_testkit::{Fault, Operation, SimClock, SimFs};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Two lines make an event.
fn pairs() -> Chain {
    let multiline = Multiline {
        rule: Rule::Count(2),
        max_lines: Multiline::MAX_LINES,
        max_bytes: 10 << 20,
        timeout: Some(Multiline::TIMEOUT),
        skip_newline: false,
    };
    Chain::new(vec![Parser::Multiline(multiline)], 20 << 20)
}

struct World {
    fs: SimFs,
    clock: SimClock,
    readers: Arc<Readers>,
    ids: Arc<SourceIds>,
    settle: Arc<Settle>,
    registry: Arc<Registry>,
    registrar: Registrar,
    commits: Commits,
    /// What the inputs read.
    pattern: &'static str,
}

impl World {
    fn new() -> Self {
        let clock = SimClock::new();
        let fs = SimFs::new(&clock);
        fs.create_dir_as_other("/logs");
        let shared: Arc<dyn Fs> = Arc::new(fs.clone());
        let shared_clock: Arc<dyn Clock> = Arc::new(clock.clone());
        let opened = Registry::open(shared, shared_clock, Path::new("/data/r"), Options::default());
        let registry = Arc::new(opened.expect("an empty disk").0);
        let settle = Settle::new();
        let registrar = Registrar::new(Arc::clone(&settle), Arc::clone(&registry));
        let readers = Arc::new(Readers::new(ReadersLimits { open_files: 10, decoders: 1 }));
        let (ids, commits) = (Arc::default(), Commits::default());
        let pattern = "/logs/*";
        Self { fs, clock, readers, ids, settle, registry, registrar, commits, pattern }
    }

    /// An input.
    fn input(&self) -> FileInput {
        self.input_of(Chain::default())
    }

    /// The same with these parsers.
    fn input_of(&self, parsers: Chain) -> FileInput {
        let pattern = Pattern::parse(self.pattern, Path::new("/"), true).expect("a good pattern");
        let scan = ScanSettings { patterns: vec![pattern], ..ScanSettings::default() };
        let cursors = SavedCursors::new(Arc::clone(&self.settle), Arc::clone(&self.registry));
        let context = InputContext {
            settings: FilestreamSettings { parsers, ..FilestreamSettings::new("test", scan) },
            bind: Unprocessed::bind(),
            cursors: Arc::new(cursors),
            fs: Arc::new(self.fs.clone()),
            metrics: Arc::new(ReadMetrics::default()),
            buffers: Arc::new(BufferPool::default()),
            decoders: DecoderPool::new(1),
            rows_max: 100,
        };
        FileInput::new(Arc::new(context), Arc::clone(&self.readers), Arc::clone(&self.ids))
    }

    fn now(&self) -> Now {
        Now { wall: self.clock.wall(), monotonic: self.clock.monotonic() }
    }

    fn scan(&self, scanner: &mut Scanner) {
        scanner.step(&|| self.now());
    }

    fn turn(&self) -> Option<Turn> {
        match self.readers.next(self.clock.monotonic()) {
            Next::Turn(turn) => Some(turn),
            Next::Wait(_) | Next::Stopped => None,
        }
    }

    /// Reads all there is in one turn; returns the lines, and what waits for their verdicts.
    fn read(&self) -> (usize, Option<Arc<Ticket>>) {
        let Some(mut turn) = self.turn() else { return (0, None) };
        let (mut batch, end) = turn.run(&mut Scratch::default(), self.clock.wall());
        let ticket = batch.as_mut().map(|batch| self.settle.admit(batch, None));
        self.readers.finish(turn, &end, true, self.clock.monotonic());
        (batch.map_or(0, |batch| batch.len()), ticket)
    }

    fn commit(&mut self) {
        let requested = self.commits.requested();
        assert!(self.registrar.flush_last(&self.clock));
        self.commits.done(requested);
    }

    /// How many files the registry has.
    fn entries(&self) -> usize {
        let mut entries = 0;
        self.registry.for_each(|_, _| entries += 1).expect("a good disk");
        entries
    }

    fn step(&self, changing: &mut Changing, scanner: &mut Scanner) -> bool {
        changing.step(scanner, &self.settle, &self.commits, self.now())
    }

    /// The only input gives way to one like it.
    fn begin(&self, scanner: &mut Scanner) -> (Changing, Arc<AtomicBool>) {
        let done = Arc::new(AtomicBool::new(false));
        let is_done = Arc::clone(&done);
        let change = InputChange {
            remove: vec![0],
            ending: Ending::Now,
            beside: false,
            add: vec![(1, self.input())],
            done: Box::new(move || is_done.store(true, Ordering::Relaxed)),
        };
        (Changing::begin(change, scanner, self.now()), done)
    }
}

/// An input that ends when it is read to its end.
fn when_read(world: &World, scanner: &mut Scanner) -> Changing {
    let change = InputChange {
        remove: vec![0],
        ending: Ending::WhenRead,
        beside: true,
        add: Vec::new(),
        done: Box::new(|| {}),
    };
    Changing::begin(change, scanner, world.now())
}

#[test]
fn the_next_input_begins_behind_the_verdicts_and_the_commit() {
    let mut world = World::new();
    world.fs.write_as_other("/logs/a", b"one\ntwo\nthree\n");
    let mut scanner = Scanner::new(vec![world.input()], &world.fs);
    world.scan(&mut scanner);
    let (lines, ticket) = world.read();
    assert_eq!(lines, 3);
    world.fs.append_as_other("/logs/a", b"four\n");
    let (mut changing, done) = world.begin(&mut scanner);
    assert!(!world.step(&mut changing, &mut scanner));
    world.scan(&mut scanner);
    assert!(world.turn().is_none(), "nobody reads meanwhile");
    world.commit();
    assert!(!world.step(&mut changing, &mut scanner), "there is no verdict");
    ticket.expect("three lines").delivered(3);
    assert!(!world.step(&mut changing, &mut scanner), "there is no commit");
    assert!(!done.load(Ordering::Relaxed));
    world.commit();
    assert!(world.step(&mut changing, &mut scanner));
    assert!(done.load(Ordering::Relaxed));
    world.scan(&mut scanner);
    let (lines, ticket) = world.read();
    assert_eq!(lines, 1, "it goes on where the other was");
    ticket.expect("a line").delivered(1);
    let total = world.settle.total();
    assert_eq!((total.read(), total.delivered(), total.in_flight()), (4, 4, 0));
}

#[test]
fn a_turn_under_way_is_waited_for() {
    let mut world = World::new();
    world.fs.write_as_other("/logs/a", b"one\n");
    let mut scanner = Scanner::new(vec![world.input()], &world.fs);
    world.scan(&mut scanner);
    let mut turn = world.turn().expect("something to read");
    let (batch, end) = turn.run(&mut Scratch::default(), world.clock.wall());
    let mut batch = batch.expect("a line");
    let (mut changing, _) = world.begin(&mut scanner);
    world.commit();
    assert!(!world.step(&mut changing, &mut scanner), "its lines are not admitted yet");
    let ticket = world.settle.admit(&mut batch, None);
    world.readers.finish(turn, &end, true, world.clock.monotonic());
    ticket.delivered(1);
    assert!(!world.step(&mut changing, &mut scanner));
    world.commit();
    assert!(world.step(&mut changing, &mut scanner));
    world.scan(&mut scanner);
    assert_eq!(world.read().0, 0, "nothing comes again");
}

#[test]
fn the_last_way_to_a_deleted_file_is_read_to_its_end() {
    let mut world = World::new();
    world.fs.write_as_other("/logs/a", b"one\n");
    let mut scanner = Scanner::new(vec![world.input()], &world.fs);
    world.scan(&mut scanner);
    let mut turn = world.turn().expect("something to read");
    let (batch, _) = turn.run(&mut Scratch::default(), world.clock.wall());
    let first = world.settle.admit(&mut batch.expect("a line"), None);
    world.fs.append_as_other("/logs/a", b"two\n");
    world.fs.remove_as_other("/logs/a");
    world.readers.finish(turn, &TurnEnd::More, true, world.clock.monotonic());
    let (mut changing, _) = world.begin(&mut scanner);
    assert!(!world.step(&mut changing, &mut scanner));
    let (lines, second) = world.read();
    assert_eq!(lines, 1, "the rest of it");
    first.delivered(1);
    second.expect("a line").delivered(1);
    for _ in 0..3 {
        world.step(&mut changing, &mut scanner);
        world.commit();
    }
    assert!(world.step(&mut changing, &mut scanner));
    assert_eq!(world.readers.open_files(), 0);
}

#[test]
fn an_input_that_only_begins_waits_for_nothing() {
    let world = World::new();
    world.fs.write_as_other("/logs/a", b"one\n");
    let mut scanner = Scanner::new(Vec::new(), &world.fs);
    world.scan(&mut scanner);
    let change = InputChange {
        remove: Vec::new(),
        ending: Ending::Now,
        beside: false,
        add: vec![(0, world.input())],
        done: Box::new(|| {}),
    };
    let mut changing = Changing::begin(change, &mut scanner, world.now());
    assert!(world.step(&mut changing, &mut scanner));
    world.scan(&mut scanner);
    assert_eq!(world.read().0, 1);
}

#[test]
fn the_last_group_of_lines_of_an_input_that_ends_does_not_wait_for_more() {
    let world = World::new();
    world.fs.write_as_other("/logs/a", b"one\ntwo\nthree\n");
    let mut scanner = Scanner::new(vec![world.input_of(pairs())], &world.fs);
    world.scan(&mut scanner);
    let (groups, first) = world.read();
    assert_eq!(groups, 1, "the last group may get more lines");
    assert_eq!(world.read().0, 0);
    let began = world.clock.monotonic();
    let mut changing = when_read(&world, &mut scanner);
    let mut last = None;
    for _ in 0..4 {
        assert!(!world.step(&mut changing, &mut scanner));
        last = last.or(world.read().1);
        world.clock.advance(LOOK_FOR_END);
        world.scan(&mut scanner);
    }
    let last = last.expect("the last group");
    assert!(world.clock.monotonic().since(began) < Duration::from_secs(2), "its timeout is 5 s");
    first.expect("the first group").delivered(1);
    last.delivered(1);
    world.clock.advance(LOOK_FOR_END);
    world.step(&mut changing, &mut scanner);
    assert!(scanner.input(0).is_none(), "it has ended");
    let total = world.settle.total();
    assert_eq!((total.delivered(), total.in_flight()), (2, 0));
}

#[test]
fn an_input_whose_files_get_no_more_is_read_to_its_end_first() {
    let mut world = World::new();
    world.fs.write_as_other("/logs/a", b"one\n");
    let mut scanner = Scanner::new(vec![world.input()], &world.fs);
    world.scan(&mut scanner);
    // Nothing of it was read yet.
    world.fs.append_as_other("/logs/a", b"two\n");
    world.fs.write_as_other("/logs/b", b"three\n");
    let mut changing = when_read(&world, &mut scanner);
    let mut tickets = Vec::new();
    let mut lines = 0;
    while lines < 3 {
        assert!(!world.step(&mut changing, &mut scanner), "{lines} lines");
        world.clock.advance(LOOK_FOR_END);
        world.scan(&mut scanner);
        let (read, ticket) = world.read();
        lines += read;
        tickets.extend(ticket.map(|ticket| (ticket, read)));
    }
    for _ in 0..5 {
        world.clock.advance(LOOK_FOR_END);
        world.scan(&mut scanner);
        world.read();
        assert!(!world.step(&mut changing, &mut scanner), "there is no verdict");
        assert!(scanner.input(0).is_some(), "it reads on as long as there is none");
        world.commit();
    }
    for (ticket, read) in tickets {
        ticket.delivered(u32::try_from(read).expect("a few"));
    }
    world.clock.advance(LOOK_FOR_END);
    world.step(&mut changing, &mut scanner);
    assert!(scanner.input(0).is_none(), "it has ended");
    world.commit();
    assert!(world.step(&mut changing, &mut scanner));
    let total = world.settle.total();
    assert_eq!((total.read(), total.delivered(), total.in_flight()), (3, 3, 0));
}

#[test]
fn what_the_system_refuses_for_a_moment_is_not_left() {
    for operation in [Operation::List, Operation::Open] {
        let mut world = World::new();
        world.fs.write_as_other("/logs/a", b"one\n");
        let fault = Fault::nth(1, std::io::ErrorKind::PermissionDenied).of(operation).on("/logs");
        world.fs.inject(fault.times(3));
        let mut scanner = Scanner::new(vec![world.input()], &world.fs);
        world.scan(&mut scanner);
        let mut changing = when_read(&world, &mut scanner);
        let mut tickets = Vec::new();
        for _ in 0..20 {
            world.step(&mut changing, &mut scanner);
            world.clock.advance(LOOK_FOR_END);
            let (lines, ticket) = world.read();
            tickets.extend(ticket);
            if lines > 0 {
                break;
            }
        }
        assert_eq!(tickets.len(), 1, "{operation:?}: it is read");
        tickets.remove(0).delivered(1);
        world.clock.advance(LOOK_FOR_END);
        world.step(&mut changing, &mut scanner);
        world.commit();
        assert!(world.step(&mut changing, &mut scanner), "{operation:?}");
    }
}

#[test]
fn what_the_system_refuses_for_long_holds_nothing_up() {
    let mut world = World::new();
    world.fs.write_as_other("/logs/a", b"one\n");
    let fault = Fault::nth(1, std::io::ErrorKind::PermissionDenied).of(Operation::Open);
    world.fs.inject(fault.on("/logs").forever());
    let mut scanner = Scanner::new(vec![world.input()], &world.fs);
    world.scan(&mut scanner);
    let mut changing = when_read(&world, &mut scanner);
    assert!(!world.step(&mut changing, &mut scanner));
    world.clock.advance(REFUSED_MAX);
    world.step(&mut changing, &mut scanner);
    world.commit();
    assert!(world.step(&mut changing, &mut scanner));
}

#[test]
fn a_line_that_comes_while_an_input_ends_is_read() {
    let mut world = World::new();
    world.fs.write_as_other("/logs/a", b"one\n");
    let mut scanner = Scanner::new(vec![world.input()], &world.fs);
    world.scan(&mut scanner);
    let (_, ticket) = world.read();
    let mut changing = when_read(&world, &mut scanner);
    assert!(!world.step(&mut changing, &mut scanner), "there is no verdict");
    ticket.expect("a line").delivered(1);
    world.commit();
    // No scan and no notice came since.
    world.fs.append_as_other("/logs/a", b"two\n");
    world.clock.advance(LOOK_FOR_END);
    assert!(!world.step(&mut changing, &mut scanner));
    assert!(scanner.input(0).is_some(), "it has a line to read");
    assert_eq!(world.read().0, 1);
}

/// A line that is long enough to know its file by.
fn a_line() -> Vec<u8> {
    let mut line = vec![b'x'; 2000];
    line.push(b'\n');
    line
}

/// The input of a container ends a while after a scan has seen that its file was changed, all of which was read before.
fn ends_after(world: &mut World, change: impl FnOnce(&SimFs)) -> Scanner {
    world.fs.write_as_other("/logs/a", &a_line());
    let mut scanner = Scanner::new(vec![world.input()], &world.fs);
    world.scan(&mut scanner);
    world.read().1.expect("a line").delivered(1);
    world.commit();
    assert_eq!(world.entries(), 1);
    change(&world.fs);
    passes(world, &mut scanner, Duration::from_secs(15));
    let mut changing = when_read(world, &mut scanner);
    for _ in 0..20 {
        world.commit();
        if world.step(&mut changing, &mut scanner) {
            return scanner;
        }
        world.clock.advance(LOOK_FOR_END);
        world.read();
    }
    panic!("it does not end");
}

/// Time passes, in which the scanner makes the steps that it asks for.
fn passes(world: &mut World, scanner: &mut Scanner, time: Duration) {
    let end = world.clock.monotonic() + time;
    while world.clock.monotonic() < end {
        let next = scanner.step(&|| world.now());
        world.read();
        let wait = next.until.min(end).since(world.clock.monotonic());
        world.clock.advance(wait.max(Duration::from_millis(20)));
    }
    scanner.step(&|| world.now());
    world.commit();
}

#[test]
fn a_file_that_was_gone_when_its_input_ended_is_forgotten_a_minute_after_it_went() {
    let mut world = World::new();
    let mut scanner = ends_after(&mut world, |fs| fs.remove_as_other("/logs/a"));
    passes(&mut world, &mut scanner, Duration::from_secs(30));
    assert_eq!(world.entries(), 1, "a copy of it may turn up");
    passes(&mut world, &mut scanner, Duration::from_secs(30));
    assert_eq!(world.entries(), 0);
}

#[test]
fn a_file_that_was_only_renamed_keeps_its_entry_when_its_input_ends() {
    for (pattern, name) in [("/logs/*", "/logs/b"), ("/logs/a", "/logs/b")] {
        let mut world = World { pattern, ..World::new() };
        let rename = |fs: &SimFs| fs.rename_as_other("/logs/a", name);
        let mut scanner = ends_after(&mut world, rename);
        passes(&mut world, &mut scanner, Duration::from_mins(5));
        assert_eq!(world.entries(), 1, "{pattern}");
    }
}

#[test]
fn a_file_that_is_back_when_its_minute_is_over_keeps_its_entry() {
    let mut world = World::new();
    let away = |fs: &SimFs| fs.rename_as_other("/logs/a", "/elsewhere");
    let mut scanner = ends_after(&mut world, away);
    world.fs.rename_as_other("/elsewhere", "/logs/a");
    passes(&mut world, &mut scanner, Duration::from_mins(5));
    assert_eq!(world.entries(), 1);
}

#[test]
fn nothing_is_forgotten_while_its_directory_cannot_be_listed() {
    let mut world = World::new();
    let mut scanner = ends_after(&mut world, |fs| fs.remove_as_other("/logs/a"));
    let fault = Fault::nth(1, std::io::ErrorKind::PermissionDenied).of(Operation::List);
    world.fs.inject(fault.on("/logs"));
    passes(&mut world, &mut scanner, Duration::from_secs(100));
    assert_eq!(world.entries(), 1);
    passes(&mut world, &mut scanner, Duration::from_secs(20));
    assert_eq!(world.entries(), 0, "it works again");
}

#[test]
fn the_next_input_that_reads_on_in_a_copy_keeps_the_entry() {
    let mut world = World::new();
    let mut scanner = ends_after(&mut world, |fs| fs.remove_as_other("/logs/a"));
    scanner.add(1, world.input());
    world.scan(&mut scanner);
    world.fs.write_as_other("/logs/copy", &[a_line(), b"two\n".to_vec()].concat());
    world.clock.advance(Duration::from_secs(10));
    world.scan(&mut scanner);
    let (lines, ticket) = world.read();
    assert_eq!(lines, 1, "the first line is not read again");
    ticket.expect("a line").delivered(1);
    world.commit();
    passes(&mut world, &mut scanner, Duration::from_mins(5));
    assert_eq!(world.entries(), 1);
}
