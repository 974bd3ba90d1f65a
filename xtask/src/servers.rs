//! The servers of the tests: started once for a whole run of the tests, stopped whatever happens.

use crate::lanes::Built;
use crate::process::Beside;
use crate::{lanes, process, repository};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// A server that tests may need.
struct Kind {
    /// Also the name of its folder.
    name: &'static str,
    script: &'static str,
    secure: bool,
    /// Variable with its URL for the tests; read by `skidder_testkit::servers`.
    variable: &'static str,
}

const KINDS: [Kind; 5] = [
    Kind {
        name: "elasticsearch",
        script: "elasticsearch.sh",
        secure: false,
        variable: "SKIDDER_TEST_ELASTICSEARCH",
    },
    Kind {
        name: "elasticsearch-secure",
        script: "elasticsearch.sh",
        secure: true,
        variable: "SKIDDER_TEST_ELASTICSEARCH_SECURE",
    },
    Kind {
        name: "opensearch",
        script: "opensearch.sh",
        secure: false,
        variable: "SKIDDER_TEST_OPENSEARCH",
    },
    Kind {
        name: "openldap",
        script: "openldap.sh",
        secure: false,
        variable: "SKIDDER_TEST_OPENLDAP",
    },
    Kind { name: "kafka", script: "kafka.sh", secure: false, variable: "SKIDDER_TEST_KAFKA" },
];
/// Servers that tests start for themselves, in seconds.
const STARTED_BY_TESTS: [&str; 19] = [
    "artemis.sh",
    "azurite.sh",
    "docker.sh",
    "eventhub.sh",
    "gcs.sh",
    "journald.sh",
    "lumberjack.sh",
    "camel-lumberjack.sh",
    "mosquitto.sh",
    "moto.sh",
    "otelcol.sh",
    "pubsub.sh",
    "redis.sh",
    "rsyslog.sh",
    "softflowd.sh",
    "s3.sh",
    "socks.sh",
    "unbound.sh",
    "profiles.sh",
];
/// The API server of Kubernetes, which tests start for themselves. Its build takes minutes.
const KUBE_APISERVER: &str = "kube-apiserver.sh";
/// A realm of Kerberos, and what a build with Kerberos needs.
pub(crate) const KERBEROS: &str = "kerberos.sh";
/// The tests that need it are part of a build with this feature.
pub(crate) const KUBE_APISERVER_FEATURE: &str = "skidder/test-kube-apiserver";
/// Variable with the folder of the certificates of the secure server, for the tests.
const CERTIFICATES_VARIABLE: &str = "SKIDDER_TEST_CERTIFICATES";

