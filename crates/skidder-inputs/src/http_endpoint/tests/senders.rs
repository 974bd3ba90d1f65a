//! What a sender says in its documents, and what it cannot say.

use super::faces::{body_of, bulk, hec};
use super::*;

/// Sends a request and takes events until it is answered.
async fn ask(bench: &mut Bench, address: SocketAddr, request: Vec<u8>) -> Answered {
    let asking = tokio::spawn(async move { exchange(address, &request).await });
    bench.until("an answer", |_| asking.is_finished()).await;
    bench.take();
    asking.await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_says_nothing_of_how_its_event_is_written() {
    let evil = r#"{"@metadata":{"op_type":"delete","_id":"victim","pipeline":"p","raw_index":"x"},"@metadat\u0061":{"_id":"v"},"@timestamp":"2026-01-02T03:04:05Z","m":1}"#;
    let action = r#"{"create":{"_index":"i","_id":"7"}}"#;
    let of_action = json!({"raw_index": "i", "_id": "7"});
    let event = format!("{{\"event\":{evil},\"fields\":{{\"@metadata\":{{\"_id\":\"v\"}}}}}}");
    for (settings, request, metadata) in [
        (", prefix: .", post("/", evil), json!(null)),
        (", prefix: ., program: obj", post("/", evil), json!(null)),
        (", prefix: json", post("/", evil), json!(null)),
        (", accept: elasticsearch", bulk("/_bulk", &format!("{action}\n{evil}\n")), of_action),
        (", accept: splunk_hec, prefix: .", hec("/services/collector", &event), json!(null)),
    ] {
        let (address, sockets) = free_address();
        let mut bench = Bench::start(input(address, settings, &sockets), 100);
        assert_eq!(ask(&mut bench, address, request).await.status, 200, "{settings}");
        bench.events(1).await;
        assert_eq!(bench.specials[0].1, metadata, "{settings}");
        if settings != ", prefix: json" {
            assert_eq!(bench.events[0]["m"], 1, "{settings}");
        }
        bench.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prefix_of_the_settings_may_be_metadata() {
    let (address, sockets) = free_address();
    let mut bench = Bench::start(input(address, ", prefix: '@metadata.in'", &sockets), 100);
    assert_eq!(ask(&mut bench, address, post("/", "{\"m\":1}")).await.status, 200);
    bench.events(1).await;
    assert_eq!(bench.specials[0].1, json!({"in": {"m": 1}}));
    bench.stop().await;
}
