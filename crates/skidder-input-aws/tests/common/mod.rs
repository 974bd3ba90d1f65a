//! versitygw and moto with objects and messages, and the input with one output that takes everything.
#![allow(dead_code, reason = "not every test program needs all of it")]

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::Method;
use serde_json::{Value, json};
use skidder_amazon::{
    Ask, Bucket, List, Provider, Queue, QueueUrl, Service, Source, Target, bucket_url,
};
use skidder_aws::Credentials;
use skidder_config::{Problems, Secret, Settings};
use skidder_input::Input;
use skidder_input_aws::{AWS_S3_INPUT, AWS_S3_OBJECT, AwsS3, Selector};
use skidder_net::{HostUrl, ProxyChoice};
use skidder_os::{Fs, RealFs, SystemClock};
use skidder_read::FilestreamSettings;
use skidder_read::scan::ScanSettings;
use skidder_testkit::servers::Server;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

const USER: (&str, &str) = ("test", "secret of tests");

/// A server of a test's own.
pub(crate) struct Cloud {
    pub(crate) server: Server,
    region: &'static str,
}

impl Cloud {
    /// A server of S3 with the buckets `logs` and `closed`, which checks signatures.
    pub(crate) fn versitygw() -> Self {
        Self { server: Server::own_s3(false).unwrap(), region: "eu-test-1" }
    }

    /// A look-alike of Amazon with the buckets `logs` and `kept`.
    pub(crate) async fn moto() -> Self {
        let cloud = Self { server: Server::own_moto().unwrap(), region: "eu-central-1" };
        for bucket in ["logs", "kept"] {
            let place = format!(
                "<CreateBucketConfiguration><LocationConstraint>{}</LocationConstraint></CreateBucketConfiguration>",
                cloud.region
            );
            cloud.send(Method::PUT, bucket, None, Bytes::from(place)).await;
        }
        cloud
    }

    fn service(&self, name: &'static str, bucket: Option<&str>) -> Service {
        let address = format!("http://127.0.0.1:{}", self.server.port());
        let url = HostUrl::parse(&address, "", "", |_| 80).unwrap();
        let direct = ProxyChoice::Direct;
        let url = match bucket {
            Some(bucket) => bucket_url(url, bucket, true),
            None => url,
        };
        let target = Arc::new(Target::at(url, &direct));
        let secret = Secret::new(USER.1);
        let keys = Credentials { id: USER.0.to_owned(), secret, session: None };
        let provider = Provider::new(Source::Fixed(keys), direct, Arc::new(RealFs)).unwrap();
        Service {
            name,
            region: self.region.to_owned(),
            target,
            tls: None,
            provider: Arc::new(provider),
            timeout: Duration::from_secs(20),
        }
    }

    fn client(&self, name: &'static str, bucket: Option<&str>) -> skidder_amazon::Client {
        self.service(name, bucket).client(Arc::new(()), Arc::new(SystemClock::new()))
    }

    async fn send(&self, method: Method, bucket: &str, key: Option<&str>, body: Bytes) {
        let body = [body];
        let mut ask = Ask::empty(method, key);
        ask.headers = vec![("content-type", "text/plain"), ("x-amz-meta-team", "a")];
        ask.body = &body;
        self.client("s3", Some(bucket)).ask(ask).await.unwrap();
    }

    /// Puts an object into the bucket `logs`.
    pub(crate) async fn put(&self, key: &str, content: impl Into<Bytes>) {
        self.send(Method::PUT, "logs", Some(key), content.into()).await;
    }

    /// Deletes one.
    pub(crate) async fn delete(&self, key: &str) {
        self.send(Method::DELETE, "logs", Some(key), Bytes::new()).await;
    }

    /// The names of all objects of a bucket.
    pub(crate) async fn keys(&self, bucket: &str) -> Vec<String> {
        let mut client = Bucket::new(self.client("s3", Some(bucket)));
        let page = client.list(List::default()).await.unwrap();
        page.objects.into_iter().map(|object| object.key).collect()
    }

