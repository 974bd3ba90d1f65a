//! Where the credentials come from: the settings, the environment, a file that programs of Amazon share, or a role.

use crate::assume::{ASSUME, Assume};
use crate::client::{Failure, Service};
use crate::roles::{Role, RoleClient, RoleError};
use skidder_aws::{Credentials, ProfileError, ProfileFile, Scope, SigningKey};
use skidder_config::{Group, Key, Secret, Section, settings};
use skidder_net::ProxyChoice;
use skidder_net::cloud::Temporary;
use skidder_os::{Clock, Fs, Timestamp};
use skidder_tls::{TlsClient, TlsError, TlsSettings};
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

settings! {
    /// The settings of [`Source::read`].
    pub static CREDENTIALS = Group::new("aws_credentials", "Credentials of Amazon.")
        .include(&[&ASSUME])
        .unsupported(&[("credential_process", NO_PROCESS)]);

    ACCESS_KEY_ID: String = Key::new("access_key_id").default_words("`AWS_ACCESS_KEY_ID`").about(
        "the credentials, with `secret_access_key`",
    );
    SECRET_ACCESS_KEY: Secret = Key::new("secret_access_key")
        .default_words("`AWS_SECRET_ACCESS_KEY`")
        .about("the credentials, with `access_key_id`");
    SESSION_TOKEN: Secret = Key::new("session_token")
        .default_words("`AWS_SESSION_TOKEN`")
        .about("of temporary credentials");
    SHARED_FILE: PathBuf = Key::new("shared_credential_file")
        .default_words("`AWS_SHARED_CREDENTIALS_FILE`, `~/.aws/credentials`")
        .about("a file that is read again for each request");
    PROFILE: String = Key::new("credential_profile_name")
        .default_words("`AWS_PROFILE`, `default`")
        .about("the profile in it");
}

/// Signing keys that are kept: for each region and service that an input asks.
const KEYS_MAX: usize = 16;

/// The hint instead of a program.
const NO_PROCESS: &str = "let the program keep `shared_credential_file` fresh: it is read again";

/// The credentials of a role are renewed this long before they expire.
const MARGIN: Duration = Duration::from_mins(5);

/// Where the credentials come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Of the settings or the environment: they never change.
    Fixed(Credentials),
    /// Read for each request, since others put new ones there before the old ones run out.
    File(ProfileFile),
    /// Valid for some time, and renewed before that ends.
    Role(Box<Role>),
    /// Of a role that is taken with other credentials.
    Assumed(Box<Assume>),
}

