//! Requests that any broker can answer: leaders of topics, and our producer identity. Each has its own connection,
//! which is closed behind it: there is one every ten minutes when all is well.

use crate::connect::Dialer;
use crate::connection::{AskError, Connection};
use crate::messages::{Identity, Metadata};
use skidder_net::first_of;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;

/// Head start of a broker before the next one is tried in parallel.
const NEXT_AFTER: Duration = Duration::from_secs(1);

/// An answer about topics, with the numbers that we gave them.
pub(crate) type Found = (Vec<u16>, Result<Metadata, AskError>);

/// A task with a result; aborted when dropped.
struct Task<T>(JoinHandle<T>);

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Requests under way, and answers that are not yet read.
#[derive(Default)]
pub(crate) struct Asking {
    topics: Option<Task<Found>>,
    identity: Option<Task<Result<Identity, AskError>>>,
    pub(crate) found: Option<Found>,
    pub(crate) known: Option<Result<Identity, AskError>>,
}

impl Asking {
    pub(crate) fn is_about_topics(&self) -> bool {
        self.topics.is_some() || self.found.is_some()
    }

    pub(crate) fn is_about_identity(&self) -> bool {
        self.identity.is_some() || self.known.is_some()
    }

    /// Asks about these topics by name; or, with `full`, about all topics.
    pub(crate) fn ask_topics(
        &mut self,
        dialer: &Arc<Dialer>,
        nodes: Vec<String>,
        topics: Vec<(u16, String)>,
        full: bool,
    ) {
        let dialer = Arc::clone(dialer);
        self.topics = Some(Task(tokio::spawn(async move {
            let (numbers, names): (Vec<u16>, Vec<String>) = topics.into_iter().unzip();
            let found = ask_topics(&dialer, nodes, &names, full).await;
            (numbers, found)
        })));
    }

    /// Asks for an identity.
    pub(crate) fn ask_identity(&mut self, dialer: &Arc<Dialer>, nodes: Vec<String>) {
        let dialer = Arc::clone(dialer);
        self.identity =
            Some(Task(tokio::spawn(async move { reach(&dialer, nodes).await?.identity().await })));
    }

    /// Until there is an answer, which is in one of the fields then.
    pub(crate) async fn answered(&mut self) {
        tokio::select! {
            found = ended(&mut self.topics) => self.found = Some(found),
            known = ended(&mut self.identity) => self.known = Some(known),
        }
    }
}

async fn ended<T>(task: &mut Option<Task<T>>) -> T {
    let Some(running) = task else { return std::future::pending().await };
    match (&mut running.0).await {
        Ok(result) => {
            *task = None;
            result
        }
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        // The runtime ends.
        Err(_) => std::future::pending().await,
    }
}

async fn ask_topics(
    dialer: &Arc<Dialer>,
    nodes: Vec<String>,
    names: &[String],
    full: bool,
) -> Result<Metadata, AskError> {
    let mut connection = reach(dialer, nodes).await?;
    if !full {
        return connection.metadata(Some(names), false).await;
    }
    let mut all = connection.metadata(None, false).await?;
    // Topics are not created when all are requested.
    let known = |name: &String| all.topics.contains_key(name);
    let missing: Vec<String> = names.iter().filter(|name| !known(name)).cloned().collect();
    if !missing.is_empty() {
        let more = connection.metadata(Some(&missing), false).await?;
        all.topics.extend(more.topics);
    }
    Ok(all)
}

/// A connection to the first of these that takes one. The error is that of the last one that failed.
pub(crate) async fn reach(
    dialer: &Arc<Dialer>,
    nodes: Vec<String>,
) -> Result<Connection, AskError> {
    let open = |node: String| {
        let dialer = Arc::clone(dialer);
        async move { Connection::open(&dialer, &node).await }
    };
    first_of(nodes, NEXT_AFTER, AskError::Ended, open).await
}
