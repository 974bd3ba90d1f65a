//! `skidder test output`: goes to the bucket step by step, puts an object, and removes it.

use super::S3;
use super::client::BucketClient;
use super::key::checked;
use super::object::Object;
use bytes::Bytes;
use http::Method;
use skidder_amazon::{Failure, Service};
use skidder_net::{Connection, Steps, within};
use skidder_os::{Clock, SystemClock};
use skidder_outputs::moment;
use skidder_pipeline::OutputMetrics;
use std::sync::Arc;

/// The test object for the right to put.
const CONTENT: &[u8] = b"{\"message\":\"skidder test output\"}\n";

impl S3 {
    /// Tries the bucket; returns whether it would take objects.
    pub async fn check(&self, report: &mut (dyn FnMut(&str) + Send)) -> bool {
        let mut steps = Steps::new(report);
        let Service { target, .. } = &self.service;
        let scheme = if target.https { "https" } else { "http" };
        steps.line(0, &format!("s3: {scheme}://{}...", target.authority));
        self.check_all(&mut steps).await.is_some()
    }

    async fn check_all(&self, steps: &mut Steps<'_>) -> Option<()> {
        let timeout = self.config.timeout;
        let stream =
            self.service.target.route(self.service.tls.clone()).check(steps, timeout).await?;
        let opened = within(timeout, Connection::over(stream, None)).await;
        let connection = steps.step(1, "HTTP", opened)?;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let got = self.service.provider.get(&clock).await;
        steps.line(1, &format!("who signs: {}", self.config.credentials.name()));
        steps.step(1, "credentials", got)?;
        let mut client = self.client(Arc::new(OutputMetrics::default()), Arc::clone(&clock));
        client.adopt(connection);
        self.check_bucket(&mut client, steps).await?;
        self.check_put(&mut client, &*clock, steps).await
    }

    /// A user who may only put objects may not check the bucket: then the object decides.
    async fn check_bucket(&self, client: &mut BucketClient, steps: &mut Steps<'_>) -> Option<()> {
        let name = format!("bucket `{}`", self.config.bucket);
        match client.ask(Method::HEAD, None).await {
            Ok(()) => steps.ok(1, &name, ""),
            Err(Failure::Refused(refused)) if refused.status == 404 => {
                let error = "it is not there; make it, or correct `bucket`";
                return steps.step(1, &name, Err(error));
            }
            Err(Failure::Refused(refused)) if refused.status == 403 => {
                let remark = "cannot be looked at (403): the right `s3:ListBucket` is missing, or the credentials are wrong";
                steps.warn(1, &name, remark);
            }
            Err(failure) => return steps.step(1, &name, Err(failure)),
        }
        Some(())
    }

    async fn check_put(
        &self,
        client: &mut BucketClient,
        clock: &dyn Clock,
        steps: &mut Steps<'_>,
    ) -> Option<()> {
        let now = clock.wall();
        let mut prefix = Vec::new();
        // The constant part, where events decide the rest.
        let format = self.prefix();
        let is_whole = format.write(&mut prefix, moment(now.0).event(0)).is_ok();
        let prefix = checked(&prefix, "").unwrap_or_default();
        if !is_whole {
            let remark = format!("`{prefix}`; what follows depends on the events");
            steps.line(1, &format!("key_prefix: {remark}"));
        }
        let key = self.names("-test-output").key(prefix, now);
        let object = Object::of(key.clone(), vec![Bytes::from_static(CONTENT)]);
        let put = client.put(&object).await;
        steps.step(1, &format!("put `{key}`"), put)?;
        match client.ask(Method::DELETE, Some(&key)).await {
            Ok(()) => steps.ok(1, "delete it", ""),
            Err(failure) => {
                let remark = format!("it is left there, which does no harm: {failure}");
                steps.warn(1, "delete it", &remark);
            }
        }
        Some(())
    }
}
