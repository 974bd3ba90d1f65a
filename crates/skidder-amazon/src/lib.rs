//! Clients of Amazon's APIs, shared by inputs and outputs: where the credentials come from, signed requests over one
//! connection, and what a refusal means.
//!
//! ```text
//! Source ─▶ Provider ─┐
//! Target ─────────────┼─▶ Service ─▶ Client ─▶ one answer whole, or in pieces
//! TLS, time limit ────┘               (one for each worker)
//! ```
//!
//! On a client stand [`Bucket`] (S3), [`Queue`] (SQS) and [`Logs`] (CloudWatch Logs).
//!
//! Signatures, and formats that need no network, are in `skidder-aws`.

mod assume;
mod bucket;
mod client;
mod credentials;
mod json;
mod listing;
mod logs;
mod object;
mod queue;
mod refused;
mod roles;
mod sign;
mod urls;

pub use assume::Assume;
pub use bucket::{Bucket, Copied, GotObject, List, ObjectName, PAGE_OBJECTS_MAX};
pub use client::{Client, Content, Failure, Service};
pub use credentials::{CREDENTIALS, CredentialsError, Provider, Source};
pub use listing::{Listed, Listing};
pub use logs::{
    EVENTS_MAX, EventFilter, FoundGroup, FoundStream, LogEvent, LogGroup, LogStreams, Logs, Page,
    STREAMS_MAX,
};
pub use object::ObjectHead;
pub use queue::{
    BATCH_MAX, EntryError, EntryResults, Message, Queue, QueueAttributes, QueueUrl, Receive,
    VISIBILITY_MAX, WAIT_MAX,
};
pub use refused::Refused;
pub use roles::{ContainerToken, Role, RoleError};
pub use sign::DIGEST;
pub use skidder_net::cloud::{Ask, Meter, Part, Target};
pub use urls::{bucket_url, service_url};
