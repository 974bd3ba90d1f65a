//! librdkafka, made safe: a producer whose reports are asked for without waiting. The only `unsafe` code of
//! this crate.
//!
//! librdkafka has threads of its own. What it has to tell lies in one queue of its own, the main queue;
//! when something comes into the empty queue, it rings ([`Producer::new`]), and whoever heard it asks for
//! all of it ([`Producer::poll`]). Nobody waits in a loop.
//!
//! Contracts of the calls: `rdkafka.h` of librdkafka 2.12.
#![expect(unsafe_code, reason = "calls of a C library")]

mod read;
mod rights;

use rdkafka_sys::bindings as sys;
use rdkafka_sys::bindings::rd_kafka_vtype_t as tag;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{IntoRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// Room for librdkafka's words.
const TEXT_BYTES: usize = 512;

/// An error of librdkafka (below zero) or of a broker (above).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Code(pub(crate) i32);

impl Code {
    fn of(code: sys::rd_kafka_resp_err_t) -> Self {
        Self(code as i32)
    }

    pub(crate) fn is_ok(self) -> bool {
        self.0 == 0
    }

    /// The name, as in `rdkafka.h`; empty if librdkafka does not know it.
    fn name(self) -> &'static str {
        let Ok(code) = sys::rd_kafka_resp_err_t::try_from(self.0) else { return "" };
        // SAFETY: the text is static and ends with zero.
        let name = unsafe { CStr::from_ptr(sys::rd_kafka_err2name(code)) };
        name.to_str().unwrap_or_default()
    }
}

impl fmt::Display for Code {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ok(code) = sys::rd_kafka_resp_err_t::try_from(self.0) else {
            return write!(out, "error {} of the broker", self.0);
        };
        // SAFETY: the text is static and ends with zero.
        let text = unsafe { CStr::from_ptr(sys::rd_kafka_err2str(code)) };
        write!(out, "{} ({})", text.to_string_lossy(), self.name())
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

/// What librdkafka tells.
#[derive(Debug)]
pub(crate) enum Report<'a> {
    /// A record is where it should be; with the number that it was sent with.
    Delivered(u64),
    /// A record came back.
    Failed { number: u64, code: Code, partition: i32 },
    /// Something went wrong with brokers; librdkafka goes on.
    Error(Code, &'a str),
    /// A line for the log: level of syslog, what it is about, the text.
    Log(i32, &'a str, &'a str),
}

/// Who makes connections, if not librdkafka itself. Called in its threads; may not wait.
pub(crate) trait Connect: Send + Sync {
    /// An end of a new connection, for librdkafka, which closes it.
    fn socket(&self) -> io::Result<OwnedFd>;

    /// That end is to lead to this address of the broker `node`, a `host:port`.
    fn connect(&self, socket: RawFd, address: SocketAddr, node: &str) -> io::Result<()>;
}

/// What the callbacks are given; lives as long as the producer.
struct Surroundings {
    connect: Option<Arc<dyn Connect>>,
    ring: Arc<Notify>,
}

/// A partition as the brokers tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PartitionState {
    pub(crate) id: i32,
    /// The broker that takes its records; below zero if there is none.
    pub(crate) leader: i32,
}

/// A topic as the brokers tell it.
#[derive(Clone, Debug)]
pub(crate) struct TopicState {
    pub(crate) code: Code,
    /// In the order of their numbers.
    pub(crate) partitions: Vec<PartitionState>,
}

/// What a broker knows of all of them.
#[derive(Clone, Debug)]
pub(crate) struct Metadata {
    /// `host:port` by number.
    pub(crate) brokers: BTreeMap<i32, String>,
    pub(crate) topics: BTreeMap<String, TopicState>,
}

/// The handle of librdkafka and what must go before or after it.
struct Client {
    handle: *mut sys::rd_kafka_t,
    queue: *mut sys::rd_kafka_queue_t,
    headers: *mut sys::rd_kafka_headers_t,
    surroundings: *mut Surroundings,
}

// SAFETY: librdkafka's functions may be called from any thread at any time; `headers` is only read (copied)
// after it was made; `surroundings` is only read.
unsafe impl Send for Client {}
// SAFETY: as above.
unsafe impl Sync for Client {}

