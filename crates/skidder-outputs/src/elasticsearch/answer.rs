//! The answer to a bulk request: one status for each item, and the error of each that has one.
//!
//! Asked with `filter_path=errors,items.*.error,items.*.status`; a server that sends more is
//! understood too. See <https://www.elastic.co/docs/api/doc/elasticsearch/operation/operation-bulk>.

use serde::Deserialize;
use serde::de::{self, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// What became of one item.
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
    /// JSON of the error; empty if there is none.
    pub(crate) error: &'a str,
}

/// A whole answer.
#[derive(Debug, PartialEq)]
pub(crate) enum Answer<'a> {
    /// Everything was taken.
    AllDelivered,
    /// One for each item that was sent, in that order.
    Items(Vec<ItemAnswer<'a>>),
}

/// Why an answer says nothing: all items must be sent again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AnswerError {
    #[error("the answer is no bulk answer: {0}")]
    Json(#[from] serde_json::Error),
    #[error("the answer has {got} items for {sent} events")]
    Count { sent: usize, got: usize },
    #[error("the answer has no items")]
    NoItems,
    #[error("the answer has an item with status {0}")]
    Status(u16),
}

/// Reads the answer to a request of `sent` items.
pub(crate) fn read(body: &[u8], sent: usize) -> Result<Answer<'_>, AnswerError> {
    if is_all_created(body, sent) {
        return Ok(Answer::AllDelivered);
    }
    let body: Body<'_> = serde_json::from_slice(body)?;
    let Some(items) = body.items else {
        return match body.errors {
            // Parameters of the user's can keep the items away.
            Some(false) => Ok(Answer::AllDelivered),
            _ => Err(AnswerError::NoItems),
        };
    };
    if items.len() != sent {
        return Err(AnswerError::Count { sent, got: items.len() });
    }
    let mut answers = Vec::with_capacity(items.len());
    for Entry(outcome) in items {
        if !(200..600).contains(&outcome.status) {
            return Err(AnswerError::Status(outcome.status));
        }
        let error = outcome.error.map_or("", RawValue::get);
        answers.push(ItemAnswer { status: outcome.status, error });
    }
    if answers.iter().all(|item| Verdict::of(item.status) == Verdict::Delivered) {
        return Ok(Answer::AllDelivered);
    }
    Ok(Answer::Items(answers))
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
    errors: Option<bool>,
    #[serde(borrow)]
    items: Option<Vec<Entry<'a>>>,
}

#[derive(Deserialize)]
struct Outcome<'a> {
    status: u16,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// `{"create": {…}}`: the name of the operation does not matter.
struct Entry<'a>(Outcome<'a>);

impl<'de: 'a, 'a> Deserialize<'de> for Entry<'a> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneEntry;
        impl<'de> Visitor<'de> for OneEntry {
            type Value = Entry<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object with one operation")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entry<'de>, A::Error> {
                let Some((_, outcome)) = map.next_entry::<de::IgnoredAny, Outcome<'de>>()? else {
                    return Err(de::Error::custom("an item is empty"));
                };
                if map.next_key::<de::IgnoredAny>()?.is_some() {
                    return Err(de::Error::custom("an item has two operations"));
                }
                Ok(Entry(outcome))
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
            ("{\"errors\":false}", 7),
        ];
        for (body, sent) in table {
            assert_eq!(read(body.as_bytes(), *sent).unwrap(), Answer::AllDelivered, "{body}");
        }
    }

    #[test]
    fn errors_come_with_the_json_of_the_server() {
        let body = "{\"errors\":true,\"items\":[{\"create\":{\"status\":201}},\
            {\"create\":{\"status\":400,\"error\":{\"type\":\"x\",\"reason\":\"{\\\"\"}}}]}";
        let Answer::Items(items) = read(body.as_bytes(), 2).unwrap() else { panic!("{body}") };
        assert_eq!(items[0], ItemAnswer { status: 201, error: "" });
        let error = "{\"type\":\"x\",\"reason\":\"{\\\"\"}";
        assert_eq!(items[1], ItemAnswer { status: 400, error });
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
            ("{\"errors\":false,\"items\":[]}".to_owned(), 1),
            (format!("{{\"errors\":false,\"items\":[{one}]}}"), 2),
            (format!("{{\"errors\":false,\"items\":[{one},{one}]}}"), 1),
            (format!("{{\"errors\":false,\"items\":[{one}]"), 1),
            (format!("{{\"errors\":false,\"items\":[{one}]}}x"), 1),
            ("{\"errors\":true,\"items\":[{}]}".to_owned(), 1),
            ("{\"errors\":true,\"items\":[{\"create\":{}}]}".to_owned(), 1),
            ("{\"errors\":true,\"items\":[{\"create\":{\"status\":0}}]}".to_owned(), 1),
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
