//! Where credentials come from: a file, a text, the environment, or the machine.

use crate::jwt::{SignError, key_pair};
use crate::key::{KeyError, KeyFile};
use skidder_config::Secret;
use skidder_net::{HostUrl, usual_port};
use skidder_os::{Fs, read_to_end};
use std::io;
use std::path::{Path, PathBuf};

/// Longest file with credentials.
const FILE_BYTES_MAX: usize = 64 << 10;
/// The variable with the path of a file.
const FILE_VARIABLE: &str = "GOOGLE_APPLICATION_CREDENTIALS";
/// The variable with the address of another metadata server.
const METADATA_VARIABLE: &str = "GCE_METADATA_HOST";
/// The metadata server of machines of Google's.
const METADATA: &str = "metadata.google.internal";

/// Where the credentials come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Nowhere: requests have none.
    None,
    /// Those of the settings: they never change.
    Key(KeyFile),
    /// A file, read again for each token.
    File(PathBuf),
    /// The service account of the machine, by its metadata server.
    Machine(HostUrl),
}

/// Why there are no credentials.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The file cannot be read.
    #[error("cannot read `{}`: {source}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file, or the text of the settings, has none.
    #[error("{place}: {source}")]
    Key {
        /// The file, or what stands for the text.
        place: String,
        /// Why.
        source: KeyError,
    },
    /// The key cannot sign.
    #[error("{place}: {source}")]
    Sign {
        /// The file, or what stands for the text.
        place: String,
        /// Why.
        source: SignError,
    },
    /// A variable of the environment has a mistake.
    #[error("the environment variable {variable} is `{text}`; {message}")]
    Variable {
        /// Its name.
        variable: &'static str,
        /// Its value.
        text: String,
        /// What is wrong.
        message: String,
    },
}

impl Source {
    /// The file at this path, which is looked at once.
    ///
    /// # Errors
    ///
    /// It cannot be read, or has no credentials.
    pub fn of_file(fs: &dyn Fs, path: PathBuf) -> Result<Self, SourceError> {
        check(&path.display().to_string(), &read_file(fs, &path)?)?;
        Ok(Self::File(path))
    }

    /// The text of such a file.
    ///
    /// # Errors
    ///
    /// It has no credentials.
    pub fn of_text(text: &Secret) -> Result<Self, SourceError> {
        const PLACE: &str = "the text";
        let key = KeyFile::parse(text.reveal());
        let key = key.map_err(|source| SourceError::Key { place: PLACE.to_owned(), source })?;
        check(PLACE, &key)?;
        Ok(Self::Key(key))
    }

    /// As programs of Google look for them: the file of `GOOGLE_APPLICATION_CREDENTIALS`, that of `gcloud`, the machine.
    /// Whether this is a machine of Google's shows when a token is needed.
    ///
    /// # Errors
    ///
    /// A file has none, or a variable has a mistake.
    pub fn of_environment(
        fs: &dyn Fs,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, SourceError> {
        let set = |name: &str| variable(name).filter(|text| !text.is_empty());
        if let Some(path) = set(FILE_VARIABLE) {
            return Self::of_file(fs, PathBuf::from(path));
        }
        let folder = set("CLOUDSDK_CONFIG").map(PathBuf::from);
        let usual = || set("HOME").map(|home| PathBuf::from(home).join(".config").join("gcloud"));
        if let Some(folder) = folder.or_else(usual) {
            let path = folder.join("application_default_credentials.json");
            match Self::of_file(fs, path) {
                Err(SourceError::File { source, .. })
                    if source.kind() == io::ErrorKind::NotFound => {}
                found => return found,
            }
        }
        let host = set(METADATA_VARIABLE).unwrap_or_else(|| METADATA.to_owned());
        let url = HostUrl::parse(&host, "http", "", usual_port);
        url.map(Self::Machine).map_err(|message| SourceError::Variable {
            variable: METADATA_VARIABLE,
            text: host,
            message,
        })
    }

    /// How messages call it.
    pub fn name(&self) -> String {
        match self {
            Self::None => "no credentials".to_owned(),
            Self::Key(key) => key.name(),
            Self::File(path) => format!("the credentials in `{}`", path.display()),
            Self::Machine(_) => "the service account of the machine".to_owned(),
        }
    }
}

/// Reads a file with credentials.
pub(crate) fn read_file(fs: &dyn Fs, path: &Path) -> Result<KeyFile, SourceError> {
    let read = fs.open(path).and_then(|file| read_to_end(&*file, FILE_BYTES_MAX));
    let bytes = read.map_err(|source| SourceError::File { path: path.to_owned(), source })?;
    let key = KeyFile::parse(&String::from_utf8_lossy(&bytes));
    key.map_err(|source| SourceError::Key { place: path.display().to_string(), source })
}

/// Finds a mistake in a key before it is needed.
fn check(place: &str, key: &KeyFile) -> Result<(), SourceError> {
    let KeyFile::Account(account) = key else { return Ok(()) };
    let place = || place.to_owned();
    match key_pair(account.key.reveal()) {
        Ok(_) => Ok(()),
        Err(source) => Err(SourceError::Sign { place: place(), source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skidder_os::RealFs;

    fn key_text() -> String {
        let key = include_str!("testdata/key.pem");
        let file = serde_json::json!({
            "type": "service_account", "client_email": "a@b", "private_key": key,
        });
        file.to_string()
    }

    fn found(variables: &[(&str, &str)]) -> Result<Source, SourceError> {
        Source::of_environment(&RealFs, |name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_environment_is_looked_through_in_googles_order() {
        let place = tempfile::tempdir().unwrap();
        let home = place.path().to_str().unwrap();
        let folder = place.path().join(".config/gcloud");
        std::fs::create_dir_all(&folder).unwrap();
        let metadata = |source| match source {
            Source::Machine(url) => url.to_string(),
            other => panic!("{other:?}"),
        };
        let machine = metadata(found(&[("HOME", home)]).unwrap());
        assert_eq!(machine, "http://metadata.google.internal:80");
        let machine = metadata(found(&[("GCE_METADATA_HOST", "127.0.0.1:1")]).unwrap());
        assert_eq!(machine, "http://127.0.0.1:1");
        let usual = folder.join("application_default_credentials.json");
        std::fs::write(&usual, key_text()).unwrap();
        assert_eq!(found(&[("HOME", home)]).unwrap(), Source::File(usual.clone()));
        let other = place.path().join("key.json");
        let set = [("HOME", home), ("GOOGLE_APPLICATION_CREDENTIALS", other.to_str().unwrap())];
        let error = found(&set).unwrap_err().to_string();
        assert!(error.contains("cannot read") && error.contains("key.json"), "{error}");
        std::fs::write(&other, key_text()).unwrap();
        assert_eq!(found(&set).unwrap(), Source::File(other));
        let error = found(&[("GCE_METADATA_HOST", "a b:c")]).unwrap_err().to_string();
        assert!(error.contains("GCE_METADATA_HOST is `a b:c`"), "{error}");
    }

    #[test]
    fn a_key_that_cannot_sign_is_found_at_once() {
        let source = Source::of_text(&Secret::new(key_text())).unwrap();
        assert_eq!(source.name(), "service account `a@b`");
        let text = key_text().replace("MII", "XXX");
        let error = Source::of_text(&Secret::new(text)).unwrap_err();
        assert!(error.to_string().contains("`private_key` is no RSA key"), "{error}");
    }
}
