//! The schema accepts what skidder accepts and refuses what it refuses; tables of the documentation are those of the
//! declarations.

use super::*;
use skidder_config::{Problems, Settings, seen, table};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const PAGES: [&str; 14] = [
    "aws-cloudwatch.md",
    "aws-s3.md",
    "azure-blob-storage.md",
    "azure-eventhub.md",
    "filestream.md",
    "gcp-pubsub.md",
    "gcs.md",
    "inputs.md",
    "mqtt.md",
    "netflow.md",
    "outputs.md",
    "processors.md",
    "redis.md",
    "settings.md",
];
const END: &str = "<!-- end -->";

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The page with each table behind `<!-- settings: GROUP PREFIX -->` as declared.
fn with_tables(page: &str) -> String {
    let groups = CONFIGURATION.reachable();
    let mut written = String::new();
    let mut rest = page;
    while let Some((before, behind)) = rest.split_once("<!-- settings: ") {
        let (name, behind) = behind.split_once(" -->").unwrap();
        let (_, behind) = behind.split_once(END).unwrap_or_else(|| panic!("{name}: no {END}"));
        let (id, prefix) = name.split_once(' ').unwrap_or((name, ""));
        let group = groups.iter().find(|group| group.id == id);
        let group = group.unwrap_or_else(|| panic!("no group is called `{id}`"));
        let table = table(group, prefix);
        written.push_str(&format!("{before}<!-- settings: {name} -->\n\n{table}\n{END}"));
        rest = behind;
    }
    written + rest
}

#[test]
fn tables_of_the_documentation_are_those_of_the_declarations() {
    for page in PAGES {
        let path = repository().join("docs").join(page);
        let text = fs::read_to_string(&path).unwrap();
        let expected = with_tables(&text);
        if std::env::var_os("SKIDDER_UPDATE").is_some() {
            fs::write(&path, &expected).unwrap();
        } else {
            assert!(
                text == expected,
                "docs/{page} is not up to date; `SKIDDER_UPDATE=1 cargo test -p skidder --bins` writes it"
            );
        }
    }
}

/// The tree of a configuration, with maps on `levels` levels; below them, and below each list, each setting has its
/// whole dotted name.
fn tree(text: &str, levels: usize) -> serde_json::Value {
    let settings = Settings::parse("filebeat.yml", text).unwrap();
    flattened_below(&serde_json::Value::from(&settings.node().to_value()), levels)
}

fn flattened_below(tree: &serde_json::Value, levels: usize) -> serde_json::Value {
    match (tree, levels) {
        (_, 0) => flattened(tree),
        (serde_json::Value::Object(map), _) => map
            .iter()
            .map(|(name, value)| (name.clone(), flattened_below(value, levels - 1)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        (serde_json::Value::Array(items), _) => {
            items.iter().map(|item| flattened_below(item, levels - 1)).collect()
        }
        (other, _) => other.clone(),
    }
}

fn flattened(tree: &serde_json::Value) -> serde_json::Value {
    match tree {
        serde_json::Value::Object(map) if !map.is_empty() => {
            let mut flat = serde_json::Map::new();
            for (name, value) in map {
                match flattened(value) {
                    serde_json::Value::Object(inner) if !inner.is_empty() => {
                        flat.extend(
                            inner
                                .into_iter()
                                .map(|(rest, value)| (format!("{name}.{rest}"), value)),
                        );
                    }
                    value => {
                        flat.insert(name.clone(), value);
                    }
                }
            }
            flat.into()
        }
        serde_json::Value::Array(items) => items.iter().map(flattened).collect(),
        other => other.clone(),
    }
}

fn validator() -> jsonschema::Validator {
    let schema = json_schema(&CONFIGURATION, ID, "filebeat.yml");
    assert!(jsonschema::meta::is_valid(&schema));
    jsonschema::draft202012::new(&schema).unwrap()
}

/// The errors of the schema in a configuration.
fn objections(validator: &jsonschema::Validator, text: &str) -> Vec<String> {
    let of = |levels| {
        let tree = tree(text, levels);
        let errors = validator.iter_errors(&tree);
        errors.map(|error| format!("{} {error}", error.instance_path())).collect::<Vec<_>>()
    };
    [0, 1, 2, 3, 4, usize::MAX].into_iter().flat_map(of).collect()
}

/// Whether it has a setting that only a configuration has, unlike a manifest or a list of services.
fn is_configuration(settings: Settings) -> bool {
    // Without `http`, which the values of the Helm chart have too.
    const ROOTS: [&str; 7] =
        ["filebeat", "output", "outputs", "logging", "monitoring", "setup", "queue"];
    let problems = Problems::new();
    let root = settings.root(&problems);
    let found = root.keys().iter().any(|key| ROOTS.contains(key));
    root.skip();
    found
}

/// Every configuration of the repository that can be parsed.
fn configurations() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut next: Vec<PathBuf> = ["crates", "docs", "packaging", "tests"]
        .iter()
        .map(|folder| repository().join(folder))
        .collect();
    while let Some(folder) = next.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                next.push(path);
                continue;
            }
            let Ok(text) = fs::read_to_string(&path) else { continue };
            let texts: Vec<&str> = match path.extension().and_then(|end| end.to_str()) {
                Some("yml" | "yaml") => vec![&text],
                Some("md") => text
                    .split("```yaml\n")
                    .skip(1)
                    .filter_map(|part| part.split("```").next())
                    .collect(),
                _ => continue,
            };
            let is_ours = |text: &&str| Settings::parse("x", text).is_ok_and(is_configuration);
            found.extend(
                texts.into_iter().filter(is_ours).map(|text| (path.clone(), text.to_owned())),
            );
        }
    }
    found
}

