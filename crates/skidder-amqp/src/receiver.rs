//! A link over which messages come.

use crate::connection::{Connection, OwnSession, Wanted};
use crate::driver::Command;
use crate::error::AmqpError;
use crate::links::Event;
use crate::message::Message;
use crate::write::{Value, Writer};
use tokio::sync::mpsc;

/// Which messages come, and how many at once.
#[derive(Clone, Copy, Debug)]
pub struct Attach<'a> {
    /// The address of the node.
    pub node: &'a str,
    /// A selector: the node sends only messages for which it holds.
    pub filter: Option<&'a str>,
    /// Properties of the link, whose names are symbols.
    pub properties: &'a [(&'a str, Value<'a>)],
    /// Most messages that come before they are taken, at least 1.
    pub credit: u32,
    /// The longest message.
    pub message_bytes_max: u64,
}

/// See the module's text. The link ends when this is dropped.
#[derive(Debug)]
pub struct Receiver {
    session: OwnSession,
    handle: u32,
    events: mpsc::Receiver<Event>,
    credit: u32,
    /// Messages since the peer got credit.
    taken: u32,
}

/// A message that came.
pub type Delivery = Message;

impl Connection {
    /// Opens a receiver, in a session of its own.
    ///
    /// # Errors
    ///
    /// There is none. The peer's reason is [`AmqpError::Detached`].
    pub async fn receiver(&self, attach: Attach<'_>) -> Result<Receiver, AmqpError> {
        let session = self.session().await?;
        let properties = (!attach.properties.is_empty()).then(|| {
            let mut writer = Writer::default();
            writer.fields(attach.properties);
            writer.into_bytes()
        });
        let wanted = Wanted {
            name: self.link_name("receiver"),
            is_receiver: true,
            node: attach.node,
            own: "",
            filter: attach.filter,
            properties,
            credit: attach.credit.max(1),
            message_bytes_max: attach.message_bytes_max,
        };
        let credit = wanted.credit;
        let (handle, events) = session.attach(wanted).await?;
        Ok(Receiver { session, handle, events, credit, taken: 0 })
    }
}

impl Receiver {
    /// The next message. Loses nothing if it is cancelled.
    ///
    /// # Errors
    ///
    /// There are no more.
    pub async fn next(&mut self) -> Result<Delivery, AmqpError> {
        let event = self.events.recv().await;
        self.take(event)
    }

    /// A message that is here already.
    ///
    /// # Errors
    ///
    /// There are no more.
    pub fn next_here(&mut self) -> Result<Option<Delivery>, AmqpError> {
        match self.events.try_recv() {
            Ok(event) => self.take(Some(event)).map(Some),
            Err(mpsc::error::TryRecvError::Empty) => Ok(None),
            Err(mpsc::error::TryRecvError::Disconnected) => Err(self.session.line.error()),
        }
    }

    fn take(&mut self, event: Option<Event>) -> Result<Delivery, AmqpError> {
        let Some(event) = event else { return Err(self.session.line.error()) };
        let bytes = event?;
        self.taken += 1;
        if self.taken >= self.credit.div_ceil(2) {
            let (channel, handle) = (self.session.channel, self.handle);
            // Without room for the command now, the next message asks again.
            if self.session.line.commands.try_send(Command::Credit { channel, handle }).is_ok() {
                self.taken = 0;
            } else if self.events.is_empty() {
                // There may be no next message.
                let command = Command::Credit { channel, handle };
                let line = self.session.line.clone();
                tokio::spawn(async move { drop(line.send(command).await) });
                self.taken = 0;
            }
        }
        Ok(Message::new(bytes))
    }
}
