//! Events as commands: `RPUSH key value …` or `PUBLISH channel value`.

use super::config::DataType;
use crate::codec::{Codec, CodecConfig};
use crate::context::Context;
use crate::refusal::Refusal;
use crate::selector::Selector;
use crate::supply::Share;
use skidder_redis::{write_argument, write_head, write_in_place};

/// Most values of one command: the server takes 1024 × 1024 arguments.
pub(crate) const VALUES_MAX: usize = 1 << 19;

/// Writes requests. One for each worker.
#[derive(Debug)]
pub(crate) struct RequestWriter {
    codec: Codec,
    key: Selector,
    /// The key, if it is the same for all events.
    constant: Option<Vec<u8>>,
    datatype: DataType,
    /// Every event has a text: how many values a command has is known before they are written.
    is_json: bool,
    name: Vec<u8>,
    /// Of the length of the last value.
    digits: usize,
}

/// Commands, and which events each has.
#[derive(Debug, Default)]
pub(crate) struct Request {
    pub(crate) bytes: Vec<u8>,
    /// The events that are in it, in order: index of the delivery in the share, and row.
    pub(crate) events: Vec<(u32, u32)>,
    /// Events of each command.
    pub(crate) commands: Vec<u32>,
    /// Events that have no key or no text.
    pub(crate) refusals: Vec<Refusal>,
}

impl Request {
    fn clear(&mut self) {
        self.bytes.clear();
        self.events.clear();
        self.commands.clear();
        self.refusals.clear();
    }
}

impl RequestWriter {
    pub(crate) fn new(
        codec: &CodecConfig,
        mut key: Selector,
        datatype: DataType,
        context: &Context,
        beat: &str,
    ) -> Self {
        key.bind(context);
        Self {
            codec: Codec::new(codec, context, beat),
            constant: key.constant().map(|key| key.as_bytes().to_vec()),
            key,
            datatype,
            is_json: matches!(codec, CodecConfig::Json { .. }),
            name: Vec::new(),
            digits: 1,
        }
    }

    /// The datatype of the commands.
    pub(crate) fn datatype(&self) -> DataType {
        self.datatype
    }

    /// The list or channel, if it is the same for all events.
    pub(crate) fn constant(&self) -> Option<&[u8]> {
        self.constant.as_deref()
    }

    /// Replaces the content of `request` by the commands for a share.
    pub(crate) fn write(&mut self, share: &Share, request: &mut Request) {
        request.clear();
        if self.datatype == DataType::List
            && self.is_json
            && let Some(key) = &self.constant
        {
            // One command for all.
            let count = share.iter().map(|delivery| delivery.len()).sum::<usize>();
            begin(&mut request.bytes, self.datatype.command().as_bytes(), key, count);
            request.commands.push(count as u32);
        }
        let one_command = !request.commands.is_empty();
        for (index, delivery) in share.iter().enumerate() {
            for row in delivery.rows.clone() {
                let refusal = |reason: String| Refusal::unsent(delivery, row, reason);
                let before = (request.bytes.len(), request.commands.len());
                if !one_command {
                    if self.constant.is_none() {
                        let event = delivery.batch.event(row as usize);
                        if let Err(error) = self.key.select(event, &mut self.name) {
                            request.refusals.push(refusal(error.to_string()));
                            continue;
                        }
                    }
                    let key = self.constant.as_deref().unwrap_or(&self.name);
                    begin(&mut request.bytes, self.datatype.command().as_bytes(), key, 1);
                    request.commands.push(1);
                }
                let codec = &mut self.codec;
                let value = |out: &mut Vec<u8>| codec.write(out, &delivery.batch, row as usize);
                let written = write_in_place(&mut request.bytes, &mut self.digits, value);
                if let Err(error) = written {
                    request.bytes.truncate(before.0);
                    request.commands.truncate(before.1);
                    request.refusals.push(refusal(error.to_string()));
                    continue;
                }
                request.events.push((index as u32, row));
            }
        }
    }
}

/// Appends a command up to its values.
fn begin(out: &mut Vec<u8>, command: &[u8], key: &[u8], values: usize) {
    write_head(out, values + 2);
    write_argument(out, command);
    write_argument(out, key);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{batch_with, context, deliveries};
    use skidder_event::{Format, Map};

    fn written(codec: &CodecConfig, key: &str, datatype: DataType) -> (String, Request) {
        let key = Selector::of("key", Format::parse(key).unwrap());
        let mut writer = RequestWriter::new(codec, key, datatype, &context(), "mine");
        let share = deliveries(vec![batch_with(&["a", "bc"], &Map::new(), &Map::new())]);
        let mut request = Request { bytes: b"before".to_vec(), ..Request::default() };
        writer.write(&share, &mut request);
        (String::from_utf8(request.bytes.clone()).unwrap(), request)
    }

    #[test]
    fn one_list_gets_one_command_and_everything_else_one_for_each_event() {
        let text = CodecConfig::Format(Format::parse("%{[message]}").unwrap());
        let (bytes, request) = written(&CodecConfig::default(), "logs", DataType::List);
        assert!(bytes.starts_with("*4\r\n$5\r\nRPUSH\r\n$4\r\nlogs\r\n$"), "{bytes}");
        assert!(bytes.contains("\"@metadata\":{\"beat\":\"mine\",\"type\":\"_doc\""), "{bytes}");
        assert_eq!((request.commands, request.events), (vec![2], vec![(0, 0), (0, 1)]));
        let (bytes, request) = written(&text, "x-%{[message]}", DataType::List);
        let expected = "*3\r\n$5\r\nRPUSH\r\n$3\r\nx-a\r\n$1\r\na\r\n\
                        *3\r\n$5\r\nRPUSH\r\n$4\r\nx-bc\r\n$2\r\nbc\r\n";
        assert_eq!((bytes.as_str(), request.commands), (expected, vec![1, 1]));
        let (bytes, _) = written(&text, "c", DataType::Channel);
        let expected = "*3\r\n$7\r\nPUBLISH\r\n$1\r\nc\r\n$1\r\na\r\n\
                        *3\r\n$7\r\nPUBLISH\r\n$1\r\nc\r\n$2\r\nbc\r\n";
        assert_eq!(bytes, expected);
    }

    #[test]
    fn events_without_a_key_or_a_text_are_in_no_command() {
        let (bytes, request) = written(&CodecConfig::default(), "%{[nothing]}", DataType::List);
        assert_eq!((bytes.as_str(), request.refusals.len()), ("", 2));
        assert!(request.commands.is_empty() && request.events.is_empty());
        let codec = CodecConfig::Format(Format::parse("%{[nothing]}").unwrap());
        let (bytes, request) = written(&codec, "logs", DataType::List);
        assert_eq!((bytes.as_str(), request.refusals.len()), ("", 2));
    }
}
