//! Queues of SQS: receives messages, deletes them, and hides them for longer
//! (<https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_Operations.html>).

use crate::client::{Client, Failure};
use crate::json::JsonClient;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use skidder_net::{HostUrl, usual_port};
use skidder_os::Timestamp;
use std::collections::HashMap;
use std::time::Duration;

/// Most messages of one request, or entries of a batch.
pub const BATCH_MAX: usize = 10;
/// Longest time that the server holds a request back until there are messages.
pub const WAIT_MAX: Duration = Duration::from_secs(20);
/// Longest time that a message is hidden, counted from when it was received.
pub const VISIBILITY_MAX: Duration = Duration::from_hours(12);

/// The URL of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueUrl {
    /// As requests name the queue.
    pub text: String,
    /// The server: the URL without its path.
    pub server: HostUrl,
    /// The region in the name of the server, if there is one.
    pub region: Option<String>,
}

/// A client of one queue.
#[derive(Debug)]
pub struct Queue {
    json: JsonClient,
    url: String,
}

/// What to receive.
#[derive(Clone, Copy, Debug)]
pub struct Receive {
    /// Most messages, 1 to [`BATCH_MAX`].
    pub messages_max: usize,
    /// Time that the server may wait for the first one, in whole seconds, at most [`WAIT_MAX`]. It is added to the time limit
    /// of the request.
    pub wait: Duration,
    /// Time that the messages are hidden from others, in whole seconds, at most [`VISIBILITY_MAX`]; nothing for the queue's.
    pub visibility: Option<Duration>,
}

/// A message. It is hidden for some time, and comes again unless it is deleted until then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Of the message; the same when it comes again.
    pub id: String,
    /// Names this receipt of it, for deleting and hiding.
    pub receipt: String,
    /// The text.
    pub body: String,
    /// How often it was received about, with this time; 0 if the server does not say it.
    pub receive_count: u32,
    /// When it was sent, in milliseconds; nothing if the server does not say it.
    pub sent: Option<Timestamp>,
}

/// What the server says of a queue. Numbers are approximate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueAttributes {
    /// Messages that can be received.
    pub messages: u64,
    /// Messages that were received and are neither deleted nor back.
    pub hidden: u64,
    /// Time that received messages are hidden, unless a request says otherwise.
    pub visibility: Duration,
    /// Receipts after which the server moves a message to the queue for dead letters; nothing without such a queue.
    pub receives_max: Option<u32>,
}

/// Why one entry of a batch failed, while others may have succeeded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{code}`: {message}")]
pub struct EntryError {
    /// As `ReceiptHandleIsInvalid`.
    pub code: String,
    /// In the server's words.
    pub message: String,
    /// Whether the same would fail again.
    pub is_ours: bool,
}

/// A result for each entry of a batch, in its order.
pub type EntryResults = Vec<Result<(), EntryError>>;

impl QueueUrl {
    /// Reads `https://sqs.eu-central-1.amazonaws.com/123456789012/name`, or the URL of a queue of another server.
    ///
    /// # Errors
    ///
    /// The mistake: the end of the sentence "`queue_url` is …; ".
    pub fn parse(text: &str) -> Result<Self, String> {
        const EXPECTED: &str = "expected `https://sqs.REGION.amazonaws.com/ACCOUNT/NAME`, as the queue's page shows it";
        if !text.contains("://") {
            return Err(EXPECTED.to_owned());
        }
        let mut server = HostUrl::parse(text, "", "", usual_port)?;
        if server.path.is_empty() {
            return Err(EXPECTED.to_owned());
        }
        if server.credentials.is_some() {
            return Err("credentials stand in `access_key_id` and `secret_access_key`".to_owned());
        }
        server.path.clear();
        let region = region_of(&server.name).map(str::to_owned);
        Ok(Self { text: text.to_owned(), server, region })
    }
}

