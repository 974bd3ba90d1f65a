//! Credentials for signing: of the settings, the environment, or a file that programs of Amazon share
//! (<https://docs.aws.amazon.com/sdkref/latest/guide/file-format.html>).

use skidder_config::Secret;
use skidder_os::{Fs, read_to_end};
use std::io;
use std::path::PathBuf;

/// Bytes of a file with credentials that are read: more is none.
const FILE_BYTES_MAX: usize = 1 << 20;

/// The credentials for signing a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// As `AKIAIOSFODNN7EXAMPLE`.
    pub id: String,
    /// Never sent.
    pub secret: Secret,
    /// Of credentials that expire; sent with each request.
    pub session: Option<Secret>,
}

impl Credentials {
    /// Those of the usual variables; both parts must be there.
    pub fn of_environment(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let set = |name: &str| variable(name).filter(|text| !text.is_empty());
        Some(Self {
            id: set("AWS_ACCESS_KEY_ID")?,
            secret: Secret::new(set("AWS_SECRET_ACCESS_KEY")?),
            session: set("AWS_SESSION_TOKEN").map(Secret::new),
        })
    }
}

/// A profile of a shared file. The file is read at each use, since other programs put new
/// credentials into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileFile {
    /// As `.aws/credentials` in the home of the user.
    pub path: PathBuf,
    /// The name of its section.
    pub profile: String,
}

/// Why a file gives no credentials.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// It cannot be read.
    #[error("cannot read `{}`: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The profile is there, but unusable.
    #[error("profile `{profile}` in `{}` {what}", .path.display())]
    Profile {
        /// The file.
        path: PathBuf,
        /// The section.
        profile: String,
        /// The problem.
        what: String,
    },
}

impl ProfileFile {
    /// The current credentials of the file.
    ///
    /// # Errors
    ///
    /// There is no such file or profile, or it has no keys.
    pub fn read(&self, fs: &dyn Fs) -> Result<Credentials, ProfileError> {
        let read = fs.open(&self.path).and_then(|file| read_to_end(&*file, FILE_BYTES_MAX));
        let failed = |source| ProfileError::Read { path: self.path.clone(), source };
        let bytes = read.map_err(failed)?;
        find(&String::from_utf8_lossy(&bytes), &self.profile).map_err(|what| {
            ProfileError::Profile { path: self.path.clone(), profile: self.profile.clone(), what }
        })
    }
}

/// The credentials of a profile; the error ends the sentence "the profile …".
fn find(text: &str, profile: &str) -> Result<Credentials, String> {
    let (mut inside, mut is_there) = (false, false);
    let (mut id, mut secret, mut session) = (String::new(), String::new(), String::new());
    let mut others = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = line.strip_prefix('[') {
            let name = name.split(']').next().unwrap_or_default().trim();
            inside =
                name == profile || name.strip_prefix("profile ").map(str::trim) == Some(profile);
            is_there |= inside;
            continue;
        }
        let Some((key, value)) = line.split_once('=').filter(|_| inside) else { continue };
        match (key.trim(), value.trim()) {
            ("aws_access_key_id", value) => value.clone_into(&mut id),
            ("aws_secret_access_key", value) => value.clone_into(&mut secret),
            ("aws_session_token", value) => value.clone_into(&mut session),
            (other, _) => others.push(other),
        }
    }
    if !is_there {
        return Err("is not there".to_owned());
    }
    if !id.is_empty() && !secret.is_empty() {
        let session = Some(session).filter(|session| !session.is_empty()).map(Secret::new);
        return Ok(Credentials { id, secret: Secret::new(secret), session });
    }
    let by_others =
        ["credential_process", "role_arn", "source_profile", "sso_session", "sso_start_url"];
    Err(match by_others.into_iter().find(|other| others.contains(other)) {
        Some(other) => format!(
            "has `{other}`, which is not supported; it needs `aws_access_key_id` and `aws_secret_access_key`"
        ),
        None => "has no `aws_access_key_id` or no `aws_secret_access_key`".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(credentials: &Credentials) -> String {
        let session = credentials.session.as_ref().map_or("", |session| session.reveal());
        format!("{} {} {session}", credentials.id, credentials.secret.reveal())
    }

    #[test]
    fn credentials_of_the_environment_need_both_parts() {
        let of = |all: &[(&str, &str)]| {
            let find = |name: &str| {
                let found = all.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            Credentials::of_environment(find).as_ref().map(shown)
        };
        let (id, secret) = (("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b"));
        assert_eq!(of(&[id]), None);
        assert_eq!(of(&[id, ("AWS_SECRET_ACCESS_KEY", "")]), None);
        assert_eq!(of(&[id, secret]).as_deref(), Some("a b "));
        assert_eq!(of(&[id, secret, ("AWS_SESSION_TOKEN", "c")]).as_deref(), Some("a b c"));
    }

    #[test]
    fn a_profile_of_a_shared_file_is_found_or_told_why_not() {
        let text = "# mine\n[default]\naws_access_key_id = a\naws_secret_access_key=b/c+d=\n\n\
             [profile other]\nregion = x\naws_access_key_id = e\naws_secret_access_key = f\n\
             aws_session_token = g\n[role]\nrole_arn = arn:aws:iam::1:role/x\n[empty]\n";
        let table = [
            ("default", Ok("a b/c+d= ")),
            ("other", Ok("e f g")),
            ("role", Err("has `role_arn`, which is not supported")),
            ("empty", Err("has no `aws_access_key_id`")),
            ("none", Err("is not there")),
        ];
        for (profile, expected) in table {
            match (find(text, profile), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(shown(&found), expected, "{profile}"),
                (Err(error), Err(expected)) => assert!(error.starts_with(expected), "{error}"),
                (found, _) => panic!("{profile}: {found:?}"),
            }
        }
    }
}
