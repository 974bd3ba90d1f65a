//! The programs that race: how each is configured for a cell, and what it cannot do.

use super::cell::{Cell, Form, Work};
use super::{collector, filebeat, fluent_bit, vector, vlagent};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A program of one of the kinds below.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// In tables: the kind, or what the user calls it (`NAME=PATH`).
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// Where it is.
    pub program: PathBuf,
    /// Its own version output.
    pub version: String,
}

/// What can race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// This project.
    Skidder,
    /// <https://www.elastic.co/docs/reference/beats/filebeat/>
    Filebeat,
    /// <https://docs.fluentbit.io/manual/data-pipeline/inputs/tail>
    FluentBit,
    /// <https://vector.dev/docs/reference/configuration/sources/file/>
    Vector,
    /// A collector with the filelog receiver, the Elasticsearch exporter and the file storage.
    Otelcol,
    /// <https://docs.victoriametrics.com/victorialogs/vlagent/>
    Vlagent,
}

/// Whether a peer can do the work of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// As the others do it.
    Yes,
    /// With a difference that the report names.
    But(&'static str),
    /// Not at all, because of this.
    No(&'static str),
}

/// What a peer has to do.
#[derive(Clone, Debug)]
pub struct Job<'a> {
    /// Form, work and level.
    pub cell: Cell,
    /// The files, as a glob pattern.
    pub paths: &'a str,
    /// The counting server.
    pub url: &'a str,
    /// Whether it has to survive being killed: for peers whose defaults do not.
    pub durable: bool,
    /// A folder of its own, for its configuration and its state.
    pub home: &'a Path,
}

impl Kind {
    /// Its usual name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Skidder => "skidder",
            Self::Filebeat => "Filebeat",
            Self::FluentBit => "Fluent Bit",
            Self::Vector => "Vector",
            Self::Otelcol => "OTel Collector",
            Self::Vlagent => "vlagent",
        }
    }

    /// Whether it can do this work, by its documentation.
    pub fn fit(self, cell: &Cell) -> Fit {
        match self {
            Self::Skidder | Self::Filebeat => Fit::Yes,
            _ if cell.work == Work::TenProcessors => {
                Fit::No("the ten processors are Filebeat's; it has no equal of them")
            }
            Self::FluentBit if cell.form == Form::Gz => Fit::No("its `tail` input reads no `.gz`"),
            Self::FluentBit if cell.level > 0 => {
                Fit::But("its gzip has no level that can be set: bodies have its own level")
            }
            Self::FluentBit | Self::Vector | Self::Otelcol => Fit::Yes,
            Self::Vlagent if cell.form == Form::Gz => Fit::No("it reads no `.gz`"),
            Self::Vlagent if cell.work == Work::ContainerJson => {
                Fit::No("it reads container logs only on a Kubernetes node")
            }
            Self::Vlagent if cell.level == 0 => Fit::No("it always compresses bodies"),
            Self::Vlagent => Fit::But(
                "bodies are JSON lines in zstd, its only compression; lines that are JSON are parsed without being asked for",
            ),
        }
    }

    /// Whether it can be configured to read compressed files next to growing ones.
    pub fn reads_gzip(self) -> bool {
        !matches!(self, Self::FluentBit | Self::Vlagent)
    }

    fn version_argument(self) -> &'static str {
        match self {
            Self::Skidder | Self::Filebeat => "version",
            Self::FluentBit | Self::Vector | Self::Otelcol => "--version",
            Self::Vlagent => "-version",
        }
    }
}

