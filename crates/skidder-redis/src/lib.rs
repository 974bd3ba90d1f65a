//! Connections to Redis, which the output and the input share: addresses, logins, the protocol, and what its errors
//! mean.
//!
//! Own code for the protocol: see `docs/decisions/0026-own-socks-resp-scram.md`.

mod advice;
mod resp;
mod server;
mod target;

pub use advice::with_advice;
pub use resp::{
    Connection, Reply, RespError, write_argument, write_command, write_head, write_in_place,
};
pub use server::Server;
pub use target::{Failure, Network, Target};
