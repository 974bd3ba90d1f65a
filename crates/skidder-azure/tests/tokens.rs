//! What requests show, against scripted servers: signatures, tokens that are kept and renewed, and refusals.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::{Act, Scripted, act, client, key, refused, service, url};
use skidder_azure::{
    Condition, Container, Credential, List, ManagedIdentity, Part, Put, TokenSource,
};
use skidder_config::Secret;

const EMPTY: &str =
    "<EnumerationResults><Blobs></Blobs><NextMarker></NextMarker></EnumerationResults>";

fn page() -> Act {
    act(200, &[], EMPTY)
}

fn token(text: &str, seconds: i64) -> Act {
    act(200, &[], &format!("{{\"access_token\":\"{text}\",\"expires_in\":{seconds}}}"))
}

fn of_client(issuer: &Scripted) -> Credential {
    Credential::Token(Box::new(TokenSource::Client {
        authority: url(&format!("http://{}", issuer.address)),
        tenant: "tenant".to_owned(),
        id: "id".to_owned(),
        secret: Secret::new("a secret"),
    }))
}

fn container(server: &Scripted, credential: Credential) -> Container {
    client(&service(url(&format!("http://{}/acc", server.address)), "logs", credential), None)
}

#[tokio::test]
async fn a_token_is_kept_renewed_before_it_expires_and_forgotten_when_it_is_refused() {
    // The first ends within the margin, and is kept for some seconds all the same.
    let issuer =
        Scripted::start([token("short", 60), token("long", 3600), token("new", 3600)]).await;
    let gone = act(401, &[("x-ms-error-code", "InvalidAuthenticationInfo")], "");
    let server = Scripted::start([page(), page(), gone.clone(), page(), page(), gone]).await;
    let mut container = container(&server, of_client(&issuer));
    for _ in 0..2 {
        container.list(List::default()).await.unwrap();
        assert_eq!(server.one().header("authorization"), "Bearer short");
    }
    let sent = issuer.one();
    assert_eq!((&*sent.method, sent.path().as_str()), ("POST", "/tenant/oauth2/v2.0/token"));
    assert!(String::from_utf8(sent.body).unwrap().contains("client_secret=a%20secret"));
    let error = refused(container.list(List::default()).await.unwrap_err());
    assert!(error.is_about_credentials() && error.to_string().contains("the clock"), "{error}");
    server.one();
    for _ in 0..2 {
        container.list(List::default()).await.unwrap();
        assert_eq!(server.one().header("authorization"), "Bearer long");
    }
    assert_eq!(issuer.requests().len(), 1);
}

#[tokio::test]
async fn an_issuer_that_refuses_is_named_with_the_remedy() {
    let body = "{\"error\":\"invalid_client\",\"error_description\":\"AADSTS7000215: Invalid client secret.\\r\\nTrace ID: x\"}";
    let issuer =
        Scripted::start([act(401, &[], body), act(200, &[], "<html>"), token("good", 3600)]).await;
    let server = Scripted::start([page()]).await;
    let mut container = container(&server, of_client(&issuer));
    let error = container.list(List::default()).await.unwrap_err().to_string();
    let expected = "answered 401: invalid_client: AADSTS7000215: Invalid client secret.; see the client's id and secret";
    assert!(error.contains(expected) && !error.contains("a secret"), "{error}");
    let error = container.list(List::default()).await.unwrap_err().to_string();
    assert!(error.contains("answered without a token"), "{error}");
    container.list(List::default()).await.unwrap();
}

#[tokio::test]
async fn a_managed_identity_is_asked_of_the_host() {
    let host = Scripted::start([token("managed", 3600)]).await;
    let server = Scripted::start([page()]).await;
    let address = format!("http://{}", host.address);
    let variable =
        |name: &str| (name == "AZURE_POD_IDENTITY_AUTHORITY_HOST").then(|| address.clone());
    let identity = ManagedIdentity::read(Some("user".to_owned()), variable).unwrap();
    let credential = Credential::Token(Box::new(TokenSource::Managed(identity)));
    container(&server, credential).list(List::default()).await.unwrap();
    assert_eq!(server.one().header("authorization"), "Bearer managed");
    let sent = host.one();
    assert_eq!(sent.header("metadata"), "true");
    assert_eq!(sent.path(), "/metadata/identity/oauth2/token");
    assert!(sent.query().contains("client_id=user"), "{}", sent.query());
}

