//! Files that were rotated away before the input looked for the first time.

use super::*;
use crate::catalog::looks::{FileState, Reason};
use crate::glob::Pattern;
use skidder_os::Timestamp;
use skidder_parse::chain::{Chain, Container, Format, Parser};

impl Kubelet {
    /// A kubelet whose rotated files are read if they were changed since now.
    fn since_now(on_eof: bool) -> Self {
        let mut kubelet = Self::new(on_eof, true);
        let mut settings = kubelet.input.context.settings.clone();
        settings.rotated_since = Some(kubelet.input.clock.wall());
        kubelet.input.advance(5);
        kubelet.input = kubelet.input.restarted_with(settings);
        kubelet
    }

    /// Log lines that must never come.
    fn write_old(&mut self, count: usize) {
        let what = format!("an old line of {}", self.rotations);
        self.input.fs.append_as_other(LOG, lines(&what, 0..count).as_bytes());
    }

    /// The names of ignored files, without their folder.
    fn ignored(&mut self) -> Vec<String> {
        let looks = self.input.looks(100);
        let is_ignored = |look: &&crate::FileLook| {
            look.state == FileState::Ignored && look.reason == Some(Reason::RotatedBefore)
        };
        let names = looks.iter().filter(is_ignored).map(|look| look.path.to_string_lossy());
        names.filter_map(|path| path.rsplit('/').next().map(str::to_owned)).collect()
    }
}

#[test]
fn what_was_rotated_before_the_first_look_and_since_the_first_start_is_read_once() {
    for case in 0..48 {
        let bit = |at: usize| case & 1 << at > 0;
        let (on_eof, long, dies, compressed) = (bit(0), bit(1), bit(2), bit(3));
        let rotations = 1 + case / 16;
        let mut kubelet = Kubelet::since_now(on_eof);
        let count = if long { 300 } else { 2 };
        kubelet.write(count);
        for _ in 0..rotations {
            kubelet.rotate();
            kubelet.write(count);
        }
        kubelet.input.advance(60);
        kubelet.input.scan();
        kubelet.turn();
        if dies {
            kubelet = kubelet.restart();
        }
        if compressed {
            kubelet.compress();
        }
        kubelet.input.scan();
        kubelet.turn();
        kubelet.rotate();
        kubelet.write(count);
        if dies {
            kubelet = kubelet.restart();
        }
        assert_eq!(kubelet.ignored(), [""; 0]);
        kubelet.finish(&format!(
            "on_eof {on_eof} long {long} dies {dies} compressed {compressed} {rotations}"
        ));
    }
}

#[test]
fn what_was_rotated_before_the_first_start_is_known_and_not_read() {
    for dies in [false, true] {
        let mut kubelet = Kubelet::new(false, true);
        kubelet.write_old(300);
        kubelet.rotate();
        kubelet.write_old(200);
        kubelet.rotate();
        kubelet.input.advance(60);
        let mut settings = kubelet.input.context.settings.clone();
        settings.rotated_since = Some(kubelet.input.clock.wall());
        kubelet.input = kubelet.input.restarted_with(settings);
        kubelet.write(100);
        kubelet.read();
        assert_eq!(kubelet.messages.len(), 100);
        let rotated = ["0.log.20261121-100000.gz", "0.log.20261121-100001"];
        assert_eq!(kubelet.ignored(), rotated);
        assert_eq!(kubelet.input.context.metrics.files_rotated_before.get(), 2);
        if dies {
            kubelet = kubelet.restart();
        }
        // The newer one is compressed now, and looks new.
        kubelet.rotate();
        kubelet.write(50);
        kubelet.read();
        if dies {
            kubelet = kubelet.restart();
        } else {
            for _ in 0..12 {
                kubelet.input.advance(11);
                kubelet.read();
            }
            let compressed = ["0.log.20261121-100000.gz", "0.log.20261121-100001.gz"];
            assert_eq!(kubelet.ignored(), compressed);
        }
        kubelet.finish(&format!("dies {dies}"));
    }
}

