//! How a member joins its group.

use super::{Member, SessionError, partitions};
use crate::api::{self, Joining, Offsets};
use crate::assign::{self, Assignment, Strategy, Subscription};
use crate::settings::Settings;
use skidder_kafka::codes::Code;
use skidder_kafka::connect::Dialer;
use skidder_kafka::connection::{AskError, Connection};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How often a member joins again at once, when the group says so.
const JOINS_MAX: usize = 10;

impl Member {
    /// A connection to the group's coordinator.
    pub(super) async fn connect(
        settings: &Settings,
        dialer: &Dialer,
    ) -> Result<Connection, SessionError> {
        let mut last = (String::new(), AskError::Ended);
        for host in &settings.hosts {
            let mut at = host.clone();
            let found = async {
                let mut connection = Connection::open(dialer, host).await?;
                let node = api::find_coordinator(&mut connection, &settings.group_id).await?;
                at.clone_from(&node);
                Connection::open(dialer, &node).await
            };
            match found.await {
                Ok(connection) => return Ok(connection),
                Err(error @ AskError::Code(_)) => return Err(error.into()),
                Err(error) => last = (at, error),
            }
        }
        let (host, error) = last;
        Err(SessionError::Connect { host, error })
    }

    /// Joins; returns the partitions of this member, and what is committed of them. It may be dropped.
    pub(super) async fn join(&mut self) -> Result<(Assignment, Offsets), SessionError> {
        let mut connection = match self.coordinator.take() {
            Some(connection) => connection,
            None => Self::connect(&self.settings, &self.dialer).await?,
        };
        let settings = Arc::clone(&self.settings);
        let subscription = self.subscription().to_bytes();
        let how = Joining {
            session_timeout: settings.session_timeout,
            rebalance_timeout: settings.rebalance_timeout,
            strategy: settings.strategy.name(),
            subscription: &subscription,
        };
        for _ in 0..JOINS_MAX {
            let joined = self.me.join(&mut connection, how).await?;
            match joined.code {
                Code::NONE => {}
                Code::MEMBER_ID_REQUIRED => {
                    self.me.member = joined.member;
                    continue;
                }
                Code::UNKNOWN_MEMBER_ID => {
                    self.me.member.clear();
                    continue;
                }
                code => return Err(AskError::Code(code).into()),
            }
            (self.me.member, self.me.generation) = (joined.member, joined.generation);
            self.planned = None;
            let plan = match joined.members {
                Some(members) => self.plan(&mut connection, &members).await?,
                None => BTreeMap::new(),
            };
            match self.me.sync(&mut connection, &plan, settings.rebalance_timeout).await? {
                Ok(assignment) => {
                    let committed = self.me.committed(&mut connection, &assignment).await?;
                    self.coordinator = Some(connection);
                    return Ok((assignment, committed));
                }
                Err(Code::REBALANCE_IN_PROGRESS) => {}
                Err(Code::UNKNOWN_MEMBER_ID | Code::ILLEGAL_GENERATION) => self.me.member.clear(),
                Err(code) => return Err(AskError::Code(code).into()),
            }
        }
        Err(SessionError::Restless)
    }

    /// What this member tells the one that assigns partitions.
    fn subscription(&self) -> Subscription {
        let mut had = Assignment::new();
        if self.settings.strategy == Strategy::Sticky {
            for (topic, partition) in self.assigned.keys() {
                had.entry(topic.clone()).or_default().push(*partition);
            }
        }
        let topics = self.settings.topics.clone();
        Subscription { topics, had, generation: self.me.generation }
    }

    /// Gives partitions to the members of the group.
    pub(super) async fn plan(
        &mut self,
        connection: &mut Connection,
        members: &[(String, Vec<u8>)],
    ) -> Result<BTreeMap<String, Assignment>, SessionError> {
        let mut wanted = BTreeMap::new();
        for (member, subscription) in members {
            let subscription = Subscription::read(subscription, self.settings.strategy)?;
            wanted.insert(member.clone(), subscription);
        }
        let mut topics: Vec<String> =
            wanted.values().flat_map(|member| &member.topics).cloned().collect();
        topics.sort();
        topics.dedup();
        let there = partitions(connection, &topics).await?;
        for topic in topics.iter().filter(|topic| !there.contains_key(*topic)) {
            tracing::warn!(topic, "there is no such topic; waiting for it");
        }
        let plan = assign::assign(self.settings.strategy, &wanted, &there);
        self.planned = Some(there);
        Ok(plan)
    }
}
