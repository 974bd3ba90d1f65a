//! A consumer group and the progress of all its members, kept for the case that the group is deleted while in use.
//!
//! The server is asked now and then up to which id every entry was delivered to a member and acknowledged. That stays
//! true, whatever the members do later: a group that was deleted goes on there when it is made anew.

use crate::entries::{Number, is_time, number};
use crate::place::{Place, ReadError, ask, unproven};
use crate::scripts;
use crate::settings::Streams;
use skidder_os::Monotonic;
use skidder_redis::{Connection, Reply};
use std::time::Duration;

/// How often the server is asked how far the group is: what was acknowledged since then comes twice if it is deleted.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// See the module's text.
pub(crate) struct Group {
    key: String,
    name: String,
    /// The server and the key, in messages.
    stream: String,
    from_newest: bool,
    /// It was joined before: if it is missing now, it was deleted.
    is_joined: bool,
    /// All entries up to this id were acknowledged, by whichever member.
    acknowledged: Option<Number>,
    /// When the server was asked for that.
    looked: Option<Monotonic>,
    /// The server refuses to answer that, at least to this connection.
    is_refused: bool,
}

/// Where a group begins.
#[derive(Debug, PartialEq, Eq)]
enum Start {
    /// Behind this id, up to which all was acknowledged.
    Behind(Number),
    /// At the first entry: the stream is another one than before.
    NewStream,
    /// At `initial_offset`, or where this process was.
    Initial,
}

impl Group {
    pub(crate) fn new(place: &Place, streams: &Streams) -> Self {
        Self {
            key: place.key.clone(),
            name: streams.group.clone(),
            stream: place.name.clone(),
            from_newest: streams.from_newest,
            is_joined: false,
            acknowledged: None,
            looked: None,
            is_refused: false,
        }
    }

    /// Makes the group, if it is not there. `last` is the last new entry of this process.
    pub(crate) async fn join(
        &mut self,
        connection: &mut Connection,
        last: Option<&str>,
    ) -> Result<(), ReadError> {
        (self.looked, self.is_refused) = (None, false);
        let start = self.start(connection).await?;
        let id = match (&start, last, self.from_newest) {
            (Start::Behind((time, counter)), ..) => format!("{time}-{counter}"),
            (Start::NewStream, ..) | (Start::Initial, _, false) => "0".to_owned(),
            (Start::Initial, None, true) => "$".to_owned(),
            // What came since then is read.
            (Start::Initial, Some(last), true) => last.to_owned(),
        };
        let (key, name) = (self.key.as_bytes(), self.name.as_bytes());
        let command: [&[u8]; 6] = [b"XGROUP", b"CREATE", key, name, id.as_bytes(), b"MKSTREAM"];
        match ask(connection, "XGROUP CREATE", &command).await {
            Err(ReadError::Refused { error, .. }) if error.starts_with("BUSYGROUP") => {}
            made => {
                made?;
                self.report_made(&start, &id);
            }
        }
        self.is_joined = true;
        Ok(())
    }

    /// Says where a group begins that was deleted.
    fn report_made(&self, start: &Start, from: &str) {
        if !self.is_joined {
            return;
        }
        let (stream, group) = (&*self.stream, &*self.name);
        let what = match start {
            Start::Behind(_) => {
                "the group was deleted and is made anew; it goes on behind what all of its members had acknowledged"
            }
            Start::NewStream => {
                "the stream was deleted; the group is made anew and reads all of the new one"
            }
            Start::Initial => {
                "the group was deleted and is made anew; events may come twice, because it is not known what its \
                 members had acknowledged: ids are no times, or the user has no right to `EVAL`, `XPENDING` and `XINFO`"
            }
        };
        tracing::warn!(stream, group, from, "{what}");
    }

    /// Where the group begins if it is missing.
    async fn start(&self, connection: &mut Connection) -> Result<Start, ReadError> {
        let Some(place) = self.acknowledged else { return Ok(Start::Initial) };
        if place == (0, 0) {
            // There was nothing before it.
            return Ok(Start::Behind(place));
        }
        let command: [&[u8]; 3] = [b"XINFO", b"STREAM", self.key.as_bytes()];
        match ask(connection, "XINFO STREAM", &command).await {
            Ok(answer) => Ok(start_in(place, last_id(&answer))),
            Err(ReadError::Refused { error, .. }) if error.starts_with("ERR no such key") => {
                Ok(Start::NewStream)
            }
            Err(ReadError::Refused { .. }) => Ok(Start::Initial),
            Err(error) => Err(error),
        }
    }

