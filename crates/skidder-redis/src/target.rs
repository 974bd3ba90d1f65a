//! A server, and how a connection to it is opened.

use crate::advice::with_advice;
use crate::resp::{Connection, Reply, RespError};
use skidder_config::Secret;
use skidder_net::{NetError, Route, Stream, dial, encrypt, redact, resolve};
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use tokio::net::UnixStream;

/// One server with the login and database of its connections.
#[derive(Clone, Debug)]
pub struct Target {
    /// The server.
    pub route: Route,
    /// How it is reached.
    pub network: Network,
    /// User, which may be empty, and password.
    pub credentials: Option<(String, Secret)>,
    /// Number of the database.
    pub db: u32,
}

/// How a server is reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Network {
    /// Over TCP, with whichever version of IP answers first.
    #[default]
    Tcp,
    /// Over IPv4.
    Tcp4,
    /// Over IPv6.
    Tcp6,
    /// By a socket in the file system.
    Unix(PathBuf),
}

/// Why something was not done. In every case it is tried again, later.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// There is no connection.
    #[error(transparent)]
    Net(#[from] NetError),
    /// There is no connection to a socket in the file system.
    #[error("cannot connect to `{path}`: {source}")]
    Unix {
        /// The socket.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The connection is over.
    #[error(transparent)]
    Connection(#[from] RespError),
    /// The server refused a command that each connection begins with.
    #[error("the server refused {command}: {}", with_advice(error))]
    Greeting {
        /// Its name.
        command: &'static str,
        /// The answer.
        error: String,
    },
    /// The server refused another command.
    #[error("the server answered: {}", with_advice(.0))]
    Answer(String),
}

impl Target {
    /// A connection on which commands can be sent.
    pub async fn open(&self, timeout: Duration) -> Result<Connection, Failure> {
        let mut connection = self.connect(timeout).await?;
        self.log_in(&mut connection).await?;
        good("PING", connection.ask(&[b"PING"]).await?)?;
        self.select(&mut connection).await?;
        Ok(connection)
    }

    /// The same for a user who may have no right to `PING`.
    pub async fn open_quietly(&self, timeout: Duration) -> Result<Connection, Failure> {
        let mut connection = self.connect(timeout).await?;
        self.log_in(&mut connection).await?;
        self.select(&mut connection).await?;
        Ok(connection)
    }

    async fn connect(&self, timeout: Duration) -> Result<Connection, Failure> {
        let stream: Box<dyn Stream> = match &self.network {
            Network::Tcp => self.route.open(timeout).await?,
            Network::Tcp4 | Network::Tcp6 => {
                let dialling = self.dial_one_family();
                let dialled = tokio::time::timeout(timeout, dialling).await;
                dialled.map_err(|_| NetError::Timeout(timeout))??
            }
            Network::Unix(path) => {
                let connecting = UnixStream::connect(path);
                let failed = |source| Failure::Unix { path: path.clone(), source };
                match tokio::time::timeout(timeout, connecting).await {
                    Ok(stream) => Box::new(stream.map_err(failed)?),
                    Err(_) => return Err(NetError::Timeout(timeout).into()),
                }
            }
        };
        Ok(self.connection(stream, timeout))
    }

    /// A connection over this stream to the server.
    pub fn connection(&self, stream: Box<dyn Stream>, timeout: Duration) -> Connection {
        let connection = Connection::new(stream, timeout);
        if self.route.tls.is_none() && !matches!(self.network, Network::Unix(_)) {
            connection.without_tls()
        } else {
            connection
        }
    }

    /// A connection to an address of the version of IP that is wanted.
    async fn dial_one_family(&self) -> Result<Box<dyn Stream>, Failure> {
        let host = &self.route.host;
        let mut addresses = resolve(&host.name, host.port).await?;
        addresses.retain(|address| address.is_ipv4() == (self.network == Network::Tcp4));
        if addresses.is_empty() {
            let version = if self.network == Network::Tcp4 { "of IPv4" } else { "of IPv6" };
            return Err(NetError::NoAddress(format!("{host} {version}")).into());
        }
        let stream = dial(&addresses).await?;
        match &self.route.tls {
            None => Ok(Box::new(stream)),
            Some(tls) => {
                let plain = self.route.without_tls;
                Ok(Box::new(encrypt(stream, &host.name, &tls.config(), plain).await?))
            }
        }
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
