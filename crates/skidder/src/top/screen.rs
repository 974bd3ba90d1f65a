//! What `skidder top` shows, and what keys do to it.

use crate::problems;
use crate::status::{
    FILE_HEAD, INPUT_HEAD, InputLook, Look, OUTPUT_HEAD, RECEIVED_HEAD, SOURCE_HEAD, SourceLook,
    file_row, output_row, span,
};
use anyhow::Result;
use ratatui::Frame;
use ratatui::crossterm::event::KeyCode;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize as _};
use ratatui::text::Line;
use ratatui::widgets::{Block, Paragraph, Row, Sparkline, Table};
use skidder_observe::{bytes_text, grouped};
use std::cmp::Reverse;
use std::collections::{BTreeSet, VecDeque};

/// Answers that the plots remember.
const HISTORY: usize = 600;

/// Problems that are shown.
const PROBLEMS_SHOWN: usize = 4;

/// Inputs that are shown.
const INPUTS_SHOWN: usize = 5;

/// The order of the files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Sort {
    #[default]
    Behind,
    Oldest,
    Rate,
    Path,
}

impl Sort {
    fn next(self) -> Self {
        match self {
            Self::Behind => Self::Oldest,
            Self::Oldest => Self::Rate,
            Self::Rate => Self::Path,
            Self::Path => Self::Behind,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Behind => "bytes behind",
            Self::Oldest => "oldest line",
            Self::Rate => "rate",
            Self::Path => "path",
        }
    }
}

/// All that is shown.
#[derive(Default)]
pub(super) struct Screen {
    look: Option<Look>,
    /// Why the last question has no answer.
    failed: Option<String>,
    read: VecDeque<u64>,
    delivered: VecDeque<u64>,
    behind: VecDeque<u64>,
    sort: Sort,
    paused: bool,
    /// Files, or sources, above the first that is shown.
    above: usize,
    /// The number of the input whose sources are shown; those of all if there is none.
    input: Option<u64>,
}

impl Screen {
    /// Takes an answer, unless the screen is paused.
    pub(super) fn take(&mut self, answer: Result<Look>) {
        if self.paused {
            return;
        }
        match answer {
            Ok(look) => {
                self.failed = None;
                let behind = look.lag["behind_bytes"].as_u64().unwrap_or(0);
                push(&mut self.read, look.read_rate as u64);
                push(&mut self.delivered, look.delivered_rate as u64);
                push(&mut self.behind, behind);
                self.look = Some(look);
                self.arrange();
            }
            Err(error) => self.failed = Some(format!("{error:#}")),
        }
    }

    /// Handles a key.
    pub(super) fn key(&mut self, key: KeyCode) {
        let rows = self.look.as_ref().map_or(0, |look| look.files.len().max(look.sources.len()));
        let last = rows.saturating_sub(1);
        match key {
            KeyCode::Char('s') => {
                self.sort = self.sort.next();
                self.above = 0;
                self.arrange();
            }
            KeyCode::Char('i') => {
                self.select_next();
                self.above = 0;
            }
            KeyCode::Char('p' | ' ') => self.paused = !self.paused,
            KeyCode::Down | KeyCode::Char('j') => self.above = (self.above + 1).min(last),
            KeyCode::Up | KeyCode::Char('k') => self.above = self.above.saturating_sub(1),
            KeyCode::PageDown => self.above = (self.above + 10).min(last),
            KeyCode::PageUp => self.above = self.above.saturating_sub(10),
            KeyCode::Home => self.above = 0,
            _ => {}
        }
    }

    /// Selects the next input that reads no files; behind the last one all of them.
    fn select_next(&mut self) {
        let Some(look) = &self.look else { return };
        let received = look.inputs.iter().filter(|input| input.received.is_some());
        let numbers: BTreeSet<u64> = received.map(|input| input.number).collect();
        self.input = match self.input {
            None => numbers.first().copied(),
            Some(now) => numbers.into_iter().find(|number| *number > now),
        };
    }

