//! The common part of every experiment: the program, its input files, its configuration.

use crate::rows::write_journal;
use crate::sink::Sink;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use skidder_workload::{self as workload, Kind, Plan, Workload};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// In the names of kept files; raise it when the bytes of the workload change.
const WORKLOAD_VERSION: u32 = 1;
/// All workloads of the benchmark come from this seed.
const SEED: u64 = 1;

/// Where and with what the experiments run.
#[derive(Debug)]
pub struct Stage {
    /// The program that is measured.
    pub skidder: PathBuf,
    /// The same with the feature `count-allocations`.
    pub counting: PathBuf,
    /// Keeps workloads from one run to the next; experiments leave nothing else behind.
    pub work: PathBuf,
    /// `HOST:PORT` of a real server, if there is one.
    pub elasticsearch: Option<String>,
    /// The same for a real broker of Kafka.
    pub kafka: Option<String>,
    /// The program of Filebeat.
    pub filebeat: Option<PathBuf>,
    /// The folder of a real API server of Kubernetes.
    pub kube_apiserver: Option<PathBuf>,
    /// Runs of which the median is taken.
    pub runs: u32,
    /// Lines of the main workload.
    pub lines: u64,
    /// Rotations of the burst.
    pub rotations: u32,
}

/// The program's home for one run; removed with it.
#[derive(Debug)]
pub struct Home {
    directory: TempDir,
}

/// The differences between the configurations.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    /// Read `.gz` files.
    pub compressed: bool,
    /// Log at debug level, which logs resumed readers.
    pub debug: bool,
    /// `parsers` of the input, as YAML in one line; empty for none.
    pub parsers: &'static str,
    /// `processors` of all inputs, as YAML in one line; empty for none.
    pub processors: &'static str,
    /// Compress the bodies of requests, at level 1.
    pub gzip_bodies: bool,
    /// Give an event to the output at once, instead of waiting for more of them.
    pub at_once: bool,
    /// `queue.mem.events`; 0 for the default.
    pub queue_events: u32,
}

impl Stage {
    /// Makes the folder of the kept files, and checks that the program is there.
    pub fn prepare(&self) -> Result<()> {
        fs::create_dir_all(&self.work)
            .with_context(|| format!("cannot create `{}`", self.work.display()))?;
        ensure!(self.skidder.is_file(), "`{}` is not there; build it", self.skidder.display());
        ensure!(self.runs > 0 && self.lines > 0, "`--runs` and `--lines` must be at least 1");
        Ok(())
    }

    /// The main workload, plain.
    pub fn plain(&self, lines: u64) -> Result<PathBuf> {
        let plan = Plan { kind: Kind::Mixed, lines, seed: SEED, first: 0, members: 0 };
        self.kept(&format!("app-{lines}.log"), |path| workload::generate(&plan, path).map(|_| ()))
    }

    /// The main workload, compressed by the `gzip` of this machine.
    pub fn gzipped(&self, lines: u64) -> Result<PathBuf> {
        let plain = self.plain(lines)?;
        self.packed(&plain)
    }

    /// A file of this folder, compressed by the `gzip` of this machine.
    pub fn packed(&self, plain: &Path) -> Result<PathBuf> {
        self.packed_by(plain, "gz", "gzip")
    }

    /// A file of this folder as a tool of this machine compresses it by default.
    pub fn packed_by(&self, plain: &Path, end: &str, tool: &str) -> Result<PathBuf> {
        let name = plain.file_name().context("a file of this folder has a name")?;
        self.kept(&format!("{}.{end}", name.to_string_lossy()), |path| {
            let out = File::create(path)?;
            let status = Command::new(tool).arg("-c").arg(plain).stdout(out).status();
            let status = status.with_context(|| format!("cannot start `{tool}`"))?;
            ensure!(status.success(), "`{tool}` failed");
            Ok(())
        })
    }

    /// A plain file of `lines` lines of `line_bytes` bytes each, cut from the text of the main workload.
    pub fn cut(&self, line_bytes: usize, lines: usize) -> Result<PathBuf> {
        self.kept(&format!("cut-{line_bytes}-{lines}.log"), |path| {
            let mut workload = Workload::new(SEED, 0);
            let (mut text, mut rest) = (Vec::new(), Vec::new());
            for _ in 0..lines {
                while rest.len() < line_bytes {
                    workload.line(&mut rest);
                    rest.retain(|byte| *byte != b'\n');
                }
                text.extend(rest.drain(..line_bytes));
                text.push(b'\n');
            }
            Ok(fs::write(path, text)?)
        })
    }

