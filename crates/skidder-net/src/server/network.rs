//! The network as a seam: what listens for connections can be a simulated network, whose connections break anywhere.

use super::bind::{IpPlace, UnixPlace};
use super::listen::{BoundAddress, ListenError, Listener};
use std::fmt;
use std::future::ready;
use std::pin::Pin;

/// Where a server of streams listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamPlace {
    /// TCP.
    Tcp(IpPlace),
    /// A unix socket.
    Unix(UnixPlace),
}

impl StreamPlace {
    /// The configured address; its port may be 0.
    pub fn address(&self) -> BoundAddress {
        match self {
            Self::Tcp(place) => BoundAddress::Tcp(place.address),
            Self::Unix(place) => BoundAddress::Unix(place.path.clone()),
        }
    }
}

/// A socket that listens, or why there is none.
pub type ListenFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Listener, ListenError>> + Send + 'a>>;

/// Binds addresses for servers of streams.
pub trait Network: Send + Sync + fmt::Debug {
    /// Binds an address and listens there. Called within a runtime.
    ///
    /// # Errors
    ///
    /// The address cannot be used.
    fn listen<'a>(&'a self, place: &'a StreamPlace) -> ListenFuture<'a>;
}

/// The network of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealNetwork;

impl Network for RealNetwork {
    fn listen<'a>(&'a self, place: &'a StreamPlace) -> ListenFuture<'a> {
        Box::pin(ready(match place {
            StreamPlace::Tcp(place) => Listener::bind_tcp(place),
            StreamPlace::Unix(place) => Listener::bind_unix(place),
        }))
    }
}