#[test]
fn what_comes_after_a_known_file_is_read_however_old_it_is() {
    // The registry is that of Filebeat, or of an earlier skidder: the first use is now.
    for (dies, times) in [(false, 2), (true, 2), (true, 3)] {
        let mut kubelet = Kubelet::new(false, true);
        kubelet.write(100);
        kubelet.read();
        for _ in 0..times {
            kubelet.write(50);
            kubelet.rotate();
        }
        kubelet.write(50);
        kubelet.input.advance(600);
        let mut settings = kubelet.input.context.settings.clone();
        settings.rotated_since = Some(kubelet.input.clock.wall());
        if dies {
            kubelet.input = kubelet.input.restarted_with(settings);
        }
        kubelet.read();
        assert_eq!(kubelet.ignored(), [""; 0], "{dies} {times}");
        kubelet.finish(&format!("dies {dies} {times}"));
    }
}

#[test]
fn a_clock_that_was_ahead_costs_nothing_of_a_log_that_is_known() {
    let mut kubelet = Kubelet::since_now(false);
    let mut settings = kubelet.input.context.settings.clone();
    settings.rotated_since = Some(Timestamp(kubelet.input.clock.wall().0 + 3_600_000_000_000));
    kubelet.input = kubelet.input.restarted_with(settings);
    kubelet.write(100);
    kubelet.read();
    for _ in 0..3 {
        kubelet.write(50);
        kubelet.rotate();
    }
    kubelet.write(50);
    kubelet.finish("a clock that was ahead");
}

#[test]
fn what_another_link_leads_to_is_no_rotated_file() {
    let mut kubelet = Kubelet::new(false, true);
    let fs = kubelet.input.fs.clone();
    fs.create_dir_as_other("/app");
    for number in [1, 2] {
        let text = lines(&format!("a line of worker {number}"), 0..100);
        fs.append_as_other(format!("/app/worker-{number}"), text.as_bytes());
        fs.symlink_as_other(format!("/app/worker-{number}"), format!("/logs/{number}.log"));
    }
    kubelet.input.advance(60);
    let mut settings = kubelet.input.context.settings.clone();
    settings.rotated_since = Some(kubelet.input.clock.wall());
    kubelet.input = kubelet.input.restarted_with(settings);
    for _ in 0..3 {
        kubelet.read();
        kubelet.input.advance(11);
    }
    assert_eq!(kubelet.messages.len(), 200);
    assert_eq!(kubelet.ignored(), [""; 0]);
}

#[test]
fn what_came_while_the_program_was_down_is_read_from_its_first_line() {
    let mut kubelet = Kubelet::since_now(false);
    kubelet.input.fs.remove_as_other(LINK);
    kubelet.input.fs.write_as_other("/logs/another", b"another log\n");
    kubelet.read();
    kubelet.messages.clear();
    kubelet.write(100);
    for _ in 0..3 {
        kubelet.rotate();
        kubelet.write(100);
    }
    kubelet.input.fs.symlink_as_other(LOG, LINK);
    kubelet.input.fs.remove_as_other("/logs/another");
    kubelet.input.advance(3600);
    kubelet.restart().finish("down");
}

#[test]
fn what_was_not_saved_before_a_crash_is_found_again() {
    // Each of the entries of three rotated files is missing, or all of them are: only the log is known.
    for missing in 0..4 {
        let mut kubelet = Kubelet::since_now(false);
        kubelet.write(100);
        for _ in 0..3 {
            kubelet.rotate();
            kubelet.write(100);
        }
        kubelet.read();
        kubelet.input.saved.change(|saved| {
            saved.retain(|_, entry| {
                let path = entry.meta.source.to_string_lossy().into_owned();
                let is_rotated = path.starts_with(&format!("{LOG}."));
                !(is_rotated && (missing == 3 || path.starts_with(&Kubelet::rotated(missing))))
            });
        });
        let forgotten = if missing == 3 { 0..300 } else { missing * 100..missing * 100 + 100 };
        kubelet.messages.retain(|text| {
            let number = text.rsplit(' ').next().and_then(|number| number.parse().ok());
            !forgotten.contains(&number.expect("a number"))
        });
        kubelet.input.advance(3600);
        kubelet.restart().finish(&format!("missing {missing}"));
    }
}

