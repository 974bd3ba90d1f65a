//! A client of gRPC over the connections of `skidder-net`: single calls, and streams in both directions.
//!
//! ```text
//! Route (proxies, TLS) ─▶ Channel, one connection of HTTP/2 ─┬─▶ call: one message, one answer
//!                                                            └─▶ stream: Requests ─▶ … ─▶ Answers
//! ```
//!
//! Messages are types with `prost`'s derive, written by hand from the `.proto` files of the service. Nothing is repeated
//! here, and no connection is opened again: the caller knows what may be sent twice. See
//! <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md> and
//! `docs/decisions/0041-pubsub-without-its-client.md`.

mod body;
mod channel;
mod frames;
mod status;
mod stream;
#[cfg(test)]
mod tests;

pub use channel::{CallError, Channel, Origin};
pub use frames::{HEAD_BYTES, head};
pub use status::{
    Code, Delay, Detail, ErrorInfo, RetryInfo, RpcStatus, Status, code_name, decode_percent,
};
pub use stream::{Answers, Requests, RequestsClosed};
