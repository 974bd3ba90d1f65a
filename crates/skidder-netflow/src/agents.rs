//! Agents of sFlow, within bounds: they number their datagrams, which shows how many were lost on the way.

use crate::sessions::{KEEP_ACTIVE, SESSIONS_MAX, is_new_beginning};
use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

/// How long an agent stays that sends nothing.
const AGE: Duration = Duration::from_mins(30);

/// How often agents are looked through to make room for another one, at most.
const ROOM_INTERVAL: Duration = Duration::from_secs(5);

/// More datagrams than that were not lost, one after the other: a number so far ahead is of an agent that counts anew, or
/// of a datagram that nobody sent so.
const AHEAD_MAX: u32 = 100_000;

/// A datagram that is late is no older than that. An agent whose clock goes back by more was started again.
const LATE_MAX_MS: u32 = 10_000;

/// Where a datagram is from: its sender, the agent, and the part of it that numbers its datagrams. The sender is
/// without its port: some agents, and NAT, send each datagram from another one.
pub(crate) type AgentKey = (IpAddr, Option<IpAddr>, u32);

#[derive(Debug)]
struct Agent {
    /// The highest number so far.
    sequence: u32,
    /// Milliseconds since the agent was started, in the same datagram; after 50 days they begin anew.
    uptime: u32,
    used: Duration,
}

/// All agents. Times are those of a monotonic clock.
#[derive(Debug, Default)]
pub(crate) struct Agents {
    all: HashMap<AgentKey, Agent, RandomState>,
    /// Until then there is no room for another one.
    full_until: Duration,
}

/// What the number of a datagram says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// So many datagrams before it are missing. They may be late.
    Ahead(u32),
    /// It is late, or comes twice.
    Late,
    /// The agent has begun to count anew.
    Anew,
}

impl Agents {
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Takes note of a datagram: its number, and the agent's milliseconds since it was started.
    pub(crate) fn note(
        &mut self,
        key: AgentKey,
        sequence: u32,
        uptime: u32,
        now: Duration,
    ) -> Step {
        if let Some(agent) = self.all.get_mut(&key) {
            agent.used = now;
            let back = agent.uptime.wrapping_sub(uptime);
            let step = if (LATE_MAX_MS + 1..u32::MAX / 2).contains(&back) {
                Step::Anew
            } else {
                step(agent.sequence, sequence)
            };
            if step != Step::Late {
                (agent.sequence, agent.uptime) = (sequence, uptime);
            }
            return step;
        }
        if self.all.len() >= SESSIONS_MAX && now >= self.full_until {
            self.all.retain(|_, agent| now.saturating_sub(agent.used) <= KEEP_ACTIVE);
            self.full_until = now + ROOM_INTERVAL;
        }
        if self.all.len() < SESSIONS_MAX {
            self.all.insert(key, Agent { sequence, uptime, used: now });
        }
        Step::Ahead(0)
    }

    /// Forgets agents that have sent nothing for long.
    pub(crate) fn expire(&mut self, now: Duration) {
        self.all.retain(|_, agent| now.saturating_sub(agent.used) < AGE);
    }
}

fn step(before: u32, sequence: u32) -> Step {
    if is_new_beginning(before, sequence) {
        return Step::Anew;
    }
    match sequence.wrapping_sub(before) {
        0 => Step::Late,
        ahead if ahead <= AHEAD_MAX => Step::Ahead(ahead - 1),
        ahead if ahead <= u32::MAX / 2 => Step::Anew,
        _ => Step::Late,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u32) -> AgentKey {
        (IpAddr::from([192, 0, 2, 1]), Some(IpAddr::from([10, 0, 0, 1])), number)
    }

    #[test]
    fn numbers_that_are_missing_were_lost_and_a_late_one_is_no_new_beginning() {
        let mut agents = Agents::default();
        let now = Duration::from_secs(1);
        for (sequence, expected) in [
            (u32::MAX - 1, Step::Ahead(0)),
            (u32::MAX, Step::Ahead(0)),
            (0, Step::Ahead(0)),
            (3, Step::Ahead(2)),
            (1, Step::Late),
            (3, Step::Late),
            (4, Step::Ahead(0)),
            (5004, Step::Ahead(4999)),
            (1, Step::Anew),
            (2, Step::Ahead(0)),
            (100_002, Step::Ahead(99_999)),
            (200_003, Step::Anew),
            (1_000_000_000, Step::Anew),
            (200_004, Step::Anew),
            (200_005, Step::Ahead(0)),
        ] {
            assert_eq!(agents.note(key(1), sequence, 7, now), expected, "{sequence}");
        }
    }

    #[test]
    fn an_agent_whose_clock_goes_back_was_started_again() {
        let mut agents = Agents::default();
        for (sequence, uptime, expected) in [
            (58, 58_000, Step::Ahead(0)),
            (59, 59_000, Step::Ahead(0)),
            (57, 57_000, Step::Late),
            // Its numbers are in reach of the old ones.
            (1, 1_000, Step::Anew),
            (2, 2_000, Step::Ahead(0)),
            (10, 10_000, Step::Ahead(7)),
        ] {
            let step = agents.note(key(1), sequence, uptime, Duration::ZERO);
            assert_eq!(step, expected, "{sequence} {uptime}");
        }
        // A clock has no room for more than 50 days.
        for (sequence, uptime, expected) in [
            (60, u32::MAX - 1_000, Step::Ahead(0)),
            (61, 1_000, Step::Ahead(0)),
            (60, u32::MAX - 1_000, Step::Late),
            (62, 2_000, Step::Ahead(0)),
        ] {
            let step = agents.note(key(2), sequence, uptime, Duration::ZERO);
            assert_eq!(step, expected, "{sequence} {uptime}");
        }
    }

    #[test]
    fn agents_that_are_active_are_not_forgotten_for_new_ones() {
        let mut agents = Agents::default();
        let at = Duration::from_secs;
        for number in 0..SESSIONS_MAX as u32 + 10 {
            agents.note(key(number), 1, 0, at(5));
        }
        assert_eq!(agents.len(), SESSIONS_MAX);
        agents.note(key(0), 2, 0, at(60));
        agents.note(key(u32::MAX), 1, 0, at(70));
        assert_eq!(agents.len(), 2);
        assert_eq!(agents.note(key(0), 5, 0, at(70)), Step::Ahead(2));
        agents.expire(at(70) + AGE);
        assert_eq!(agents.len(), 0);
    }
}
