//! `http.auth`: access to the page, and with it to events.

use skidder_config::{Group, Key, Secret, Section, settings};

settings! {
    /// `http.auth`.
    pub(super) static AUTH = Group::new("http.auth", "Who may see the page, and with it events.").inline();

    TOKEN: Secret = Key::new("token").ours().about(
        "[the page](page.md#who-may-see-it), `/files`, `/sources`, `/lag` and `/problems` need it; at least 8 bytes",
    );
    USERNAME: String = Key::new("username").ours().about("likewise, with `password`");
    PASSWORD: Secret = Key::new("password").ours().about("likewise; at least 8 bytes");
}

/// A client's credentials. Nothing of it configured = numbers are open on the loopback, and events need the token of the data
/// directory; elsewhere all of the page is closed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpAuth {
    /// `http.auth.token`: as `Authorization: Bearer TOKEN`, or as the password of any user.
    pub token: Option<Secret>,
    /// `http.auth.username` and `http.auth.password`.
    pub user: Option<(String, Secret)>,
    /// The token that skidder has written into its data directory: required for events, without `http.auth`.
    pub own: Option<Secret>,
}

impl HttpAuth {
    /// The shortest token or password, in bytes: shorter ones are guessed.
    pub const SECRET_BYTES_MIN: usize = 8;

    /// Reads the section `http.auth`; mistakes go to its problems.
    pub(super) fn from_section(section: &Section<'_>) -> Self {
        let enough = |secret: Secret| {
            if secret.reveal().len() < Self::SECRET_BYTES_MIN {
                Err(format!("expected at least {} bytes", Self::SECRET_BYTES_MIN))
            } else {
                Ok(secret)
            }
        };
        let token = section.get(&TOKEN).try_map(enough).optional();
        let name = section.get(&USERNAME).optional();
        let password = section.get(&PASSWORD).try_map(enough).optional();
        let user = match (name, password) {
            (Some(name), Some(password)) if !name.is_empty() && !name.contains(':') => {
                Some((name, password))
            }
            (Some(_), Some(_)) => {
                let message = format!("`{}` is empty or has a colon", section.path_of("username"));
                section.problem("username", message, "HTTP cannot send such a name");
                None
            }
            (Some(_), None) if !section.has_key(&PASSWORD) => {
                let message = format!("`{}` has no password", section.path_of("username"));
                section.problem("username", message, "set `http.auth.password` too");
                None
            }
            (None, Some(_)) => {
                let message = format!("`{}` has no user", section.path_of("password"));
                section.problem("password", message, "set `http.auth.username` too");
                None
            }
            _ => None,
        };
        Self { token, user, own: None }
    }

    /// Whether a credential is configured.
    pub fn is_set(&self) -> bool {
        self.token.is_some() || self.user.is_some()
    }
}