#[test]
fn the_schema_accepts_every_configuration_of_the_repository() {
    let validator = validator();
    let all = configurations();
    assert!(all.len() > 40, "only {} were found", all.len());
    // Some are there because they are refused.
    let is_refused = |text: &str| {
        text.strip_prefix("# expect: ").is_some_and(|rest| !rest.starts_with("starts"))
    };
    let is_checked = |text: &str| !is_refused(text) || text.starts_with("# expect: typo");
    for (path, text) in all.into_iter().filter(|(_, text)| is_checked(text)) {
        let objections = objections(&validator, &text);
        let is_wrong = text.starts_with("# expect: typo");
        assert!(objections.is_empty() != is_wrong, "{}: {objections:#?}\n{text}", path.display());
    }
}

#[test]
fn the_schema_accepts_what_is_written_otherwise() {
    let validator = validator();
    for text in [
        "output.logstash.hosts: a",
        "output.logstash: {hosts: [a, b], ssl.verification_mode: none, backoff.init: 2}",
        "output: {redis.hosts: a, redis.backoff: {init: 1m, max: '${MAX}'}}",
        "output.redis: {hosts: '${HOSTS}', db: '${DB:1}', loadbalance: '${BALANCE}', datatype: '${X}'}",
        "output.redis: {hosts: a, db: '3', loadbalance: 'yes', workers: 0x10, worker: 2, datatype: channel}",
        "output.file: {path: /x, permissions: 0640, rotate_on_startup: off, codec.json.pretty: true}",
        "output.file: {path: /x, codec: {format: {string: '%{[message]}'}}, codec.json:}",
        "output.logstash: {hosts: a, max_retries: 3, queue.mem.events: 4, enabled: '${ON}'}",
        "filebeat.inputs: [{type: filestream, paths: [/a]}, {type: tcp, host: ':1', tags: a}, {paths: [/b]}]",
        "filebeat.inputs: {type: udp, host: ':1', fields: {a: b}, fields.c: d, keep_null: true, timeout: 1s}",
        "filebeat: {registry.flush: 1s, inputs: [{type: unix, path: /s, mode: '0660', processors: [{drop_event: }]}]}",
        "filebeat.inputs: [{type: syslog, format: auto, protocol.tcp: {host: ':1', ssl: {certificate: a, key: b}}}]",
        "filebeat.inputs: [{type: syslog, protocol: {unix.path: /s}}, {type: benchmark, count: 3, outputs: [a]}]",
        "output.redis: {hosts: a, keys: [{key: a, when.equals.a: b, mappings: {a.b: c}}]}",
        "filebeat.inputs: {type: filestream, paths: /x, close.reader.on_eof: on, prospector.scanner.notify: off}",
        "filebeat.inputs: [{type: filestream, paths: [/x], file_identity.native:, take_over: true, backoff: {init: 1s}}]",
        "filebeat.inputs: [{type: filestream, paths: '${P}', file_identity.inode_marker.path: /m, take_over.from_ids: a}]",
        "filebeat.inputs: [{type: filestream, paths: [/x], parsers: [{multiline: {pattern: a, match: after}}, {ndjson:}]}]",
        "filebeat.inputs: [{type: filestream, paths: [/x], parsers: [ndjson.target: a, {syslog.format: rfc3164}]}]",
        "filebeat.inputs: [{type: filestream, paths: [/x], max_bytes: 1MiB, clean_inactive: -1, json.keys_under_root: true}]",
        "filebeat.inputs: [{paths: [/x], json.keys_under_root: true, multiline: {type: count, count_lines: 3}}]",
        "filebeat.inputs: [{type: docker, containers.ids: '*', combine_partial: true}, {type: '${T}', anything: 1}]",
        "filebeat.inputs: [{type: container, stream: stderr, paths: [/x], recursive_glob: true}]",
        "filebeat.inputs: [{type: tcp, id: a, host: 'a:1', tags: a, fields: {a.b: c}, outputs: [a, {id: b}]}]",
        "{tags: [a], fields_under_root: true, fields.a.b: c}",
        "processors: {drop_event.when.not.or: [{equals.a: 1}, {not.has_fields: [b]}]}",
        "processors: [{if.equals.a: b, then: {drop_event:}, else: [{add_tags.tags: a}, drop_event: {}]}]",
        "processors: [{convert: {fields: [{from: a, type: long}], when.range.a.gte: 1}}, {convert.fields: {from: a, to: b}}]",
        "processors: [{rename.fields: [{from: a, to: b}]}, {add_fields: {fields.a.b: c, target: ''}}, {timestamp: {field: a, layouts: UNIX}}]",
        "processors: [{add_kubernetes_metadata: {host: a, matchers: [{logs_path.resource_type: pod}], indexers: [{ip_port:}]}}]",
        "processors: [{dns: {type: reverse, fields.a.b: c, success_cache.capacity.max: 5}}, {cache: {backend.memory.id: a, put.ttl: 1h}}]",
        "processors: [{script: {lang: javascript, source: 'x', params.a: b}}, {syslog: {field: a, format: auto}}]",
        "processors: [{add_docker_metadata: {host: a, ssl.certificate_authority: /x, labels.dedot: no}}, {dissect: {tokenizer: a, fail_on_error: true}}]",
        "filebeat.inputs: [{type: filestream, paths: [/x], processors: [{drop_event.when.contains.a: b}]}]",
        "output.elasticsearch: {hosts: a, workers: auto, bulk_max_size: -1, compression_level: 'auto'}",
        "output.elasticsearch: {hosts: a, exactly_once: true, non_indexable_policy: drop, preset: scale}",
        "output.elasticsearch: {hosts: a, non_indexable_policy.dead_letter_index.index: b, data_stream: x}",
        "output.elasticsearch: {hosts: a, indices: [{index: b, when.equals.a: b}], headers: {X-A: b}}",
        "output.elasticsearch: {hosts: a, kerberos: {auth_type: keytab, enabled: false}, max_retries: 3}",
        "output.kafka: {hosts: a, topic: t, partition.hash:, sasl.mechanism: scram-sha-512, compression: ZSTD}",
        "output.kafka: {hosts: a, topic: t, partition.round_robin: {group_events: 2}, headers: [{key: a}]}",
        "output.otlp: {hosts: a, protocol: http/protobuf, resource_attributes: {service.name: a}}",
        "output.s3: {bucket: a, region: b, batch.timeout: 1m, acl: private, tags.a: b, compression: none}",
        "{cloud.id: 'a:b', cloud.auth: 'a:b', setup.kibana.host: a, setup.dashboards.enabled: false}",
        "setup: {ilm.enabled: true, template: {settings.index.number_of_shards: 1, json.enabled: off}}",
        "setup: {dsl.enabled: auto, template.settings: {index: {codec: a}, _source.enabled: true}}",
        "queue: {mem: {events: 10, flush.timeout: 1s}}",
        "queue.disk: {max_size: 1GB, encryption.key: '${KEY}', retry_interval: 5}",
        "outputs: [{id: a, file.path: /x, queue.mem.events: 10, dead_letters.max_bytes: 1MB}, {id: b, discard:}]",
        "dead_letters.enabled: false",
        "logging: {level: warn, to_files: off, files: {permissions: '0640', interval: 24h}, with_fields.a.b: c}",
        "logging: {event_data:, metrics.namespaces: [], json: true, selectors: '*'}",
        "http: {enabled: true, port: '5066', pprof: {enabled: true}, auth.token: '${T}', state_inspector.enabled: no}",
        "monitoring: {enabled: true, elasticsearch: {hosts: a, metrics.period: 1m, ssl.verification_mode: none}}",
        "monitoring.otlp: {enabled: true, endpoint: 'http://a', headers: {X-A: b}, compression: none}",
        "{queue.mem.bytes: 1.5, fields: '${F}', output.elasticsearch: {hosts: a, non_indexable_policy: ''}}",
        "filebeat.inputs: [{type: tcp, host: a, ssl: , max_message_size: 1.5, timeout: .5}, {type: udp, host: a, timeout: 1_0}]",
        "output.kafka: {hosts: a, topic: t, ssl: , partition: {random: }, worker: 0b1, bulk_max_size: '0xfF'}",
        "{name: a, max_procs: 4, timestamp.precision: nanosecond, compat: lenient, path.data: /x, keystore.path: a}",
        "{seccomp.enabled: false, max_start_delay: 10s, xpack.monitoring.enabled: true, instrumentation.enabled: no}",
        "filebeat: {registry: {path: a, flush: 1s}, shutdown_timeout: 5s, config.inputs: {path: '*.yml', reload.enabled: on}}",
    ] {
        let objections = objections(&validator, text);
        assert!(objections.is_empty(), "{text}: {objections:#?}");
    }
}

