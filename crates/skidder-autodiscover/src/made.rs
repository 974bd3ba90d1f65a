//! An input that autodiscover made.

use serde_json::Value as Json;
use skidder_config::MadeSettings;
use std::borrow::Cow;
use std::sync::Arc;

/// What is between an object and the rule that made its input, in [`Made::about`].
pub(crate) const BY: &str = ", by ";

/// An object that has inputs, as it is saved for the next run. It has no secret but those in annotations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    /// The number of the provider.
    pub provider: usize,
    /// The id of the object.
    pub id: String,
    /// What it is.
    pub kind: Cow<'static, str>,
    /// Its description, as JSON.
    pub fact: Arc<str>,
}

/// Fields of all events of an input, kept as text: a tree of values takes ten times as much, and they are seldom read.
/// Clones are the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fields(Arc<str>);

impl Fields {
    pub(crate) fn of(fields: &Json) -> Self {
        Self(fields.to_string().into())
    }

    /// The fields, an object.
    pub fn value(&self) -> Json {
        serde_json::from_str(&self.0).expect("the text was made of a value")
    }
}

/// An input that should run, made by a template or by hints.
#[derive(Clone, Debug)]
pub struct Made {
    /// Names it, as long as its configuration is the same: provider, container, and a hash of the configuration.
    pub key: String,
    /// A list with one configuration: of an input, or of a module.
    pub settings: Arc<MadeSettings>,
    /// The configuration is one of a module, as in a file of `filebeat.config.modules`.
    pub is_module: bool,
    /// Fields for every event of the input: `kubernetes.*`, `container.*` and so on. They may change while the input
    /// runs, which does not change its key.
    pub fields: Fields,
    /// What it is for, for messages: `container web of pod shop/web-1, by filebeat.yml:12:7`.
    pub about: String,
}

impl Made {
    /// The container or other object that it is for: `container web of pod shop/web-1`.
    pub fn object(&self) -> &str {
        self.about.rsplit_once(BY).map_or(&*self.about, |(object, _)| object)
    }
}
