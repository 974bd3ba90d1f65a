//! The results as one page that needs nothing else: tables with a plot for each figure, drawn as SVG.

use super::markdown::{FIGURES, Figure, compared, number, remarks};
use super::{Cell, Entry, Peer, Results};
use crate::statistics::summarize;

/// Colours of the peers in their order; the names next to them distinguish them also without colour.
const COLOURS: [&str; 8] =
    ["#1b7f5c", "#c0562f", "#3565a8", "#8a5a9e", "#a88a1a", "#5f6b7a", "#b03a5b", "#3a8fa0"];
/// Of a plot, in units of the SVG.
const WIDTH: f64 = 380.0;
const NAMES_WIDTH: f64 = 110.0;
const VALUES_WIDTH: f64 = 62.0;
const ROW_HEIGHT: f64 = 24.0;
const TITLE_HEIGHT: f64 = 24.0;

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1d2329;--dim:#66707a;--line:#d8dde2;--paper:#fff}\
@media(prefers-color-scheme:dark){:root{--ink:#e4e8ec;--dim:#98a2ac;--line:#39424b;--paper:#14181c}}\
body{font:15px/1.45 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:1240px;margin:2rem auto;padding:0 1rem}\
h1{font-size:1.5rem}h2{font-size:1.1rem;margin:2rem 0 .5rem;border-top:1px solid var(--line);padding-top:1rem}\
.plots{display:flex;flex-wrap:wrap;gap:1rem}svg{max-width:100%;height:auto}\
svg text{font:12px system-ui,sans-serif;fill:var(--ink)}svg .dim{fill:var(--dim)}svg line{stroke:var(--line)}\
.scroll{overflow-x:auto}table{border-collapse:collapse;font-size:.85rem;margin:.5rem 0}\
th,td{padding:.2rem .7rem;border-bottom:1px solid var(--line);text-align:right;white-space:nowrap}\
th:first-child,td:first-child{text-align:left}.bad{color:#c62f2f;font-weight:600}ul,p{color:var(--dim);font-size:.85rem}";

/// The whole page.
pub fn page(peers: &[Peer], results: &Results, about: &str) -> String {
    let mut text = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>Log shippers, side by side</title>\
         <style>{STYLE}</style></head><body>\n<h1>Log shippers, side by side</h1>\n<p>{}</p>\n",
        escape(about)
    );
    for (cell, entries) in &results.cells {
        section(&mut text, peers, *cell, entries);
    }
    faults(&mut text, peers, results);
    text.push_str("</body></html>\n");
    text
}

fn section(text: &mut String, peers: &[Peer], cell: Cell, entries: &[Entry]) {
    text.push_str(&format!("<h2>{}</h2>\n<div class=\"plots\">\n", escape(&cell.name())));
    let has = |figure: &Figure| entries.iter().any(|entry| !entry.figures(figure.of).is_empty());
    let figures: Vec<Figure> = FIGURES.into_iter().filter(has).collect();
    for &figure in &figures {
        plot(text, peers, entries, figure);
    }
    text.push_str("</div>\n<div class=\"scroll\"><table><tr><th></th>");
    for figure in &figures {
        text.push_str(&format!("<th>{}</th>", escape(figure.heading)));
    }
    text.push_str("<th>missing</th><th>twice</th></tr>\n");
    for (peer, entry) in peers.iter().zip(entries).filter(|(_, entry)| entry.left_out.is_none()) {
        text.push_str(&format!("<tr><td>{}</td>", escape(&peer.name)));
        for &figure in &figures {
            let shown = compared(entry, &entries[0], figure).unwrap_or_else(|| "–".to_owned());
            text.push_str(&format!("<td>{}</td>", escape(&shown)));
        }
        for lines in [entry.loss.missing, entry.loss.twice] {
            text.push_str(&format!("<td{}>{lines}</td>", class(lines > 0)));
        }
        text.push_str("</tr>\n");
    }
    text.push_str("</table></div>\n");
    list(text, &remarks(peers, entries));
}

/// A bar to the median of each peer, and a dot for each run.
fn plot(text: &mut String, peers: &[Peer], entries: &[Entry], figure: Figure) {
    let shown: Vec<(usize, Vec<f64>)> = entries
        .iter()
        .enumerate()
        .map(|(number, entry)| (number, entry.figures(figure.of)))
        .filter(|(_, figures)| !figures.is_empty())
        .collect();
    let most = shown.iter().flat_map(|(_, figures)| figures).copied().fold(0.0, f64::max);
    let room = WIDTH - NAMES_WIDTH - VALUES_WIDTH;
    let place = |value: f64| NAMES_WIDTH + if most > 0.0 { value / most * room } else { 0.0 };
    let height = TITLE_HEIGHT + ROW_HEIGHT * shown.len() as f64 + 4.0;
    text.push_str(&format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" role=\"img\" aria-label=\"{heading}\">\
         <text x=\"0\" y=\"14\" class=\"dim\">{heading}</text>\
         <line x1=\"{NAMES_WIDTH}\" y1=\"{TITLE_HEIGHT}\" x2=\"{NAMES_WIDTH}\" y2=\"{height}\"/>",
        heading = escape(figure.heading),
    ));
    for (row, (number_of_peer, figures)) in shown.iter().enumerate() {
        let Some(summary) = summarize(figures) else { continue };
        let (top, colour) =
            (TITLE_HEIGHT + ROW_HEIGHT * row as f64, COLOURS[number_of_peer % COLOURS.len()]);
        let (middle, end) = (top + ROW_HEIGHT / 2.0, place(summary.median));
        text.push_str(&format!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\
             <rect x=\"{NAMES_WIDTH}\" y=\"{:.1}\" width=\"{:.1}\" height=\"14\" fill=\"{colour}\" opacity=\".35\"/>",
            NAMES_WIDTH - 6.0,
            middle + 4.0,
            escape(&peers[*number_of_peer].name),
            middle - 7.0,
            end - NAMES_WIDTH,
        ));
        for figure in figures {
            text.push_str(&format!(
                "<circle cx=\"{:.1}\" cy=\"{middle:.1}\" r=\"3\" fill=\"{colour}\"><title>{}</title></circle>",
                place(*figure),
                number(*figure),
            ));
        }
        let right = place(summary.most.max(summary.median)) + 7.0;
        text.push_str(&format!(
            "<text x=\"{right:.1}\" y=\"{:.1}\">{}</text>",
            middle + 4.0,
            number(summary.median)
        ));
    }
    text.push_str("</svg>\n");
}

