//! Requests to a node that answers, as `$cbs` and `$management`.

use crate::connection::{Connection, OwnSession, Wanted};
use crate::driver::Command;
use crate::error::AmqpError;
use crate::links::Event;
use crate::message::{Answer, Message, Request};
use tokio::sync::mpsc;

/// Answers that may come at once.
const CREDIT: u32 = 16;
/// The longest answer. One names the partitions of a hub: some KiB.
const ANSWER_BYTES_MAX: u64 = 1 << 20;

/// See the module's text.
#[derive(Debug)]
pub struct Rpc {
    session: OwnSession,
    sender: u32,
    events: mpsc::Receiver<Event>,
    /// The address of this side.
    own: String,
    requests: u64,
}

impl Connection {
    /// Opens links to a node and back from it.
    ///
    /// # Errors
    ///
    /// There are none.
    pub async fn rpc(&self, node: &str) -> Result<Rpc, AmqpError> {
        let session = self.session().await?;
        let own = self.link_name("answers");
        let wanted = |name: String, is_receiver: bool| Wanted {
            name,
            is_receiver,
            node,
            own: &own,
            filter: None,
            properties: None,
            credit: CREDIT,
            message_bytes_max: ANSWER_BYTES_MAX,
        };
        let (_, events) = session.attach(wanted(own.clone(), true)).await?;
        let (sender, _) = session.attach(wanted(self.link_name("requests"), false)).await?;
        Ok(Rpc { session, sender, events, own, requests: 0 })
    }
}

impl Rpc {
    /// Sends a request, and waits for its answer.
    ///
    /// # Errors
    ///
    /// There is none: this is not to be used any more.
    pub async fn call(&mut self, request: &Request<'_>) -> Result<Answer, AmqpError> {
        self.requests += 1;
        let id = self.requests.to_string();
        let (channel, handle) = (self.session.channel, self.sender);
        let payload = request.encode(&id, &self.own);
        self.session.line.send(Command::Send { channel, handle, payload }).await?;
        let timeout = self.session.line.timeout;
        let late = Err(AmqpError::Timeout("a request", timeout.as_secs()));
        tokio::time::timeout(timeout, self.answer(&id)).await.unwrap_or(late)
    }

    async fn answer(&mut self, id: &str) -> Result<Answer, AmqpError> {
        let (channel, handle) = (self.session.channel, 0);
        loop {
            let event = self.events.recv().await;
            let Some(event) = event else { return Err(self.session.line.error()) };
            let message = Message::new(event?);
            self.session.line.send(Command::Credit { channel, handle }).await?;
            // That of a request that was given up before is passed over.
            if message.correlation()?.is_none_or(|correlation| correlation == id) {
                return Ok(Answer::read(message)?);
            }
        }
    }
}
