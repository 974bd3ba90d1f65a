//! An input that receives datagrams: binds its address, or takes over the socket that is there.

use super::{DatagramSocket, Left, Settings, serve};
use crate::bind::{Attempts, apply, take_over};
use rustix::net::SocketType;
use skidder_input::{InputError, Intake};
use skidder_net::{BoundAddress, Claim, Family, IpPlace, ListenError, UnixPlace};

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
        serve(left, Some(self.claim), self.settings, intake).await
    }

    /// Takes over the socket of the input before, or binds it as soon as the address is free. `None` if the input
    /// must stop before that.
    async fn bind(&self, intake: &Intake) -> Result<Option<Left>, InputError> {
        let mut left = take_over::<Left>(&self.claim, intake).await;
        let mut attempts = Attempts::new(intake);
        loop {
            if let Some(left) = left {
                if let (DatagramAddress::Unix(place), Some(_)) = (&self.address, &left.name) {
                    apply(place, intake);
                }
                return Ok(Some(left));
            }
            if intake.is_stopped() {
                return Ok(None);
            }
            let bound = attempts.made(self.try_bind().await).await?;
            if bound.is_some() {
                return Ok(bound);
            }
            left = self.claim.take();
        }
    }

    /// Takes the socket of systemd, or binds it.
    async fn try_bind(&self) -> Result<Left, ListenError> {
        let (socket, name) = match &self.address {
            DatagramAddress::Udp { host, port, family } => {
                let place = IpPlace::resolve(host, *port, *family).await?;
                let mut passed = place.passed_as().into_iter();
                let socket = match passed.find_map(|address| self.claim.inherited(&address)) {
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
        Ok(Left { socket, drops: 0, name, waiting: Vec::new() })
    }
}
