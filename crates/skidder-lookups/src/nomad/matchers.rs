//! From an event to the key of its allocation, and from an allocation to its keys.

use skidder_config::{Group, Key, Parts, Section, settings};
use skidder_event::{Format, Path};

mod kinds {
    use skidder_config::{Group, Key, Kinds, settings};

    static NAME: Group = Group::new("nomad.allocation_name", "`NAMESPACE/NAME`.");

    static UID: Group = Group::new("nomad.allocation_uid", "The id.");

    /// An item of `indexers`.
    pub(super) static INDEXER: Group =
        Group::new("nomad.indexer", "Under which key allocations are known.")
            .kinds(Kinds::by_name(|| vec![("allocation_name", &NAME), ("allocation_uid", &UID)]));

    settings! {
        static FIELDS = Group::new("nomad.fields", "Fields that have the key.");

        pub(super) LOOKUP_FIELDS: Vec<String> = Key::new("lookup_fields").required().about("fields, of which the first that is there counts");
    }

    settings! {
        static FIELD_FORMAT = Group::new("nomad.field_format", "A text made of fields.");

        pub(super) FORMAT: String = Key::new("format").required().about("a text with fields: `%{[a]}/%{[b]}`");
    }

    settings! {
        static IN_PATH = Group::new("nomad.logs_path", "The id in the path of a file.");

        pub(super) PATH: String = Key::new("logs_path").default(super::LOGS_PATH).about("the folder that the id is below");
    }

    /// An item of `matchers`.
    pub(super) static MATCHER: Group =
        Group::new("nomad.matcher", "What gives the key.").kinds(Kinds::by_name(|| {
            vec![("fields", &FIELDS), ("field_format", &FIELD_FORMAT), ("logs_path", &IN_PATH)]
        }));
}

settings! {
    /// How allocations are found.
    pub(super) static MATCHING = Group::new("nomad.matching", "How allocations are found.");

    INDEXERS: Parts = Key::parts("indexers", &kinds::INDEXER)
        .default_words("`allocation_uid`")
        .about("under which keys allocations are known: `allocation_uid`, or `allocation_name`, \
                which is `NAMESPACE/NAME`");
    DEFAULT_INDEXERS: bool = Key::new("default_indexers.enabled")
        .default(true)
        .about("whether `allocation_uid` is there without being named");
    MATCHERS: Parts = Key::parts("matchers", &kinds::MATCHER)
        .default_words("`logs_path`")
        .about("what gives the key: `fields` with `lookup_fields`, `field_format` with a `format`, \
                or `logs_path`, the id in a path below `logs_path`");
    DEFAULT_MATCHERS: bool = Key::new("default_matchers.enabled")
        .default(true)
        .about("whether `logs_path` with the folder `/var/lib/nomad` comes last without being named");
}

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

/// The list `indexers` and the default. Returns `None`, and reports the problem, if it is wrong.
pub(super) fn read_indexers(settings: &Section<'_>) -> Option<Vec<Indexer>> {
    let mut indexers = Vec::new();
    let mut right = true;
    for entry in settings.parts(&INDEXERS) {
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
            entry.kind(name, &kinds::INDEXER);
            entry.accept(name);
        }
    }
    if settings.get(&DEFAULT_INDEXERS).value() && !indexers.contains(&Indexer::Uid) {
        indexers.push(Indexer::Uid);
    }
    right.then_some(indexers)
}

/// The list `matchers` and the default. Returns `None`, and reports the problem, if it is wrong.
pub(super) fn read_matchers(settings: &Section<'_>) -> Option<Vec<Matcher>> {
    let mut matchers = Vec::new();
    let mut right = true;
    for entry in settings.parts(&MATCHERS) {
        for name in entry.keys() {
            let matcher = read_matcher(&entry, name);
            right &= matcher.is_some();
            matchers.extend(matcher);
        }
    }
    if settings.get(&DEFAULT_MATCHERS).value() {
        matchers.push(Matcher::LogsPath(LOGS_PATH.to_owned() + "/"));
    }
    if matchers.is_empty() && right {
        let message =
            format!("`{}` is empty, and the default is off", settings.path_of(MATCHERS.name()));
        settings.problem(MATCHERS.name(), message, "give at least one");
        return None;
    }
    right.then_some(matchers)
}

fn read_matcher(entry: &Section<'_>, name: &str) -> Option<Matcher> {
    let Some(section) = entry.kind(name, &kinds::MATCHER) else {
        entry.accept(name);
        let message = format!("`{}` is no matcher", entry.path_of(name));
        entry.problem(name, message, "`fields`, `field_format` and `logs_path` are");
        return None;
    };
    match name {
        "fields" => {
            let fields = section.get(&kinds::LOOKUP_FIELDS).try_map(|names| {
                let paths = names.iter().map(|name| Path::parse(name)).collect::<Result<_, _>>();
                paths.map_err(|error| error.to_string())
            });
            Some(fields.required())
                .filter(|fields: &Vec<Path>| !fields.is_empty())
                .map(Matcher::Fields)
        }
        "field_format" => {
            let parse = |text: String| Format::parse(&text).map_err(|error| error.to_string());
            let format = section.get(&kinds::FORMAT).try_map(parse);
            if !format.is_set() {
                let message = format!("`{}` is missing", section.path_of(kinds::FORMAT.name()));
                section.problem(
                    kinds::FORMAT.name(),
                    message,
                    "a text with fields: `%{[a]}/%{[b]}`",
                );
            }
            format.optional().map(Matcher::FieldFormat)
        }
        _ => {
            let path = section.get(&kinds::PATH).value();
            Some(Matcher::LogsPath(format!("{}/", path.trim_end_matches('/'))))
        }
    }
}
