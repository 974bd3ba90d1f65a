//! What `skidder top` shows, and what keys do to it.

use crate::problems;
use crate::status::{
    FILE_HEAD, INPUT_HEAD, InputLook, Look, OUTPUT_HEAD, file_row, output_row, span,
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
use std::collections::VecDeque;

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
    /// Files above the first that is shown.
    above: usize,
}

impl Screen {
    /// Takes an answer, unless it is to stand still.
    pub(super) fn take(&mut self, told: Result<Look>) {
        if self.paused {
            return;
        }
        match told {
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

    /// Does what a key says.
    pub(super) fn key(&mut self, key: KeyCode) {
        let files = self.look.as_ref().map_or(0, |look| look.files.len());
        let last = files.saturating_sub(1);
        match key {
            KeyCode::Char('s') => {
                self.sort = self.sort.next();
                self.above = 0;
                self.arrange();
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
        self.above = self.above.min(files.len().saturating_sub(1));
    }

    /// Draws all of it.
    pub(super) fn draw(&self, frame: &mut Frame<'_>) {
        let Some(look) = &self.look else {
            let text = self.failed.as_deref().unwrap_or("asking…");
            frame.render_widget(Paragraph::new(text), frame.area());
            return;
        };
        let problems = self.problems(look);
        let areas = Layout::vertical([
            Constraint::Length(1 + problems.len() as u16),
            Constraint::Length(5),
            Constraint::Length(1 + look.outputs.len() as u16),
            Constraint::Length(1 + look.inputs.len().min(INPUTS_SHOWN) as u16),
            Constraint::Min(2),
            Constraint::Length(1),
        ]);
        let [head, plots, outputs, inputs, files, foot] = areas.areas(frame.area());
        draw_head(frame, head, look, problems);
        self.draw_plots(frame, plots, look);
        let rows = look.outputs.iter().map(|output| Row::new(output_row(output)));
        let widths = [24, 14, 10, 10, 10, 10, 8, 8, 16].map(Constraint::Length);
        frame.render_widget(Table::new(rows, widths).header(heading(OUTPUT_HEAD)), outputs);
        let rows = look.inputs.iter().take(INPUTS_SHOWN).map(InputLook::row).map(Row::new);
        let widths = [24, 24, 10, 10, 14, 14, 10, 8, 10].map(Constraint::Length);
        frame.render_widget(Table::new(rows, widths).header(heading(INPUT_HEAD)), inputs);
        let mut widths = [10, 10, 12, 10, 10, 0, 0].map(Constraint::Length);
        [widths[5], widths[6]] = [Constraint::Fill(3), Constraint::Fill(2)];
        let columns = Layout::horizontal(widths).spacing(1).areas::<7>(files);
        let width = usize::from(columns[5].width).max(1);
        let rows = look.files.iter().skip(self.above).map(|file| Row::new(file_row(file, width)));
        frame.render_widget(Table::new(rows, widths).header(heading(FILE_HEAD)), files);
        let state = if self.paused { " · PAUSED" } else { "" };
        let text = format!("q quit · s sort ({}) · p pause · ↑↓ scroll{state}", self.sort.name());
        frame.render_widget(Line::from(text).dim(), foot);
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
