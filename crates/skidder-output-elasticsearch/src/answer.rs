//! The answer to a bulk request: one status for each item, and the error of each that has one.
//!
//! Requested with `filter_path=errors,items.*.error,items.*.status`; a server that sends more is
//! understood too. See <https://www.elastic.co/docs/api/doc/elasticsearch/operation/operation-bulk>.

use super::action::Operation;
use serde::Deserialize;
use serde::de::{self, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// The outcome of one item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is there.
    Delivered,
    /// It was there before (409): as good as delivered.
    Duplicate,
    /// The server has too much to do (429): again, later.
    TooMany,
    /// The server failed (500 and above): again, later.
    Failed,
    /// It can never be taken.
    Rejected,
    /// The answer does not include it: again, later.
    Unproven,
}

impl Verdict {
    /// The meaning of an item's status.
    pub(crate) fn of(status: u16) -> Self {
        match status {
            ..300 => Self::Delivered,
            409 => Self::Duplicate,
            429 => Self::TooMany,
            500.. => Self::Failed,
            _ => Self::Rejected,
        }
    }
}

/// One item of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ItemAnswer<'a> {
    pub(crate) status: u16,
    pub(crate) did: Did,
    /// JSON of the error; empty if there is none.
    pub(crate) error: &'a str,
}

/// The operation that an item reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Did {
    /// There are servers that call one the other.
    #[serde(alias = "create", alias = "index")]
    Write,
    Delete,
    #[serde(other)]
    Other,
}

impl ItemAnswer<'_> {
    /// The verdict for an event that was sent with this operation.
    pub(crate) fn verdict(&self, operation: Operation) -> Verdict {
        let own = match operation {
            Operation::Create | Operation::Index => Did::Write,
            Operation::Delete => Did::Delete,
        };
        if self.did != own || !(200..600).contains(&self.status) {
            return Verdict::Unproven;
        }
        Verdict::of(self.status)
    }
}

/// A whole answer.
#[derive(Debug, PartialEq)]
pub(crate) enum Answer<'a> {
    /// Every item was created.
    AllCreated,
    /// One for each item that was sent, in that order.
    Items(Vec<ItemAnswer<'a>>),
}

/// Why an answer is unusable: all items must be sent again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AnswerError {
    #[error("the answer is no bulk answer: {0}{REMEDY}")]
    Json(#[from] serde_json::Error),
    #[error("the answer has {got} `items` for {sent} events{REMEDY}")]
    Count { sent: usize, got: usize },
    #[error("the answer has no `items`, so that nothing shows that the events are there{REMEDY}")]
    NoItems,
    #[error("no item of the answer is about an event that was sent{REMEDY}")]
    Unproven,
}

/// How to fix the cause of an unusable answer.
const REMEDY: &str =
    "; is there a proxy before the server that answers for it, or changes what it answers?";

/// Reads the answer to a request of `sent` items.
pub(crate) fn read(body: &[u8], sent: usize) -> Result<Answer<'_>, AnswerError> {
    if is_all_created(body, sent) {
        return Ok(Answer::AllCreated);
    }
    let body: Body<'_> = serde_json::from_slice(body)?;
    let items = body.items.ok_or(AnswerError::NoItems)?;
    if items.len() != sent {
        return Err(AnswerError::Count { sent, got: items.len() });
    }
    let answers = items.into_iter().map(|Entry(did, outcome)| ItemAnswer {
        status: outcome.status,
        did,
        error: outcome.error.map_or("", RawValue::get),
    });
    Ok(Answer::Items(answers.collect()))
}

/// The usual answer, byte for byte: every item created.
fn is_all_created(body: &[u8], sent: usize) -> bool {
    const CREATED: &[u8] = b"{\"create\":{\"status\":201}}";
    let Some(mut rest) = body.strip_prefix(b"{\"errors\":false,\"items\":[") else { return false };
    for at in 0..sent {
        if at > 0 {
            match rest.strip_prefix(b",") {
                Some(behind) => rest = behind,
                None => return false,
            }
        }
        match rest.strip_prefix(CREATED) {
            Some(behind) => rest = behind,
            None => return false,
        }
    }
    rest == b"]}"
}

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    items: Option<Vec<Entry<'a>>>,
}

#[derive(Deserialize)]
struct Outcome<'a> {
    status: u16,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// `{"create": {…}}`.
struct Entry<'a>(Did, Outcome<'a>);

