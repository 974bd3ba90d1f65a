//! What may be written of outputs, and what the commands that try a configuration say of it.

use crate::common::Place;
use crate::common::lines::lines;
use crate::common::program::{Program, command};
use crate::common::server::BulkServer;
use crate::two;

/// With something in the place of the input's `compression`.
fn with_input(place: &Place, more: &str) {
    let text = place.configuration();
    place.configure(&text.replacen("  compression: auto\n", &format!("  {more}\n"), 1));
}

#[test]
fn mistakes_are_told_with_the_nearest_name() {
    let table = [
        ("outputs: [mian]", "there is no output `mian`", "did you mean `main`?"),
        ("outputs: [{id: other}]", "there is no output `other`", "there are `main`, `archive`"),
        ("outputs: []", "names no output", "leave it out"),
        ("outputs: [main, {id: main}]", "names the output `main` twice", "or"),
        ("outputs: [{id: main, when.equlas.a: b}]", "equlas", "did you mean `equals`"),
        ("outputs: [{id: main, wen.equals.a: b}]", "wen", "did you mean `when`"),
        ("outputs: [{when.equals.a: b}]", "`filebeat.inputs[0].outputs[0].id`", ""),
    ];
    for (input, message, hint) in table {
        let (_main, _archive, place) = two();
        with_input(&place, input);
        let ended = place.run(&["test", "config"]);
        assert_eq!(ended.code(), Some(1), "{input}: {}", ended.out);
        assert!(ended.log.contains(message) && ended.log.contains(hint), "{input}: {}", ended.log);
        assert_eq!(ended.log.matches("error: ").count(), 1, "told once: {}", ended.log);
    }
    let place = Place::new(&BulkServer::start());
    with_input(&place, "outputs: main");
    let ended = place.run(&["test", "config"]);
    assert!(ended.log.contains("chooses among several outputs"), "{}", ended.log);
    let (_main, _archive, place) = two();
    let ended = place.run(&["test", "config", "-E", "output.discard.enabled=true"]);
    assert!(ended.log.contains("`output` and `outputs` are both there"), "{}", ended.log);
}

#[test]
fn every_output_is_tested_and_exported_without_its_secrets() {
    let (main, _archive, place) = two();
    let text = place
        .configuration()
        .replace("bulk_max_size", "username: u, password: geheim, bulk_max_size");
    let more = "- {id: dark, enabled: false, elasticsearch.hosts: ['http://127.0.0.1:1']}\n";
    place.configure(&format!("{text}{more}"));
    let ended = place.run(&["test", "output"]).succeeded();
    for text in ["output `main`", "output `archive`", &main.url] {
        assert!(ended.out.contains(text), "{}", ended.out);
    }
    assert!(!ended.out.contains("dark"), "{}", ended.out);
    let ended = place.run(&["export", "config"]).succeeded();
    assert!(ended.out.contains("id: archive") && !ended.out.contains("geheim"), "{}", ended.out);
    // One of them is not there.
    place.configure(&place.configuration().replace("enabled: false", "enabled: true"));
    let ended = place.run(&["test", "output"]);
    assert_eq!(ended.code(), Some(1), "{}", ended.out);
    assert!(ended.out.contains("output `dark`"), "{}", ended.out);
}

#[test]
fn lines_are_tried_as_they_go_to_one_output() {
    let (_main, _archive, place) = two();
    with_input(&place, "outputs: [main, {id: archive, when.contains.message: ' 0000007 '}]");
    let sample = place.path().join("sample");
    std::fs::write(&sample, lines("a", 0..20)).unwrap();
    let sample = sample.to_str().unwrap();
    let events = |output: &[&str]| {
        let ended = place.run(&[&["process", sample], output].concat()).succeeded();
        ended.out.lines().count()
    };
    assert_eq!(events(&[]), 20, "without an output its condition is not looked at");
    assert_eq!((events(&["--output", "main"]), events(&["--output", "archive"])), (20, 1));
    let ended = place.run(&["process", sample, "--output", "nobody"]);
    assert!(ended.log.contains("there is `main`, `archive`"), "{}", ended.log);
    let ended = place.run(&["explain"]).succeeded();
    assert!(ended.out.contains("to the output `main`\n"), "{}", ended.out);
    assert!(
        ended.out.contains("to the output `archive` only if message contains"),
        "{}",
        ended.out
    );
    let ended = place.run(&["explain", "--output", "archive"]).succeeded();
    assert!(ended.out.contains("for this output only if message contains"), "{}", ended.out);
    let ended = place.run(&["explain", "--output", "archive", "--sample", sample]).succeeded();
    let row = ended.out.lines().find(|line| line.contains("for this output only if")).unwrap();
    let cells: Vec<&str> = row.split_whitespace().collect();
    // EVENTS, FAILED, DROPPED.
    assert!(cells.windows(3).any(|cells| cells == ["20", "0", "19"]), "{row}");
    let config = place.path().join("filebeat.yml");
    let config = config.to_str().unwrap();
    let arguments = ["diff", "-c", config, "-c", config, "--sample", sample, "--output", "archive"];
    let ended = Program::run(command(arguments).current_dir(place.path())).succeeded();
    assert!(ended.out.contains("20 events read, 1 delivered, 19 dropped"), "{}", ended.out);
}

#[test]
fn an_empty_text_where_settings_belong_is_one_mistake() {
    for setting in ["kerberos", "indices", "pipelines"] {
        let place = Place::new(&BulkServer::start());
        let text = place.configuration();
        place.configure(&text.replacen(
            "bulk_max_size",
            &format!("{setting}: '', bulk_max_size"),
            1,
        ));
        let ended = place.run(&["test", "config"]);
        assert_eq!(ended.code(), Some(1), "{setting}: {}", ended.log);
        assert_eq!(ended.log.matches("error: ").count(), 1, "told once: {}", ended.log);
    }
}
