//! What librdkafka points to, as values of our own.

use super::{Code, Metadata, PartitionState, Report, TopicState};
use rdkafka_sys::bindings as sys;
use std::ffi::{CStr, c_int};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ptr;

/// # Safety
///
/// `address` points to a whole address of the family that its first field says.
pub(super) unsafe fn address(address: *const libc::sockaddr) -> Option<SocketAddr> {
    // SAFETY: the family says which of the types it is.
    unsafe {
        match c_int::from((*address).sa_family) {
            libc::AF_INET => {
                let v4 = ptr::read_unaligned(address.cast::<libc::sockaddr_in>());
                let ip = Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr));
                Some(SocketAddr::new(IpAddr::V4(ip), u16::from_be(v4.sin_port)))
            }
            libc::AF_INET6 => {
                let v6 = ptr::read_unaligned(address.cast::<libc::sockaddr_in6>());
                let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
                Some(SocketAddr::new(IpAddr::V6(ip), u16::from_be(v6.sin6_port)))
            }
            _ => None,
        }
    }
}

/// # Safety
///
/// The event is valid.
pub(super) unsafe fn event(event: *mut sys::rd_kafka_event_t, each: &mut dyn FnMut(Report<'_>)) {
    // SAFETY: each call is one for this type of event; texts end with zero and live as long as the event.
    unsafe {
        match sys::rd_kafka_event_type(event) {
            sys::RD_KAFKA_EVENT_DR => loop {
                let message = sys::rd_kafka_event_message_next(event);
                if message.is_null() {
                    return;
                }
                let number = (*message)._private.addr() as u64;
                // A broker may answer what the type does not have.
                let code = Code((&raw const (*message).err).cast::<i32>().read());
                each(if code.is_ok() {
                    Report::Delivered(number)
                } else {
                    Report::Failed { number, code, partition: (*message).partition }
                });
            },
            sys::RD_KAFKA_EVENT_ERROR => {
                let code = Code::of(sys::rd_kafka_event_error(event));
                let text = CStr::from_ptr(sys::rd_kafka_event_error_string(event));
                each(Report::Error(code, &text.to_string_lossy()));
            }
            sys::RD_KAFKA_EVENT_LOG => {
                let (mut about, mut text) = (ptr::null(), ptr::null());
                let mut level = 0;
                let result =
                    sys::rd_kafka_event_log(event, &raw mut about, &raw mut text, &raw mut level);
                if result == 0 {
                    let (about, text) = (CStr::from_ptr(about), CStr::from_ptr(text));
                    let about = about.to_string_lossy();
                    each(Report::Log(level, &about, &text.to_string_lossy()));
                }
            }
            _ => {}
        }
    }
}

/// # Safety
///
/// The numbers in it are those of its lists, and its texts end with zero.
pub(super) unsafe fn metadata(found: &sys::rd_kafka_metadata) -> Metadata {
    // SAFETY: as promised above.
    unsafe {
        let brokers = list(found.brokers, found.broker_cnt).map(|broker| {
            let host = CStr::from_ptr(broker.host).to_string_lossy();
            (broker.id, format!("{host}:{}", broker.port))
        });
        let topics = list(found.topics, found.topic_cnt).map(|topic| {
            let partition = |partition: &sys::rd_kafka_metadata_partition| PartitionState {
                id: partition.id,
                leader: partition.leader,
            };
            let mut partitions: Vec<PartitionState> =
                list(topic.partitions, topic.partition_cnt).map(partition).collect();
            partitions.sort_by_key(|partition| partition.id);
            let code = Code((&raw const topic.err).cast::<i32>().read());
            let name = CStr::from_ptr(topic.topic).to_string_lossy().into_owned();
            (name, TopicState { code, partitions })
        });
        Metadata { brokers: brokers.collect(), topics: topics.collect() }
    }
}

/// # Safety
///
/// `first` points to `count` items that live as long as the answer is used.
unsafe fn list<'a, T>(first: *const T, count: c_int) -> std::slice::Iter<'a, T> {
    if first.is_null() || count <= 0 {
        return [].iter();
    }
    // SAFETY: as promised above.
    unsafe { std::slice::from_raw_parts(first, count as usize) }.iter()
}
