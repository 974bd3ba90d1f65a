//! What the tests of the outputs share.
#![allow(dead_code, unused_imports, reason = "each test program uses a part of it")]

pub(crate) mod http_proxy;
pub(crate) mod lumberjack;
pub(crate) mod redis;
pub(crate) mod server;

pub(crate) use skidder_contract::{Fixture, batch, line, number};

use skidder_event::Precision;
use skidder_os::RealFs;
use skidder_outputs::Context;
use std::sync::Arc;

/// What outputs are told in tests.
pub(crate) fn context() -> Context {
    Context {
        beat: "filebeat".to_owned(),
        version: "9.5.0".to_owned(),
        agent_name: "here".to_owned(),
        agent_id: "id".to_owned(),
        setup: None,
        precision: Precision::Millisecond,
        fs: Arc::new(RealFs),
    }
}
