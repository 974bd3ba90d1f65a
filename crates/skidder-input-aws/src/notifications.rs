//! Messages of a queue that name new objects.
//!
//! S3 writes them itself
//! (<https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html>), or EventBridge does
//! (<https://docs.aws.amazon.com/AmazonS3/latest/userguide/ev-events.html>); either may come through a topic of SNS, which
//! puts it as a text into a message of its own
//! (<https://docs.aws.amazon.com/sns/latest/dg/sns-message-and-json-formats.html>).

use serde_json::Value;
use skidder_net::{excerpt, percent_decoded};

/// Messages inside of messages: a rule of EventBridge sends to a topic, which sends to a topic.
const DEPTH_MAX: u32 = 3;
/// Bytes of a message that an error shows.
const SHOWN_BYTES_MAX: usize = 200;

/// An object that was put.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Noted {
    /// The name of its bucket.
    pub(crate) bucket: String,
    /// The ARN of the bucket.
    pub(crate) arn: String,
    /// Its name, decoded.
    pub(crate) key: String,
    /// The name that is meant if there is no object under the first one: some servers encode names, and others do not.
    pub(crate) other_key: Option<String>,
    /// In a bucket with versions.
    pub(crate) version: Option<String>,
    /// As `eu-central-1`; empty if the message does not name it.
    pub(crate) region: String,
    /// `cloud.provider`; empty for that of the settings.
    pub(crate) provider: String,
}

/// An object as a script names it. Texts that are not known are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedObject {
    /// The region of its bucket, as `eu-central-1`.
    pub region: String,
    /// `cloud.provider` of its events.
    pub provider: String,
    /// The name of its bucket.
    pub bucket: String,
    /// The ARN of the bucket.
    pub arn: String,
    /// Its name, as it is.
    pub key: String,
}

/// What reads messages instead of this crate: `sqs.notification_parsing_script`.
pub trait ParseNotifications: Send + Sync {
    /// The objects that a message names; it may take its time.
    ///
    /// # Errors
    ///
    /// The message cannot be read: the text is for people.
    fn parse(&self, message: &str) -> Result<Vec<NamedObject>, String>;

    /// Stops what runs: the input ends.
    fn stop(&self);
}

/// A message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Notification {
    /// Objects that were put, in the order of the message.
    pub(crate) objects: Vec<Noted>,
    /// The names of other events, which say nothing about new objects: `ObjectRemoved:Delete`, `s3:TestEvent`.
    pub(crate) others: Vec<String>,
}

/// A message that names no event of S3: it would never become one. The text is the end of a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct NotificationError(String);

impl Notification {
    /// The objects that a script names.
    pub(crate) fn of_script(named: Vec<NamedObject>) -> Result<Self, NotificationError> {
        let mut found = Self::default();
        for object in named {
            let NamedObject { region, provider, bucket, arn: given, key } = object;
            if bucket.is_empty() || key.is_empty() {
                let what =
                    "the script named an object without `SetS3BucketName` or `SetS3ObjectKey`";
                return Err(NotificationError(what.to_owned()));
            }
            let arn = arn(&given, &bucket);
            found.objects.push(Noted { bucket, arn, key, region, provider, ..Noted::default() });
        }
        Ok(found)
    }

    /// Reads the body of a message.
    pub(crate) fn parse(body: &str) -> Result<Self, NotificationError> {
        parse(body, DEPTH_MAX)
    }
}

fn parse(body: &str, depth: u32) -> Result<Notification, NotificationError> {
    let shown = || excerpt(body.as_bytes(), SHOWN_BYTES_MAX);
    let value: Value = serde_json::from_str(body)
        .map_err(|error| NotificationError(format!("no JSON ({error}): `{}`", shown())))?;
    let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
    if let Some(records) = value.get("Records").and_then(Value::as_array) {
        let mut found = Notification::default();
        for record in records {
            found.add_record(record)?;
        }
        return Ok(found);
    }
    if text("Event") == "s3:TestEvent" {
        // S3 sends it when notifications are configured.
        return Ok(Notification { others: vec!["s3:TestEvent".to_owned()], ..Default::default() });
    }
    if value.get("detail-type").is_some() {
        let mut found = Notification::default();
        found.add_event(&value)?;
        return Ok(found);
    }
    if let Some(inner) = value.get("Message").and_then(Value::as_str)
        && value.get("TopicArn").is_some()
    {
        if depth == 0 {
            return Err(NotificationError("a message inside of too many messages".to_owned()));
        }
        return parse(inner, depth - 1);
    }
    let what = "JSON, but no event of S3: there is neither `Records` nor `detail-type`, nor a `Message` of a topic";
    Err(NotificationError(format!("{what}: `{}`", shown())))
}

