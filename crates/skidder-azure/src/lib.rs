//! A client of Azure Blob Storage: where the credentials come from, signed requests over one connection, and what a
//! refusal means.
//!
//! ```text
//! Credential ─▶ Provider ─┐
//! Target ─────────────────┼─▶ Service ─▶ Client ─▶ Container: lists, gets, puts, leases
//! TLS, time limit ────────┘               (one for each worker)
//! ```
//!
//! The format is that of the REST interface
//! (<https://learn.microsoft.com/rest/api/storageservices/blob-service-rest-api>), in the version [`VERSION`].

mod blob;
mod client;
mod connection_string;
mod container;
mod credentials;
mod lease;
mod listing;
mod refused;
mod sign;
mod time;
mod tokens;

pub use blob::{BlobHead, GotBlob};
pub use client::{Client, Content, Failure, Service};
pub use connection_string::{ConnectionString, ConnectionStringError};
pub use container::{
    Changed, Condition, Container, List, PAGE_BLOBS_MAX, Put, check_container_name,
};
pub use credentials::{Credential, CredentialsError, Provider, Tokens};
pub use lease::{LEASE_MAX, LEASE_MIN, Lease};
pub use listing::{Listed, Listing};
pub use refused::Refused;
pub use sign::{AccountKey, KeyError};
pub use skidder_net::cloud::{Meter, Part, Target};
pub use time::http_time_of;
pub use tokens::{EVENT_HUBS, ManagedIdentity, TokenError, TokenSource, authority_host};

/// The version of the interface, which each request names.
pub const VERSION: &str = "2021-12-02";
