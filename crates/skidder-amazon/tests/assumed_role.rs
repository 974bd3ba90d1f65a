//! Another role, taken at a scripted token service that checks signatures.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::{Act, KEYS, Scripted, keys};
use skidder_amazon::{Assume, Provider, Source};
use skidder_net::{HostUrl, ProxyChoice};
use skidder_os::{Clock, RealFs, Timestamp};
use skidder_testkit::SimClock;
use std::sync::Arc;
use std::time::Duration;

/// A role of the token service at an address.
fn role(address: &str, by: Source) -> Assume {
    Assume {
        by,
        role: "arn:aws:iam::123456789012:role/logs".to_owned(),
        external_id: Some("a b".to_owned()),
        duration: Duration::from_mins(15),
        window: Duration::from_mins(5),
        session: "me".to_owned(),
        service: HostUrl::parse(&format!("http://{address}"), "", "", |_| 80).unwrap(),
        region: common::REGION.to_owned(),
    }
}

/// When the story begins: 2026-01-02T03:00:00Z.
const BEGIN: Timestamp = Timestamp(1_767_322_800_000_000_000);

/// Credentials of a role that end at this minute of the story.
fn taken(id: &str, minute: u32) -> Act {
    Act::xml(
        200,
        &format!(
            "<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>{id}</AccessKeyId><SecretAccessKey>s\
             </SecretAccessKey><SessionToken>t</SessionToken><Expiration>2026-01-02T03:{minute:02}:00Z</Expiration>\
             </Credentials></AssumeRoleResult></AssumeRoleResponse>"
        ),
    )
}

#[tokio::test]
async fn a_role_is_taken_and_renewed_before_its_end() {
    let denied = "<ErrorResponse><Error><Code>AccessDenied</Code><Message>not you</Message></Error></ErrorResponse>";
    let denied = || Act::xml(403, denied);
    let script = [
        taken("one", 15),
        denied(),
        taken("two", 25),
        taken("three", 14),
        Act::xml(200, "<html/>"),
        denied(),
    ];
    let server = Scripted::start("sts", script).await;
    let time = Arc::new(SimClock::starting_at(BEGIN));
    let clock: Arc<dyn Clock> = Arc::clone(&time) as _;
    let provider = |source| Provider::new(source, ProxyChoice::Direct, Arc::new(RealFs)).unwrap();
    let assume = role(&server.address, keys(KEYS.0, KEYS.1));
    let role = provider(Source::Assumed(Box::new(assume.clone())));
    let is_now = async |id: &str| assert_eq!(role.get(&clock).await.unwrap().id, id);
    for _ in 0..2 {
        let credentials = role.get(&clock).await.unwrap();
        assert_eq!((credentials.id.as_str(), credentials.session.unwrap().reveal()), ("one", "t"));
        time.advance(Duration::from_secs(599));
    }
    let sent = server.one();
    let form = "Action=AssumeRole&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A123456789012%3Arole%2Flogs\
                &RoleSessionName=me&DurationSeconds=900&ExternalId=a%20b";
    assert_eq!(std::str::from_utf8(&sent.body).unwrap(), form);
    // Five minutes before their end they are renewed. They hold until then, and the next try follows ten seconds later.
    time.set_wall(Timestamp(BEGIN.0 + 601_000_000_000));
    is_now("one").await;
    is_now("one").await;
    assert_eq!(server.requests().len(), 1);
    time.advance(Duration::from_secs(10));
    is_now("two").await;
    // The server of a service does not take them any more. The next ones end soon, which is no reason to ask each time.
    role.forget().await;
    is_now("three").await;
    is_now("three").await;
    assert_eq!(server.requests().len(), 3);
    // What ended is not used.
    time.set_wall(Timestamp(BEGIN.0 + 840_000_000_000));
    let error = role.get(&clock).await.unwrap_err().to_string();
    assert!(error.contains("not as STS does: there are no credentials"), "{error}");
    let error = role.get(&clock).await.unwrap_err().to_string();
    let expected = "cannot take the role `arn:aws:iam::123456789012:role/logs`: the server answered 403 `AccessDenied`: not you";
    assert!(error.starts_with(expected) && error.ends_with("`external_id`"), "{error}");
    let wrong = Assume { by: keys(KEYS.0, "another"), ..assume };
    let wrong = provider(Source::Assumed(Box::new(wrong)));
    let error = wrong.get(&clock).await.unwrap_err().to_string();
    assert!(error.contains("SignatureDoesNotMatch"), "{error}");
}
