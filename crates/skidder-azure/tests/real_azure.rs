//! A client of Azure Blob Storage against Azurite, Microsoft's emulator, which checks signatures.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use bytes::Bytes;
use common::{ACCOUNT, Scripted, act, client, key, refused, sas, service, token, url, wrong_key};
use skidder_azure::{
    Condition, Container, Credential, Failure, List, Part, Put, Service, TokenSource,
};
use skidder_config::{Problems, Secret, Settings};
use skidder_net::{HTTPS, read_https};
use skidder_os::RealFs;
use skidder_testkit::servers::Server;
use skidder_tls::TlsClient;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const NAMES: [&str; 6] = ["a/1.gz", "a/2 ä+b&c=%25?", "a/3~(x)'!*", "b/1", "b/\u{1f600}", "c"];

fn of_server(server: &Server, container: &str, credential: Credential) -> Service {
    service(url(&format!("http://127.0.0.1:{}/{ACCOUNT}", server.port())), container, credential)
}

async fn put(container: &mut Container, name: &str, body: &[u8]) -> String {
    let body = [Bytes::copy_from_slice(body)];
    let put = Put {
        body: &body,
        content_type: "text/x-test",
        content_encoding: "x-test",
        metadata: &[("team", "logs")],
        condition: Condition::Always,
    };
    container.put(name, put).await.unwrap().etag
}