    /// Calls an operation of SQS.
    pub(crate) fn sqs(&self, operation: &str, body: &Value) -> Value {
        let login = format!(
            "AWS4-HMAC-SHA256 Credential=test/20260101/{}/sqs/aws4_request, SignedHeaders=host, Signature=x",
            self.region
        );
        let target = format!("AmazonSQS.{operation}");
        let headers = [
            ("authorization", login.as_str()),
            ("x-amz-target", target.as_str()),
            ("content-type", "application/x-amz-json-1.0"),
        ];
        let (status, answer) = self.server.text("POST", "/", &headers, &body.to_string()).unwrap();
        assert_eq!(status, 200, "{answer}");
        serde_json::from_str(&answer).unwrap_or_default()
    }

    /// A new queue; returns its URL.
    pub(crate) fn queue(&self, name: &str, attributes: Value) -> String {
        let made = self.sqs("CreateQueue", &json!({ "QueueName": name, "Attributes": attributes }));
        made["QueueUrl"].as_str().unwrap().to_owned()
    }

    /// Sends a message.
    pub(crate) fn tell(&self, queue: &str, body: &Value) {
        let body = body.as_str().map_or_else(|| body.to_string(), str::to_owned);
        self.sqs("SendMessage", &json!({ "QueueUrl": queue, "MessageBody": body }));
    }

    /// Messages of a queue that can be received, and those that were and are neither deleted nor back.
    pub(crate) async fn count(&self, queue: &str) -> (u64, u64) {
        let url = QueueUrl::parse(queue).unwrap();
        let mut client = Queue::new(self.client("sqs", None), &url);
        let attributes = client.attributes().await.unwrap();
        (attributes.messages, attributes.hidden)
    }

    /// Waits until a queue has so many messages.
    pub(crate) async fn await_count(&self, queue: &str, expected: (u64, u64)) {
        for _ in 0..300 {
            if self.count(queue).await == expected {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("{:?} in {queue}, expected {expected:?}", self.count(queue).await);
    }

    /// The input of these settings.
    pub(crate) fn input(&self, settings: &str) -> Box<dyn Input> {
        Box::new(self.aws_s3(settings))
    }

    /// The same, not boxed yet.
    pub(crate) fn aws_s3(&self, settings: &str) -> AwsS3 {
        let (id, secret) = USER;
        let text = format!(
            "{{endpoint: 'http://127.0.0.1:{}', region: {}, access_key_id: {id}, secret_access_key: {secret}, \
             {settings}}}",
            self.server.port(),
            self.region
        );
        let problems = Problems::new();
        let yaml = Settings::parse("x", &text).expect("YAML");
        let section = yaml.root(&problems);
        section.declared_by(&AWS_S3_INPUT);
        section.declared_by(&AWS_S3_OBJECT);
        let fs: Arc<dyn Fs> = Arc::new(RealFs);
        let reading = FilestreamSettings::new("", ScanSettings::default());
        let selector = Selector::read(&section, None, reading);
        let read = skidder_input_aws::read(&section, &fs, vec![selector], |_| None);
        section.finish();
        read.unwrap_or_else(|| panic!("{problems}"))
    }
}

/// News of an object of the bucket `logs`, as S3 sends it.
pub(crate) fn news(key: &str) -> Value {
    json!({ "Records": [{
        "eventSource": "aws:s3", "awsRegion": "eu-central-1", "eventName": "ObjectCreated:Put",
        "s3": { "bucket": { "name": "logs", "arn": "arn:aws:s3:::logs" }, "object": { "key": key } },
    }]})
}

pub(crate) fn lines(name: &str, count: usize) -> String {
    (0..count).fold(String::new(), |mut text, number| {
        writeln!(text, "{name} {number:06} of {count}").unwrap();
        text
    })
}

pub(crate) fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}
