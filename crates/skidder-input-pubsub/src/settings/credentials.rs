//! Settings of credentials: a file, the text of one, or what the environment has.

use crate::token::Login;
use skidder_config::{Any, Group, Key, Section, Value, settings};
use skidder_os::Fs;
use std::path::PathBuf;
use std::sync::Arc;

settings! {
    /// Credentials of Google.
    pub(crate) static CREDENTIALS = Group::new("input.gcp-pubsub.credentials", "Credentials of Google.");

    CREDENTIALS_FILE: PathBuf = Key::new("credentials_file")
        .default_words("`GOOGLE_APPLICATION_CREDENTIALS`, that of `gcloud`, the account of the machine")
        .about("a file with the key of a service account, or with the login of a user; read again for each token");
    CREDENTIALS_JSON: Any = Key::new("credentials_json")
        .secret()
        .noun("the JSON of a file with credentials")
        .about("the same in place of a file, as a text or as a map; `credentials_file` wins");
}

/// Reads the credentials. `None`, and the problem is reported, if there are none.
pub(super) fn read(
    section: &Section<'_>,
    _fs: &Arc<dyn Fs>,
    is_needed: bool,
    _variable: &impl Fn(&str) -> Option<String>,
) -> Option<Login> {
    let file = section.get(&CREDENTIALS_FILE).optional();
    let text = section.any(&CREDENTIALS_JSON).map(|item| match item.value() {
        Value::String(text) => text,
        value => serde_json::Value::from(&value).to_string(),
    });
    if !is_needed {
        return Some(Login::None);
    }
    let key = if file.is_some() { CREDENTIALS_FILE.name() } else { CREDENTIALS_JSON.name() };
    drop(text);
    let message = "credentials of Google cannot be used by this build yet";
    section.problem(
        key,
        message,
        "set `alternative_host` to an emulator, or leave this input to Filebeat",
    );
    None
}
