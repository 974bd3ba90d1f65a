//! A server, and how a connection to it is opened.

use crate::resp::{Connection, Reply, RespError};
use skidder_config::Secret;
use skidder_net::{NetError, Route, redact};
use std::time::Duration;

/// One server with the login and database of its connections.
#[derive(Clone, Debug)]
pub struct Target {
    /// The server.
    pub route: Route,
    /// User, which may be empty, and password.
    pub credentials: Option<(String, Secret)>,
    /// Number of the database.
    pub db: u32,
}

/// Why something was not done. In every case it is tried again, later.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// There is no connection.
    #[error(transparent)]
    Net(#[from] NetError),
    /// The connection is over.
    #[error(transparent)]
    Connection(#[from] RespError),
    /// The server refused a command that each connection begins with.
    #[error("the server refused {command}: {error}")]
    Greeting {
        /// Its name.
        command: &'static str,
        /// The answer.
        error: String,
    },
    /// The server refused another command.
    #[error("the server answered: {0}")]
    Answer(String),
}

impl Target {
    /// A connection on which commands can be sent.
    pub async fn open(&self, timeout: Duration) -> Result<Connection, Failure> {
        let stream = self.route.open(timeout).await?;
        let mut connection = Connection::new(stream, timeout);
        self.log_in(&mut connection).await?;
        good("PING", connection.ask(&[b"PING"]).await?)?;
        self.select(&mut connection).await?;
        Ok(connection)
    }

    /// Shows the credentials, if there are any.
    pub async fn log_in(&self, connection: &mut Connection) -> Result<(), Failure> {
        let Some((user, password)) = &self.credentials else { return Ok(()) };
        let credentials = password;
        let password = password.reveal().as_bytes();
        let answer = if user.is_empty() {
            connection.ask(&[b"AUTH", password]).await?
        } else {
            connection.ask(&[b"AUTH", user.as_bytes(), password]).await?
        };
        good("AUTH", answer).map_err(|failure| match failure {
            // A server that does not know the command repeats its arguments.
            Failure::Greeting { command, error } => {
                let error = redact(&error, credentials.reveal());
                Failure::Greeting { command, error }
            }
            failure => failure,
        })
    }

    /// Turns to the database.
    pub async fn select(&self, connection: &mut Connection) -> Result<(), Failure> {
        if self.db == 0 {
            return Ok(());
        }
        good("SELECT", connection.ask(&[b"SELECT", self.db.to_string().as_bytes()]).await?)
    }
}

fn good(command: &'static str, reply: Reply) -> Result<(), Failure> {
    let usual: &[u8] = if command == "PING" { b"PONG" } else { b"OK" };
    match reply {
        Reply::Error(error) => Err(Failure::Greeting { command, error }),
        Reply::Value(text) if text == usual => Ok(()),
        answer => Err(RespError::Unproven { command, answer }.into()),
    }
}
