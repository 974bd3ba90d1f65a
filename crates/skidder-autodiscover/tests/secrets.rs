//! Templates with a secret of Kubernetes beside hints, before and after the secret is known.

mod common;

use common::{at, autodiscover, config, pod};
use serde_json::{Value as Json, json};
use skidder_autodiscover::{Autodiscover, Fact, Made, SecretAnswer, WantedSecret};
use std::collections::BTreeMap;
use std::sync::Arc;

const BESIDE_HINTS: &str = "
filebeat.autodiscover.providers:
- type: kubernetes
  hints.enabled: true
  hints.default_config: {type: filestream, id: hints, paths: ['/h/${data.kubernetes.container.id}.log']}
  templates:
  - condition.equals.kubernetes.labels.app: web
    config:
    - type: filestream
      id: template
      paths: ['/t/${data.kubernetes.container.id}.log']
      fields.token: '${kubernetes.shop.login.token}'
";

fn ids(made: &[Arc<Made>]) -> Vec<Json> {
    made.iter().map(|made| config(made)["id"].clone()).collect()
}

fn login() -> WantedSecret {
    WantedSecret { provider: 0, namespace: "shop".to_owned(), name: "login".to_owned() }
}

fn with(key: &str) -> SecretAnswer {
    SecretAnswer::Values(BTreeMap::from([(key.to_owned(), "hush".to_owned())]))
}

/// One that has seen a pod, and not yet the secret.
fn waiting(text: &str) -> Autodiscover {
    let mut all = autodiscover(text);
    all.seen(0, Fact::Pod(pod("u", 1, json!({}))), at(1));
    let made = all.decide(at(1));
    assert!(made.is_empty(), "{:?}", ids(&made));
    assert_eq!(all.wanted_secrets(), [login()]);
    all
}

#[test]
fn hints_are_not_used_while_a_template_waits_for_a_secret() {
    let mut all = waiting(BESIDE_HINTS);
    let explained = all.explain().to_string();
    for expected in [
        "`fields.token` waits for the secret `login` of the namespace `shop`",
        "hints are not used while a template waits for a secret",
    ] {
        assert!(explained.contains(expected), "{explained}");
    }
    assert_eq!(all.failures().len(), 1);
    all.secret(login(), with("token"));
    assert_eq!(ids(&all.decide(at(2))), ["template"]);
    assert!(all.failures().is_empty());
}

#[test]
fn a_template_that_fails_with_its_secret_does_not_give_way_to_hints() {
    let mut all = waiting(BESIDE_HINTS);
    all.secret(login(), with("token"));
    let made = all.decide(at(2));
    all.refuse(&made[0].key, "a mistake".to_owned());
    assert!(all.decide(at(3)).is_empty());
}

#[test]
fn hints_are_used_when_the_secret_is_not_to_be_had() {
    for (answer, reason) in [
        (SecretAnswer::Missing, "there is no secret `login`"),
        (SecretAnswer::Refused, "skidder has no right to read the secret `login`"),
        (with("other"), "the secret `login` of the namespace `shop` has no key `token`"),
    ] {
        let mut all = waiting(BESIDE_HINTS);
        all.secret(login(), answer);
        assert_eq!(ids(&all.decide(at(2))), ["hints"]);
        let explained = all.explain().to_string();
        assert!(explained.contains(reason), "{explained}");
    }
}

#[test]
fn a_default_does_not_stand_for_a_secret_that_is_looked_up() {
    let text = BESIDE_HINTS.replace(
        "${kubernetes.shop.login.token}",
        "${kubernetes.${data.kubernetes.namespace}.login.token:none}",
    );
    let mut all = waiting(&text);
    let explained = all.explain().to_string();
    let expected = "`${kubernetes.shop.login.token}` waits for the secret `login`";
    assert!(explained.contains(expected), "{explained}");
    all.secret(login(), with("token"));
    assert_eq!(config(&all.decide(at(2))[0])["fields"]["token"], "hush");
    all.secret(login(), SecretAnswer::Missing);
    assert_eq!(config(&all.decide(at(3))[0])["fields"]["token"], "none");
}

#[test]
fn an_object_that_waits_for_a_secret_is_remembered() {
    let mut all = waiting(BESIDE_HINTS);
    assert_eq!(all.to_remember().len(), 1);
    // The next run: the pod is gone.
    let mut next = autodiscover(BESIDE_HINTS);
    assert!(next.remember(&all.to_remember()[0]));
    next.listed(0, &[], at(1));
    assert!(next.decide(at(1)).is_empty());
    assert_eq!(next.to_remember().len(), 1);
    next.secret(login(), with("token"));
    assert_eq!(ids(&next.decide(at(2))), ["template"]);
    all.secret(login(), with("token"));
    assert_eq!(ids(&all.decide(at(2))), ["template"]);
}

#[test]
fn a_hint_with_a_default_waits_for_its_secret_too() {
    let text = "
filebeat.autodiscover.providers:
- type: kubernetes
  hints.enabled: true
";
    let mut all = autodiscover(text);
    let hint = json!({ "co.elastic.logs/pipeline": "${kubernetes.shop.login.token:none}" });
    all.seen(0, Fact::Pod(pod("u", 1, hint)), at(1));
    assert!(all.decide(at(1)).is_empty());
    let explained = all.explain().to_string();
    assert!(explained.contains("waits for the secret `login`"), "{explained}");
    all.secret(login(), with("token"));
    assert_eq!(config(&all.decide(at(2))[0])["pipeline"], "hush");
}

#[test]
fn a_secret_wins_over_the_default_of_its_variable_which_holds_without_it() {
    let text = BESIDE_HINTS.replace("login.token}", "login.token:none}");
    let token = |made: &[Arc<Made>]| config(&made[0])["fields"]["token"].clone();
    let mut all = waiting(&text);
    all.secret(login(), with("token"));
    let made = all.decide(at(2));
    assert_eq!((ids(&made), token(&made)), (vec![json!("template")], json!("hush")));
    for answer in [SecretAnswer::Missing, with("another")] {
        let mut all = waiting(&text);
        all.secret(login(), answer);
        assert_eq!(token(&all.decide(at(2))), "none");
    }
}
