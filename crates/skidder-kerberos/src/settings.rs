//! A section `kerberos` of an output.

use skidder_config::{Secret, Section};
use std::path::PathBuf;

/// How the user is proved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Auth {
    /// `auth_type: keytab`: by the keys in a file.
    Keytab(PathBuf),
    /// `auth_type: password`.
    Password(Secret),
}

/// A section `kerberos` that is turned on. Names are those of the YAML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `auth_type` with `keytab` or `password`.
    pub auth: Auth,
    /// `config_path`: a file in the form of `krb5.conf`(5).
    pub config: PathBuf,
    /// `username`, without the realm.
    pub username: String,
    /// `realm` of the user and of the servers.
    pub realm: String,
    /// `service_name`: the principal of the servers without its realm. If it is not given, it is
    /// `HTTP/` and the name of the host.
    pub service: Option<String>,
}

impl Settings {
    /// Reads the section `kerberos` of `section`; reports mistakes. `None` if there is none, or it
    /// is turned off.
    pub fn read(section: &Section<'_>) -> Option<Self> {
        let kerberos = section.optional_section("kerberos")?;
        if !kerberos.bool("enabled").or(true) {
            kerberos.skip();
            return None;
        }
        let settings = Self::read_own(&kerberos);
        if settings.is_some() && !cfg!(feature = "gssapi") {
            let advice = "use a build with the feature `kerberos`, or `api_key`, or `username` and `password`";
            section.problem("kerberos", "this program was built without Kerberos", advice);
        }
        kerberos.finish();
        settings
    }

    fn read_own(section: &Section<'_>) -> Option<Self> {
        let ways = [("keytab", "keytab"), ("password", "password")];
        let way = section.one_of("auth_type", &ways).required();
        let keytab = section.path_buf("keytab");
        let password = section.secret("password");
        let auth = match way {
            "password" => {
                keytab.optional();
                Auth::Password(password.required())
            }
            _ => {
                password.optional();
                Auth::Keytab(keytab.named("the path of a keytab").required())
            }
        };
        let config = section.path_buf("config_path").named("the path of a krb5.conf").required();
        let username = section.string("username").named("a user").required();
        let realm = section.string("realm").named("a realm").required();
        let service = section.string("service_name").optional().filter(|name| !name.is_empty());
        if section.bool("enable_krb5_fast").or(false) {
            let advice = "MIT Kerberos decides on it by what the servers offer; see krb5.conf(5)";
            section.warning("enable_krb5_fast", "`enable_krb5_fast` has no effect", advice);
        }
        let complete = !username.is_empty() && !realm.is_empty();
        complete.then_some(Self { auth, config, username, realm, service })
    }

    /// The principal of the user.
    pub fn principal(&self) -> String {
        format!("{}@{}", self.username, self.realm)
    }

    /// The principal of the server on `host`, a name without a port.
    pub fn service_of(&self, host: &str) -> String {
        match &self.service {
            Some(service) => format!("{service}@{}", self.realm),
            None => format!("HTTP/{}@{}", host.to_lowercase(), self.realm),
        }
    }
}
