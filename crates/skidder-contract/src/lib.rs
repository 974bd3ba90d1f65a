//! The contract of outputs: what each of them promises, whatever its protocol, and trouble to try it with.
//!
//! An output's tests describe its far side as a [`Trial`] and call [`keep`]: numbered lines go through the output
//! while the server refuses, the network breaks and certificates are wrong, and a judge counts where each line
//! ended: taken by the server, in the dead letters, or still in flight, and the ledger must say the same.
//!
//! Which case is tried on which output, and why some are not, stands in `docs/outputs.md`.
//!
//! The single parts are of use by themselves: [`Fixture`] is everything around one output, [`Proxy`] a bad network
//! that is the same every time, [`Authority`] makes certificates.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod bench;
mod certificates;
mod contract;
mod deliveries;
mod fixture;
mod http_proxy;
mod inputs;
mod listen;
mod proxy;
mod signed;

pub use bench::{Bench, PATIENCE};
pub use certificates::{Authority, Certificate, SelfSigned};
pub use contract::{Manner, Place, Trial, keep};
pub use deliveries::{ACCESS_LOG_ROWS, access_log, batch_with, deliveries};
pub use fixture::{Fixture, NO_GZIP, OBJECT_LINES, batch, check_report, line, number, objects};
pub use http_proxy::FakeHttpProxy;
pub use inputs::{FarSideFuture, InputTrial, Meaning, keep_input};
pub use listen::{Stream, listen, serve_all};
pub use proxy::{Proxy, Way};
pub use signed::{ReceivedRequest, Signer};
