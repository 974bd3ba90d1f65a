//! The socket of a server of streams: taken over from the input before, passed by systemd, or bound.

use crate::Context;
use crate::bind::{Attempts, apply, take_over};
use crate::receive_queue::receive_queue;
use skidder_config::{Content, Item, Key, Part, Section};
use skidder_input::{InputError, InputMetrics, Intake};
use skidder_net::{
    Accepted, Claim, Family, IpPlace, ListenError, Listener, Network, ServerConnection,
    StreamPlace, UnixPlace,
};
use skidder_os::Fs;
use skidder_tls::{TlsServer, TlsServerSettings};
use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

/// Where a server listens, as in the settings.
#[derive(Clone, Debug)]
pub enum StreamAddress {
    /// TCP.
    Tcp {
        /// A name or an address; empty for all addresses of this machine.
        host: String,
        /// The port.
        port: u16,
        /// The IP versions.
        family: Family,
    },
    /// A unix socket.
    Unix(UnixPlace),
}

/// Where a server listens, and its right to that.
pub struct ListenPlace {
    /// Where.
    pub address: StreamAddress,
    /// Its socket.
    pub claim: Claim,
    /// Where it is bound.
    pub network: Arc<dyn Network>,
}

/// TLS of a server: the settings, to compare them, and what they make.
pub(crate) type Tls = (TlsServerSettings, Arc<TlsServer>);

/// Something is wrong with the settings, which is reported.
pub(crate) struct Reported;

/// Reads the settings of TLS of a server; `None` if connections are plain. `protocols` are those of ALPN, if it has any.
pub(crate) fn read_tls(
    section: &Section<'_>,
    key: &Key<Part>,
    context: &Context,
    protocols: &'static [&'static str],
) -> Result<Option<Tls>, Reported> {
    let is_true = |item: Item<'_>| *item.node().content() == Content::Bool(true);
    if section.item_of(key).is_some_and(is_true) {
        let message =
            format!("`{}` is `true`; expected a map of settings", section.path_of(key.name()));
        let hint = "write `ssl.certificate` and `ssl.key`: a server needs both";
        section.problem(key.name(), message, hint);
        return Err(Reported);
    }
    // With nothing behind it, it is not there, as in Filebeat.
    let Some(ssl) = section.optional_part(key).filter(|_| section.has_key(key)) else {
        return Ok(None);
    };
    let is_off = ssl.has("enabled") && !ssl.bool("enabled").or(true);
    let Some(settings) = TlsServerSettings::read(&ssl) else {
        return if is_off { Ok(None) } else { Err(Reported) };
    };
    match TlsServer::with_protocols(&settings, Arc::clone(&context.fs), protocols) {
        Ok(server) => Ok(Some((settings, server))),
        Err(error) => {
            error.report(section);
            Err(Reported)
        }
    }
}

/// A socket that listens.
pub(crate) struct Bound<T> {
    pub(crate) listener: Listener,
    /// It is systemd's, which keeps it open and knows the next process.
    pub(crate) is_inherited: bool,
    /// What the input before has left beside it: its connections, say.
    pub(crate) left: Option<T>,
}

/// How long a TLS handshake may take; never longer than the `timeout` of the input.
pub(crate) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(30);

impl<T> Bound<T> {
    /// Reports that it listens, at `device` as the settings have it.
    pub(crate) fn announce(&self, device: String, metrics: &InputMetrics, fs: Arc<dyn Fs>) {
        let address = self.listener.address();
        tracing::info!(%address, "listening");
        if metrics.listening().device.set(device).is_err() {
            debug_assert!(false, "an input runs once");
        }
        metrics.listening().set_receive_queue(receive_queue(address, fs));
    }
}

/// The connection of a client, after its handshake. `None` if that fails, which is reported and counted, or if it is not
/// over when `stop` resolves: the client has sent nothing then.
pub(crate) async fn open(
    accepted: Accepted,
    metrics: &InputMetrics,
    stop: impl Future<Output = ()>,
) -> Option<ServerConnection> {
    let peer = *accepted.peer();
    // Large, and gone when the connection waits for its first byte.
    let opening = Box::pin(accepted.open());
    let opened = tokio::select! {
        biased;
        opened = opening => opened,
        () = stop => {
            tracing::debug!(%peer, "the input ends; a connection before its end of the handshake is closed");
            return None;
        }
    };
    match opened {
        Ok(connection) => Some(connection),
        Err(error) => {
            metrics.failed(&peer.to_string(), &error.to_string());
            tracing::warn!(%peer, %error, "a connection was not accepted");
            None
        }
    }
}

impl ListenPlace {
    /// Takes over the socket of the input before, or binds it as soon as the address is free. `None` if the input
    /// must stop before that.
    pub(crate) async fn bind<T: Any + Send>(
        &self,
        intake: &Intake,
    ) -> Result<Option<Bound<T>>, InputError> {
        let mut left = take_over::<Bound<T>>(&self.claim, intake).await;
        let mut attempts = Attempts::new(intake);
        loop {
            if let Some(bound) = left {
                if let (StreamAddress::Unix(place), false) = (&self.address, bound.is_inherited) {
                    apply(place, intake);
                }
                return Ok(Some(bound));
            }
            if intake.is_stopped() {
                return Ok(None);
            }
            if let Some((listener, is_inherited)) = attempts.made(self.try_bind().await).await? {
                return Ok(Some(Bound { listener, is_inherited, left: None }));
            }
            left = self.claim.take();
        }
    }

    /// Leaves the socket to the next input; gives it back if that was stopped meanwhile.
    pub(crate) fn leave<T: Any + Send>(&self, bound: Bound<T>) -> Result<(), Bound<T>> {
        self.claim.leave(bound)
    }

    /// Takes the socket of systemd, or binds it; returns whether it is systemd's.
    async fn try_bind(&self) -> Result<(Listener, bool), ListenError> {
        let place = match &self.address {
            StreamAddress::Tcp { host, port, family } => {
                StreamPlace::Tcp(IpPlace::resolve(host, *port, *family).await?)
            }
            StreamAddress::Unix(place) => StreamPlace::Unix(place.clone()),
        };
        match self.inherited(&place)? {
            Some(listener) => Ok((listener, true)),
            None => Ok((self.network.listen(&place).await?, false)),
        }
    }

    /// The socket of systemd with this address.
    fn inherited(&self, place: &StreamPlace) -> Result<Option<Listener>, ListenError> {
        let addresses = match place {
            StreamPlace::Tcp(place) => place.passed_as(),
            StreamPlace::Unix(_) => vec![place.address()],
        };
        for address in addresses {
            let Some(socket) = self.claim.inherited(&address) else { continue };
            let listener = match place {
                StreamPlace::Tcp(_) => Listener::from_tcp(socket.into()),
                StreamPlace::Unix(_) => Listener::from_unix(socket.into()),
            };
            return match listener {
                Ok(listener) => Ok(Some(listener)),
                Err(source) => Err(ListenError::Bind { address, source }),
            };
        }
        Ok(None)
    }
}
