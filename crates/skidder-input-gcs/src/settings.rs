//! Settings of the input `gcs`, as Filebeat has them (`x-pack/filebeat/input/gcs/config.go`).

mod bucket;

use crate::Gcs;
pub use bucket::{BucketSettings, GCS_BUCKET, Listing, Reading};
use skidder_config::{Group, Key, Secret, Section, settings};
use skidder_google::{Retry, SCOPE_READ_ONLY, STORAGE_URL, Service, Source, Target, Tokens};
use skidder_net::{HTTPS, HostUrl, PROXY, ProxyChoice, read_client, read_https, usual_port};
use skidder_os::Fs;
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The path of the API on another server, as in Filebeat.
const API_PATH: &str = "/storage/v1";
/// The longest pause between two tries.
const PAUSE_MAX: Duration = Duration::from_hours(1);
/// The shortest one.
const PAUSE_MIN: Duration = Duration::from_millis(1);

settings! {
    /// Settings of `gcs`, without those that a bucket can have ([`GCS_BUCKET`]).
    pub static GCS_INPUT = Group::new("input.gcs.account", "Where the buckets are, and who reads them.")
        .include(&[&PROXY, &HTTPS])
        .called_elsewhere(&[
            ("bucket", "buckets", "a list, as in `buckets: [{name: logs}]`"),
            ("credentials_file", "auth.credentials_file.path", ""),
            ("credentials_json", "auth.credentials_json.account_key", ""),
        ]);

    PROJECT_ID: String = Key::new("project_id")
        .required()
        .about("the project of the buckets, for messages: names of buckets are the same in all projects");
    CREDENTIALS_FILE: PathBuf = Key::new("auth.credentials_file.path").about(
        "a file with the key of a service account, or of `gcloud auth application-default login`; read again for each \
         token",
    );
    CREDENTIALS_JSON: Secret = Key::new("auth.credentials_json.account_key")
        .default_words("the file of `GOOGLE_APPLICATION_CREDENTIALS`, that of `gcloud`, the service account of the machine")
        .about("the text of such a file");
    ALTERNATIVE_HOST: String = Key::new("alternative_host")
        .default_words("Google's")
        .noun("a URL")
        .about("`http[s]://host[:port]` of another server with the API of Cloud Storage, which gets no credentials");
    MAX_ATTEMPTS: u32 = Key::new("retry.max_attempts")
        .default(3)
        .range(1, 100)
        .noun("a number of tries")
        .about(
            "of a request that may pass: without an answer, or with 408, 429 or 5xx. *Differs*: objects are tried again \
             with later listings, too, however often they have failed",
        );
    INITIAL_BACKOFF: Duration = Key::new("retry.initial_backoff_duration")
        .default(Duration::from_secs(1))
        .range(PAUSE_MIN, PAUSE_MAX)
        .about("the pause before the second try");
    MAX_BACKOFF: Duration = Key::new("retry.max_backoff_duration")
        .default(Duration::from_secs(30))
        .range(PAUSE_MIN, PAUSE_MAX)
        .about("the longest pause");
    BACKOFF_MULTIPLIER: f64 = Key::new("retry.backoff_multiplier")
        .default(2.0)
        .range(1.1, 1000.0)
        .noun("a number")
        .about("each pause is that many times as long as the one before");
}

/// What the input is run with.
#[derive(Debug)]
pub(crate) struct Settings {
    /// The time limit is that of each bucket.
    pub(crate) service: Service,
    /// At least one; no two have the same name.
    pub(crate) buckets: Vec<BucketSettings>,
}