/// The region in the name of a server: of Amazon's (also those of before 2019, for FIPS, and private ones), and of others
/// that are named alike.
fn region_of(server: &str) -> Option<&str> {
    let labels: Vec<&str> = server.split('.').collect();
    let region = match labels[..] {
        // https://docs.aws.amazon.com/general/latest/gr/sqs-service.html
        ["queue", "amazonaws", ..] => "us-east-1",
        [region, "queue", "amazonaws", ..] => region,
        ["sqs" | "sqs-fips", region, _, ..] => region,
        // https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-internetwork-traffic-privacy.html
        [_, "sqs" | "sqs-fips", region, "vpce", ..] => region,
        _ => return None,
    };
    // As `us-gov-west-1`.
    let is_region = region.contains('-') && region.ends_with(|last: char| last.is_ascii_digit());
    is_region.then_some(region)
}

impl Queue {
    /// The client must be one of the service `sqs`, with a target at the URL's server.
    pub fn new(client: Client, url: &QueueUrl) -> Self {
        let json = JsonClient::new(client, "SQS", "AmazonSQS", "application/x-amz-json-1.0");
        Self { json, url: url.text.clone() }
    }

    /// Receives messages; none if there were none for the time `wait`. If the answer gets lost, the messages come again when
    /// they are visible again.
    ///
    /// # Errors
    ///
    /// As [`Client::ask`].
    ///
    /// # Panics
    ///
    /// If a number is out of its bounds.
    pub async fn receive(&mut self, receive: Receive) -> Result<Vec<Message>, Failure> {
        let Receive { messages_max, wait, visibility } = receive;
        assert!((1..=BATCH_MAX).contains(&messages_max), "{messages_max} messages");
        assert!(wait <= WAIT_MAX && visibility.is_none_or(|time| time <= VISIBILITY_MAX));
        let mut input = self.input(json!({
            "MaxNumberOfMessages": messages_max,
            "WaitTimeSeconds": wait.as_secs(),
            "MessageSystemAttributeNames": ["ApproximateReceiveCount", "SentTimestamp"],
        }));
        if let Some(visibility) = visibility {
            input["VisibilityTimeout"] = visibility.as_secs().into();
        }
        let received: Received = self.json.call("ReceiveMessage", &input, wait).await?;
        Ok(received.messages.into_iter().map(Message::from).collect())
    }

    /// Deletes a message.
    ///
    /// # Errors
    ///
    /// As [`Client::ask`].
    pub async fn delete(&mut self, receipt: &str) -> Result<(), Failure> {
        let input = self.input(json!({ "ReceiptHandle": receipt }));
        let _: Map<String, Value> = self.json.call("DeleteMessage", &input, Duration::ZERO).await?;
        Ok(())
    }

    /// Deletes up to [`BATCH_MAX`] messages.
    ///
    /// # Errors
    ///
    /// The whole request failed, as [`Client::ask`].
    ///
    /// # Panics
    ///
    /// If there are more.
    pub async fn delete_batch(&mut self, receipts: &[&str]) -> Result<EntryResults, Failure> {
        let entries = receipts.iter().map(|receipt| json!({ "ReceiptHandle": receipt }));
        self.batch("DeleteMessageBatch", entries.collect()).await
    }

    /// Hides a message for so long from now on, in whole seconds; with 0 it is visible at once.
    ///
    /// # Errors
    ///
    /// As [`Client::ask`]. A message that is visible again, or deleted, is refused.
    pub async fn change_visibility(
        &mut self,
        receipt: &str,
        visibility: Duration,
    ) -> Result<(), Failure> {
        let input = self.input(hidden(receipt, visibility));
        let _: Map<String, Value> =
            self.json.call("ChangeMessageVisibility", &input, Duration::ZERO).await?;
        Ok(())
    }

    /// Does so for up to [`BATCH_MAX`] messages.
    ///
    /// # Errors
    ///
    /// The whole request failed, as [`Client::ask`].
    ///
    /// # Panics
    ///
    /// If there are more.
    pub async fn change_visibility_batch(
        &mut self,
        messages: &[(&str, Duration)],
    ) -> Result<EntryResults, Failure> {
        let entries = messages.iter().map(|(receipt, time)| hidden(receipt, *time));
        self.batch("ChangeMessageVisibilityBatch", entries.collect()).await
    }

