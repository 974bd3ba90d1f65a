//! `skidder test output`: checks each broker step by step, then the topic, and reports the results.

use crate::ask;
use crate::codes::Code;
use crate::connect::Dialer;
use crate::connection::{AskError, Connection};
use crate::messages::{Metadata, TopicState};
use crate::setup::Kafka;
use crate::topics;
use skidder_net::Steps;
use skidder_tls::VerificationMode;
use std::fmt;

/// How often to ask for a topic that may be under construction.
const TRIES_MAX: usize = 10;

/// An error with what a person can do about it.
struct Advised(AskError);

impl fmt::Display for Advised {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let advice = self.0.advice();
        if advice.is_empty() {
            write!(out, "{}", self.0)
        } else {
            write!(out, "{}; {advice}", self.0)
        }
    }
}

impl Kafka {
    /// Tries every broker, and the topic; returns whether all of them would take events.
    pub(crate) async fn check_all(&self, report: &mut (dyn FnMut(&str) + Send)) -> bool {
        let mut steps = Steps::new(report);
        let mut reached = 0;
        for host in &self.0.config.hosts {
            steps.line(0, &format!("kafka: {host}..."));
            reached += usize::from(self.check_host(host, &mut steps).await.is_some());
        }
        let good = reached == self.0.config.hosts.len();
        // One is enough to find the others.
        reached > 0 && self.check_topic(&mut steps).await.is_some() && good
    }

    async fn check_host(&self, host: &str, steps: &mut Steps<'_>) -> Option<()> {
        let dialer: &Dialer = &self.0.dialer;
        steps.ok(1, "parse host", "");
        let resolved = dialer.within(dialer.resolve(host)).await;
        let addresses = steps.step(1, "dns lookup", resolved)?;
        let shown: Vec<String> = addresses.iter().map(|address| address.ip().to_string()).collect();
        steps.line(1, &format!("addresses: {}", shown.join(", ")));
        let tcp = steps.step(1, "dial up", dialer.within(dialer.dial(&addresses)).await)?;
        let encrypted = dialer.encrypt(tcp, host).await;
        let mut stream = match self.0.config.tls.as_ref().filter(|tls| tls.enabled) {
            None => {
                steps.warn(1, "TLS", "secure connection disabled");
                encrypted.ok()?
            }
            Some(tls) => {
                match tls.verification_mode {
                    VerificationMode::Full => {}
                    VerificationMode::Certificate => {
                        steps.warn(1, "security", "the name in the certificate is not checked");
                    }
                    VerificationMode::None => {
                        steps.warn(1, "security", "the broker's certificate is not checked");
                    }
                }
                steps.step(1, "TLS handshake", encrypted)?
            }
        };
        match &self.0.config.credentials {
            None => steps.warn(1, "login", "no `username`"),
            Some(credentials) => {
                let step = format!("login by {}", credentials.mechanism.name());
                let logged_in = dialer.within(dialer.log_in(&mut *stream)).await;
                steps.step(1, &step, logged_in)?;
            }
        }
        Some(())
    }

    /// Checks the metadata of the topic, and whether the brokers would take events of it.
    async fn check_topic(&self, steps: &mut Steps<'_>) -> Option<()> {
        let config = &self.0.config;
        steps.line(0, "kafka: cluster...");
        let reached = ask::reach(&self.0.dialer, config.hosts.clone()).await.map_err(Advised);
        let mut connection = steps.step(1, "talk to brokers", reached)?;
        let found = connection.metadata(Some(&[]), false).await.map_err(Advised);
        let found = steps.step(1, "ask for brokers", found)?;
        for (id, address) in &found.brokers {
            steps.line(1, &format!("broker {id}: {address}"));
        }
        let Some(name) = config.topics.constant() else {
            steps.line(1, "topic: it depends on the events");
            return Some(());
        };
        let found = self.topic(&mut connection, name).await.map_err(Advised);
        let found = steps.step(1, &format!("ask for topic `{name}`"), found)?;
        let state = found.topics.get(name);
        let usable = match state {
            Some(state) => topics::usable(state, config.partitioning.reachable_only),
            None => Err(Code::UNKNOWN_TOPIC),
        };
        let usable = usable.map_err(|code| Advised(AskError::Code(code)));
        let usable = steps.step(1, "it has partitions", usable)?;
        let state = state?;
        check_rights(state, steps)?;
        steps.line(1, &format!("partitions: {}", usable.len()));
        let without = state.partitions.iter().filter(|partition| partition.leader < 0).count();
        if without > 0 {
            steps.warn(1, "leaders", &format!("{without} partitions have none"));
        }
        Some(())
    }

    /// Asks for a topic; for some time again, while it is being created.
    async fn topic(&self, connection: &mut Connection, name: &str) -> Result<Metadata, AskError> {
        let names = [name.to_owned()];
        let mut tries = 0;
        loop {
            let found = connection.metadata(Some(&names), true).await?;
            let is_coming = found
                .topics
                .get(name)
                .is_some_and(|state| matches!(state.code, Code::UNKNOWN_TOPIC | Code::NO_LEADER));
            tries += 1;
            if !is_coming || tries > TRIES_MAX {
                return Ok(found);
            }
            tokio::time::sleep(self.0.config.metadata.retry_backoff).await;
        }
    }
}

/// Whether the user may write to the topic: knowing its partitions takes the right Describe only.
fn check_rights(state: &TopicState, steps: &mut Steps<'_>) -> Option<()> {
    match state.may_write {
        Some(true) => steps.ok(1, "the user has the right Write", ""),
        Some(false) => {
            let denied = AskError::Code(Code::TOPIC_AUTHORIZATION_FAILED);
            steps.step(1, "the user has the right Write", Err::<(), _>(Advised(denied)))?;
        }
        None => steps.warn(1, "rights", "the brokers do not tell"),
    }
    Some(())
}
