//! Jolokia agents in JVMs: from answers to the multicast query of Jolokia Discovery to events.
//!
//! <https://jolokia.org/reference/html/manual/discovery.html>

use crate::event::Event;
use crate::fact::Fact;
use crate::json::{text, text_or_empty};
use crate::limits::JOLOKIA_AGENTS_MAX;
use crate::made::Fields;
use serde_json::{Map as Object, Value as Json, json};
use skidder_os::Monotonic;
use std::collections::BTreeMap;
use std::time::Duration;

/// Default of `interval`.
pub(crate) const INTERVAL: Duration = Duration::from_secs(10);
/// Default of `probe_timeout`.
pub(crate) const PROBE_TIMEOUT: Duration = Duration::from_secs(1);
/// Default of `grace_period`.
pub(crate) const GRACE_PERIOD: Duration = Duration::from_secs(30);

/// A provider `jolokia`.
#[derive(Debug)]
pub struct JolokiaProvider {
    /// `interfaces`: where agents are searched; never empty in a valid configuration.
    pub interfaces: Vec<JolokiaInterface>,
}

/// An item of `interfaces`: network interfaces, and how agents are searched there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JolokiaInterface {
    /// `name`: of one interface, the beginning of several with `*` behind it, or `any`.
    pub name: String,
    /// `interval`: the pause between two queries.
    pub interval: Duration,
    /// `probe_timeout`: how long answers to a query are received; at most as long as the interval counts.
    pub probe_timeout: Duration,
    /// `grace_period`: an agent that has not answered for longer is gone.
    pub grace_period: Duration,
}

impl JolokiaInterface {
    /// All interfaces, with the defaults.
    pub(crate) fn any() -> Self {
        Self {
            name: "any".to_owned(),
            interval: INTERVAL,
            probe_timeout: PROBE_TIMEOUT,
            grace_period: GRACE_PERIOD,
        }
    }

    /// Whether an interface of the system is meant.
    pub fn matches(&self, interface: &str) -> bool {
        match self.name.strip_suffix('*') {
            Some(start) => interface.starts_with(start.trim_end_matches('*')),
            None => self.name == "any" || self.name == interface,
        }
    }
}

/// The agents that have answered, and when.
#[derive(Debug, Default)]
pub struct JolokiaAgents {
    known: BTreeMap<String, LastAnswer>,
    /// The bound was reached, which is in the log.
    is_full: bool,
}

#[derive(Debug)]
struct LastAnswer {
    at: Monotonic,
    grace_period: Duration,
}

impl JolokiaAgents {
    /// Takes an answer. Returns the agent if it was not known; as long as it is, its first answer counts, as in
    /// Filebeat.
    ///
    /// # Errors
    ///
    /// With the reason, if it is no valid answer or beyond a bound; the answer is ignored.
    pub fn answered(
        &mut self,
        answer: &[u8],
        grace_period: Duration,
        now: Monotonic,
    ) -> Result<Option<Fact>, String> {
        let agent = read(answer)?;
        let id = id(&agent);
        if let Some(last) = self.known.get_mut(&id) {
            *last = LastAnswer { at: now, grace_period };
            return Ok(None);
        }
        if self.known.len() >= JOLOKIA_AGENTS_MAX {
            if !std::mem::replace(&mut self.is_full, true) {
                let bound = JOLOKIA_AGENTS_MAX;
                tracing::warn!(bound, "too many Jolokia agents: further ones get no inputs");
            }
            return Err(format!("there are {JOLOKIA_AGENTS_MAX} agents already"));
        }
        self.known.insert(id, LastAnswer { at: now, grace_period });
        Ok(Some(Fact::Jolokia(agent)))
    }

    /// Forgets the agents that have not answered for their grace period, and returns their ids.
    pub fn expire(&mut self, now: Monotonic) -> Vec<String> {
        let is_over = |last: &LastAnswer| now > last.at + last.grace_period;
        let over = self.known.iter().filter(|(_, last)| is_over(last));
        let gone: Vec<String> = over.map(|(id, _)| id.clone()).collect();
        for id in &gone {
            self.known.remove(id);
            self.is_full = false;
        }
        gone
    }
}

/// The fields of an answer. A field may be missing, but a known one may not have another type.
fn read(answer: &[u8]) -> Result<Json, String> {
    let answer: Object<String, Json> =
        serde_json::from_slice(answer).map_err(|error| format!("it is no JSON object: {error}"))?;
    let field = |name: &str, is_valid: fn(&Json) -> bool| match answer.get(name) {
        Some(value) if !is_valid(value) => Err(format!("`{name}` has another type")),
        value => Ok(value.cloned()),
    };
    let mut agent = json!({ "agent": {}, "server": {} });
    for (name, group, short) in [
        ("agent_id", "agent", "id"),
        ("agent_version", "agent", "version"),
        ("server_product", "server", "product"),
        ("server_vendor", "server", "vendor"),
        ("server_version", "server", "version"),
    ] {
        if let Some(value) = field(name, Json::is_string)? {
            agent[group][short] = value;
        }
    }
    if let Some(secured) = field("secured", Json::is_boolean)? {
        agent["secured"] = secured;
    }
    if text(&agent["agent"]["id"]).is_none() {
        return Err("it has no `agent_id`".to_owned());
    }
    // An agent that is starting does not know its URL yet.
    let Some(url) = field("url", Json::is_string)? else {
        return Err("it has no `url` yet".to_owned());
    };
    agent["url"] = url;
    Ok(agent)
}

