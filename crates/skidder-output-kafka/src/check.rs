//! `skidder test output`: goes to each broker step by step, and then to the topic, and tells what it finds.

use crate::codes;
use crate::connect::{ConnectError, Dialer};
use crate::native::{Code, Metadata, Producer};
use crate::setup::Kafka;
use skidder_outputs::{OtherCheck, Steps};
use skidder_pipeline::QueueLimits;
use skidder_tls::VerificationMode;
use std::fmt;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::Notify;

/// How often a topic is asked for that may be under construction.
const TRIES_MAX: usize = 10;

/// An error of librdkafka with what a person can do about it.
struct Advised(Code);

impl fmt::Display for Advised {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let advice = codes::advice(self.0);
        if advice.is_empty() {
            write!(out, "{}", self.0)
        } else {
            write!(out, "{}; {advice}", self.0)
        }
    }
}

impl OtherCheck for Kafka {
    fn check<'a>(
        &'a self,
        tell: &'a mut (dyn FnMut(&str) + Send),
    ) -> Pin<Box<dyn Future<Output = bool> + 'a>> {
        Box::pin(async move {
            let mut steps = Steps::new(tell);
            let mut reached = 0;
            for host in &self.0.config.hosts {
                steps.line(0, &format!("kafka: {host}..."));
                reached += usize::from(self.check_host(host, &mut steps).await.is_some());
            }
            let good = reached == self.0.config.hosts.len();
            // One is enough to find the others.
            reached > 0 && self.check_topic(&mut steps).await.is_some() && good
        })
    }
}

impl Kafka {
    async fn check_host(&self, host: &str, steps: &mut Steps<'_>) -> Option<()> {
        let dialer: &Dialer = &self.0.dialer;
        steps.ok(1, "parse host", "");
        let resolve = async {
            let found = tokio::net::lookup_host(host).await.map_err(ConnectError::Tcp)?;
            Ok(found.collect::<Vec<SocketAddr>>())
        };
        let addresses = steps.step(1, "dns lookup", dialer.within(resolve).await)?;
        let shown: Vec<String> = addresses.iter().map(|address| address.ip().to_string()).collect();
        steps.line(1, &format!("addresses: {}", shown.join(", ")));
        let dial = async {
            let mut last = None;
            for address in &addresses {
                match dialer.tcp(*address).await {
                    Ok(stream) => return Ok(stream),
                    Err(error) => last = Some(error),
                }
            }
            Err(last.unwrap_or(ConnectError::Tcp(std::io::ErrorKind::NotFound.into())))
        };
        let tcp = steps.step(1, "dial up", dialer.within(dial).await)?;
        let encrypted = dialer.within(dialer.encrypt(tcp, host)).await;
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

    /// What the brokers know, and whether they would take events of the topic.
    async fn check_topic(&self, steps: &mut Steps<'_>) -> Option<()> {
        let config = Arc::clone(&self.0.config);
        steps.line(0, "kafka: cluster...");
        let producer = self.0.producer(&QueueLimits::default(), &Arc::new(Notify::new()));
        let producer = steps.step(1, "librdkafka", producer)?;
        let found = self.metadata(&producer, None).await.map_err(Advised);
        let found = steps.step(1, "talk to brokers", found)?;
        for (id, address) in &found.brokers {
            steps.line(1, &format!("broker {id}: {address}"));
        }
        let Some(name) = config.topics.constant() else {
            steps.line(1, "topic: it depends on the events");
            return Some(());
        };
        let found = self.metadata(&producer, Some(name.to_owned())).await.map_err(Advised);
        let found = steps.step(1, &format!("ask for topic `{name}`"), found)?;
        let state = found.topics.get(name);
        let usable = match state {
            Some(state) => crate::topics::usable(state, config.partitioning.reachable_only),
            None => Err(codes::UNKNOWN_TOPIC),
        };
        let usable = steps.step(1, "it has partitions", usable.map_err(Advised))?;
        let without = state.map_or(0, |state| {
            state.partitions.iter().filter(|partition| partition.leader < 0).count()
        });
        self.check_rights(&producer, name, steps).await?;
        steps.line(1, &format!("partitions: {}", usable.len()));
        if without > 0 {
            steps.warn(1, "leaders", &format!("{without} partitions have none"));
        }
        Some(())
    }

    /// Whether the user may write to the topic: knowing its partitions takes the right Describe only.
    async fn check_rights(
        &self,
        producer: &Producer,
        topic: &str,
        steps: &mut Steps<'_>,
    ) -> Option<()> {
        let (producer, name) = (producer.clone(), topic.to_owned());
        let timeout = self.0.config.timeout;
        let asked = tokio::task::spawn_blocking(move || producer.may_write(&name, timeout));
        match asked.await.unwrap_or(Err(codes::TIMED_OUT)) {
            Ok(Some(true)) => steps.ok(1, "the user has the right Write", ""),
            Ok(Some(false)) => {
                let denied = Err::<(), _>(Advised(codes::TOPIC_AUTHORIZATION_FAILED));
                steps.step(1, "the user has the right Write", denied)?;
            }
            Ok(None) => steps.warn(1, "rights", "the brokers do not tell"),
            Err(code) => steps.warn(1, "rights", &format!("the brokers do not tell: {code}")),
        }
        Some(())
    }

    /// Asks; for some time again, while a topic is being created.
    async fn metadata(&self, producer: &Producer, topic: Option<String>) -> Result<Metadata, Code> {
        let timeout = self.0.config.timeout;
        let mut tries = 0;
        loop {
            let (producer, name) = (producer.clone(), topic.clone());
            let asked = tokio::task::spawn_blocking(move || {
                let topic = name.as_deref().and_then(|name| producer.topic(name));
                producer.metadata(topic.as_ref(), timeout)
            });
            let found = asked.await.unwrap_or(Err(codes::TIMED_OUT))?;
            let is_coming = topic.as_ref().is_some_and(|topic| {
                found.topics.get(topic).is_some_and(|state| matches!(state.code.0, 3 | 5))
            });
            tries += 1;
            if !is_coming || tries > TRIES_MAX {
                return Ok(found);
            }
            tokio::time::sleep(self.0.config.metadata.retry_backoff).await;
        }
    }
}
