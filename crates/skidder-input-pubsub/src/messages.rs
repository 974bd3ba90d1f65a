//! The messages of the service, as far as they are needed.
//!
//! <https://github.com/googleapis/googleapis>: `google/pubsub/v1/pubsub.proto`.

use bytes::Bytes;
use prost::Message;
use std::collections::BTreeMap;

/// Methods of the service.
pub(crate) const STREAMING_PULL: &str = "/google.pubsub.v1.Subscriber/StreamingPull";
pub(crate) const ACKNOWLEDGE: &str = "/google.pubsub.v1.Subscriber/Acknowledge";
pub(crate) const MODIFY_ACK_DEADLINE: &str = "/google.pubsub.v1.Subscriber/ModifyAckDeadline";
pub(crate) const CREATE_SUBSCRIPTION: &str = "/google.pubsub.v1.Subscriber/CreateSubscription";

/// `google.protobuf.Empty`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Empty {}

/// `google.protobuf.Timestamp`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Time {
    #[prost(int64, tag = "1")]
    pub(crate) seconds: i64,
    #[prost(int32, tag = "2")]
    pub(crate) nanos: i32,
}

impl Time {
    /// Nanoseconds since 1970-01-01 UTC.
    pub(crate) fn nanoseconds(&self) -> i64 {
        self.seconds.saturating_mul(1_000_000_000).saturating_add(i64::from(self.nanos))
    }
}

/// `StreamingPullRequest`: the first one names the subscription, the others are signs of life. Acknowledgements go by calls
/// of their own, which have answers.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct StreamingPullRequest {
    #[prost(string, tag = "1")]
    pub(crate) subscription: String,
    #[prost(int32, tag = "5")]
    pub(crate) stream_ack_deadline_seconds: i32,
    /// The same over all streams of a client, so that the server knows which ones belong together.
    #[prost(string, tag = "6")]
    pub(crate) client_id: String,
    #[prost(int64, tag = "7")]
    pub(crate) max_outstanding_messages: i64,
    #[prost(int64, tag = "8")]
    pub(crate) max_outstanding_bytes: i64,
}

/// `StreamingPullResponse`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct StreamingPullResponse {
    #[prost(message, repeated, tag = "1")]
    pub(crate) received_messages: Vec<ReceivedMessage>,
    #[prost(message, optional, tag = "4")]
    pub(crate) subscription_properties: Option<SubscriptionProperties>,
}

/// `StreamingPullResponse.SubscriptionProperties`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct SubscriptionProperties {
    #[prost(bool, tag = "1")]
    pub(crate) exactly_once_delivery_enabled: bool,
}

/// `ReceivedMessage`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ReceivedMessage {
    #[prost(string, tag = "1")]
    pub(crate) ack_id: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) message: Option<PubsubMessage>,
}

/// `PubsubMessage`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct PubsubMessage {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) data: Bytes,
    #[prost(btree_map = "string, string", tag = "2")]
    pub(crate) attributes: BTreeMap<String, String>,
    #[prost(string, tag = "3")]
    pub(crate) message_id: String,
    #[prost(message, optional, tag = "4")]
    pub(crate) publish_time: Option<Time>,
}

/// `AcknowledgeRequest`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct AcknowledgeRequest {
    #[prost(string, tag = "1")]
    pub(crate) subscription: String,
    #[prost(string, repeated, tag = "2")]
    pub(crate) ack_ids: Vec<String>,
}

/// `ModifyAckDeadlineRequest`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ModifyAckDeadlineRequest {
    #[prost(string, tag = "1")]
    pub(crate) subscription: String,
    /// From now on; 0 gives the messages back at once.
    #[prost(int32, tag = "3")]
    pub(crate) ack_deadline_seconds: i32,
    #[prost(string, repeated, tag = "4")]
    pub(crate) ack_ids: Vec<String>,
}

/// `Subscription`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Subscription {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) topic: String,
    #[prost(int32, tag = "5")]
    pub(crate) ack_deadline_seconds: i32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_in_nanoseconds() {
        let time = |seconds, nanos| Time { seconds, nanos }.nanoseconds();
        assert_eq!(time(1_700_000_000, 5), 1_700_000_000_000_000_005);
        assert_eq!(time(i64::MAX, 0), i64::MAX);
    }

    #[test]
    fn what_is_not_needed_of_an_answer_is_passed_over() {
        // Field 3 of the answer, and fields 3 of a received message and 5 of its message, as the `.proto` file has them.
        let message = [&[0x0a, 1][..], b"d", &[0x2a, 1], b"k", &[0x1a, 2], b"17"].concat();
        let received =
            [&[0x0a, 1][..], b"a", &[0x12, message.len() as u8], &message, &[0x18, 4]].concat();
        let answer =
            [&[0x1a, 0][..], &[0x22, 2, 0x08, 1], &[0x0a, received.len() as u8], &received]
                .concat();
        let answer = StreamingPullResponse::decode(&*answer).unwrap();
        assert!(answer.subscription_properties.unwrap().exactly_once_delivery_enabled);
        let received = &answer.received_messages[0];
        assert_eq!(received.ack_id, "a");
        let message = received.message.as_ref().unwrap();
        assert_eq!((&*message.data, &*message.message_id), (&b"d"[..], "17"));
        assert_eq!(message.publish_time, None);
    }
}
