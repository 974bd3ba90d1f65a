//! Lists of outputs: how they are read, and their problems.

use base64::Engine as _;

use super::{OneOutput, Outputs, Places};
use skidder_config::{Problems, Settings};
use skidder_event::Precision;
use skidder_os::{Fs, Timestamp};
use skidder_output_elasticsearch::Setup;
use skidder_outputs::Context;
use skidder_pipeline::{DiskQueueKey, QueueLimits};
use skidder_testkit::{SimClock, SimFs};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Reads a configuration; returns the outputs and the problems.
fn read(text: &str) -> (Outputs, String) {
    read_on(&SimFs::new(&SimClock::new()), text)
}

fn read_on(fs: &SimFs, text: &str) -> (Outputs, String) {
    let settings = Settings::parse("filebeat.yml", text).unwrap();
    let problems = Problems::new();
    let context = Context {
        beat: "filebeat".to_owned(),
        version: "9.5.3".to_owned(),
        agent_name: "forest".to_owned(),
        agent_id: "id".to_owned(),
        precision: Precision::Millisecond,
        fs: Arc::new(fs.clone()),
    };
    let root = settings.root(&problems);
    let setup = root.section("setup");
    let setup = Setup::read(&setup, &context, Path::new("/"));
    let outputs = Outputs::read(&root, &context, Arc::new(setup), Timestamp(0));
    root.finish();
    (outputs, problems.to_string())
}

#[test]
fn a_list_has_ids_and_each_its_own_queue_and_dead_letters() {
    let (outputs, problems) = read(
        "queue.mem.events: 500\n\
         dead_letters.max_bytes: 1MiB\n\
         outputs:\n\
         - {id: main, console: {enabled: true, queue.mem.events: 40}}\n\
         - {id: off, enabled: false, elasticsearch: {hosts: es}}\n\
         - {id: b.c_d-1, queue.mem.bytes: 1MiB, dead_letters.enabled: false, discard.enabled: true}\n\
         - {id: d, discard.enabled: true, console.enabled: false, dead_letters.max_bytes: 7}\n",
    );
    assert_eq!(problems, "");
    assert_eq!(outputs.ids, ["main", "off", "b.c_d-1", "d"]);
    let built = outputs.built.iter().map(|(number, one)| {
        let letters = one.dead_letters.map(|limits| limits.bytes);
        (
            *number,
            one.built.output.kind(),
            one.queue.limits.events,
            one.queue.limits.bytes >> 20,
            letters,
        )
    });
    let expected = [
        (0, "console", 40, 16, Some(1 << 20)),
        (2, "discard", 500, 1, None),
        (3, "discard", 500, 16, Some(7)),
    ];
    assert_eq!(built.collect::<Vec<_>>(), expected);
    let (outputs, problems) = read("output.console: {enabled: true, queue.mem.events: 9}");
    assert_eq!((outputs.ids.len(), outputs.built[0].1.queue.limits.events, &*problems), (0, 9, ""));
}

#[test]
fn sizes_that_find_themselves_give_way_to_a_queue_that_is_given() {
    let output = "output.elasticsearch: {hosts: es, bulk_max_size: auto}";
    let (outputs, problems) = read(output);
    let queue = outputs.built[0].1.queue.limits;
    assert_eq!((queue.events, queue.bytes, &*problems), (1 << 20, QueueLimits::BYTES, ""));
    let (outputs, problems) = read(&format!("queue.mem.events: 70\n{output}"));
    assert_eq!((outputs.built[0].1.queue.limits.events, &*problems), (70, ""));
    let (outputs, problems) = read(
        "queue.mem.events: 70\n\
         outputs: [{id: a, elasticsearch: {hosts: es, preset: balanced}}]",
    );
    assert_eq!((outputs.built[0].1.queue.limits.events, &*problems), (3200, ""));
}

