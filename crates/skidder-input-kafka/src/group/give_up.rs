//! What a member does before it gives partitions up: it drains, and commits what has its verdicts.

use super::{End, Member, Readers, SessionError, end_of, outcome, partitions, ticks};
use crate::api::Offsets;
use crate::fetch::Phase;
use skidder_kafka::connection::AskError;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

impl Member {
    /// Whether there are other partitions than those that were assigned.
    pub(super) async fn has_changed(&mut self) -> Result<bool, SessionError> {
        let Some(planned) = &self.planned else { return Ok(false) };
        let mut topics: Vec<String> =
            planned.keys().chain(&self.settings.topics).cloned().collect();
        topics.sort();
        topics.dedup();
        let connection = self.coordinator.as_mut().ok_or(AskError::Ended)?;
        let there = partitions(connection, &topics).await?;
        Ok(there != *planned)
    }

    /// Waits until nothing is read any more and what is in flight has its verdicts, for `limit` at most.
    pub(super) async fn drain(&mut self, mut readers: Readers, limit: Duration) {
        readers.phase.send_replace(Phase::Drain);
        let end = sleep(limit);
        tokio::pin!(end);
        let news = Arc::clone(&self.news);
        let mut heartbeat = ticks(self.settings.heartbeat_interval);
        loop {
            let is_waiting = self.assigned.values().any(|shared| shared.progress.is_waiting());
            if readers.tasks.is_empty() && !is_waiting {
                return;
            }
            self.intake.flush();
            tokio::select! {
                biased;
                ended = readers.tasks.join_next(), if !readers.tasks.is_empty() => {
                    if let Some((claims, _)) = outcome(ended) {
                        self.idle.extend(claims);
                    }
                }
                () = &mut end => break,
                () = news.notified() => {}
                _ = heartbeat.tick(), if self.coordinator.is_some() => {
                    if let Some(connection) = &mut self.coordinator
                        && self.me.heartbeat(connection).await.is_err()
                    {
                        self.coordinator = None;
                    }
                }
            }
        }
        readers.phase.send_replace(Phase::GiveUp);
        while let Some((claims, _)) = outcome(readers.tasks.join_next().await) {
            self.idle.extend(claims);
        }
    }

    /// Commits what has its verdicts. Returns how the session ends, if the group goes on without this member.
    pub(super) async fn commit(&mut self) -> Result<Option<End>, SessionError> {
        let mut offsets = Offsets::new();
        for (key, shared) in &self.assigned {
            let front = shared.progress.front();
            if front >= 0 && self.committed.get(key) != Some(&front) {
                offsets.insert(key.clone(), front);
            }
        }
        if offsets.is_empty() {
            return Ok(None);
        }
        let connection = self.coordinator.as_mut().ok_or(AskError::Ended)?;
        let (taken, refused) = self.me.commit(connection, &offsets).await?;
        self.committed.extend(taken);
        Ok(refused.map(end_of).transpose()?.flatten())
    }
}
