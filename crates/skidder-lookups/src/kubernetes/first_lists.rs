//! Lists that are read before others: a pod comes with what is around it.

use std::time::Duration;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// The lists are not waited for any longer. Filebeat waits for ever; but files rotate.
const PATIENCE: Duration = Duration::from_mins(1);

/// Waits until other lists have been read for the first time.
///
/// A pod whose namespace is not known yet would get events without the labels of the namespace.
#[derive(Debug)]
pub struct FirstLists {
    pending: Sender<()>,
    ended: Receiver<()>,
}

/// One of these lists. It is no longer waited for when this is dropped.
#[derive(Debug)]
pub struct FirstList {
    _pending: Sender<()>,
}

impl Default for FirstLists {
    fn default() -> Self {
        let (pending, ended) = channel(1);
        Self { pending, ended }
    }
}

impl FirstLists {
    /// One more list to wait for.
    pub fn add(&self) -> FirstList {
        FirstList { _pending: self.pending.clone() }
    }

    /// Waits until each list has been read once, or was refused, a minute at most. `why` says in the log what they
    /// are read for. To be called in a runtime of tokio.
    pub async fn wait(self, why: &str) {
        let Self { pending, mut ended } = self;
        drop(pending);
        // Nothing is ever sent.
        if tokio::time::timeout(PATIENCE, ended.recv()).await.is_err() {
            tracing::warn!(
                "what is around {why} (nodes, namespaces, …) is not known after {PATIENCE:?}; first events may have no \
                 fields of it"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_list_is_waited_for_but_not_for_ever() {
        let start = tokio::time::Instant::now();
        let lists = FirstLists::default();
        let (one, two) = (lists.add(), lists.add());
        let ends = async {
            drop(one);
            tokio::time::sleep(Duration::from_secs(3)).await;
            drop(two);
        };
        tokio::join!(lists.wait("pods"), ends);
        assert_eq!(start.elapsed().as_secs(), 3);

        let lists = FirstLists::default();
        let never = lists.add();
        lists.wait("pods").await;
        assert_eq!(start.elapsed().as_secs(), 3 + PATIENCE.as_secs());
        drop(never);

        FirstLists::default().wait("pods").await;
        assert_eq!(start.elapsed().as_secs(), 3 + PATIENCE.as_secs());
    }
}
