//! What watchers report.

use crate::json::{text, text_or_empty};
use serde_json::Value as Json;

/// A description of an object, as the API gives it.
///
/// Each has an id, which [`Autodiscover::gone`](crate::Autodiscover::gone) and
/// [`Autodiscover::listed`](crate::Autodiscover::listed) use: the full id of a container, the `uid` of an object of
/// Kubernetes, the id of an allocation. Of several facts about one object the one with the highest version counts: the time of the start of a
/// container, the `resourceVersion` of an object, the `ModifyIndex` of an allocation.
#[derive(Clone, Debug)]
pub enum Fact {
    /// A container of Docker: the answer to `inspect`, or an item of the answer to `/containers/json`. An item has no
    /// time of the start, so that a late one cannot be distinguished from a restart: `inspect` is better.
    Docker(Json),
    /// A pod.
    Pod(Json),
    /// A node.
    Node(Json),
    /// A namespace.
    Namespace(Json),
    /// A service.
    Service(Json),
    /// A replica set: its owner is the deployment of a pod.
    ReplicaSet(Json),
    /// A job: its owner is the cron job of a pod.
    Job(Json),
    /// This instance holds the lease of a provider with `unique`. The text is the id, any that is not used again.
    Leader(String),
    /// An allocation of Nomad, with its job.
    Nomad(Json),
    /// A Jolokia agent, as [`JolokiaAgents`](crate::JolokiaAgents) reads its answer.
    Jolokia(Json),
    /// The cluster: `name` and `url`, as far as they are known.
    Cluster(Json),
}

impl Fact {
    /// The id of the object; empty if the description has none, and the fact is ignored.
    pub fn id(&self) -> String {
        match self {
            Self::Docker(container) => text_or_empty(&container["Id"]),
            Self::Pod(object)
            | Self::Node(object)
            | Self::Namespace(object)
            | Self::Service(object)
            | Self::ReplicaSet(object)
            | Self::Job(object) => text_or_empty(&object["metadata"]["uid"]),
            Self::Leader(id) => id.clone(),
            Self::Nomad(allocation) => text_or_empty(&allocation["ID"]),
            Self::Jolokia(agent) => crate::jolokia::id(agent),
            Self::Cluster(_) => "cluster".to_owned(),
        }
    }

    /// Its version; `None` if it has none.
    pub(crate) fn version(&self) -> Option<Version> {
        match self {
            Self::Docker(container) => {
                text(&container["State"]["StartedAt"]).and_then(Version::of_time)
            }
            Self::Pod(object)
            | Self::Node(object)
            | Self::Namespace(object)
            | Self::Service(object)
            | Self::ReplicaSet(object)
            | Self::Job(object) => {
                text(&object["metadata"]["resourceVersion"]).and_then(Version::of_number)
            }
            Self::Nomad(allocation) => allocation["ModifyIndex"].as_u64().map(Version::of_index),
            Self::Leader(_) | Self::Jolokia(_) | Self::Cluster(_) => None,
        }
    }

    /// The second in which the object was created, as far as it is known; orders objects. Lists of Docker have no more.
    pub(crate) fn created(&self) -> Option<Version> {
        let created = match self {
            Self::Docker(container) => match &container["Created"] {
                Json::Number(seconds) => Some(Version(u128::from(seconds.as_u64()?) * NANOSECONDS)),
                created => text(created).and_then(Version::of_time),
            },
            Self::Pod(object) | Self::Node(object) | Self::Service(object) => {
                text(&object["metadata"]["creationTimestamp"]).and_then(Version::of_time)
            }
            Self::Nomad(allocation) => {
                let at = allocation["CreateTime"].as_u64();
                at.map(|nanoseconds| Version(u128::from(nanoseconds)))
            }
            _ => None,
        };
        created.map(|Version(nanoseconds)| Version(nanoseconds / NANOSECONDS))
    }

    /// Whether a container of Docker, or an allocation of Nomad, has ended or not begun; an item of Docker without a state
    /// is of a list of running containers.
    pub(crate) fn is_over(&self) -> bool {
        if let Self::Nomad(allocation) = self {
            return crate::nomad::is_over(allocation);
        }
        let Self::Docker(container) = self else { return false };
        match &container["State"] {
            Json::String(state) => matches!(state.as_str(), "created" | "exited" | "dead"),
            state => state["Running"] == false && state["Restarting"] != true,
        }
    }
}

