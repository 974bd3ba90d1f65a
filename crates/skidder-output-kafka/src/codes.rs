//! What an error means for the record that came back with it.

use crate::native::Code;

/// What to do with a record that came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// Send it again, after a pause.
    Again,
    /// Send it again at once: another record of its batch was at fault.
    AtOnce,
    /// The batch that it was in cannot be taken; if it was alone, the record cannot.
    Suspect,
    /// Nobody can take it.
    Refused,
    /// The producer is of no use any more; with another one, send it again.
    Broken,
}

/// librdkafka's own (`rdkafka.h`), below zero.
const INVALID_DIFFERENT_RECORD: i32 = -138;
const FATAL: i32 = -150;
pub(crate) const QUEUE_FULL: Code = Code(-184);
pub(crate) const TIMED_OUT: Code = Code(-185);

/// Those of brokers (<https://kafka.apache.org/protocol#protocol_error_codes>).
const INVALID_MESSAGE_SIZE: i32 = 4;
pub(crate) const MESSAGE_TOO_LARGE: Code = Code(10);
pub(crate) const INVALID_TOPIC: Code = Code(17);
const RECORD_LIST_TOO_LARGE: i32 = 18;
const INVALID_TIMESTAMP: i32 = 32;
const UNSUPPORTED_FOR_MESSAGE_FORMAT: i32 = 43;
const INVALID_RECORD: i32 = 87;
pub(crate) const UNKNOWN_TOPIC: Code = Code(3);
pub(crate) const TOPIC_AUTHORIZATION_FAILED: Code = Code(29);

/// What is not named here can pass: a broker that is away, rights that are missing, a topic that is not there
/// yet, a mistake in the settings of the broker. As in Filebeat, events wait for it.
pub(crate) fn meaning(code: Code) -> Meaning {
    match code.0 {
        INVALID_DIFFERENT_RECORD => Meaning::AtOnce,
        FATAL => Meaning::Broken,
        17 => Meaning::Refused,
        10
        | INVALID_MESSAGE_SIZE
        | RECORD_LIST_TOO_LARGE
        | INVALID_TIMESTAMP
        | UNSUPPORTED_FOR_MESSAGE_FORMAT
        | INVALID_RECORD => Meaning::Suspect,
        _ => Meaning::Again,
    }
}

/// What a person can do about it; empty if nothing comes to mind.
pub(crate) fn advice(code: Code) -> &'static str {
    match code.0 {
        3 => "create the topic, or allow the brokers to (`auto.create.topics.enable`)",
        29 => "give the user the rights Write and Describe on the topic",
        31 => {
            "give the user the right IdempotentWrite on the cluster, or unset `enable_idempotence`"
        }
        58 => "see `username`, `password` and `sasl.mechanism`",
        -187 | -185 | -195 => "see `hosts`, `ssl` and `username`, and whether the brokers run",
        -193 => "see the names in `hosts` and `advertised.listeners` of the brokers",
        35 => "the brokers are too old",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdkafka_sys::bindings::rd_kafka_resp_err_t as codes;

    #[test]
    fn numbers_are_those_of_librdkafka() {
        for (number, code) in [
            (INVALID_DIFFERENT_RECORD, codes::RD_KAFKA_RESP_ERR__INVALID_DIFFERENT_RECORD),
            (FATAL, codes::RD_KAFKA_RESP_ERR__FATAL),
            (QUEUE_FULL.0, codes::RD_KAFKA_RESP_ERR__QUEUE_FULL),
            (TIMED_OUT.0, codes::RD_KAFKA_RESP_ERR__TIMED_OUT),
            (-187, codes::RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN),
            (-195, codes::RD_KAFKA_RESP_ERR__TRANSPORT),
            (-193, codes::RD_KAFKA_RESP_ERR__RESOLVE),
            (INVALID_MESSAGE_SIZE, codes::RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE),
            (MESSAGE_TOO_LARGE.0, codes::RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE),
            (INVALID_TOPIC.0, codes::RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION),
            (RECORD_LIST_TOO_LARGE, codes::RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE),
            (INVALID_TIMESTAMP, codes::RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP),
            (
                UNSUPPORTED_FOR_MESSAGE_FORMAT,
                codes::RD_KAFKA_RESP_ERR_UNSUPPORTED_FOR_MESSAGE_FORMAT,
            ),
            (INVALID_RECORD, codes::RD_KAFKA_RESP_ERR_INVALID_RECORD),
            (UNKNOWN_TOPIC.0, codes::RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART),
            (TOPIC_AUTHORIZATION_FAILED.0, codes::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED),
            (31, codes::RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED),
            (35, codes::RD_KAFKA_RESP_ERR_UNSUPPORTED_VERSION),
            (58, codes::RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED),
        ] {
            assert_eq!(number, code as i32, "{code:?}");
        }
    }
}
