//! Nomad's allocations as they come, change and end, by blocking queries.
//!
//! <https://developer.hashicorp.com/nomad/api-docs#blocking-queries>. A query waits until something is newer than the
//! index of the last answer. Every answer has all allocations; those that are new or changed are reported.

use super::api::{Blocking, NomadApi, NomadError};
use serde_json::Value as Json;
use skidder_net::{HttpError, percent_encoded};
use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::time::Duration;
use tokio::time::Sleep;

/// Pause between two queries if nothing changed and the server did not wait.
const UNCHANGED_PAUSE: Duration = Duration::from_secs(1);
/// Pause between two queries in any case: many changes at once are one answer.
const PAUSE: Duration = Duration::from_millis(100);
/// Allocations that ended before the first answer, of which the newest are reported.
const ENDED_MAX: usize = 100;

/// What happened to allocations.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// An allocation runs, or is another than before. One that ended before it was seen is reported, too; its end follows.
    Seen(Json),
    /// The allocation with this id has ended, with the version of that.
    Ended(String, String),
    /// The ids of all allocations that have not ended.
    Listed(Vec<String>),
    /// Nomad answered, and nothing is new.
    Unchanged,
}

/// Which allocations are followed, and how.
#[derive(Clone, Debug)]
pub struct Following {
    /// Of all nodes; else of `node`.
    pub is_cluster: bool,
    /// The name of the node; `None` for that of the agent.
    pub node: Option<String>,
    /// How long a query waits for a change; zero for the agent's own limit.
    pub wait: Duration,
    /// Any server may answer, not only the leader.
    pub allows_stale: bool,
    /// Allocations that have ended since then are of interest, too; in nanoseconds since 1970.
    pub ended_since: i64,
}

/// What was reported about an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Known {
    version: u64,
    has_ended: bool,
}

/// Follows allocations. To be polled in a runtime of tokio.
#[derive(Debug)]
pub struct Allocations {
    api: NomadApi,
    following: Following,
    node_id: Option<String>,
    index: u64,
    is_first: bool,
    known: BTreeMap<String, Known>,
    changes: VecDeque<Change>,
    /// Before the next query.
    pause: Option<Pin<Box<Sleep>>>,
}

impl Allocations {
    /// Those that `following` names, of the cluster behind `api`.
    pub fn new(api: NomadApi, following: Following) -> Self {
        Self {
            api,
            following,
            node_id: None,
            index: 0,
            is_first: true,
            known: BTreeMap::new(),
            changes: VecDeque::new(),
            pause: None,
        }
    }

    /// Where requests go, for messages.
    pub fn host(&self) -> &str {
        self.api.host()
    }

    /// Waits for the next change.
    ///
    /// # Errors
    ///
    /// Nomad does not answer or refuses. The next call goes on where the last answer ended.
    pub async fn next(&mut self) -> Result<Change, NomadError> {
        if let Some(change) = self.changes.pop_front() {
            return Ok(change);
        }
        if let Some(pause) = self.pause.take() {
            pause.await;
        }
        let (unchanged, before) = (tokio::time::sleep(UNCHANGED_PAUSE), self.index);
        if let Err(error) = self.query().await {
            // The agent may be that of another node now.
            self.node_id = None;
            return Err(error);
        }
        let changed = tokio::time::sleep(PAUSE);
        self.pause = Some(Box::pin(if self.index == before { unchanged } else { changed }));
        Ok(self.changes.pop_front().unwrap_or(Change::Unchanged))
    }