impl Peer {
    /// A program by `PATH` or `NAME=PATH`, which is run for its version.
    pub fn of(kind: Kind, given: &str) -> Result<Self> {
        let (name, path) = given.split_once('=').unwrap_or((kind.name(), given));
        let program =
            std::path::absolute(path).with_context(|| format!("no such path: `{path}`"))?;
        let output = Command::new(&program)
            .arg(kind.version_argument())
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("cannot start `{}` for {name}", program.display()))?;
        let said = [output.stdout, output.stderr].concat();
        let version = version_in(&String::from_utf8_lossy(&said)).to_owned();
        Ok(Self { name: name.to_owned(), kind, program, version })
    }

    /// Writes its configuration for the job and returns the command that runs it.
    pub fn command(&self, job: &Job<'_>) -> Result<Command> {
        let mut command = Command::new(&self.program);
        let prepared = match self.kind {
            Kind::Skidder => filebeat::prepare(job, &mut command, true),
            Kind::Filebeat => filebeat::prepare(job, &mut command, false),
            Kind::FluentBit => fluent_bit::prepare(job, &mut command),
            Kind::Vector => vector::prepare(job, &mut command),
            Kind::Otelcol => collector::prepare(job, &mut command),
            Kind::Vlagent => vlagent::prepare(job, &mut command),
        };
        prepared.with_context(|| format!("cannot configure {}", self.name))?;
        command.current_dir(job.home).stdin(Stdio::null()).stdout(Stdio::null());
        Ok(command)
    }
}

/// The first word that looks like a version: digits, a full stop, digits.
fn version_in(text: &str) -> &str {
    let is_version = |word: &str| {
        let mut parts = word.split('.');
        let mut number = || parts.next().is_some_and(|part| part.parse::<u32>().is_ok());
        number() && number()
    };
    let words = text.split(|letter: char| letter.is_whitespace() || ",;()".contains(letter));
    let mut words = words.map(|word| word.trim_start_matches('v'));
    words.find(|word| is_version(word)).unwrap_or("unknown version")
}

#[cfg(test)]
mod tests {
    use super::super::cell::{Files, Pace};
    use super::*;

    const CELL: Cell = Cell {
        form: Form::Plain,
        files: Files::One,
        work: Work::None,
        level: 0,
        pace: Pace::CatchUp,
    };

    #[test]
    fn a_version_is_found_among_other_words() {
        for (text, expected) in [
            ("filebeat version 9.6.0 (amd64), libbeat 9.6.0", "9.6.0"),
            ("Fluent Bit v5.1.1\nGit commit:", "5.1.1"),
            ("vector 0.58.0 (x86_64-unknown-linux-gnu)", "0.58.0"),
            ("no version at all", "unknown version"),
        ] {
            assert_eq!(version_in(text), expected);
        }
    }

    #[test]
    fn what_a_peer_cannot_do_has_a_reason() {
        let gz = Cell { form: Form::Gz, ..CELL };
        assert_eq!(Kind::FluentBit.fit(&gz), Fit::No("its `tail` input reads no `.gz`"));
        assert!(matches!(Kind::Vlagent.fit(&CELL), Fit::No(_)));
        assert!(matches!(Kind::Vlagent.fit(&Cell { level: 1, ..CELL }), Fit::But(_)));
        let processors = Cell { work: Work::TenProcessors, ..CELL };
        for kind in [Kind::FluentBit, Kind::Vector, Kind::Otelcol, Kind::Vlagent] {
            assert!(matches!(kind.fit(&processors), Fit::No(_)), "{kind:?}");
        }
        assert_eq!(Kind::Filebeat.fit(&processors), Fit::Yes);
    }

    #[test]
    fn every_peer_gets_the_paths_and_the_server_of_its_job() {
        for kind in [
            Kind::Skidder,
            Kind::Filebeat,
            Kind::FluentBit,
            Kind::Vector,
            Kind::Otelcol,
            Kind::Vlagent,
        ] {
            for work in [Work::None, Work::Ndjson, Work::ContainerJson, Work::TenProcessors] {
                let cell = Cell { work, level: 1, ..CELL };
                if matches!(kind.fit(&cell), Fit::No(_)) {
                    continue;
                }
                let home = tempfile::tempdir().unwrap();
                let url = "http://127.0.0.1:4321";
                let job = Job { cell, paths: "/logs/*.log", url, durable: true, home: home.path() };
                let peer = Peer {
                    name: "it".to_owned(),
                    kind,
                    program: PathBuf::from("/bin/it"),
                    version: String::new(),
                };
                let mut written = format!("{:?}", peer.command(&job).unwrap());
                for file in std::fs::read_dir(home.path()).unwrap().flatten() {
                    written.push_str(&std::fs::read_to_string(file.path()).unwrap_or_default());
                }
                assert!(written.contains("/logs/*.log") && written.contains("4321"), "{written}");
            }
        }
    }
}
