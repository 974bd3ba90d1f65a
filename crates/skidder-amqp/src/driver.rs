//! The task of a connection: it has all state, reads and writes frames, and sends heartbeats.

use crate::error::{AmqpError, Condition};
use crate::frames::{Frame, Frames, Kind, Output};
use crate::links::{Event, Link, Reply, Session};
use crate::performatives::{
    Ends, Performative, Transfer, accepted, attach_link, begin, close, detach, end, flow_of,
    transfer_of,
};
use std::collections::HashMap;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior};

/// A peer that was silent for so long is gone. It learns of half of that.
pub(crate) const SILENCE_MAX: Duration = Duration::from_mins(1);
/// The shortest pause between two heartbeats.
const HEARTBEAT_MIN: Duration = Duration::from_secs(1);
/// Bytes of a frame beside the payload of a transfer.
const TRANSFER_HEAD: usize = 128;

/// What the tasks of links ask for.
pub(crate) enum Command {
    Begin {
        reply: Reply<u16>,
    },
    Attach(Box<AttachCommand>),
    /// More messages may come.
    Credit {
        channel: u16,
        handle: u32,
    },
    Send {
        channel: u16,
        handle: u32,
        payload: Vec<u8>,
    },
    End {
        channel: u16,
    },
    Close {
        reply: oneshot::Sender<()>,
    },
}

/// A link to open.
pub(crate) struct AttachCommand {
    pub(crate) channel: u16,
    pub(crate) name: String,
    pub(crate) is_receiver: bool,
    pub(crate) node: String,
    pub(crate) own: String,
    pub(crate) filter: Option<String>,
    pub(crate) properties: Option<Vec<u8>>,
    pub(crate) credit_max: u32,
    pub(crate) message_bytes_max: u64,
    pub(crate) events: mpsc::Sender<Event>,
    pub(crate) reply: Reply<u32>,
}

/// See the module's text.
pub(crate) struct Driver {
    pub(crate) frames: Frames,
    pub(crate) output: Output,
    pub(crate) commands: mpsc::Receiver<Command>,
    /// How long the peer waits for a sign of life; zero for ever.
    pub(crate) idle: Duration,
    sessions: HashMap<u16, Session>,
    /// Channels of the peer, and ours.
    channels: HashMap<u16, u16>,
    next_channel: u16,
}

impl Driver {
    pub(crate) fn new(
        frames: Frames,
        output: Output,
        commands: mpsc::Receiver<Command>,
        idle: Duration,
    ) -> Self {
        let (sessions, channels) = (HashMap::new(), HashMap::new());
        Self { frames, output, commands, idle, sessions, channels, next_channel: 0 }
    }

    /// Runs until the connection ends; returns why.
    pub(crate) async fn run(mut self) -> AmqpError {
        let error = match self.work().await {
            Ok(()) => AmqpError::Gone,
            Err(error) => error,
        };
        for session in std::mem::take(&mut self.sessions).into_values() {
            session.end(&error);
        }
        self.output.shutdown().await;
        error
    }

    async fn work(&mut self) -> Result<(), AmqpError> {
        let pause = if self.idle.is_zero() { SILENCE_MAX } else { self.idle / 2 };
        let mut heartbeat = tokio::time::interval(pause.max(HEARTBEAT_MIN));
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut heard = Instant::now();
        loop {
            tokio::select! {
                frame = self.frames.next() => {
                    heard = Instant::now();
                    self.take(frame?).await?;
                    // Those that came with it, before anything else.
                    while self.frames.has_more() {
                        let frame = self.frames.next().await?;
                        self.take(frame).await?;
                    }
                }
                command = self.commands.recv() => match command {
                    Some(Command::Close { reply }) => {
                        self.output.frame(Kind::Amqp, 0, &close()).await?;
                        // The caller may have gone.
                        reply.send(()).ok();
                        return Ok(());
                    }
                    Some(command) => self.obey(command).await?,
                    // Nobody uses the connection any more.
                    None => {
                        self.output.frame(Kind::Amqp, 0, &close()).await?;
                        return Ok(());
                    }
                },
                _ = heartbeat.tick() => self.output.frame(Kind::Amqp, 0, &[]).await?,
                () = tokio::time::sleep_until(heard + SILENCE_MAX) => {
                    return Err(AmqpError::Timeout("heartbeats", SILENCE_MAX.as_secs()));
                }
            }
        }
    }