async fn all(container: &mut Container, list: List<'_>) -> Vec<skidder_azure::Listed> {
    let (mut found, mut marker) = (Vec::new(), None);
    loop {
        let page = List { marker: marker.as_deref(), ..list };
        let page = container.list(page).await.unwrap();
        assert!(page.blobs.len() <= usize::from(list.blobs_max.unwrap_or(5000)));
        found.extend(page.blobs);
        marker = page.next;
        if marker.is_none() {
            return found;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn blobs_are_listed_read_and_changed_under_conditions() {
    let server = Server::own_azurite(false).unwrap();
    let mut logs = client(&of_server(&server, "logs", key()), None);
    let error = refused(logs.list(List::default()).await.unwrap_err());
    assert_eq!((error.status, &*error.code, error.is_missing()), (404, "ContainerNotFound", false));
    assert!(logs.create().await.unwrap());
    assert!(!logs.create().await.unwrap(), "it is there");
    for name in NAMES {
        put(&mut logs, name, name.as_bytes()).await;
    }
    // Page by page, each blob once.
    let found =
        all(&mut logs, List { blobs_max: Some(2), metadata: true, ..List::default() }).await;
    assert_eq!(found.iter().map(|blob| &*blob.name).collect::<Vec<_>>(), NAMES);
    let within = all(&mut logs, List { prefix: "a/", ..List::default() }).await;
    assert_eq!(within.iter().map(|blob| &*blob.name).collect::<Vec<_>>(), NAMES[..3]);
    assert!(within[0].metadata.is_empty());
    for (name, listed) in NAMES.iter().zip(&found) {
        assert_eq!(listed.size, name.len() as u64);
        assert_eq!((&*listed.content_type, &*listed.kind), ("text/x-test", "BlockBlob"));
        assert_eq!(listed.metadata["team"], "logs");
        let head = logs.head(name).await.unwrap();
        assert_eq!(
            (&head.etag, head.size, head.modified),
            (&listed.etag, listed.size, listed.modified)
        );
        assert_eq!((&*head.content_type, &*head.content_encoding), ("text/x-test", "x-test"));
        assert_eq!(head.metadata, BTreeMap::from([("team".to_owned(), "logs".to_owned())]));
        // At the end itself Azurite answers with nothing, where Azure refuses.
        let behind = Part { from: listed.size + 1, ..Part::default() };
        assert!(refused(logs.get(name, behind).await.unwrap_err()).is_behind_the_end());
        let part = Part { from: 1, until: None, if_match: Some(&head.etag) };
        if name.len() == 1 {
            continue;
        }
        let mut got = logs.get(name, part).await.unwrap();
        let piece = got.content.piece(100).await.unwrap().unwrap();
        assert_eq!(piece, name.as_bytes()[1..]);
        assert!(got.content.piece(100).await.unwrap().is_none());
    }
    assert!(refused(logs.get("none", Part::default()).await.unwrap_err()).is_missing());
    assert!(refused(logs.head("none").await.unwrap_err()).is_missing());
    logs.delete("c").await.unwrap();
    assert!(refused(logs.delete("c").await.unwrap_err()).is_missing());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn a_large_blob_is_read_in_parts_of_one_content() {
    let server = Server::own_azurite(false).unwrap();
    let mut logs = client(&of_server(&server, "logs", key()), None);
    logs.create().await.unwrap();
    let large: Vec<u8> = (0..20_000_000_u32).map(|at| (at % 251) as u8).collect();
    let old = put(&mut logs, "large", &large).await;
    let part = Part { from: 1_000_000, until: Some(19_000_000), if_match: Some(&old) };
    let mut got = logs.get("large", part).await.unwrap();
    assert_eq!((got.head.size, got.content.left()), (20_000_000, 18_000_000));
    let mut at = 1_000_000;
    while let Some(piece) = got.content.piece(65_536).await.unwrap() {
        assert!(piece == large[at..at + piece.len()]);
        at += piece.len();
    }
    assert_eq!(at, 19_000_000);
    // Dropped in the middle: the next request has another connection.
    let mut got = logs.get("large", Part::default()).await.unwrap();
    got.content.piece(1000).await.unwrap().unwrap();
    drop(got);
    put(&mut logs, "large", b"changed").await;
    let part = Part { if_match: Some(&old), ..Part::default() };
    assert!(refused(logs.get("large", part).await.unwrap_err()).is_changed());
}

/// As the processes that share the partitions of an event hub do it.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn empty_blobs_with_metadata_and_leases_are_what_processes_agree_by() {
    let server = Server::own_azurite(false).unwrap();
    let mut shared = client(&of_server(&server, "checkpoints", key()), None);
    shared.create().await.unwrap();
    let name = "ns/hub/$default/ownership/0";
    let first =
        Put { metadata: &[("ownerid", "a")], condition: Condition::IfMissing, ..Put::default() };
    let made = shared.put(name, first).await.unwrap();
    assert!(made.modified.is_some());
    assert!(refused(shared.put(name, first).await.unwrap_err()).is_changed(), "it is there");
    let taken = shared
        .set_metadata(
            name,
            &[("ownerid", "b"), ("offset", "7")],
            Condition::IfMatch(&made.etag),
            None,
        )
        .await
        .unwrap();
    let late = shared.set_metadata(name, &[("ownerid", "c")], Condition::IfMatch(&made.etag), None);
    assert!(refused(late.await.unwrap_err()).is_changed());
    let (metadata, found) = shared.metadata(name).await.unwrap();
    assert_eq!((metadata["ownerid"].as_str(), metadata["offset"].as_str()), ("b", "7"));
    assert_eq!(found.etag, taken.etag);
    let listed = all(&mut shared, List { prefix: "ns/", metadata: true, ..List::default() }).await;
    assert_eq!((listed[0].size, listed[0].metadata["ownerid"].as_str()), (0, "b"));

    let minute = Duration::from_mins(1);
    let lease = shared.acquire_lease(name, minute, None).await.unwrap();
    assert!(refused(shared.acquire_lease(name, minute, None).await.unwrap_err()).is_leased());
    let without = shared.set_metadata(name, &[], Condition::Always, None).await;
    assert!(refused(without.unwrap_err()).is_leased());
    shared.set_metadata(name, &[("x", "1")], Condition::Always, Some(&lease.id)).await.unwrap();
    assert_eq!(shared.renew_lease(name, &lease).await.unwrap(), lease);
    let other = "6ba7b810-9dad-11d1-80b4-00c04fd430c8";
    let changed = shared.change_lease(name, &lease, other).await.unwrap();
    assert_eq!(changed.id, other);
    assert!(refused(shared.renew_lease(name, &lease).await.unwrap_err()).is_leased());
    shared.release_lease(name, &changed).await.unwrap();
    let again = shared.acquire_lease(name, Duration::ZERO, Some(other)).await.unwrap();
    assert_eq!(again.id, other);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn keys_and_shared_access_signatures_are_checked() {
    let server = Server::own_azurite(false).unwrap();
    client(&of_server(&server, "logs", key()), None).create().await.unwrap();
    let mut wrong = client(&of_server(&server, "logs", wrong_key()), None);
    let error = refused(wrong.list(List::default()).await.unwrap_err());
    assert_eq!(error.status, 403, "{error}");
    assert!(error.to_string().contains("; see "), "{error}");

    let all_rights = Credential::Sas(sas("rwdlac"));
    let mut shared = client(&of_server(&server, "logs", all_rights), None);
    for name in NAMES {
        put(&mut shared, name, b"text").await;
    }
    assert_eq!(all(&mut shared, List { blobs_max: Some(4), ..List::default() }).await.len(), 6);
    let mut got = shared.get(NAMES[1], Part { from: 1, ..Part::default() }).await.unwrap();
    assert_eq!(got.content.piece(100).await.unwrap().unwrap(), "ext");
    let mut reader = client(&of_server(&server, "logs", Credential::Sas(sas("rl"))), None);
    assert_eq!(all(&mut reader, List::default()).await.len(), 6);
    assert_eq!(refused(reader.delete(NAMES[0]).await.unwrap_err()).status, 403);
    let broken = Credential::Sas(Secret::new(format!("{}x", sas("rl").reveal())));
    let mut broken = client(&of_server(&server, "logs", broken), None);
    assert_eq!(refused(broken.list(List::default()).await.unwrap_err()).status, 403);
}

fn trusting(server: &Server) -> Arc<TlsClient> {
    let authority = server.certificate("ca.crt").unwrap();
    let text = format!("{{ssl.certificate_authorities: ['{}']}}", authority.display());
    let yaml = Settings::parse("x", &text).unwrap();
    let problems = Problems::new();
    let section = yaml.root(&problems);
    section.declared_by(&HTTPS);
    let settings = read_https(&section);
    section.finish();
    TlsClient::new(&settings, Arc::new(RealFs)).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn a_token_is_taken_over_tls() {
    let server = Server::own_azurite(true).unwrap();
    let tls = Some(trusting(&server));
    let answer = |token: &str| {
        act(200, &[], &format!("{{\"access_token\":\"{token}\",\"expires_in\":3600}}"))
    };
    let issuer = Scripted::start([answer(&token(3600)), answer(&token(-30)), answer("x")]).await;
    let credential = || {
        Credential::Token(Box::new(TokenSource::Client {
            authority: url(&format!("http://{}", issuer.address)),
            tenant: "tenant".to_owned(),
            id: "id".to_owned(),
            secret: Secret::new("secret"),
        }))
    };
    let place = url(&format!("https://localhost:{}/{ACCOUNT}", server.port()));
    let mut logs = client(&service(place.clone(), "logs", credential()), tls.clone());
    logs.create().await.unwrap();
    put(&mut logs, "a", b"text").await;
    assert_eq!(all(&mut logs, List::default()).await.len(), 1);
    // One that has expired, and one that is none.
    for _ in 0..2 {
        let mut logs = client(&service(place.clone(), "logs", credential()), tls.clone());
        let failure = logs.list(List::default()).await.unwrap_err();
        assert!(
            matches!(&failure, Failure::Refused(refused) if refused.status >= 400),
            "{failure}"
        );
    }
}
