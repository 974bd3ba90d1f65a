//! Credentials of roles: where they come from, and when they are renewed.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::s3::{Act, BUCKET, FakeBucket, KEYS, REGION};
use common::{Fixture, check_report, context};
use skidder_config::{Problems, Settings};
use skidder_output_s3::{Config, S3};
use std::path::Path;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// The token of a pod or container.
const TOKEN: &str = "to/ken+of a pod";
/// Far away; and long ago.
const LATER: &str = "2200-01-01T00:00:00Z";
const BEFORE: &str = "2020-01-01T00:00:00Z";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Identity,
    Container,
    Instance,
}

/// Issues credentials like the token service, the agent of a container and the metadata service.
#[derive(Clone)]
struct Giver {
    address: String,
    /// Its requests, by method and path.
    requests: Arc<Mutex<Vec<String>>>,
    /// How it is with the credentials that it gives.
    given: Arc<Mutex<Given>>,
}

struct Given {
    secret: &'static str,
    until: &'static str,
}

impl Giver {
    async fn start(secret: &'static str, until: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let given = Arc::new(Mutex::new(Given { secret, until }));
        let giver = Self { address, requests: Arc::default(), given };
        let serving = giver.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let giver = serving.clone();
                tokio::spawn(async move { giver.serve(stream).await });
            }
        });
        giver
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    async fn serve(&self, stream: TcpStream) {
        let mut stream = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if stream.read_line(&mut head).await.unwrap_or(0) == 0 {
                return;
            }
        }
        let header = |name: &str| {
            let line = |line: &str| {
                let (found, value) = line.split_once(": ")?;
                found.eq_ignore_ascii_case(name).then(|| value.to_owned())
            };
            head.lines().find_map(line).unwrap_or_default()
        };
        let mut body = vec![0; header("content-length").parse().unwrap_or(0)];
        stream.read_exact(&mut body).await.unwrap();
        let what = head.lines().next().unwrap().trim_end_matches(" HTTP/1.1").to_owned();
        let body = String::from_utf8(body).unwrap();
        let answer = self.answer(&what, &body, header);
        self.requests.lock().unwrap().push(what);
        let (status, answer) = answer
            .map_or((403, "<Error><Code>Denied</Code></Error>".to_owned()), |answer| (200, answer));
        let length = answer.len();
        let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\n\r\n{answer}");
        stream.write_all(answer.as_bytes()).await.unwrap();
    }

    fn answer(&self, what: &str, body: &str, header: impl Fn(&str) -> String) -> Option<String> {
        let Given { secret, until } = *self.given.lock().unwrap();
        let id = KEYS.0;
        let json = format!(
            "{{\"Code\":\"Success\",\"AccessKeyId\":\"{id}\",\"SecretAccessKey\":\"{secret}\",\"Token\":\"session\",\"Expiration\":\"{until}\"}}"
        );
        let xml = format!(
            "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>{id}</AccessKeyId>\
             <SecretAccessKey>{secret}</SecretAccessKey><SessionToken>session</SessionToken><Expiration>{until}</Expiration>\
             </Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"
        );
        let roles = "GET /latest/meta-data/iam/security-credentials/";
        let is_known = header("x-aws-ec2-metadata-token") == "known";
        match what {
            "POST /" => {
                let form = "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fr\
                     &RoleSessionName=me&WebIdentityToken=to%2Fken%2Bof%20a%20pod";
                (body == form).then_some(xml)
            }
            "GET /creds" => (header("authorization") == TOKEN).then_some(json),
            "PUT /latest/api/token" => (header("x-aws-ec2-metadata-token-ttl-seconds") == "300")
                .then(|| "known".to_owned()),
            _ if what == roles => is_known.then(|| "a role\n".to_owned()),
            _ => (is_known && what == format!("{roles}a%20role")).then_some(json),
        }
    }
}

