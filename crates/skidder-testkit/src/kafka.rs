//! A real Kafka for tests, started by `tests/servers/kafka.sh`.
//!
//! `cargo xtask test` starts one for the whole run and sets its URL in `SKIDDER_TEST_KAFKA`; without that a test
//! starts its own. Tests that call this are `#[ignore]`d; each uses topics of its own
//! ([`unique_name`](crate::servers::unique_name)).

use crate::servers::{ServerError, script};
use crate::wait_until;
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const SCRIPT: &str = "kafka.sh";
/// Holds the URL.
const VARIABLE: &str = "SKIDDER_TEST_KAFKA";

/// How often a broker is started that ends at once.
const STARTS_MAX: u32 = 4;

/// A broker that was killed does not listen any more after this time.
const KILLED_WITHIN: Duration = Duration::from_secs(10);

/// The ports of a broker, all on 127.0.0.1. Users are `test`/`secret`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KafkaPorts {
    /// Neither encryption nor users.
    pub plain: u16,
    /// SASL: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512.
    pub sasl: u16,
    /// TLS.
    pub tls: u16,
    /// SASL over TLS.
    pub sasl_tls: u16,
    /// TLS with a certificate that has expired.
    pub expired: u16,
    /// TLS with a certificate of another host.
    pub wrong_host: u16,
    /// What a proxy is to stand before, see [`Kafka::behind`].
    pub behind: u16,
}

/// A running broker. One that was started for this value is stopped with it.
#[derive(Debug)]
pub struct Kafka {
    /// Where it listens.
    pub ports: KafkaPorts,
    directory: PathBuf,
    own: Option<tempfile::TempDir>,
}

impl Drop for Kafka {
    fn drop(&mut self) {
        if self.own.is_some() {
            let stopped = script(SCRIPT).arg("stop").arg(&self.directory).status();
            let is_good = stopped.is_ok_and(|status| status.success());
            assert!(std::thread::panicking() || is_good, "cannot stop Kafka");
        }
    }
}

impl Kafka {
    /// The broker of the whole run, or one for this test.
    pub fn given_or_started() -> Result<Self, ServerError> {
        match std::env::var(VARIABLE) {
            Ok(url) => Self::at(&url, None),
            Err(_) => Self::start(&[]),
        }
    }

    /// A broker for one test, to be stopped and started at will.
    pub fn own() -> Result<Self, ServerError> {
        Self::start(&[])
    }

    /// The same; clients of the port `behind` get the port `proxy` as its address.
    pub fn behind(behind: u16, proxy: u16) -> Result<Self, ServerError> {
        Self::start(&[("BEHIND", behind.to_string()), ("PROXY", proxy.to_string())])
    }

    /// The ports of a broker may be taken before it listens: when it ends at once, others are used.
    fn start(variables: &[(&str, String)]) -> Result<Self, ServerError> {
        let mut outcome = Self::start_once(variables);
        for _ in 1..STARTS_MAX {
            match outcome {
                Err(ServerError::Start { ref said, .. }) if said.contains("it ended") => {}
                _ => return outcome,
            }
            outcome = Self::start_once(variables);
        }
        outcome
    }

    fn start_once(variables: &[(&str, String)]) -> Result<Self, ServerError> {
        let failed = |said: String| ServerError::Start { script: SCRIPT, said };
        let own = tempfile::tempdir().map_err(|error| failed(error.to_string()))?;
        let mut command = script(SCRIPT);
        command.arg("start").arg(own.path()).arg("0").stdin(Stdio::null());
        command.envs(variables.iter().map(|(name, value)| (*name, value)));
        let output = command.output().map_err(|error| failed(error.to_string()))?;
        let said = String::from_utf8_lossy(&output.stdout);
        match said.split_whitespace().find_map(|word| word.strip_prefix("url=")) {
            Some(url) if output.status.success() => Self::at(url, Some(own)),
            _ => Err(failed(String::from_utf8_lossy(&output.stderr).into_owned())),
        }
    }

    /// From a URL as `kafka://127.0.0.1:9092?sasl=9093&...`.
    fn at(url: &str, own: Option<tempfile::TempDir>) -> Result<Self, ServerError> {
        let part = |name: &str| url.split(['?', '&']).find_map(|part| part.strip_prefix(name));
        let port = |name: &str| -> Option<u16> { part(name)?.parse().ok() };
        let ports = || {
            Some(KafkaPorts {
                plain: port("kafka://127.0.0.1:")?,
                sasl: port("sasl=")?,
                tls: port("tls=")?,
                sasl_tls: port("sasl_tls=")?,
                expired: port("expired=")?,
                wrong_host: port("wrong_host=")?,
                behind: port("behind=")?,
            })
        };
        match (ports(), part("directory=")) {
            (Some(ports), Some(directory)) => {
                Ok(Self { ports, directory: PathBuf::from(directory), own })
            }
            _ => {
                let what = "expected the ports of Kafka".to_owned();
                Err(ServerError::Nonsense { url: url.to_owned(), what })
            }
        }
    }

    /// A file made by `tests/servers/certs.sh`: `ca.crt`, `client.crt`, `client.key`, `other-ca.crt` and more.
    pub fn certificate(&self, name: &str) -> PathBuf {
        self.directory.join("certs").join(name)
    }

    /// Stops a broker of the test's own; its data stays.
    pub fn stop(&self) -> Result<(), ServerError> {
        self.perform("stop")
    }

    /// Ends a broker of the test's own by SIGKILL; returns when it does not listen any more.
    pub fn kill(&self) -> Result<(), ServerError> {
        assert!(self.own.is_some(), "only a broker of the test's own is killed");
        let failed = |said: String| ServerError::Start { script: SCRIPT, said };
        let file = self.directory.join("pid");
        let text = std::fs::read_to_string(&file).map_err(|error| failed(error.to_string()))?;
        let pid = text.split(' ').next().unwrap_or_default();
        let status = Command::new("kill").args(["-KILL", pid]).status();
        if !status.is_ok_and(|status| status.success()) {
            return Err(failed(format!("cannot kill process {pid}")));
        }
        let port = self.ports.plain;
        wait_until("the broker is gone", KILLED_WITHIN, || {
            TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err()
        });
        std::fs::remove_file(file).map_err(|error| failed(error.to_string()))
    }

    /// Starts a broker that was stopped or killed, at the same ports with the same data.
    pub fn start_again(&self) -> Result<(), ServerError> {
        self.perform("again")
    }

    fn perform(&self, action: &str) -> Result<(), ServerError> {
        assert!(self.own.is_some(), "only a broker of the test's own is stopped");
        let failed = |said: String| ServerError::Start { script: SCRIPT, said };
        let mut command = script(SCRIPT);
        command.arg(action).arg(Path::new(&self.directory)).stdin(Stdio::null());
        let output = command.output().map_err(|error| failed(error.to_string()))?;
        if output.status.success() {
            return Ok(());
        }
        Err(failed(String::from_utf8_lossy(&output.stderr).into_owned()))
    }
}