#[test]
fn the_schema_refuses_mistakes() {
    let validator = validator();
    let mut accepted = Vec::new();
    for text in [
        "output.logstash.hosst: a",
        "output.logstash: {hosts: a, workers: 0}",
        "output.logstash: {hosts: a, compression_level: 10}",
        "output.logstash: {hosts: a, timeout: soon}",
        "output.logstash: {hosts: a, timeout: 0}",
        "output.logstash: {hosts: {a: b}}",
        "output.logstash: {hosts: a, ssl.verification: none}",
        "output.logstash: {hosts: a, ssl.verification_mode: nothing}",
        "output.redis: {hosts: a, loadbalance: perhaps}",
        "output.redis: {hosts: a, backoff.int: 1s}",
        "output.redis: {hosts: a, keys: [{kay: a}]}",
        "output.file: {path: /x, permissions: 0999}",
        "output.console: yes",
        "filebeat.inputs: [{type: tcp, hosts: ':1'}]",
        "filebeat.inputs: [{type: udp, host: ':1', max_message_size: 0}]",
        "filebeat.inputs: [{type: unix, path: /s, socket_type: packet}]",
        "filebeat.inputs: [{type: syslog, protocol.udp: {hots: ':1'}}]",
        "filebeat: {inputs: [{type: syslog, format: rfc1, protocol.udp: {host: ':1'}}]}",
        "filebeat.inputs: {type: benchmark, threads: 300}",
        "filebeat.inputs: [{type: filestrem, paths: [/x]}]",
        "filebeat.inputs: [{type: filestream, paths: [/x], ignore_oldr: 1h}]",
        "filebeat.inputs: [{type: filestream, paths: [/x], ignore_older: soon}]",
        "filebeat.inputs: [{type: filestream, paths: [/x], close.reader.on_eoff: true}]",
        "filebeat.inputs: [{type: filestream, paths: [/x], file_identity.inode: ''}]",
        "filebeat.inputs: [{type: filestream, paths: [/x], file_identity.native.path: a}]",
        "filebeat.inputs: [{type: filestream, paths: [/x], parsers: [{multilin: {}}]}]",
        "filebeat.inputs: [{type: filestream, paths: [/x], parsers: [{ndjson: {}, syslog: {}}]}]",
        "filebeat.inputs: [{type: filestream, paths: [/x], parsers: [{multiline: {match: behind}}]}]",
        "filebeat.inputs: [{type: filestream, paths: [/x], parsers: [{container.streams: all}]}]",
        "filebeat.inputs: [{type: filestream, paths: [/x], take_over: perhaps}]",
        "filebeat.inputs: [{type: filestream, paths: [/x], take_over.from: a}]",
        "filebeat.inputs: [{type: log, paths: [/x], prospector.scanner.symlinks: true}]",
        "filebeat.inputs: [{type: log, paths: [/x], scan.sort: name}]",
        "filebeat.inputs: [{paths: [/x], json.target: a}]",
        "filebeat.inputs: [{type: container, paths: [/x], stream: stdin}]",
        "filebeat.inputs: {type: filestream, paths: /x, message_max_bytes: 0}",
        "processors: [{drop_evnt: {}}]",
        "processors: [{drop_event: {}, add_tags.tags: a}]",
        "processors: [{convert: {fields: [{form: a}]}}]",
        "processors: [{convert.ignore_mising: true}]",
        "processors: [{convert: {fields: {from: a}, fail_on_error: perhaps}}]",
        "processors: [{drop_event.when.equal.a: 1}]",
        "processors: [{drop_event.when: {or: [{equal.a: 1}]}}]",
        "processors: [{drop_event: {when: {and: [{or: [{equals.a: 1}, {regex.a: 1}]}]}}}]",
        "processors: [{if.equals.a: b, then: [{drop_evnt: {}}]}]",
        "processors: [{if.equals.a: b, than: [{drop_event: {}}]}]",
        "processors: [{add_kubernetes_metadata: {matchers: [{log_path: {}}]}}]",
        "processors: [{syslog: {field: a, format: rfc}}]",
        "processors: [{truncate_fields: {fields: a, max_bytes: -1}}]",
        "filebeat.inputs: [{type: filestream, paths: [/x], processors: [{drop_fields.field: b}]}]",
        "output.elasticsearch: {hosts: a, workers: often}",
        "output.elasticsearch: {hosts: a, non_indexable_policy: keep}",
        "output.elasticsearch: {hosts: a, exactly_once: perhaps}",
        "output.elasticsearch: {hosts: a, indices: [{pipeline: b}]}",
        "output.kafka: {hosts: a, topic: t, partition.manual: {}}",
        "output.kafka: {hosts: a, topic: t, sasl.mechanism: OAUTHBEARER}",
        "output.kafka: {hosts: a, topic: t, headers: [{key: a, when: b}]}",
        "output.otlp: {hosts: a, protocol: http/json}",
        "output.s3: {bucket: a, acl: mine}",
        "output.s3: {bucket: a, credential_process: b}",
        "output.elastic.hosts: a",
        "output.elasticsearch: {hosts: a, queue.mem.event: 10}",
        "setup.template.nam: a",
        "setup.ilm.enabled: perhaps",
        "queue.mem.events: 0",
        "queue.spool.file: a",
        "queue.disk.segment_size: large",
        "outputs: [{id: a, file: {path: /x, pathh: /y}}]",
        "outputs: [{id: a, fil: {path: /x}}]",
        "dead_letters.max_byte: 1",
        "cloud.name: a",
        "logging.levl: info",
        "logging.files.keepfile: 3",
        "logging.metrics.period: 0.01",
        "http.port: 70000",
        "http.timeout: 7200",
        "monitoring.elasticsearch: {host: a}",
        "monitoring.otlp.compression: zstd",
        "timestamp.precision: second",
        "filebeat.registry.flsh: 1s",
        "filebeat.prospectors: []",
        "filebeat.config.input.path: a",
        "compat: strickt",
        "path.dta: a",
        "nam: a",
        "output.logstash: {hosts: a, workers: bad}",
        "max_procs: abc",
        "max_procs: 99999999999999999999",
        "output.logstash: {hosts: a, timeout: ''}",
        "output.logstash: {hosts: a, timeout: 0x10s}",
        "fields: abc",
        "fields: 5",
        "logging.with_fields: [a]",
        "filebeat.inputs: [{type: filestream, paths: [/x], fields: abc}]",
        "output.elasticsearch: {hosts: a, headers: ['X-My: 1']}",
        "output.file: {path: /x, codec.json.prety: true}",
        "output.elasticsearch: {hosts: []}",
        "instrumentation: abc",
        "management: true",
    ] {
        if objections(&validator, text).is_empty() {
            accepted.push(text);
        }
    }
    assert!(accepted.is_empty(), "{accepted:#?}");
}

/// `cargo xtask settings` compares this with what the tests set.
#[test]
fn declared_settings_are_listed_for_the_check_that_a_test_sets_each() {
    let groups = CONFIGURATION.reachable();
    let lines: BTreeSet<String> = groups
        .iter()
        .flat_map(|group| group.own().iter().map(move |key| (group, key)))
        // Maps are used if something in them is.
        .filter(|(_, key)| key.inner().is_none())
        .map(|(group, key)| seen::line(group.id, key.spec().name))
        .collect();
    assert!(lines.len() > 250, "only {} are declared", lines.len());
    assert!(lines.contains("output.redis db\n"), "{lines:?}");
    if let Some(folder) = std::env::var_os(seen::VARIABLE) {
        fs::write(Path::new(&folder).join(seen::DECLARED), lines.into_iter().collect::<String>())
            .unwrap();
    }
}
