//! From an event to the key of its allocation, and from an allocation to its keys.

use skidder_config::Section;
use skidder_event::{Format, Path};

/// Default of `logs_path`.
const LOGS_PATH: &str = "/var/lib/nomad";

/// How the key of an allocation is found in an event.
#[derive(Clone, Debug)]
pub(super) enum Matcher {
    /// The text of the first of these fields.
    Fields(Vec<Path>),
    /// A text with fields in it.
    FieldFormat(Format),
    /// The id in the path of a log below this folder.
    LogsPath(String),
}

/// Under which key an allocation is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Indexer {
    /// `NAMESPACE/NAME`.
    Name,
    /// Its id.
    Uid,
}

impl Matcher {
    /// The fields that it looks at.
    pub(super) fn fields(&self) -> Vec<Path> {
        match self {
            Self::Fields(fields) => fields.clone(),
            Self::FieldFormat(format) => format.fields().cloned().collect(),
            Self::LogsPath(_) => vec![log_path()],
        }
    }

    /// The key, if the fields give one.
    pub(super) fn key(&self, look: &dyn Fn(&Path) -> Option<String>) -> Option<String> {
        match self {
            Self::Fields(fields) => fields.iter().find_map(look),
            Self::FieldFormat(format) => {
                let mut format = format.clone();
                format.bind(|name| look(&Path::parse(name).ok()?));
                format.constant().map(str::to_owned)
            }
            Self::LogsPath(below) => {
                let path = look(&log_path())?;
                let rest = path.strip_prefix(below.as_str())?;
                rest.split('/').find(|part| is_uuid(part)).map(str::to_owned)
            }
        }
    }
}

fn log_path() -> Path {
    Path::parse("log.file.path").expect("a constant path")
}

/// Whether a text is like `43205e0e-3d55-f561-83cb-bed15e23b862`.
fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// The list `indexers` and the default. Nothing if it is wrong, which is told.
pub(super) fn read_indexers(settings: &Section<'_>) -> Option<Vec<Indexer>> {
    let mut indexers = Vec::new();
    let mut right = true;
    for entry in settings.sections("indexers") {
        for name in entry.keys() {
            match name {
                "allocation_name" => indexers.push(Indexer::Name),
                "allocation_uid" => indexers.push(Indexer::Uid),
                _ => {
                    let message = format!("`{}` is no indexer", entry.path_of(name));
                    entry.problem(name, message, "`allocation_name` and `allocation_uid` are");
                    right = false;
                }
            }
            entry.accept(name);
        }
    }
    if settings.bool("default_indexers.enabled").or(true) && !indexers.contains(&Indexer::Uid) {
        indexers.push(Indexer::Uid);
    }
    right.then_some(indexers)
}

/// The list `matchers` and the default. Nothing if it is wrong, which is told.
pub(super) fn read_matchers(settings: &Section<'_>) -> Option<Vec<Matcher>> {
    let mut matchers = Vec::new();
    let mut right = true;
    for entry in settings.sections("matchers") {
        for name in entry.keys() {
            let matcher = read_matcher(&entry, name);
            right &= matcher.is_some();
            matchers.extend(matcher);
        }
    }
    if settings.bool("default_matchers.enabled").or(true) {
        matchers.push(Matcher::LogsPath(LOGS_PATH.to_owned() + "/"));
    }
    if matchers.is_empty() && right {
        let message =
            format!("`{}` is empty, and the default is off", settings.path_of("matchers"));
        settings.problem("matchers", message, "give at least one");
        return None;
    }
    right.then_some(matchers)
}

fn read_matcher(entry: &Section<'_>, name: &str) -> Option<Matcher> {
    let section = entry.section(name);
    match name {
        "fields" => {
            let fields = section.strings("lookup_fields").try_map(|names| {
                let paths = names.iter().map(|name| Path::parse(name)).collect::<Result<_, _>>();
                paths.map_err(|error| error.to_string())
            });
            Some(fields.required())
                .filter(|fields: &Vec<Path>| !fields.is_empty())
                .map(Matcher::Fields)
        }
        "field_format" => {
            let parse = |text: String| Format::parse(&text).map_err(|error| error.to_string());
            let format = section.string("format").try_map(parse);
            if !format.is_set() {
                let message = format!("`{}` is missing", section.path_of("format"));
                section.problem("format", message, "a text with fields: `%{[a]}/%{[b]}`");
            }
            format.optional().map(Matcher::FieldFormat)
        }
        "logs_path" => {
            let path = section.string("logs_path").or(LOGS_PATH);
            Some(Matcher::LogsPath(format!("{}/", path.trim_end_matches('/'))))
        }
        _ => {
            let message = format!("`{}` is no matcher", entry.path_of(name));
            entry.problem(name, message, "`fields`, `field_format` and `logs_path` are");
            section.skip();
            None
        }
    }
}
