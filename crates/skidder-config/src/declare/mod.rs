//! Settings, each declared once: its name, type, default, bounds, what it does.
//!
//! From a declaration come the reader ([`Section::get`]), the tables of the documentation ([`table()`](table::table)),
//! the JSON Schema ([`json_schema`](schema::json_schema)), and the list of settings that tests must use ([`seen`]).
//!
//! A [`Key`] is one setting, a [`Group`] the settings of one map. The macro [`settings!`](macro@crate::settings) declares a
//! group with its keys. All of it is static data; nothing is computed until it is needed.
//!
//! ```
//! use skidder_config::{Group, Key, Section, Settings, Problems, settings};
//! use std::time::Duration;
//!
//! settings! {
//!     /// Settings of the input `echo`.
//!     pub static ECHO = Group::new("input.echo", "Repeats what a peer says.")
//!         .unsupported(&[("framing", "lines are framed by line feeds")]);
//!
//!     HOST: String = Key::new("host").required().about("address to listen on");
//!     LINES: usize = Key::new("lines").default(8).range(1, 100).noun("a number of lines").about("most lines");
//!     TIMEOUT: Duration = Key::new("timeout").default(Duration::from_secs(5)).about("of a silent peer");
//! }
//!
//! fn read(section: &Section<'_>) -> (String, usize, Duration) {
//!     section.declared_by(&ECHO);
//!     (section.get(&HOST).required(), section.get(&LINES).value(), section.get(&TIMEOUT).value())
//! }
//!
//! let settings = Settings::parse("filebeat.yml", "{host: a, lines: 200}").unwrap();
//! let problems = Problems::new();
//! assert_eq!(read(&settings.root(&problems)), ("a".to_owned(), 8, Duration::from_secs(5)));
//! assert_eq!(
//!     problems.to_string(),
//!     "error: filebeat.yml:1:18: `lines` is `200`; expected a number of lines, 1 to 100"
//! );
//! ```

mod choice;
mod group;
mod kind;
mod numbers;
mod read;
pub(crate) mod schema;
pub(crate) mod secrets;
pub mod seen;
pub(crate) mod table;

#[cfg(doc)]
use crate::Section;
use crate::secret::Secret;
pub use choice::{OrAuto, PartOrWord};
pub(crate) use group::{By, Known};
pub use group::{Declared, Group, Inner, Kinds};
pub use kind::{
    Any, Kind, NamedParts, OneOf, Part, Parts, PathList, Permissions, Readable, Size, Switch,
};

