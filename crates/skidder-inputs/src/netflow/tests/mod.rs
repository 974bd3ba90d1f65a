//! Flows as events: like Filebeat's, for the same packets.

mod exporters;
mod golden;
mod run;
mod settings;
mod sflow;
mod softflowd;
