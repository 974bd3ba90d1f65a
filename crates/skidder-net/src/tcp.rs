//! One TCP connection.

use std::io;
use std::net::SocketAddr;
use tokio::net::{TcpSocket, TcpStream};

/// The congestion control that every Linux has and lets everybody choose (`tcp_allowed_congestion_control`).
const UNPACED: &str = "reno";

/// A connection that sends small pieces at once.
///
/// To an address of this host nothing is paced. Where the system's congestion control is `bbr`, the kernel else sets
/// a timer for each 64 KiB, which costs the sender more than the copy: there is no wire, no loss and nothing to be
/// gentle with. Toward other hosts the system's choice stays.
///
/// # Errors
///
/// As `connect(2)` and `setsockopt(2)`.
pub async fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    if address.ip().is_loopback() {
        // Before `connect`: a connection that was paced once stays so. Where it is refused, the system's stays.
        let _kept = rustix::net::sockopt::set_tcp_congestion(&socket, UNPACED);
    }
    let tcp = socket.connect(address).await?;
    // A request ends with a short piece that must not wait for an acknowledgement. The send buffer is left to the
    // kernel: setting its size would end its own tuning.
    tcp.set_nodelay(true)?;
    Ok(tcp)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn a_connection_to_this_host_is_not_paced() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address).await else {
                assert!(address.starts_with('['), "no IPv4");
                continue;
            };
            let tcp = connect(listener.local_addr().unwrap()).await.unwrap();
            assert_eq!(rustix::net::sockopt::tcp_congestion(&tcp).unwrap(), UNPACED);
            assert!(tcp.nodelay().unwrap());
        }
    }

    #[tokio::test]
    async fn nobody_there_is_an_error() {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let error = connect(socket.local_addr().unwrap()).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }
}