/// Declares a group of settings and its keys, in the order of the documentation.
///
/// See the module's text for an example. A key in it is a `static`, which only readers in the same module see unless
/// it is `pub`.
#[macro_export]
macro_rules! settings {
    (
        $(#[$group_meta:meta])* $group_vis:vis static $group:ident = $head:expr;
        $($(#[$meta:meta])* $vis:vis $key:ident: $kind:ty = $value:expr;)*
    ) => {
        $(#[$group_meta])*
        $group_vis static $group: $crate::Group = $head.keys(&[$(&$key),*]);
        $(
            $(#[$meta])*
            $vis static $key: $crate::Key<$kind> = $value.within(&$group);
        )*
    };
}

/// What is known about a setting of any type.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// Its name, dotted, relative to the map of its group.
    pub name: &'static str,
    /// Another name for it, which the first one wins over. Empty for none.
    pub alias: &'static str,
    /// What it does: a phrase for the third column of a table. Markdown.
    pub about: &'static str,
    /// What stands for the default in documents, if it is no constant. Markdown; empty for none.
    pub default_words: &'static str,
    /// What is expected, for messages: `a number of events`. Empty for the words of its type.
    pub noun: &'static str,
    /// What differs from Filebeat: `Filebeat: 0`. Empty for nothing.
    pub differs: &'static str,
    /// Filebeat does not have it.
    pub is_ours: bool,
    /// It must be set.
    pub is_required: bool,
    /// A wrong value is not shown in messages.
    pub is_hidden: bool,
    /// It is a password, key or token.
    pub is_secret: bool,
    /// It is a path, which is shown, or a key in PEM, which is known by its text.
    pub is_path_or_pem: bool,
    /// Its words are the same in upper and lower case.
    pub ignores_case: bool,
    /// A list of it has at least one item.
    pub is_filled: bool,
    /// Its value is a map of any names.
    pub is_map: bool,
    /// It deletes no files and no state, whatever its name sounds like.
    pub deletes_nothing: bool,
    /// The group that it was declared in.
    pub group: Option<&'static Group>,
}

/// A setting. See the module's text.
#[derive(Clone, Copy)]
pub struct Key<K: Kind> {
    pub(crate) spec: Spec,
    pub(crate) default: Option<K::Const>,
    pub(crate) low: Option<K::Const>,
    pub(crate) high: Option<K::Const>,
    pub(crate) extra: K::Extra,
}

impl<K: Kind> std::fmt::Debug for Key<K> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Key").field("name", &self.spec.name).finish_non_exhaustive()
    }
}

impl<K: Kind<Extra = ()>> Key<K> {
    /// The setting `name`, dotted, relative to the map of its group.
    pub const fn new(name: &'static str) -> Self {
        Self::with(name, ())
    }
}

impl<T: Copy + Sync + 'static> Key<OneOf<T>> {
    /// One of several words, each standing for a value.
    pub const fn one_of(name: &'static str, words: &'static [(&'static str, T)]) -> Self {
        Self::with(name, words)
    }

    /// The words are the same in upper and lower case.
    pub const fn ignore_case(mut self) -> Self {
        self.spec.ignores_case = true;
        self
    }
}

impl Key<Part> {
    /// A map with the settings of `group`.
    pub const fn part(name: &'static str, group: &'static Group) -> Self {
        Self::with(name, group)
    }
}

impl Key<Parts> {
    /// A list of maps, each with the settings of `group`; a single map is a list of one.
    pub const fn parts(name: &'static str, group: &'static Group) -> Self {
        Self::with(name, group)
    }
}

impl Key<NamedParts> {
    /// A list of maps, each with the settings of the group whose id is `id`, which another crate declares.
    pub const fn named_parts(name: &'static str, id: &'static str) -> Self {
        Self::with(name, id)
    }
}

impl Key<Switch> {
    /// `true`, `false`, or a map with the settings of `group`.
    pub const fn switch(name: &'static str, group: &'static Group) -> Self {
        Self::with(name, group)
    }
}

impl Key<Vec<String>> {
    /// It has at least one item, which its reader checks.
    pub const fn filled(mut self) -> Self {
        self.spec.is_filled = true;
        self
    }
}

impl Key<Secret> {
    /// It is the path of a file, or a key in PEM. Exports show the path.
    pub const fn path_or_pem(mut self) -> Self {
        self.spec.is_path_or_pem = true;
        self
    }
}

impl Key<Any> {
    /// Its value is a map of any names, which its reader checks.
    pub const fn map(mut self) -> Self {
        self.spec.is_map = true;
        self
    }
}

impl<K: Kind> Key<K> {
    const fn with(name: &'static str, extra: K::Extra) -> Self {
        let spec = Spec {
            name,
            alias: "",
            about: "",
            default_words: "",
            noun: "",
            differs: "",
            is_ours: false,
            is_required: false,
            is_hidden: K::IS_SECRET,
            is_secret: K::IS_SECRET,
            is_path_or_pem: false,
            ignores_case: false,
            is_filled: false,
            is_map: false,
            deletes_nothing: false,
            group: None,
        };
        Self { spec, default: None, low: None, high: None, extra }
    }

    /// What it does: a phrase for the third column of a table, in Markdown.
    pub const fn about(mut self, about: &'static str) -> Self {
        self.spec.about = about;
        self
    }

    /// The value if it is not set.
    pub const fn default(self, default: K::Const) -> Self {
        Self { default: Some(default), ..self }
    }

    /// The text of the documentation for the default, if that depends on something: ``as `index` ``. With
    /// [`Key::default`], its words.
    pub const fn default_words(mut self, words: &'static str) -> Self {
        self.spec.default_words = words;
        self
    }

    /// It must be set.
    pub const fn required(mut self) -> Self {
        self.spec.is_required = true;
        self
    }

    /// What is expected, for messages: `a number of events`.
    pub const fn noun(mut self, noun: &'static str) -> Self {
        self.spec.noun = noun;
        self
    }

    /// Another name for the same setting. If both are set, the other one counts for nothing.
    pub const fn alias(mut self, alias: &'static str) -> Self {
        self.spec.alias = alias;
        self
    }

    /// The value is between `low` and `high`, both included.
    pub const fn range(self, low: K::Const, high: K::Const) -> Self {
        Self { low: Some(low), high: Some(high), ..self }
    }

    /// The value is `low` or more.
    pub const fn at_least(self, low: K::Const) -> Self {
        Self { low: Some(low), ..self }
    }

    /// What differs from Filebeat: `Filebeat: 0`.
    pub const fn differs(mut self, differs: &'static str) -> Self {
        self.spec.differs = differs;
        self
    }

    /// Filebeat does not have it.
    pub const fn ours(mut self) -> Self {
        self.spec.is_ours = true;
        self
    }

    /// A wrong value is not shown: something else, a password for instance, may stand in its place.
    pub const fn hidden(mut self) -> Self {
        self.spec.is_hidden = true;
        self
    }

    /// It may hold a password, key or token.
    pub const fn secret(mut self) -> Self {
        self.spec.is_secret = true;
        self.hidden()
    }

    /// Its name sounds as if it deleted files or state, which it does not: it can be proposed for a misspelt one.
    pub const fn deletes_nothing(mut self) -> Self {
        self.spec.deletes_nothing = true;
        self
    }

    /// The same under another name, for a second group with the same setting.
    #[doc(hidden)]
    pub const fn within(mut self, group: &'static Group) -> Self {
        self.spec.group = Some(group);
        self
    }

    /// The constant default.
    pub const fn default_value(&self) -> Option<K::Const> {
        self.default
    }

    /// The name, dotted, relative to the map of its group.
    pub const fn name(&self) -> &'static str {
        self.spec.name
    }
}

#[cfg(test)]
mod tests;
