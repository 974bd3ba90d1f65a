//! The section `http` of the configuration.

use super::HttpAuth;
use super::auth::AUTH;
use crate::profiles::{PPROF, Profiling};
use skidder_config::{Any, Group, Key, Part, Section, settings};
use skidder_os::Fs;
use skidder_tls::{SSL_SERVER, TlsClient, TlsError, TlsServer, TlsServerSettings};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

settings! {
    /// `http`.
    pub static HTTP = Group::new("http", "The endpoint with numbers, files and the page.")
        .unsupported(&[("named_pipe.*", "named pipes are for Windows")])
        .without_effect(&[("enabled_metrics", "all are there")]);

    ENABLED: bool = Key::new("enabled")
        .default(HttpConfig::ENABLED)
        .about("the endpoint ([operations](operations.md#metrics))");
    HOST: String = Key::new("host")
        .default(HttpConfig::HOST)
        .about("name or address, or `unix:///path.sock` (mode 0740)");
    PORT: u16 = Key::new("port").default(HttpConfig::PORT).noun("a port").about("its port");
    IN_AUTH: Part = Key::part("auth", &AUTH).about("who may see the page");
    IN_SSL: Part = Key::part("ssl", &SSL_SERVER)
        .ours()
        .about("TLS, with certificates of clients ([operations](operations.md#the-endpoint-over-tls))");
    IN_PPROF: Part = Key::part("pprof", &PPROF).about("profiles of CPU and heap");
    TIMEOUT: Duration = Key::new("timeout")
        .default(HttpConfig::TIMEOUT)
        .range(Duration::from_millis(1), Duration::from_hours(1))
        .about("for the head of a request, and between two requests; 1 ms to 1 h");
    STATE_INSPECTOR: Any = Key::new("state_inspector")
        .about("refused if it is `enabled`: look at `/inputs/` and `/stats`");
}

/// Where the endpoint listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// A name or address and a port; port 0 lets the kernel choose one.
    Tcp {
        /// `http.host`.
        host: String,
        /// `http.port`.
        port: u16,
    },
    /// A Unix socket, from `http.host: unix:///path.sock`. Its mode is 0740.
    Unix(PathBuf),
}

/// The settings of the HTTP endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpConfig {
    /// `http.enabled`.
    pub enabled: bool,
    /// `http.host` and `http.port`.
    pub endpoint: Endpoint,
    /// `http.timeout`: for the head of a request, and for the wait between two requests.
    pub timeout: Duration,
    /// `http.auth`.
    pub auth: HttpAuth,
    /// `http.ssl`, if it is on. The files are not read yet.
    pub tls: Option<TlsServerSettings>,
    /// `http.pprof`, if it is on.
    pub pprof: Option<Profiling>,
}

impl HttpConfig {
    /// Default of `http.enabled`.
    pub const ENABLED: bool = false;
    /// Default of `http.host`.
    pub const HOST: &str = "localhost";
    /// Default of `http.port`.
    pub const PORT: u16 = 5066;
    /// Default of `http.timeout`.
    pub const TIMEOUT: Duration = Duration::from_secs(5);

    /// Reads the section `http`; mistakes go to its problems.
    pub fn from_section(section: Section<'_>) -> Self {
        section.declared_by(&HTTP);
        let enabled = section.get(&ENABLED).value();
        let port = section.get(&PORT).value();
        let endpoint = section
            .get(&HOST)
            .try_map(|host| Endpoint::parse(&host, port))
            .or_else(|| Endpoint::Tcp { host: Self::HOST.to_owned(), port });
        let timeout = section.get(&TIMEOUT).value();
        let tls = read_tls(&section, &endpoint);
        let pprof = Profiling::from_section(section.part(&IN_PPROF));
        section.accept_key(&STATE_INSPECTOR);
        section.unsupported_if_enabled(STATE_INSPECTOR.name(), "look at `/inputs/` and `/stats`");
        let auth_section = section.part(&IN_AUTH);
        let auth = HttpAuth::from_section(&auth_section);
        auth_section.finish();
        section.finish();
        Self { enabled, endpoint, timeout, auth, tls, pprof }
    }

