//! `mqtt`: messages of topics of an MQTT broker, with a client of its own for the versions 3.1.1 and 5.
//!
//! Settings and events are Filebeat's (filebeat/input/mqtt). A message of QoS 1 or 2 of a session that the broker keeps
//! (`clean_session: false`) is acknowledged behind its verdict: a process that is killed and a connection that breaks repeat
//! what was in flight, and lose nothing. Any other message is gone with the process, as in Filebeat.
//!
//! `client.rs` connects again and again, `link.rs` is a connection up to the answer of the broker, `session.rs` reads from
//! it (`decode.rs`, `gather.rs`), `inbox.rs` knows which messages may be acknowledged (`encode.rs`).

#[cfg(test)]
mod broker;
mod client;
mod decode;
mod encode;
mod filter;
mod gather;
mod inbox;
mod link;
mod reasons;
mod session;
mod settings;
#[cfg(test)]
mod tests;

pub use settings::{MQTT, read};

use client::Client;
use settings::Settings;
use skidder_input::{Input, InputFuture, Intake};

/// The name of the type.
const KIND: &str = "mqtt";

/// The input, ready to run on a tokio runtime with time and I/O enabled.
#[derive(Debug)]
struct Mqtt {
    settings: Settings,
    /// The brokers and the client id.
    address: String,
}

impl Input for Mqtt {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn address(&self) -> Option<&str> {
        Some(&self.address)
    }

    fn has_a_name(&self) -> bool {
        // A broker disconnects the client that has the `client_id` of a new one.
        true
    }

    fn run(self: Box<Self>, intake: Intake) -> InputFuture {
        let Self { settings, address } = *self;
        Box::pin(async move {
            Client::new(settings, intake, &address).run().await;
            Ok(())
        })
    }
}
