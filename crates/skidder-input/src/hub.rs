//! The numbers of an input that reads an event hub.

use skidder_event::{Counter, Sample};

/// What such an input reports, with the names of Filebeat's `azure-eventhub` under `/inputs/`.
#[derive(Debug, Default)]
pub struct HubCounts {
    /// `received_messages_total`: messages received.
    pub messages: Counter,
    /// `received_bytes_total`: bytes of their bodies.
    pub bytes: Counter,
    /// `invalid_json_messages_total`: messages that were no JSON as they came.
    pub invalid: Counter,
    /// `sanitized_messages_total`: of these, messages that a sanitizer has gone over.
    pub sanitized: Counter,
    /// `processed_messages_total`: messages all of whose events the queue took.
    pub processed: Counter,
    /// `received_events_total`: events of messages.
    pub events: Counter,
    /// `sent_events_total`: events that the queue took.
    pub sent: Counter,
    /// `decode_errors_total`: messages that are no JSON, and were sent as they are.
    pub decode_errors: Counter,
    /// `processor_restarts_total`: how often partitions could not be claimed, and it was tried again.
    pub restarts: Counter,
    /// `processing_time`: nanoseconds from the receipt of a batch until the queue took it.
    pub processing_time: Sample,
}