const NANOSECONDS: u128 = 1_000_000_000;

/// Orders facts about one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version(u128);

impl Version {
    /// Of a `resourceVersion`, which is a number that grows.
    pub(crate) fn of_number(text: &str) -> Option<Self> {
        text.parse().ok().map(Self)
    }

    /// Of a `ModifyIndex`, which grows.
    fn of_index(index: u64) -> Self {
        Self(u128::from(index))
    }

    /// Of a time like `2026-01-02T03:04:05.678Z`, in nanoseconds since 1970. `None` for an earlier one: Docker writes
    /// the year 1 for a container that never ran.
    pub(crate) fn of_time(text: &str) -> Option<Self> {
        let text = text.strip_suffix('Z')?;
        let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
        let (date, time) = seconds.split_once('T')?;
        let numbers = |text: &str, separator: char| -> Option<Vec<u32>> {
            text.split(separator).map(|part| part.parse().ok()).collect()
        };
        let (date, time) = (numbers(date, '-')?, numbers(time, ':')?);
        let ([year, month, day], [hour, minute, second]) = (&date[..], &time[..]) else {
            return None;
        };
        if *year < 1970 || *year > 9999 || !(1..=12).contains(month) || !(1..=31).contains(day) {
            return None;
        }
        let days = days_since_1970(*year, *month, *day);
        let seconds =
            ((days * 24 + u128::from(*hour)) * 60 + u128::from(*minute)) * 60 + u128::from(*second);
        let digits: String = fraction.chars().chain("000000000".chars()).take(9).collect();
        Some(Self(seconds * NANOSECONDS + digits.parse::<u128>().ok()?))
    }

    /// Of either: what a report of an end gives.
    pub(crate) fn of(text: &str) -> Option<Self> {
        Self::of_number(text).or_else(|| Self::of_time(text))
    }
}

/// Days from the beginning of 1970 to a date of the Gregorian calendar.
fn days_since_1970(year: u32, month: u32, day: u32) -> u128 {
    let is_leap = |year: u32| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let of_years: u32 = (1970..year).map(|year| 365 + u32::from(is_leap(year))).sum();
    let lengths = [31, 28 + u32::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let of_months: u32 = lengths.iter().take(month as usize - 1).sum();
    u128::from(of_years + of_months + day - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn versions_are_ordered() {
        let times = [
            "2026-01-02T03:04:05Z",
            "2026-01-02T03:04:05.1Z",
            "2026-01-02T03:04:05.12Z",
            "2026-01-02T03:04:06Z",
            "2026-01-02T23:04:05Z",
            "2026-02-01T00:00:00Z",
            "2027-01-01T00:00:00Z",
        ];
        let versions: Vec<Version> = times.iter().map(|time| Version::of(time).unwrap()).collect();
        assert!(versions.windows(2).all(|pair| pair[0] < pair[1]), "{versions:?}");
        // `date -u -d TIME +%s`
        assert_eq!(Version::of("2026-01-01T00:00:20Z"), Version::of("1767225620000000000"));
        assert_eq!(
            Version::of("2024-02-29T23:59:59.000000001Z"),
            Version::of("1709251199000000001")
        );
        assert_eq!(Version::of("2024-03-01T00:00:00Z"), Version::of("1709251200000000000"));
        assert!(Version::of("9") < Version::of("10"));
        assert_eq!(Version::of("0001-01-01T00:00:00Z"), None);
        assert_eq!(Version::of("yesterday"), None);
    }

    #[test]
    fn a_container_that_ended_is_over() {
        let is_over = |state: Json| Fact::Docker(json!({ "Id": "a", "State": state })).is_over();
        assert!(is_over(json!("exited")));
        assert!(is_over(json!({"Running": false})));
        assert!(!is_over(json!("running")));
        assert!(!is_over(json!({"Running": true})));
        assert!(!is_over(json!({"Running": false, "Restarting": true})));
        assert!(!Fact::Docker(json!({"Id": "a"})).is_over());
    }
}
