//! Amazon's APIs without any network: signatures and credentials. The caller brings the connection.

mod credentials;
mod sign;

pub use credentials::{Credentials, ProfileError, ProfileFile};
pub use sign::{
    EMPTY_DIGEST, Request, Scope, SigningKey, authorization, digest, http_time_of, time_of,
    time_text,
};