    /// What the server says of the queue.
    ///
    /// # Errors
    ///
    /// As [`Client::ask`]. A queue without one for dead letters has no `RedrivePolicy`, which is no error.
    pub async fn attributes(&mut self) -> Result<QueueAttributes, Failure> {
        let input = self.input(json!({ "AttributeNames": [
            "ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible", "VisibilityTimeout", "RedrivePolicy",
        ]}));
        let got: Attributes = self.json.call("GetQueueAttributes", &input, Duration::ZERO).await?;
        Ok(got.attributes.into())
    }

    /// The input of an operation on the queue.
    fn input(&self, mut input: Value) -> Value {
        input["QueueUrl"] = self.url.as_str().into();
        input
    }

    async fn batch(
        &mut self,
        operation: &str,
        mut entries: Vec<Value>,
    ) -> Result<EntryResults, Failure> {
        let count = entries.len();
        assert!(count <= BATCH_MAX, "{count} entries");
        if count == 0 {
            return Ok(Vec::new());
        }
        for (number, entry) in entries.iter_mut().enumerate() {
            entry["Id"] = number.to_string().into();
        }
        let input = self.input(json!({ "Entries": entries }));
        let done: BatchDone = self.json.call(operation, &input, Duration::ZERO).await?;
        Ok(done.results(count))
    }
}

fn hidden(receipt: &str, visibility: Duration) -> Value {
    let visibility = visibility.min(VISIBILITY_MAX).as_secs();
    json!({ "ReceiptHandle": receipt, "VisibilityTimeout": visibility })
}

