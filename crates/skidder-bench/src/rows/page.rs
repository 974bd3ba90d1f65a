//! What the page costs: the same file without an endpoint, with an unused one, and with a page open at its tail.

use super::{Goal, row, rows_or_why, spread};
use crate::measure;
use crate::sink::{Behaviour, Sink};
use crate::stage::{Settings, Stage};
use crate::statistics::{Summary, summarize};
use crate::table::Row;
use anyhow::{Context, Result, bail, ensure};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const GOALS: [Goal; 2] = [
    ("w1", "CPU with the endpoint on and nobody at the page, over no endpoint", 1.02, 1.01, ""),
    ("w2", "CPU with the page open at its tail, over nobody at the page", 1.25, 1.10, ""),
];
/// How often the page requests events.
const TAIL_EVERY: Duration = Duration::from_millis(400);
/// After how many of these it requests numbers, and lag.
const LIVE_EVERY: u32 = 3;
const LAG_EVERY: u32 = 6;
/// An answer that takes longer never comes.
const PATIENCE: Duration = Duration::from_secs(10);

/// The viewer of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    /// There is no endpoint.
    Off,
    Unwatched,
    /// A page that is open at its tail, without a filter.
    Tail,
}

/// The rows w1 and w2, in turn within each run.
pub fn page(stage: &Stage) -> Vec<Row> {
    rows_or_why(&GOALS, in_turn(stage))
}

fn in_turn(stage: &Stage) -> Result<Vec<Row>> {
    let file = stage.plain(stage.lines)?;
    let paths = file.to_string_lossy();
    let (mut off, mut unwatched, mut tail, mut answers) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for run in 0..stage.runs {
        for (look, costs) in
            [(Look::Off, &mut off), (Look::Unwatched, &mut unwatched), (Look::Tail, &mut tail)]
        {
            let (cpu, answered) = ship(stage, &paths, look)?;
            costs.push(cpu.as_secs_f64());
            answers += answered;
        }
        measure::note(&format!("w {}: {off:?} {unwatched:?} {tail:?}", run + 1));
    }
    ensure!(answers > 0, "the page was never answered: the runs are too short");
    let (off, unwatched, tail) = (median(&off)?, median(&unwatched)?, median(&tail)?);
    let lines = stage.lines;
    let first = format!("{lines} lines; {}; {}", spread("s:", unwatched), spread("off s:", off));
    let second = format!(
        "{lines} lines, {answers} answers in {} runs; {}; {}",
        stage.runs,
        spread("s:", tail),
        spread("nobody s:", unwatched)
    );
    Ok(vec![
        row(&GOALS[0], unwatched.median / off.median, first),
        row(&GOALS[1], tail.median / unwatched.median, second),
    ])
}

fn median(values: &[f64]) -> Result<Summary> {
    summarize(values).context("no run was made")
}

/// CPU of one run, and how often the page was answered meanwhile.
fn ship(stage: &Stage, paths: &str, look: Look) -> Result<(Duration, usize)> {
    let sink = Sink::start(Behaviour::default())?;
    let home = stage.home(paths, &sink, Settings::default())?;
    let mut command = home.command(&stage.skidder);
    command.arg("--once");
    // Free now, and no other program takes ports during a benchmark.
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
    if look != Look::Off {
        command.args(["-E", "http.enabled=true", "-E", "http.host=127.0.0.1"]);
        command.arg("-E").arg(format!("http.port={port}"));
    }
    let over = AtomicBool::new(false);
    let (cost, answers) = std::thread::scope(|scope| {
        let viewer = (look == Look::Tail).then(|| scope.spawn(|| watch(port, &over)));
        let cost = measure::run(&mut command, &home.log());
        over.store(true, Ordering::Relaxed);
        let answers = viewer.map_or(Ok(0), |viewer| {
            viewer.join().unwrap_or_else(|_| bail!("the viewer has panicked"))
        });
        (cost, answers)
    });
    let came = sink.count().documents;
    ensure!(
        came == stage.lines,
        "{came} of {} events came: the run counts for nothing",
        stage.lines
    );
    Ok((cost?.cpu, answers?))
}

/// Sends the requests of an open page, until the run is over; returns how many answers had events or missed ones.
fn watch(port: u16, over: &AtomicBool) -> Result<usize> {
    let (mut answers, mut round) = (0, 0_u32);
    while !over.load(Ordering::Relaxed) {
        // Before the endpoint is there, and after the run, there is no answer.
        if let Ok(answer) = ask(port, "/ui/tail?viewer=bench") {
            ensure!(answer.starts_with("HTTP/1.1 200"), "the page answered {answer:.200}");
            let is_empty = answer.contains("\"events\":[],\"missed\":0");
            answers += usize::from(!is_empty);
            if round.is_multiple_of(LIVE_EVERY) {
                // The program may be at its end.
                drop(ask(port, "/ui/live"));
            }
            if round.is_multiple_of(LAG_EVERY) {
                drop(ask(port, "/ui/files?limit=0"));
            }
            round += 1;
            measure::pause(TAIL_EVERY);
        } else {
            measure::pause(Duration::from_millis(5));
        }
    }
    Ok(answers)
}

fn ask(port: u16, target: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(stream, "GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