impl Drop for Client {
    fn drop(&mut self) {
        // SAFETY: all were made in `Producer::new`, and nobody has them any more: topics keep a reference to
        // this. The callback is gone before what it is given; what is still under way is let go first, so that
        // destroying does not wait for it.
        unsafe {
            sys::rd_kafka_queue_cb_event_enable(self.queue, None, ptr::null_mut());
            let flags = sys::RD_KAFKA_PURGE_F_QUEUE | sys::RD_KAFKA_PURGE_F_INFLIGHT;
            sys::rd_kafka_purge(self.handle, flags as c_int);
            sys::rd_kafka_queue_destroy(self.queue);
            sys::rd_kafka_destroy(self.handle);
            if !self.headers.is_null() {
                sys::rd_kafka_headers_destroy(self.headers);
            }
            drop(Box::from_raw(self.surroundings));
        }
    }
}

/// A producer. Cloning gives another handle to the same one.
#[derive(Clone)]
pub(crate) struct Producer(Arc<Client>);

/// A topic of a producer.
pub(crate) struct Topic {
    topic: *mut sys::rd_kafka_topic_t,
    /// A topic may not outlive its client.
    _client: Arc<Client>,
}

// SAFETY: as for `Client`.
unsafe impl Send for Topic {}
// SAFETY: as for `Client`.
unsafe impl Sync for Topic {}

impl Drop for Topic {
    fn drop(&mut self) {
        // SAFETY: it was made by `Producer::topic`, and its client is still there.
        unsafe { sys::rd_kafka_topic_destroy(self.topic) }
    }
}

/// One record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'a> {
    pub(crate) partition: i32,
    pub(crate) key: Option<&'a [u8]>,
    pub(crate) value: &'a [u8],
    /// Milliseconds since 1970; 0 = now.
    pub(crate) timestamp: i64,
    /// Comes back with the report.
    pub(crate) number: u64,
}