impl Source {
    /// Reads `access_key_id`, `secret_access_key`, `session_token`, `shared_credential_file` and
    /// `credential_profile_name`; without them, the environment. With `role_arn` and its like, these credentials take that
    /// role. Reports mistakes to the section's problems. `region` is that of the
    /// token service; the metadata service of the instance is used only `of_amazon`.
    pub fn read(
        section: &Section<'_>,
        (region, of_amazon): (&str, bool),
        fs: &Arc<dyn Fs>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Option<Self> {
        let set = |name: &str| variable(name).filter(|text| !text.is_empty());
        let first = Self::read_first(section, (region, of_amazon), fs, &set);
        Assume::read(section, region, &set, first)
    }

    /// Those that a request is signed with, or the one for another role.
    fn read_first(
        section: &Section<'_>,
        (region, of_amazon): (&str, bool),
        fs: &Arc<dyn Fs>,
        set: &impl Fn(&str) -> Option<String>,
    ) -> Option<Self> {
        let path = section.get(&SHARED_FILE).optional();
        let profile = section.get(&PROFILE).optional();
        let from_file = path.is_some() || profile.is_some();
        match keys(section) {
            Ok(None) => {}
            Ok(Some(keys)) => {
                if from_file {
                    let message = "`access_key_id` and a file with credentials are both set";
                    section.problem("access_key_id", message, "leave one of them out");
                }
                return Some(Self::Fixed(keys));
            }
            Err((key, message)) => {
                section.problem(key, message, "");
                return None;
            }
        }
        if !from_file && let Some(found) = Credentials::of_environment(set) {
            return Some(Self::Fixed(found));
        }
        let role = |found: Result<Option<Role>, String>| match found {
            Ok(found) => found.map(|role| Self::Role(Box::new(role))),
            Err(message) => {
                section.problem("", message, "");
                None
            }
        };
        if !from_file && let Some(role) = role(Role::web_identity(region, set)) {
            return Some(role);
        }
        let usual = || {
            set("AWS_SHARED_CREDENTIALS_FILE").map(PathBuf::from).or_else(|| {
                set("HOME").map(|home| PathBuf::from(home).join(".aws").join("credentials"))
            })
        };
        let profile = profile.or_else(|| set("AWS_PROFILE"));
        let profile = profile.unwrap_or_else(|| "default".to_owned());
        let file = path.or_else(usual).map(|path| ProfileFile { path, profile });
        match file.as_ref().map(|file| file.read(&**fs)) {
            Some(Ok(_)) => return file.map(Self::File),
            Some(Err(error)) if from_file => {
                section.problem("shared_credential_file", error.to_string(), "");
                return None;
            }
            _ => {}
        }
        if let Some(role) = role(Role::container(set)) {
            return Some(role);
        }
        if of_amazon && let Some(role) = role(Role::instance(set)) {
            return Some(role);
        }
        let message = format!("`{}` has no credentials", section.path());
        let hint = "set `access_key_id` and `secret_access_key`, or the variables AWS_ACCESS_KEY_ID and \
            AWS_SECRET_ACCESS_KEY, or `shared_credential_file`";
        section.problem("", message, hint);
        None
    }

    /// How messages call it.
    pub fn name(&self) -> String {
        match self {
            Self::Fixed(credentials) => format!("access key `{}`", credentials.id),
            Self::File(ProfileFile { path, profile }) => {
                format!("profile `{profile}` of `{}`", path.display())
            }
            Self::Role(role) => format!("a role, by {} `{}`", role.issuer(), role.url()),
            Self::Assumed(assume) => {
                format!("role `{}`, taken with {}", assume.role, assume.by.name())
            }
        }
    }
}

/// `access_key_id`, `secret_access_key` and `session_token`. The error describes the mistake, with its key.
fn keys(section: &Section<'_>) -> Result<Option<Credentials>, (&'static str, &'static str)> {
    let id = section.get(&ACCESS_KEY_ID).optional().filter(|id| !id.is_empty());
    let secret = section.get(&SECRET_ACCESS_KEY).optional();
    let session = section.get(&SESSION_TOKEN).optional();
    let session = session.filter(|session| !session.is_empty());
    match (id, secret.filter(|secret| !secret.is_empty()), session) {
        (Some(id), Some(secret), session) => Ok(Some(Credentials { id, secret, session })),
        (None, None, None) => Ok(None),
        (Some(_), None, _) => Err(("access_key_id", "`access_key_id` needs `secret_access_key`")),
        (None, Some(_), _) => {
            Err(("secret_access_key", "`secret_access_key` needs `access_key_id`"))
        }
        (None, None, Some(_)) => {
            Err(("session_token", "`session_token` needs `access_key_id` and `secret_access_key`"))
        }
    }
}

/// Why requests cannot be signed.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// The file has none.
    #[error(transparent)]
    File(#[from] ProfileError),
    /// The issuer of a role gives none.
    #[error("no credentials: {0}; or set `access_key_id` and `secret_access_key`")]
    Role(#[from] RoleError),
    /// The token service does not give those of another role.
    #[error("cannot take the role `{role}`: {source}; see `role_arn` and `external_id`")]
    Assume {
        /// `role_arn`.
        role: String,
        /// Why.
        source: Box<Failure>,
    },
}

/// Gives the credentials of now. Shared by the workers of an input or output.
pub struct Provider {
    source: Source,
    client: RoleClient,
    /// The token service, for another role.
    tokens: Option<Service>,
    /// Those of a role.
    given: Temporary<Credentials>,
    /// At the end the newest.
    keys: Mutex<Vec<Arc<SigningKey>>>,
}

impl fmt::Debug for Provider {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Provider").field(&self.source).finish()
    }
}

impl Provider {
    /// Reads certificates; connects to nothing. `proxy` is for the token service.
    pub fn new(source: Source, proxy: ProxyChoice, fs: Arc<dyn Fs>) -> Result<Self, TlsError> {
        let is_https = match &source {
            Source::Role(role) => role.url().https,
            Source::Assumed(assume) => assume.service.https,
            Source::Fixed(_) | Source::File(_) => false,
        };
        // `ssl` of the settings is about the server of the service.
        let tls = is_https.then(|| TlsClient::new(&TlsSettings::default(), Arc::clone(&fs)));
        let tls = tls.transpose()?;
        let tokens = match &source {
            Source::Assumed(assume) => {
                let by = Self::new(assume.by.clone(), proxy.clone(), Arc::clone(&fs))?;
                Some(assume.tokens(by, tls.clone(), &proxy))
            }
            _ => None,
        };
        let client = RoleClient { fs, tls, proxy };
        Ok(Self { source, client, tokens, given: Temporary::default(), keys: Mutex::default() })
    }

