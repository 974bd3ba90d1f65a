//! Amazon's APIs without any network: signatures, credentials, errors, listings. The caller brings the connection.

mod answer;
mod credentials;
mod listing;
mod sign;

pub use answer::text_of;
pub use credentials::{Credentials, ProfileError, ProfileFile};
pub use listing::{Listed, Listing, ListingError, read_listing, unescape};
pub use sign::{
    EMPTY_DIGEST, Request, Scope, authorization, digest, escape, http_time_of, time_of, time_text,
};
