//! The command line of `skidder-bench peers`.

use super::{
    Cell, Files, Form, Inputs, Kind, Matrix, Pace, Peer, Race, Results, Scenario, Times, Work,
    page, tables,
};
use crate::stage::allow_many_open_files;
use crate::table::provenance;
use anyhow::{Context, Result, bail, ensure};
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Who races, over what. Programs are given as `PATH`, or as `NAME=PATH` to tell several of a kind apart.
#[derive(Debug, Args)]
pub struct Arguments {
    /// A release build of skidder; may be repeated, to compare two of them.
    #[arg(long, value_name = "[NAME=]PATH")]
    skidder: Vec<String>,
    /// Filebeat 9.3 or later.
    #[arg(long, value_name = "[NAME=]PATH")]
    filebeat: Vec<String>,
    /// Fluent Bit.
    #[arg(long, value_name = "[NAME=]PATH")]
    fluent_bit: Vec<String>,
    /// Vector.
    #[arg(long, value_name = "[NAME=]PATH")]
    vector: Vec<String>,
    /// An OpenTelemetry Collector with the filelog receiver, the Elasticsearch exporter and the file storage.
    #[arg(long, value_name = "[NAME=]PATH")]
    otelcol: Vec<String>,
    /// vlagent of VictoriaLogs, with its collector of files.
    #[arg(long, value_name = "[NAME=]PATH")]
    vlagent: Vec<String>,

    /// How the text lies on the disk.
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["plain", "gz"])]
    form: Vec<Form>,
    /// In how many files.
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["one", "many"])]
    files: Vec<Files>,
    /// What is done with a line.
    #[arg(
        long, value_enum, value_delimiter = ',',
        default_values = ["none", "ndjson", "container-json", "ten-processors"]
    )]
    processing: Vec<Work>,
    /// Level of gzip for the bodies of requests.
    #[arg(long, value_delimiter = ',', default_values = ["0", "1"], value_parser = clap::value_parser!(u8).range(0..=9))]
    level: Vec<u8>,
    /// When lines are there: `catch-up`, or lines written each second.
    #[arg(long, value_delimiter = ',', default_values = ["catch-up", "1000", "10000"])]
    pace: Vec<Pace>,
    /// No cells, only faults.
    #[arg(long)]
    no_cells: bool,
    /// What goes wrong: `all`, `none`, or some.
    #[arg(long, value_delimiter = ',', default_values = ["all"])]
    faults: Vec<String>,

    /// Measured runs of each peer in each cell, behind one for warming up; 4 at least tell differences from chance.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Sizes: 1 is one file of 48 GB, and 4,150 files of 10 MB.
    #[arg(long, default_value_t = 0.005)]
    scale: f64,
    /// The same seed gives the same lines.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How long lines are written at a steady pace, in seconds.
    #[arg(long, default_value_t = 20.0)]
    steady: f64,
    /// Lines of a fault scenario.
    #[arg(long, default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(1..1_000_000_000))]
    fault_lines: u64,
    /// How long nothing may come before the rest counts as lost, in seconds.
    #[arg(long, default_value_t = 30.0)]
    patience: f64,
    /// Folder for the files, which are kept for the next run.
    #[arg(long, default_value = "target/bench")]
    work: PathBuf,
    /// Also write the tables to this file, as Markdown.
    #[arg(long)]
    table: Option<PathBuf>,
    /// Write a page with plots to this file.
    #[arg(long)]
    html: Option<PathBuf>,
}

/// Races, writes the reports and returns the tables. A line that skidder lost is an error behind them.
pub fn run(arguments: &Arguments) -> Result<(String, Result<()>)> {
    let race = Race {
        peers: arguments.peers()?,
        cells: arguments.cells(),
        scenarios: scenarios(&arguments.faults)?,
        runs: arguments.runs,
        times: Times { steady: seconds(arguments.steady)?, patience: seconds(arguments.patience)? },
        fault_lines: arguments.fault_lines,
    };
    ensure!(!race.peers.is_empty(), "nobody races: give a program, as `--skidder PATH`");
    allow_many_open_files()?;
    let work = std::path::absolute(&arguments.work)?;
    let inputs = Inputs::new(&work, arguments.scale, arguments.seed)?;
    let results = race.run(&inputs);
    let about = about(arguments, &race.peers)?;
    let text = tables(&race.peers, &results, &about);
    if let Some(path) = &arguments.table {
        write(path, &text)?;
    }
    if let Some(path) = &arguments.html {
        write(path, &page(&race.peers, &results, &about))?;
    }
    Ok((text, ours_is_whole(&race.peers, &results)))
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write `{}`", path.display()))
}

fn seconds(number: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(number)
        .with_context(|| format!("`{number}` is no number of seconds"))
}

