//! Clients of Amazon's APIs, shared by inputs and outputs: where the credentials come from, signed requests over one
//! connection, and what a refusal means.
//!
//! ```text
//! Source ─▶ Provider ─┐
//! Target ─────────────┼─▶ Service ─▶ Client ─▶ one answer whole, or in pieces
//! TLS, time limit ────┘               (one for each worker)
//! ```
//!
//! Signatures, and formats that need no network, are in `skidder-aws`.

mod assume;
mod client;
mod credentials;
mod refused;
mod roles;
mod sign;
mod target;

pub use assume::Assume;
pub use client::{Answer, Ask, Body, Client, Failure, Meter, Opened, Service};
pub use credentials::{CREDENTIALS, CredentialsError, Provider, Source};
pub use refused::Refused;
pub use roles::{ContainerToken, Role, RoleError};
pub use sign::HeaderError;
pub use target::{Target, service_url, usual_port};