    /// Reads the files of `http.ssl` for the server; `None` without TLS.
    ///
    /// # Errors
    ///
    /// A file is missing or wrong.
    pub fn tls_server(&self, fs: &Arc<dyn Fs>) -> Result<Option<Arc<TlsServer>>, TlsError> {
        self.tls.as_ref().map(|tls| TlsServer::new(tls, Arc::clone(fs))).transpose()
    }

    /// TLS for a command that connects to the endpoint; `None` without TLS. It trusts the certificate of `http.ssl`
    /// alone, and shows it if clients need one.
    ///
    /// # Errors
    ///
    /// A file is missing or wrong.
    pub fn tls_client(&self, fs: &Arc<dyn Fs>) -> Result<Option<Arc<TlsClient>>, TlsError> {
        let settings = self.tls.as_ref().map(TlsServerSettings::own_client);
        settings.map(|tls| TlsClient::new(&tls, Arc::clone(fs))).transpose()
    }
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            enabled: Self::ENABLED,
            endpoint: Endpoint::Tcp { host: Self::HOST.to_owned(), port: Self::PORT },
            timeout: Self::TIMEOUT,
            auth: HttpAuth::default(),
            tls: None,
            pprof: None,
        }
    }
}

/// `http.ssl`; with nothing behind it, it is not there.
fn read_tls(section: &Section<'_>, endpoint: &Endpoint) -> Option<TlsServerSettings> {
    let ssl = section.optional_part(&IN_SSL).filter(|_| section.has_key(&IN_SSL))?;
    let settings = TlsServerSettings::read(&ssl)?;
    if let Endpoint::Unix(_) = endpoint {
        let message = "`http.ssl` is for a port, and `http.host` is a Unix socket";
        let hint = "remove `http.ssl`: the mode of the socket says which users can connect";
        section.problem(IN_SSL.name(), message, hint);
        return None;
    }
    // `skidder status` and the like read the same configuration.
    Some(TlsServerSettings { takes_own: true, ..settings })
}

