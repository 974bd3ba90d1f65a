//! Servers: sockets that listen, TLS with certificates of clients, and limits.
//!
//! A server of any protocol over TCP, TLS or a unix socket is a [`Server`]:
//!
//! ```no_run
//! # async fn example(tls: Option<std::sync::Arc<skidder_tls::TlsServer>>) -> Result<(), skidder_net::ListenError> {
//! use skidder_net::{ListenAddress, Server, ServerSettings};
//!
//! let address = ListenAddress::Tcp { host: "localhost".to_owned(), port: 9000 };
//! let server = Server::bind(&address, ServerSettings { tls, ..ServerSettings::default() }).await?;
//! loop {
//!     // Waits while `connections_max` are open: clients wait in the backlog of the kernel.
//!     let accepted = server.accept().await;
//!     tokio::spawn(async move {
//!         // The handshake has a time limit, and happens here so that a slow client holds up only itself.
//!         match accepted.open().await {
//!             Ok(connection) => println!("{} {:?}", connection.peer, connection.tls),
//!             Err(error) => eprintln!("{error}"),
//!         }
//!     });
//! }
//! # }
//! ```
//!
//! HTTP over such a connection is [`serve_http`] (HTTP/1.1) or [`serve_http_any`] (HTTP/2 as well), with limits on the time and the bytes of a request ([`HttpLimits`],
//! [`read_request_body`]); [`is_authorized`] checks `Authorization`. A server that would rather close an idle connection
//! than let a new client wait has a [`Listener`] with [`Places`] of its own, and makes an [`Accepted`] of each connection.

mod auth;
mod bind;
mod datagrams;
mod http;
mod http2;
mod listen;
mod network;
mod places;
mod preface;
mod session;
mod sockets;

pub use auth::is_authorized;
pub use bind::{Family, IpPlace, UnixName, UnixPlace};
pub use datagrams::{
    Arena, BoundDatagrams, Datagram, DatagramNetwork, DatagramPlace, DatagramSocket, DatagramState,
    Datagrams,
};
pub use http::{
    HttpEnd, HttpLimits, RequestBodyError, is_wrong_http, read_request_body, serve_http,
    serve_http_any,
};
pub use listen::{Accept, AcceptFuture, BoundAddress, ListenAddress, ListenError, Listener, Peer};
pub use network::{ListenFuture, Network, RealNetwork, StreamPlace};
pub use places::{Place, Places};
pub use session::{ClientCertificate, TlsSession};
pub use sockets::{Claim, InheritError, SocketKey, Sockets};

use crate::route::Stream;
use skidder_tls::{TlsServer, handshake_words};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Pause after a connection could not be accepted: no descriptors are left, say.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// The limits of a server.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// TLS, unless connections are plain.
    pub tls: Option<Arc<TlsServer>>,
    /// Connections that are open at once, handshakes included; further clients wait. 0 = no limit.
    pub connections_max: usize,
    /// How long a TLS handshake may take.
    pub handshake_timeout: Duration,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self { tls: None, connections_max: 0, handshake_timeout: Duration::from_secs(10) }
    }
}

/// A bound socket with the limits of its connections. Dropping it closes the socket; open connections stay.
#[derive(Debug)]
pub struct Server {
    listener: Listener,
    settings: ServerSettings,
    places: Arc<Semaphore>,
}

/// A client that has connected, before the TLS handshake. Holds its place among the server's connections
/// until it, or the [`ServerConnection`] that it becomes, is dropped.
pub struct Accepted {
    stream: Box<dyn Stream>,
    peer: Peer,
    tls: Option<Arc<TlsServer>>,
    handshake_timeout: Duration,
    place: Option<OwnedSemaphorePermit>,
}

/// An open connection to a client.
pub struct ServerConnection {
    /// The decrypted stream, in both directions.
    pub stream: Box<dyn Stream>,
    /// The client's address.
    pub peer: Peer,
    /// The negotiated session, with TLS.
    pub tls: Option<TlsSession>,
    /// The place among the server's connections, until this is dropped; none of one of [`Server::accept_beyond`].
    pub place: Option<OwnedSemaphorePermit>,
}

/// Why a TLS handshake failed.
#[derive(Debug, thiserror::Error)]
pub enum HandshakeError {
    /// The client does not speak TLS, or its certificate is missing or not accepted.
    #[error("no TLS connection with {peer}: {}{}", handshake_words(.source), handshake_remedy(.source))]
    Failed {
        /// The client.
        peer: Peer,
        /// Why.
        source: io::Error,
    },
    /// The client did not finish in time.
    #[error("{peer} did not finish the TLS handshake within {} s", .timeout.as_secs_f64())]
    Late {
        /// The client.
        peer: Peer,
        /// The limit.
        timeout: Duration,
    },
}

