//! `skidder test output`: goes to each host step by step and tells what it finds.

use super::connection::{self, Connection, ConnectionError, Pieces, within};
use super::server::{ServerInfo, Target};
use super::{Elasticsearch, VerificationMode};
use crate::check::Steps;
use http::Method;

impl Elasticsearch {
    /// Tries every host; says whether all of them would take events.
    pub async fn check(&self, tell: &mut (dyn FnMut(&str) + Send)) -> bool {
        let mut good = true;
        for target in &self.targets {
            let mut steps = Steps::new(tell);
            steps.line(0, &format!("elasticsearch: {}...", target.host));
            good &= self.check_host(target, &mut steps).await.is_some();
        }
        good
    }

    async fn check_host(&self, target: &Target, steps: &mut Steps<'_>) -> Option<()> {
        let timeout = self.config.timeout;
        let host = &target.host;
        steps.ok(1, "parse url", "");
        steps.line(1, "connection...");
        steps.ok(2, "parse host", "");
        let addresses =
            steps.step(2, "dns lookup", within(timeout, connection::resolve(host)).await)?;
        let shown: Vec<String> = addresses.iter().map(|address| address.ip().to_string()).collect();
        steps.line(2, &format!("addresses: {}", shown.join(", ")));
        let tcp = steps.step(2, "dial up", within(timeout, connection::dial(&addresses)).await)?;
        let mut connection = match self.tls.as_ref().filter(|_| host.https) {
            None => {
                steps.warn(1, "TLS", "secure connection disabled");
                let opened = Connection::over_tcp(tcp).await;
                steps.step(1, "HTTP", opened)?
            }
            Some(tls) => {
                steps.line(1, "TLS...");
                match self.config.tls.verification_mode {
                    VerificationMode::Full => {
                        steps.ok(
                            2,
                            "security",
                            "server's certificate chain verification is enabled",
                        );
                    }
                    VerificationMode::Certificate => {
                        steps.warn(2, "security", "the name in the certificate is not checked");
                    }
                    VerificationMode::None => {
                        steps.warn(2, "security", "the server's certificate is not checked");
                    }
                }
                let encrypted = within(timeout, connection::encrypt(tcp, host, tls)).await;
                let stream = steps.step(2, "handshake", encrypted)?;
                let version = stream.get_ref().1.protocol_version();
                if let Some(version) =
                    version.and_then(|version| version.as_str().map(str::to_owned))
                {
                    steps.line(2, &format!("TLS version: {version}"));
                }
                let opened = Connection::over_tls(stream).await;
                steps.step(1, "HTTP", opened)?
            }
        };
        let mut answer = Vec::new();
        let headers = target.get_headers();
        let root = target.root.clone();
        let asked = connection
            .send(Method::GET, root, headers, Pieces::new(&[]), &mut answer, timeout)
            .await;
        let info = steps.step(1, "talk to server", greeting(asked, &answer))?;
        steps.line(1, &format!("version: {} ({})", info.version, info.flavour.name()));
        if !self.config.allow_older_versions && info.is_older_than(&self.context.version) {
            let too_old = format!("it is older than {}", self.context.version);
            return steps.step(1, "version is allowed", Err(too_old));
        }
        Some(())
    }
}

/// What a server is by its answer to `GET /`.
fn greeting(asked: Result<u16, ConnectionError>, answer: &[u8]) -> Result<ServerInfo, String> {
    match asked {
        Err(error) => Err(error.to_string()),
        Ok(200..300) => ServerInfo::read(answer)
            .map_err(|error| format!("it does not answer as Elasticsearch does: {error}")),
        Ok(status @ (401 | 403)) => {
            Err(format!("it answered {status}: see `username`, `password` and `api_key`"))
        }
        Ok(status) => Err(format!("it answered {status}")),
    }
}
