//! The matrix of the race: which kinds of work there are, and which of them make sense.

use clap::ValueEnum;
use skidder_workload::Kind;
use std::str::FromStr;

/// How the text lies on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// As text.
    Plain,
    /// Compressed by `gzip -6`.
    Gz,
}

/// In how many files the text lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Files {
    /// In one; 48 GB at scale 1.
    One,
    /// In many; 4,150 of 10 MB at scale 1.
    Many,
}

/// The processing of each line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Work {
    /// Nothing: a line becomes an event.
    None,
    /// It is parsed as JSON.
    Ndjson,
    /// A record of a container runtime (CRI) is unpacked, and what is in it is parsed as JSON.
    ContainerJson,
    /// Ten processors of Filebeat take an access log to pieces.
    TenProcessors,
}

/// When the lines are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// All at the start: how fast is it, and what does a line cost?
    CatchUp,
    /// So many are written each second: what does it cost to keep up?
    Steady(u32),
}

/// One combination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// How the text lies on the disk.
    pub form: Form,
    /// In how many files.
    pub files: Files,
    /// The processing of each line.
    pub work: Work,
    /// Level of gzip for the bodies of requests; 0 for none.
    pub level: u8,
    /// When the lines are there.
    pub pace: Pace,
}

/// What to combine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matrix {
    /// All forms.
    pub forms: Vec<Form>,
    /// All numbers of files.
    pub files: Vec<Files>,
    /// All kinds of work.
    pub works: Vec<Work>,
    /// All levels.
    pub levels: Vec<u8>,
    /// All paces.
    pub paces: Vec<Pace>,
}

impl Matrix {
    /// Every combination that makes sense, the last dimension changing first.
    pub fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for &form in &self.forms {
            for &files in &self.files {
                for &work in &self.works {
                    for &level in &self.levels {
                        let of_pace = |&pace| Cell { form, files, work, level, pace };
                        cells.extend(self.paces.iter().map(of_pace));
                    }
                }
            }
        }
        // Compressed files do not grow line by line.
        cells.retain(|cell| cell.form == Form::Plain || cell.pace == Pace::CatchUp);
        cells
    }
}

impl Cell {
    /// In tables.
    pub fn name(&self) -> String {
        let form = match self.form {
            Form::Plain => "plain",
            Form::Gz => "gz",
        };
        let files = match self.files {
            Files::One => "one file",
            Files::Many => "many files",
        };
        let pace = match self.pace {
            Pace::CatchUp => "catch up".to_owned(),
            Pace::Steady(rate) => format!("{rate} lines/s"),
        };
        format!("{form}, {files}, {}, level {}, {pace}", self.work.name(), self.level)
    }
}

impl Work {
    /// In tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "no parsing",
            Self::Ndjson => "ndjson",
            Self::ContainerJson => "container + JSON",
            Self::TenProcessors => "ten processors",
        }
    }

    /// The lines that this work is made for.
    pub fn lines(self) -> Kind {
        match self {
            Self::None => Kind::Mixed,
            Self::Ndjson => Kind::Json,
            Self::ContainerJson => Kind::ContainerJson,
            Self::TenProcessors => Kind::Apache,
        }
    }
}

impl FromStr for Pace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.parse()) {
            ("catch-up", _) => Ok(Self::CatchUp),
            (_, Ok(rate @ 1..)) => Ok(Self::Steady(rate)),
            _ => Err("expected `catch-up`, or a number of lines a second".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compressed_file_is_only_caught_up_with() {
        let matrix = Matrix {
            forms: vec![Form::Plain, Form::Gz],
            files: vec![Files::One, Files::Many],
            works: vec![Work::None, Work::Ndjson, Work::ContainerJson, Work::TenProcessors],
            levels: vec![0, 1],
            paces: vec![Pace::CatchUp, Pace::Steady(1_000), Pace::Steady(10_000)],
        };
        let cells = matrix.cells();
        assert_eq!(cells.len(), 16 * 3 + 16);
        let mut names: Vec<String> = cells.iter().map(Cell::name).collect();
        assert_eq!(names[1], "plain, one file, no parsing, level 0, 1000 lines/s");
        names.sort();
        names.dedup();
        assert_eq!(names.len(), cells.len());
    }

    #[test]
    fn a_pace_is_a_word_or_a_rate() {
        assert_eq!("catch-up".parse(), Ok(Pace::CatchUp));
        assert_eq!("1000".parse(), Ok(Pace::Steady(1_000)));
        for wrong in ["0", "fast", "-1", ""] {
            assert!(wrong.parse::<Pace>().is_err(), "{wrong}");
        }
    }
}
