//! Processors that find fields in a text: its parts, its encoding, its time.

mod auditd;
mod aws_vpc_flow_log;
mod base64;
mod cef;
mod csv;
mod decode_json_fields;
mod dissect;
mod duration;
mod grok;
mod gzip;
mod in_place;
mod kv;
mod object;
mod syslog;
mod timestamp;
mod url;
mod xml;

pub use aws_vpc_flow_log::ParseAwsVpcFlowLog;
pub use cef::DecodeCef;
pub use decode_json_fields::DecodeJsonFields;
pub use dissect::Dissect;
pub use grok::Grok;
pub use syslog::Syslog;
pub use timestamp::Timestamp;

use crate::kinds::{Kind, shared};
use in_place::DecodeField;
use xml::{DecodeXml, DecodeXmlWineventlog};

/// Those that a configuration can name.
pub(crate) const KINDS: &[Kind] = &[
    ("decode_auditd", &auditd::DECODE_AUDITD, |settings, _| {
        shared(auditd::DecodeAuditd::read(settings))
    }),
    ("decode_base64_field", &in_place::DECODE_BASE64_FIELD, |settings, _| {
        shared(DecodeField::read(settings, base64::Base64::new()))
    }),
    ("decode_cef", &cef::DECODE_CEF, |settings, context| {
        shared(DecodeCef::read(settings, context))
    }),
    ("decode_csv_fields", &csv::DECODE_CSV_FIELDS, |settings, _| {
        shared(csv::DecodeCsv::read(settings))
    }),
    ("decode_duration", &duration::DECODE_DURATION, |settings, _| {
        shared(duration::DecodeDuration::read(settings))
    }),
    ("decode_json_fields", &decode_json_fields::DECODE_JSON_FIELDS, |settings, _| {
        shared(DecodeJsonFields::read(settings))
    }),
    ("decode_xml", &xml::DECODE_XML, |settings, _| shared(DecodeXml::read(settings))),
    ("decode_xml_wineventlog", &xml::winevent::DECODE_XML_WINEVENTLOG, |settings, _| {
        shared(DecodeXmlWineventlog::read(settings))
    }),
    ("decompress_gzip_field", &in_place::DECOMPRESS_GZIP_FIELD, |settings, _| {
        shared(DecodeField::read(settings, gzip::Gzip))
    }),
    ("dissect", &dissect::read::DISSECT, |settings, _| shared(Dissect::read(settings))),
    ("grok", &grok::read::GROK, |settings, _| shared(Grok::read(settings))),
    ("kv", &kv::KV, |settings, _| shared(kv::Kv::read(settings))),
    ("parse_aws_vpc_flow_log", &aws_vpc_flow_log::PARSE_AWS_VPC_FLOW_LOG, |settings, _| {
        shared(ParseAwsVpcFlowLog::read(settings))
    }),
    ("syslog", &syslog::SYSLOG, |settings, context| shared(Syslog::read(settings, &context.clock))),
    ("timestamp", &timestamp::TIMESTAMP, |settings, context| {
        shared(Timestamp::read(settings, &context.clock))
    }),
    ("urldecode", &url::URLDECODE, |settings, _| shared(url::UrlDecode::read(settings))),
];
