//! `skidder test output`: checks each host step by step and reports the results.

use super::Elasticsearch;
use super::client::Failure;
use super::manage::Asking;
use super::server::{ServerInfo, Target};
use http::Method;
use skidder_net::{Connection, ConnectionError, Pieces, Steps, within};

impl Elasticsearch {
    /// Tries every host; returns whether all of them would take events.
    pub async fn check(&self, report: &mut (dyn FnMut(&str) + Send)) -> bool {
        let mut good = true;
        for target in &self.targets {
            let mut steps = Steps::new(report);
            steps.line(0, &format!("elasticsearch: {}...", target.host));
            good &= self.check_host(target, &mut steps).await.is_some();
        }
        good
    }

    async fn check_host(&self, target: &Target, steps: &mut Steps<'_>) -> Option<()> {
        let timeout = self.config.timeout;
        steps.ok(1, "parse url", "");
        let stream = self.route(target).check(steps, timeout).await?;
        let opened = within(timeout, Connection::over(stream, target.login.clone())).await;
        let mut connection = steps.step(1, "HTTP", opened)?;
        let mut answer = Vec::new();
        let headers = target.get_headers();
        let root = target.root.clone();
        let result = connection
            .send(Method::GET, root, headers, Pieces::new(&[]), &mut answer, timeout)
            .await;
        let result = greeting(result.map(|(status, _)| status), &answer, target.host.https);
        let info = steps.step(1, "talk to server", result)?;
        steps.line(1, &format!("version: {} ({})", info.version, info.flavour.name()));
        if !self.config.allow_older_versions && info.is_older_than(&self.context.version) {
            let too_old = format!("it is older than {}", self.context.version);
            return steps.step(1, "version is allowed", Err(too_old));
        }
        let mut asking = Asking { connection: &mut connection, target, timeout };
        self.check_rights(&mut asking, &info, steps).await
    }
}

/// Name and version of a server, from its answer to `GET /`.
fn greeting(
    result: Result<u16, ConnectionError>,
    answer: &[u8],
    https: bool,
) -> Result<ServerInfo, Failure> {
    match result {
        Err(error) => Err(Failure::greeting(error, https)),
        Ok(200..300) => ServerInfo::read(answer).map_err(Failure::NotElasticsearch),
        Ok(status) => Err(Failure::status(status, answer)),
    }
}
