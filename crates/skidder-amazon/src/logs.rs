//! CloudWatch Logs: finds groups and streams, and reads their events
//! (<https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_Operations.html>).
//!
//! Each operation gives a page and the token of the next one. A page may be empty although there are more.

use crate::client::{Client, Failure};
use crate::json::JsonClient;
use serde::Deserialize;
use serde_json::{Value, json};
use skidder_os::Timestamp;
use std::time::Duration;

/// Most events of a page; there may be fewer, as a page has at most 1 MB.
pub const EVENTS_MAX: u32 = 10_000;
/// Most streams that a request names.
pub const STREAMS_MAX: usize = 100;
/// Groups or streams of a page.
const NAMES_PAGE: u32 = 50;

/// A client of the service in one region.
#[derive(Debug)]
pub struct Logs {
    json: JsonClient,
}

/// Names a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogGroup<'a> {
    /// Of the own account.
    Name(&'a str),
    /// An ARN, perhaps of a linked account; `:*` at its end is left out.
    Arn(&'a str),
}

/// Which streams of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogStreams<'a> {
    /// All.
    #[default]
    All,
    /// These, 1 to [`STREAMS_MAX`].
    Named(&'a [&'a str]),
    /// Those that begin so.
    Prefix(&'a str),
}

/// Which events.
#[derive(Clone, Copy, Debug)]
pub struct EventFilter<'a> {
    /// Of this group.
    pub group: LogGroup<'a>,
    /// Of these streams in it.
    pub streams: LogStreams<'a>,
    /// A pattern of CloudWatch; empty for none.
    pub pattern: &'a str,
    /// Not before this time of the events, in whole milliseconds.
    pub start: Option<Timestamp>,
    /// Not behind this time, in whole milliseconds.
    pub end: Option<Timestamp>,
    /// Most events of the page, 1 to [`EVENTS_MAX`].
    pub events_max: u32,
    /// [`Page::next`] of the page before, with all else as it was there; nothing for the first page.
    pub token: Option<&'a str>,
}

/// A page of what was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// Perhaps none.
    pub items: Vec<T>,
    /// The token for the next page; nothing on the last one.
    pub next: Option<String>,
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEvent {
    /// The same each time that it is read.
    pub id: String,
    /// The name of its stream.
    pub stream: String,
    /// Its text.
    pub message: String,
    /// Its own time, in milliseconds.
    pub time: Timestamp,
    /// When the service got it, in milliseconds.
    pub ingested: Option<Timestamp>,
}

/// A group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundGroup {
    /// Its name.
    pub name: String,
    /// Its ARN, without `:*` at its end; empty, if the server does not say it.
    pub arn: String,
}

/// A stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundStream {
    /// Its name.
    pub name: String,
    /// The time of its first event; nothing without events.
    pub first: Option<Timestamp>,
    /// The time of its last event, which may lag an hour behind; nothing without events.
    pub last: Option<Timestamp>,
}

impl Logs {
    /// The client must be one of the service `logs`.
    pub fn new(client: Client) -> Self {
        let json = JsonClient::new(
            client,
            "CloudWatch Logs",
            "Logs_20140328",
            "application/x-amz-json-1.1",
        );
        Self { json }
    }

    /// A page of events, in the order of their times.
    ///
    /// # Errors
    ///
    /// As [`Client::ask`]; of a server that wants fewer requests, [`crate::Refused::is_throttled`].
    ///
    /// # Panics
    ///
    /// If a number is out of its bounds.
    pub async fn events(&mut self, filter: EventFilter<'_>) -> Result<Page<LogEvent>, Failure> {
        assert!((1..=EVENTS_MAX).contains(&filter.events_max), "{} events", filter.events_max);
        let mut input = group_input(filter.group);
        input["limit"] = filter.events_max.into();
        // Amazon always does so; servers that look like it sort by stream without it.
        input["interleaved"] = true.into();
        match filter.streams {
            LogStreams::All => {}
            LogStreams::Named(names) => {
                assert!((1..=STREAMS_MAX).contains(&names.len()), "{} streams", names.len());
                input["logStreamNames"] = names.into();
            }
            LogStreams::Prefix(prefix) => input["logStreamNamePrefix"] = prefix.into(),
        }
        if !filter.pattern.is_empty() {
            input["filterPattern"] = filter.pattern.into();
        }
        for (name, time) in [("startTime", filter.start), ("endTime", filter.end)] {
            if let Some(time) = time {
                input[name] = time.0.div_euclid(1_000_000).into();
            }
        }
        let answer: EventsAnswer = self.call("FilterLogEvents", input, filter.token).await?;
        let items = answer.events.into_iter().map(LogEvent::from).collect();
        Ok(Page { items, next: answer.next_token })
    }