#[derive(Deserialize)]
struct Received {
    /// Missing if there are none.
    #[serde(default, rename = "Messages")]
    messages: Vec<ReceivedMessage>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ReceivedMessage {
    message_id: String,
    receipt_handle: String,
    body: String,
    #[serde(default)]
    attributes: HashMap<String, String>,
}

impl From<ReceivedMessage> for Message {
    fn from(message: ReceivedMessage) -> Self {
        let number = |name: &str| message.attributes.get(name)?.parse::<i64>().ok();
        let count = number("ApproximateReceiveCount").and_then(|count| count.try_into().ok());
        let sent = number("SentTimestamp").and_then(|sent| sent.checked_mul(1_000_000));
        Self {
            receive_count: count.unwrap_or_default(),
            sent: sent.map(Timestamp),
            id: message.message_id,
            receipt: message.receipt_handle,
            body: message.body,
        }
    }
}

#[derive(Deserialize)]
struct Attributes {
    #[serde(default, rename = "Attributes")]
    attributes: HashMap<String, String>,
}

impl From<HashMap<String, String>> for QueueAttributes {
    fn from(attributes: HashMap<String, String>) -> Self {
        let text = |name: &str| attributes.get(name).map_or("", String::as_str);
        let number = |name: &str| text(name).parse().unwrap_or_default();
        // JSON in JSON; some programs write the number as a text.
        let policy: Option<Value> = serde_json::from_str(text("RedrivePolicy")).ok();
        let receives_max = policy.and_then(|policy| match &policy["maxReceiveCount"] {
            Value::String(text) => text.parse().ok(),
            number => number.as_u64()?.try_into().ok(),
        });
        Self {
            messages: number("ApproximateNumberOfMessages"),
            hidden: number("ApproximateNumberOfMessagesNotVisible"),
            visibility: Duration::from_secs(number("VisibilityTimeout")),
            receives_max,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct BatchDone {
    #[serde(default)]
    successful: Vec<EntryId>,
    #[serde(default)]
    failed: Vec<FailedEntry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct EntryId {
    id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct FailedEntry {
    id: String,
    #[serde(default)]
    code: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    sender_fault: bool,
}

impl BatchDone {
    /// The results of all entries. One that the answer does not name has failed.
    fn results(self, count: usize) -> EntryResults {
        let missing = EntryError {
            code: "Missing".to_owned(),
            message: "the answer does not name it".to_owned(),
            is_ours: false,
        };
        let mut results = vec![Err(missing); count];
        let place = |id: &str| id.parse::<usize>().ok();
        for EntryId { id } in self.successful {
            if let Some(result) = place(&id).and_then(|place| results.get_mut(place)) {
                *result = Ok(());
            }
        }
        for FailedEntry { id, code, message, sender_fault: is_ours } in self.failed {
            if let Some(result) = place(&id).and_then(|place| results.get_mut(place)) {
                *result = Err(EntryError { code, message, is_ours });
            }
        }
        results
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_of_a_queue_has_its_region() {
        let table = [
            ("https://sqs.us-east-1.amazonaws.com/627959692251/logs", Some("us-east-1")),
            ("https://sqs.cn-north-1.amazonaws.com.cn/1/a", Some("cn-north-1")),
            ("https://vpce-0a-b.sqs.us-gov-west-1.vpce.amazonaws.com/1/a", Some("us-gov-west-1")),
            ("https://sqs-fips.us-west-2.amazonaws.com/1/a", Some("us-west-2")),
            ("https://eu-west-1.queue.amazonaws.com/1/a", Some("eu-west-1")),
            ("https://queue.amazonaws.com/1/a", Some("us-east-1")),
            ("http://sqs.eu-central-1.localhost.localstack.cloud:4566/0/a", Some("eu-central-1")),
            ("http://localhost:4566/000000000000/a", None),
            ("http://sqs.example.com/0/a", None),
            ("http://127.0.0.1:5000/0/a", None),
        ];
        for (text, region) in table {
            let url = QueueUrl::parse(text).unwrap();
            assert_eq!(url.region.as_deref(), region, "{text}");
            assert_eq!((url.text.as_str(), url.server.path.as_str()), (text, ""), "{text}");
        }
        for text in [
            "logs",
            "ftp://x/y",
            "https://sqs.x-1.amazonaws.com",
            "https://u:p@h/0/a",
            "https://h/a?b",
        ] {
            QueueUrl::parse(text).unwrap_err();
        }
    }

    #[test]
    fn an_entry_that_the_answer_forgets_has_failed() {
        let done: BatchDone = serde_json::from_value(json!({
            "Successful": [{ "Id": "2" }, { "Id": "9" }, { "Id": "x" }],
            "Failed": [{ "Id": "0", "Code": "ReceiptHandleIsInvalid", "Message": "no", "SenderFault": true }],
        }))
        .unwrap();
        let results = done.results(3);
        let error = results[0].as_ref().unwrap_err();
        assert!(error.is_ours && error.to_string() == "`ReceiptHandleIsInvalid`: no", "{error}");
        assert_eq!(results[1].as_ref().unwrap_err().code, "Missing");
        assert_eq!(results[2], Ok(()));
        // Named as both, it may not be done.
        let done = json!({ "Successful": [{ "Id": "0" }], "Failed": [{ "Id": "0" }] });
        let done: BatchDone = serde_json::from_value(done).unwrap();
        done.results(1)[0].as_ref().unwrap_err();
    }

    #[test]
    fn attributes_may_be_missing() {
        let of = |policy: &str| {
            let all = [
                ("ApproximateNumberOfMessages", "7"),
                ("VisibilityTimeout", "30"),
                ("RedrivePolicy", policy),
            ];
            let all = all.map(|(name, value)| (name.to_owned(), value.to_owned()));
            QueueAttributes::from(HashMap::from(all))
        };
        let expected = QueueAttributes {
            messages: 7,
            hidden: 0,
            visibility: Duration::from_secs(30),
            receives_max: Some(5),
        };
        assert_eq!(of("{\"maxReceiveCount\":5}"), expected);
        assert_eq!(of("{\"maxReceiveCount\":\"5\"}"), expected);
        assert_eq!(of(""), QueueAttributes { receives_max: None, ..expected });
    }
}
