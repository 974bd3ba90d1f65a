//! The page: a curve for each number of workers, one picture for each level, the table, and the lines to paste. All is in
//! the one file; colours follow the reader's choice of light or dark.
//!
//! Four polylines do not need a library for plots, and those there are write colours as numbers, which cannot follow.

use super::cells::Cell;
use super::report::{HEAD, Report};
use std::fmt::Write as _;

/// Size of a picture and of the room for its axes.
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 80.0;
const BELOW: f64 = 40.0;
const AROUND: f64 = 16.0;
/// Room for the names of the curves.
const RIGHT: f64 = 100.0;
/// Lines across, without the one at 0.
const STEPS: u32 = 4;
/// Colours that there are.
const COLOURS: usize = 6;

const STYLE: &str = "\
:root{color-scheme:light dark;--back:#fff;--text:#222;--line:#ccc;--mark:#eef6ee;
--c0:#0b62a4;--c1:#c2410c;--c2:#15803d;--c3:#7e22ce;--c4:#a16207;--c5:#be123c}
@media(prefers-color-scheme:dark){:root{--back:#16181c;--text:#ddd;--line:#444;--mark:#1d2b1d;
--c0:#6db3f2;--c1:#fb923c;--c2:#4ade80;--c3:#c084fc;--c4:#facc15;--c5:#fb7185}}
body{font:15px/1.4 sans-serif;background:var(--back);color:var(--text);max-width:60em;margin:2em auto;padding:0 1em}
svg{max-width:100%;height:auto}svg text{fill:var(--text);font-size:12px}
.axis{stroke:var(--line);stroke-width:1}.curve{fill:none;stroke-width:2}
table{border-collapse:collapse}td,th{padding:.2em .8em;text-align:right;border-bottom:1px solid var(--line)}
tr.best{background:var(--mark);font-weight:bold}pre{border:1px solid var(--line);padding:1em;overflow:auto}
";

type Written = std::fmt::Result;

/// The whole page.
pub(crate) fn page(report: &Report<'_>) -> String {
    let mut page = String::new();
    write_page(&mut page, report).expect("writing to a string cannot fail");
    page
}

fn write_page(page: &mut String, report: &Report<'_>) -> Written {
    write!(
        page,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>skidder tune</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<h1>skidder tune</h1>\n<p>{}</p>\n",
        escaped(&report.about())
    )?;
    let mut levels: Vec<u32> = report.cells.iter().map(|cell| cell.sizes.level).collect();
    levels.sort_unstable();
    levels.dedup();
    let most = report.cells.iter().map(|cell| cell.rate).fold(1.0, f64::max);
    for level in levels {
        let cells: Vec<_> = report.cells.iter().filter(|cell| cell.sizes.level == level).collect();
        writeln!(page, "<h2>compression_level: {level}</h2>")?;
        Picture::new(&cells, most).write(page)?;
    }
    if let Some(yaml) = report.yaml() {
        writeln!(page, "<h2>Recommended</h2>\n<pre>{}</pre>", escaped(&yaml))?;
    }
    page.push_str("<h2>All</h2>\n<table>\n<tr>");
    for name in HEAD {
        write!(page, "<th>{}</th>", escaped(name))?;
    }
    page.push_str("</tr>\n");
    let best = report.best().map(|best| best.sizes);
    for (cell, row) in report.cells.iter().zip(report.rows()) {
        let class = if best == Some(cell.sizes) { " class=\"best\"" } else { "" };
        write!(page, "<tr{class}>")?;
        for value in row {
            write!(page, "<td>{}</td>", escaped(&value))?;
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</table>\n</body>\n</html>\n");
    Ok(())
}

/// Events a second over events of a request, for one level.
struct Picture<'a> {
    cells: &'a [&'a Cell],
    /// Where the scale ends.
    top: f64,
    /// Sizes of requests, each at the same distance from the next.
    events: Vec<usize>,
    workers: Vec<usize>,
}

impl<'a> Picture<'a> {
    fn new(cells: &'a [&'a Cell], most: f64) -> Self {
        let sorted = |of: fn(&Cell) -> usize| {
            let mut values: Vec<_> = cells.iter().map(|cell| of(cell)).collect();
            values.sort_unstable();
            values.dedup();
            values
        };
        let events = sorted(|cell| cell.sizes.events);
        let workers = sorted(|cell| cell.sizes.workers);
        Self { cells, top: round_up(most), events, workers }
    }

    fn x(&self, events: usize) -> f64 {
        let at = self.events.iter().position(|known| *known == events).unwrap_or(0);
        let steps = (self.events.len() - 1).max(1);
        LEFT + AROUND + (WIDTH - LEFT - RIGHT - 2.0 * AROUND) * at as f64 / steps as f64
    }

    fn y(&self, rate: f64) -> f64 {
        HEIGHT - BELOW - (HEIGHT - BELOW - AROUND) * rate / self.top
    }

    fn write(&self, page: &mut String) -> Written {
        writeln!(
            page,
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" role=\"img\" \
             aria-label=\"events a second over bulk_max_size\">"
        )?;
        for step in 0..=STEPS {
            let rate = self.top * f64::from(step) / f64::from(STEPS);
            let (y, right) = (self.y(rate), WIDTH - RIGHT);
            writeln!(
                page,
                "<line class=\"axis\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{rate:.0}</text>",
                LEFT - 6.0,
                y + 4.0
            )?;
        }
        for &events in &self.events {
            writeln!(
                page,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{events}</text>",
                self.x(events),
                HEIGHT - BELOW + 16.0
            )?;
        }
        writeln!(
            page,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">bulk_max_size</text>",
            f64::midpoint(LEFT, WIDTH - RIGHT),
            HEIGHT - 4.0
        )?;
        for (number, &workers) in self.workers.iter().enumerate() {
            self.write_curve(page, number, workers)?;
        }
        page.push_str("</svg>\n");
        Ok(())
    }

    fn write_curve(&self, page: &mut String, number: usize, workers: usize) -> Written {
        let colour = number % COLOURS;
        let mut cells: Vec<_> =
            self.cells.iter().filter(|cell| cell.sizes.workers == workers).collect();
        cells.sort_by_key(|cell| cell.sizes.events);
        let at = |cell: &Cell| (self.x(cell.sizes.events), self.y(cell.rate));
        let points: Vec<_> = cells
            .iter()
            .map(|cell| {
                let (x, y) = at(cell);
                format!("{x:.1},{y:.1}")
            })
            .collect();
        writeln!(
            page,
            "<polyline class=\"curve\" style=\"stroke:var(--c{colour})\" points=\"{}\"/>",
            points.join(" ")
        )?;
        for cell in &cells {
            let (x, y) = at(cell);
            writeln!(
                page,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" style=\"fill:var(--c{colour})\"><title>\
                 worker {workers}, bulk_max_size {}: {:.0} events/s</title></circle>",
                cell.sizes.events, cell.rate
            )?;
        }
        let y = AROUND + 18.0 * (number as f64 + 1.0);
        writeln!(
            page,
            "<text x=\"{:.1}\" y=\"{y:.1}\" style=\"fill:var(--c{colour})\">worker {workers}</text>",
            WIDTH - RIGHT + 12.0
        )
    }
}

/// The next number that is 1, 2, 4, 6 or 8 with zeros.
fn round_up(value: f64) -> f64 {
    let power = 10_f64.powf(value.max(1.0).log10().floor());
    let steps = [1.0, 2.0, 4.0, 6.0, 8.0, 10.0];
    steps.iter().map(|step| step * power).find(|top| *top >= value).unwrap_or(10.0 * power)
}

/// Text for HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
