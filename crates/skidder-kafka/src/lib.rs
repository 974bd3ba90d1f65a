//! Connections to brokers of Kafka, which the output and the input share: TCP, TLS, SASL, the versions that a broker
//! supports, metadata, error codes, and the pieces of which messages are made.

pub mod codes;
pub mod connect;
pub mod connection;
pub mod login;
pub mod messages;
pub mod sasl;
pub mod topic;
pub mod version;
pub mod wire;
