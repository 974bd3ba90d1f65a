//! The settings of `filebeat.autodiscover`, and mistakes in them.

mod common;

use common::read;
use skidder_autodiscover::{ProviderKind, Resource, Scope};
use std::time::Duration;

fn problems(provider: &str) -> String {
    let (made, problems) = read(&format!("filebeat.autodiscover.providers:\n- {provider}\n"));
    assert_eq!(made.is_none(), problems.contains("error: "), "{problems}");
    problems
}

#[test]
fn watchers_get_what_they_need() {
    let text = "
filebeat.autodiscover:
  providers:
  - type: docker
    host: tcp://127.0.0.1:2376
    cleanup_timeout: 5s
    ssl: {certificate_authority: /ca.pem, verification_mode: none}
    labels.dedot: false
    prefix: my.org.
    hints: {enabled: true, key: audit}
  - type: kubernetes
    kube_config: /k
    kube_client_options: {qps: 7, burst: 9}
    node: n1
    namespace: shop
    sync_period: 1m
    use_kubeadm: false
    include_labels: [a]
    exclude_labels: [b.*]
    use_regex_exclude: true
    include_annotations: [c]
    use_regex_include: true
    labels.dedot: false
    annotations.dedot: false
    add_resource_metadata:
      namespace: {enabled: false}
      node: {include_labels: [x], labels.dedot: false, annotations.dedot: false}
      deployment: true
      cronjob: true
    hints.enabled: true
    hints.input_allow_list: {enabled: true, types: [filestream]}
  - type: kubernetes
    resource: service
    templates: {config: {type: tcp}}
  - type: kubernetes
    scope: cluster
    unique: true
    leader_lease: l
    leader_leaseduration: 20s
    leader_renewdeadline: 11s
    leader_retryperiod: 3s
    templates: {config: {type: tcp}}
";
    let (made, problems) = read(text);
    assert_eq!(problems, "");
    let all = made.unwrap();
    let [docker, pods, services, leader] = all.providers() else { panic!("four providers") };
    assert_eq!(docker.cleanup_timeout, Duration::from_secs(5));
    assert_eq!(pods.cleanup_timeout, Duration::from_mins(1));
    let ProviderKind::Docker(docker) = &docker.kind else { panic!("docker") };
    assert_eq!(docker.host, "tcp://127.0.0.1:2376");
    assert_eq!(docker.tls.as_ref().unwrap().certificate_authorities.len(), 1);
    let ProviderKind::Kubernetes(pods) = &pods.kind else { panic!("kubernetes") };
    assert_eq!(pods.kube_config.as_deref(), Some(std::path::Path::new("/k")));
    assert_eq!((pods.qps, pods.burst), (7.0, 9));
    assert_eq!((pods.node.as_deref(), pods.namespace.as_deref()), (Some("n1"), Some("shop")));
    assert_eq!((pods.scope, pods.resource), (Scope::Node, Resource::Pod));
    assert_eq!((pods.sync_period, pods.use_kubeadm), (Duration::from_mins(1), false));
    assert!(
        pods.wants_nodes && pods.wants_namespaces && pods.wants_replica_sets && pods.wants_jobs
    );
    let ProviderKind::Kubernetes(services) = &services.kind else { panic!("kubernetes") };
    assert_eq!((services.scope, services.resource), (Scope::Cluster, Resource::Service));
    assert!(!services.wants_nodes && services.unique.is_none());
    let ProviderKind::Kubernetes(leader) = &leader.kind else { panic!("kubernetes") };
    let lease = leader.unique.as_ref().unwrap();
    assert_eq!(lease.name, "l");
    assert_eq!(lease.duration, Duration::from_secs(20));
    assert_eq!(lease.renew_deadline, Duration::from_secs(11));
    assert_eq!(lease.retry_period, Duration::from_secs(3));
}