#[tokio::test]
async fn a_shared_access_signature_is_no_header_and_in_no_message() {
    let denied = "<Error><Code>AuthenticationFailed</Code><Message>Wrong: sig=x%2Fyzz%3D\nTime:1</Message></Error>";
    let echo = act(502, &[], "cannot get /acc/logs?sv=1&sig=x%2Fyzz%3D");
    let server = Scripted::start([page(), act(403, &[], denied), echo]).await;
    let credential = Credential::Sas(Secret::new("sv=1&sig=x%2Fyzz%3D"));
    let mut container = container(&server, credential);
    let list = List { prefix: "a b", ..List::default() };
    container.list(list).await.unwrap();
    let sent = server.one();
    assert_eq!(sent.query(), "restype=container&comp=list&prefix=a%20b&sv=1&sig=x%2Fyzz%3D");
    assert_eq!(sent.header("authorization"), "");
    assert!(!format!("{container:?}").contains("sig="), "{container:?}");
    let error = container.list(list).await.unwrap_err().to_string();
    assert!(error.contains("see the account's name") && !error.contains("zz"), "{error}");
    let error = container.list(list).await.unwrap_err().to_string();
    assert!(error.contains("502: cannot get") && !error.contains("zz"), "{error}");
}

#[tokio::test]
async fn a_blob_that_is_not_what_was_asked_for_is_an_error() {
    let tag = ("etag", "\"0x1\"");
    let from = Part { from: 5, ..Part::default() };
    let table = [
        (from, act(200, &[tag], "0123456789"), "another part"),
        (from, act(206, &[tag, ("content-range", "bytes 4-9/10")], "456789"), "another part"),
        (
            from,
            act(206, &[tag, ("content-range", "bytes 5-9/10")], "567890"),
            "more bytes than its size",
        ),
        (Part::default(), act(200, &[], "0123"), "no `etag`"),
        (Part { if_match: Some("0x2"), ..Part::default() }, act(200, &[tag], "0"), "another blob"),
    ];
    for (part, answer, expected) in table {
        let server = Scripted::start([answer.clone(), act(200, &[tag], "good")]).await;
        let mut container = container(&server, key());
        let error = match container.get("a", part).await {
            Ok(mut got) => loop {
                match got.content.piece(100).await {
                    Ok(piece) => assert!(piece.is_some(), "{answer:?} has an end"),
                    Err(error) => break error,
                }
            },
            Err(error) => error,
        };
        assert!(error.to_string().contains(expected), "{answer:?}: {error}");
        // What follows is not disturbed.
        let mut got = container.get("a", Part::default()).await.unwrap();
        assert_eq!(got.content.piece(100).await.unwrap().unwrap(), "good", "{answer:?}");
    }
}

#[tokio::test]
async fn an_empty_blob_is_put_with_its_length() {
    let server = Scripted::start([act(201, &[("etag", "\"0x1\"")], ""), act(201, &[], "")]).await;
    let mut container = container(&server, key());
    let put =
        Put { metadata: &[("ownerId", "me")], condition: Condition::IfMissing, ..Put::default() };
    assert_eq!(container.put("a/b", put).await.unwrap().etag, "0x1");
    let sent = server.one();
    assert_eq!((&*sent.method, sent.target.as_str()), ("PUT", "/acc/logs/a/b"));
    let headers = ["content-length", "if-none-match", "x-ms-meta-ownerid", "x-ms-blob-type"];
    assert_eq!(headers.map(|name| sent.header(name)), ["0", "*", "me", "BlockBlob"]);
    assert!(sent.header("authorization").starts_with("SharedKey devstoreaccount1:"));
    let error = container.put("a/b", Put::default()).await.unwrap_err().to_string();
    assert!(error.contains("there is no `etag`"), "{error}");
}
