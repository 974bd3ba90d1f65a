//! `output.file`: one line an event, in files that are rotated by size.
//!
//! A batch is handed to the system before its events count as delivered; files are synced to the disk
//! when they are rotated and at the end. After a power cut the last lines may be missing although
//! they counted, as with Filebeat.

mod rotate;

use crate::codec::{Codec, CodecConfig, WITH_CODEC};
use crate::context::{Context, moment};
use crate::lines::{self, LineSink, Lines};
use crate::settings::EVERY_OUTPUT;
use rotate::Rotation;
use skidder_config::{Group, Key, Permissions, Section, settings};
use skidder_event::Format;
use skidder_net::Steps;
use skidder_os::{Clock, FileKind, Fs, OpenMode, Timestamp};
use skidder_pipeline::{Feed, Output, OutputFuture, TakeLimits, disk_remedy};
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

/// Most bytes of messages that are written at once.
const TAKE_BYTES_MAX: usize = 8 << 20;

settings! {
    /// Settings of `output.file`.
    pub static FILE = Group::new("output.file", "Events as lines in files that are rotated by size.")
        .include(&[&WITH_CODEC, &EVERY_OUTPUT]);

    PATH: String = Key::new("path").required().noun("a directory").about(
        "folder, made if missing; may hold the date of the start, `%{+yyyy-MM-dd}`",
    );
    FILENAME: String = Key::new("filename")
        .default(FileConfig::FILENAME)
        .about("files are `<filename>-YYYYMMDD.ndjson`, then `-1`, `-2`, …");
    ROTATE_EVERY_KB: u64 = Key::new("rotate_every_kb")
        .default(FileConfig::ROTATE_EVERY_BYTES >> 10)
        .range(1, u64::MAX >> 10)
        .noun("a number of KiB")
        .about("KiB that a file never exceeds");
    NUMBER_OF_FILES: usize = Key::new("number_of_files")
        .default(FileConfig::NUMBER_OF_FILES)
        .range(2, 1024)
        .noun("a number of files")
        .about("files kept besides the one being written, 2 to 1024. **Older ones are deleted**");
    PERMISSIONS: Permissions = Key::new("permissions").default(FileConfig::PERMISSIONS).about(
        "of new files; the folder can be listed by everyone with any of these permissions",
    );
    ROTATE_ON_STARTUP: bool =
        Key::new("rotate_on_startup").default(true).about("begin a new file");
}

/// Settings of `output.file`. Names are those of the YAML.
#[derive(Clone, Debug, PartialEq)]
pub struct FileConfig {
    /// `path`: the directory; made if it is missing.
    pub path: PathBuf,
    /// `filename`: how the names of the files begin.
    pub filename: String,
    /// `rotate_every_kb` in bytes: size that a file never exceeds.
    pub rotate_every_bytes: u64,
    /// `number_of_files` that are kept besides the one that is written.
    pub number_of_files: usize,
    /// `permissions` of new files.
    pub permissions: u32,
    /// `rotate_on_startup`: begin a new file rather than continue the last.
    pub rotate_on_startup: bool,
    /// `codec`.
    pub codec: CodecConfig,
}

impl FileConfig {
    /// Default of `filename`.
    pub const FILENAME: &str = "filebeat";
    /// Default of `rotate_every_kb`, in bytes.
    pub const ROTATE_EVERY_BYTES: u64 = 10_240 << 10;
    /// Default of `number_of_files`.
    pub const NUMBER_OF_FILES: usize = 7;
    /// Default of `permissions`.
    pub const PERMISSIONS: u32 = 0o600;
    /// Events written at once, for readers to match.
    pub const BULK_MAX_SIZE: usize = 2048;

    /// The defaults, in this directory.
    pub fn new(path: PathBuf) -> Self {
        Self {
            path,
            filename: Self::FILENAME.to_owned(),
            rotate_every_bytes: Self::ROTATE_EVERY_BYTES,
            number_of_files: Self::NUMBER_OF_FILES,
            permissions: Self::PERMISSIONS,
            rotate_on_startup: true,
            codec: CodecConfig::default(),
        }
    }

    /// Reads `output.file`. Reports mistakes to the section's problems; `None` if there is no `path`.
    pub fn read(section: &Section<'_>, context: &Context, started: Timestamp) -> Option<Self> {
        section.declared_by(&FILE);
        let path = section.get(&PATH).try_map(|text| directory(&text, context, started)).required();
        let name_check = |name: &String| {
            if name.contains('/') || name.is_empty() {
                return Err("expected a name without `/`; the directory is `path`".to_owned());
            }
            Ok(())
        };
        let config = Self {
            filename: section.get(&FILENAME).check(name_check).value(),
            rotate_every_bytes: section.get(&ROTATE_EVERY_KB).map(|kib| kib << 10).value(),
            number_of_files: section.get(&NUMBER_OF_FILES).value(),
            permissions: section.get(&PERMISSIONS).value(),
            rotate_on_startup: section.get(&ROTATE_ON_STARTUP).value(),
            codec: CodecConfig::read(section, false),
            path,
        };
        if config.path.as_os_str().is_empty() { None } else { Some(config) }
    }
}

