//! `output.elasticsearch.kerberos` with Elasticsearch itself, whose realm of Kerberos is a real KDC. One test, as there is
//! one configuration of Kerberos in a process.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::{Fixture, context, number};
use serde_json::json;
use skidder_config::Secret;
use skidder_event::Format;
use skidder_kerberos::{Auth, Settings};
use skidder_output_elasticsearch::{Config, Elasticsearch, Pem, TlsSettings, parse_host};
use skidder_testkit::servers::{Server, unique_name};
use std::collections::BTreeMap;
use std::time::Duration;

const LINES: usize = 2000;

/// The user `shipper` of the realm, and the certificate of the server.
fn config(server: &Server, realm: &Server, auth: Auth, index: &str) -> Config {
    Config {
        index: Format::parse(index).unwrap(),
        bulk_max_size: 200,
        workers: 2,
        backoff_init: Duration::from_millis(10),
        kerberos: Some(Settings {
            auth,
            config: realm.folder().join("krb5.conf"),
            username: "shipper".to_owned(),
            realm: "EXAMPLE.TEST".to_owned(),
            service: None,
        }),
        tls: TlsSettings {
            certificate_authorities: vec![Pem::File(server.certificate("ca.crt").unwrap())],
            ..TlsSettings::default()
        },
        ..Config::new(vec![parse_host(server.url(), "https", "").unwrap()])
    }
}

async fn check(config: Config) -> (bool, String) {
    let output = Elasticsearch::new(config, context()).unwrap();
    common::check_report(async |report| output.check(report).await).await
}

/// How often each line is in an index.
fn found(server: &Server, index: &str) -> BTreeMap<usize, usize> {
    let mut found = BTreeMap::new();
    for document in server.search(index, &json!({ "match_all": {} })).unwrap() {
        *found.entry(number(document["message"].as_str().unwrap())).or_default() += 1;
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn elasticsearch_knows_its_user_by_keys_and_by_password() {
    let realm = Server::kerberos().unwrap();
    let server = Server::own_elasticsearch_of(&realm).unwrap();
    let keytab = || Auth::Keytab(realm.folder().join("shipper.keytab"));
    let password = |text: &str| Auth::Password(Secret::new(text));

    // It is let in, and may do nothing yet: the error is about the role, not the ticket.
    let (good, printed) = check(config(&server, &realm, keytab(), "none")).await;
    assert!(!good && printed.contains("credentials: shipper@EXAMPLE.TEST\n"), "{printed}");
    assert!(
        printed.contains("give the role of the user, or the API key, `create_doc`"),
        "{printed}"
    );

    let rights = json!({
        "cluster": ["monitor"],
        "indices": [{ "names": ["*"], "privileges": ["create_doc", "auto_configure"] }]
    });
    server.put("/_security/role/shipper", &rights).unwrap();
    let rule = json!({ "field": { "username": "shipper@EXAMPLE.TEST" } });
    let mapping = json!({ "roles": ["shipper"], "enabled": true, "rules": rule });
    server.put("/_security/role_mapping/shipper", &mapping).unwrap();
    for auth in [keytab(), password("secret")] {
        let index = unique_name("kerberos");
        let config = config(&server, &realm, auth, &index);
        let (good, printed) = check(config.clone()).await;
        assert!(good, "{printed}");
        let mut fixture = Fixture::new();
        fixture.push(LINES, 200);
        fixture.run(Elasticsearch::new(config, context()).unwrap()).await;
        fixture.judge(&found(&server, &index));
        assert!(fixture.dead_letters().is_empty());
        assert_eq!(fixture.feed.metrics.write_errors.get(), 0);
    }

    let (good, printed) = check(config(&server, &realm, password("guess"), "none")).await;
    assert!(!good && printed.contains("does not let `shipper@EXAMPLE.TEST` in"), "{printed}");
}
