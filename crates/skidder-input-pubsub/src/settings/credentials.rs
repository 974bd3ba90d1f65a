//! Settings of credentials: a file, the text of one, or what the environment has.

use crate::token::Login;
use skidder_config::{Any, Group, Key, Secret, Section, Value, settings};
use skidder_google::{Source, Tokens};
use skidder_net::ProxyChoice;
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

/// What a token is good for.
const SCOPE: &str = "https://www.googleapis.com/auth/pubsub";

/// Reads the credentials, if they are needed; `proxy` is for the service that hands out tokens. `None`, and the problem is
/// reported, if something is wrong with them.
pub(super) fn read(
    section: &Section<'_>,
    fs: &Arc<dyn Fs>,
    (is_needed, proxy): (bool, &ProxyChoice),
    variable: &impl Fn(&str) -> Option<String>,
) -> Option<Login> {
    let file = section.get(&CREDENTIALS_FILE).optional();
    let text = section.any(&CREDENTIALS_JSON).map(|item| match item.value() {
        Value::String(text) => Secret::new(text),
        value => Secret::new(serde_json::Value::from(&value).to_string()),
    });
    if !is_needed {
        return Some(Login::None);
    }
    let (key, source) = match (file, text) {
        (Some(path), _) => (CREDENTIALS_FILE.name(), Source::of_file(&**fs, path)),
        (None, Some(text)) => (CREDENTIALS_JSON.name(), Source::of_text(&text)),
        (None, None) => ("", Source::of_environment(&**fs, variable)),
    };
    let tokens = match source {
        Ok(source) => Tokens::new(source, SCOPE, proxy.clone(), Arc::clone(fs)),
        Err(error) => {
            let hint =
                "it is the JSON of a key that the console of Google makes for a service account";
            section.problem(key, error.to_string(), hint);
            return None;
        }
    };
    let tokens = tokens.map_err(|error| section.problem_named(error.setting(), &error)).ok()?;
    Some(Login::Google(Arc::new(tokens)))
}
