//! A client of AMQP 1.0 (<https://docs.oasis-open.org/amqp/core/v1.0/os/amqp-core-overview-v1.0-os.html>): receivers with
//! credit, and requests with answers, over one connection.
//!
//! ```text
//! stream of skidder-net ─▶ frames.rs ─▶ driver.rs (one task, all state) ◀─▶ Receiver, Rpc
//!                                         │ performatives.rs, read.rs, write.rs
//!                                         └ heartbeats, credit, settlement
//! ```
//!
//! What a peer sends is read where it stands, without a tree of values and without recursion: no nesting of values can
//! exhaust the stack, and every length is bounded. See `docs/decisions/0042-own-amqp-client.md`.

mod connection;
mod driver;
mod error;
mod frames;
mod links;
mod message;
mod performatives;
mod read;
mod receiver;
mod rpc;
mod sasl;
mod websocket;
mod write;

pub use connection::{Connection, Opening};
pub use error::{AmqpError, Condition};
pub use message::{Answer, Message, Request};
pub use read::{Item, Malformed, Reader};
pub use receiver::{Attach, Delivery, Receiver};
pub use rpc::Rpc;
pub use sasl::Login;
pub use websocket::upgrade;
pub use write::{Value, Writer};
