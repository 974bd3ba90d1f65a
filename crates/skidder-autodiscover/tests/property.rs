//! The inputs are a function of the objects that are there and of the configuration, whatever the order, the
//! repetition and the lateness of the reports.

mod common;

use common::{at, autodiscover, container, pod};
use proptest::prelude::*;
use serde_json::json;
use skidder_autodiscover::{Autodiscover, Fact};
use std::collections::{BTreeMap, BTreeSet};

const SETTINGS: &str = "
filebeat.autodiscover.providers:
- type: docker
  cleanup_timeout: 0s
  hints.enabled: true
  templates:
  - condition.equals.docker.container.labels.kind: '1'
    config:
    - {type: filestream, id: 't-${data.docker.container.labels.group}', paths: ['/c/${data.docker.container.id}']}
- type: kubernetes
  cleanup_timeout: 0s
  hints.enabled: true
  hints.default_config: {type: container, paths: ['/p/${data.container.id}'], tags: ['${data.kubernetes.node.uid:none}']}
";

/// Something that happens to an object: it is there at a version, or it ended at one.
#[derive(Clone, Copy, Debug)]
struct Change {
    provider: usize,
    object: u8,
    version: u64,
    ends: bool,
    kind: u8,
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let one = (0..2_usize, 0..4_u8, any::<bool>(), 0..3_u8);
    proptest::collection::vec(one, 1..25).prop_map(|list| {
        let change = |(number, (provider, object, ends, kind)): (usize, (usize, u8, bool, u8))| {
            Change { provider, object, version: 1 + number as u64, ends, kind }
        };
        list.into_iter().enumerate().map(change).collect()
    })
}

fn report(all: &mut Autodiscover, change: &Change) {
    let Change { provider, object, version, ends, kind } = *change;
    let id = format!("o{object}");
    if ends {
        let end = if provider == 0 {
            format!("2026-01-01T00:00:{version:02}.5Z")
        } else {
            version.to_string()
        };
        all.gone_at(provider, &id, &end, at(0));
        return;
    }
    let fact = if provider == 0 {
        let labels = json!({ "kind": kind.to_string(), "group": (object / 2).to_string() });
        let mut container = container(&id, version, labels);
        container["Created"] = format!("2025-01-01T00:00:0{object}Z").into();
        Fact::Docker(container)
    } else {
        Fact::Pod(pod(&id, version, json!({ "co.elastic.logs/pipeline": format!("p{kind}") })))
    };
    all.seen(provider, fact, at(0));
}

fn keys(all: &mut Autodiscover) -> Vec<String> {
    all.decide(at(0)).iter().map(|made| made.key.clone()).collect()
}

/// Only the newest change of each object, in order.
fn newest(changes: &[Change]) -> Vec<Change> {
    let mut last = BTreeMap::new();
    for change in changes {
        last.insert((change.provider, change.object), *change);
    }
    last.into_values().collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_inputs_do_not_depend_on_order_repetition_and_lateness(
        changes in changes(),
        order in proptest::collection::vec(any::<u16>(), 60),
        decides in proptest::collection::vec(any::<bool>(), 60),
    ) {
        let mut expected = autodiscover(SETTINGS);
        for change in newest(&changes) {
            report(&mut expected, &change);
        }
        let expected = keys(&mut expected);
        // Everything twice, shuffled.
        let mut shuffled: Vec<(u16, &Change)> =
            changes.iter().chain(&changes).zip(order).map(|(change, order)| (order, change)).collect();
        shuffled.sort_by_key(|(order, _)| *order);
        let mut all = autodiscover(SETTINGS);
        for ((_, change), decides) in shuffled.into_iter().zip(decides) {
            report(&mut all, change);
            if decides {
                all.decide(at(0));
            }
        }
        prop_assert_eq!(keys(&mut all), expected);
    }

    #[test]
    fn no_id_and_no_key_runs_twice(changes in changes()) {
        let mut all = autodiscover(SETTINGS);
        for change in &changes {
            report(&mut all, change);
            let made = all.decide(at(0));
            let keys: BTreeSet<&str> = made.iter().map(|made| made.key.as_str()).collect();
            prop_assert_eq!(keys.len(), made.len());
            let ids: Vec<String> = made.iter().filter_map(|made| Some(common::config(made)["id"].as_str()?.to_owned())).collect();
            prop_assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
        }
    }
}
