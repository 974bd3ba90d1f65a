//! Processors that find fields in a text: its parts, its encoding, its time.

mod aws_vpc_flow_log;
mod dissect;

pub use aws_vpc_flow_log::ParseAwsVpcFlowLog;
pub use dissect::Dissect;

use crate::kinds::{Kind, shared};

/// Those that a configuration can name.
pub(crate) const KINDS: &[Kind] = &[
    ("dissect", |settings, _| shared(Dissect::read(settings))),
    ("parse_aws_vpc_flow_log", |settings, _| shared(ParseAwsVpcFlowLog::read(settings))),
];