impl Endpoint {
    /// Reads `http.host`; the error continues "`http.host` is `…`; ".
    fn parse(host: &str, port: u16) -> Result<Self, String> {
        if let Some(path) = host.strip_prefix("unix://") {
            if !path.starts_with('/') {
                return Err(
                    "expected an absolute path, as in `unix:///run/skidder.sock`".to_owned()
                );
            }
            return Ok(Self::Unix(PathBuf::from(path)));
        }
        if host.starts_with("npipe://") {
            return Err("named pipes are for Windows; use `unix:///path.sock`".to_owned());
        }
        // Addresses of version 6 have colons, with or without brackets.
        let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
        let is_name = |text: &str| !text.is_empty() && !text.contains([':', '/', ' ']);
        if bare.parse::<std::net::IpAddr>().is_err() && !is_name(bare) {
            return Err(
                "expected a host name or an address without a port (that is `http.port`), or \
                        `unix:///path.sock`"
                    .to_owned(),
            );
        }
        Ok(Self::Tcp { host: bare.to_owned(), port })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skidder_config::{Problems, Settings};

    fn read(text: &str) -> (HttpConfig, String) {
        let settings = Settings::parse("filebeat.yml", text).unwrap();
        let problems = Problems::new();
        let config = HttpConfig::from_section(settings.root(&problems).section("http"));
        (config, problems.to_string())
    }

    fn tcp(host: &str, port: u16) -> Endpoint {
        Endpoint::Tcp { host: host.to_owned(), port }
    }

    #[test]
    fn an_empty_section_is_off_and_on_port_5066() {
        assert_eq!(read("path.data: x"), (HttpConfig::default(), String::new()));
        assert_eq!(HttpConfig::default().endpoint, tcp("localhost", 5066));
    }

    #[test]
    fn hosts_ports_and_sockets_are_told_apart() {
        let cases = [
            ("0.0.0.0", tcp("0.0.0.0", 7)),
            ("::1", tcp("::1", 7)),
            ("[::1]", tcp("::1", 7)),
            ("log-host.example", tcp("log-host.example", 7)),
            ("unix:///run/s.sock", Endpoint::Unix("/run/s.sock".into())),
        ];
        for (host, endpoint) in cases {
            let (config, problems) =
                read(&format!("http: {{host: '{host}', port: 7, timeout: 2s}}"));
            assert_eq!((config.endpoint, &*problems), (endpoint, ""), "{host}");
            assert_eq!(config.timeout, Duration::from_secs(2));
        }
    }

    #[test]
    fn hosts_that_cannot_be_are_refused_with_the_way_out() {
        for host in ["localhost:5066", "http://localhost", "unix://run", "npipe:///skidder", "a b"]
        {
            let (_, problems) = read(&format!("http.host: '{host}'"));
            let start = format!("error: filebeat.yml:1:12: `http.host` is `{host}`; ");
            assert!(problems.starts_with(&start), "{problems}");
            assert!(problems.contains("unix:///"), "{problems}");
        }
    }

    #[test]
    fn a_token_and_a_user_with_a_password_are_read_and_half_of_them_is_refused() {
        let (config, problems) =
            read("http.auth: {token: long-enough, username: me, password: also-long-enough}");
        assert_eq!(problems, "");
        assert!(config.auth.is_set());
        assert!(!format!("{config:?}").contains("enough"), "{config:?}");
        for (wrong, expected) in [
            ("token: short", "expected at least 8 bytes"),
            ("username: me", "`http.auth.username` has no password"),
            ("password: long-enough", "`http.auth.password` has no user"),
            ("username: 'a:b', password: long-enough", "is empty or has a colon"),
        ] {
            let (config, problems) = read(&format!("http.auth: {{{wrong}}}"));
            assert!(problems.contains(expected) && !config.auth.is_set(), "{problems}");
            assert!(!problems.contains("short") && !problems.contains("long-enough"));
        }
    }

    #[test]
    fn tls_is_for_a_port_and_needs_a_certificate_and_nothing_means_none() {
        for text in ["http.ssl:", "http.ssl.enabled: false", "http.port: 1"] {
            let (config, problems) = read(text);
            assert_eq!((config.tls, &*problems), (None, ""), "{text}");
        }
        let (config, problems) = read("http.ssl: {certificate: c, key: k}");
        assert_eq!((config.tls.map(|tls| tls.takes_own), &*problems), (Some(true), ""));
        for (text, expected) in [
            ("ssl.enabled: true", "needs `ssl.certificate` and `ssl.key`"),
            ("ssl.renegotiation: never", "has no meaning for a server"),
            (
                "{host: 'unix:///s', ssl: {certificate: c, key: k}}",
                "error: filebeat.yml:1:32: `http.ssl` is for a port, and `http.host` is a Unix socket",
            ),
        ] {
            let text = text
                .strip_prefix("ssl")
                .map_or(format!("http: {text}"), |of| format!("http.ssl{of}"));
            let (config, problems) = read(&text);
            assert!(config.tls.is_none() && problems.contains(expected), "{text}: {problems}");
        }
    }

    #[test]
    fn profiles_are_off_unless_asked_for_and_waits_are_not_profiled() {
        assert_eq!(read("http.pprof.mem_profile_rate: 1").0.pprof, None);
        let (config, problems) = read("http.pprof: {enabled: true, block_profile_rate: 0}");
        assert_eq!((config.pprof, &*problems), (Some(Profiling { heap_every: 524_288 }), ""));
        let (config, problems) = read("http.pprof: {enabled: true, mem_profile_rate: 0}");
        assert_eq!((config.pprof, &*problems), (Some(Profiling { heap_every: 0 }), ""));
        for rate in ["block_profile_rate", "mutex_profile_rate"] {
            let (_, problems) = read(&format!("http.pprof: {{enabled: true, {rate}: 1}}"));
            let expected = format!("`http.pprof.{rate}` can only be 0: waits are not profiled");
            assert!(problems.contains(&expected), "{problems}");
        }
    }

    #[test]
    fn parts_of_filebeat_that_are_off_do_not_matter_and_on_they_are_refused() {
        let off =
            "http: {pprof: {enabled: false, block_profile_rate: 1}, state_inspector.enabled: no}";
        assert_eq!(read(off).1, "");
        let on = read("http.state_inspector.enabled: true\nhttp.named_pipe.user: me").1;
        let expected = "error: filebeat.yml:1:1: `http.state_inspector.enabled` is known to Filebeat, but not \
                        supported by skidder yet\nhint: look at `/inputs/` and `/stats`";
        assert!(on.starts_with(expected), "{on}");
        assert!(on.contains("`http.named_pipe"), "{on}");
    }
}
