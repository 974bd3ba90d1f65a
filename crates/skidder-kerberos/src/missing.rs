//! The replacement of [`Login`] in a build without Kerberos: there is never one.

use crate::{LoginError, Settings};

/// Logs in with Kerberos. This build cannot.
#[derive(Debug)]
pub enum Login {}

impl Login {
    /// Always [`LoginError::NotBuilt`].
    ///
    /// # Errors
    /// Always.
    pub fn new(_: &Settings) -> Result<Self, LoginError> {
        Err(LoginError::NotBuilt)
    }

    /// There is no Kerberos to get it from.
    ///
    /// # Errors
    /// Never, as it is never called.
    pub fn header(&self, _: &str) -> Result<String, LoginError> {
        match *self {}
    }
}
