//! Error codes of brokers (<https://kafka.apache.org/protocol#protocol_error_codes>), and what each means for the
//! records that came back with it.

use std::fmt;

/// An error of a broker; 0 is none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code(pub i16);

/// What to do with the records of a batch that came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Send it again, after a pause.
    Again,
    /// The same, at first after a short one: the broker that takes it has changed.
    Moved,
    /// The batch cannot be taken; if it has one record only, the record cannot.
    Suspect,
    /// No broker can take it.
    Refused,
    /// It was there already.
    Taken,
    /// A batch before it is missing. If none is under way, the producer's number is of no use any more.
    Early,
    /// The producer's number is of no use any more; with another one, send it again.
    Stranger,
}

impl Code {
    /// No error.
    pub const NONE: Self = Self(0);
    /// The broker has no such topic or partition.
    pub const UNKNOWN_TOPIC: Self = Self(3);
    /// The partition has no leader now.
    pub const NO_LEADER: Self = Self(5);
    /// Larger than the broker takes.
    pub const MESSAGE_TOO_LARGE: Self = Self(10);
    /// The name of the topic is invalid.
    pub const INVALID_TOPIC: Self = Self(17);
    /// The user has no right to do this with the topic.
    pub const TOPIC_AUTHORIZATION_FAILED: Self = Self(29);
    /// The broker does not offer this login.
    pub const UNSUPPORTED_SASL_MECHANISM: Self = Self(33);
    /// The broker does not support this version of the request.
    pub const UNSUPPORTED_VERSION: Self = Self(35);

    /// The offset is outside of the log of the partition.
    pub const OFFSET_OUT_OF_RANGE: Self = Self(1);
    /// The group has another generation by now.
    pub const ILLEGAL_GENERATION: Self = Self(22);
    /// No protocol of this member is one of all others.
    pub const INCONSISTENT_GROUP_PROTOCOL: Self = Self(23);
    /// The group does not know the member.
    pub const UNKNOWN_MEMBER_ID: Self = Self(25);
    /// The session time-out is outside of the bounds of the broker.
    pub const INVALID_SESSION_TIMEOUT: Self = Self(26);
    /// Members must join again.
    pub const REBALANCE_IN_PROGRESS: Self = Self(27);
    /// The user has no right to read with the group.
    pub const GROUP_AUTHORIZATION_FAILED: Self = Self(30);
    /// Join again with the id of the answer.
    pub const MEMBER_ID_REQUIRED: Self = Self(79);
    /// Another member has the static id.
    pub const FENCED_INSTANCE_ID: Self = Self(82);

    /// The group has no coordinator now: it starts, loads the group, or is another broker.
    pub fn lacks_coordinator(self) -> bool {
        matches!(self.0, 14..=16)
    }

    /// Whether it is no error.
    pub fn is_ok(self) -> bool {
        self.0 == 0
    }

    /// Any other code can pass: a broker that is away, rights that are missing, a topic that is not there yet,
    /// a mistake in the settings of the broker. As in Filebeat, events wait for it.
    pub fn meaning(self) -> Meaning {
        match self.0 {
            0 | 46 => Meaning::Taken,
            3 | 5 | 6 => Meaning::Moved,
            4 | 10 | 18 | 32 | 43 | 87 => Meaning::Suspect,
            17 => Meaning::Refused,
            45 => Meaning::Early,
            47 | 49 | 59 | 90 => Meaning::Stranger,
            _ => Meaning::Again,
        }
    }

