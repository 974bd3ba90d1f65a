//! `setup.dashboards` and `setup.kibana`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::header::{AUTHORIZATION, HOST, PROXY_AUTHORIZATION, USER_AGENT};
use http::{HeaderMap, HeaderValue};
use skidder_config::{Group, Key, OneOf, Secret, Section, settings};
use skidder_net::{
    AGENT, HTTPS, HostUrl, PROXY, Proxy, ProxyChoice, basic_login, percent_encoded, proxy_login,
    read_headers, read_https, secret_header,
};
use skidder_tls::TlsSettings;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Port of a Kibana whose host names none.
const PORT: u16 = 5601;
/// The folder of dashboards in `path.home`.
const FOLDER: &str = "kibana";

mod kibana {
    use super::*;

    settings! {
        /// `setup.kibana`.
        pub static KIBANA = Group::new("setup.kibana", "The Kibana that gets the dashboards.")
            .inline()
            .include(&[&PROXY, &HTTPS]);

        pub(super) ENABLED: bool =
            Key::new("enabled").default(true).about("`false`: dashboards cannot be loaded");
        pub(super) ADDRESS: String = Key::new("host")
            .default("localhost:5601")
            .about("`host`, `host:port` (5601) or a URL, whose parts win over `protocol` and `path`");
        pub(super) PROTOCOL: OneOf<&'static str> =
            Key::one_of("protocol", &[("http", "http"), ("https", "https")])
                .default("http")
                .about("or `https`");
        pub(super) PATH: String = Key::new("path").default("").about("before every path of the API");
        pub(super) SPACE: String = Key::new("space.id").default("").about("the space; by default Kibana's own");
        pub(super) USERNAME: String = Key::new("username")
            .default_words("that of `output.elasticsearch`")
            .about("the user");
        pub(super) PASSWORD: Secret = Key::new("password")
            .default_words("that of `output.elasticsearch`")
            .about("its password");
        pub(super) API_KEY: Secret = Key::new("api_key")
            .default_words("that of `output.elasticsearch`")
            .about("`id:api_key`, instead of a user");
        pub(super) SERVICE_TOKEN: Secret =
            Key::new("service_token").about("of a service account, instead of a user");
        pub(super) HEADERS: BTreeMap<String, String> =
            Key::new("headers").secret().about("go with every request");
        pub(super) TIMEOUT: Duration = Key::new("timeout")
            .default(Duration::from_secs(90))
            .at_least(Duration::from_millis(1))
            .about("of a connection, and of an answer");
    }
}

mod dashboards {
    use super::*;

    settings! {
        /// `setup.dashboards`.
        pub static DASHBOARDS = Group::new("setup.dashboards", "Dashboards for Kibana.")
            .inline()
            .unsupported(&[
                ("url", "download and unpack the archive, and set `setup.dashboards.directory`"),
                ("file", "unpack the archive, and set `setup.dashboards.directory`"),
            ])
            .without_effect(&[
                ("beat", "it chooses a folder of an archive; set `setup.dashboards.directory`"),
                ("kibana_index", "Kibana's API chooses its index"),
                ("always_kibana", "dashboards always go through Kibana's API"),
            ]);

        pub(super) ENABLED: bool = Key::new("enabled").default(false).about(
            "load dashboards at the start, while logs are read already; `skidder setup --dashboards` does so in any case",
        );
        pub(super) DIRECTORY: PathBuf = Key::new("directory").default_words("`${path.home}/kibana`").about(
            "has `dashboard`, `index-pattern` and other types in it, or in a folder with a number as its name, of which \
             the highest is taken",
        );
        pub(super) INDEX: String = Key::new("index").default("").about(
            "stands for the index pattern in dashboards (`filebeat-*`) if it is set",
        );
        pub(super) ONLY_DASHBOARDS: bool =
            Key::new("only_dashboards").default(false).about("no index patterns");
        pub(super) ONLY_INDEX: bool = Key::new("only_index").default(false).about("no dashboards");
        pub(super) RETRY: bool = Key::new("retry.enabled").default(false).about("wait for a Kibana that does not answer");
        pub(super) INTERVAL: Duration = Key::new("retry.interval")
            .default(Duration::from_secs(1))
            .at_least(Duration::from_millis(1))
            .about("between two attempts");
        pub(super) MAXIMUM: u32 = Key::new("retry.maximum").default(0).about("attempts after the first; 0: no limit");
        pub(super) REPLACEMENTS: BTreeMap<String, String> = Key::new("string_replacements")
            .about("texts that are replaced in dashboards; `CHANGEME_HOSTNAME` becomes the name of the host");
    }
}

pub use dashboards::DASHBOARDS;
pub use kibana::KIBANA;

/// Credentials of `output.elasticsearch`, which hold for Kibana where it has none.
#[derive(Clone, Debug, Default)]
pub struct OutputLogin {
    /// `username`.
    pub username: Option<String>,
    /// `password`.
    pub password: Option<Secret>,
    /// `api_key`.
    pub api_key: Option<Secret>,
}

/// `setup.dashboards.retry`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Between two attempts.
    pub interval: Duration,
    /// Attempts after the first one; 0 for no limit.
    pub maximum: u32,
}

/// `setup.dashboards` with the Kibana to load them into.
#[derive(Clone, Debug)]
pub struct Dashboards {
    /// Whether they are loaded at the start.
    pub enabled: bool,
    pub(crate) directory: PathBuf,
    pub(crate) index: String,
    pub(crate) no_index_patterns: bool,
    pub(crate) only_index: bool,
    pub(crate) retry: Option<Retry>,
    pub(crate) replacements: BTreeMap<String, String>,
    pub(crate) kibana: Option<Kibana>,
}