impl Notification {
    /// A record of S3's own form.
    fn add_record(&mut self, record: &Value) -> Result<(), NotificationError> {
        let text = |path: &str| text_at(record, path);
        let (source, event) = (text("/eventSource"), text("/eventName"));
        // Compatible servers have another word before the colon (`ceph:s3`), and `s3:` before the event.
        let is_s3 = source.rsplit(':').next() == Some("s3");
        let name = event.strip_prefix("s3:").unwrap_or(event);
        if !is_s3 || !name.starts_with("ObjectCreated:") {
            self.others.push(if is_s3 { name.to_owned() } else { format!("{source} {name}") });
            return Ok(());
        }
        let written = text("/s3/object/key");
        let bucket = text("/s3/bucket/name");
        if bucket.is_empty() || written.is_empty() {
            let shown = excerpt(record.to_string().as_bytes(), SHOWN_BYTES_MAX);
            let what = "an event that does not name its object: `s3.bucket.name` or `s3.object.key` is missing";
            return Err(NotificationError(format!("{what}: `{shown}`")));
        }
        let key = percent_decoded(written, b' ').unwrap_or_else(|| written.to_owned());
        self.objects.push(Noted {
            arn: arn(text("/s3/bucket/arn"), bucket),
            bucket: bucket.to_owned(),
            other_key: (key != written).then(|| written.to_owned()),
            key,
            version: version(text("/s3/object/versionId")),
            region: text("/awsRegion").to_owned(),
            provider: String::new(),
        });
        Ok(())
    }

    /// An event of EventBridge, which does not encode names.
    fn add_event(&mut self, event: &Value) -> Result<(), NotificationError> {
        let text = |path: &str| text_at(event, path);
        let (source, name) = (text("/source"), text("/detail-type"));
        if source != "aws.s3" || name != "Object Created" {
            self.others.push(format!("{source} {name}"));
            return Ok(());
        }
        let (bucket, key) = (text("/detail/bucket/name"), text("/detail/object/key"));
        if bucket.is_empty() || key.is_empty() {
            let shown = excerpt(event.to_string().as_bytes(), SHOWN_BYTES_MAX);
            let what = "an event that does not name its object: `detail.bucket.name` or `detail.object.key` is missing";
            return Err(NotificationError(format!("{what}: `{shown}`")));
        }
        self.objects.push(Noted {
            arn: arn(text("/resources/0"), bucket),
            bucket: bucket.to_owned(),
            key: key.to_owned(),
            other_key: percent_decoded(key, b' ').filter(|other| other != key),
            version: version(text("/detail/object/version-id")),
            region: text("/region").to_owned(),
            provider: String::new(),
        });
        Ok(())
    }
}

fn text_at<'a>(value: &'a Value, path: &str) -> &'a str {
    value.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

/// The ARN of a bucket, if the message does not have it.
fn arn(given: &str, bucket: &str) -> String {
    if given.is_empty() { format!("arn:aws:s3:::{bucket}") } else { given.to_owned() }
}

