//! The report of results that are known.

use super::*;
use crate::statistics::ALPHA;
use std::path::PathBuf;

const CELL: Cell =
    Cell { form: Form::Plain, files: Files::One, work: Work::None, level: 0, pace: Pace::CatchUp };

fn peer(kind: Kind, name: &str) -> Peer {
    Peer { name: name.to_owned(), kind, program: PathBuf::new(), version: "1.2".to_owned() }
}

fn peers() -> Vec<Peer> {
    vec![
        peer(Kind::Skidder, "skidder"),
        peer(Kind::Filebeat, "Filebeat <9.6>"),
        peer(Kind::FluentBit, "Fluent Bit"),
    ]
}

fn entry(cpus: &[f64], loss: Loss) -> Entry {
    let run = |&cpu_us: &f64| Run {
        cpu_us,
        rate: Some(1_500_000.0),
        memory_bytes: 22_000_000,
        sent_bytes: 400_000_000,
        ..Run::default()
    };
    Entry { runs: cpus.iter().map(run).collect(), loss, ..Entry::default() }
}

fn results() -> Results {
    let lossy = Loss { missing: 7, twice: 3, unknown: 0 };
    let left_out = Entry::of(Fit::No("it reads no `.gz`"));
    let cell = vec![
        entry(&[0.75, 0.76, 0.77, 0.76, 0.76], Loss::default()),
        entry(&[12.1, 12.3, 12.2, 12.4, 12.3], lossy),
        left_out,
    ];
    let faults = vec![Ok(Loss::default()), Ok(lossy), Err("it reads no `.gz`".to_owned())];
    Results { cells: vec![(CELL, cell)], faults: vec![(Scenario::KillsGz, faults)] }
}

#[test]
fn the_tables_show_medians_significance_loss_and_who_is_left_out_why() {
    let text = tables(&peers(), &results(), "about it");
    let name = CELL.name();
    for expected in [
        format!("| {name} | 0.76 ±1 % | 12.3 ±2 % (×16.2, p=0.008 n=5+5) | – |"),
        "| Filebeat <9.6> | 12.3 ±2 % (×16.2, p=0.008 n=5+5) | 1,500,000 ±0 % (~, p=1.000 n=5+5) | 22 ±0 %"
            .to_owned(),
        "| **7** | **3** |".to_owned(),
        "- Fluent Bit is left out: it reads no `.gz`".to_owned(),
        "| killed five times, `.gz` | 0 / 0 | **7** / 3 | – |".to_owned(),
        "- Fluent Bit, killed five times, `.gz`: it reads no `.gz`".to_owned(),
    ] {
        assert!(text.contains(&expected), "{expected} is not in\n{text}");
    }
    assert!(text.ends_with("about it\n"));
}

#[test]
fn few_runs_are_never_called_significant() {
    let mut results = results();
    for entry in &mut results.cells[0].1 {
        entry.runs.truncate(3);
    }
    let text = tables(&peers(), &results, "");
    assert!(text.contains("(×16.1, too few runs, n=3+3)"), "{text}");
    const { assert!(ALPHA < 0.1) };
}

#[test]
fn the_page_needs_nothing_else_and_has_a_dot_for_each_run() {
    let page = page(&peers(), &results(), "about <it>");
    // Three peers, of which two have five runs, in four figures.
    assert_eq!(page.matches("<circle ").count(), 2 * 5 * 4);
    assert_eq!(page.matches("<svg ").count(), 4);
    assert!(page.contains("about &lt;it&gt;") && page.contains("Filebeat &lt;9.6&gt;"));
    assert!(page.contains("<td class=\"bad\">7 / 3</td>"), "{page}");
    for foreign in ["http://", "https://", "<script", "src=", "@import", "url("] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    for element in ["svg", "table", "tr", "td", "text", "ul", "h2"] {
        let opened = page.matches(&format!("<{element}>")).count()
            + page.matches(&format!("<{element} ")).count();
        assert_eq!(opened, page.matches(&format!("</{element}>")).count(), "{element}");
    }
}
