//! `filebeat.autodiscover`: which inputs run for the containers and pods there are.
//!
//! A state machine without I/O, threads and clock. Watchers elsewhere report [`Fact`]s, such as the description of
//! a pod, and [`Autodiscover::decide`] returns the inputs that should run now. The result depends on the newest
//! fact of each object and on the configuration, not on the order, the repetition or the lateness of the reports.
//!
//! ```text
//! fact ──▶ objects ──▶ events ──▶ templates, else hints ──▶ appenders ──▶ candidates ──▶ arbitration ──▶ Made
//!          newest       one a       conditions, ${data.…}                  an input       one per id
//!          version      port                                                              and file
//! ```
//!
//! What an object's owner writes (labels, annotations) is not trusted: its size is bounded ([`limits`]), its
//! variables reach only the container's own facts and secrets of its own namespace, and a mistake in it stops only
//! its own input.

mod appenders;
mod arbitrate;
mod candidates;
mod condition;
mod docker;
mod drafts;
mod event;
mod explain;
mod fact;
mod fact_names;
mod hint_places;
mod hints;
mod hints_input;
mod hints_settings;
mod jolokia;
mod json;
mod kept;
mod kubernetes;
pub mod limits;
mod logged;
mod made;
mod nomad;
mod objects;
mod provider;
mod read;
mod resolve;
mod secrets;
mod settings;
mod state;
mod templates;
mod troubles;

pub use drafts::Draft;
pub use explain::{
    ExplainedEvent, ExplainedInput, ExplainedObject, ExplainedProvider, ExplainedTrouble,
    Explanation,
};
pub use fact::Fact;
pub use hint_places::{is_of_hint, is_unknown_hint, with_hints};
pub use jolokia::{JolokiaAgents, JolokiaInterface, JolokiaProvider};
pub use kept::ShortFact;
pub use made::{Fields, Made, Saved};
pub use objects::Failure;
pub use provider::{
    DockerProvider, KubernetesProvider, LeaderLease, NomadProvider, Provider, ProviderKind,
    Resource, Scope,
};
pub use secrets::{SecretAnswer, WantedSecret};
pub use settings::AUTODISCOVER;
pub use state::{Autodiscover, Context, Environment, Filesets};
pub use troubles::Trouble;
