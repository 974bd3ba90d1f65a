//! `output.elasticsearch.kerberos` at a real KDC (`tests/servers/kerberos.sh`): a server takes requests only with the
//! ticket of the right user, a new one for each. One test, as there is one configuration of Kerberos in a process.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::server::FakeServer;
use common::{Fixture, context};
use skidder_config::Secret;
use skidder_kerberos::{Acceptor, Auth, Settings};
use skidder_output_elasticsearch::{Config, Elasticsearch, parse_host};
use skidder_testkit::servers::Server;
use std::sync::Arc;
use std::time::Duration;

fn config(server: &FakeServer, kerberos: Settings) -> Config {
    let port = server.address.rsplit_once(':').unwrap().1;
    let host = parse_host(&format!("http://localhost:{port}"), "http", "").unwrap();
    Config {
        kerberos: Some(kerberos),
        bulk_max_size: 100,
        timeout: Duration::from_secs(5),
        backoff_init: Duration::from_millis(1),
        backoff_max: Duration::from_millis(50),
        ..Config::new(vec![host])
    }
}

async fn check(config: Config) -> (bool, String) {
    let output = Elasticsearch::new(config, context()).unwrap();
    let mut printed = String::new();
    let good = output.check(&mut |line: &str| printed.push_str(line)).await;
    (good, printed)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_request_shows_a_ticket_of_its_own() {
    let kdc = Server::kerberos().unwrap();
    let keytab = Auth::Keytab(kdc.folder().join("shipper.keytab"));
    let settings = Settings {
        auth: keytab,
        config: kdc.folder().join("krb5.conf"),
        username: "shipper".to_owned(),
        realm: "EXAMPLE.TEST".to_owned(),
        service: None,
    };
    let server = FakeServer::start([]).await;
    let mut fixture = Fixture::new();
    fixture.push(1000, 100);
    let output = Elasticsearch::new(config(&server, settings.clone()), context()).unwrap();
    // The output has configured the library for the realm, from which the server has its keys.
    let acceptor = Acceptor::new().unwrap();
    server.state.lock().unwrap().allows = Some(Arc::new(move |sender| {
        acceptor.accept(sender).is_ok_and(|user| user == "shipper@EXAMPLE.TEST")
    }));
    fixture.run(output).await;
    fixture.judge(&server.taken());
    assert!(server.bulks().len() >= 10, "{}", server.bulks().len());

    let (good, printed) = check(config(&server, settings.clone())).await;
    assert!(good, "{printed}");
    let wrong = Settings { auth: Auth::Password(Secret::new("guess")), ..settings };
    let (good, printed) = check(config(&server, wrong)).await;
    assert!(!good && printed.contains("does not let `shipper@EXAMPLE.TEST` in"), "{printed}");
}
