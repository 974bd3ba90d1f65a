//! A Redis, and the input with one output that takes everything.
#![allow(dead_code, reason = "not every test program needs all of it")]

use skidder_config::{Problems, Settings};
use skidder_input::Input;
use skidder_os::{Fs, RealFs};
use skidder_testkit::servers::Server;
use std::process::Command;
use std::sync::Arc;

/// A server of a test's own.
pub(crate) struct Redis(pub(crate) Server);

impl Redis {
    pub(crate) fn start(settings: &str) -> Self {
        Self(Server::own_redis(false, settings).expect("a server"))
    }

    /// The output of `redis-cli` for a command.
    pub(crate) fn cli(&self, command: &[&str]) -> String {
        self.cli_with("secret", command)
    }

    /// The same with another password.
    pub(crate) fn cli_with(&self, password: &str, command: &[&str]) -> String {
        let mut cli = Command::new("redis-cli");
        cli.args(["-p", &self.0.port().to_string(), "-a", password, "--no-auth-warning", "--raw"]);
        if let Some(authority) = self.0.certificate("ca.crt") {
            cli.arg("--tls").arg("--cacert").arg(authority);
        }
        let output = cli.args(command).output().expect("redis-cli runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    pub(crate) fn host(&self) -> String {
        format!("127.0.0.1:{}", self.0.port())
    }
}

/// The input of these settings.
pub(crate) fn input(redis: &Redis, settings: &str) -> Box<dyn Input> {
    input_at(&redis.host(), &format!("password: secret, {settings}"))
}

/// The same at an address.
pub(crate) fn input_at(host: &str, settings: &str) -> Box<dyn Input> {
    let text = format!("{{hosts: ['{host}'], backoff: {{init: 10ms, max: 100ms}}, {settings}}}");
    let problems = Problems::new();
    let settings = Settings::parse("x", &text).expect("YAML");
    let section = settings.root(&problems);
    section.declared_by(&skidder_input_redis::REDIS_INPUT);
    let fs: Arc<dyn Fs> = Arc::new(RealFs);
    let read = skidder_input_redis::read(&section, &fs, "here");
    section.finish();
    Box::new(read.unwrap_or_else(|| panic!("{problems}")))
}