/// The id of an agent, for messages too.
pub(crate) fn id(agent: &Json) -> String {
    text_or_empty(&agent["agent"]["id"])
}

/// The event of an agent. It has no labels, hence no hints.
pub(crate) fn events(agent: &Json) -> Vec<Event> {
    let id = id(agent);
    vec![Event {
        about: format!("Jolokia agent {id}"),
        facts: json!({ "id": id, "jolokia": agent }),
        hint_facts: json!({}),
        annotations: json!({}),
        container: String::new(),
        container_id: String::new(),
        namespace: String::new(),
        note: String::new(),
        is_around_containers: false,
        log_driver: String::new(),
        fields: Fields::of(&json!({ "jolokia": agent })),
    }]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Monotonic {
        Monotonic(Duration::from_millis(milliseconds))
    }

    fn answer(id: usize) -> Vec<u8> {
        format!(r#"{{"agent_id":"a{id}","url":"u"}}"#).into_bytes()
    }

    const GRACE: Duration = Duration::from_secs(1);

    #[test]
    fn an_agent_is_new_once_and_gone_after_the_grace_period_of_its_last_answer() {
        let mut agents = JolokiaAgents::default();
        let fact = agents.answered(&answer(1), GRACE, at(0)).unwrap().unwrap();
        assert_eq!(fact.id(), "a1");
        assert!(agents.answered(&answer(1), 2 * GRACE, at(500)).unwrap().is_none());
        assert!(agents.answered(&answer(2), GRACE, at(600)).unwrap().is_some());
        assert_eq!(agents.expire(at(1600)), Vec::<String>::new());
        assert_eq!(agents.expire(at(1601)), ["a2"]);
        assert_eq!(agents.expire(at(2500)), Vec::<String>::new());
        assert_eq!(agents.expire(at(2501)), ["a1"]);
        // It is new again.
        assert!(agents.answered(&answer(1), GRACE, at(2600)).unwrap().is_some());
    }

    #[test]
    fn agents_beyond_the_bound_are_ignored_until_others_are_gone() {
        let mut agents = JolokiaAgents::default();
        for number in 0..JOLOKIA_AGENTS_MAX {
            assert!(agents.answered(&answer(number), GRACE, at(0)).unwrap().is_some());
        }
        let next = answer(JOLOKIA_AGENTS_MAX);
        let refused = agents.answered(&next, GRACE, at(1)).unwrap_err();
        assert!(refused.contains("agents already"), "{refused}");
        // Those that are known go on.
        assert!(agents.answered(&answer(0), GRACE, at(900)).unwrap().is_none());
        assert_eq!(agents.expire(at(1500)).len(), JOLOKIA_AGENTS_MAX - 1);
        assert!(agents.answered(&next, GRACE, at(1500)).unwrap().is_some());
    }

    #[test]
    fn hostile_answers_are_refused_with_the_reason() {
        let deep = format!(r#"{{"agent_id":"a","url":"u","x":{}"#, "[".repeat(9_000));
        let table: [(&[u8], &str); 6] = [
            (b"\xff\xfe", "no JSON object"),
            (br#"{"agent_id":{"a":1},"url":"u"}"#, "`agent_id` has another type"),
            (br#"{"agent_id":"a","url":["u"]}"#, "`url` has another type"),
            (br#"{"agent_id":"a","secured":1,"url":"u"}"#, "`secured` has another type"),
            (br#"{"agent_id":"a"}"#, "no `url` yet"),
            (deep.as_bytes(), "no JSON object"),
        ];
        let mut agents = JolokiaAgents::default();
        for (bytes, expected) in table {
            let reason = agents.answered(bytes, GRACE, at(0)).unwrap_err();
            assert!(reason.contains(expected), "{reason}");
        }
        assert!(agents.known.is_empty());
    }

    #[test]
    fn a_name_means_one_interface_those_with_a_beginning_or_all() {
        let matches = |name: &str, interface: &str| {
            let name = name.to_owned();
            let (interval, probe_timeout, grace_period) = (GRACE, GRACE, GRACE);
            JolokiaInterface { name, interval, probe_timeout, grace_period }.matches(interface)
        };
        assert!(matches("any", "eth0") && matches("*", "lo"));
        assert!(matches("br*", "br0") && matches("br**", "br") && !matches("br*", "xbr0"));
        assert!(matches("eth0", "eth0") && !matches("eth0", "eth01") && !matches("eth", "eth0"));
        // Only at the end.
        assert!(!matches("e*0", "eth0"));
    }
}