    async fn obey(&mut self, command: Command) -> Result<(), AmqpError> {
        match command {
            Command::Begin { reply } => {
                let Some(channel) = self.free_channel() else {
                    drop(reply.send(Err(AmqpError::Protocol("too many sessions".into()))));
                    return Ok(());
                };
                let session = Session { opening: Some(reply), ..Session::default() };
                self.sessions.insert(channel, session);
                self.output.frame(Kind::Amqp, channel, &begin()).await
            }
            Command::Attach(attach) => self.attach(*attach).await,
            Command::Credit { channel, handle } => self.give_credit(channel, handle).await,
            Command::Send { channel, handle, payload } => {
                let session = self.sessions.get_mut(&channel);
                if let Some(link) = session.and_then(|session| session.links.get_mut(&handle)) {
                    link.wait(payload)?;
                    self.send_pending(channel, handle).await?;
                }
                Ok(())
            }
            Command::End { channel } => {
                let Some(session) = self.sessions.get_mut(&channel) else { return Ok(()) };
                session.is_ending = true;
                session.links.clear();
                self.output.frame(Kind::Amqp, channel, &end()).await
            }
            Command::Close { .. } => Ok(()),
        }
    }

    fn free_channel(&mut self) -> Option<u16> {
        for _ in 0..=u16::MAX {
            let channel = self.next_channel;
            self.next_channel = self.next_channel.wrapping_add(1) & 0xfff;
            if !self.sessions.contains_key(&channel) {
                return Some(channel);
            }
        }
        None
    }

    async fn attach(&mut self, attach: AttachCommand) -> Result<(), AmqpError> {
        let AttachCommand { channel, name, is_receiver, node, own, filter, .. } = &attach;
        let Some(session) = self.sessions.get_mut(channel) else {
            drop(attach.reply.send(Err(AmqpError::Detached(Condition::default()))));
            return Ok(());
        };
        let handle = session.next_handle;
        session.next_handle += 1;
        session.names.insert(name.clone(), handle);
        let ends = Ends {
            is_receiver: *is_receiver,
            node,
            own,
            filter: filter.as_deref(),
            properties: attach.properties.as_deref(),
            message_bytes_max: attach.message_bytes_max,
        };
        let frame = attach_link(&ends, name, handle);
        let channel = *channel;
        let link = Link::new(
            attach.reply,
            attach.is_receiver,
            attach.events,
            attach.credit_max,
            attach.message_bytes_max,
        );
        session.links.insert(handle, link);
        self.output.frame(Kind::Amqp, channel, &frame).await
    }

    async fn give_credit(&mut self, channel: u16, handle: u32) -> Result<(), AmqpError> {
        let Some(session) = self.sessions.get(&channel) else { return Ok(()) };
        let Some(link) = session.links.get(&handle).filter(|link| link.is_receiver) else {
            return Ok(());
        };
        let of_link = (handle, link.delivery_count, link.credit_now());
        let frame = flow_of(Some(of_link), session.received, session.sent);
        self.output.frame(Kind::Amqp, channel, &frame).await
    }

    /// Sends what there is credit for.
    async fn send_pending(&mut self, channel: u16, handle: u32) -> Result<(), AmqpError> {
        let room = self.output.frame_bytes_max as usize - TRANSFER_HEAD;
        loop {
            let Some(session) = self.sessions.get_mut(&channel) else { return Ok(()) };
            let Some(link) = session.links.get_mut(&handle) else { return Ok(()) };
            if link.opening.is_some() || link.credit == 0 {
                return Ok(());
            }
            let Some(payload) = link.pending.pop_front() else { return Ok(()) };
            link.credit -= 1;
            link.delivery_count = link.delivery_count.wrapping_add(1);
            let id = session.sent;
            let parts = payload.len().div_ceil(room).max(1);
            session.sent = session.sent.wrapping_add(u32::try_from(parts).unwrap_or(1));
            for (number, part) in payload.chunks(room).enumerate() {
                let mut frame = transfer_of(handle, id, number + 1 < parts);
                frame.extend_from_slice(part);
                self.output.frame(Kind::Amqp, channel, &frame).await?;
            }
        }
    }

    async fn take(&mut self, frame: Frame) -> Result<(), AmqpError> {
        if frame.body.is_empty() {
            return Ok(());
        }
        if frame.kind != Kind::Amqp as u8 {
            return Err(AmqpError::Protocol("a frame that is none of AMQP".into()));
        }
        let performative = Performative::read(&frame.body)?;
        if let Performative::Begin { to, next_id } = performative {
            self.channels.insert(frame.channel, to);
            if let Some(session) = self.sessions.get_mut(&to) {
                (session.remote, session.received) = (Some(frame.channel), next_id);
                if let Some(opening) = session.opening.take()
                    && opening.send(Ok(to)).is_err()
                {
                    return self.obey(Command::End { channel: to }).await;
                }
            }
            return Ok(());
        }
        if let Performative::Close { error } = performative {
            // It need not arrive.
            drop(self.output.frame(Kind::Amqp, 0, &close()).await);
            return Err(AmqpError::Closed(error.unwrap_or_default()));
        }
        let Some(channel) = self.channels.get(&frame.channel).copied() else { return Ok(()) };
        match performative {
            Performative::Attach { name, handle, delivery_count, has_node } => {
                self.attached(channel, &name, (handle, delivery_count), has_node).await
            }
            Performative::Flow { handle, delivery_count, credit, echo } => {
                self.flowed(channel, handle, (delivery_count, credit), echo).await
            }
            Performative::Transfer(transfer) => self.received(channel, transfer).await,
            Performative::Detach { handle, error } => self.detached(channel, handle, error).await,
            Performative::End { error } => self.ended(frame.channel, channel, error).await,
            Performative::Open { .. }
            | Performative::Disposition
            | Performative::Begin { .. }
            | Performative::Close { .. } => Ok(()),
        }
    }