/// `path` with the date of the program's start in it.
fn directory(text: &str, context: &Context, started: Timestamp) -> Result<PathBuf, String> {
    let mut format = Format::parse(text).map_err(|error| error.to_string())?;
    context.bind(&mut format);
    if let Some(constant) = format.constant() {
        if constant.is_empty() {
            return Err("expected a directory".to_owned());
        }
        return Ok(PathBuf::from(constant));
    }
    if !format.is_dated_only() {
        return Err("expected a path in which only dates vary, as in `%{+yyyy.MM.dd}`".to_owned());
    }
    let mut written = Vec::new();
    let batch = moment(started.0);
    format.write(&mut written, batch.event(0)).map_err(|error| error.to_string())?;
    Ok(PathBuf::from(String::from_utf8_lossy(&written).into_owned()))
}

/// The output, ready to run.
#[derive(Clone, Debug)]
pub struct FileOutput {
    config: FileConfig,
    context: Context,
}

impl FileOutput {
    /// Touches no file yet.
    pub fn new(config: FileConfig, context: Context) -> Self {
        Self { config, context }
    }

    /// Looks whether the directory is there, or could be made, and whether a file can be made in it; leaves
    /// nothing behind.
    pub fn check(&self, report: &mut (dyn FnMut(&str) + Send)) -> bool {
        let mut steps = Steps::new(report);
        let path = &self.config.path;
        steps.line(0, &format!("file: {}...", path.display()));
        match standing(&*self.context.fs, path) {
            Ok(Some(above)) => {
                steps.ok(1, "directory", if above == path { "" } else { "will be made" });
                steps.step(1, "write permission", self.try_write(above)).is_some()
            }
            Ok(None) => {
                steps.ok(1, "directory", "will be made");
                true
            }
            Err(error) => steps.step(1, "directory", Err::<(), _>(error)).is_some(),
        }
    }

    /// Makes a file in `directory` and removes it. Directories are made where files are.
    fn try_write(&self, directory: &Path) -> Result<(), String> {
        let fs = &self.context.fs;
        let path = directory.join(format!(".{}.test-output", self.config.filename));
        let advice = |error: io::Error| advised(&error, directory);
        match fs.open_write(&path, OpenMode::New, self.config.permissions) {
            // One that was killed here left it behind.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            opened => drop(opened.map_err(advice)?),
        }
        fs.remove_file(&path).map_err(advice)
    }
}

/// The error of a directory, with its remedy: as in the log.
fn advised(error: &io::Error, directory: &Path) -> String {
    let remedy = disk_remedy(error).map(|remedy| format!("; {remedy}")).unwrap_or_default();
    format!("{}: {error}{remedy}", directory.display())
}

/// The nearest existing directory of `path` and those above it; the error names the obstacle.
fn standing<'a>(fs: &dyn Fs, path: &'a Path) -> Result<Option<&'a Path>, String> {
    use io::ErrorKind::{NotADirectory, NotFound};
    for above in path.ancestors().filter(|above| !above.as_os_str().is_empty()) {
        match fs.metadata(above) {
            Ok(metadata) if metadata.kind == FileKind::Directory => return Ok(Some(above)),
            Ok(_) => {
                let above = above.display();
                return Err(format!(
                    "`{above}` is not a directory: move it away, or set another `output.file.path`"
                ));
            }
            Err(error) if matches!(error.kind(), NotFound | NotADirectory) => {}
            Err(error) => return Err(advised(&error, above)),
        }
    }
    Ok(None)
}

impl Output for FileOutput {
    fn kind(&self) -> &'static str {
        "file"
    }

    fn check<'a>(
        &'a self,
        report: &'a mut (dyn FnMut(&str) + Send),
    ) -> Pin<Box<dyn Future<Output = bool> + 'a>> {
        Box::pin(async move { FileOutput::check(self, report) })
    }

    fn run(self: Box<Self>, feed: Feed) -> OutputFuture {
        let codec = Codec::new(&self.config.codec, &self.context, &self.context.beat);
        let rotation = Rotation::new(Arc::clone(&self.context.fs), self.config);
        let sink = FileSink { rotation, clock: Arc::clone(&feed.clock) };
        let limits = TakeLimits { events: FileConfig::BULK_MAX_SIZE, bytes: TAKE_BYTES_MAX };
        Box::pin(lines::run(sink, codec, limits, feed))
    }
}

struct FileSink {
    rotation: Rotation,
    clock: Arc<dyn Clock>,
}

impl LineSink for FileSink {
    const KIND: &'static str = "file";

    fn place(&self) -> String {
        self.rotation.place()
    }

    fn write(&mut self, lines: &mut Lines) -> io::Result<()> {
        self.rotation.write(lines, self.clock.wall())
    }

    fn is_final(&self, _: &io::Error) -> bool {
        false
    }

    fn finish(&mut self) -> io::Result<()> {
        self.rotation.finish()
    }
}