/// The remedy for a failed handshake, as the end of its message.
fn handshake_remedy(error: &io::Error) -> &'static str {
    match error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::NoCertificatesPresented) => {
            "; the client needs a certificate of one of the authorities in `ssl.certificate_authorities`"
        }
        Some(rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer)) => {
            "; the client's certificate is of none of the authorities in `ssl.certificate_authorities`"
        }
        Some(rustls::Error::InvalidMessage(_)) => "; the client does not speak TLS",
        Some(rustls::Error::AlertReceived(
            rustls::AlertDescription::UnknownCA
            | rustls::AlertDescription::BadCertificate
            | rustls::AlertDescription::CertificateUnknown,
        )) => {
            "; the client does not trust `ssl.certificate`: give it the authority that signed it (the certificate itself, \
             if it signed itself)"
        }
        _ => "",
    }
}

impl Server {
    /// Binds the address.
    ///
    /// # Errors
    ///
    /// The address cannot be used.
    pub async fn bind(
        address: &ListenAddress,
        settings: ServerSettings,
    ) -> Result<Self, ListenError> {
        Ok(Self::over(Listener::bind(address).await?, settings))
    }

    /// A server over a socket that listens already.
    pub fn over(listener: Listener, settings: ServerSettings) -> Self {
        let places = match settings.connections_max {
            0 => Semaphore::MAX_PERMITS,
            most => most.min(Semaphore::MAX_PERMITS),
        };
        Self { listener, settings, places: Arc::new(Semaphore::new(places)) }
    }

    /// The socket, for another server over it. Open connections stay.
    pub fn into_listener(self) -> Listener {
        self.listener
    }

    /// A place among the connections for one that is open already; `None` if all are taken.
    pub fn try_place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.places).try_acquire_owned().ok()
    }

    /// Where it listens; with the real port if that of the settings is 0.
    pub fn address(&self) -> &BoundAddress {
        self.listener.address()
    }

    /// Waits until a connection is allowed and a client connects. Failures are logged and tried again. May be dropped
    /// while it waits.
    pub async fn accept(&self) -> Accepted {
        let place = Arc::clone(&self.places).acquire_owned().await;
        let place = place.expect("the semaphore is never closed");
        self.accepted(self.listener.accept().await, Some(place))
    }

    /// Waits until a client connects, even if no connection is allowed: for the end of a server, which reads what those
    /// have sent that wait to be accepted. May be dropped while it waits.
    ///
    /// # Errors
    ///
    /// Those of the system: no descriptors are left, say. Clients that left meanwhile are passed over.
    pub async fn accept_beyond(&self) -> io::Result<Accepted> {
        loop {
            match self.listener.try_accept().await {
                Ok(accepted) => return Ok(self.accepted(accepted, None)),
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn accepted(
        &self,
        (stream, peer): (Box<dyn Stream>, Peer),
        place: Option<OwnedSemaphorePermit>,
    ) -> Accepted {
        let ServerSettings { tls, handshake_timeout, .. } = self.settings.clone();
        Accepted { stream, peer, tls, handshake_timeout, place }
    }
}

impl Accepted {
    /// A connection of a [`Listener`]; a place among the connections is the caller's.
    pub fn new(
        (stream, peer): (Box<dyn Stream>, Peer),
        tls: Option<Arc<TlsServer>>,
        handshake_timeout: Duration,
    ) -> Self {
        Self { stream, peer, tls, handshake_timeout, place: None }
    }

    /// The client's address.
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// The TLS handshake, if there is TLS.
    ///
    /// # Errors
    ///
    /// It failed, and the connection is closed.
    pub async fn open(self) -> Result<ServerConnection, HandshakeError> {
        let Self { stream, peer, tls, handshake_timeout: timeout, place } = self;
        let Some(tls) = tls else {
            return Ok(ServerConnection { stream, peer, tls: None, place });
        };
        let accepting = tokio_rustls::TlsAcceptor::from(tls.config()).accept(stream);
        let stream = match tokio::time::timeout(timeout, accepting).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(source)) => return Err(HandshakeError::Failed { peer, source }),
            Err(_) => return Err(HandshakeError::Late { peer, timeout }),
        };
        let session = TlsSession::of(stream.get_ref().1);
        Ok(ServerConnection { stream: Box::new(stream), peer, tls: Some(session), place })
    }
}

impl std::fmt::Debug for Accepted {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Accepted").field("peer", &self.peer).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for ServerConnection {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = out.debug_struct("ServerConnection");
        out.field("peer", &self.peer).field("tls", &self.tls).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
