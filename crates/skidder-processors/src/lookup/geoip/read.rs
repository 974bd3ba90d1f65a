//! The settings of `geoip`.

use super::database::DatabaseFile;
use super::property::{DatabaseKind, Property};
use super::{GeoIp, Rules};
use crate::fields::pairs::{filled_path, path_at};
use crate::kinds::Context;
use crate::lookup::files::beside;
use skidder_config::{Group, Key, Section, settings};
use skidder_event::Path;
use std::path::PathBuf;
use std::sync::Arc;

settings! {
    /// Settings of `geoip`.
    pub(crate) static GEOIP = Group::new("processor.geoip", "Adds where an address is, or to which network it belongs, from a \
                               database in a file.");

    DATABASE_FILE: PathBuf = Key::new("database_file")
        .required()
        .about("the database, in MaxMind's format (`.mmdb`), of type City, Country or ASN: \
                [GeoLite2](https://dev.maxmind.com/geoip/geolite2-free-geolocation-data), \
                [DB-IP](https://db-ip.com/db/lite.php), or one of your own. A relative name is \
                relative to the folder of the configuration. It is kept in memory, and read again \
                when it changed, which is checked once a minute");
    FIELD: String = Key::new("field")
        .default("source.ip")
        .about("the field with the address: a text, or a list of texts, of which the first that is \
                in the database counts");
    TARGET_FIELD: String = Key::new("target_field")
        .default_words("`source.geo`; `source.as` with an ASN database")
        .about("the object that takes the fields");
    PROPERTIES: Vec<String> = Key::new("properties")
        .default_words("see above")
        .about("what to add");
    IGNORE_MISSING: bool = Key::new("ignore_missing")
        .default(false)
        .about("a missing field is not a failure");
    IGNORE_FAILURE: bool = Key::new("ignore_failure")
        .default(false)
        .about("a text that is no address is not a failure, and only flagged");
    TAG_ON_FAILURE: Vec<String> = Key::<Vec<String>>::new("tag_on_failure")
        .default(&[])
        .about("what an event that fails gets in `tags`, beside the flag");
}

impl GeoIp {
    /// The settings above.
    pub(crate) fn read(settings: &Section<'_>, context: &Context) -> Option<Self> {
        let name =
            settings.get(&DATABASE_FILE).optional().filter(|name| !name.as_os_str().is_empty());
        let field = path_at(settings, &FIELD);
        let target = filled_path(settings.get(&TARGET_FIELD));
        let properties = settings.get(&PROPERTIES).optional();
        let ignore_missing = settings.get(&IGNORE_MISSING).value();
        let ignore_failure = settings.get(&IGNORE_FAILURE).value();
        let tags = settings.get(&TAG_ON_FAILURE).value();
        let Some(name) = name else {
            let message = format!("`{}` is missing", settings.path_of(DATABASE_FILE.name()));
            settings.problem(
                DATABASE_FILE.name(),
                message,
                "name a `.mmdb` file, as `/usr/share/GeoIP/GeoLite2-City.mmdb`",
            );
            return None;
        };
        let path = beside(settings, &name);
        let open = || DatabaseFile::open(&path, &context.fs, &context.clock);
        let database = match context.files.get(&path, "geoip", open) {
            Ok(database) => database,
            Err(error) => {
                let message = format!("`{}`: {error}", settings.path_of(DATABASE_FILE.name()));
                settings.problem(
                    DATABASE_FILE.name(),
                    message,
                    "get a City, Country or ASN database, for example GeoLite2 with `geoipupdate`",
                );
                return None;
            }
        };
        let kind = database.current().kind;
        let target = target.or_else(|| Path::parse(kind.target()).ok())?;
        let rules = Rules {
            field: field?,
            properties: read_properties(settings, properties, kind, &target)?,
            target,
            ignore_missing,
            ignore_failure,
            tags: tags.into(),
            tags_path: Path::parse("tags").ok()?,
        };
        Some(Self { rules: Arc::new(rules), database })
    }
}

/// The properties and where they go. Returns `None`, and reports the problems, if the database does not have one.
fn read_properties(
    settings: &Section<'_>,
    names: Option<Vec<String>>,
    kind: DatabaseKind,
    target: &Path,
) -> Option<Box<[(Path, Property)]>> {
    let mut fields = Vec::new();
    let mut is_right = true;
    match names {
        None => fields.extend(kind.defaults()),
        Some(names) => {
            for name in &names {
                match kind.fields(&name.to_lowercase()) {
                    Some(more) => fields.extend_from_slice(more),
                    None => {
                        let key = PROPERTIES.name();
                        let message = format!(
                            "`{}` names `{name}`, which this database does not have",
                            settings.path_of(key)
                        );
                        let all = kind.names().join("`, `");
                        settings.problem(key, message, format!("it has `{all}`"));
                        is_right = false;
                    }
                }
            }
        }
    }
    if !is_right {
        return None;
    }
    let place = |(name, property): &(&str, Property)| {
        Some((Path::parse(&format!("{target}.{name}")).ok()?, *property))
    };
    fields.iter().map(place).collect()
}
