//! A section `kerberos` of an output.

use skidder_config::{Group, Key, OneOf, Part, Secret, Section, settings};
use std::path::PathBuf;

mod inside {
    use super::*;

    settings! {
        /// Settings of a section `kerberos`.
        pub static KERBEROS = Group::new("kerberos", "A ticket instead of a password.").inline();

        pub(super) ENABLED: bool =
            Key::new("enabled").default(true).default_words("`true` if there is a section").about("use it");
        pub(super) AUTH_TYPE: OneOf<Way> =
            Key::one_of("auth_type", &[("keytab", Way::Keytab), ("password", Way::Password)])
                .required()
                .about("`keytab` or `password`");
        pub(super) CONFIG_PATH: PathBuf = Key::new("config_path")
            .required()
            .noun("the path of a krb5.conf")
            .about("a `krb5.conf`; one for the whole process");
        pub(super) USERNAME: String = Key::new("username").required().noun("a user").about("the user");
        pub(super) REALM: String =
            Key::new("realm").required().noun("a realm").about("the user's, and the servers'");
        pub(super) KEYTAB: PathBuf = Key::new("keytab")
            .noun("the path of a keytab")
            .about("the proof of identity with `auth_type: keytab`");
        pub(super) PASSWORD: Secret =
            Key::new("password").about("the proof of identity with `auth_type: password`");
        pub(super) SERVICE_NAME: String = Key::new("service_name")
            .default_words("`HTTP/` and the name of the host")
            .about("the server's principal, without the realm");
        pub(super) FAST: bool = Key::new("enable_krb5_fast").default(false).about(
            "without effect, with a warning: MIT Kerberos uses FAST where the servers offer it",
        );
    }
}

pub use inside::KERBEROS;

settings! {
    /// `kerberos` of an output.
    pub static WITH_KERBEROS = Group::new("with_kerberos", "An output that can use Kerberos.");

    SECTION: Part = Key::part("kerberos", &KERBEROS).about("a ticket instead of a password");
}

/// `auth_type`.
#[derive(Clone, Copy, Default)]
enum Way {
    #[default]
    Keytab,
    Password,
}

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
        let kerberos = section.optional_part(&SECTION)?;
        if !kerberos.get(&inside::ENABLED).value() {
            kerberos.off();
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
        let way = section.get(&inside::AUTH_TYPE).required();
        let keytab = section.get(&inside::KEYTAB);
        let password = section.get(&inside::PASSWORD);
        let auth = match way {
            Way::Password => {
                keytab.optional();
                Auth::Password(password.required())
            }
            Way::Keytab => {
                password.optional();
                Auth::Keytab(keytab.required())
            }
        };
        let config = section.get(&inside::CONFIG_PATH).required();
        let username = section.get(&inside::USERNAME).required();
        let realm = section.get(&inside::REALM).required();
        let service = section.get(&inside::SERVICE_NAME).optional().filter(|name| !name.is_empty());
        if section.get(&inside::FAST).value() {
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
