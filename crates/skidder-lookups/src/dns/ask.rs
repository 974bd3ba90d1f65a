//! Asking one server after the other, by UDP or TLS; over TCP what does not fit into UDP.

use super::message::{Answer, AskError, Question, Reply};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Datagrams that are looked at before a server counts as gone: others may come late or be forged.
const DATAGRAMS_MAX: usize = 8;
/// Largest answer by UDP; without EDNS a server sends at most 512 bytes.
const DATAGRAM_BYTES_MAX: usize = 4096;

/// How to send requests to the servers.
#[derive(Clone)]
pub(crate) enum Transport {
    Udp,
    Tls(Arc<ClientConfig>),
}

/// The servers.
pub(crate) struct Resolver {
    /// Name or address, and port.
    servers: Vec<(String, u16)>,
    transport: Transport,
    /// For connecting, and for each read and write.
    timeout: Duration,
    /// Makes ids that cannot be guessed from those before.
    ids: RandomState,
    sent: AtomicU64,
}

impl Resolver {
    pub(crate) fn new(
        servers: Vec<(String, u16)>,
        transport: Transport,
        timeout: Duration,
    ) -> Self {
        Self { servers, transport, timeout, ids: RandomState::new(), sent: AtomicU64::new(0) }
    }

    /// The first answer of a server. A refused request does not go to the next one, as in Filebeat.
    pub(crate) fn ask(&self, question: Question, text: &str) -> Result<Answer, AskError> {
        let id = self.ids.hash_one(self.sent.fetch_add(1, Ordering::Relaxed)) as u16;
        let query = question.write(text, id)?;
        let mut last = AskError::NoServer;
        for (name, port) in &self.servers {
            let server = format!("{name}:{port}");
            match self.ask_one(question, &query, name, *port, &server) {
                Ok(answer) => return Ok(answer),
                Err(Problem::Gone(source)) => last = AskError::Io { server, source },
                Err(Problem::Said(error)) => return Err(error),
            }
        }
        Err(last)
    }

    fn ask_one(
        &self,
        question: Question,
        query: &[u8],
        name: &str,
        port: u16,
        server: &str,
    ) -> Result<Answer, Problem> {
        let address = (name, port).to_socket_addrs()?.next();
        let address = address.ok_or_else(|| io::Error::other("it has no address"))?;
        let Transport::Tls(tls) = &self.transport else {
            if let Some(answer) = self.datagram(question, query, address, server)? {
                return Ok(answer);
            }
            return exchange(question, query, self.connect(address)?, server);
        };
        let name = ServerName::try_from(name.to_owned()).map_err(io::Error::other)?;
        let connection = ClientConnection::new(Arc::clone(tls), name).map_err(io::Error::other)?;
        let stream = StreamOwned::new(connection, self.connect(address)?);
        exchange(question, query, stream, server)
    }

    fn connect(&self, address: SocketAddr) -> io::Result<TcpStream> {
        let stream = TcpStream::connect_timeout(&address, self.timeout)?;
        stream.set_read_timeout(Some(self.timeout))?;
        stream.set_write_timeout(Some(self.timeout))?;
        Ok(stream)
    }

    /// Nothing if the answer does not fit into a datagram.
    fn datagram(
        &self,
        question: Question,
        query: &[u8],
        address: SocketAddr,
        server: &str,
    ) -> Result<Option<Answer>, Problem> {
        let own: SocketAddr = match address {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(own)?;
        socket.connect(address)?;
        socket.set_read_timeout(Some(self.timeout))?;
        socket.send(query)?;
        let mut buffer = [0; DATAGRAM_BYTES_MAX];
        for _ in 0..DATAGRAMS_MAX {
            let length = socket.recv(&mut buffer)?;
            match question.read(query, &buffer[..length], server)? {
                Reply::Answer(answer) => return Ok(Some(answer)),
                Reply::Truncated => return Ok(None),
                Reply::Other => {}
            }
        }
        Err(io::Error::from(io::ErrorKind::TimedOut).into())
    }
}

/// Why one server gave no answer.
#[derive(Debug)]
enum Problem {
    /// It cannot be reached: the next one may.
    Gone(io::Error),
    /// It answered, and that is the answer.
    Said(AskError),
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        Self::Gone(error)
    }
}

impl From<AskError> for Problem {
    fn from(error: AskError) -> Self {
        Self::Said(error)
    }
}

/// One question over a stream: each message after its length in two bytes (RFC 1035, 4.2.2).
fn exchange(
    question: Question,
    query: &[u8],
    mut stream: impl Read + Write,
    server: &str,
) -> Result<Answer, Problem> {
    let mut message = (query.len() as u16).to_be_bytes().to_vec();
    message.extend_from_slice(query);
    stream.write_all(&message)?;
    stream.flush()?;
    let mut length = [0; 2];
    stream.read_exact(&mut length)?;
    let mut answer = vec![0; u16::from_be_bytes(length).into()];
    stream.read_exact(&mut answer)?;
    match question.read(query, &answer, server)? {
        Reply::Answer(answer) => Ok(answer),
        Reply::Truncated | Reply::Other => {
            Err(AskError::Nonsense { server: server.to_owned() }.into())
        }
    }
}

#[cfg(test)]
mod tests;
