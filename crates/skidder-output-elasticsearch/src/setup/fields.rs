//! The fields of our own template: those of ECS, and of Filebeat's inputs, that a log shipper makes.
//!
//! Filebeat's has some 6000, of all its modules. A field that is not listed gets its type from its first value, or is a
//! keyword if that is a text.

use super::mapping::{Mapped, put, simple};
use serde_json::json;

/// Fields that are searched when a query names none.
pub(super) const DEFAULT_FIELDS: &[&str] =
    &["message", "tags", "log.file.path", "error.message", "host.name"];

/// A type with the fields that have it, one line each. From the ECS reference
/// (<https://www.elastic.co/docs/reference/ecs/ecs-field-reference>).
const FIELDS: &[(&str, &str)] = &[
    (
        "date",
        "@timestamp event.created event.end event.ingested event.start process.start file.ctime file.mtime \
         process.parent.start",
    ),
    ("match_only_text", "message error.message"),
    (
        "keyword",
        "tags agent.build.original agent.ephemeral_id agent.id agent.name agent.type agent.version \
         cloud.account.id cloud.account.name cloud.availability_zone cloud.instance.id cloud.instance.name \
         cloud.machine.type cloud.project.id cloud.project.name cloud.provider cloud.region cloud.service.name \
         cloud.image.id container.id container.image.name container.image.tag container.name container.runtime \
         client.domain client.user.name data_stream.dataset data_stream.namespace data_stream.type \
         destination.domain destination.user.name dns.question.name dns.question.type dns.response_code \
         ecs.version error.code error.id error.type event.action event.category event.code event.dataset event.hash event.id \
         event.kind event.module event.outcome event.provider event.reason event.timezone event.type event.reference \
         file.directory file.extension file.name file.path file.type file.owner file.mime_type \
         host.architecture host.containerized host.domain host.hostname host.id host.mac host.name host.os.build host.os.codename \
         host.os.family host.os.full host.os.kernel host.os.name host.os.platform host.os.type host.os.version host.type \
         host.geo.name http.request.id http.request.method http.request.mime_type http.request.referrer http.response.mime_type \
         http.version input.type kubernetes.container.name kubernetes.container.id kubernetes.container.image \
         kubernetes.deployment.name kubernetes.namespace kubernetes.node.name kubernetes.node.uid kubernetes.node.hostname \
         kubernetes.pod.name kubernetes.pod.uid kubernetes.replicaset.name kubernetes.daemonset.name \
         kubernetes.statefulset.name kubernetes.job.name kubernetes.cronjob.name kubernetes.service.name \
         labels.* log.file.path log.file.inode log.file.device_id log.file.fingerprint log.flags log.level log.logger \
         log.origin.file.name log.origin.function log.syslog.appname log.syslog.facility.name log.syslog.hostname \
         log.syslog.msgid log.syslog.procid log.syslog.severity.name log.syslog.version \
         network.application network.community_id network.direction network.iana_number network.name network.protocol \
         network.transport network.type observer.hostname observer.mac observer.name observer.type observer.version \
         orchestrator.cluster.name orchestrator.cluster.url orchestrator.namespace orchestrator.type \
         organization.id organization.name process.args process.command_line process.entity_id process.executable process.hash.md5 \
         process.hash.sha1 process.hash.sha256 process.name process.title process.working_directory process.owner.id process.owner.name \
         process.parent.executable process.parent.name process.parent.title related.hash related.hosts related.user \
         rule.category rule.description rule.id rule.name server.domain server.user.name service.address \
         service.ephemeral_id service.id service.name service.node.name service.state service.type service.version \
         service.environment source.domain source.mac source.user.name span.id stream syslog.facility_label syslog.severity_label \
         trace.id transaction.id url.domain url.extension url.fragment url.password url.query url.registered_domain url.scheme \
         url.subdomain url.top_level_domain url.username user.domain user.email user.full_name user.group.id \
         user.group.name user.id user.name user_agent.device.name user_agent.name user_agent.os.full \
         user_agent.os.name user_agent.os.version user_agent.version",
    ),
    ("wildcard", "error.stack_trace url.full url.original url.path user_agent.original"),
    (
        "ip",
        "client.ip client.nat.ip destination.ip destination.nat.ip host.ip observer.ip related.ip server.ip source.ip \
         source.nat.ip kubernetes.pod.ip network.forwarded_ip",
    ),
    (
        "long",
        "client.bytes client.port client.packets destination.bytes destination.packets destination.port event.duration event.sequence \
         event.severity file.size host.uptime http.request.body.bytes http.request.bytes \
         http.response.body.bytes http.response.bytes http.response.status_code log.offset \
         log.origin.file.line log.syslog.facility.code log.syslog.priority log.syslog.severity.code \
         network.bytes network.packets process.parent.pid process.pid process.ppid process.thread.id \
         server.bytes server.port source.bytes source.packets source.port syslog.facility syslog.priority syslog.severity_code url.port",
    ),
    ("float", "event.risk_score event.risk_score_norm"),
    (
        "geo_point",
        "client.geo.location destination.geo.location host.geo.location observer.geo.location server.geo.location \
         source.geo.location",
    ),
];

/// Fields that are stored, and neither searched nor sorted by.
const STORED: &str = "event.original";

/// The mapping of all of them.
pub(super) fn default_properties() -> Mapped {
    let mut mapped = Mapped::default();
    for (kind, names) in FIELDS {
        for name in names.split_whitespace() {
            match name.strip_suffix(".*") {
                Some(parent) => {
                    put(&mut mapped.properties, parent, json!({ "type": "object" }));
                    let mapping = json!({ "path_match": name, "match_mapping_type": "string", "mapping": simple(kind) });
                    mapped.dynamic.push(json!({ name: mapping }));
                }
                None => put(&mut mapped.properties, name, simple(kind)),
            }
        }
    }
    let stored = json!({ "type": "keyword", "index": false, "doc_values": false });
    put(&mut mapped.properties, STORED, stored);
    mapped
}
