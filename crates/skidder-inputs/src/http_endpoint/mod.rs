//! `http_endpoint`: events in requests of HTTP, as Filebeat's input takes them
//! (x-pack/filebeat/input/http_endpoint).
//!
//! A request is taken whole or not at all: nothing of a body with an error becomes an event, and the client gets the error.
//! Without `wait_for_completion_timeout` the answer means that the events are in the queue: a crash can lose them. With it,
//! the answer means that every event has its verdict.
//!
//! Differences to Filebeat are those where it loses something silently: it cuts off a body at `max_body_bytes`, takes the
//! beginning of one that breaks off, and ignores what follows a stray `]`.

mod accept;
mod answer;
mod body;
mod busy;
mod crc;
mod decode;
mod faces;
mod in_flight;
mod original;
mod paths;
mod payload;
mod program;
mod query;
mod refused;
mod routes;
mod server;
mod sessions;
mod settings;
mod syntax;
#[cfg(test)]
mod tests;
mod validate;

pub use server::Servers;
pub use settings::{HTTP_ENDPOINT, read};

use crate::listen::{ListenPlace, Tls};
use server::Server;
use settings::Settings;
use skidder_input::{Input, InputFuture, Intake};
use skidder_os::Fs;
use std::sync::Arc;

/// The name of the type.
const KIND: &str = "http_endpoint";

/// One input: a path of a server.
struct HttpEndpoint {
    settings: Settings,
    server: Arc<Server>,
    place: ListenPlace,
    tls: Option<Tls>,
    fs: Arc<dyn Fs>,
    /// `host:port` as in the settings.
    device: String,
}

impl Input for HttpEndpoint {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn address(&self) -> Option<&str> {
        Some(&self.device)
    }

    fn relays(&self) -> bool {
        !self.settings.faces.faces.is_empty()
    }

    fn run(self: Box<Self>, intake: Intake) -> InputFuture {
        Box::pin(self.serve(intake))
    }
}