#[test]
fn nothing_of_an_earlier_run_is_read_for_the_next_one() {
    let mut kubelet = Kubelet::since_now(false);
    kubelet.write_old(10);
    kubelet.input.fs.rename_as_other(LOG, format!("{LOG}.20261121-090000"));
    kubelet.write_old(300);
    let next = format!("{DIRECTORY}/1.log");
    kubelet.input.fs.append_as_other(&next, lines("of the next one", 0..20).as_bytes());
    kubelet.input.fs.rename_as_other(&next, format!("{next}.20261121-100000"));
    kubelet.input.fs.append_as_other(&next, lines("of the next one", 20..30).as_bytes());
    kubelet.input.fs.symlink_as_other(&next, LINK);
    kubelet.read();
    let expected: Vec<String> =
        lines("of the next one", 0..30).lines().map(str::to_owned).collect();
    kubelet.messages.sort();
    let mut sorted = expected;
    sorted.sort();
    assert_eq!(kubelet.messages, sorted);
}

/// What writes and rotates the log of a container.
trait Engine {
    /// The input, and what came.
    fn sides(&mut self) -> (&mut Input, &mut Vec<String>);
    fn write(&mut self, count: usize);
    fn rotate(&mut self);
    /// Removes rotated files that are too many.
    fn clean(&mut self) {}

    fn read_now(&mut self) {
        let (input, messages) = self.sides();
        messages.extend(input.read());
    }
}

impl Engine for Kubelet {
    fn sides(&mut self) -> (&mut Input, &mut Vec<String>) {
        (&mut self.input, &mut self.messages)
    }

    fn write(&mut self, count: usize) {
        Self::write(self, count);
    }

    fn rotate(&mut self) {
        Self::rotate(self);
    }

    /// It keeps three of them.
    fn clean(&mut self) {
        for old in 0..self.rotations - 3 {
            let old = format!("{}.gz", Self::rotated(old));
            if self.input.fs.peek(&old).is_some() {
                self.input.fs.remove_as_other(old);
            }
        }
    }
}

impl Engine for Docker {
    fn sides(&mut self) -> (&mut Input, &mut Vec<String>) {
        (&mut self.input, &mut self.messages)
    }

    fn write(&mut self, count: usize) {
        let mut text = String::new();
        for number in self.next..self.next + count {
            text += &format!(
                "{{\"log\":\"line {number}\\n\",\"stream\":\"stdout\",\"time\":\"2026-11-26T10:00:00Z\"}}\n"
            );
        }
        self.next += count;
        self.input.fs.append_as_other(Self::LOG, text.as_bytes());
    }

    fn rotate(&mut self) {
        let end = if self.compresses { ".gz" } else { "" };
        let name = |number: usize, end: &str| format!("{}.{number}{end}", Self::LOG);
        let fs = self.input.fs.clone();
        for number in (1..self.kept).rev() {
            if fs.peek(name(number, end)).is_some() {
                fs.rename_as_other(name(number, end), name(number + 1, end));
            }
        }
        fs.rename_as_other(Self::LOG, name(1, ""));
        self.input.advance(1);
        fs.append_as_other(Self::LOG, b"");
        if self.compresses {
            let bytes = fs.peek(name(1, "")).expect("it was rotated");
            fs.write_as_other(name(1, end), &gzip(&bytes));
            fs.remove_as_other(name(1, ""));
        }
    }
}

/// One scan, and then bursts of lines with three rotations each, which the input learns from notifications alone.
fn burst(engine: &mut impl Engine, count: usize, reads: bool, often: bool) {
    let mut watcher = engine.sides().0.watcher();
    engine.write(count);
    engine.sides().0.scan_watched(&mut watcher, true);
    if reads {
        engine.read_now();
    }
    for _ in 0..4 {
        for _ in 0..3 {
            engine.rotate();
            if often {
                engine.sides().0.react(&mut watcher);
            }
            engine.write(count);
        }
        engine.sides().0.react(&mut watcher);
        engine.read_now();
        engine.clean();
    }
}

#[test]
fn what_a_link_led_to_between_two_scans_is_read_by_what_is_notified() {
    for case in 0..16 {
        let bit = |at: usize| case & 1 << at > 0;
        let (on_eof, many, reads, often) = (bit(0), bit(1), bit(2), bit(3));
        let mut kubelet = Kubelet::since_now(on_eof);
        let count = if many { 300 } else { 20 };
        burst(&mut kubelet, count, reads, often);
        kubelet.finish(&format!("on_eof {on_eof} {count} reads {reads} often {often}"));
    }
}