    /// The remedy; empty if unknown.
    pub fn advice(self) -> &'static str {
        match self.0 {
            3 => "create the topic, or allow the brokers to (`auto.create.topics.enable`)",
            29 => "give the user the rights Write and Describe on the topic",
            23 => "set the same `rebalance.strategy` for all members of the group",
            26 => {
                "see `session_timeout`, and `group.min.session.timeout.ms` and `group.max.session.timeout.ms` of the brokers"
            }
            30 => "give the user the right Read on the group",
            82 => "give each process its own `group_instance_id`",
            31 => {
                "give the user the right IdempotentWrite on the cluster, or unset `enable_idempotence`"
            }
            35 => "the brokers are too old",
            58 => "see `username`, `password` and `sasl.mechanism`",
            76 => "choose another `compression`",
            _ => "",
        }
    }

    /// The protocol's name for it, and its meaning.
    fn name(self) -> Option<(&'static str, &'static str)> {
        let found = NAMES.binary_search_by_key(&self.0, |(code, ..)| *code).ok()?;
        let (_, name, text) = NAMES[found];
        Some((name, text))
    }
}

/// Those that a producer or a consumer can meet.
const NAMES: [(i16, &str, &str); 62] = [
    (-1, "UNKNOWN_SERVER_ERROR", "the broker failed in a way that it does not know itself"),
    (1, "OFFSET_OUT_OF_RANGE", "the offset is outside of the log of the partition"),
    (2, "CORRUPT_MESSAGE", "the checksum or the size is wrong, or a key is missing"),
    (3, "UNKNOWN_TOPIC_OR_PARTITION", "the broker has no such topic or partition"),
    (4, "INVALID_FETCH_SIZE", "the size is wrong"),
    (5, "LEADER_NOT_AVAILABLE", "the partition has no leader"),
    (6, "NOT_LEADER_OR_FOLLOWER", "another broker leads the partition"),
    (7, "REQUEST_TIMED_OUT", "the replicas did not answer in time"),
    (8, "BROKER_NOT_AVAILABLE", "the broker is away"),
    (9, "REPLICA_NOT_AVAILABLE", "the replica is away"),
    (10, "MESSAGE_TOO_LARGE", "it is larger than the broker takes"),
    (13, "NETWORK_EXCEPTION", "the broker was cut off before it could answer"),
    (14, "COORDINATOR_LOAD_IN_PROGRESS", "the coordinator is still loading"),
    (15, "COORDINATOR_NOT_AVAILABLE", "the coordinator is away"),
    (16, "NOT_COORDINATOR", "another broker is the coordinator"),
    (17, "INVALID_TOPIC_EXCEPTION", "the name of the topic is invalid"),
    (18, "RECORD_LIST_TOO_LARGE", "the batch is larger than the broker takes"),
    (19, "NOT_ENOUGH_REPLICAS", "fewer replicas are in sync than the topic needs"),
    (
        20,
        "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
        "it is written to fewer replicas than the topic needs",
    ),
    (21, "INVALID_REQUIRED_ACKS", "the broker does not know such acknowledgements"),
    (22, "ILLEGAL_GENERATION", "the group has another generation by now"),
    (23, "INCONSISTENT_GROUP_PROTOCOL", "the members of the group have no strategy in common"),
    (24, "INVALID_GROUP_ID", "the name of the group is invalid"),
    (25, "UNKNOWN_MEMBER_ID", "the group does not know the member any more"),
    (26, "INVALID_SESSION_TIMEOUT", "the session time-out is outside of the bounds of the broker"),
    (27, "REBALANCE_IN_PROGRESS", "the group is distributing its partitions anew"),
    (29, "TOPIC_AUTHORIZATION_FAILED", "the user may not do this with the topic"),
    (30, "GROUP_AUTHORIZATION_FAILED", "the user may not read with this group"),
    (31, "CLUSTER_AUTHORIZATION_FAILED", "the user may not do this with the cluster"),
    (32, "INVALID_TIMESTAMP", "the broker does not take its time"),
    (33, "UNSUPPORTED_SASL_MECHANISM", "the broker does not offer this login"),
    (34, "ILLEGAL_SASL_STATE", "the broker does not expect a login now"),
    (35, "UNSUPPORTED_VERSION", "the broker does not speak this version of the protocol"),
    (36, "TOPIC_ALREADY_EXISTS", "there is such a topic"),
    (37, "INVALID_PARTITIONS", "the number of partitions is invalid"),
    (38, "INVALID_REPLICATION_FACTOR", "there are fewer brokers than the topic needs"),
    (41, "NOT_CONTROLLER", "another broker is the controller"),
    (42, "INVALID_REQUEST", "the broker does not understand the request"),
    (43, "UNSUPPORTED_FOR_MESSAGE_FORMAT", "the topic's format does not have this"),
    (44, "POLICY_VIOLATION", "a policy of the broker forbids it"),
    (45, "OUT_OF_ORDER_SEQUENCE_NUMBER", "a batch before it is missing"),
    (46, "DUPLICATE_SEQUENCE_NUMBER", "it is there already"),
    (47, "INVALID_PRODUCER_EPOCH", "the number of the producer is out of date"),
    (49, "INVALID_PRODUCER_ID_MAPPING", "the broker does not know the producer"),
    (53, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "the user may not do this in a transaction"),
    (54, "SECURITY_DISABLED", "the broker has no security"),
    (55, "OPERATION_NOT_ATTEMPTED", "the broker did not try"),
    (56, "KAFKA_STORAGE_ERROR", "the broker cannot write to its disk"),
    (58, "SASL_AUTHENTICATION_FAILED", "the login failed"),
    (59, "UNKNOWN_PRODUCER_ID", "the broker does not know the producer any more"),
    (72, "LISTENER_NOT_FOUND", "the leader does not listen where we are"),
    (74, "FENCED_LEADER_EPOCH", "another broker has become the leader"),
    (75, "UNKNOWN_LEADER_EPOCH", "the broker does not know of its leader yet"),
    (76, "UNSUPPORTED_COMPRESSION_TYPE", "the broker does not take this compression"),
    (78, "OFFSET_NOT_AVAILABLE", "the new leader does not know the end of its log yet"),
    (79, "MEMBER_ID_REQUIRED", "join again with the id of the answer"),
    (81, "GROUP_MAX_SIZE_REACHED", "the group has no room for another member"),
    (82, "FENCED_INSTANCE_ID", "another member has the same `group_instance_id`"),
    (87, "INVALID_RECORD", "the broker refuses the record"),
    (88, "UNSTABLE_OFFSET_COMMIT", "offsets of a transaction are being committed"),
    (89, "THROTTLING_QUOTA_EXCEEDED", "the quota is used up"),
    (90, "PRODUCER_FENCED", "another producer has taken the number"),
];