/// Running servers; they are stopped when this is dropped.
struct Servers {
    variables: Vec<(&'static str, String)>,
}

/// Installs programs that tests and checks drive.
pub(crate) fn install_programs() -> Result<()> {
    script("programs.sh", &["install"])
}

/// The tests, with the ignored ones, which need the servers; without those of the real API server of Kubernetes.
pub(crate) fn test(arguments: &[String], variables: &[(&str, &Path)]) -> Result<()> {
    test_with(&[], &[], arguments, variables)
}

/// All tests, those of the real API server of Kubernetes too. Also installs what the scripts with the names `later` do,
/// which other steps need, while tests are built.
pub(crate) fn test_all(
    later: &[&'static str],
    arguments: &[String],
    variables: &[(&str, &Path)],
) -> Result<()> {
    process::print("building the API server of Kubernetes, which takes minutes the first time");
    let more = [later, &[KUBE_APISERVER]].concat();
    test_with(&["--features", KUBE_APISERVER_FEATURE], &more, arguments, variables)
}

fn test_with(
    features: &[&str],
    more: &[&'static str],
    arguments: &[String],
    variables: &[(&str, &Path)],
) -> Result<()> {
    let built = if lanes::chooses(arguments) {
        install(more)?;
        None
    } else {
        Some(build_and_install(features, more, arguments)?)
    };
    let servers = Servers::start()?;
    let with_servers = |command: &mut Command| {
        command.envs(servers.variables.iter().map(|(name, value)| (*name, value.as_str())));
        command.envs(variables.iter().copied());
    };
    match built {
        None => lanes::run_chosen(features, arguments, &with_servers),
        Some(built) => lanes::run(features, arguments, &built, &with_servers),
    }
}

/// Servers are installed while the tests are built: the one waits for the network, the other for processors.
fn build_and_install(features: &[&str], more: &[&str], arguments: &[String]) -> Result<Built> {
    std::thread::scope(|scope| {
        let installed = scope.spawn(|| install(more));
        let built = lanes::build(features, arguments);
        let Ok(installed) = installed.join() else { bail!("a thread panicked") };
        installed.and(built)
    })
}

/// Installs all that tests need, and what `more` scripts do.
fn install(more: &[&str]) -> Result<()> {
    install_programs()?;
    for kind in &KINDS {
        script(kind.script, &["install"])?;
    }
    for name in STARTED_BY_TESTS.iter().chain(more) {
        script(name, &["install"])?;
    }
    Ok(())
}

/// Builds the API server of Kubernetes beside other work. The installation of its tests waits for this one.
pub(crate) fn install_kube_apiserver_early() -> Result<Beside> {
    let script = scripts().join(KUBE_APISERVER);
    Beside::start(Command::new(script).arg("install"))
}

/// What a build with Kerberos adds, which no other build has: checked and tested at a real KDC, and with
/// an Elasticsearch that uses it.
pub(crate) fn test_kerberos() -> Result<()> {
    script(KERBEROS, &["install"])?;
    script("elasticsearch.sh", &["install"])?;
    let build = |verb: &str| {
        let mut command = repository::cargo();
        command
            .args([verb, "--locked", "--features"])
            .arg("skidder-kerberos/gssapi,skidder-output-elasticsearch/kerberos");
        // Of the workspace, not of two packages: libraries are built with the same features as for all other tests.
        command.arg("--workspace");
        command.args(["--test", "real_kdc", "--test", "kerberos", "--test", "real_kerberos"]);
        command
    };
    process::run(build("clippy").args(["--", "-D", "warnings"]))?;
    process::run(&mut build("test"))
}

/// Starts the servers for work by hand and waits for Ctrl-C.
pub(crate) fn serve() -> Result<()> {
    install(&[])?;
    let servers = Servers::start()?;
    for (name, value) in &servers.variables {
        process::print(&format!("export {name}={value}"));
    }
    process::print("# stop them with Ctrl-C");
    while !process::stopping() {
        process::pause(Duration::from_millis(200));
    }
    Ok(())
}

impl Servers {
    fn start() -> Result<Self> {
        process::print("starting the servers of the tests");
        // From here on the drop of `servers` stops whatever was started.
        let mut servers = Self { variables: Vec::new() };
        let started: Vec<Result<String>> = std::thread::scope(|scope| {
            let threads: Vec<_> = KINDS.iter().map(|kind| scope.spawn(|| kind.start())).collect();
            let joined = threads.into_iter().map(|thread| thread.join());
            joined.map(|url| url.unwrap_or_else(|_| bail!("the thread panicked"))).collect()
        });
        for (kind, url) in KINDS.iter().zip(started) {
            let url = url.with_context(|| format!("cannot start `{}`", kind.name))?;
            process::print(&format!("{} answers at {url}", kind.name));
            servers.variables.push((kind.variable, url));
            if kind.secure {
                let folder = kind.folder().join("certs").to_string_lossy().into_owned();
                servers.variables.push((CERTIFICATES_VARIABLE, folder));
            }
        }
        Ok(servers)
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for kind in &KINDS {
            if let Err(error) = kind.stop() {
                process::eprint(&format!("warning: cannot stop `{}`: {error:#}", kind.name));
            }
        }
    }
}

impl Kind {
    fn folder(&self) -> PathBuf {
        let chosen = std::env::var_os("SKIDDER_SERVERS_DIR").map(PathBuf::from);
        let root = chosen.unwrap_or_else(|| repository::root().join(".servers"));
        root.join("running").join(self.name)
    }

    /// Starts the server on a free port and returns its URL.
    fn start(&self) -> Result<String> {
        // An earlier run may have been killed before it could clean up.
        self.stop()?;
        let mut command = Command::new(scripts().join(self.script));
        command.arg("start").arg(self.folder()).arg("0");
        command.env("SECURITY", if self.secure { "1" } else { "0" });
        let said = process::output(&mut command)?;
        let said = String::from_utf8_lossy(&said);
        let url = said.split_whitespace().find_map(|word| word.strip_prefix("url="));
        Ok(url.with_context(|| format!("it said no URL but `{said}`"))?.to_owned())
    }

    fn stop(&self) -> Result<()> {
        let mut command = Command::new(scripts().join(self.script));
        process::output(command.arg("stop").arg(self.folder())).map(|_| ())
    }
}

fn scripts() -> PathBuf {
    repository::root().join("tests/servers")
}

fn script(name: &str, arguments: &[&str]) -> Result<()> {
    let mut command = Command::new(scripts().join(name));
    process::run(command.args(arguments).stdout(Stdio::null()))
}