    /// The sources that are shown, the fastest first.
    fn sources<'a>(&self, look: &'a Look) -> Vec<&'a SourceLook> {
        let is_wanted =
            |source: &&SourceLook| self.input.is_none_or(|number| source.input_number == number);
        look.sources.iter().filter(is_wanted).collect()
    }

    fn arrange(&mut self) {
        let Some(look) = &mut self.look else { return };
        let files = &mut look.files;
        files.sort_by(|one, other| one.path.cmp(&other.path));
        match self.sort {
            Sort::Behind => files.sort_by_key(|file| Reverse(file.behind)),
            Sort::Oldest => files.sort_by_key(|file| Reverse(file.behind_ms)),
            Sort::Rate => files.sort_by(|one, other| {
                other.rate.unwrap_or(0.0).total_cmp(&one.rate.unwrap_or(0.0))
            }),
            Sort::Path => {}
        }
        let rows = files.len().max(look.sources.len());
        self.above = self.above.min(rows.saturating_sub(1));
    }

    /// Draws all of it.
    pub(super) fn draw(&self, frame: &mut Frame<'_>) {
        let Some(look) = &self.look else {
            let text = self.failed.as_deref().unwrap_or("asking…");
            frame.render_widget(Paragraph::new(text), frame.area());
            return;
        };
        let problems = self.problems(look);
        let of_files: Vec<_> = look.inputs.iter().filter_map(InputLook::row).collect();
        let received: Vec<_> = look.inputs.iter().filter_map(InputLook::received_row).collect();
        let height = |rows: usize| (rows.min(INPUTS_SHOWN) + usize::from(rows > 0)) as u16;
        let areas = Layout::vertical([
            Constraint::Length(1 + problems.len() as u16),
            Constraint::Length(5),
            Constraint::Length(1 + look.outputs.len() as u16),
            Constraint::Length(height(of_files.len())),
            Constraint::Length(height(received.len())),
            if look.reads_files() { Constraint::Fill(1) } else { Constraint::Length(0) },
            if received.is_empty() { Constraint::Length(0) } else { Constraint::Fill(1) },
            Constraint::Length(1),
        ]);
        let [head, plots, outputs, inputs, receiving, files, sources, foot] =
            areas.areas(frame.area());
        draw_head(frame, head, look, problems);
        self.draw_plots(frame, plots, look);
        let rows = look.outputs.iter().map(|output| Row::new(output_row(output)));
        let widths = [24, 14, 10, 10, 10, 10, 8, 8, 16].map(Constraint::Length);
        frame.render_widget(Table::new(rows, widths).header(heading(OUTPUT_HEAD)), outputs);
        let rows = of_files.into_iter().take(INPUTS_SHOWN).map(Row::new);
        let widths = [24, 24, 10, 10, 14, 14, 10, 8, 10].map(Constraint::Length);
        frame.render_widget(Table::new(rows, widths).header(heading(INPUT_HEAD)), inputs);
        let any = !received.is_empty();
        let rows = received.into_iter().take(INPUTS_SHOWN).map(Row::new);
        let mut widths = [24, 20, 8, 9, 11, 12, 12, 10, 8, 10, 8, 11, 0].map(Constraint::Length);
        widths[12] = Constraint::Fill(1);
        frame.render_widget(Table::new(rows, widths).header(heading(RECEIVED_HEAD)), receiving);
        if look.reads_files() {
            self.draw_files(frame, files, look);
        }
        if any {
            self.draw_sources(frame, sources, look);
        }
        self.draw_foot(frame, foot, look, any);
    }

    fn draw_files(&self, frame: &mut Frame<'_>, area: Rect, look: &Look) {
        let mut widths = [10, 10, 12, 10, 10, 0, 0].map(Constraint::Length);
        [widths[5], widths[6]] = [Constraint::Fill(3), Constraint::Fill(2)];
        let columns = Layout::horizontal(widths).spacing(1).areas::<7>(area);
        let width = usize::from(columns[5].width).max(1);
        let rows = look.files.iter().skip(self.above).map(|file| Row::new(file_row(file, width)));
        frame.render_widget(Table::new(rows, widths).header(heading(FILE_HEAD)), area);
    }

    fn draw_sources(&self, frame: &mut Frame<'_>, area: Rect, look: &Look) {
        let mut widths = [10, 12, 12, 12, 14, 12, 0, 0].map(Constraint::Length);
        [widths[6], widths[7]] = [Constraint::Fill(1), Constraint::Fill(3)];
        let rows = self.sources(look).into_iter().skip(self.above);
        let rows = rows.map(|source| Row::new(source.row()));
        frame.render_widget(Table::new(rows, widths).header(heading(SOURCE_HEAD)), area);
    }

    fn draw_foot(&self, frame: &mut Frame<'_>, area: Rect, look: &Look, any: bool) {
        let state = if self.paused { " · PAUSED" } else { "" };
        let sort = format!(" · s sort ({})", self.sort.name());
        let sort = if look.reads_files() { sort } else { String::new() };
        let of_input = || {
            let name = |number| look.inputs.iter().find(|input| Some(input.number) == number);
            let name = name(self.input).map_or("all", |input| &input.name);
            let (shown, open) = (self.sources(look).len(), look.sources_open);
            format!(" · i input ({name}): {shown} of {open} sources")
        };
        let input = if any { of_input() } else { String::new() };
        let text = format!("q quit{sort}{input} · p pause · ↑↓ scroll{state}");
        frame.render_widget(Line::from(text).dim(), area);
    }

    fn problems(&self, look: &Look) -> Vec<String> {
        let mut problems: Vec<String> = self.failed.iter().cloned().collect();
        problems.extend(look.problems.iter().map(problems::line));
        problems.truncate(PROBLEMS_SHOWN);
        problems
    }

    fn draw_plots(&self, frame: &mut Frame<'_>, area: Rect, look: &Look) {
        let [read, delivered, behind] = Layout::horizontal([Constraint::Fill(1); 3]).areas(area);
        let lines = |rate: f64| grouped(rate as u64);
        let speed = bytes_text(look.read_bytes_rate);
        plot(
            frame,
            read,
            &format!("read {} lines/s, {speed}/s", lines(look.read_rate)),
            &self.read,
        );
        let title = format!("delivered {} lines/s", lines(look.delivered_rate));
        plot(frame, delivered, &title, &self.delivered);
        let number = |name: &str| look.lag[name].as_u64().unwrap_or(0);
        let mut title = format!("behind {}", bytes_text(number("behind_bytes") as f64));
        if number("behind_ms") > 0 {
            title.push_str(&format!(", oldest {}", span(number("behind_ms"))));
        }
        title.push_str(&look.catch_up());
        plot(frame, behind, &title, &self.behind);
    }
}

