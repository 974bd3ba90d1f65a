//! The settings of `user_agent`.

use super::expressions::Expressions;
use super::{Fact, Parts, UserAgent};
use crate::fields::pairs::path_at;
use crate::kinds::Context;
use crate::lookup::files::beside;
use skidder_config::{Group, Key, Section, settings};
use skidder_event::Path;
use std::path::PathBuf;

settings! {
    /// Settings of `user_agent`.
    pub(crate) static USER_AGENT = Group::new("processor.user_agent", "Finds the program, the system and the device that a user agent of HTTP names.");

    REGEX_FILE: PathBuf = Key::new("regex_file")
        .required()
        .about("the file of expressions: \
                [`regexes.yaml`](https://github.com/ua-parser/uap-core/blob/master/regexes.yaml) of \
                uap-core, or one of your own in its format. A relative name is relative to the \
                folder of the configuration. It is read at the start");
    FIELD: String = Key::new("field")
        .default("user_agent.original")
        .about("the field with the user agent");
    TARGET_FIELD: String = Key::new("target_field")
        .default("user_agent")
        .about("the object that takes the fields");
    PROPERTIES: Vec<String> = Key::new("properties")
        .default_words("all")
        .about("what to add: `name`, `version`, `original`, `os` (`os.name`, `os.version`, `os.full`), \
                `device` (`device.name`)");
    IGNORE_MISSING: bool = Key::new("ignore_missing")
        .default(false)
        .about("a missing field is not a failure");
    IGNORE_FAILURE: bool = Key::new("ignore_failure")
        .default(false)
        .about("a field that is not a text is not a failure, and only flagged");
    TAG_ON_FAILURE: Vec<String> = Key::<Vec<String>>::new("tag_on_failure")
        .default(&[])
        .about("what an event that fails gets in `tags`, beside the flag");
}

/// The facts by the names of properties.
const PROPERTIES_BY_NAME: &[(&str, &[Fact])] = &[
    ("name", &[Fact::Name]),
    ("version", &[Fact::Version]),
    ("original", &[Fact::Original]),
    ("os", &[Fact::SystemName, Fact::SystemVersion, Fact::SystemFull]),
    ("device", &[Fact::Device]),
    ("os.name", &[Fact::SystemName]),
    ("os.version", &[Fact::SystemVersion]),
    ("os.full", &[Fact::SystemFull]),
    ("device.name", &[Fact::Device]),
];

impl UserAgent {
    /// The settings above.
    pub(crate) fn read(settings: &Section<'_>, context: &Context) -> Option<Self> {
        let name = settings.get(&REGEX_FILE).optional().filter(|name| !name.as_os_str().is_empty());
        let field = path_at(settings, &FIELD);
        let target = path_at(settings, &TARGET_FIELD);
        let names = settings.get(&PROPERTIES).try_each(facts).optional();
        let ignore_missing = settings.get(&IGNORE_MISSING).value();
        let ignore_failure = settings.get(&IGNORE_FAILURE).value();
        let tags = settings.get(&TAG_ON_FAILURE).value();
        let Some(name) = name else {
            let message = format!("`{}` is missing", settings.path_of(REGEX_FILE.name()));
            settings.problem(
                REGEX_FILE.name(),
                message,
                "name a file like `regexes.yaml` of uap-core",
            );
            return None;
        };
        let facts = match names {
            _ if !settings.has_key(&PROPERTIES) => Fact::ALL.to_vec(),
            names => names?.concat(),
        };
        let parts = Parts::of(&facts);
        let path = beside(settings, &name);
        let read = || Expressions::read(&*context.fs, &path, parts);
        let expressions = match context.files.get(&path, parts.name(), read) {
            Ok(expressions) => expressions,
            Err(error) => {
                let message = format!("`{}`: {error}", settings.path_of(REGEX_FILE.name()));
                let hint = "get `regexes.yaml` from https://github.com/ua-parser/uap-core";
                settings.problem(REGEX_FILE.name(), message, hint);
                return None;
            }
        };
        let (field, target) = (field?, target?);
        let place = |fact: &Fact| {
            let path = Path::parse(&format!("{target}.{}", fact.name())).ok()?;
            Some((path, *fact))
        };
        let fields = facts.iter().map(place).collect::<Option<Box<[_]>>>()?;
        let tags_path = Path::parse("tags").ok()?;
        Some(Self {
            // A text that stays where it is needs no copy of itself.
            fields: fields.into_iter().filter(|(path, _)| *path != field).collect(),
            field,
            target,
            expressions,
            recent: super::Recent::default(),
            ignore_missing,
            ignore_failure,
            tags: tags.into(),
            tags_path,
        })
    }
}

/// The facts of a property.
fn facts(name: &str) -> Result<&'static [Fact], String> {
    let name = name.to_lowercase();
    let found = PROPERTIES_BY_NAME.iter().find(|(known, _)| *known == name);
    found.map(|(_, facts)| *facts).ok_or_else(|| {
        "expected `name`, `version`, `original`, `os`, `device`, or a part as `os.full`".to_owned()
    })
}