impl fmt::Display for Code {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some((name, text)) => write!(out, "{text} ({name})"),
            None => write!(out, "error {} of the broker", self.0),
        }
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kafka_protocol::ResponseError;

    #[test]
    fn names_are_those_of_the_protocol() {
        for (code, name, _) in NAMES {
            let theirs = ResponseError::try_from_code(code).expect("an error").to_string();
            let ours: String = name.split('_').flat_map(str::chars).collect();
            let ours = ours.trim_end_matches("EXCEPTION").to_lowercase();
            assert_eq!(theirs.to_lowercase().trim_end_matches("exception"), ours, "{code}");
        }
        assert!(NAMES.is_sorted_by_key(|(code, ..)| *code));
        assert_eq!(Code(999).to_string(), "error 999 of the broker");
        assert!(Code(10).to_string().contains("MESSAGE_TOO_LARGE"));
    }

    #[test]
    fn brokers_that_may_come_to_their_senses_are_asked_again() {
        for (code, meaning) in [
            (0, Meaning::Taken),
            (-1, Meaning::Again),
            (7, Meaning::Again),
            (19, Meaning::Again),
            (29, Meaning::Again),
            (6, Meaning::Moved),
            (10, Meaning::Suspect),
            (17, Meaning::Refused),
            (45, Meaning::Early),
            (59, Meaning::Stranger),
            (999, Meaning::Again),
        ] {
            assert_eq!(Code(code).meaning(), meaning, "{code}");
        }
    }
}
