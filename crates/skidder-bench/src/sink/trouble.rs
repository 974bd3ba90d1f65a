//! Faults of the sink, for the fault scenarios of `peers`.

use std::io::{self, Write};
use std::net::{Shutdown, TcpStream};

/// A fault, and how often it happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// The fault.
    pub fault: Fault,
    /// With each request of this number: 3 is every third one. At least 1.
    pub every: u64,
}

/// Faults of a request that brings documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is refused as a whole with this status.
    Status(u16),
    /// The connection is closed before the request is taken.
    Refused,
    /// The documents are taken, and the connection is closed before the answer.
    Unanswered,
    /// Every second document is refused with 429, the others are taken.
    SomeBusy,
}

impl Trouble {
    /// Whether the request of this number, from 1, meets the fault.
    pub(super) fn hits(self, number: u64) -> bool {
        number.is_multiple_of(self.every)
    }
}

/// The whole answer with this status and nothing in it.
pub(super) fn refuse(stream: &mut TcpStream, status: u16) -> io::Result<()> {
    let answer = format!(
        "HTTP/1.1 {status} Trouble\r\nX-elastic-product: Elasticsearch\r\n\
         content-type: application/json\r\ncontent-length: 2\r\n\r\n{{}}"
    );
    stream.write_all(answer.as_bytes())
}

/// Closes the connection. A client that has closed it already is no error.
pub(super) fn hang_up(stream: &TcpStream) -> io::Result<()> {
    match stream.shutdown(Shutdown::Both) {
        Err(error) if error.kind() != io::ErrorKind::NotConnected => Err(error),
        _ => Ok(()),
    }
}
