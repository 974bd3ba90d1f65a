//! Dashboards: what lies in a `kibana` folder goes through Kibana's API for saved objects.
//!
//! As in libbeat's `dashboards`: `setup.dashboards` says which folder and what to replace in it, `setup.kibana` names
//! the server. Files are read only while they are loaded. Tests use a fake Kibana; no real one was available.

mod client;
mod folder;
mod load;
mod rewrite;
mod settings;

pub use client::KibanaError;
pub use load::LoadError;
pub use settings::{DASHBOARDS, Dashboards, KIBANA, OutputLogin, Retry};
