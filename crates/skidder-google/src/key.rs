//! Files with credentials, as Google's console and `gcloud` write them
//! (<https://cloud.google.com/docs/authentication/application-default-credentials>).

use serde_json::Value;
use skidder_config::Secret;

/// The token service of files that name none.
const TOKEN_URI: &str = "https://oauth2.googleapis.com/token";
/// The only domain of Google's APIs that is known here.
const UNIVERSE: &str = "googleapis.com";

/// The content of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyFile {
    /// `service_account`: the key of a program.
    Account(ServiceAccount),
    /// `authorized_user`: `gcloud auth application-default login`.
    User(User),
}

/// The key of a service account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceAccount {
    /// `client_email`, as `logs@project.iam.gserviceaccount.com`.
    pub email: String,
    /// `private_key_id`; empty for none.
    pub key_id: String,
    /// `private_key`, in PEM.
    pub key: Secret,
    /// `token_uri`: whom a token is asked of.
    pub token_uri: String,
}

/// What stands for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// `client_id`: the program that the person has allowed.
    pub client_id: String,
    /// `client_secret`.
    pub client_secret: Secret,
    /// `refresh_token`.
    pub refresh_token: Secret,
    /// `token_uri`, which such files usually have not.
    pub token_uri: String,
}

/// Why a file has no credentials. None of the texts shows its content.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// It is no JSON.
    #[error(
        "it is no JSON object; expected the file that Google's console or `gcloud` has written"
    )]
    Json,
    /// A member is missing, or no text.
    #[error(
        "`{0}` is missing in it; expected the file that Google's console or `gcloud` has written"
    )]
    Missing(&'static str),
    /// It is of a kind that is not known here.
    #[error(
        "its `type` is `{0}`; expected `service_account` or `authorized_user`: make a key of a service account, or run on \
         a machine of Google's whose service account has the rights"
    )]
    Kind(String),
    /// It is for another cloud than Google's public one.
    #[error("its `universe_domain` is `{0}`; only `googleapis.com` is supported")]
    Universe(String),
}

impl KeyFile {
    /// Reads the text of a file.
    ///
    /// # Errors
    ///
    /// It has no credentials.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let file: Value = serde_json::from_str(text).map_err(|_| KeyError::Json)?;
        if !file.is_object() {
            return Err(KeyError::Json);
        }
        let optional = |name: &str| {
            let text = file.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
            text.map(str::to_owned)
        };
        let text = |name: &'static str| optional(name).ok_or(KeyError::Missing(name));
        if let Some(universe) = optional("universe_domain").filter(|domain| domain != UNIVERSE) {
            return Err(KeyError::Universe(universe));
        }
        let token_uri = optional("token_uri").unwrap_or_else(|| TOKEN_URI.to_owned());
        match &*text("type")? {
            "service_account" => Ok(Self::Account(ServiceAccount {
                email: text("client_email")?,
                key_id: optional("private_key_id").unwrap_or_default(),
                key: Secret::new(text("private_key")?),
                token_uri,
            })),
            "authorized_user" => Ok(Self::User(User {
                client_id: text("client_id")?,
                client_secret: Secret::new(text("client_secret")?),
                refresh_token: Secret::new(text("refresh_token")?),
                token_uri,
            })),
            other => Err(KeyError::Kind(other.to_owned())),
        }
    }

    /// Whom a token is asked of.
    pub fn token_uri(&self) -> &str {
        match self {
            Self::Account(account) => &account.token_uri,
            Self::User(user) => &user.token_uri,
        }
    }

    /// How messages call it.
    pub fn name(&self) -> String {
        match self {
            Self::Account(account) => format!("service account `{}`", account.email),
            Self::User(user) => format!("the user of client `{}`", user.client_id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_files_are_read() {
        let text = r#"{"type": "service_account", "project_id": "p", "private_key_id": "k1", "private_key": "PEM",
            "client_email": "logs@p.iam.gserviceaccount.com", "client_id": "1", "token_uri": "https://tokens/",
            "universe_domain": "googleapis.com"}"#;
        let key = KeyFile::parse(text).unwrap();
        let expected = ServiceAccount {
            email: "logs@p.iam.gserviceaccount.com".to_owned(),
            key_id: "k1".to_owned(),
            key: Secret::new("PEM"),
            token_uri: "https://tokens/".to_owned(),
        };
        assert_eq!(key, KeyFile::Account(expected));
        assert_eq!(key.name(), "service account `logs@p.iam.gserviceaccount.com`");
        assert!(!format!("{key:?}").contains("PEM"));
        let text = r#"{"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r"}"#;
        let KeyFile::User(user) = KeyFile::parse(text).unwrap() else { panic!("a user") };
        assert_eq!((&*user.client_id, user.refresh_token.reveal()), ("c", "r"));
        assert_eq!(user.token_uri, TOKEN_URI);
    }

    #[test]
    fn what_is_missing_is_named_and_nothing_is_shown() {
        let table = [
            ("", "it is no JSON"),
            ("[]", "it is no JSON"),
            ("{\"private_key\": \"geheim\"}", "`type` is missing"),
            (
                "{\"type\": \"service_account\", \"private_key\": \"geheim\"}",
                "`client_email` is missing",
            ),
            (
                "{\"type\": \"service_account\", \"client_email\": \"a\", \"private_key\": 7}",
                "`private_key` is missing",
            ),
            ("{\"type\": \"external_account\"}", "make a key of a service account"),
            (
                "{\"type\": \"service_account\", \"universe_domain\": \"other.example\"}",
                "`universe_domain` is `other.example`",
            ),
        ];
        for (text, expected) in table {
            let error = KeyFile::parse(text).unwrap_err().to_string();
            assert!(error.contains(expected) && !error.contains("geheim"), "{text}: {error}");
        }
    }
}