/// A container of Docker: the log is a file itself, and rotation moves all names.
struct Docker {
    input: Input,
    next: usize,
    kept: usize,
    compresses: bool,
    messages: Vec<String>,
}

impl Docker {
    const LOG: &str = "/containers/0123/0123-json.log";

    fn new(kept: usize, compresses: bool, since: Option<Timestamp>) -> Self {
        let mut settings = settings();
        settings.scan.patterns =
            vec![Pattern::parse("/containers/*/*-json.log", Path::new("/"), true).unwrap()];
        settings.compression = Compression::None;
        let container = Container { stream: None, format: Format::Auto, max_bytes: 1 << 20 };
        settings.parsers = Chain::new(vec![Parser::Container(container)], Chain::GROUP_BYTES);
        settings.rotated_since = since;
        let limits = ReadersLimits { open_files: 100, decoders: 10 };
        let input = Input::with(settings, limits, 50);
        input.fs.create_dir_as_other("/containers/0123");
        input.advance(10);
        Self { input, next: 0, kept, compresses, messages: Vec::new() }
    }

    fn rounds(&mut self, count: usize) {
        for _ in 0..count {
            let messages = self.input.round();
            self.messages.extend(messages);
            self.input.advance(11);
        }
    }

    fn finish(mut self, from: usize, what: &str) {
        self.rounds(10);
        let mut expected: Vec<String> =
            (from..self.next).map(|number| format!("line {number}")).collect();
        expected.sort();
        self.messages.sort();
        assert_eq!(self.messages, expected, "{what}");
    }
}

#[test]
fn a_container_of_docker_that_floods_at_once_is_read_from_its_first_line() {
    for case in 0..24 {
        let bit = |at: usize| case & 1 << at > 0;
        let (compresses, dies, many) = (bit(0), bit(1), bit(2));
        let rotations = 1 + case / 8;
        let mut docker = Docker::new(5, compresses, Some(Timestamp(1)));
        let count = if many { 500 } else { 20 };
        docker.write(count);
        for _ in 0..rotations {
            docker.rotate();
            docker.write(count);
        }
        docker.input.scan();
        if let Some((Some(batch), _)) = docker.input.turn() {
            docker.messages.extend(crate::testing::messages_of(&batch));
        }
        if dies {
            docker.input = docker.input.restarted();
        }
        // Between two looks it rotates twice, so that one file is never seen under its first name.
        for _ in 0..2 {
            docker.rotate();
            docker.write(count);
        }
        docker.finish(0, &format!("compresses {compresses} dies {dies} {count} {rotations}"));
    }
}

#[test]
fn a_container_of_docker_that_rotates_between_two_scans_is_read_by_what_is_notified() {
    // Found by a newcomer: with `max-size=10k` and bursts of 300 lines, 2 of 5 lines were lost. Only a scan looked at what
    // had got the name of a rotated file that was known.
    for case in 0..16 {
        let bit = |at: usize| case & 1 << at > 0;
        let (compresses, many, reads, often) = (bit(0), bit(1), bit(2), bit(3));
        let mut docker = Docker::new(4, compresses, Some(Timestamp(1)));
        let count = if many { 300 } else { 20 };
        burst(&mut docker, count, reads, often);
        docker.finish(0, &format!("compresses {compresses} {count} reads {reads} often {often}"));
    }
}

#[test]
fn a_container_of_docker_from_before_the_first_start_is_read_from_its_present_log() {
    for (compresses, dies) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut docker = Docker::new(5, compresses, None);
        docker.write(100);
        docker.rotate();
        docker.write(100);
        docker.rotate();
        docker.input.advance(60);
        let mut settings = docker.input.context.settings.clone();
        settings.rotated_since = Some(docker.input.clock.wall());
        docker.input = docker.input.restarted_with(settings);
        docker.write(100);
        docker.rounds(1);
        assert_eq!(docker.input.context.metrics.files_rotated_before.get(), 2);
        if dies {
            docker.input = docker.input.restarted();
        }
        docker.rotate();
        docker.write(100);
        docker.finish(200, &format!("compresses {compresses} dies {dies}"));
    }
}

#[test]
fn without_the_setting_only_links_are_followed() {
    let mut docker = Docker::new(5, false, None);
    docker.write(100);
    docker.rotate();
    docker.write(100);
    docker.finish(100, "off");
}