/// What each `--faults` names.
fn scenarios(given: &[String]) -> Result<Vec<Scenario>> {
    let all = || Scenario::value_variants().to_vec();
    match given {
        [one] if one == "all" => Ok(all()),
        [one] if one == "none" => Ok(Vec::new()),
        _ => given.iter().map(|name| scenario(name)).collect(),
    }
}

fn scenario(name: &str) -> Result<Scenario> {
    Scenario::from_str(name, false).or_else(|_| {
        let known: Vec<String> = Scenario::value_variants()
            .iter()
            .filter_map(|scenario| Some(scenario.to_possible_value()?.get_name().to_owned()))
            .collect();
        bail!("`--faults {name}`: expected `all`, `none`, or some of {}", known.join(", "))
    })
}

impl Arguments {
    fn peers(&self) -> Result<Vec<Peer>> {
        let given = [
            (Kind::Skidder, &self.skidder),
            (Kind::Filebeat, &self.filebeat),
            (Kind::FluentBit, &self.fluent_bit),
            (Kind::Vector, &self.vector),
            (Kind::Otelcol, &self.otelcol),
            (Kind::Vlagent, &self.vlagent),
        ];
        let peers: Vec<Peer> = given
            .iter()
            .flat_map(|(kind, paths)| paths.iter().map(|path| Peer::of(*kind, path)))
            .collect::<Result<_>>()?;
        for (number, peer) in peers.iter().enumerate() {
            let is_new = peers[..number].iter().all(|other| other.name != peer.name);
            ensure!(is_new, "two programs are called `{}`; name them, as `NAME=PATH`", peer.name);
        }
        Ok(peers)
    }

    fn cells(&self) -> Vec<Cell> {
        if self.no_cells {
            return Vec::new();
        }
        let matrix = Matrix {
            forms: self.form.clone(),
            files: self.files.clone(),
            works: self.processing.clone(),
            levels: self.level.clone(),
            paces: self.pace.clone(),
        };
        matrix.cells()
    }
}

/// All that is needed to repeat the race, without paths of this machine.
fn about(arguments: &Arguments, peers: &[Peer]) -> Result<String> {
    let versions: Vec<String> =
        peers.iter().map(|peer| format!("{} {}", peer.name, peer.version)).collect();
    let options: Vec<String> = std::env::args().skip(2).collect();
    let options: Vec<&str> = options.iter().map(|option| without_folders(option)).collect();
    Ok(format!(
        "{}. {}. Not given: {}. Medians of {} interleaved runs behind one for warming up, ± the largest distance from \
         the median; × and p against the first (Mann-Whitney U, ~ is no significant difference). CPU is user and \
         system time of the whole process, or of {} s at a steady pace. Lines come from seed {}, sizes are {} of the \
         original ones. Every peer has its default settings, but for what the work needs; documents differ in their \
         fields. Command: `skidder-bench peers {}`.",
        provenance()?,
        versions.join(", "),
        not_given(peers),
        arguments.runs,
        arguments.steady,
        arguments.seed,
        arguments.scale,
        options.join(" "),
    ))
}

/// The kinds that are not given.
fn not_given(peers: &[Peer]) -> String {
    let kinds = [Kind::Filebeat, Kind::FluentBit, Kind::Vector, Kind::Otelcol, Kind::Vlagent];
    let absent: Vec<&str> = kinds
        .into_iter()
        .filter(|kind| peers.iter().all(|peer| peer.kind != *kind))
        .map(Kind::name)
        .collect();
    if absent.is_empty() { "none".to_owned() } else { absent.join(", ") }
}

/// A path's last part, anything else as it is.
fn without_folders(option: &str) -> &str {
    option.rsplit('/').next().unwrap_or(option)
}

/// Whether skidder ran everywhere, and lost and invented nothing.
fn ours_is_whole(peers: &[Peer], results: &Results) -> Result<()> {
    let mut wrong = Vec::new();
    for (number, peer) in peers.iter().enumerate() {
        if peer.kind != Kind::Skidder {
            continue;
        }
        let of_cells = results.cells.iter().map(|(cell, entries)| {
            let entry = &entries[number];
            (cell.name(), entry.left_out.clone().map_or(Ok(entry.loss), Err))
        });
        let of_faults = results
            .faults
            .iter()
            .map(|(scenario, judged)| (scenario.name().to_owned(), judged[number].clone()));
        for (place, outcome) in of_cells.chain(of_faults) {
            match outcome {
                Ok(loss) if loss.missing == 0 && loss.unknown == 0 => {}
                Ok(loss) => wrong.push(format!("{}, {place}: {loss:?}", peer.name)),
                Err(reason) => wrong.push(format!("{}, {place}: {reason}", peer.name)),
            }
        }
    }
    ensure!(wrong.is_empty(), "lines are missing, or were not looked at:\n{}", wrong.join("\n"));
    Ok(())
}
