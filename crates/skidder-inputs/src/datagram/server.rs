//! An input that receives datagrams: binds its address, or takes over the socket that is there.

use super::{DatagramSocket, Left, Settings, serve};
use rustix::net::SocketType;
use skidder_input::{InputError, Intake};
use skidder_net::{BoundAddress, Claim, Family, IpPlace, ListenError, UnixPlace};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::time::Duration;

/// Pause before an address that is in use is tried again; each is twice as long as the one before.
const BIND_PAUSE: Duration = Duration::from_millis(100);

/// The longest of these pauses.
const BIND_PAUSE_MAX: Duration = Duration::from_secs(10);

/// Where datagrams arrive.
#[derive(Clone, Debug)]
pub enum DatagramAddress {
    /// UDP.
    Udp {
        /// A name or an address; empty for all of the machine.
        host: String,
        /// The port.
        port: u16,
        /// The IP versions.
        family: Family,
    },
    /// A unix socket.
    Unix(UnixPlace),
}

/// A server of datagrams.
#[derive(Debug)]
pub struct DatagramServer {
    /// Where they arrive.
    pub address: DatagramAddress,
    /// Its right to the socket.
    pub claim: Claim,
    /// How they are received.
    pub settings: Settings,
}

impl DatagramServer {
    /// Takes datagrams until the input must stop: see [`serve`].
    ///
    /// # Errors
    /// The address is wrong, or a thread could not be started.
    pub async fn run(self, intake: Intake) -> Result<(), InputError> {
        // Stopped before it could listen.
        let Some(left) = self.bind(&intake).await? else { return Ok(()) };
        tracing::info!(address = self.settings.device, "receives datagrams");
        serve(left, Some(self.claim), self.settings, None, intake).await
    }

    /// An address that is in use is tried again; nothing if the input was stopped meanwhile.
    async fn bind(&self, intake: &Intake) -> Result<Option<Left>, InputError> {
        let metrics = intake.metrics();
        let mut pause = BIND_PAUSE;
        loop {
            let error = match self.try_bind().await {
                Ok(left) => {
                    metrics.set_trouble(None);
                    return Ok(Some(left));
                }
                Err(error @ (ListenError::InUse { .. } | ListenError::Resolve { .. })) => error,
                Err(error) => return Err(InputError(error.to_string())),
            };
            metrics.errors.add(1);
            metrics.set_trouble(Some(&error.to_string()));
            tracing::error!(%error, "cannot listen; trying again");
            tokio::select! {
                () = intake.stopped() => return Ok(None),
                () = tokio::time::sleep(pause) => {}
            }
            pause = (pause * 2).min(BIND_PAUSE_MAX);
        }
    }

    async fn try_bind(&self) -> Result<Left, ListenError> {
        if let Some(left) = self.claim.take::<Left>() {
            if let (DatagramAddress::Unix(place), Some(_)) = (&self.address, &left.name) {
                place.apply()?;
            }
            return Ok(left);
        }
        let (socket, name) = match &self.address {
            DatagramAddress::Udp { host, port, family } => {
                let place = IpPlace::resolve(host, *port, *family).await?;
                let socket = match self.inherited(&place) {
                    Some(socket) => socket,
                    None => place.bind(SocketType::DGRAM)?,
                };
                (std::net::UdpSocket::from(socket).into(), None)
            }
            DatagramAddress::Unix(place) => {
                let inherited = self.claim.inherited(&BoundAddress::Unix(place.path.clone()));
                let (socket, name) = match inherited {
                    // Its name is systemd's.
                    Some(socket) => (socket, None),
                    None => {
                        let (socket, name) = place.bind(SocketType::DGRAM)?;
                        (socket, Some(name))
                    }
                };
                (std::os::unix::net::UnixDatagram::from(socket).into(), name)
            }
        };
        let socket: DatagramSocket = socket;
        Ok(Left { socket, drops: 0, name })
    }

    /// The socket of systemd with this address.
    fn inherited(&self, place: &IpPlace) -> Option<OwnedFd> {
        let IpPlace { address, family } = place;
        let found = self.claim.inherited(&BoundAddress::Tcp(*address));
        if found.is_some() || *family != Family::Any || !address.ip().is_unspecified() {
            return found;
        }
        // Who writes `0.0.0.0` for systemd and `:9000` here means the same socket.
        let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), address.port());
        self.claim.inherited(&BoundAddress::Tcp(address))
    }
}
