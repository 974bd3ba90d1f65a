//! `non_indexable_policy.dead_letter_index`: events that the server refuses, sent again to another index.
//!
//! The document is libbeat's (`outputs/elasticsearch/dead_letter_index.go`): the original as a text in `message`,
//! with status and error next to it. One difference: no pipeline, because that may be the cause of the refusal.

use super::action::Operation;
use super::request::{BodyWriter, Item, Request};
use serde::Deserialize;
use skidder_event::write_string;
use skidder_outputs::{CHUNK_BYTES, Refusal};

/// How every document begins.
const TIME: &[u8] = b"{\"@timestamp\":\"";

/// A request of the refused items of another one for `index`. What cannot be sent there, because it has no document,
/// is given back.
pub(crate) fn redirect(
    writer: &mut BodyWriter,
    whole: &Request,
    refused: Vec<(Item, Refusal)>,
    index: &str,
) -> (Option<Request>, Vec<Refusal>) {
    let mut request =
        Request { deliveries: whole.deliveries.clone(), dead_letters: true, ..Request::default() };
    let mut left = Vec::new();
    let mut chunk = writer.buffers.take();
    for (item, refusal) in refused {
        let start = chunk.len();
        let text = text_of(whole, &item);
        if !write(&mut chunk, text, &refusal, index) {
            left.push(refusal);
            continue;
        }
        let (start, end) = (start as u32, chunk.len() as u32);
        request.items.push(Item { chunk: request.plain.len() as u32, start, end, ..item });
        if chunk.len() >= CHUNK_BYTES {
            let full = std::mem::replace(&mut chunk, writer.buffers.take());
            add(writer, &mut request, full);
        }
    }
    add(writer, &mut request, chunk);
    writer.finish(&mut request);
    ((!request.items.is_empty()).then_some(request), left)
}

fn add(writer: &mut BodyWriter, request: &mut Request, chunk: Vec<u8>) {
    if !chunk.is_empty() {
        request.plain_bytes += chunk.len() as u64;
        let piece = writer.buffers.seal(chunk);
        writer.add(request, piece, 0);
    }
}

/// Appends action and document; nothing if the original has no document.
fn write(out: &mut Vec<u8>, text: &[u8], refusal: &Refusal, index: &str) -> bool {
    let Some((action, document)) = lines_of(text) else { return false };
    let Some(document) = document.strip_suffix(b"\n") else { return false };
    let Some(time) = document.strip_prefix(TIME).and_then(|rest| rest.split(|&b| b == b'"').next())
    else {
        return false;
    };
    out.extend_from_slice(b"{\"create\":{\"_index\":");
    write_string(out, index.as_bytes(), true);
    if let Some(id) = id_of(action) {
        out.extend_from_slice(b",\"_id\":");
        write_string(out, id.as_bytes(), true);
    }
    out.extend_from_slice(b"}}\n");
    out.extend_from_slice(TIME);
    out.extend_from_slice(time);
    out.extend_from_slice(b"\",\"error.message\":");
    write_string(out, &refusal.reason, false);
    out.extend_from_slice(format!(",\"error.type\":{},\"message\":", refusal.status).as_bytes());
    write_string(out, document, false);
    out.extend_from_slice(b"}\n");
    true
}

/// Action and document of an item.
fn text_of<'a>(request: &'a Request, item: &Item) -> &'a [u8] {
    &request.plain[item.chunk as usize][item.start as usize..item.end as usize]
}

/// The first line, and the rest.
fn lines_of(text: &[u8]) -> Option<(&[u8], &[u8])> {
    text.iter().position(|&byte| byte == b'\n').map(|end| text.split_at(end + 1))
}

/// The action line of an item.
pub(crate) fn action_of<'a>(request: &'a Request, item: &Item) -> Option<&'a [u8]> {
    lines_of(text_of(request, item)).map(|(action, _)| action)
}

/// The operation of an item.
pub(crate) fn operation_of(request: &Request, item: &Item) -> Operation {
    let text = text_of(request, item);
    if text.starts_with(b"{\"delete\"") {
        Operation::Delete
    } else if text.starts_with(b"{\"index\"") {
        Operation::Index
    } else {
        Operation::Create
    }
}

/// `_id` of an action line.
pub(crate) fn id_of(action: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Metadata {
        #[serde(rename = "_id")]
        id: Option<String>,
    }
    let action: std::collections::BTreeMap<String, Metadata> =
        serde_json::from_slice(action).ok()?;
    action.into_values().next()?.id
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{batch_with, deliveries};
    use bytes::Bytes;
    use skidder_event::Map;
    use skidder_outputs::Buffers;

    #[test]
    fn a_refused_document_becomes_a_text_with_its_error() {
        let delivery = deliveries(vec![batch_with(&["x"; 3], &Map::new(), &Map::new())]).remove(0);
        let texts = [
            "{\"create\":{\"_index\":\"i\",\"pipeline\":\"p\"}}\n{\"@timestamp\":\"T\",\"a\":\"b\\n\"}\n",
            "{\"index\":{\"_index\":\"i\",\"_id\":\"7\\\"\"}}\n{\"@timestamp\":\"T\"}\n",
            "{\"delete\":{\"_index\":\"i\",\"_id\":\"7\"}}\n",
        ];
        let mut whole = Request { deliveries: vec![delivery.clone()], ..Request::default() };
        let mut refused = Vec::new();
        for (row, text) in texts.iter().enumerate() {
            let (chunk, row) = (row as u32, row as u32);
            let item = Item { delivery: 0, row, chunk, start: 0, end: text.len() as u32 };
            whole.plain.push(Bytes::from_static(text.as_bytes()));
            let reason = b"{\"type\":\"x\"}".to_vec();
            refused.push((
                item,
                Refusal { delivery: delivery.clone(), row, status: 400, reason, id: None },
            ));
        }
        let mut writer = BodyWriter::new(0, Buffers::default());
        let (request, left) = redirect(&mut writer, &whole, refused, "dead");
        assert_eq!(left.iter().map(|refusal| refusal.row).collect::<Vec<_>>(), [2]);
        let request = request.unwrap();
        assert!(request.dead_letters);
        let expected = "{\"create\":{\"_index\":\"dead\"}}\n\
            {\"@timestamp\":\"T\",\"error.message\":\"{\\\"type\\\":\\\"x\\\"}\",\"error.type\":400,\
            \"message\":\"{\\\"@timestamp\\\":\\\"T\\\",\\\"a\\\":\\\"b\\\\n\\\"}\"}\n\
            {\"create\":{\"_index\":\"dead\",\"_id\":\"7\\\"\"}}\n\
            {\"@timestamp\":\"T\",\"error.message\":\"{\\\"type\\\":\\\"x\\\"}\",\"error.type\":400,\
            \"message\":\"{\\\"@timestamp\\\":\\\"T\\\"}\"}\n";
        assert_eq!(String::from_utf8(request.body.concat()).unwrap(), expected);
        assert_eq!(request.items.iter().map(|item| item.row).collect::<Vec<_>>(), [0, 1]);
    }
}
