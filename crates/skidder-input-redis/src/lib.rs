//! The input `redis`: the slow log, as in Filebeat; lists and streams, which Filebeat does not read.
//!
//! The slow log is read behind a cursor and not emptied (`slowlog.rs`). An element of a list moves into a list of this
//! consumer in one step, and is removed from there behind its verdict (`list.rs`, `scripts.rs`). Entries of a stream are
//! read as a member of a consumer group, and acknowledged behind their verdict (`stream.rs`). See
//! `docs/decisions/0033-redis-lists-and-streams.md`.

mod entries;
mod events;
mod group;
mod list;
mod place;
mod scripts;
mod settings;
mod slowlog;
mod stream;

pub use settings::{REDIS_INPUT, read};

use place::Place;
use settings::{Kind, Settings};
use skidder_input::{Input, InputError, InputFuture, Intake};
use skidder_redis::Target;
use std::fmt;
use std::sync::Arc;
use tokio::task::JoinSet;
use tracing::Instrument as _;

/// The name of the type.
pub const KIND: &str = "redis";

/// The input, ready to run on a tokio runtime with time and I/O enabled.
pub struct Redis {
    settings: Arc<Settings>,
    servers: Vec<Arc<Target>>,
    /// The servers, and what is read.
    address: String,
}

impl Redis {
    /// The name of the consumer.
    pub fn consumer(&self) -> &str {
        &self.settings.consumer
    }

    /// What only one consumer with a name can read: each list, or stream with its group, of each server. With the name
    /// of the setting that says so; `None` if it reads the slow log, which any number can.
    pub fn consumes(&self) -> Option<(&'static str, Vec<String>)> {
        let (setting, keys, group) = match &self.settings.kind {
            Kind::SlowLog => return None,
            Kind::Lists(keys) => ("lists", keys, None),
            Kind::Streams(streams) => ("streams", &streams.keys, Some(&*streams.group)),
        };
        let mut all = Vec::with_capacity(self.servers.len() * keys.len());
        for server in &self.servers {
            let name = settings::name_of(server);
            let db = if server.db == 0 { String::new() } else { format!("/{}", server.db) };
            for key in keys {
                all.push(match group {
                    None => format!("the list `{key}` of {name}{db}"),
                    Some(group) => {
                        format!("the stream `{key}` of {name}{db} in the group `{group}`")
                    }
                });
            }
        }
        Some((setting, all))
    }
}

impl fmt::Debug for Redis {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Redis").field(&self.settings).finish()
    }
}

impl Input for Redis {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn address(&self) -> Option<&str> {
        Some(&self.address)
    }

    fn makes_fields(&self) -> bool {
        !matches!(self.settings.kind, Kind::Lists(_))
    }

    fn has_cursors(&self) -> bool {
        matches!(self.settings.kind, Kind::SlowLog)
    }

    fn has_a_name(&self) -> bool {
        !self.has_cursors()
    }

    fn run(self: Box<Self>, intake: Intake) -> InputFuture {
        Box::pin(async move {
            let mut readers = JoinSet::new();
            for server in &self.servers {
                let place = |key: &str| {
                    let (settings, server) = (Arc::clone(&self.settings), Arc::clone(server));
                    Place::new(intake.clone(), settings, server, key)
                };
                match &self.settings.kind {
                    Kind::SlowLog => {
                        readers.spawn(slowlog::read(place("")).in_current_span());
                    }
                    Kind::Lists(keys) => {
                        for key in keys {
                            readers.spawn(list::read(place(key)).in_current_span());
                        }
                    }
                    Kind::Streams(streams) => {
                        for key in &streams.keys {
                            let reading = stream::read(place(key), streams.clone());
                            readers.spawn(reading.in_current_span());
                        }
                    }
                }
            }
            while let Some(ended) = readers.join_next().await {
                ended.map_err(|error| InputError(error.to_string()))??;
            }
            Ok(())
        })
    }
}