    /// A plain file of one kind with `records` records, and how many lines it has.
    pub fn of_kind(&self, kind: Kind, records: u64) -> Result<(PathBuf, u64)> {
        let plan = Plan { kind, lines: records, seed: SEED, first: 0, members: 0 };
        let path = self.kept(&format!("{}-{records}.log", kind.name()), |path| {
            workload::generate(&plan, path).map(|_| ())
        })?;
        let text = fs::read(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
        Ok((path, memchr::memchr_iter(b'\n', &text).count() as u64))
    }

    /// Plain files of one kind, numbered through, with `lines` lines in all.
    pub fn several_of_kind(&self, kind: Kind, files: u64, lines: u64) -> Result<Vec<PathBuf>> {
        let each = lines / files;
        let names = (0..files).map(|file| {
            let name = format!("{}-{lines}-{file}.log", kind.name());
            self.kept(&name, |path| {
                let plan = Plan { kind, lines: each, seed: SEED, first: file * each, members: 0 };
                workload::generate(&plan, path).map(|_| ())
            })
        });
        names.collect()
    }

    /// A single-member `.gz` of `lines` lines, made faster than `gzip` does.
    pub fn large_gzipped(&self, lines: u64) -> Result<PathBuf> {
        let plan = Plan { kind: Kind::Mixed, lines, seed: SEED, first: 0, members: 1 };
        self.kept(&format!("large-{lines}.log.gz"), |path| {
            workload::generate(&plan, path).map(|_| ())
        })
    }

    /// A folder of `files` different `.gz` files of `lines` lines each, numbered through.
    pub fn many_gzipped(&self, files: u64, lines: u64) -> Result<PathBuf> {
        self.many(&format!("many-{files}-{lines}"), ".log.gz", files, lines, 1)
    }

    /// The same lines in plain files.
    pub fn many_plain(&self, files: u64, lines: u64) -> Result<PathBuf> {
        self.many(&format!("many-plain-{files}-{lines}"), ".log", files, lines, 0)
    }

    fn many(
        &self,
        name: &str,
        suffix: &str,
        files: u64,
        lines: u64,
        members: u64,
    ) -> Result<PathBuf> {
        self.kept(name, |folder| {
            fs::create_dir_all(folder)?;
            for file in 0..files {
                let plan =
                    Plan { kind: Kind::Mixed, lines, seed: SEED, first: file * lines, members };
                workload::generate(&plan, &folder.join(format!("app-{file:05}{suffix}")))?;
            }
            Ok(())
        })
    }

    /// A folder with the files of a journal.
    pub fn journal(&self, entries: u64) -> Result<PathBuf> {
        self.kept(&format!("journal-{entries}"), |folder| write_journal(folder, entries))
    }

    /// A folder of folders of a thousand small plain files each, numbered through.
    pub fn many_small(&self, files: u64, lines: u64) -> Result<PathBuf> {
        self.kept(&format!("small-{files}-{lines}"), |folder| {
            let mut workload = Workload::new(SEED, 0);
            let mut text = Vec::new();
            for file in 0..files {
                let part = folder.join(format!("{:03}", file / 1_000));
                fs::create_dir_all(&part)?;
                text.clear();
                for _ in 0..lines {
                    workload.line(&mut text);
                }
                fs::write(part.join(format!("app-{file:06}.log")), &text)?;
            }
            Ok(())
        })
    }

    fn kept(&self, name: &str, make: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
        kept(&self.work, name, make)
    }

    /// A home with a configuration that ships `paths` to `sink`.
    pub fn home(&self, paths: &str, sink: &Sink, settings: Settings) -> Result<Home> {
        self.home_of(&configuration(paths, &sink.url(), settings))
    }

    /// A home with a configuration that ships `paths` to several sinks, each an output of its own that gets events
    /// at once.
    pub fn home_of_several(&self, paths: &str, sinks: &[&Sink]) -> Result<Home> {
        let mut text = configuration(paths, "", Settings::default());
        let single = text.find("output.elasticsearch").context("the output comes last")?;
        text.truncate(single);
        text.push_str("queue.mem.flush.timeout: 0s\noutputs:\n");
        for (number, sink) in sinks.iter().enumerate() {
            let url = Value::from(sink.url());
            text.push_str(&format!(
                "  - id: output-{number}\n    elasticsearch: {{hosts: [{url}], compression_level: 0, \
                 timeout: 1h}}\n"
            ));
        }
        self.home_of(&text)
    }

    /// A home with this configuration.
    pub fn home_of(&self, configuration: &str) -> Result<Home> {
        let directory = tempfile::Builder::new().prefix("home-").tempdir_in(&self.work)?;
        let home = Home { directory };
        fs::write(home.config(), configuration)?;
        Ok(home)
    }
}

impl Home {
    fn config(&self) -> PathBuf {
        self.directory.path().join("filebeat.yml")
    }