    async fn attached(
        &mut self,
        channel: u16,
        name: &str,
        (remote, delivery_count): (u32, u32),
        has_node: bool,
    ) -> Result<(), AmqpError> {
        let Some(session) = self.sessions.get_mut(&channel) else { return Ok(()) };
        let Some(handle) = session.names.remove(name) else { return Ok(()) };
        session.handles.insert(remote, handle);
        let Some(link) = session.links.get_mut(&handle) else { return Ok(()) };
        if !has_node {
            // A `detach` follows, which says why.
            return Ok(());
        }
        if link.is_receiver {
            link.delivery_count = delivery_count;
        }
        let is_awaited = link.opening.take().is_some_and(|reply| reply.send(Ok(handle)).is_ok());
        if !is_awaited {
            return self.obey(Command::End { channel }).await;
        }
        if link.is_receiver {
            return self.give_credit(channel, handle).await;
        }
        self.send_pending(channel, handle).await
    }

    async fn flowed(
        &mut self,
        channel: u16,
        handle: Option<u32>,
        (delivery_count, credit): (u32, u32),
        echo: bool,
    ) -> Result<(), AmqpError> {
        let Some(session) = self.sessions.get_mut(&channel) else { return Ok(()) };
        let link = handle.and_then(|handle| session.of_peer(handle));
        let own = match link {
            Some((own, link)) if !link.is_receiver => {
                link.credit = delivery_count.wrapping_add(credit).wrapping_sub(link.delivery_count);
                Some(own)
            }
            Some((own, _)) => {
                if echo {
                    return self.give_credit(channel, own).await;
                }
                return Ok(());
            }
            None => None,
        };
        if let Some(own) = own {
            return self.send_pending(channel, own).await;
        }
        if echo {
            let frame = flow_of(None, session.received, session.sent);
            return self.output.frame(Kind::Amqp, channel, &frame).await;
        }
        Ok(())
    }

    async fn received(&mut self, channel: u16, transfer: Transfer) -> Result<(), AmqpError> {
        let Some(session) = self.sessions.get_mut(&channel) else { return Ok(()) };
        session.received = session.received.wrapping_add(1);
        let Some((_, link)) = session.of_peer(transfer.handle) else { return Ok(()) };
        let Some(whole) = link.take(transfer)? else { return Ok(()) };
        let is_taken = match link.events.try_send(Ok(whole.bytes)) {
            Ok(()) => true,
            Err(mpsc::error::TrySendError::Closed(_)) => false,
            Err(mpsc::error::TrySendError::Full(_)) => {
                return Err(AmqpError::Protocol("it sends more messages than it may".into()));
            }
        };
        if !is_taken {
            return self.obey(Command::End { channel }).await;
        }
        if let Some(id) = whole.unsettled {
            self.output.frame(Kind::Amqp, channel, &accepted(id)).await?;
        }
        Ok(())
    }

    async fn detached(
        &mut self,
        channel: u16,
        remote: u32,
        error: Option<Condition>,
    ) -> Result<(), AmqpError> {
        let Some(session) = self.sessions.get_mut(&channel) else { return Ok(()) };
        let Some(handle) = session.handles.remove(&remote) else { return Ok(()) };
        let Some(link) = session.links.remove(&handle) else { return Ok(()) };
        link.end(&AmqpError::Detached(error.unwrap_or_default()));
        self.output.frame(Kind::Amqp, channel, &detach(handle)).await
    }

    async fn ended(
        &mut self,
        remote: u16,
        channel: u16,
        error: Option<Condition>,
    ) -> Result<(), AmqpError> {
        self.channels.remove(&remote);
        let Some(session) = self.sessions.remove(&channel) else { return Ok(()) };
        let was_ending = session.is_ending;
        session.end(&AmqpError::Detached(error.unwrap_or_default()));
        if was_ending {
            return Ok(());
        }
        self.output.frame(Kind::Amqp, channel, &end()).await
    }
}
