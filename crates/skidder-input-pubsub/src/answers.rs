//! What the server says about messages that are acknowledged, extended or given back.
//!
//! With exactly-once delivery a call may succeed for some messages and not for others; details of the status name these
//! (<https://cloud.google.com/pubsub/docs/exactly-once-delivery>, and Google's clients).

use crate::leases::Named;
use skidder_grpc::{CallError, Code};

/// What became of one message of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is as it was asked.
    Done,
    /// Ask again.
    Again,
    /// Its receipt counts no more: the message comes again.
    Lost,
}

/// What a call that failed means.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// Something else for each message.
    Each(Vec<Fate>),
    /// One of them is to blame: ask about fewer at once.
    Fewer,
    /// Nothing was done: ask again after a pause.
    Later,
}

/// What the details call an error that may pass.
const TRANSIENT: &str = "TRANSIENT_";

/// Finds out what a failed call about these messages means.
pub(crate) fn meaning(error: &CallError, asked: &[Named]) -> Meaning {
    let CallError::Status(status) = error else { return Meaning::Later };
    if let Some(info) = status.details.error_info()
        && asked.iter().any(|named| info.metadata.contains_key(&*named.ack_id))
    {
        let fate = |named: &Named| match info.metadata.get(&*named.ack_id) {
            Some(text) if !text.starts_with(TRANSIENT) => Fate::Lost,
            // If one that is not named succeeded, the server says so when it is asked again.
            Some(_) | None => Fate::Again,
        };
        return Meaning::Each(asked.iter().map(fate).collect());
    }
    match status.code {
        Code::InvalidArgument if asked.len() > 1 => Meaning::Fewer,
        Code::InvalidArgument => Meaning::Each(vec![Fate::Lost; asked.len()]),
        _ => Meaning::Later,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remedy::tests::refused;
    use prost::Message as _;
    use skidder_grpc::{Detail, ErrorInfo, RpcStatus, Status};

    fn named(ids: &[&str]) -> Vec<Named> {
        let named =
            |(number, id): (usize, &&str)| Named { number: number as u64, ack_id: (*id).into() };
        ids.iter().enumerate().map(named).collect()
    }

    fn exactly_once(failed: &[(&str, &str)]) -> CallError {
        let metadata =
            failed.iter().map(|(id, why)| ((*id).to_owned(), (*why).to_owned())).collect();
        let info = ErrorInfo { reason: String::new(), domain: String::new(), metadata };
        let type_url = "type.googleapis.com/google.rpc.ErrorInfo".to_owned();
        let details = vec![Detail { type_url, value: info.encode_to_vec() }];
        let details = RpcStatus { code: 9, message: String::new(), details };
        let message = "Some acknowledgement ids in the request were invalid".to_owned();
        CallError::Status(Status { code: Code::FailedPrecondition, message, details })
    }

    #[test]
    fn with_exactly_once_delivery_each_message_has_a_fate() {
        let error = exactly_once(&[
            ("a", "PERMANENT_FAILURE_INVALID_ACK_ID"),
            ("b", "TRANSIENT_FAILURE_SERVICE_UNAVAILABLE"),
        ]);
        let fates = vec![Fate::Lost, Fate::Again, Fate::Again];
        assert_eq!(meaning(&error, &named(&["a", "b", "c"])), Meaning::Each(fates));
        assert_eq!(meaning(&error, &named(&["x"])), Meaning::Later, "it is about others");
    }

    #[test]
    fn a_receipt_that_makes_no_sense_is_found_among_the_others() {
        let error = refused(Code::InvalidArgument);
        assert_eq!(meaning(&error, &named(&["a", "b"])), Meaning::Fewer);
        assert_eq!(meaning(&error, &named(&["a"])), Meaning::Each(vec![Fate::Lost]));
        for code in [Code::Unavailable, Code::PermissionDenied, Code::NotFound] {
            assert_eq!(meaning(&refused(code), &named(&["a"])), Meaning::Later);
        }
    }
}
