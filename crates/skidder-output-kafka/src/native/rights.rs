//! What the user may do with a topic, as the brokers tell it
//! (<https://cwiki.apache.org/confluence/display/KAFKA/KIP-430>).

use super::{Code, Producer};
use rdkafka_sys::bindings as sys;
use std::ffi::{CString, c_int};
use std::ptr;
use std::slice;
use std::time::Duration;

/// How much later than the answer of the brokers librdkafka's own may come.
const GRACE: Duration = Duration::from_secs(1);

/// What librdkafka is asked with, and its answer; freed in the end.
struct Question {
    queue: *mut sys::rd_kafka_queue_t,
    options: *mut sys::rd_kafka_AdminOptions_t,
    topics: *mut sys::rd_kafka_TopicCollection_t,
    answer: *mut sys::rd_kafka_event_t,
}

impl Drop for Question {
    fn drop(&mut self) {
        // SAFETY: each was made by the question or is null, and nobody else has it.
        unsafe {
            if !self.answer.is_null() {
                sys::rd_kafka_event_destroy(self.answer);
            }
            sys::rd_kafka_TopicCollection_destroy(self.topics);
            sys::rd_kafka_AdminOptions_destroy(self.options);
            sys::rd_kafka_queue_destroy(self.queue);
        }
    }
}

impl Producer {
    /// Whether the user may write to a topic; `None` if the brokers do not say. Waits for the answer.
    pub(crate) fn may_write(&self, topic: &str, timeout: Duration) -> Result<Option<bool>, Code> {
        let Ok(name) = CString::new(topic) else { return Ok(None) };
        let milliseconds = |span: Duration| span.as_millis().clamp(1, i32::MAX as u128) as c_int;
        let client = self.0.handle;
        // SAFETY: the client is valid for all of this; the name is copied. What is set or asked wrongly comes back as
        // an error, which is destroyed here or freed with the answer that it belongs to.
        unsafe {
            let mut names = [name.as_ptr()];
            let operation = sys::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_DESCRIBETOPICS;
            let mut question = Question {
                queue: sys::rd_kafka_queue_new(client),
                options: sys::rd_kafka_AdminOptions_new(client, operation),
                topics: sys::rd_kafka_TopicCollection_of_topic_names(names.as_mut_ptr(), 1),
                answer: ptr::null_mut(),
            };
            let options = question.options;
            let error = sys::rd_kafka_AdminOptions_set_include_authorized_operations(options, 1);
            if !error.is_null() {
                sys::rd_kafka_error_destroy(error);
                return Ok(None);
            }
            // If it is out of bounds, librdkafka's own holds.
            sys::rd_kafka_AdminOptions_set_request_timeout(
                options,
                milliseconds(timeout),
                ptr::null_mut(),
                0,
            );
            sys::rd_kafka_DescribeTopics(client, question.topics, options, question.queue);
            let limit = milliseconds(timeout.saturating_add(GRACE));
            question.answer = sys::rd_kafka_queue_poll(question.queue, limit);
            if question.answer.is_null() {
                return Err(crate::codes::TIMED_OUT);
            }
            let code = Code::of(sys::rd_kafka_event_error(question.answer));
            if !code.is_ok() {
                return Err(code);
            }
            rights(question.answer)
        }
    }
}

/// # Safety
///
/// `answer` is an event that came for a question.
unsafe fn rights(answer: *mut sys::rd_kafka_event_t) -> Result<Option<bool>, Code> {
    // SAFETY: all of it belongs to the event, which lives longer, and lists have the lengths that come with them.
    unsafe {
        let result = sys::rd_kafka_event_DescribeTopics_result(answer);
        if result.is_null() {
            return Ok(None);
        }
        let mut count = 0;
        let topics = sys::rd_kafka_DescribeTopics_result_topics(result, &raw mut count);
        if topics.is_null() || count == 0 {
            return Ok(None);
        }
        let error = sys::rd_kafka_TopicDescription_error(*topics);
        if !error.is_null() {
            let code = Code::of(sys::rd_kafka_error_code(error));
            if !code.is_ok() {
                return Err(code);
            }
        }
        let mut count = 0;
        let operations =
            sys::rd_kafka_TopicDescription_authorized_operations(*topics, &raw mut count);
        if operations.is_null() {
            return Ok(None);
        }
        // As numbers: a broker may know some that the type does not have.
        let operations = slice::from_raw_parts(operations.cast::<i32>(), count);
        let write = sys::rd_kafka_AclOperation_t::RD_KAFKA_ACL_OPERATION_WRITE as i32;
        Ok(Some(operations.contains(&write)))
    }
}