fn push(history: &mut VecDeque<u64>, value: u64) {
    if history.len() == HISTORY {
        history.pop_front();
    }
    history.push_back(value);
}

fn heading<const N: usize>(names: [&'static str; N]) -> Row<'static> {
    Row::new(names).style(Style::new().bold())
}

fn draw_head(frame: &mut Frame<'_>, area: Rect, look: &Look, problems: Vec<String>) {
    let of = |name: &str| grouped(look.ledger[name].as_u64().unwrap_or(0));
    let mut lines = vec![Line::from(format!(
        "skidder {} on {}, up {} · read {} = delivered {} + dropped {} + dead-lettered {} + in flight {}",
        look.version,
        look.host,
        span(look.uptime_ms),
        of("read"),
        of("delivered"),
        of("dropped"),
        of("dead_lettered"),
        of("in_flight"),
    ))];
    lines.extend(
        problems.into_iter().map(|problem| Line::from(format!("! {problem}")).fg(Color::Red)),
    );
    frame.render_widget(Paragraph::new(lines), area);
}

/// A line of bars, the newest at the right.
fn plot(frame: &mut Frame<'_>, area: Rect, title: &str, history: &VecDeque<u64>) {
    let block = Block::bordered().title(title);
    let width = usize::from(block.inner(area).width);
    let skipped = history.len().saturating_sub(width);
    let bars: Vec<u64> = std::iter::repeat_n(0, width.saturating_sub(history.len()))
        .chain(history.iter().skip(skipped).copied())
        .collect();
    frame.render_widget(Sparkline::default().block(block).data(bars), area);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::Sample;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use serde_json::json;
    use skidder_observe::Problem;

    fn sample(at: u64, read: u64) -> Sample {
        let file = |path: &str, behind: u64, ms: u64, rate: f64| json!({"path": path, "state": "reading", "behind": behind, "behind_ms": ms, "rate": rate});
        let ledger = json!({"read": read, "read_bytes": read * 100, "delivered": read, "in_flight": 0,
                            "dropped": 0, "dead_lettered": 0, "adds_up": true});
        let output = json!({"id": "main", "kind": "elasticsearch", "state": "blocked", "acked": read,
                            "blocked_ms": 12_000, "queue": {"events": 5, "events_max": 3200}});
        Sample::new(
            json!({"uptime_ms": at, "version": "1.2.3", "host": "box", "ledger": ledger, "outputs": [output]}),
            json!({"totals": {"behind_bytes": 2048, "behind_ms": 5000, "catch_up_ms": 90_000},
                   "files": [file("/a", 1000, 5000, 1.0), file("/b", 1048, 10, 9.0)]}),
            json!([{"id": "nginx", "input": "filestream", "skidder": {"state": "blocked", "blocked_on": "main",
                    "blocked_ms": 12_000, "ledger": {"read": read}, "lag": {"behind_bytes": 2048}}}]),
            vec![
                Problem::error("output_blocked", "the output main is blocked".to_owned())
                    .because("h:1: away"),
            ],
        )
    }

    fn look(seconds: u64, read: u64) -> Look {
        Look::of(&sample(0, 0), &sample(seconds * 1000, read))
    }

    fn drawn(screen: &Screen, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a test backend");
        terminal.draw(|frame| screen.draw(frame)).expect("a test backend");
        terminal.backend().to_string()
    }

    /// Whether texts come in this order.
    fn in_order(text: &str, parts: &[&str]) -> bool {
        let mut rest = text;
        parts.iter().all(|part| match rest.find(part) {
            Some(at) => {
                rest = &rest[at + part.len()..];
                true
            }
            None => false,
        })
    }

    #[test]
    fn everything_is_on_the_screen() {
        let mut screen = Screen::default();
        assert!(drawn(&screen, 40, 5).contains("asking…"));
        screen.take(Ok(look(2, 3000)));
        let text = drawn(&screen, 160, 20);
        let parts = [
            "skidder 1.2.3 on box, up 2 s · read 3,000 = delivered 3,000",
            "! the output main is blocked: h:1: away",
            "read 1,500 lines/s, 146.5 KiB/s",
            "delivered 1,500 lines/s",
            "behind 2.0 KiB, oldest 5 s, caught up in 1 m 30 s",
            "OUTPUT",
            "main (elasticsearch)",
            "5 of 3,200",
            "INPUT",
            "nginx",
            "blocked on main 12 s",
            "3,000",
            "PATH",
            "/b",
            "/a",
            "s sort (bytes behind)",
        ];
        assert!(in_order(&text, &parts), "{text}");
        screen.take(Err(anyhow::anyhow!("nobody is there")));
        assert!(drawn(&screen, 160, 20).contains("! nobody is there"));
        // However small the terminal is.
        for size in [(1, 1), (20, 3), (80, 8)] {
            drawn(&screen, size.0, size.1);
        }
    }

    #[test]
    fn keys_sort_scroll_and_pause() {
        let mut screen = Screen::default();
        screen.take(Ok(look(1, 10)));
        let orders = [
            ("oldest line", ["/a", "/b"]),
            ("rate", ["/b", "/a"]),
            ("path", ["/a", "/b"]),
            ("bytes behind", ["/b", "/a"]),
        ];
        for (name, order) in orders {
            screen.key(KeyCode::Char('s'));
            let text = drawn(&screen, 120, 20);
            assert!(in_order(&text, &order) && text.contains(&format!("sort ({name})")), "{text}");
        }
        screen.key(KeyCode::Down);
        screen.key(KeyCode::PageDown);
        let text = drawn(&screen, 120, 20);
        assert!(!text.contains("/b") && text.contains("/a"), "{text}");
        screen.key(KeyCode::Home);
        assert!(drawn(&screen, 120, 20).contains("/b"));
        screen.key(KeyCode::Char('p'));
        screen.take(Ok(look(1, 77)));
        let text = drawn(&screen, 120, 20);
        assert!(text.contains("PAUSED") && text.contains("read 10 ="), "{text}");
        screen.key(KeyCode::Char('p'));
        screen.take(Ok(look(1, 77)));
        assert!(drawn(&screen, 120, 20).contains("read 77 ="));
    }

    /// What `top` sees of two inputs that receive, the second of which cannot listen.
    fn receiving(seconds: u64, events: u64, with_files: bool) -> Sample {
        let input = |number: u64, name: &str, trouble: Option<&str>| {
            json!({"id": "", "input": "tcp", "skidder": {
                "name": name, "number": number, "state": "reading", "ledger": {"read": events, "delivered": events},
                "sources_open": 2 - number, "events_total": events, "bytes_total": events * 1024,
                "errors_total": 3, "refused_total": 0, "lost_before_total": 17, "trouble": trouble}})
        };
        let mut inputs =
            vec![input(0, "tcp :9000", None), input(1, "udp :9001", Some("address in use"))];
        if with_files {
            inputs.push(json!({"id": "logs", "input": "filestream", "skidder": {"name": "logs", "number": 2}}));
        }
        let source = |input: u64, name: &str, rate: f64, error: Option<&str>| {
            json!({"input_name": format!("input {input}"), "input_number": input, "name": name, "events": 70,
                   "bytes": 2048, "events_rate": rate, "bytes_rate": rate * 10.0, "open_ms": 61_000,
                   "silent_ms": 2000, "last_error": error})
        };
        let sources = json!({"open": 3, "sources": [
            source(0, "10.0.0.1:5000", 40.0, None), source(1, "10.0.0.2", 30.0, None),
            source(0, "10.0.0.3:5000", 0.0, Some("reset by peer"))]});
        let files = json!([{"path": "/var/log/a", "state": "reading", "behind": 5}]);
        Sample::new(
            json!({"uptime_ms": seconds * 1000, "ledger": {"read": events}, "outputs": [{"kind": "file"}]}),
            json!({"totals": {}, "files": if with_files { files } else { json!([]) }}),
            json!(inputs),
            Vec::new(),
        )
        .with_sources(sources)
    }

    #[test]
    fn inputs_without_files_have_rows_and_their_sources_and_an_input_can_be_selected() {
        let mut screen = Screen::default();
        screen.take(Ok(Look::of(&receiving(0, 0, false), &receiving(2, 20, false))));
        let text = drawn(&screen, 200, 30);
        let parts = [
            "INPUT",
            "SOURCES",
            "LOST BEFORE",
            "TROUBLE",
            "tcp :9000",
            "reading",
            "2",
            "10",
            "10.0 KiB",
            "3",
            "17",
            "udp :9001",
            "address in use",
            "EVENTS/S",
            "SOURCE",
            "40",
            "2 s ago",
            "10.0.0.1:5000",
            "10.0.0.2",
            "10.0.0.3:5000; last error: reset by peer",
            "i input (all): 3 of 3 sources",
        ];
        assert!(in_order(&text, &parts), "{text}");
        assert!(!text.contains("BEHIND") && !text.contains("s sort"), "no input has files: {text}");
        screen.key(KeyCode::Char('i'));
        let text = drawn(&screen, 200, 30);
        assert!(text.contains("i input (tcp :9000): 2 of 3 sources"), "{text}");
        assert!(text.contains("10.0.0.3") && !text.contains("10.0.0.2"), "{text}");
        screen.key(KeyCode::Char('i'));
        let text = drawn(&screen, 200, 30);
        assert!(!text.contains("10.0.0.3") && text.contains("10.0.0.2"), "{text}");
        screen.key(KeyCode::Char('i'));
        assert!(drawn(&screen, 200, 30).contains("input (all)"));
        // Scrolling.
        screen.key(KeyCode::Down);
        assert!(!drawn(&screen, 200, 30).contains("10.0.0.1"));
    }

    #[test]
    fn files_and_sources_share_the_screen() {
        let mut screen = Screen::default();
        screen.take(Ok(Look::of(&receiving(0, 0, true), &receiving(2, 20, true))));
        let text = drawn(&screen, 200, 30);
        let parts = [
            "OLDEST",
            "logs",
            "SOURCES",
            "tcp :9000",
            "PATH",
            "/var/log/a",
            "SOURCE",
            "10.0.0.1:5000",
        ];
        assert!(in_order(&text, &parts), "{text}");
        for size in [(1, 1), (20, 3), (80, 8)] {
            drawn(&screen, size.0, size.1);
        }
    }

    #[test]
    fn the_newest_answers_are_at_the_right() {
        let mut screen = Screen::default();
        for read in 0..(HISTORY as u64 + 50) {
            screen.take(Ok(look(1, read)));
        }
        assert_eq!(
            (screen.read.len(), screen.read.back()),
            (HISTORY, Some(&(HISTORY as u64 + 49)))
        );
        let text = drawn(&screen, 60, 20);
        assert!(text.contains('█'), "{text}");
    }
}
