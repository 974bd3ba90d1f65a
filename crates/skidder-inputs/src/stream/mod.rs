//! Servers of streams: what `tcp`, `unix` and `syslog` have in common.
//!
//! [`serve`] binds the socket of a [`StreamServer`], accepts connections, splits what they send into messages, and sends
//! each message as an event of the connection's source. [`OnBatch`](skidder_input::OnBatch) may change the events of a batch before the processors
//! see them, as `syslog` does to parse them.
//!
//! What is lost, and when: nothing that was read, unless the queue is full for longer than a stop may take (counted as
//! `stopped`). A stop sends what the kernel has received, and the rest of a message without delimiter as an event. A reload
//! hands the socket and its connections to the next input. What the far side has sent and the kernel has not received at
//! that moment, only the far side knows.

pub(crate) mod buffers;
mod connection;
mod framing;
mod server;
mod settings;
mod tls_fields;

#[cfg(test)]
mod simulated;
#[cfg(test)]
mod tests;

pub use framing::{Frame, FrameError, Framing, Rest};
pub use server::{StreamServer, serve};
pub use settings::{CONNECTIONS, StreamSettings};
pub(crate) use settings::{MAX_MESSAGE_SIZE, MESSAGE_BYTES_LIMIT, MESSAGE_BYTES_MAX};