impl<'de: 'a, 'a> Deserialize<'de> for Entry<'a> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneEntry;
        impl<'de> Visitor<'de> for OneEntry {
            type Value = Entry<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object with one operation")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entry<'de>, A::Error> {
                let Some((did, outcome)) = map.next_entry::<Did, Outcome<'de>>()? else {
                    return Err(de::Error::custom("an item is empty"));
                };
                if map.next_key::<de::IgnoredAny>()?.is_some() {
                    return Err(de::Error::custom("an item has two operations"));
                }
                Ok(Entry(did, outcome))
            }
        }
        deserializer.deserialize_map(OneEntry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_mean_what_filebeat_takes_them_for() {
        let table = [
            (200, Verdict::Delivered),
            (201, Verdict::Delivered),
            (302, Verdict::Rejected),
            (400, Verdict::Rejected),
            (403, Verdict::Rejected),
            (404, Verdict::Rejected),
            (409, Verdict::Duplicate),
            (413, Verdict::Rejected),
            (429, Verdict::TooMany),
            (499, Verdict::Rejected),
            (500, Verdict::Failed),
            (503, Verdict::Failed),
        ];
        for (status, verdict) in table {
            assert_eq!(Verdict::of(status), verdict, "{status}");
        }
    }

    #[test]
    fn answers_of_success_are_understood_in_every_form() {
        let table: &[(&str, usize)] = &[
            ("{\"errors\":false,\"items\":[{\"create\":{\"status\":201}}]}", 1),
            (
                "{\"errors\":false,\"items\":[{\"create\":{\"status\":201}},{\"create\":{\"status\":201}}]}",
                2,
            ),
            (
                "{\"errors\":false,\"items\":[{\"index\":{\"status\":200}},{\"create\":{\"status\":201}}]}",
                2,
            ),
            (
                "{\"took\":3,\"errors\":false,\"items\":[{\"create\":{\"_index\":\"a\",\"_shards\":{\"total\":1},\"status\":201}}]}",
                1,
            ),
            (" { \"errors\" : false , \"items\" : [ { \"create\" : { \"status\" : 201 } } ] } ", 1),
        ];
        for (body, sent) in table {
            match read(body.as_bytes(), *sent).unwrap() {
                Answer::AllCreated => {}
                Answer::Items(items) => {
                    let delivered = |item: &ItemAnswer<'_>| {
                        item.verdict(Operation::Create) == Verdict::Delivered
                    };
                    assert!(items.len() == *sent && items.iter().all(delivered), "{body}");
                }
            }
        }
    }

    #[test]
    fn an_item_about_another_operation_is_no_verdict() {
        let table = [
            ("create", 201, Operation::Create, Verdict::Delivered),
            ("index", 200, Operation::Create, Verdict::Delivered),
            ("create", 409, Operation::Index, Verdict::Duplicate),
            ("delete", 200, Operation::Delete, Verdict::Delivered),
            ("delete", 404, Operation::Delete, Verdict::Rejected),
            ("delete", 200, Operation::Create, Verdict::Unproven),
            ("delete", 404, Operation::Create, Verdict::Unproven),
            ("create", 201, Operation::Delete, Verdict::Unproven),
            ("update", 200, Operation::Create, Verdict::Unproven),
            ("noop", 200, Operation::Index, Verdict::Unproven),
            ("create", 0, Operation::Create, Verdict::Unproven),
            ("create", 100, Operation::Create, Verdict::Unproven),
            ("create", 600, Operation::Create, Verdict::Unproven),
        ];
        for (name, status, operation, expected) in table {
            let body =
                format!("{{\"errors\":false,\"items\":[{{\"{name}\":{{\"status\":{status}}}}}]}}");
            let verdict = match read(body.as_bytes(), 1).unwrap() {
                Answer::AllCreated => continue,
                Answer::Items(items) => items[0].verdict(operation),
            };
            assert_eq!(verdict, expected, "{body} for {operation:?}");
        }
    }

    #[test]
    fn errors_come_with_the_json_of_the_server() {
        let body = "{\"errors\":true,\"items\":[{\"create\":{\"status\":201}},\
            {\"create\":{\"status\":400,\"error\":{\"type\":\"x\",\"reason\":\"{\\\"\"}}}]}";
        let Answer::Items(items) = read(body.as_bytes(), 2).unwrap() else { panic!("{body}") };
        assert_eq!(items[0], ItemAnswer { status: 201, did: Did::Write, error: "" });
        let error = "{\"type\":\"x\",\"reason\":\"{\\\"\"}";
        assert_eq!(items[1], ItemAnswer { status: 400, did: Did::Write, error });
    }

    #[test]
    fn answers_that_say_nothing_are_errors() {
        let one = "{\"create\":{\"status\":201}}";
        let table = [
            (String::new(), 1),
            ("<html>".to_owned(), 1),
            ("{}".to_owned(), 1),
            ("[]".to_owned(), 1),
            ("{\"errors\":true}".to_owned(), 1),
            ("{\"took\":1,\"errors\":false}".to_owned(), 1),
            ("{\"errors\":false,\"items\":null}".to_owned(), 1),
            ("{\"errors\":false,\"items\":[]}".to_owned(), 1),
            (format!("{{\"errors\":false,\"items\":[{one}]}}"), 2),
            (format!("{{\"errors\":false,\"items\":[{one},{one}]}}"), 1),
            (format!("{{\"errors\":false,\"items\":[{one}]"), 1),
            (format!("{{\"errors\":false,\"items\":[{one}]}}x"), 1),
            ("{\"errors\":true,\"items\":[{}]}".to_owned(), 1),
            ("{\"errors\":true,\"items\":[{\"create\":{}}]}".to_owned(), 1),
            ("{\"errors\":true,\"items\":[{\"create\":{\"status\":-1}}]}".to_owned(), 1),
            ("{\"errors\":true,\"items\":{}}".to_owned(), 1),
        ];
        for (body, sent) in table {
            read(body.as_bytes(), sent).unwrap_err();
        }
    }

    #[test]
    fn an_answer_cut_anywhere_is_an_error() {
        let body = "{\"errors\":true,\"items\":[{\"create\":{\"status\":201}},{\"create\":{\"status\":429,\"error\":{\"type\":\"y\"}}}]}";
        read(body.as_bytes(), 2).unwrap();
        for end in 0..body.len() {
            read(&body.as_bytes()[..end], 2).unwrap_err();
        }
    }
}
