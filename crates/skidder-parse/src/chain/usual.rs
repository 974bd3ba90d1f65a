//! The usual line of a container, straight to its event.
//!
//! A complete CRI record that no other parser, filter, group or bound concerns needs none of the
//! machinery of a chain. Promises: the event is the one that the chain makes of it; whatever is not
//! usual takes the way through the chain.

use super::container::{Format, Stream};
use super::leaf::Leaf;
use super::run::{Accept, Hold, Run};
use super::{Chain, Parser};
use crate::cri;
use skidder_event::{Batch, Row, Text};

/// Whether lines of a chain may take this way: the only parser is `container`, and no message is refused.
pub(super) fn is_possible(chain: &Chain, accept: &Accept<'_>) -> bool {
    let [Parser::Container(container)] = &*chain.parsers else { return false };
    container.format != Format::Docker
        && container.stream.is_none()
        && accept.include.is_empty()
        && accept.exclude.is_empty()
}

impl Run<'_> {
    /// Adds the event of a usual line to the batch; returns whether it was one.
    #[inline]
    pub(super) fn usual_line(&mut self, batch: &mut Batch, row: &Row) -> bool {
        let Some(Leaf::Container(leaf)) = self.state.leaves.first_mut() else { return false };
        let line = row.text().unwrap_or_default();
        let Some(record) = cri::usual(batch.text(line), &mut leaf.times) else { return false };
        let start = record.message.start as u32;
        let message = Text { start: line.start + start, len: line.len - start };
        let slot = match batch.text(line)[record.stream] {
            [b's', b't', b'd', b'o', ..] => Stream::Stdout as usize,
            _ => Stream::Stderr as usize,
        };
        // Of each stream, the first line of a batch makes the member.
        let Some(member) = leaf.members[slot].filter(|member| member.is_new) else { return false };
        if record.partial
            || message.len == 0
            || message.len as usize > self.accept.message_max_bytes
            || self.state.holds[slot] != Hold::No
            || !self.state.groups[slot].is_empty()
        {
            return false;
        }
        let mut event = *row;
        (event.message, event.time) = (message, record.time);
        batch.set_first(&mut event, member.key(), member.value(), member.text.len);
        batch.push(event);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{chain, container, regex};
    use super::super::{Ending, Finish, State};
    use super::*;
    use proptest::prelude::*;
    use skidder_event::{Base, Encoder, Map, Precision, Provenance, SourceId, Value};
    use std::sync::Arc;

    /// What comes of all lines of a text: documents with the bytes they take of the source, and the counts.
    type Outcome = (Vec<(String, u64, u32)>, Finish, u64);

    fn outcome(run: Run<'_>, mut batch: Batch, text: &str, is_usual: &mut usize) -> Outcome {
        let (mut run, mut at) = (run, 0);
        for line in text.split_inclusive('\n') {
            let row_text = Text { start: at, len: line.len() as u32 - 1 };
            let row = Row::new(u64::from(at), line.len() as u32, row_text, 7);
            let is_tried = run.try_usual;
            if is_tried && run.usual_line(&mut batch, &row) {
                *is_usual += 1;
                batch.pop();
            }
            run.line(&mut batch, row);
            at += line.len() as u32;
        }
        let finish = run.finish(&mut batch, Ending::Last);
        let documents = (0..batch.len()).map(|row| {
            let mut out = Vec::new();
            Encoder::new(Precision::Nanosecond).write(&mut out, &batch, row);
            let (offset, bytes) = (batch.rows()[row].offset, batch.rows()[row].line_bytes);
            (String::from_utf8(out).unwrap(), offset, bytes)
        });
        (documents.collect(), finish, batch.drops().total())
    }

    /// The text through the chain, with and without the short way; and how many lines could take that.
    fn both(text: &str, chain: &Chain, accept: Accept<'_>, fields: &Map) -> (Outcome, usize) {
        let mut of_usual = 0;
        let [usual, chained] = [true, false].map(|try_usual| {
            let provenance = Provenance::new(SourceId(1), 0..0);
            let base = Arc::new(Base::new(fields, &Map::new()));
            let batch = Batch::new(text.as_bytes().to_vec(), true, base, provenance);
            let mut state = State::default();
            let mut run = Run::new(chain, &mut state, accept, &batch, 0);
            run.try_usual &= try_usual;
            outcome(run, batch, text, &mut of_usual)
        });
        assert_eq!(usual, chained);
        (usual, of_usual)
    }

    const TIME: &str = "2026-11-21T20:52:57.123456789Z";
    const ALL: Accept<'static> = Accept { message_max_bytes: 10 << 20, include: &[], exclude: &[] };

    #[test]
    fn usual_lines_take_the_short_way_and_others_do_not() {
        let usual = format!("{TIME} stdout F text\n").repeat(5);
        let other = format!("{TIME} stderr P a\n{TIME} stderr F b\n{TIME} stdout F \nno record\n");
        let auto = chain([container(None, Format::Auto)]);
        let cri = chain([container(None, Format::Cri)]);
        for chain in [&auto, &cri] {
            let ((events, ..), short) = both(&usual, chain, ALL, &Map::new());
            assert_eq!((events.len(), short), (5, 4), "all but the one that makes the member");
            let ((events, ..), short) = both(&(other.clone() + &usual), chain, ALL, &Map::new());
            assert_eq!((events.len(), short), (7, 5), "an event without text is none");
        }
        let mut fields = Map::new();
        fields.insert("stream", Value::from("of the base"));
        let short_with =
            |chain: &Chain, accept, fields: &Map| both(&usual, chain, accept, fields).1;
        assert_eq!(short_with(&auto, ALL, &fields), 0);
        assert_eq!(short_with(&chain([container(None, Format::Docker)]), ALL, &Map::new()), 0);
        let joined = [container(None, Format::Cri), Parser::IncludeMessage(vec![regex("t")])];
        assert_eq!(short_with(&chain(joined), ALL, &Map::new()), 0);
        let one = chain([container(Some(Stream::Stdout), Format::Cri)]);
        assert_eq!(short_with(&one, ALL, &Map::new()), 0);
        let filter = [regex("x")];
        for accept in [Accept { include: &filter, ..ALL }, Accept { exclude: &filter, ..ALL }] {
            assert_eq!(short_with(&auto, accept, &Map::new()), 0);
        }
        assert_eq!(short_with(&auto, Accept { message_max_bytes: 3, ..ALL }, &Map::new()), 0);
    }

    fn lines() -> impl Strategy<Value = String> {
        let time = prop_oneof![
            4 => "2026-11-21T20:52:5[0-9]\\.[0-9]{9}(Z|\\+0[0-9]:00)",
            1 => "2026-11-21T20:52:57[.,]?[0-9]{0,10}Z?",
        ];
        let stream = prop_oneof![4 => Just("stdout"), 2 => Just("stderr"), 1 => Just("stdin")];
        let tag = prop_oneof![6 => Just("F"), 1 => Just("P"), 1 => Just("F:x"), 1 => Just("P:x")];
        let record = (time, stream, tag, "[ -~é]{0,12}")
            .prop_map(|(time, stream, tag, text)| format!("{time} {stream} {tag} {text}"));
        let line = prop_oneof![
            8 => record,
            1 => "[ -~]{0,60}",
            1 => r#"\{"log":"a","stream":"stdout","time":"2026-11-21T20:52:57.1Z"\}"#,
        ];
        prop::collection::vec(line, 0..30)
            .prop_map(|lines| lines.iter().flat_map(|line| [line, "\n"]).collect())
    }

    proptest! {
        #[test]
        fn the_short_way_makes_the_same_events(
            text in lines(),
            format in prop_oneof![Just(Format::Auto), Just(Format::Cri)],
            stream in prop_oneof![2 => Just(None), 1 => Just(Some(Stream::Stderr))],
            message_max_bytes in prop_oneof![3 => Just(10_usize << 20), 1 => 1_usize..10],
            has_stream in any::<bool>(),
        ) {
            let mut fields = Map::new();
            fields.insert_path("input.type", Value::from("container"));
            if has_stream {
                fields.insert("stream", Value::from("of the base"));
            }
            let accept = Accept { message_max_bytes, ..ALL };
            both(&text, &chain([container(stream, format)]), accept, &fields);
        }
    }
}
