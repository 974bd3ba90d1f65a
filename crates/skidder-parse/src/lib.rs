//! From text to fields: JSON, container records, syslog, audit records, CEF, dissected lines,
//! times, and the chain of parsers that makes events of lines.
//!
//! Knows events and nothing else: no files, no clock, no configuration. Everything here takes bytes and time
//! as arguments.

pub mod auditd;
pub mod cef;
pub mod chain;
pub mod cri;
pub mod dissect;
pub mod docker;
pub mod go_time;
pub mod json;
pub mod json_fields;
mod lane;
pub mod ndjson;
pub mod records;
pub mod syslog;
pub mod time;

#[cfg(test)]
mod testing;
