//! `skidder test output`: what each output can find out about its surroundings without sending events.

use crate::elasticsearch::Elasticsearch;
use crate::file::FileOutput;
use crate::logstash::Logstash;
use crate::otlp::Otlp;
use crate::redis::Redis;
use crate::s3::S3;
use std::pin::Pin;

/// The check of one output.
#[derive(Debug)]
pub enum Check {
    /// Goes to every host.
    Elasticsearch(Box<Elasticsearch>),
    /// Goes to every host.
    Logstash(Box<Logstash>),
    /// Goes to every host.
    Otlp(Box<Otlp>),
    /// Goes to every server.
    Redis(Box<Redis>),
    /// Goes to the bucket.
    S3(Box<S3>),
    /// Looks at the directory.
    File(Box<FileOutput>),
    /// That of an output in another crate.
    Other(Box<dyn OtherCheck>),
    /// There is nothing that could fail.
    Nothing(&'static str),
}

impl Check {
    /// Sets up what the output's servers should have, inside a tokio runtime, as [`Check::run`] tells; nothing if
    /// there is no such thing for this kind of output.
    pub async fn set_up(&self, tell: &mut (dyn FnMut(&str) + Send)) -> Option<bool> {
        match self {
            Self::Elasticsearch(output) => Some(output.set_up(tell).await),
            _ => None,
        }
    }

    /// Runs the check inside a tokio runtime. Every line that a person should read goes to `tell`,
    /// without a line feed. Says whether the output would work.
    pub async fn run(&self, tell: &mut (dyn FnMut(&str) + Send)) -> bool {
        match self {
            Self::Elasticsearch(output) => output.check(tell).await,
            Self::Logstash(output) => output.check(tell).await,
            Self::Otlp(output) => output.check(tell).await,
            Self::Redis(output) => output.check(tell).await,
            Self::S3(output) => output.check(tell).await,
            Self::File(output) => output.check(tell),
            Self::Other(output) => output.check(tell).await,
            Self::Nothing(kind) => {
                tell(&format!("{kind}: nothing to test... OK"));
                true
            }
        }
    }
}

/// The check of an output in another crate.
pub trait OtherCheck: std::fmt::Debug + Send + Sync {
    /// As [`Check::run`].
    fn check<'a>(
        &'a self,
        tell: &'a mut (dyn FnMut(&str) + Send),
    ) -> Pin<Box<dyn Future<Output = bool> + 'a>>;
}
