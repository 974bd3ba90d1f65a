//! The files that the peers read, made once from a seed and kept.

use super::cell::{Cell, Files, Form};
use crate::stage;
use anyhow::{Context, Result, ensure};
use skidder_workload::{self as workload, Kind, Plan, Workload};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The size of one file at scale 1.
const ONE_BYTES: f64 = 48e9;
/// How many files there are at scale 1, and the size of each.
const MANY_FILES: f64 = 4_150.0;
const MANY_BYTES: f64 = 10e6;
/// At small scales files become smaller instead of fewer.
const MANY_FILES_MIN: u64 = 4;
/// Lines that are made to measure the length of a line.
const SAMPLE_LINES: u64 = 2_000;

/// Makes and keeps files.
#[derive(Debug)]
pub struct Inputs {
    folder: PathBuf,
    scale: f64,
    seed: u64,
}

/// What a peer reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// A glob pattern.
    pub paths: String,
    /// Lines in all of them, numbered from 0.
    pub lines: u64,
}

impl Inputs {
    /// Files are made in `folder`; `scale` 1 is one file of 48 GB and 4,150 of 10 MB.
    pub fn new(folder: &Path, scale: f64, seed: u64) -> Result<Self> {
        ensure!(scale > 0.0 && scale <= 1.0, "`--scale` must be above 0 and at most 1");
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create `{}`", folder.display()))?;
        Ok(Self { folder: folder.to_owned(), scale, seed })
    }

    /// Where files are made.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Of all files.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// What the cell reads, made if it is not there.
    pub fn of(&self, cell: &Cell) -> Result<Input> {
        let kind = cell.work.lines();
        let (files, each) = sizes(cell.files, self.scale, line_bytes(kind, self.seed));
        let name = format!("peers-{}-{files}-{each}-{}", kind.name(), self.seed);
        let plain = stage::kept(&self.folder, &name, |folder| {
            fs::create_dir_all(folder)?;
            for file in 0..files {
                let plan =
                    Plan { kind, lines: each, seed: self.seed, first: file * each, members: 0 };
                workload::generate(&plan, &folder.join(format!("app-{file:05}.log")))?;
            }
            Ok(())
        })?;
        let (folder, suffix) = match cell.form {
            Form::Plain => (plain, "log"),
            Form::Gz => {
                let pack = |folder: &Path| gzip_all(&plain, folder);
                (stage::kept(&self.folder, &format!("{name}-gz"), pack)?, "log.gz")
            }
        };
        let paths = folder.join(format!("*.{suffix}")).to_string_lossy().into_owned();
        Ok(Input { paths, lines: files * each })
    }
}

/// Mean length of a line of this kind.
fn line_bytes(kind: Kind, seed: u64) -> f64 {
    let mut workload = Workload::of(kind, seed, 0);
    let mut text = Vec::new();
    for _ in 0..SAMPLE_LINES {
        workload.line(&mut text);
    }
    text.len() as f64 / SAMPLE_LINES as f64
}

/// How many files, and how many lines in each.
fn sizes(files: Files, scale: f64, line_bytes: f64) -> (u64, u64) {
    let (number, each_bytes) = match files {
        Files::One => (1, ONE_BYTES * scale),
        Files::Many => {
            let number = ((MANY_FILES * scale).round() as u64).max(MANY_FILES_MIN);
            (number, MANY_FILES * MANY_BYTES * scale / number as f64)
        }
    };
    (number, ((each_bytes / line_bytes) as u64).max(1))
}

/// Compresses each file of a folder with the `gzip` of this machine.
fn gzip_all(plain: &Path, packed: &Path) -> Result<()> {
    fs::create_dir_all(packed)?;
    for entry in fs::read_dir(plain)? {
        let path = entry?.path();
        let name = path.file_name().context("a file of this folder has a name")?;
        let out = File::create(packed.join(format!("{}.gz", name.to_string_lossy())))?;
        let status = Command::new("gzip").arg("-6c").arg(&path).stdout(out).status();
        ensure!(status.context("cannot start `gzip`")?.success(), "`gzip` failed");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::cell::{Pace, Work};
    use super::*;
    use flate2::read::MultiGzDecoder;
    use std::io::Read;

    const CELL: Cell = Cell {
        form: Form::Plain,
        files: Files::Many,
        work: Work::Ndjson,
        level: 0,
        pace: Pace::CatchUp,
    };

    fn text(input: &Input) -> Vec<u8> {
        let folder = Path::new(&input.paths).parent().unwrap();
        let mut paths: Vec<PathBuf> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        let mut text = Vec::new();
        for path in paths {
            let bytes = fs::read(&path).unwrap();
            if path.extension().unwrap() == "gz" {
                MultiGzDecoder::new(bytes.as_slice()).read_to_end(&mut text).unwrap();
            } else {
                text.extend(bytes);
            }
        }
        text
    }

    #[test]
    fn the_original_sizes_are_those_at_scale_1() {
        assert_eq!(sizes(Files::One, 1.0, 240.0), (1, 200_000_000));
        assert_eq!(sizes(Files::Many, 1.0, 250.0), (4_150, 40_000));
        let (files, each) = sizes(Files::Many, 0.000_01, 250.0);
        assert_eq!((files, each), (4, 415));
    }

    #[test]
    fn a_seed_gives_the_same_numbered_lines_in_each_form() {
        let folder = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        let inputs = Inputs::new(folder.path(), 0.000_002, 7).unwrap();
        let plain = inputs.of(&CELL).unwrap();
        let packed = inputs.of(&Cell { form: Form::Gz, ..CELL }).unwrap();
        let again = Inputs::new(other.path(), 0.000_002, 7).unwrap().of(&CELL).unwrap();
        let changed = Inputs::new(other.path(), 0.000_002, 8).unwrap().of(&CELL).unwrap();
        assert_eq!(text(&plain), text(&packed));
        assert_eq!(text(&plain), text(&again));
        assert_ne!(text(&plain), text(&changed));
        let numbers: Vec<u64> =
            text(&plain).split(|&byte| byte == b'\n').filter_map(workload::sequence_of).collect();
        assert_eq!(numbers, (0..plain.lines).collect::<Vec<u64>>());
    }

    #[test]
    fn a_scale_beyond_the_original_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Inputs::new(folder.path(), 1.5, 1).is_err());
        assert!(Inputs::new(folder.path(), 0.0, 1).is_err());
    }
}
