//! `container`: records of container runtimes become their text, and partial ones are joined.
//!
//! Semantics of Filebeat's `libbeat/reader/readjson/docker_json.go`, with three differences: streams are kept
//! apart while records are joined, a line that is no record goes on as it stands with the error noted
//! (Filebeat throws it away), and the text of a Docker record loses the line feed at its end.

use super::STREAMS;
use super::group::Bounds;
use super::leaf::{Leaf, edit};
use super::run::{Hold, Item, PARTIAL, Run, TRUNCATED};
use crate::docker;
use crate::json::Scanner;
use crate::time::TimeReader;
use skidder_event::{Base, Batch, Cell, DropReason, EventMut, FieldList, NodeId, Text};
use std::time::Duration;

/// `container`.
#[derive(Clone, Copy, Debug)]
pub struct Container {
    /// `stream`; nothing = all.
    pub stream: Option<Stream>,
    /// `format`.
    pub format: Format,
    /// Bytes of a joined message; what is beyond is discarded.
    pub max_bytes: usize,
}

/// A stream of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout = 1,
    /// Standard error.
    Stderr = 2,
}

/// `format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// What begins with a brace is a Docker record, everything else one of CRI.
    Auto,
    /// Records of Docker's `json-file` driver.
    Docker,
    /// Records of the container runtime interface.
    Cri,
}

impl Container {
    /// How long a partial record waits for the next one. Filebeat waits for ever.
    pub const TIMEOUT: Duration = Duration::from_secs(5);

    fn bounds(&self) -> Bounds {
        Bounds { bytes: self.max_bytes, lines: 0, separator: b"" }
    }
}

/// The state of `container` during a turn.
#[derive(Debug)]
pub(super) struct ContainerLeaf {
    scanner: Scanner,
    pub(super) times: TimeReader,
    /// For each stream, its member in the bytes of the batch.
    pub(super) members: [Option<Member>; STREAMS],
}

/// `"stream":"…"`, as it stands in the bytes of a batch once for all its events.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    pub(super) text: Text,
    /// The base of the batch has no `stream`.
    pub(super) is_new: bool,
}

impl Member {
    pub(super) fn key(self) -> Text {
        Text { start: self.text.start + 1, len: 6 }
    }

    pub(super) fn value(self) -> Cell {
        Cell::Str(Text { start: self.text.start + 10, len: 6 })
    }
}

impl ContainerLeaf {
    pub(super) fn new() -> Self {
        Self {
            scanner: Scanner::new(false),
            times: TimeReader::default(),
            members: [None; STREAMS],
        }
    }

    /// Another batch.
    pub(super) fn begin(&mut self) {
        self.members = [None; STREAMS];
    }
}

/// A record, of either format.
struct Record {
    time: i64,
    stream: Text,
    partial: bool,
    message: Text,
    attrs: Option<NodeId>,
    has_line_feed: bool,
}

