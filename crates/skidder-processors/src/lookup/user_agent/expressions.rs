//! The file of expressions: three lists, for the program, the system and the device, of which the first
//! expression that is found in a text decides. Its format is that of `regexes.yaml` of uap-core
//! (<https://github.com/ua-parser/uap-core/blob/master/docs/specification.md>).

use super::Parts;
use skidder_config::{Problems, Section, Settings};
use skidder_os::{Fs, read_to_end};
use std::borrow::Cow;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use ua_parser::{BuildError, ParseError, device, os, user_agent};

/// Largest file that is read; that of uap-core has 300 KB.
const FILE_BYTES_MAX: usize = 16 << 20;

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum ExpressionsError {
    /// Look at the path and the permissions.
    #[error("{path}: {source}")]
    Read { path: PathBuf, source: io::Error },
    /// Get the file anew: it is not YAML.
    #[error("{0}")]
    Yaml(Problems),
    /// Get another file.
    #[error("{path} has no `{list}`")]
    Empty { path: PathBuf, list: &'static str },
    /// Change the file there.
    #[error("{place}: {why}")]
    Expression { place: String, why: String },
}

/// The compiled expressions of the parts that are needed.
#[derive(Default)]
pub(super) struct Expressions {
    pub(super) program: Option<user_agent::Extractor<'static>>,
    pub(super) system: Option<os::Extractor<'static>>,
    pub(super) device: Option<device::Extractor<'static>>,
}

impl Expressions {
    /// Reads and compiles the lists of a file for some parts.
    pub(super) fn read(fs: &dyn Fs, path: &Path, parts: Parts) -> Result<Self, ExpressionsError> {
        let wrong = |source| ExpressionsError::Read { path: path.to_owned(), source };
        let file = fs.open(path).map_err(wrong)?;
        let bytes = read_to_end(&*file, FILE_BYTES_MAX).map_err(wrong)?;
        let text = String::from_utf8(bytes)
            .map_err(|_| wrong(io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8")))?;
        let settings = Settings::parse(&path.display().to_string(), &text);
        let settings = settings.map_err(ExpressionsError::Yaml)?;
        // Anything else in the file is not for us.
        let problems = Problems::new();
        let root = settings.root(&problems);
        let read = Self::compile(path, &root, parts);
        root.skip();
        let read = read?;
        if problems.has_errors() {
            return Err(ExpressionsError::Yaml(problems));
        }
        Ok(read)
    }

    fn compile(path: &Path, root: &Section<'_>, parts: Parts) -> Result<Self, ExpressionsError> {
        let mut all = Self::default();
        if parts.program {
            let start = user_agent::Builder::new();
            let built = each(path, root, "user_agent_parsers", start, |builder, entry| {
                builder.push(program(entry)).map_err(|error| match error {
                    ua_parser::Error::ParseError(error) => reason(&error),
                    other => other.to_string(),
                })
            })?;
            all.program = Some(built.build().map_err(|error| unbuilt(path, &error))?);
        }
        if parts.system {
            let built = each(path, root, "os_parsers", os::Builder::new(), |builder, entry| {
                builder.push(system(entry)).map_err(|error| reason(&error))
            })?;
            all.system = Some(built.build().map_err(|error| unbuilt(path, &error))?);
        }
        if parts.device {
            let start = device::Builder::new();
            let built = each(path, root, "device_parsers", start, |builder, entry| {
                builder.push(machine(entry)).map_err(|error| reason(&error))
            })?;
            all.device = Some(built.build().map_err(|error| unbuilt(path, &error))?);
        }
        Ok(all)
    }
}

/// Adds every entry of a list, which must have one.
fn each<B>(
    path: &Path,
    root: &Section<'_>,
    list: &'static str,
    mut builder: B,
    push: impl Fn(B, &Section<'_>) -> Result<B, String>,
) -> Result<B, ExpressionsError> {
    let entries = root.sections(list);
    if entries.is_empty() {
        return Err(ExpressionsError::Empty { path: path.to_owned(), list });
    }
    for entry in entries {
        let pushed = if entry.has_text("regex") {
            push(builder, &entry)
        } else {
            Err("`regex` is missing".to_owned())
        };
        let place = match entry.position() {
            Some(position) => format!("{}:{}", path.display(), position.line()),
            None => path.display().to_string(),
        };
        entry.skip();
        builder = pushed.map_err(|why| ExpressionsError::Expression { place, why })?;
    }
    Ok(builder)
}

/// A text of an entry.
fn text(entry: &Section<'_>, key: &str) -> Option<Cow<'static, str>> {
    entry.string(key).optional().map(Cow::Owned)
}

fn program(entry: &Section<'_>) -> user_agent::Parser<'static> {
    user_agent::Parser {
        regex: text(entry, "regex").unwrap_or_default(),
        family_replacement: text(entry, "family_replacement"),
        v1_replacement: text(entry, "v1_replacement"),
        v2_replacement: text(entry, "v2_replacement"),
        v3_replacement: text(entry, "v3_replacement"),
        v4_replacement: text(entry, "v4_replacement"),
    }
}

fn system(entry: &Section<'_>) -> os::Parser<'static> {
    os::Parser {
        regex: text(entry, "regex").unwrap_or_default(),
        os_replacement: text(entry, "os_replacement"),
        os_v1_replacement: text(entry, "os_v1_replacement"),
        os_v2_replacement: text(entry, "os_v2_replacement"),
        os_v3_replacement: text(entry, "os_v3_replacement"),
        os_v4_replacement: text(entry, "os_v4_replacement"),
    }
}

fn machine(entry: &Section<'_>) -> device::Parser<'static> {
    let ignores_case = text(entry, "regex_flag").is_some_and(|flag| flag == "i");
    device::Parser {
        regex: text(entry, "regex").unwrap_or_default(),
        regex_flag: ignores_case.then_some(device::Flag::IgnoreCase),
        device_replacement: text(entry, "device_replacement"),
        brand_replacement: text(entry, "brand_replacement"),
        model_replacement: text(entry, "model_replacement"),
    }
}

#[cold]
fn unbuilt(path: &Path, error: &BuildError) -> ExpressionsError {
    let place = path.display().to_string();
    ExpressionsError::Expression { place, why: error.to_string() }
}

/// Why an expression is wrong, without the drawing of it.
#[cold]
fn reason(error: &ParseError) -> String {
    match error {
        ParseError::SyntaxError(text) => {
            let last = text.trim_end().lines().last().unwrap_or_default();
            format!("the expression is wrong: {}", last.trim_start_matches("error: "))
        }
        ParseError::RegexTooLarge(limit) => {
            format!("the expression is too large: it takes more than {limit} bytes")
        }
        ParseError::ProcessingError(error) => format!("the expression is wrong: {error}"),
    }
}

impl fmt::Debug for Expressions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Expressions")
            .field("program", &self.program.is_some())
            .field("system", &self.system.is_some())
            .field("device", &self.device.is_some())
            .finish()
    }
}
