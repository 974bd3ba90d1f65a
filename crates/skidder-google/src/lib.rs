//! Clients of Google's APIs, shared by inputs: where the credentials come from, tokens, requests over kept connections, and
//! what a refusal means.
//!
//! ```text
//! Source ─▶ Tokens ─┐
//! Target ───────────┼─▶ Service ─▶ Client ─▶ one answer whole, or in pieces
//! TLS, time limit ──┘            (shared by all workers)
//! ```
//!
//! On a client stands [`Storage`] (Cloud Storage). A token is signed for with `ring`, kept, and replaced before it ends.

mod client;
mod jwt;
mod key;
mod refused;
mod source;
mod storage;
mod tokens;

pub use client::{Client, Failure, Retry, Service};
pub use jwt::SignError;
pub use key::{KeyError, KeyFile, ServiceAccount, User};
pub use refused::Refused;
pub use skidder_net::cloud::{Meter, Target};
pub use source::{Source, SourceError};
pub use storage::{
    Content, GotObject, List, Listed, Listing, ObjectName, PAGE_OBJECTS_MAX, Part, SCOPE_READ_ONLY,
    STORAGE_URL, Storage,
};
pub use tokens::{TokenError, Tokens};
