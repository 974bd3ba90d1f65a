//! The table against itself.

use super::*;
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn every_drop_reason_is_in_the_ledgers_of_both_outputs() {
    for reason in DropReason::ALL {
        let stats = format!("skidder.ledger.dropped.{}", reason.name());
        let metric = metrics().find(|metric| metric.stats == Some(&*stats)).unwrap();
        let labels = [(LABEL_OUTCOME, "dropped"), (LABEL_REASON, reason.name())];
        assert_eq!(metric.series.unwrap().labels, labels);
    }
    let dropped = metrics()
        .filter(|metric| metric.stats.is_some_and(|name| name.contains("ledger.dropped.")))
        .count();
    assert_eq!(dropped, DropReason::ALL.len());
}

#[test]
fn outcomes_are_those_of_the_list() {
    let found: BTreeSet<_> = metrics()
        .filter_map(|metric| metric.series)
        .flat_map(|series| series.labels)
        .filter(|(label, _)| *label == LABEL_OUTCOME)
        .map(|(_, outcome)| *outcome)
        .collect();
    assert_eq!(found, BTreeSet::from(OUTCOMES));
}

#[test]
fn no_name_is_used_twice_and_none_lies_inside_another() {
    let mut names: Vec<_> = metrics().filter_map(|metric| metric.stats).collect();
    names.sort_unstable();
    for pair in names.windows(2) {
        assert_ne!(pair[0], pair[1]);
        assert!(!pair[1].starts_with(&format!("{}.", pair[0])), "{} is no group", pair[0]);
    }
    let series: Vec<_> = metrics().filter_map(|metric| metric.series).collect();
    for (index, one) in series.iter().enumerate() {
        assert!(!series[..index].contains(one), "{one:?} twice");
    }
}

#[test]
fn a_family_stands_together_and_agrees_with_itself() {
    let mut families: BTreeMap<&str, (usize, Kind, &str, Vec<&str>)> = BTreeMap::new();
    let with_series = metrics().filter_map(|metric| Some((metric, metric.series?)));
    for (index, (metric, series)) in with_series.enumerate() {
        let labels: Vec<_> = series.labels.iter().map(|(label, _)| *label).collect();
        let new = (index, metric.kind, metric.help, labels.clone());
        let family = families.entry(series.name).or_insert(new);
        assert!(index - family.0 <= 1, "{} is torn apart", series.name);
        family.0 = index;
        assert_eq!((family.1, family.2, &family.3), (metric.kind, metric.help, &labels));
    }
}

#[test]
fn prometheus_names_follow_its_conventions() {
    for metric in metrics() {
        let Some(series) = metric.series else { continue };
        let standard = series.name.starts_with("process_");
        assert!(standard || series.name.starts_with("skidder_"), "{}", series.name);
        assert_eq!(
            series.name.ends_with("_total"),
            metric.kind == Kind::Counter,
            "{}",
            series.name
        );
        assert!(series.name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'));
        assert!(metric.help.ends_with('.') && metric.kind != Kind::Text, "{}", series.name);
        assert!(!metric.help.contains(['\n', '\\']));
    }
}
