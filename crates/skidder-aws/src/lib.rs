//! Amazon's APIs without any network: signatures, credentials, errors. The caller brings the connection.

mod answer;
mod credentials;
mod sign;

pub use answer::text_of;
pub use credentials::{Credentials, ProfileError, ProfileFile};
pub use sign::{EMPTY_DIGEST, Request, Scope, authorization, digest, escape, time_of, time_text};