    async fn query(&mut self) -> Result<(), NomadError> {
        let path = if self.following.is_cluster {
            "/v1/allocations".to_owned()
        } else {
            let id = match self.node_id.take() {
                Some(id) => id,
                None => self.api.node_id(self.following.node.as_deref()).await?,
            };
            let path = format!("/v1/node/{}/allocations", percent_encoded(&id));
            self.node_id = Some(id);
            path
        };
        let Following { wait, allows_stale, .. } = self.following;
        let blocking = Blocking { index: self.index, wait, allows_stale };
        let (items, index) = self.api.list(&path, blocking).await?;
        let Some(index) = index else {
            // Without it, all that is left is to ask again and again.
            self.take(items).await?;
            self.is_first = false;
            return Ok(());
        };
        if index < self.index {
            // Of a server that lags behind, or the cluster was restored. The next answer counts, whatever its index is.
            tracing::debug!(index, before = self.index, "the index of Nomad went back");
            self.index = 0;
            return Ok(());
        }
        if index == self.index && !self.is_first {
            return Ok(());
        }
        self.take(items).await?;
        (self.index, self.is_first) = (index, false);
        Ok(())
    }

    /// Reports what is new in all allocations.
    async fn take(&mut self, items: Vec<Json>) -> Result<(), NomadError> {
        let wanted = if self.is_first { self.wanted_ended(&items) } else { Vec::new() };
        let mut alive = Vec::new();
        let mut known = BTreeMap::new();
        let mut changes = VecDeque::new();
        for item in items {
            let Some(id) = item["ID"].as_str().map(str::to_owned) else { continue };
            let state = State::of(&item);
            let version = item["ModifyIndex"].as_u64().unwrap_or(0);
            let before = self.known.get(&id).copied();
            let has_ended = state == State::Ended;
            if !has_ended {
                alive.push(id.clone());
            }
            if state == State::Pending {
                continue;
            }
            known.insert(id.clone(), Known { version, has_ended });
            if before.is_some_and(|before| before.version >= version) {
                known.extend(before.map(|before| (id, before)));
                continue;
            }
            // One that was reported before has its description already.
            let is_short = has_ended && before.is_none_or(|before| before.has_ended);
            if is_short && (before.is_some() || self.is_first && !wanted.contains(&id)) {
                continue;
            }
            if !has_ended || is_short {
                let Some(mut allocation) = self.described(&id, item).await? else { continue };
                // The end of one that has ended by now is reported next.
                allocation["ClientStatus"] = "running".into();
                allocation["ModifyIndex"] = version.into();
                changes.push_back(Change::Seen(allocation));
            }
            if has_ended {
                changes.push_back(Change::Ended(id, version.to_string()));
            }
        }
        // Before the ends, so that those that are new are not taken for gone.
        let at = changes.iter().position(|one| matches!(one, Change::Ended(..)));
        changes.insert(at.unwrap_or(changes.len()), Change::Listed(alive));
        (self.known, self.changes) = (known, changes);
        Ok(())
    }

    /// Those that ended before the first answer, and are reported nevertheless.
    fn wanted_ended(&self, items: &[Json]) -> Vec<String> {
        let mut ended: Vec<(i64, &str)> = items
            .iter()
            .filter(|item| State::of(item) == State::Ended)
            .filter_map(|item| Some((item["ModifyTime"].as_i64()?, item["ID"].as_str()?)))
            .filter(|(at, _)| *at >= self.following.ended_since)
            .collect();
        ended.sort_unstable_by(|left, right| right.cmp(left));
        ended.into_iter().take(ENDED_MAX).map(|(_, id)| id.to_owned()).collect()
    }

    /// The whole description of an item; lists of a cluster do not have it. `None` if it is gone.
    async fn described(&self, id: &str, item: Json) -> Result<Option<Json>, NomadError> {
        if !self.following.is_cluster {
            return Ok(Some(item));
        }
        match self.api.get(&format!("/v1/allocation/{}", percent_encoded(id))).await {
            Ok(allocation) => Ok(Some(allocation)),
            Err(HttpError::Status { status, .. }) if status.as_u16() == 404 => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// Where an allocation is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It has not begun.
    Pending,
    /// It runs, or its node does not answer.
    Running,
    Ended,
}

impl State {
    fn of(allocation: &Json) -> Self {
        match allocation["ClientStatus"].as_str() {
            Some("pending") | None => Self::Pending,
            Some("complete" | "failed" | "lost") => Self::Ended,
            Some(_) => Self::Running,
        }
    }
}