#[test]
fn what_is_wrong_with_a_list_is_told() {
    let table = [
        ("outputs: []", "no list of outputs"),
        ("outputs: {id: a, discard.enabled: true}", "no list of outputs"),
        ("outputs: [{discard.enabled: true}]", "`outputs[0].id`"),
        ("outputs: [{id: a b, discard.enabled: true}]", "letters, digits"),
        ("outputs: [{id: .., discard.enabled: true}]", "begins with"),
        ("outputs: [{id: -a, discard.enabled: true}]", "begins with"),
        ("outputs: [{id: a}]", "no output is enabled"),
        ("outputs: [{id: a, enabled: false, discard.enabled: true}]", "no output is enabled"),
        ("outputs: [{id: a, discard.enabled: true, console.enabled: true}]", "both enabled"),
        ("outputs: [{id: a, diskard.enabled: true}]", "did you mean `discard`"),
        ("outputs: [{id: a, quue.mem.events: 7, discard.enabled: true}]", "did you mean `queue`"),
        (
            "outputs: [{id: a, queue.mem.events: 7, discard: {queue.mem.events: 7, enabled: true}}]",
            "beside the output and in it",
        ),
        (
            "outputs: [{id: a, discard.enabled: true}, {id: a, console.enabled: true}]",
            "two outputs have the id `a`",
        ),
        ("output.discard.enabled: true\noutputs: [{id: a, console.enabled: true}]", "both there"),
        ("outputs: [{id: a, elasticsearch: {hosts: es, bulk_max_size: x}}]", "outputs[0].elastic"),
        (
            "queue.mem.events: 8\noutput.discard: {enabled: true, queue.mem.events: 7}",
            "`queue` stands at the root and in the output",
        ),
    ];
    for (text, expected) in table {
        let (_, problems) = read(text);
        assert!(problems.contains(expected), "{text}: {problems}");
    }
}

fn places(fs: &SimFs) -> Places {
    Places::find(fs, Path::new("/data"), PathBuf::from("/data/registry")).unwrap()
}

/// Where the registries of these outputs are; `.` is that of a single one.
fn registries(places: &Places, ids: &[String]) -> Vec<String> {
    let all = ids.iter().map(|id| places.of(Some(id), ids).registry);
    all.map(|path| match path.strip_prefix("/data/registry/filebeat-outputs") {
        Ok(own) => own.display().to_string(),
        Err(_) => ".".to_owned(),
    })
    .collect()
}

