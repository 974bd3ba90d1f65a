//! The fields of VPC flow logs, versions 2 to 8: their types, and their ECS fields.
//!
//! Names and types: <https://docs.aws.amazon.com/vpc/latest/userguide/flow-log-records.html>;
//! dashes are underscores. The ECS names are those of Filebeat's processor
//! (x-pack/filebeat/processors/aws_vpcflow).

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    /// A whole number of 32 bits.
    Integer,
    /// A whole number of 64 bits.
    Long,
    /// Text, unchanged.
    Text,
    /// An address of IPv4 or IPv6, kept as text.
    Ip,
    /// Seconds since 1970-01-01 UTC.
    Time,
}

/// How a value becomes that of an ECS field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// As it is. This one must not fail.
    Same,
    /// `ipv4` or `ipv6`.
    NetworkType,
    /// The number as text.
    NumberText,
    /// The name of a protocol number, if it has one.
    Transport,
    /// `success` or `failure`.
    Outcome,
    /// In small letters.
    Lowercase,
    /// One more element of `event.type`.
    EventType,
    /// This text, whatever the value is.
    Constant(&'static str),
}

/// One field that a column can be.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) kind: Type,
    pub(super) ecs: &'static [(&'static str, How)],
}

const fn plain(name: &'static str, kind: Type) -> Field {
    Field { name, kind, ecs: &[] }
}

const fn mapped(name: &'static str, kind: Type, ecs: &'static [(&'static str, How)]) -> Field {
    Field { name, kind, ecs }
}

/// All of them.
pub(super) const FIELDS: &[Field] = &[
    plain("version", Type::Integer),
    mapped("account_id", Type::Text, &[("cloud.account.id", How::Same)]),
    plain("interface_id", Type::Text),
    mapped(
        "srcaddr",
        Type::Ip,
        &[
            ("source.address", How::Same),
            ("source.ip", How::Same),
            ("network.type", How::NetworkType),
        ],
    ),
    mapped(
        "dstaddr",
        Type::Ip,
        &[("destination.address", How::Same), ("destination.ip", How::Same)],
    ),
    mapped("srcport", Type::Integer, &[("source.port", How::Same)]),
    mapped("dstport", Type::Integer, &[("destination.port", How::Same)]),
    mapped(
        "protocol",
        Type::Integer,
        &[("network.iana_number", How::NumberText), ("network.transport", How::Transport)],
    ),
    mapped("packets", Type::Long, &[("source.packets", How::Same), ("network.packets", How::Same)]),
    mapped("bytes", Type::Long, &[("source.bytes", How::Same), ("network.bytes", How::Same)]),
    mapped("start", Type::Time, &[("event.start", How::Same)]),
    mapped("end", Type::Time, &[("event.end", How::Same), ("@timestamp", How::Same)]),
    mapped(
        "action",
        Type::Text,
        &[
            ("event.outcome", How::Outcome),
            ("event.action", How::Lowercase),
            ("event.type", How::EventType),
        ],
    ),
    plain("log_status", Type::Text),
    plain("vpc_id", Type::Text),
    plain("subnet_id", Type::Text),
    mapped("instance_id", Type::Text, &[("cloud.instance.id", How::Same)]),
    plain(TCP_FLAGS, Type::Integer),
    plain("type", Type::Text),
    plain("pkt_srcaddr", Type::Ip),
    plain("pkt_dstaddr", Type::Ip),
    mapped("region", Type::Text, &[("cloud.region", How::Same)]),
    mapped("az_id", Type::Text, &[("cloud.availability_zone", How::Same)]),
    plain("sublocation_type", Type::Text),
    plain("sublocation_id", Type::Text),
    plain("pkt_src_aws_service", Type::Text),
    plain("pkt_dst_aws_service", Type::Text),
    mapped("flow_direction", Type::Text, &[("network.direction", How::Same)]),
    plain("traffic_path", Type::Integer),
    // Version 6, transit gateways.
    plain("resource_type", Type::Text),
    plain("tgw_id", Type::Text),
    plain("tgw_attachment_id", Type::Text),
    plain("tgw_src_vpc_account_id", Type::Text),
    plain("tgw_dst_vpc_account_id", Type::Text),
    plain("tgw_src_vpc_id", Type::Text),
    plain("tgw_dst_vpc_id", Type::Text),
    plain("tgw_src_subnet_id", Type::Text),
    plain("tgw_dst_subnet_id", Type::Text),
    plain("tgw_src_eni", Type::Text),
    plain("tgw_dst_eni", Type::Text),
    plain("tgw_src_az_id", Type::Text),
    plain("tgw_dst_az_id", Type::Text),
    plain("tgw_pair_attachment_id", Type::Text),
    plain("packets_lost_no_route", Type::Long),
    plain("packets_lost_blackhole", Type::Long),
    plain("packets_lost_mtu_exceeded", Type::Long),
    plain("packets_lost_ttl_expired", Type::Long),
    // Version 7, containers.
    mapped("ecs_cluster_arn", Type::Text, &[("orchestrator.cluster.id", How::Same)]),
    mapped(
        "ecs_cluster_name",
        Type::Text,
        &[("orchestrator.cluster.name", How::Same), ("orchestrator.type", How::Constant("ecs"))],
    ),
    mapped(
        "ecs_container_instance_arn",
        Type::Text,
        &[
            ("orchestrator.resource.name", How::Same),
            ("orchestrator.resource.type", How::Constant("container")),
        ],
    ),
    mapped("ecs_container_instance_id", Type::Text, &[("orchestrator.resource.id", How::Same)]),
    mapped("ecs_container_id", Type::Text, &[("container.id", How::Same)]),
    plain("ecs_second_container_id", Type::Text),
    mapped("ecs_service_name", Type::Text, &[("service.name", How::Same)]),
    plain("ecs_task_definition_arn", Type::Text),
    plain("ecs_task_arn", Type::Text),
    plain("ecs_task_id", Type::Text),
    // Version 8.
    mapped("reject_reason", Type::Text, &[("event.reason", How::Same)]),
];

/// The field whose bits are named in [`TCP_FLAGS_ARRAY`] beside it.
pub(super) const TCP_FLAGS: &str = "tcp_flags";

/// Where the names of TCP flags go, in the target field.
pub(super) const TCP_FLAGS_ARRAY: &str = "tcp_flags_array";

/// The names of TCP flags from the lowest bit on (RFC 9293, 3.1).
pub(super) const FLAG_NAMES: [&str; 6] = ["fin", "syn", "rst", "psh", "ack", "urg"];

/// The name of a protocol, as far as Filebeat names them
/// (<https://www.iana.org/assignments/protocol-numbers>).
pub(super) fn transport(number: i64) -> Option<&'static str> {
    Some(match number {
        0 => "hopopt",
        1 => "icmp",
        2 => "igmp",
        6 => "tcp",
        8 => "egp",
        17 => "udp",
        47 => "gre",
        50 => "esp",
        58 => "ipv6-icmp",
        112 => "vrrp",
        132 => "sctp",
        _ => return None,
    })
}
