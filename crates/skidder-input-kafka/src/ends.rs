//! How much there is to read in partitions that are not read now, because what was read before waits for room: asked now
//! and then, on a connection of its own.

use crate::api;
use crate::claim::{Claim, Shared};
use crate::fetch::NEWEST;
use skidder_kafka::connect::Dialer;
use skidder_kafka::connection::{AskError, Connection};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// How long nothing was read until the ends of partitions are looked at again.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// The ends of the partitions of one reader.
pub(crate) struct Ends {
    dialer: Arc<Dialer>,
    node: String,
    read_committed: bool,
    partitions: BTreeMap<(String, i32), Arc<Shared>>,
    /// When they are looked at next.
    next: Instant,
    connection: Option<Connection>,
}

impl Ends {
    pub(crate) fn new(
        dialer: &Arc<Dialer>,
        node: &str,
        claims: &[Claim],
        read_committed: bool,
    ) -> Self {
        let partition =
            |claim: &Claim| ((claim.topic.clone(), claim.partition), Arc::clone(&claim.shared));
        Self {
            dialer: Arc::clone(dialer),
            node: node.to_owned(),
            read_committed,
            partitions: claims.iter().map(partition).collect(),
            next: Instant::now() + LOOK_EVERY,
            connection: None,
        }
    }

    /// They are known, because the partitions were read.
    pub(crate) fn rest(&mut self) {
        self.next = Instant::now() + LOOK_EVERY;
        self.connection = None;
    }

    /// Looks at them again and again. It may be dropped at any time.
    pub(crate) async fn follow(&mut self) -> Infallible {
        loop {
            sleep_until(self.next).await;
            self.next = Instant::now() + LOOK_EVERY;
            if let Err(error) = self.look().await {
                // Reading will say it, if it is the broker.
                tracing::debug!(node = &*self.node, %error, "the ends of partitions are not known");
            }
        }
    }

    async fn look(&mut self) -> Result<(), AskError> {
        // Kept only if the answer is whole.
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => Connection::open(&self.dialer, &self.node).await?,
        };
        let wanted = self.partitions.keys().map(|key| (key.clone(), NEWEST)).collect();
        let found = api::list_offsets(&mut connection, &wanted, self.read_committed).await?;
        self.connection = Some(connection);
        for (key, end) in found {
            if let (Some(shared), Ok(end)) = (self.partitions.get(&key), end) {
                shared.set_end(end);
            }
        }
        Ok(())
    }
}
