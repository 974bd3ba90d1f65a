//! YAML with positions, one settings tree, typed readers of it.
//!
//! The way of a setting: `yaml.rs` reads a file into [`Node`]s with their places; `tree.rs` makes
//! one tree of dotted keys, several files and `-E` overrides; `vars.rs` replaces `${...}`; a
//! [`Section`] is what all other crates see of it. Every mistake goes to one [`Problems`] with
//! file, line, column, full path and a hint, and is reported together with all others.
//!
//! This crate knows no input, processor or output: their settings live with them, as a struct and
//! a function that reads it from a section:
//!
//! ```
//! use skidder_config::{Problems, Secret, Section, Settings};
//! use std::time::Duration;
//!
//! struct Sink {
//!     hosts: Vec<String>,
//!     events_max: usize,
//!     timeout: Duration,
//!     password: Option<Secret>,
//! }
//!
//! impl Sink {
//!     fn read(section: Section<'_>) -> Self {
//!         let sink = Self {
//!             hosts: section.strings("hosts").or(["localhost:9200"]),
//!             events_max: section
//!                 .usize("bulk_max_size")
//!                 .named("a number of events")
//!                 .range(1..=100_000)
//!                 .or(1600),
//!             timeout: section.duration("timeout").or(Duration::from_secs(90)),
//!             password: section.secret("password").optional(),
//!         };
//!         section.unsupported(&["kerberos.*"], "use `api_key`");
//!         section.deprecated(&["max_retries"], "events are sent until they are accepted");
//!         section.finish();
//!         sink
//!     }
//! }
//!
//! let text = "
//! output.sink:
//!   hosts: one:9200
//!   bulk_max_size: lots
//!   timeuot: 30s
//!   kerberos.enabled: true
//! ";
//! let settings = Settings::parse("filebeat.yml", text).unwrap();
//! let problems = Problems::new();
//! let sink = Sink::read(settings.root(&problems).section("output.sink"));
//! assert_eq!(sink.hosts, ["one:9200"]);
//! assert_eq!(
//!     problems.to_string(),
//!     "error: filebeat.yml:4:18: `output.sink.bulk_max_size` is `lots`; \
//!      expected a number of events, 1 to 100000\n\
//!      error: filebeat.yml:5:3: unknown setting `output.sink.timeuot`\n\
//!      hint: did you mean `timeout`?\n\
//!      error: filebeat.yml:6:3: `output.sink.kerberos` is known to Filebeat, \
//!      but not supported by skidder yet\n\
//!      hint: use `api_key`"
//! );
//! ```

mod again;
mod declare;
mod export;
mod inline;
mod item;
mod leftover;
mod load;
mod made;
mod mask;
mod node;
mod order;
mod packed;
mod pipes;
mod problem;
mod quoted;
mod read;
mod rendered;
mod rule;
mod scalar;
mod secret;
mod section;
mod setting;
mod settings;
mod suggest;
mod template;
mod tree;
pub mod units;
mod vars;
mod veil;
mod yaml;
mod yaml_message;

pub use declare::schema::json_schema;
pub use declare::table::table;
pub use declare::{
    Any, Declared, Group, Inner, Key, Kind, Kinds, NamedParts, OneOf, OrAuto, Part, PartOrWord,
    Parts, PathList, Permissions, Readable, Size, Spec, Switch, seen,
};
pub use item::Item;
pub use load::{
    FILE_BYTES_MAX, LoadOptions, OpenKeystore, is_there, load, load_part, load_without_file,
};
pub use made::{VariableScope, VariableValue};
pub use mask::mask_address;
pub use node::{Content, Entry, MASK, Map, Node, Value};
pub use packed::MadeSettings;
pub use pipes::Pipes;
pub use problem::{Position, Problem, Problems, Severity, Source, Subject};
pub use rendered::{Lists, yaml_value};
pub use rule::Idle;
pub use secret::Secret;
pub use section::Section;
pub use setting::{Bounded, DefaultFor, Setting};
pub use settings::{PLACES, Paths, Settings};
pub use suggest::nearest;
pub use vars::unset_variables;