fn faults(text: &mut String, peers: &[Peer], results: &Results) {
    if results.faults.is_empty() {
        return;
    }
    text.push_str(
        "<h2>Faults: lines missing / twice</h2>\n<div class=\"scroll\"><table><tr><th></th>",
    );
    for peer in peers {
        text.push_str(&format!("<th>{}</th>", escape(&peer.name)));
    }
    text.push_str("</tr>\n");
    let mut left_out = Vec::new();
    for (scenario, judged) in &results.faults {
        text.push_str(&format!("<tr><td>{}</td>", escape(scenario.name())));
        for (peer, outcome) in peers.iter().zip(judged) {
            match outcome {
                Ok(loss) => {
                    let bad = loss.missing > 0 || loss.unknown > 0;
                    let (missing, twice) = (loss.missing, loss.twice);
                    text.push_str(&format!("<td{}>{missing} / {twice}</td>", class(bad)));
                }
                Err(reason) => {
                    text.push_str("<td>–</td>");
                    left_out.push(format!("{}, {}: {reason}", peer.name, scenario.name()));
                }
            }
        }
        text.push_str("</tr>\n");
    }
    text.push_str("</table></div>\n");
    list(text, &left_out);
}

fn class(is_bad: bool) -> &'static str {
    if is_bad { " class=\"bad\"" } else { "" }
}

fn list(text: &mut String, remarks: &[String]) {
    if remarks.is_empty() {
        return;
    }
    text.push_str("<ul>\n");
    for remark in remarks {
        text.push_str(&format!("<li>{}</li>\n", escape(remark)));
    }
    text.push_str("</ul>\n");
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
