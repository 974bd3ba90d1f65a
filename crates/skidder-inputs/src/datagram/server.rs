//! An input that receives datagrams: binds its address, or takes over the socket that is there.

use super::{Left, Settings, serve};
use crate::bind::{Attempts, apply, take_over};
use skidder_input::{InputError, Intake};
use skidder_net::{
    BoundAddress, BoundDatagrams, Claim, DatagramNetwork, DatagramPlace, DatagramSocket,
    Datagrams as _, Family, IpPlace, ListenError, UnixPlace,
};
use std::os::fd::OwnedFd;
use std::sync::Arc;

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
    /// What binds it.
    pub network: Arc<dyn DatagramNetwork>,
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
        let (place, passed) = match &self.address {
            DatagramAddress::Udp { host, port, family } => {
                let place = IpPlace::resolve(host, *port, *family).await?;
                (DatagramPlace::Udp(place), place.passed_as())
            }
            DatagramAddress::Unix(place) => {
                let path = BoundAddress::Unix(place.path.clone());
                (DatagramPlace::Unix(place.clone()), vec![path])
            }
        };
        let inherited = passed.iter().find_map(|address| self.claim.inherited(address));
        let bound = match inherited {
            Some(socket) => self.take(socket),
            None => self.network.bind(&place)?,
        };
        let BoundDatagrams { socket, name, drops } = bound;
        Ok(Left { socket, drops, name, waiting: Vec::new(), kept: None })
    }

    /// A socket of systemd, which keeps its name. What it lost before is not of this run: another one has counted it,
    /// or none was there.
    pub(super) fn take(&self, socket: OwnedFd) -> BoundDatagrams {
        let socket: DatagramSocket = match &self.address {
            DatagramAddress::Udp { .. } => std::net::UdpSocket::from(socket).into(),
            DatagramAddress::Unix(_) => std::os::unix::net::UnixDatagram::from(socket).into(),
        };
        let drops = socket.state().map_or(0, |state| state.drops);
        if drops > 0 {
            tracing::warn!(
                lost = drops,
                "the socket of systemd has lost datagrams before this start, in earlier runs or between them: they are \
                 not in `lost_before`"
            );
        }
        BoundDatagrams { socket: Box::new(socket), name: None, drops }
    }
}