    /// Asks now and then how far the group is.
    pub(crate) async fn look(
        &mut self,
        connection: &mut Connection,
        now: Monotonic,
    ) -> Result<(), ReadError> {
        let is_recent = self.looked.is_some_and(|last| now.since(last) < LOOK_EVERY);
        if is_recent || self.is_refused {
            return Ok(());
        }
        self.looked = Some(now);
        let arguments = ["EVAL", scripts::GROUP_PROGRESS, "1", &self.key, &self.name];
        let answer = match ask(connection, "EVAL", &arguments.map(str::as_bytes)).await {
            // Without the right to it. What is known stays true.
            Err(ReadError::Refused { error, .. }) if !error.contains("NOGROUP") => {
                self.is_refused = true;
                return Ok(());
            }
            answer => answer?,
        };
        let found = acknowledged(&answer).ok_or_else(|| unproven("EVAL", answer.outline()))?;
        self.acknowledged = Some(found);
        Ok(())
    }
}

/// Where a group goes on that had acknowledged everything up to `place`, in a stream with this last id.
fn start_in(place: Number, last: Option<Number>) -> Start {
    match last {
        // Ids began anew.
        Some(last) if last < place => Start::NewStream,
        // A new stream whose ids are times has later ones. Others may have reached the place of the old one again.
        Some(_) if is_time(place) => Start::Behind(place),
        _ => Start::Initial,
    }
}

/// The last id that a stream gave, in an answer to `XINFO STREAM`.
fn last_id(answer: &Reply) -> Option<Number> {
    let Reply::List(items) = answer else { return None };
    let name = Reply::Value(b"last-generated-id".to_vec());
    let at = items.iter().position(|item| *item == name)?;
    id_of(items.get(at + 1)?)
}

/// Up to which id all is acknowledged, by an answer of the script.
fn acknowledged(answer: &Reply) -> Option<Number> {
    let Reply::List(items) = answer else { return None };
    let delivered = id_of(items.first()?)?;
    match items.get(1) {
        None | Some(Reply::Null) => Some(delivered),
        Some(first) => Some(before(id_of(first)?).min(delivered)),
    }
}

fn id_of(reply: &Reply) -> Option<Number> {
    let Reply::Value(text) = reply else { return None };
    number(std::str::from_utf8(text).ok()?)
}

/// The greatest id that is less.
fn before((time, counter): Number) -> Number {
    match (time, counter) {
        (0, 0) => (0, 0),
        (time, 0) => (time - 1, u64::MAX),
        (time, counter) => (time, counter - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: u64 = 1_700_000_000_000;

    fn value(text: &str) -> Reply {
        Reply::Value(text.as_bytes().to_vec())
    }

    #[test]
    fn all_is_acknowledged_up_to_the_first_pending_entry() {
        let found = |delivered: &str, pending: Reply| {
            acknowledged(&Reply::List(vec![value(delivered), pending]))
        };
        assert_eq!(found("9-3", Reply::Null), Some((9, 3)));
        assert_eq!(found("9-3", value("7-2")), Some((7, 1)));
        assert_eq!(found("9-3", value("7-0")), Some((6, u64::MAX)));
        // Its group was set back.
        assert_eq!(found("5-0", value("7-0")), Some((5, 0)));
        assert_eq!(found("0-0", value("0-0")), Some((0, 0)));
        assert_eq!(acknowledged(&Reply::List(vec![value("9-3")])), Some((9, 3)));
        for wrong in [Reply::Null, Reply::List(Vec::new()), Reply::List(vec![Reply::Null])] {
            assert_eq!(acknowledged(&wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn a_group_goes_on_only_in_the_stream_that_it_was_in() {
        let place = (TIME, 5);
        assert_eq!(start_in(place, Some((TIME, 5))), Start::Behind(place));
        assert_eq!(start_in(place, Some((TIME + 1, 0))), Start::Behind(place));
        assert_eq!(start_in(place, Some((1, 1))), Start::NewStream);
        assert_eq!(start_in((7, 0), Some((8, 0))), Start::Initial, "7-0 may be another entry now");
        assert_eq!(start_in((7, 0), Some((6, 0))), Start::NewStream);
        assert_eq!(start_in(place, None), Start::Initial);
    }

    #[test]
    fn the_last_id_of_a_stream_stands_behind_its_name() {
        let answer = vec![value("length"), Reply::Number(3), value("last-generated-id")];
        assert_eq!(last_id(&Reply::List(answer.clone())), None);
        let answer = answer.into_iter().chain([value("4-5"), value("groups")]).collect();
        assert_eq!(last_id(&Reply::List(answer)), Some((4, 5)));
        assert_eq!(last_id(&Reply::Null), None);
    }
}