    /// Where standard error of the program goes.
    pub fn log(&self) -> PathBuf {
        self.directory.path().join("stderr")
    }

    /// The command that runs `program` with this home.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.arg("-e").arg("-c").arg(self.config());
        command.arg("--path.data").arg(self.directory.path().join("data"));
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command
    }
}

/// Makes something in `folder` once. It gets its name only when it is complete.
pub(crate) fn kept(
    folder: &Path,
    name: &str,
    make: impl FnOnce(&Path) -> Result<()>,
) -> Result<PathBuf> {
    let path = folder.join(format!("v{WORKLOAD_VERSION}-{name}"));
    if path.metadata().is_ok() {
        return Ok(path);
    }
    crate::measure::note(&format!("making {}", path.display()));
    let unfinished = folder.join("unfinished");
    match unfinished.metadata() {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(&unfinished)?,
        Ok(_) => fs::remove_file(&unfinished)?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(error.into()),
    }
    make(&unfinished).with_context(|| format!("cannot make `{}`", path.display()))?;
    fs::rename(&unfinished, &path)?;
    Ok(path)
}

/// Text is written as JSON strings, which YAML reads as they are.
fn configuration(paths: &str, url: &str, settings: Settings) -> String {
    let compression = if settings.compressed { "    compression: auto\n" } else { "" };
    let parsers = match settings.parsers {
        "" => String::new(),
        list => format!("    parsers: {list}\n"),
    };
    let processors = match settings.processors {
        "" => String::new(),
        list => format!("processors: {list}\n"),
    };
    let level_of_bodies = u8::from(settings.gzip_bodies);
    let queue = if settings.at_once { "queue.mem.flush.timeout: 0s\n" } else { "" };
    let events = match settings.queue_events {
        0 => String::new(),
        events => format!("queue.mem: {{events: {events}, flush.min_events: {}}}\n", events / 2),
    };
    let level = if settings.debug { "logging.level: debug\n" } else { "" };
    format!(
        "filebeat.inputs:\n  - type: filestream\n    id: bench\n    paths: [{}]\n{compression}{parsers}\
         output.elasticsearch:\n  hosts: [{}]\n  compression_level: {level_of_bodies}\n{queue}{events}{level}{processors}",
        Value::from(paths),
        Value::from(url),
    )
}

/// Raises the limit of open files for this process and its children as far as allowed, and returns it.
pub fn allow_many_open_files() -> Result<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Nofile).maximum;
    let raised = Rlimit { current: maximum, maximum };
    setrlimit(Resource::Nofile, raised).context("cannot raise `ulimit -n` to its maximum")?;
    Ok(maximum.unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(work: &Path) -> Stage {
        Stage {
            skidder: PathBuf::from("true"),
            counting: PathBuf::from("true"),
            work: work.to_owned(),
            elasticsearch: None,
            kafka: None,
            filebeat: None,
            kube_apiserver: None,
            runs: 1,
            lines: 10,
            rotations: 1,
        }
    }

    #[test]
    fn a_workload_is_made_once() {
        let work = tempfile::tempdir().unwrap();
        let stage = stage(work.path());
        let path = stage.gzipped(10).unwrap();
        let before = path.metadata().unwrap().modified().unwrap();
        assert_eq!(stage.gzipped(10).unwrap(), path);
        assert_eq!(path.metadata().unwrap().modified().unwrap(), before);
        let small = stage.many_small(1_001, 1).unwrap();
        assert!(small.join("001/app-001000.log").is_file());
    }

    #[test]
    fn the_configuration_is_the_one_of_the_goals() {
        let settings = Settings { compressed: true, ..Settings::default() };
        let text = configuration("/a/*.gz", "http://127.0.0.1:1", settings);
        assert!(text.contains("compression: auto"));
        assert!(text.contains("compression_level: 0"));
        assert!(text.contains("paths: [\"/a/*.gz\"]"), "{text}");
    }
}
