//! Where the credentials come from: the settings, the environment, or a file that programs of Amazon share.

use skidder_aws::{Credentials, ProfileError, ProfileFile};
use skidder_config::{Secret, Section};
use skidder_os::Fs;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// Where the credentials come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Of the settings or the environment: they never change.
    Fixed(Credentials),
    /// Read for each request, since others put new ones there before the old ones run out.
    File(ProfileFile),
}

impl Source {
    /// Reads `access_key_id`, `secret_access_key`, `session_token`, `shared_credential_file` and
    /// `credential_profile_name`; without them, the environment. Mistakes are told to the section's problems.
    pub(crate) fn read(
        section: &Section<'_>,
        fs: &Arc<dyn Fs>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Option<Self> {
        section.unsupported(
            &["role_arn", "external_id", "credential_process", "assume_role.*"],
            "give the credentials of the role: in `shared_credential_file`, which is read again, or as `session_token`",
        );
        let id = section.string("access_key_id").optional();
        let secret = section.secret("secret_access_key").optional();
        let session = section.secret("session_token").optional();
        let path = section.path_buf("shared_credential_file").optional();
        let profile = section.string("credential_profile_name").optional();
        let from_file = path.is_some() || profile.is_some();
        match (id.filter(|id| !id.is_empty()), secret.filter(|secret| !secret.is_empty())) {
            (Some(id), Some(secret)) => {
                if from_file {
                    let message = "`access_key_id` and a file with credentials are both set";
                    section.problem("access_key_id", message, "leave one of them out");
                }
                let session = session.filter(|session| !session.is_empty());
                return Some(Self::Fixed(Credentials { id, secret, session }));
            }
            (Some(_), None) => {
                let message = "`access_key_id` needs `secret_access_key`";
                section.problem("access_key_id", message, "");
                return None;
            }
            (None, Some(_)) => {
                let message = "`secret_access_key` needs `access_key_id`";
                section.problem("secret_access_key", message, "");
                return None;
            }
            (None, None) => {}
        }
        if session.is_some() {
            let message = "`session_token` needs `access_key_id` and `secret_access_key`";
            section.problem("session_token", message, "");
            return None;
        }
        if !from_file && let Some(found) = Credentials::of_environment(&variable) {
            return Some(Self::Fixed(found));
        }
        let set = |name: &str| variable(name).filter(|text| !text.is_empty());
        let usual = || {
            set("AWS_SHARED_CREDENTIALS_FILE").map(PathBuf::from).or_else(|| {
                set("HOME").map(|home| PathBuf::from(home).join(".aws").join("credentials"))
            })
        };
        let profile =
            profile.or_else(|| set("AWS_PROFILE")).unwrap_or_else(|| "default".to_owned());
        let file = path.or_else(usual).map(|path| ProfileFile { path, profile });
        match file.as_ref().map(|file| file.read(&**fs)) {
            Some(Ok(_)) => file.map(Self::File),
            Some(Err(error)) if from_file => {
                section.problem("shared_credential_file", error.to_string(), "");
                None
            }
            _ => {
                let message = format!("`{}` has no credentials", section.path());
                let hint = "set `access_key_id` and `secret_access_key`, or the variables AWS_ACCESS_KEY_ID and \
                    AWS_SECRET_ACCESS_KEY, or `shared_credential_file`";
                section.problem("", message, hint);
                None
            }
        }
    }

    /// How messages call it.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Fixed(credentials) => format!("access key `{}`", credentials.id),
            Self::File(ProfileFile { path, profile }) => {
                format!("profile `{profile}` of `{}`", path.display())
            }
        }
    }
}

/// Why nobody can sign.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CredentialsError {
    #[error(transparent)]
    File(#[from] ProfileError),
}

/// Gives the credentials of now. Shared by the workers of an output.
pub(crate) struct Provider {
    source: Source,
    fs: Arc<dyn Fs>,
}

impl fmt::Debug for Provider {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Provider").field(&self.source).finish()
    }
}

impl Provider {
    pub(crate) fn new(source: Source, fs: Arc<dyn Fs>) -> Self {
        Self { source, fs }
    }

    pub(crate) async fn get(&self) -> Result<Credentials, CredentialsError> {
        match &self.source {
            Source::Fixed(credentials) => Ok(credentials.clone()),
            Source::File(file) => Ok(file.read(&*self.fs)?),
        }
    }

    /// The server refused a request: what was remembered is asked for again.
    pub(crate) fn forget(&self) {}
}

/// Those of tests.
#[doc(hidden)]
pub fn fixed(id: &str, secret: &str) -> Source {
    Source::Fixed(Credentials { id: id.to_owned(), secret: Secret::new(secret), session: None })
}