/// The server, and what goes with every request.
#[derive(Clone, Debug)]
pub(crate) struct Kibana {
    pub(crate) url: HostUrl,
    pub(crate) headers: HeaderMap,
    pub(crate) proxy: Option<Arc<Proxy>>,
    pub(crate) tls: TlsSettings,
    pub(crate) timeout: Duration,
}

impl Dashboards {
    /// Reads the sections `setup.dashboards` and `setup.kibana`; reports mistakes there. `home` is `path.home`.
    pub fn read(
        dashboards: Section<'_>,
        kibana: Section<'_>,
        login: &OutputLogin,
        home: &Path,
        host: &str,
    ) -> Self {
        use self::dashboards as key;
        dashboards.declared_by(&DASHBOARDS);
        let directory = dashboards.get(&key::DIRECTORY).optional();
        let mut replacements = dashboards.get(&key::REPLACEMENTS).optional().unwrap_or_default();
        replacements.insert("CHANGEME_HOSTNAME".to_owned(), host.to_owned());
        let (interval, maximum) =
            (dashboards.get(&key::INTERVAL).value(), dashboards.get(&key::MAXIMUM).value());
        let retries = dashboards.get(&key::RETRY).value();
        let no_index_patterns = dashboards.get(&key::ONLY_DASHBOARDS).value();
        let only_index = dashboards.get(&key::ONLY_INDEX).value();
        if no_index_patterns && only_index {
            let message =
                "`only_dashboards` and `only_index` are both set: nothing is left to load";
            dashboards.problem("only_index", message, "remove one of them");
        }
        let read = Self {
            enabled: dashboards.get(&key::ENABLED).value(),
            directory: home.join(directory.unwrap_or_else(|| FOLDER.into())),
            index: dashboards.get(&key::INDEX).value(),
            no_index_patterns,
            only_index,
            retry: retries.then_some(Retry { interval, maximum }),
            replacements,
            kibana: Kibana::read(&kibana, login),
        };
        dashboards.finish();
        kibana.finish();
        read
    }
}

impl Kibana {
    fn read(section: &Section<'_>, login: &OutputLogin) -> Option<Self> {
        use self::kibana as key;
        section.declared_by(&KIBANA);
        let protocol = section.get(&key::PROTOCOL).value();
        let path = section.get(&key::PATH).value();
        let space = section.get(&key::SPACE).value();
        let url = section.get(&key::ADDRESS).try_map(|text| {
            HostUrl::parse(&text, protocol, &path, |_| PORT).map(|url| in_space(url, &space))
        });
        let is_wrong = url.is_wrong();
        let url = if is_wrong { url.optional() } else { Some(url.value()) };
        let proxy = ProxyChoice::read(section, |name| std::env::var(name).ok());
        let tls = read_https(section);
        let timeout = section.get(&key::TIMEOUT).value();
        let enabled = section.get(&key::ENABLED).value();
        let authorization = authorization(section, url.as_ref(), login);
        let own = read_headers(section, &key::HEADERS);
        let url = url?;
        let proxy = proxy.of(url.https, &url.address());
        let mut headers = HeaderMap::new();
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        headers.insert("accept", HeaderValue::from_static("application/json"));
        // Kibana refuses requests that a browser could send by mistake.
        headers.insert("kbn-xsrf", HeaderValue::from_static("1"));
        match HeaderValue::from_str(&url.authority()) {
            Ok(host) => headers.insert(HOST, host),
            Err(_) => {
                section.problem("host", format!("`{url}` cannot be sent as a header"), "");
                return None;
            }
        };
        let logins = [
            (AUTHORIZATION, authorization),
            (PROXY_AUTHORIZATION, proxy_login(&url, proxy.as_deref())),
        ];
        for (name, login) in logins {
            let Some(login) = login else { continue };
            let Some(value) = secret_header(&login) else {
                section.problem("", "the credentials cannot be sent as a header", "");
                return None;
            };
            headers.insert(name, value);
        }
        headers.extend(own);
        enabled.then_some(Self { url, headers, proxy, tls, timeout })
    }
}

/// The URL with the path of a space.
fn in_space(mut url: HostUrl, space: &str) -> HostUrl {
    if !space.is_empty() {
        url.path = format!("{}/s/{}", url.path, percent_encoded(space));
    }
    url
}

/// The header `authorization`: of the URL, of `setup.kibana`, or of the output.
fn authorization(
    section: &Section<'_>,
    url: Option<&HostUrl>,
    login: &OutputLogin,
) -> Option<String> {
    let of_url = url.and_then(|url| url.credentials.clone());
    let token = section.get(&kibana::SERVICE_TOKEN).optional();
    let own_key = section.get(&kibana::API_KEY).optional();
    let own_user = section.get(&kibana::USERNAME).optional();
    let own_password = section.get(&kibana::PASSWORD).optional();
    let has_user = of_url.is_some() || own_user.is_some();
    if own_key.is_some() && has_user || token.is_some() && (has_user || own_key.is_some()) {
        let message = "of `username`, `api_key` and `service_token` more than one is set";
        section.problem("", message, "keep one of them");
        return None;
    }
    if let Some(token) = token {
        return Some(format!("Bearer {}", token.reveal()));
    }
    let key = own_key.or_else(|| login.api_key.clone().filter(|_| !has_user));
    if let Some(key) = key {
        return Some(format!("ApiKey {}", BASE64.encode(key.reveal())));
    }
    if let Some((user, password)) = of_url {
        return Some(basic_login(&user, &password));
    }
    let user = own_user.or_else(|| login.username.clone()).filter(|user| !user.is_empty())?;
    let password = own_password.or_else(|| login.password.clone()).unwrap_or_default();
    Some(basic_login(&user, &password))
}