    /// Credentials that hold now. Those of a file are read each time, those of a role requested shortly before they expire.
    ///
    /// # Errors
    ///
    /// There are none.
    pub async fn get(&self, clock: &Arc<dyn Clock>) -> Result<Credentials, CredentialsError> {
        let margin = match &self.source {
            Source::Fixed(credentials) => return Ok(credentials.clone()),
            Source::File(file) => return Ok(file.read(&*self.client.fs)?),
            Source::Role(_) => MARGIN,
            Source::Assumed(assume) => assume.window,
        };
        let warn = |error| tracing::warn!(%error, "cannot replace credentials that run out soon");
        self.given.get(clock, margin, |now| self.ask(clock, now), warn).await
    }

    /// New credentials of a role, and until when they hold.
    async fn ask(
        &self,
        clock: &Arc<dyn Clock>,
        now: Timestamp,
    ) -> Result<(Credentials, Timestamp), CredentialsError> {
        match (&self.source, &self.tokens) {
            (Source::Role(role), _) => Ok(role.ask(&self.client, now).await?),
            (Source::Assumed(assume), Some(tokens)) => assume.ask(tokens, clock).await,
            _ => unreachable!("others need not be requested"),
        }
    }

    /// The server does not accept these credentials any more: those of a role are requested again.
    pub async fn forget(&self) {
        self.given.forget().await;
    }

    /// The key for these credentials and this scope: that of an earlier request, or a new one.
    pub(crate) fn signing_key(
        &self,
        credentials: &Credentials,
        scope: Scope<'_>,
    ) -> Arc<SigningKey> {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(key) = keys.iter().find(|key| key.is_for(credentials, scope)) {
            return Arc::clone(key);
        }
        if keys.len() == KEYS_MAX {
            keys.remove(0);
        }
        let key = Arc::new(SigningKey::new(credentials, scope));
        keys.push(Arc::clone(&key));
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skidder_os::RealFs;

    #[test]
    fn signing_keys_are_kept_and_not_too_many() {
        let credentials = |id: &str| Credentials {
            id: id.to_owned(),
            secret: Secret::new("secret"),
            session: None,
        };
        let one = credentials("AKID");
        let source = Source::Fixed(one.clone());
        let provider = Provider::new(source, ProxyChoice::Direct, Arc::new(RealFs)).unwrap();
        let scope = Scope { time: "20150830T123600Z", region: "us-east-1", service: "s3" };
        let key = provider.signing_key(&one, scope);
        assert!(Arc::ptr_eq(&key, &provider.signing_key(&one, scope)));
        let other = credentials("OTHER");
        assert!(provider.signing_key(&other, scope).is_for(&other, scope));
        let regions: Vec<String> = (0..KEYS_MAX).map(|number| number.to_string()).collect();
        for region in &regions {
            let scope = Scope { region, ..scope };
            assert!(provider.signing_key(&one, scope).is_for(&one, scope));
        }
        assert_eq!(provider.keys.lock().unwrap().len(), KEYS_MAX);
        assert!(!Arc::ptr_eq(&key, &provider.signing_key(&one, scope)));
    }
}
