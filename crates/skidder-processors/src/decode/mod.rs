//! Processors that find fields in a text: its parts, its encoding, its time.

mod aws_vpc_flow_log;

pub use aws_vpc_flow_log::ParseAwsVpcFlowLog;

use crate::kinds::{Kind, shared};

/// Those that a configuration can name.
pub(crate) const KINDS: &[Kind] =
    &[("parse_aws_vpc_flow_log", |settings, _| shared(ParseAwsVpcFlowLog::read(settings)))];