/// Reads the settings of [`GCS_INPUT`]; `variable` gives the value of one of the environment. `None`, and the problems are
/// reported, if something is wrong.
pub fn read(
    section: &Section<'_>,
    fs: &Arc<dyn Fs>,
    buckets: Vec<BucketSettings>,
    variable: impl Fn(&str) -> Option<String>,
) -> Option<Gcs> {
    let project = section.get(&PROJECT_ID).required();
    if project.is_empty() && section.has(PROJECT_ID.name()) {
        section.missing(PROJECT_ID.name(), "is empty", "the id of a project of Google's");
    }
    let other = section.get(&ALTERNATIVE_HOST).try_map(|text| read_host(&text));
    let is_wrong = other.is_wrong() || project.is_empty();
    let other = other.optional();
    let source = read_source(section, fs, other.is_some(), &variable);
    let retry = read_retry(section);
    let proxy = ProxyChoice::read(section, &variable);
    let tls = read_https(section);
    let url = other.or_else(|| HostUrl::parse(STORAGE_URL, "", "", usual_port).ok())?;
    let off = (
        "the server needs TLS, but `ssl.enabled` is false",
        "leave it out, or set `alternative_host` to a server without TLS",
    );
    let tls = read_client(section, &tls, url.https, off, fs);
    let is_twice = has_twice(section, &buckets);
    let tokens = Tokens::new(source?, SCOPE_READ_ONLY, proxy.clone(), Arc::clone(fs));
    let tokens = tokens.map_err(|error| section.problem_named(error.setting(), &error)).ok()?;
    let tls = tls.ok()?;
    if is_wrong || is_twice || buckets.is_empty() {
        return None;
    }
    let timeout = Duration::ZERO;
    let target = Arc::new(Target::at(url, &proxy));
    let service = Service { target, tls, tokens: Arc::new(tokens), timeout, retry };
    Some(Gcs::new(Settings { service, buckets }, Arc::clone(fs)))
}

/// Reads `alternative_host`. The error ends the sentence "`alternative_host` is …; ".
fn read_host(text: &str) -> Result<HostUrl, String> {
    let mut url = HostUrl::parse(text, "", "", usual_port)?;
    if url.credentials.is_some() {
        return Err("it gets no credentials".to_owned());
    }
    if !url.path.is_empty() && url.path != API_PATH {
        return Err(format!("expected no path: that of the API is `{API_PATH}`"));
    }
    API_PATH.clone_into(&mut url.path);
    Ok(url)
}

fn read_source(
    section: &Section<'_>,
    fs: &Arc<dyn Fs>,
    is_other: bool,
    variable: &impl Fn(&str) -> Option<String>,
) -> Option<Source> {
    let file = section.get(&CREDENTIALS_FILE).optional();
    let text = section.get(&CREDENTIALS_JSON).optional().filter(|text| !text.is_empty());
    let (file_key, text_key) = (CREDENTIALS_FILE.name(), CREDENTIALS_JSON.name());
    if is_other {
        for name in [file_key, text_key].iter().filter(|name| section.has(name)) {
            let message = format!("`{name}` has no effect: `alternative_host` gets no credentials");
            section.warning(name, message, "leave one of them out");
        }
        return Some(Source::None);
    }
    let (key, found) = match (file, text) {
        (file, Some(text)) => {
            if file.is_some() {
                let message = format!("`{file_key}` has no effect beside `{text_key}`");
                section.warning(file_key, message, "leave one of them out");
            }
            (text_key, Source::of_text(&text))
        }
        (Some(path), None) => (file_key, Source::of_file(&**fs, path)),
        (None, None) => ("", Source::of_environment(&**fs, variable)),
    };
    let hint = "a key is made for a service account in Google's console, under IAM, Service Accounts, Keys";
    let found = found.map_err(|error| {
        let message = match key {
            "" => error.to_string(),
            key => format!("`{key}`: {error}"),
        };
        section.problem(key, message, hint);
    });
    found.ok()
}

fn read_retry(section: &Section<'_>) -> Retry {
    let retry = Retry {
        attempts: section.get(&MAX_ATTEMPTS).value(),
        first: section.get(&INITIAL_BACKOFF).value(),
        longest: section.get(&MAX_BACKOFF).value(),
        factor: section.get(&BACKOFF_MULTIPLIER).value(),
    };
    if retry.longest < retry.first {
        let (longest, first) = (MAX_BACKOFF.name(), INITIAL_BACKOFF.name());
        let message = format!("`{longest}` is shorter than `{first}`");
        section.problem(longest, message, "set it to the double of that");
    }
    retry
}

/// Whether two buckets have the same name: both would read its objects.
fn has_twice(section: &Section<'_>, buckets: &[BucketSettings]) -> bool {
    let mut names = HashSet::new();
    let twice = buckets.iter().find(|bucket| !names.insert(&bucket.name));
    if let Some(BucketSettings { name, .. }) = twice {
        let message = format!("`buckets` has `{name}` twice, and both would read its objects");
        let hint = "leave one of them out; `file_selectors` takes several expressions";
        section.problem("buckets", message, hint);
    }
    twice.is_some()
}

#[cfg(test)]
mod tests;