impl Run<'_> {
    /// One line at the parser `at`, which becomes its text; returns whether it is complete and goes on.
    pub(super) fn container(
        &mut self,
        batch: &mut Batch,
        at: usize,
        container: &Container,
        item: &mut Item,
    ) -> bool {
        let line = item.row.text().unwrap_or_default();
        if line.len == 0 {
            self.drop(item, Some(DropReason::Empty));
            return false;
        }
        let is_docker = match container.format {
            Format::Auto => batch.text(line)[0] == b'{',
            Format::Docker => true,
            Format::Cri => false,
        };
        let Leaf::Container(leaf) = &mut self.state.leaves[at] else { return false };
        let record = if is_docker {
            docker(batch, &self.base, leaf, item, line)
        } else {
            cri(batch, leaf, line)
        };
        let record = match record {
            Ok(record) => record,
            Err(error) => {
                self.note_error(batch, at, item, &error);
                return true;
            }
        };
        item.stream = match batch.text(record.stream) {
            b"stdout" => Stream::Stdout as usize,
            b"stderr" => Stream::Stderr as usize,
            _ => 0,
        };
        if container.stream.is_some_and(|stream| stream as usize != item.stream) {
            self.drop(item, Some(DropReason::Parser));
            return false;
        }
        item.row.time = record.time;
        item.has_line_feed = record.has_line_feed;
        batch.set_text(&mut item.row, record.message);
        self.put_stream(batch, at, item, record.stream);
        if let Some(attrs) = record.attrs {
            self.edit(batch, item, |event| docker::put_attrs(event, attrs));
            item.has_fields = true;
        }
        self.join(batch, at, container, item, record.partial)
    }

    /// A record that is complete, or a part of one; returns whether it goes on by itself.
    fn join(
        &mut self,
        batch: &mut Batch,
        at: usize,
        container: &Container,
        item: &Item,
        partial: bool,
    ) -> bool {
        let slot = at * STREAMS + item.stream;
        if self.hold(slot) != Hold::No {
            self.discard(item);
            if !partial {
                self.set_hold(slot, item.row.offset, Hold::No);
            }
            return false;
        }
        if !partial && self.group(slot).is_empty() {
            return true;
        }
        self.add(batch, slot, item, container.bounds());
        self.group(slot).set_open(partial);
        if partial {
            self.bound_group(batch, at, item.stream, item.row.offset, Hold::Following);
        } else {
            self.complete(batch, at, item.stream);
        }
        false
    }

    /// Passes the text of joined records to the next parsers.
    pub(super) fn complete_container(&mut self, batch: &mut Batch, at: usize, stream: usize) {
        let group = self.group(at * STREAMS + stream);
        let is_partial = group.is_open();
        if let Some(mut done) = group.take(batch, b"") {
            // A cut group is not flagged as partial: it is cut.
            let partial = if is_partial && !done.truncated { PARTIAL } else { 0 };
            done.item.flags |= partial | if done.truncated { TRUNCATED } else { 0 };
            self.advance(batch, done.item, at + 1);
        }
    }

    /// Sets `stream`.
    fn put_stream(&mut self, batch: &mut Batch, at: usize, item: &mut Item, name: Text) {
        let stream = item.stream;
        if name.len == 0 {
            return;
        }
        let Leaf::Container(leaf) = &mut self.state.leaves[at] else { return };
        if stream == 0 {
            let key = batch.append(b"stream");
            return self.edit(batch, item, |event| put_field(event, key, Cell::Str(name), 0));
        }
        let member = match leaf.members[stream] {
            Some(member) => member,
            None => *leaf.members[stream].insert(Member {
                text: batch.append(match stream {
                    1 => b"\"stream\":\"stdout\"",
                    _ => b"\"stream\":\"stderr\"",
                }),
                is_new: !self.base.has("stream"),
            }),
        };
        let (key, value, len) = (member.key(), member.value(), member.text.len);
        if member.is_new && !item.row.has_own() {
            batch.set_first(&mut item.row, key, value, len);
        } else {
            self.edit(batch, item, |event| put_field(event, key, value, len));
        }
    }
}

/// Sets a field of an event; `raw` as for [`skidder_event::Arena::push`].
fn put_field(event: &mut EventMut<'_>, key: Text, value: Cell, raw: u32) {
    let (_, mut arena) = event.arena();
    let node = arena.push(NodeId::NONE, key, value, raw);
    event.merge_list_over(FieldList::one(node), true);
}

fn docker(
    batch: &mut Batch,
    base: &Base,
    leaf: &mut ContainerLeaf,
    item: &Item,
    line: Text,
) -> Result<Record, String> {
    let mut copy = *item;
    let mut parsed = None;
    edit(batch, base, &mut copy, |event| {
        parsed = Some(docker::parse(&mut leaf.scanner, &mut leaf.times, event, line));
    });
    let record = parsed.expect("the event was edited").map_err(|error| error.to_string())?;
    Ok(Record {
        time: record.time,
        stream: record.stream,
        partial: record.partial,
        message: record.message,
        attrs: record.attrs,
        has_line_feed: !record.partial,
    })
}

#[inline]
fn cri(batch: &Batch, leaf: &mut ContainerLeaf, line: Text) -> Result<Record, String> {
    let record = crate::cri::parse(batch.text(line), &mut leaf.times);
    let record = record.map_err(|error| error.to_string())?;
    let part = |range: std::ops::Range<usize>| Text {
        start: line.start + range.start as u32,
        len: range.len() as u32,
    };
    Ok(Record {
        time: record.time,
        stream: part(record.stream),
        partial: record.partial,
        message: part(record.message),
        attrs: None,
        has_line_feed: false,
    })
}