impl Producer {
    /// Sets librdkafka up with these properties. Connects to nobody as long as `bootstrap.servers` is not
    /// among them. `ring` is rung when there is something to [`poll`](Self::poll). The error is librdkafka's
    /// text.
    pub(crate) fn new(
        properties: &[(&'static str, String)],
        headers: &[(String, String)],
        connect: Option<Arc<dyn Connect>>,
        ring: Arc<Notify>,
    ) -> Result<Self, String> {
        let mut text: [c_char; TEXT_BYTES] = [0; TEXT_BYTES];
        let conf = Conf::new(properties, connect.is_some())?;
        let surroundings = Box::into_raw(Box::new(Surroundings { connect, ring }));
        // SAFETY: the pointers are valid; `surroundings` lives until the client is destroyed. If it succeeds,
        // the client owns `conf`; if not, `conf` is still ours and is destroyed with its owner.
        let client = unsafe {
            sys::rd_kafka_conf_set_opaque(conf.0, surroundings.cast());
            let kind = sys::rd_kafka_type_t::RD_KAFKA_PRODUCER;
            sys::rd_kafka_new(kind, conf.0, text.as_mut_ptr(), text.len())
        };
        if client.is_null() {
            // SAFETY: nobody has it.
            drop(unsafe { Box::from_raw(surroundings) });
            return Err(text_of(&text));
        }
        std::mem::forget(conf);
        // SAFETY: the client is valid, and so is its queue, until `Client::drop`.
        let client = unsafe {
            let queue = sys::rd_kafka_queue_get_main(client);
            sys::rd_kafka_set_log_queue(client, queue);
            Client { handle: client, queue, headers: make_headers(headers), surroundings }
        };
        // SAFETY: `surroundings` outlives the callback, see `Client::drop`.
        unsafe {
            sys::rd_kafka_queue_cb_event_enable(client.queue, Some(ring_cb), surroundings.cast());
        }
        Ok(Self(Arc::new(client)))
    }

    /// A topic by its name, which has no byte of zero.
    pub(crate) fn topic(&self, name: &str) -> Option<Topic> {
        let name = CString::new(name).ok()?;
        // SAFETY: the client is valid, the name ends with zero, and no settings means the client's own.
        let topic =
            unsafe { sys::rd_kafka_topic_new(self.0.handle, name.as_ptr(), ptr::null_mut()) };
        let client = Arc::clone(&self.0);
        (!topic.is_null()).then_some(Topic { topic, _client: client })
    }

    /// Hands a record over; it is copied. An error says that it was not taken, and nothing will be
    /// reported of it.
    #[inline]
    pub(crate) fn send(&self, topic: &Topic, record: Record<'_>) -> Result<(), Code> {
        let (key, key_len) = match record.key {
            // A key that is there and empty is not the same as none.
            Some([]) => (c"".as_ptr().cast::<u8>(), 0),
            Some(key) => (key.as_ptr(), key.len()),
            None => (ptr::null(), 0),
        };
        // SAFETY: the arguments are those that each tag wants, in its types, and end with `END`. Key and
        // value are copied before it returns. The copy of the headers belongs to librdkafka if it
        // succeeds.
        unsafe {
            let headers = if self.0.headers.is_null() {
                ptr::null_mut()
            } else {
                sys::rd_kafka_headers_copy(self.0.headers)
            };
            let code = sys::rd_kafka_producev(
                self.0.handle,
                tag::RD_KAFKA_VTYPE_RKT,
                topic.topic,
                tag::RD_KAFKA_VTYPE_PARTITION,
                record.partition,
                tag::RD_KAFKA_VTYPE_MSGFLAGS,
                sys::RD_KAFKA_MSG_F_COPY as c_int,
                tag::RD_KAFKA_VTYPE_VALUE,
                record.value.as_ptr().cast_mut().cast::<c_void>(),
                record.value.len(),
                tag::RD_KAFKA_VTYPE_KEY,
                key.cast_mut().cast::<c_void>(),
                key_len,
                tag::RD_KAFKA_VTYPE_OPAQUE,
                ptr::without_provenance_mut::<c_void>(record.number as usize),
                tag::RD_KAFKA_VTYPE_TIMESTAMP,
                record.timestamp,
                tag::RD_KAFKA_VTYPE_HEADERS,
                headers,
                tag::RD_KAFKA_VTYPE_END,
            );
            if code == sys::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR {
                return Ok(());
            }
            if !headers.is_null() {
                sys::rd_kafka_headers_destroy(headers);
            }
            Err(Code::of(code))
        }
    }

    /// Gives all that there is to `each`; does not wait.
    pub(crate) fn poll(&self, each: &mut dyn FnMut(Report<'_>)) {
        loop {
            // SAFETY: the queue is valid; an event is destroyed once, after the last use of what is in it.
            unsafe {
                let event = sys::rd_kafka_queue_poll(self.0.queue, 0);
                if event.is_null() {
                    return;
                }
                read::event(event, each);
                sys::rd_kafka_event_destroy(event);
            }
        }
    }

    /// Asks the brokers what they know: of this topic, which a broker may create for that, or of all. Waits
    /// for the answer.
    pub(crate) fn metadata(
        &self,
        topic: Option<&Topic>,
        timeout: Duration,
    ) -> Result<Metadata, Code> {
        let mut found: *const sys::rd_kafka_metadata = ptr::null();
        let only = topic.map_or(ptr::null_mut(), |topic| topic.topic);
        let milliseconds = timeout.as_millis().clamp(1, i32::MAX as u128) as c_int;
        // SAFETY: all pointers are valid; what is found is read and destroyed once.
        unsafe {
            let all = c_int::from(topic.is_none());
            let code =
                sys::rd_kafka_metadata(self.0.handle, all, only, &raw mut found, milliseconds);
            if code != sys::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR || found.is_null() {
                return Err(Code::of(code));
            }
            let metadata = read::metadata(&*found);
            sys::rd_kafka_metadata_destroy(found);
            Ok(metadata)
        }
    }

    /// Sends without waiting for fuller batches, for at most this long; says whether all was reported. The
    /// reports still have to be asked for.
    pub(crate) fn flush(&self, limit: Duration) -> bool {
        let milliseconds = limit.as_millis().min(i32::MAX as u128) as c_int;
        // SAFETY: the client is valid.
        let code = unsafe { sys::rd_kafka_flush(self.0.handle, milliseconds) };
        code == sys::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR
    }
}

/// Settings that no client owns yet.
struct Conf(*mut sys::rd_kafka_conf_t);

impl Drop for Conf {
    fn drop(&mut self) {
        // SAFETY: it is ours; a client that takes it makes us forget it.
        unsafe { sys::rd_kafka_conf_destroy(self.0) }
    }
}

impl Conf {
    fn new(properties: &[(&'static str, String)], own_connections: bool) -> Result<Self, String> {
        // SAFETY: it always succeeds.
        let conf = Self(unsafe { sys::rd_kafka_conf_new() });
        let mut text: [c_char; TEXT_BYTES] = [0; TEXT_BYTES];
        for (name, value) in properties {
            let zero = |_| format!("`{name}` has a byte of zero");
            let name_text = CString::new(*name).map_err(zero)?;
            let value = CString::new(value.as_str()).map_err(zero)?;
            // SAFETY: the texts end with zero and are copied; librdkafka ends its own words with zero.
            let result = unsafe {
                let (name, value) = (name_text.as_ptr(), value.as_ptr());
                sys::rd_kafka_conf_set(conf.0, name, value, text.as_mut_ptr(), text.len())
            };
            if result != sys::rd_kafka_conf_res_t::RD_KAFKA_CONF_OK {
                return Err(text_of(&text));
            }
        }
        let events = sys::RD_KAFKA_EVENT_DR | sys::RD_KAFKA_EVENT_LOG | sys::RD_KAFKA_EVENT_ERROR;
        // SAFETY: `conf` is valid; the callbacks get `Surroundings`.
        unsafe {
            sys::rd_kafka_conf_set_events(conf.0, events as c_int);
            if own_connections {
                sys::rd_kafka_conf_set_socket_cb(conf.0, Some(socket_cb));
                sys::rd_kafka_conf_set_connect_cb(conf.0, Some(connect_cb));
            }
        }
        Ok(conf)
    }
}

/// # Safety
///
/// librdkafka must be there, which it always is.
unsafe fn make_headers(headers: &[(String, String)]) -> *mut sys::rd_kafka_headers_t {
    if headers.is_empty() {
        return ptr::null_mut();
    }
    // SAFETY: key and value are given with their lengths and copied.
    unsafe {
        let made = sys::rd_kafka_headers_new(headers.len());
        for (key, value) in headers {
            let (name, value_bytes) = (key.as_ptr().cast(), value.as_ptr().cast());
            let (name_len, value_len) = (key.len() as isize, value.len() as isize);
            sys::rd_kafka_header_add(made, name, name_len, value_bytes, value_len);
        }
        made
    }
}

unsafe extern "C" fn ring_cb(_: *mut sys::rd_kafka_t, surroundings: *mut c_void) {
    // SAFETY: set in `Producer::new`, and valid as long as the callback is.
    let surroundings = unsafe { &*surroundings.cast::<Surroundings>() };
    surroundings.ring.notify_one();
}

unsafe extern "C" fn socket_cb(_: c_int, _: c_int, _: c_int, surroundings: *mut c_void) -> c_int {
    // SAFETY: as in `ring_cb`.
    let surroundings = unsafe { &*surroundings.cast::<Surroundings>() };
    let made = surroundings.connect.as_ref().map(|connect| connect.socket());
    match made {
        Some(Ok(socket)) => socket.into_raw_fd(),
        Some(Err(_)) | None => -1,
    }
}

unsafe extern "C" fn connect_cb(
    socket: c_int,
    address: *const libc::sockaddr,
    _: c_int,
    node: *const c_char,
    surroundings: *mut c_void,
) -> c_int {
    // SAFETY: as in `ring_cb`; the address is one of IPv4 or IPv6, as its first field says, and the node's
    // name ends with zero.
    let (surroundings, address, node) = unsafe {
        let surroundings = &*surroundings.cast::<Surroundings>();
        (surroundings, read::address(address), CStr::from_ptr(node))
    };
    let (Some(connect), Some(address)) = (&surroundings.connect, address) else {
        return errno(&io::ErrorKind::Unsupported.into());
    };
    match connect.connect(socket, address, &node.to_string_lossy()) {
        Ok(()) => 0,
        Err(error) => errno(&error),
    }
}

/// What librdkafka takes for an error of the system: 95 is EOPNOTSUPP.
fn errno(error: &io::Error) -> c_int {
    error.raw_os_error().unwrap_or(95)
}

fn text_of(text: &[c_char]) -> String {
    let bytes: Vec<u8> =
        text.iter().map(|&byte| byte as u8).take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