#[test]
fn mistakes_are_reported_with_their_place() {
    let table = [
        (
            "{type: docker}",
            "`filebeat.autodiscover.providers[0]` has neither `templates` nor `hints`",
        ),
        ("{type: docker, hints.enabled: false}", "has neither `templates` nor `hints`"),
        (
            "{type: podman}",
            "unknown autodiscover provider `podman`\nhint: use `docker`, `kubernetes`, `nomad` or `jolokia`",
        ),
        (
            "{type: aws_ec2, hints.enabled: true}",
            "the autodiscover provider `aws_ec2` is known to Filebeat",
        ),
        ("{hints.enabled: true}", "`filebeat.autodiscover.providers[0].type`"),
        (
            "{type: docker, hints.enabled: true, hots: x}",
            "unknown setting `filebeat.autodiscover.providers[0].hots`",
        ),
        (
            "{type: docker, templates: [{condition.equals.a: 1}]}",
            "`filebeat.autodiscover.providers[0].templates[0]` has no `config`",
        ),
        ("{type: docker, templates: [{config: [tcp]}]}", "templates[0].config[0]` is no input"),
        ("{type: docker, templates: [{condition: {like.a: b}, config: {type: tcp}}]}", "like"),
        (
            "{type: docker, hints.default_config: x}",
            "`filebeat.autodiscover.providers[0].hints.default_config` is no map",
        ),
        (
            "{type: docker, hints.enabled: true, appenders: [{type: more, config: {a: 1}}]}",
            "unknown appender `more`",
        ),
        ("{type: docker, hints.enabled: true, appenders: [{type: config}]}", "has no map `config`"),
        (
            "{type: docker, templates: [{config: {type: tcp, id: 'a-${data.x'}}]}",
            "`filebeat.autodiscover.providers[0].templates[0].config.id` has a `${` without its `}`",
        ),
        (
            "{type: docker, hints.default_config: {type: log, paths: ['/x/${data.x']}}",
            "`filebeat.autodiscover.providers[0].hints.default_config.paths[0]` has a `${` without its `}`",
        ),
        (
            "{type: docker, hints.enabled: true, appenders: [{type: config, config: {a: '${data.x'}}]}",
            "`filebeat.autodiscover.providers[0].appenders[0].config.a` has a `${` without its `}`",
        ),
        (
            "{type: docker, hints.enabled: true, builders: [{type: hints}]}",
            "`filebeat.autodiscover.providers[0].builders` is known to Filebeat",
        ),
        (
            "{type: kubernetes, hints.enabled: true, include_labels: ['('], use_regex_include: true}",
            "include_labels",
        ),
        ("{type: kubernetes, hints.enabled: true, unique: true}", "needs `scope: cluster`"),
        (
            "{type: kubernetes, resource: service, scope: node, hints.enabled: true}",
            "services are on no node",
        ),
    ];
    for (provider, expected) in table {
        let problems = problems(provider);
        assert!(problems.contains(expected), "{provider}\n{problems}");
        assert!(problems.contains("filebeat.yml:2:"), "{provider}\n{problems}");
    }
}

#[test]
fn what_older_configurations_have_is_a_warning() {
    for setting in ["enabled: true", "host: n1", "in_cluster: true", "include_pod_uid: true"] {
        let text = format!("{{type: kubernetes, hints.enabled: true, {setting}}}");
        let problems = problems(&text);
        assert!(problems.starts_with("warning: filebeat.yml:2:"), "{setting}\n{problems}");
    }
    // As in the manifest that Elastic publishes.
    assert_eq!(problems("{type: kubernetes, hints.enabled: true, node: n1, host: n1}"), "");
    assert_eq!(problems("{type: docker, templates: [{condition: ~, config: {type: tcp}}]}"), "");
}

#[test]
fn a_section_without_providers_is_none() {
    let (made, problems) = read("filebeat.autodiscover.providers: []");
    assert!(made.is_none());
    assert_eq!(problems, "");
}

#[test]
fn a_condition_on_a_fact_that_no_container_has_is_a_warning() {
    let with = |kind: &str, condition: &str| {
        problems(&format!(
            "{{type: {kind}, templates: {{condition: {condition}, config: {{type: tcp}}}}}}"
        ))
    };
    let text = with(
        "docker",
        "{or: [{equals.docker.container.nmae: a}, {equals.docker.container.name: a}]}",
    );
    for part in [
        "warning: filebeat.yml:2:",
        "`filebeat.autodiscover.providers[0].templates.condition` looks at `docker.container.nmae`, which no object of the \
         provider `docker` has",
        "did you mean `docker.container.name`?",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    assert_eq!(text.matches("looks at").count(), 1, "{text}");
    let text = with("kubernetes", "{not.equals.kubernetes.lables.app: a}");
    assert!(text.contains("did you mean `kubernetes.labels.app`?"), "{text}");
    for (kind, condition) in [
        ("kubernetes", "{equals.kubernetes.labels.app: a}"),
        ("docker", "{has_fields: [docker.container.labels.a.b]}"),
        ("nomad", "{equals.nomad.task.any: a}"),
    ] {
        assert_eq!(with(kind, condition), "", "{condition}");
    }
    let appender = "{type: docker, hints.enabled: true, appenders: [{type: config, condition: {equals.dokcer.x: a}, \
                    config: {fields.a: b}}]}";
    assert!(problems(appender).contains("looks at `dokcer.x`"));
}
