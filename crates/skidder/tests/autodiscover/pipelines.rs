//! Ingest pipelines of modules that containers name, and that the server does not take.

use crate::World;
use crate::common::Place;
use crate::common::program::Program;
use crate::common::server::BulkServer;
use crate::kubelet::Pod;
use serde_json::json;
use skidder_os::{Clock as _, SystemClock};
use std::time::Duration;

/// A module `shop` with the fileset `orders`.
fn add_module(place: &Place) {
    let module = place.path().join("module/shop/orders");
    std::fs::create_dir_all(&module).unwrap();
    let manifest =
        "module_version: '1.0'\nvar: []\ningest_pipeline: entry.json\ninput: config.yml\n";
    std::fs::write(module.join("manifest.yml"), manifest).unwrap();
    std::fs::write(module.join("entry.json"), "{\"processors\": []}").unwrap();
    std::fs::write(module.join("config.yml"), "type: log\npaths: [/none]\n").unwrap();
    let folder = place.path().join("module").display().to_string();
    let configuration = place.configuration();
    place.configure(&format!("filebeat.modules_path: '{folder}'\n{configuration}"));
}

fn letters(place: &Place) -> usize {
    let path = place.data().join("dead_letters.ndjson");
    std::fs::read_to_string(path).map_or(0, |text| text.lines().count())
}

fn await_letters(place: &Place, program: &mut Program, count: usize) {
    program.await_that("the events that name the pipeline are dead letters", || {
        letters(place) == count
    });
}

#[test]
fn a_pipeline_that_a_container_names_and_the_server_refuses_stops_no_other_container() {
    let World { server, cluster, place, folder: _folder } = World::new(BulkServer::start());
    server.refuse_pipelines(Some(("shop-orders", 403)));
    add_module(&place);
    let mut program = place.start(&[]);
    let hint = json!({"co.elastic.logs/module": "shop"});
    let mut named = Pod::create(&cluster, "named", 1, hint);
    named.write(5);
    named.run(&cluster);
    program.await_log("an input begins");
    let mut plain = Pod::create(&cluster, "plain", 2, json!({}));
    plain.write(20);
    plain.run(&cluster);
    program.await_that("the other container's lines", || server.count() == 20);
    await_letters(&place, &mut program, 5);
    let log = program.log();
    let parts = [
        "\"log.level\":\"error\"",
        "shop/orders",
        "container app of pod shop/named",
        "manage_ingest_pipelines",
    ];
    let is_told = log.lines().any(|line| parts.iter().all(|part| line.contains(part)));
    assert!(is_told, "{log}");
    let status = place.run(&["status"]).out;
    assert!(status.contains("shop/orders") && status.contains("shop/named"), "{status}");

    // A restart is the same.
    program.terminate().succeeded();
    named.write(4);
    plain.write(7);
    let mut program = place.start(&[]);
    program.await_that("the other container's lines", || server.count() == 27);
    await_letters(&place, &mut program, 9);

    // It is tried again, and is there when the server takes it.
    server.refuse_pipelines(None);
    program.await_that("the pipeline is loaded", || {
        plain.write(1);
        !server.puts().is_empty()
    });
    assert_eq!(server.puts().len(), 1);
    let of_pipeline = || server.sent().iter().filter(|one| one.pipeline.is_some()).count();
    assert_eq!(of_pipeline(), 0);
    named.write(3);
    program.await_that("its lines", || of_pipeline() == 3);
    assert_eq!(letters(&place), 9);
    let status = place.run(&["status"]).out;
    assert!(!status.contains("shop/orders"), "{status}");
    program.terminate().succeeded();
}

#[test]
fn a_pipeline_is_not_tried_when_the_input_that_names_it_has_ended() {
    let World { server, cluster, place, folder: _folder } = World::new(BulkServer::start());
    server.refuse_pipelines(Some(("shop-orders", 403)));
    add_module(&place);
    let mut program = place.start(&[]);
    let mut named = Pod::create(&cluster, "named", 1, json!({"co.elastic.logs/module": "shop"}));
    named.write(5);
    named.run(&cluster);
    await_letters(&place, &mut program, 5);
    assert!(server.refused_pipelines() > 0);
    named.delete(&cluster, true);
    program.await_log("an input ends");
    program
        .await_that("the problem is over", || !place.run(&["status"]).out.contains("shop/orders"));
    let tried = server.refused_pipelines();
    let mut plain = Pod::create(&cluster, "plain", 2, json!({}));
    plain.run(&cluster);
    let clock = SystemClock::new();
    program.await_that("some pauses are over", || {
        plain.write(1);
        clock.monotonic().0 > Duration::from_secs(5)
    });
    program.await_that("the other container's lines", || server.count() == plain.next);
    assert_eq!(server.refused_pipelines(), tried);
    program.terminate().succeeded();
}
