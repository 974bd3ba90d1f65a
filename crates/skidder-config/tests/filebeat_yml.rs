//! The way of a whole `filebeat.yml` through the public API: from text to typed values.

use skidder_config::{Problems, Section, Settings, Value};
use std::time::Duration;

/// As in a Kubernetes DaemonSet: variables, dotted and nested keys mixed, a shared anchor.
const DAEMON_SET: &str = r#"
filebeat.inputs:
  - type: filestream
    id: containers
    paths: &paths
      - /var/log/containers/*.log
    parsers:
      - container: ~
      - multiline:
          type: pattern
          pattern: '^\['
          negate: true
          match: after
    prospector:
      scanner.symlinks: true
      scanner:
        fingerprint.enabled: on
    file_identity.fingerprint: ~
  - type: filestream
    id: off
    enabled: false
    paths: *paths
    secret_of_nobody: ${NOT_SET}

filebeat.autodiscover:
  providers:
    - type: kubernetes
      node: ${NODE_NAME}
      templates:
        - config:
            - type: filestream
              paths: ["/var/log/containers/*-${data.kubernetes.container.id}.log"]

processors:
  - add_fields:
      target: ''
      fields: {env.name: prod, version: 1.10, port: 0x50}
  - drop_event.when:
      or:
        - equals.http.response.code: 200
        - range: {http.response.bytes.gte: 1_000}

cloud.id:
cloud.auth: ${ELASTIC_CLOUD_AUTH:}

output.elasticsearch:
  hosts: ['https://${ELASTICSEARCH_HOST:elasticsearch}:${ELASTICSEARCH_PORT:9200}', "${MORE_HOSTS}"]
  username: ${ELASTICSEARCH_USERNAME}
  password: ${ELASTICSEARCH_PASSWORD}
  timeout: 90
  bulk_max_size: 1600
"#;

fn environment(name: &str) -> Option<String> {
    let value = match name {
        "NODE_NAME" => "node-1",
        "ELASTICSEARCH_PORT" => "9243",
        "ELASTICSEARCH_USERNAME" => "elastic",
        "ELASTICSEARCH_PASSWORD" => "[not,a:list}",
        "MORE_HOSTS" => "b:9200,c:9200",
        _ => return None,
    };
    Some(value.to_owned())
}

#[test]
fn a_daemon_set_configuration_is_read_whole() {
    let settings = Settings::parse_with("filebeat.yml", DAEMON_SET, &environment).unwrap();
    let problems = Problems::new();
    let root = settings.root(&problems);
    let ids: Vec<Option<String>> =
        root.sections("filebeat.inputs").into_iter().map(input).collect();
    assert_eq!(ids, [Some("containers".to_owned()), None]);
    autodiscover(&settings, &root);
    processors(&root);
    assert!(root.secret("cloud.auth").or_else(Default::default).is_empty());
    assert_eq!(root.string("cloud.id").optional(), None);
    output(root.section("output.elasticsearch"));
    root.finish();
    assert_eq!(problems.to_string(), "");
}

fn input(section: Section<'_>) -> Option<String> {
    assert_eq!(section.string("type").required(), "filestream");
    let id = section.string("id").required();
    assert_eq!(section.strings("paths").required(), ["/var/log/containers/*.log"]);
    if !section.bool("enabled").or(true) {
        assert_eq!(id, "off");
        section.skip();
        return None;
    }
    assert!(section.bool("prospector.scanner.symlinks").or(false));
    assert!(section.bool("prospector.scanner.fingerprint.enabled").or(false));
    assert!(section.optional_section("file_identity.fingerprint").is_some());
    assert!(section.optional_section("file_identity.path").is_none());
    let parsers = section.sections("parsers");
    assert_eq!(
        parsers.iter().map(Section::keys).collect::<Vec<_>>(),
        [["container"], ["multiline"]]
    );
    assert!(parsers[0].optional_section("container").is_some());
    let multiline = parsers[1].section("multiline");
    assert_eq!(multiline.one_of("match", &[("after", 1), ("before", 2)]).or(0), 1);
    assert_eq!(multiline.string("pattern").required(), r"^\[");
    assert!(multiline.bool("negate").or(false));
    multiline.accept("type");
    Some(id)
}

fn autodiscover(settings: &Settings, root: &Section<'_>) {
    let provider = root.sections("filebeat.autodiscover.providers").remove(0);
    assert_eq!(provider.string("node").required(), "node-1");
    provider.accept("type");
    let template = provider.items("templates").remove(0);
    let known = |name: &str| (name == "data.kubernetes.container.id").then(|| "abc".to_owned());
    let found = settings.with_root(settings.expand(template.node(), &known, &environment));
    let problems = Problems::new();
    let input = found.root(&problems).sections("config").remove(0);
    assert_eq!(input.strings("paths").required(), ["/var/log/containers/*-abc.log"]);
    input.accept("type");
    input.finish();
    assert_eq!(problems.to_string(), "");
}

fn processors(root: &Section<'_>) {
    let list = root.sections("processors");
    let add = list[0].section("add_fields");
    assert_eq!(add.string("target").or("fields"), "");
    let Value::Map(fields) = add.value("fields").or(Value::Null) else { panic!("no map") };
    assert_eq!(fields["version"], Value::Float(1.1));
    assert_eq!(fields["port"], Value::Int(80));
    let Value::Map(inner) = &fields["env"] else { panic!("dots are levels") };
    assert_eq!(inner["name"], Value::String("prod".to_owned()));

    let conditions = list[1].section("drop_event.when").items("or");
    let leaves = |index: usize, kind: &str| {
        let condition = conditions[index].section().section(kind);
        let leaf = |(name, item): (String, skidder_config::Item<'_>)| (name, item.value());
        condition.leaves().into_iter().map(leaf).collect::<Vec<_>>()
    };
    assert_eq!(leaves(0, "equals"), [("http.response.code".to_owned(), Value::Int(200))]);
    assert_eq!(leaves(1, "range"), [("http.response.bytes.gte".to_owned(), Value::Int(1000))]);
}

fn output(section: Section<'_>) {
    let hosts = section.strings("hosts").required();
    assert_eq!(hosts, ["https://elasticsearch:9243", "b:9200", "c:9200"]);
    assert_eq!(section.string("username").required(), "elastic");
    assert_eq!(section.secret("password").required().reveal(), "[not,a:list}");
    assert_eq!(section.duration("timeout").required(), Duration::from_secs(90));
    assert_eq!(section.usize("bulk_max_size").range(1..).or(50), 1600);
}

#[test]
fn the_exported_configuration_shows_no_secret_and_reads_the_same() {
    let settings = Settings::parse_with("filebeat.yml", DAEMON_SET, &environment).unwrap();
    let yaml = settings.export_yaml();
    assert!(yaml.contains("password: xxxxx") && !yaml.contains("not,a:list"), "{yaml}");
    assert!(yaml.contains("${data.kubernetes.container.id}"), "{yaml}");
    let again = Settings::parse_with("export.yml", &yaml, &environment).unwrap();
    assert_eq!(again.export_yaml(), yaml);
}