fn ids(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

#[test]
fn no_output_gets_the_registry_of_another_one_because_the_list_changes() {
    let fs = SimFs::new(&SimClock::new());
    fs.create_dir_as_other("/data");
    let single = places(&fs).of(None, &[]);
    assert_eq!(single.registry, Path::new("/data/registry/filebeat"));
    // Looking changes nothing.
    assert_eq!(registries(&places(&fs), &ids("b a")), [".", "a"]);
    assert_eq!(registries(&places(&fs), &ids("a b")), [".", "b"]);
    let unlisted = places(&fs).claim(&fs, &ids("a b")).unwrap();
    assert!(unlisted.is_empty());
    fs.crash();
    for list in ["a b", "b a", "c a b"] {
        let found: Vec<(String, String)> =
            ids(list).into_iter().zip(registries(&places(&fs), &ids(list))).collect();
        for (id, registry) in found {
            assert_eq!(registry, if id == "a" { "." } else { &id }, "{list}");
        }
    }
    // It is not in the list any more: no output gets what it has.
    assert_eq!(registries(&places(&fs), &ids("b c")), ["b", "c"]);
    fs.create_dir_as_other("/data/registry/filebeat-outputs/old");
    assert_eq!(places(&fs).claim(&fs, &ids("b c")).unwrap(), ["a", "old"]);
    assert_eq!(places(&fs).of(None, &[]), single);
    let b = places(&fs).of(Some("b"), &ids("b c"));
    assert_eq!((b.data, b.is_main), (PathBuf::from("/data/outputs/b"), false));
    assert!(fs.metadata(Path::new("/data/outputs/b")).is_ok());
}

/// The paths of disk queues, and the problems.
fn disk_paths(text: &str) -> (Vec<String>, String) {
    let (outputs, problems) = read(text);
    let data = Path::new("/data");
    let fs: Arc<dyn Fs> = Arc::new(SimFs::new(&SimClock::default()));
    let places = Places::find(&*fs, data, data.join("registry")).expect("there is none");
    let path = |(number, one): &(usize, OneOutput)| {
        let id = outputs.ids.get(*number).map(String::as_str);
        let disk = one.queue.disk(&places.of(id, &outputs.ids), id);
        disk.map_or_else(|| "mem".to_owned(), |disk| disk.path.display().to_string())
    };
    (outputs.built.iter().map(path).collect(), problems)
}

#[test]
fn each_output_has_its_own_directory_for_its_queue() {
    let paths = |text: &str| disk_paths(text).0.join(" ");
    assert_eq!(paths("queue.disk.max_size: 1GB\noutput.discard.enabled: true"), "/data/diskqueue");
    assert_eq!(paths("output.discard: {enabled: true, queue.disk.path: /q}"), "/q");
    let items = "{id: a, discard.enabled: true}, {id: b, discard.enabled: true}, \
                 {id: c, discard.enabled: true, queue.disk.path: /c}, \
                 {id: d, discard.enabled: true, queue.mem.events: 9}";
    let list = |root: &str| paths(&format!("{root}\noutputs: [{items}]"));
    assert_eq!(
        list("queue.disk.max_size: 1GB"),
        "/data/diskqueue /data/outputs/b/diskqueue /c mem"
    );
    assert_eq!(list("queue.disk.path: /q"), "/q /q/outputs/b /c mem");
    assert_eq!(list(""), "mem mem /c mem");
}

#[test]
fn what_is_wrong_with_a_queue_on_the_disk_is_told() {
    for (settings, expected) in [
        ("disk: {}\n  mem.events: 10", "both there"),
        ("disk.max_size: 1MB", "at least 10 MB"),
        ("disk: {max_size: 10MB, segment_size: 6MB}", "more than half of `max_size`"),
        ("disk.segment_size: 10KB", "at least 1 MB"),
        ("disk: {retry_interval: 5s, max_retry_interval: 1s}", "is less than"),
        ("disk.retry_interval: 0s", "`retry_interval` is 0"),
        ("disk.read_ahaed: 7", "did you mean `read_ahead`"),
        ("slab.events: 7", "slab"),
        ("disk.encryption: {}", "`queue.disk.encryption` has no key"),
        ("disk.encryption: {key: x, key_file: y}", "`key` and `key_file` are both there"),
        ("disk.encryption.key: c2hvcnQ=", "32 random bytes in base64"),
        ("disk.encryption.key_file: /no/such/file", "cannot be read"),
        ("disk.encryption.algorithm: x", "unknown setting"),
    ] {
        let text = format!("queue:\n  {settings}\noutput.discard.enabled: true");
        let (_, problems) = disk_paths(&text);
        assert!(problems.contains(expected), "{settings}: {problems}");
    }
    let good = "queue.disk: {max_size: 0, read_ahead: 1, write_ahead: 1, enabled: true}";
    assert_eq!(disk_paths(&format!("{good}\noutput.discard.enabled: true")).1, "");
}

#[test]
fn the_key_of_a_queue_is_read_from_the_configuration_or_a_file() {
    let text = base64::engine::general_purpose::STANDARD.encode([9; 32]);
    let fs = SimFs::new(&SimClock::new());
    fs.write_as_other(Path::new("/key"), format!("{text}\n").as_bytes());
    let key = |disk: &str| {
        let (outputs, problems) =
            read_on(&fs, &format!("queue.disk: {{{disk}}}\noutput.discard.enabled: true"));
        assert_eq!(problems, "", "{disk}");
        outputs.built[0].1.queue.key().cloned()
    };
    let expected = Some(DiskQueueKey::new([9; 32]));
    assert_eq!(key(&format!("encryption.key: {text}")), expected);
    assert_eq!(key("encryption.key_file: /key"), expected);
    assert_eq!(key(&format!("encryption: {{enabled: false, key: {text}}}")), None);
    assert_eq!(key("max_size: 0"), None);
    let (_, problems) = read("queue.disk.encryption.key: c2VjcmV0\noutput.discard.enabled: true");
    assert!(problems.contains("base64") && !problems.contains("c2VjcmV0"), "{problems}");
}

#[test]
fn outputs_of_other_crates_are_built_or_say_what_is_wrong() {
    for (text, kind) in [
        ("output.elasticsearch.hosts: es", "elasticsearch"),
        ("output.elasticsearch: {hosts: es, queue.mem.events: 5}", "elasticsearch"),
        ("output.otlp.hosts: collector", "otlp"),
        ("output.otlp: {hosts: 'a:1', protocol: http/protobuf, queue.mem.events: 5}", "otlp"),
    ] {
        let (outputs, problems) = read(text);
        let kinds: Vec<_> = outputs.built.iter().map(|(_, one)| one.built.output.kind()).collect();
        assert_eq!((kinds, problems.as_str()), (vec![kind], ""), "{text}");
    }
    for (text, expected) in [
        ("output.otlp: {hosts: a, ssl.certificate_authorities: /nothing}", "cannot read"),
        ("output.otlp: {hosts: 'https://a', ssl.enabled: false}", "needs TLS"),
        ("output.elasticsearh.hosts: x", "did you mean `elasticsearch`"),
        ("output.elasticsearch: {hosts: 'https://es', ssl.enabled: false}", "needs TLS"),
        (
            "output.elasticsearch: {hosts: 'https://es', ssl.certificate_authorities: /nothing}",
            "cannot read",
        ),
        (
            "output.elasticsearch: {hosts: 'https://es', ssl.certificate_authorities: '-----BEGIN x'}",
            "PEM",
        ),
    ] {
        let (outputs, problems) = read(text);
        assert!(outputs.wrong && problems.contains(expected), "{text}: {problems}");
    }
}