/// The output with the credentials of a role.
fn output(bucket: &FakeBucket, kind: Kind, giver: &str, folder: &Path) -> S3 {
    let token = folder.join("token");
    std::fs::write(&token, format!("{TOKEN}\n")).unwrap();
    let text = format!(
        "endpoint: 'http://{}'\nbucket: {BUCKET}\nregion: {REGION}\nbatch: {{max_events: 100}}\n\
         backoff: {{init: 1ms, max: 5ms}}",
        bucket.address
    );
    let settings = Settings::parse("x", &text).unwrap();
    let problems = Problems::new();
    let token = token.to_string_lossy().into_owned();
    let variables = match kind {
        Kind::Identity => vec![
            ("AWS_WEB_IDENTITY_TOKEN_FILE", token),
            ("AWS_ROLE_ARN", "arn:aws:iam::1:role/r".to_owned()),
            ("AWS_ROLE_SESSION_NAME", "me".to_owned()),
            ("AWS_ENDPOINT_URL_STS", format!("http://{giver}")),
        ],
        Kind::Container | Kind::Instance => vec![
            ("AWS_CONTAINER_CREDENTIALS_FULL_URI", format!("http://{giver}/creds")),
            ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", token),
        ],
    };
    let variable = |name: &str| {
        variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone())
    };
    let mut config = Config::read(&settings.root(&problems), &context(), variable).unwrap();
    assert_eq!(problems.to_string(), "");
    if kind == Kind::Instance {
        // By default it is used only for buckets of Amazon.
        let text = format!("bucket: {BUCKET}\nregion: {REGION}");
        let settings = Settings::parse("x", &text).unwrap();
        let instance = |name: &str| {
            (name == "AWS_EC2_METADATA_SERVICE_ENDPOINT").then(|| format!("http://{giver}"))
        };
        let amazon = Config::read(&settings.root(&problems), &context(), instance).unwrap();
        config.credentials = amazon.credentials;
    }
    S3::new(config, context()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_signs_with_what_is_given_out_until_it_runs_out() {
    let folder = tempfile::tempdir().unwrap();
    for (kind, questions) in [(Kind::Identity, 1), (Kind::Container, 1), (Kind::Instance, 3)] {
        for (until, objects) in [(LATER, 1), (BEFORE, 10)] {
            let bucket = FakeBucket::start([]).await;
            let giver = Giver::start(KEYS.1, until).await;
            let mut fixture = Fixture::new();
            fixture.name = format!("{kind:?} {until}");
            fixture.push(1000, 70);
            fixture.run(output(&bucket, kind, &giver.address, folder.path())).await;
            fixture.judge(&bucket.taken());
            assert_eq!(
                giver.requests().len(),
                questions * objects,
                "{} {:?}",
                fixture.name,
                giver.requests()
            );
            let state = bucket.state.lock().unwrap();
            let tokens =
                state.requests.iter().map(|request| request.header("x-amz-security-token"));
            assert!(tokens.into_iter().all(|token| token == "session"), "{}", fixture.name);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_server_does_not_know_any_more_is_asked_for_again() {
    let folder = tempfile::tempdir().unwrap();
    let bucket = FakeBucket::start([Act::Ok, Act::Error(400, "ExpiredToken")]).await;
    let giver = Giver::start(KEYS.1, LATER).await;
    let mut fixture = Fixture::new();
    fixture.push(1000, 70);
    fixture.run(output(&bucket, Kind::Container, &giver.address, folder.path())).await;
    fixture.judge(&bucket.taken());
    assert_eq!(giver.requests(), ["GET /creds"; 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_that_nobody_gives_out_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let bucket = FakeBucket::start([]).await;
    let giver = Giver::start(KEYS.1, LATER).await;
    let good = output(&bucket, Kind::Identity, &giver.address, folder.path());
    let (is_good, said) = check_report(async |report| good.check(report).await).await;
    assert!(is_good && said.contains("a role, by the token service"), "{said}");
    // It refuses this token.
    std::fs::write(folder.path().join("token"), "another").unwrap();
    let again = good.clone();
    for (output, expected) in [
        (again, "credentials... OK"),
        (
            output(&bucket, Kind::Container, "127.0.0.1:1", folder.path()),
            "the agent of the container",
        ),
        (output(&bucket, Kind::Instance, "127.0.0.1:1", folder.path()), "does not answer"),
        (output(&bucket, Kind::Instance, &bucket.address, folder.path()), "answered 403"),
    ] {
        let (_, said) = check_report(async |report| output.check(report).await).await;
        assert!(said.contains(expected), "{said}");
    }
}
