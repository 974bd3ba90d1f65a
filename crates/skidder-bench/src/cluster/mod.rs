//! A node of Kubernetes without Kubernetes: an API server that lists and watches pods, and a kubelet that writes, links
//! and deletes their logs.

mod api;
mod kubelet;

pub use api::{Cluster, Requests};
pub use kubelet::{Kubelet, Writer};

/// The node whose pods have logs.
pub const NODE: &str = "node-1";
