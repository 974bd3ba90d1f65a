//! What the driver knows of sessions and their links.

use crate::error::AmqpError;
use crate::performatives::Transfer;
use bytes::{Bytes, BytesMut};
use std::collections::{HashMap, VecDeque};
use tokio::sync::{mpsc, oneshot};

/// Requests that wait for credit of the peer, of one link.
const PENDING_MAX: usize = 64;

/// The answer to a command.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, AmqpError>>;

/// What a link tells its receiver: a message, or why there are no more.
pub(crate) type Event = Result<Bytes, AmqpError>;

/// A link.
pub(crate) struct Link {
    /// Until the peer has answered.
    pub(crate) opening: Option<Reply<u32>>,
    pub(crate) is_receiver: bool,
    /// Of a receiver.
    pub(crate) events: mpsc::Sender<Event>,
    /// Most messages that are on their way or not taken.
    pub(crate) credit_max: u32,
    /// Messages so far, as the sender of the link counts them.
    pub(crate) delivery_count: u32,
    /// How many this side may send.
    pub(crate) credit: u32,
    /// What waits for that.
    pub(crate) pending: VecDeque<Vec<u8>>,
    pub(crate) message_bytes_max: u64,
    partial: BytesMut,
    partial_id: Option<u32>,
}

/// A message that came to its end.
pub(crate) struct Whole {
    pub(crate) bytes: Bytes,
    /// The number of one that is to be settled.
    pub(crate) unsettled: Option<u32>,
}

impl Link {
    pub(crate) fn new(
        opening: Reply<u32>,
        is_receiver: bool,
        events: mpsc::Sender<Event>,
        credit_max: u32,
        message_bytes_max: u64,
    ) -> Self {
        Self {
            opening: Some(opening),
            is_receiver,
            events,
            credit_max,
            delivery_count: 0,
            credit: 0,
            pending: VecDeque::new(),
            message_bytes_max,
            partial: BytesMut::new(),
            partial_id: None,
        }
    }

    /// How many more messages may come: what waits to be taken counts.
    pub(crate) fn credit_now(&self) -> u32 {
        let waiting = self.events.max_capacity() - self.events.capacity();
        self.credit_max.saturating_sub(u32::try_from(waiting).unwrap_or(u32::MAX))
    }

    /// Takes a part of a message; returns the message with its last one.
    pub(crate) fn take(&mut self, transfer: Transfer) -> Result<Option<Whole>, AmqpError> {
        let Transfer { id, settled, more, aborted, payload, .. } = transfer;
        self.partial_id = self.partial_id.or(id);
        if aborted {
            self.partial.clear();
            self.partial_id = None;
            self.delivery_count = self.delivery_count.wrapping_add(1);
            return Ok(None);
        }
        let length = (self.partial.len() + payload.len()) as u64;
        if length > self.message_bytes_max {
            let what = format!("a message has more than {} bytes", self.message_bytes_max);
            return Err(AmqpError::Protocol(what));
        }
        if more {
            self.partial.extend_from_slice(&payload);
            return Ok(None);
        }
        self.delivery_count = self.delivery_count.wrapping_add(1);
        let id = self.partial_id.take();
        let bytes = if self.partial.is_empty() {
            payload
        } else {
            self.partial.extend_from_slice(&payload);
            self.partial.split().freeze()
        };
        Ok(Some(Whole { bytes, unsettled: id.filter(|_| !settled) }))
    }

    /// Keeps a message until there is credit for it.
    pub(crate) fn wait(&mut self, payload: Vec<u8>) -> Result<(), AmqpError> {
        if self.pending.len() >= PENDING_MAX {
            return Err(AmqpError::Protocol("the server takes no requests".into()));
        }
        self.pending.push_back(payload);
        Ok(())
    }

    /// There are no more messages.
    pub(crate) fn end(self, error: &AmqpError) {
        if let Some(opening) = self.opening {
            // Nobody may wait any more.
            drop(opening.send(Err(error.clone())));
        }
        // There is room for it beside all messages.
        drop(self.events.try_send(Err(error.clone())));
    }
}

/// A session.
#[derive(Default)]
pub(crate) struct Session {
    pub(crate) opening: Option<Reply<u16>>,
    pub(crate) remote: Option<u16>,
    pub(crate) links: HashMap<u32, Link>,
    pub(crate) next_handle: u32,
    /// Handles of the peer, and ours.
    pub(crate) handles: HashMap<u32, u32>,
    /// Names of links that are being opened, and our handles.
    pub(crate) names: HashMap<String, u32>,
    /// The number of the transfer that is expected next.
    pub(crate) received: u32,
    /// The number of the one that is sent next.
    pub(crate) sent: u32,
    /// This side has ended it.
    pub(crate) is_ending: bool,
}

impl Session {
    /// The link of a handle of the peer.
    pub(crate) fn of_peer(&mut self, handle: u32) -> Option<(u32, &mut Link)> {
        let own = *self.handles.get(&handle)?;
        Some((own, self.links.get_mut(&own)?))
    }

    /// It is over for all that use it.
    pub(crate) fn end(self, error: &AmqpError) {
        if let Some(opening) = self.opening {
            drop(opening.send(Err(error.clone())));
        }
        for link in self.links.into_values() {
            link.end(error);
        }
    }
}