/// `null` is what objects have that were put before their bucket had versions: it can be asked for.
fn version(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn record(event: &str, key: &str) -> Value {
        json!({
            "eventVersion": "2.1", "eventSource": "aws:s3", "awsRegion": "eu-west-1",
            "eventTime": "2026-01-02T03:04:05.678Z", "eventName": event,
            "s3": {
                "s3SchemaVersion": "1.0", "configurationId": "logs",
                "bucket": { "name": "logs-1", "arn": "arn:aws:s3:::logs-1" },
                "object": {
                    "key": key, "size": 7, "eTag": "0123456789abcdef", "versionId": "v1",
                    "sequencer": "0055AED6DCD90281E5",
                },
            },
        })
    }

    fn noted(key: &str, other_key: Option<&str>) -> Noted {
        Noted {
            bucket: "logs-1".to_owned(),
            arn: "arn:aws:s3:::logs-1".to_owned(),
            key: key.to_owned(),
            other_key: other_key.map(str::to_owned),
            version: Some("v1".to_owned()),
            region: "eu-west-1".to_owned(),
            provider: String::new(),
        }
    }

    fn bridge(kind: &str, key: &str) -> Value {
        json!({
            "version": "0", "id": "17793124-05d4-b198-2fde-7ededc63b103", "detail-type": kind,
            "source": "aws.s3", "account": "111122223333", "time": "2026-01-02T03:04:05Z",
            "region": "eu-west-1", "resources": ["arn:aws:s3:::logs-1"],
            "detail": {
                "version": "0", "bucket": { "name": "logs-1" }, "reason": "PutObject",
                "object": {
                    "key": key, "size": 7, "etag": "0123456789abcdef", "version-id": "v1",
                    "sequencer": "0055AED6DCD90281E5",
                },
            },
        })
    }

    fn topic(inner: &Value) -> Value {
        json!({
            "Type": "Notification", "MessageId": "1", "TopicArn": "arn:aws:sns:eu-west-1:1:logs",
            "Subject": "Amazon S3 Notification", "Message": inner.to_string(),
            "Timestamp": "2026-01-02T03:04:06.000Z", "SignatureVersion": "1",
        })
    }

    fn found(message: &Value) -> Notification {
        Notification::parse(&message.to_string()).unwrap()
    }

    #[test]
    fn objects_are_named_in_each_form_and_through_topics() {
        let records = json!({ "Records": [
            record("ObjectCreated:Put", "a%2Fb+c%3D1.gz"),
            record("ObjectCreated:CompleteMultipartUpload", "plain"),
        ]});
        let objects = vec![noted("a/b c=1.gz", Some("a%2Fb+c%3D1.gz")), noted("plain", None)];
        let expected = Notification { objects, others: Vec::new() };
        for message in [records.clone(), topic(&records), topic(&topic(&records))] {
            assert_eq!(found(&message), expected);
        }
        let event = bridge("Object Created", "a b+c.gz");
        let objects = vec![noted("a b+c.gz", Some("a b c.gz"))];
        let expected = Notification { objects, others: Vec::new() };
        for message in [event.clone(), topic(&event)] {
            assert_eq!(found(&message), expected);
        }
    }

    #[test]
    fn what_is_missing_is_made_up_for() {
        let mut one = record("s3:ObjectCreated:Copy", "a%zz");
        one["eventSource"] = "ceph:s3".into();
        one["awsRegion"] = Value::Null;
        one["s3"]["bucket"]["arn"] = "".into();
        one["s3"]["object"] = json!({ "key": "a%zz" });
        let object = found(&json!({ "Records": [one] })).objects.remove(0);
        let expected = Noted {
            bucket: "logs-1".to_owned(),
            arn: "arn:aws:s3:::logs-1".to_owned(),
            key: "a%zz".to_owned(),
            ..Noted::default()
        };
        assert_eq!(object, expected);
    }

    #[test]
    fn other_events_are_named_and_no_error() {
        let test = json!({
            "Service": "Amazon S3", "Event": "s3:TestEvent", "Time": "2026-01-02T03:04:05.678Z",
            "Bucket": "logs-1", "RequestId": "1", "HostId": "2",
        });
        let mut foreign = record("ObjectCreated:Put", "x");
        foreign["eventSource"] = "aws:ec2".into();
        let table = [
            (test.clone(), vec!["s3:TestEvent"]),
            (topic(&test), vec!["s3:TestEvent"]),
            (json!({ "Records": [] }), vec![]),
            (
                json!({ "Records": [record("ObjectRemoved:Delete", "x")] }),
                vec!["ObjectRemoved:Delete"],
            ),
            (json!({ "Records": [foreign] }), vec!["aws:ec2 ObjectCreated:Put"]),
            (bridge("Object Deleted", "x"), vec!["aws.s3 Object Deleted"]),
        ];
        for (message, others) in table {
            let expected = Notification {
                objects: Vec::new(),
                others: others.into_iter().map(str::to_owned).collect(),
            };
            assert_eq!(found(&message), expected, "{message}");
        }
    }

    #[test]
    fn what_is_none_is_an_error_that_shows_it() {
        let nameless =
            json!({ "Records": [{ "eventSource": "aws:s3", "eventName": "ObjectCreated:Put" }] });
        let unnamed = json!({ "source": "aws.s3", "detail-type": "Object Created", "detail": {} });
        let deep = topic(&topic(&topic(&topic(&json!({ "Records": [] })))));
        let table = [
            ("hello", "no JSON (expected value at line 1 column 1): `hello`"),
            ("", "no JSON"),
            ("[1]", "neither `Records` nor `detail-type`"),
            ("{\"Records\": 1}", "neither `Records`"),
            ("{\"Message\": \"x\"}", "neither `Records`"),
            (&*nameless.to_string(), "`s3.object.key` is missing"),
            (&*unnamed.to_string(), "`detail.object.key` is missing"),
            (&*deep.to_string(), "too many messages"),
            (&*topic(&json!("x")).to_string(), "neither `Records`"),
        ];
        for (body, expected) in table {
            let error = Notification::parse(body).unwrap_err().to_string();
            assert!(error.contains(expected), "{body}: {error}");
        }
        let long = format!("{{\"a\": \"{}\"}}", "x".repeat(5000));
        assert!(Notification::parse(&long).unwrap_err().to_string().len() < 400);
    }

    #[test]
    fn what_a_script_names_is_taken_as_it_is() {
        let named = NamedObject {
            bucket: "logs".to_owned(),
            key: "a%20b".to_owned(),
            provider: "own".to_owned(),
            ..NamedObject::default()
        };
        let object = Noted {
            bucket: "logs".to_owned(),
            arn: "arn:aws:s3:::logs".to_owned(),
            key: "a%20b".to_owned(),
            provider: "own".to_owned(),
            ..Noted::default()
        };
        let expected = Notification { objects: vec![object], others: Vec::new() };
        assert_eq!(Notification::of_script(vec![named.clone()]), Ok(expected));
        let nameless = NamedObject { key: String::new(), ..named };
        let error = Notification::of_script(vec![nameless]).unwrap_err().to_string();
        assert!(error.contains("SetS3ObjectKey"), "{error}");
    }
}
