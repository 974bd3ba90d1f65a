//! Decodes NetFlow 1, 5, 6, 7, 8 and 9, IPFIX (RFC 7011) and sFlow 5: packets in, flows out.
//!
//! [`Decoder::packet`] takes one datagram and calls back for each flow and each record of options. It does no I/O and reads
//! no clock. All that it remembers is bounded: templates of exporters in number and bytes, and data that waits for its
//! template in bytes. What cannot be decoded is counted in [`Counts`] by reason.
//!
//! Names and types of fields are those of Filebeat's `netflow` input. See `docs/decisions/0035-own-netflow-decoder.md`.

mod agents;
mod counts;
mod cursor;
mod decoder;
mod fields;
mod fixed;
mod name;
mod pending;
mod protocol;
mod sampled;
mod saved;
mod sessions;
mod sflow;
mod template;
#[cfg(test)]
mod tests;
mod value;

pub use counts::Counts;
pub use decoder::{Decoder, PacketError, Settings};
pub use fields::{CustomField, Field, Fields, Role};
pub use name::snake_case;
pub use pending::{PENDING_BYTES_MAX, PENDING_OF_EXPORTER_MAX};
pub use protocol::{Extra, Flow, FlowKind, Header, Protocol};
pub use saved::RestoreError;
pub use sessions::{KEEP_ACTIVE, SESSIONS_MAX, TEMPLATE_BYTES_MAX};
pub use template::TEMPLATES_OF_EXPORTER_MAX;
pub use value::{Kind, Numbers, Value};
