//! Bulk bodies: their content and their cost.

use super::*;
use crate::parse_host;
use crate::testing::{batch_with, context, deliveries};
use skidder_encode::{Encoder, Framing};
use skidder_event::{Format, Map};
use std::io::Read as _;

fn config(level: u32) -> Config {
    let mut config = Config::new(vec![parse_host("es", "", "").unwrap()]);
    config.compression_level = level;
    config
}

fn requests(config: &Config, batches: Vec<skidder_event::Batch>) -> Vec<Request> {
    let mut encoder = BulkEncoder::new(config, &context(), Buffers::default());
    let mut waiting: VecDeque<Delivery> = deliveries(batches).into();
    let mut made = Vec::new();
    while !waiting.is_empty() {
        let mut request = Request::default();
        while !encoder.fill(&mut request, &mut waiting) {}
        made.push(request);
    }
    made
}

fn body(request: &Request, level: u32) -> Vec<u8> {
    let sent = request.body.concat();
    if level == 0 {
        return sent;
    }
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(&sent[..]).read_to_end(&mut plain).unwrap();
    plain
}

fn numbered(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("line {number} {}", "x".repeat(number % 500))).collect()
}

/// Numbers of the lines in a body, in its order.
fn numbers(body: &[u8]) -> Vec<usize> {
    let text = std::str::from_utf8(body).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len() % 2, 0);
    lines
        .chunks(2)
        .map(|pair| {
            assert_eq!(pair[0], "{\"create\":{\"_index\":\"filebeat-9.5.0\"}}");
            let document: serde_json::Value = serde_json::from_str(pair[1]).unwrap();
            let message = document["message"].as_str().unwrap();
            message.split(' ').nth(1).unwrap().parse().unwrap()
        })
        .collect()
}

#[test]
fn every_event_is_in_the_body_once_and_its_span_is_its_own() {
    let lines = numbered(3000);
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    for level in [0, 1, 6] {
        let batches =
            lines.chunks(700).map(|lines| batch_with(lines, &Map::new(), &Map::new())).collect();
        let mut config = config(level);
        config.bulk_max_size = 1600;
        let made = requests(&config, batches);
        let sizes: Vec<usize> = made.iter().map(|request| request.items.len()).collect();
        assert_eq!(sizes, [1600, 1400]);
        let mut all = Vec::new();
        for request in &made {
            let plain = body(request, level);
            assert_eq!(plain.len() as u64, request.plain_bytes);
            all.extend(numbers(&plain));
            let from_items: Vec<u8> = request
                .items
                .iter()
                .flat_map(|item| {
                    request.plain[item.chunk as usize][item.start as usize..item.end as usize]
                        .to_vec()
                })
                .collect();
            assert!(from_items == plain, "the spans do not cover the body");
        }
        assert_eq!(all, (0..3000).collect::<Vec<_>>());
    }
}

#[test]
fn a_part_has_exactly_the_items_asked_for() {
    let lines = numbered(2000);
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    for level in [0, 1] {
        let mut config = config(level);
        config.bulk_max_size = 0;
        let made = requests(&config, vec![batch_with(&lines, &Map::new(), &Map::new())]);
        assert!(made[0].plain.len() > 1);
        let mut writer = BodyWriter::new(level, Buffers::default());
        for keep in [1, 2, 3, 7, 1999, 2001] {
            let items: Vec<Item> = made[0]
                .items
                .iter()
                .enumerate()
                .filter(|(at, _)| at % keep == 0)
                .map(|(_, item)| *item)
                .collect();
            let part = writer.part(&made[0], items);
            let expected: Vec<usize> = (0..2000).filter(|at| at % keep == 0).collect();
            let plain = body(&part, level);
            assert_eq!(numbers(&plain), expected);
            assert_eq!(part.plain_bytes, plain.len() as u64);
            // A part of a part, as after two refusals.
            let last = part.items.last().copied().into_iter().collect();
            let again = writer.part(&part, last);
            assert_eq!(numbers(&body(&again, level)), expected[expected.len() - 1..]);
        }
    }
}

#[test]
fn requests_end_at_their_bound_in_bytes() {
    let lines = numbered(2000);
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let mut config = config(0);
    config.bulk_max_bytes = 50_000;
    let made = requests(&config, vec![batch_with(&lines, &Map::new(), &Map::new())]);
    let all: Vec<usize> =
        made.iter().flat_map(|request| numbers(&request.plain.concat())).collect();
    assert_eq!(all, (0..2000).collect::<Vec<_>>());
    assert!(made.iter().all(|request| request.plain_bytes <= 50_000));
    let long = "line 0 ".to_owned() + &"y".repeat(200_000);
    let made =
        requests(&config, vec![batch_with(&[&long, "line 1", &long], &Map::new(), &Map::new())]);
    let sizes: Vec<usize> = made.iter().map(|request| request.items.len()).collect();
    assert_eq!(sizes, [1, 1, 1]);
}

#[test]
fn events_without_an_index_are_refused_and_the_others_are_sent() {
    let mut config = config(0);
    config.index = Format::parse("%{[nothing]}").unwrap();
    let made = requests(&config, vec![batch_with(&["a", "b"], &Map::new(), &Map::new())]);
    assert_eq!((made[0].items.len(), made[0].refusals.len()), (0, 2));
    assert!(made[0].body.is_empty());
    assert_eq!(made[0].refusals[1].row, 1);
}

#[test]
fn bodies_of_several_pieces_shrink_as_one_text() {
    let lines = numbered(3000);
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let mut config = config(1);
    config.bulk_max_size = 0;
    let made = requests(&config, vec![batch_with(&lines, &Map::new(), &Map::new())]);
    assert!(made.len() == 1 && made[0].plain.len() > 2);
    let plain = body(&made[0], 1);
    assert_eq!(numbers(&plain), (0..3000).collect::<Vec<_>>());
    let sent_in = |size: usize| {
        let (mut encoder, mut sent) = (Encoder::new(Framing::Gzip), Vec::new());
        plain.chunks(size).for_each(|piece| encoder.add(piece, &mut sent));
        encoder.finish(&mut sent);
        sent.len() as u64
    };
    let (sent, whole, apart) = (made[0].body_bytes(), sent_in(plain.len()), sent_in(CHUNK_BYTES));
    assert!(sent < whole + whole / 40 && sent < apart, "{sent}, whole {whole}, apart {apart}");
}