    /// A page of the groups whose names begin with `prefix`, also those of linked accounts if `linked`.
    ///
    /// # Errors
    ///
    /// As [`Logs::events`].
    pub async fn groups(
        &mut self,
        prefix: &str,
        linked: bool,
        token: Option<&str>,
    ) -> Result<Page<FoundGroup>, Failure> {
        let mut input = json!({ "limit": NAMES_PAGE });
        if !prefix.is_empty() {
            input["logGroupNamePrefix"] = prefix.into();
        }
        if linked {
            input["includeLinkedAccounts"] = true.into();
        }
        let answer: GroupsAnswer = self.call("DescribeLogGroups", input, token).await?;
        let items = answer.log_groups.into_iter().map(FoundGroup::from).collect();
        Ok(Page { items, next: answer.next_token })
    }

    /// A page of the streams of a group whose names begin with `prefix`, by name.
    ///
    /// # Errors
    ///
    /// As [`Logs::events`].
    pub async fn streams(
        &mut self,
        group: LogGroup<'_>,
        prefix: &str,
        token: Option<&str>,
    ) -> Result<Page<FoundStream>, Failure> {
        let mut input = group_input(group);
        input["limit"] = NAMES_PAGE.into();
        if !prefix.is_empty() {
            input["logStreamNamePrefix"] = prefix.into();
        }
        let answer: StreamsAnswer = self.call("DescribeLogStreams", input, token).await?;
        let items = answer.log_streams.into_iter().map(FoundStream::from).collect();
        Ok(Page { items, next: answer.next_token })
    }

    async fn call<T: serde::de::DeserializeOwned>(
        &mut self,
        operation: &str,
        mut input: Value,
        token: Option<&str>,
    ) -> Result<T, Failure> {
        if let Some(token) = token {
            input["nextToken"] = token.into();
        }
        self.json.call(operation, &input, Duration::ZERO).await
    }
}

fn group_input(group: LogGroup<'_>) -> Value {
    match group {
        LogGroup::Name(name) => json!({ "logGroupName": name }),
        LogGroup::Arn(arn) => {
            json!({ "logGroupIdentifier": arn.strip_suffix(":*").unwrap_or(arn) })
        }
    }
}

/// A time of the service, in milliseconds.
fn time(milliseconds: i64) -> Timestamp {
    Timestamp(milliseconds.saturating_mul(1_000_000))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EventsAnswer {
    /// There is no answer without it.
    events: Vec<AnsweredEvent>,
    next_token: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AnsweredEvent {
    event_id: String,
    log_stream_name: String,
    message: String,
    timestamp: i64,
    ingestion_time: Option<i64>,
}

impl From<AnsweredEvent> for LogEvent {
    fn from(event: AnsweredEvent) -> Self {
        Self {
            id: event.event_id,
            stream: event.log_stream_name,
            message: event.message,
            time: time(event.timestamp),
            ingested: event.ingestion_time.map(time),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GroupsAnswer {
    log_groups: Vec<AnsweredGroup>,
    next_token: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AnsweredGroup {
    log_group_name: String,
    #[serde(default)]
    arn: String,
}

impl From<AnsweredGroup> for FoundGroup {
    fn from(group: AnsweredGroup) -> Self {
        let arn = group.arn.strip_suffix(":*").unwrap_or(&group.arn).to_owned();
        Self { name: group.log_group_name, arn }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StreamsAnswer {
    log_streams: Vec<AnsweredStream>,
    next_token: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AnsweredStream {
    log_stream_name: String,
    first_event_timestamp: Option<i64>,
    last_event_timestamp: Option<i64>,
}

impl From<AnsweredStream> for FoundStream {
    fn from(stream: AnsweredStream) -> Self {
        Self {
            name: stream.log_stream_name,
            first: stream.first_event_timestamp.map(time),
            last: stream.last_event_timestamp.map(time),
        }
    }
}
