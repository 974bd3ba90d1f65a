//! What goes wrong on a connection.

use crate::read::Malformed;
use std::fmt;
use std::io;
use std::sync::Arc;

/// An error that the peer reports (part 2, 2.8.14 of the specification).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// Its name, as `amqp:link:stolen`; empty if the peer gave none.
    pub name: String,
    /// For people; perhaps empty.
    pub description: String,
}

impl fmt::Display for Condition {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Event Hubs adds numbers of the request behind the first sentences, on lines of their own.
        let description = self.description.lines().next().unwrap_or_default().trim();
        match (&*self.name, description) {
            ("", "") => out.write_str("no reason was given"),
            (name, "") => out.write_str(name),
            ("", text) => out.write_str(text),
            (name, text) => write!(out, "{name}: {text}"),
        }
    }
}

/// Why something was not done. What follows from it is that of the variant.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AmqpError {
    /// The stream broke. The connection is over.
    #[error("the connection broke: {0}")]
    Io(Arc<io::Error>),
    /// The peer ended the connection, or the session of the link. The connection is over.
    #[error("the server ended the connection: {0}")]
    Closed(Condition),
    /// The peer ended the link, or did not let it begin. The connection goes on.
    #[error("the server ended the link: {0}")]
    Detached(Condition),
    /// The login was refused.
    #[error("the server refused the login by SASL: {0}")]
    Login(String),
    /// The peer does not speak AMQP 1.0. The connection is over.
    #[error("the server does not speak AMQP 1.0: {0}")]
    Protocol(String),
    /// No answer in time. The connection is to be closed.
    #[error("no answer to {0} within {1} s")]
    Timeout(&'static str, u64),
    /// This side closed the connection.
    #[error("the connection was closed")]
    Gone,
}

impl AmqpError {
    /// The condition that the peer has reported.
    pub fn condition(&self) -> Option<&Condition> {
        match self {
            Self::Closed(condition) | Self::Detached(condition) => Some(condition),
            _ => None,
        }
    }

    /// Whether other links of the connection work on.
    pub fn is_of_link(&self) -> bool {
        matches!(self, Self::Detached(_))
    }
}

impl From<io::Error> for AmqpError {
    fn from(error: io::Error) -> Self {
        Self::Io(Arc::new(error))
    }
}

impl From<Malformed> for AmqpError {
    fn from(error: Malformed) -> Self {
        Self::Protocol(error.to_string())
    }
}
