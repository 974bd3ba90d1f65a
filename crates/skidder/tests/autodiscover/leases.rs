//! Several programs with `unique: true`, of which one has the lease.

use super::cluster::Cluster;
use super::common::Place;
use super::common::program::Program;
use super::common::server::BulkServer;
use super::place;
use tempfile::TempDir;

/// Two places whose only input is made by the one that has the lease; `spans` are those of the lease.
struct Two {
    _server: BulkServer,
    _folder: TempDir,
    cluster: Cluster,
    places: [Place; 2],
}

impl Two {
    fn new(spans: &str) -> Self {
        let server = BulkServer::start();
        let folder = tempfile::tempdir().unwrap();
        let cluster = Cluster::start(folder.path());
        let path = folder.path().display();
        let provider = format!(
            "- type: kubernetes\n  kube_config: {path}/kubeconfig\n  scope: cluster\n  unique: true\n  {spans}\n  \
             templates:\n  - config:\n    - {{type: filestream, id: once, paths: ['{path}/once.log']}}\n"
        );
        std::fs::write(folder.path().join("once.log"), "one line of some length\n").unwrap();
        let places = [place(&server, &provider), place(&server, &provider)];
        Self { _server: server, _folder: folder, cluster, places }
    }

    /// Starts the first one, which gets the lease, and then the other one.
    fn start(&self) -> [Program; 2] {
        let mut first = self.places[0].start(&[]);
        first.await_log("skidder is running");
        first.await_that("the first one holds the lease", || runs(&self.places[0]));
        let second = self.places[1].start(&[]);
        second.await_log("skidder is running");
        [first, second]
    }
}

/// Whether the input runs there.
fn runs(place: &Place) -> bool {
    place.get("/inputs/").contains("\"once\"")
}

#[test]
fn of_several_with_a_lease_one_runs_the_templates_and_another_when_it_is_gone() {
    let two = Two::new(
        "leader_leaseduration: 2s\n  leader_renewdeadline: 1s\n  leader_retryperiod: 100ms",
    );
    let [mut first, mut second] = two.start();
    let Two { cluster, places, .. } = &two;
    let before = cluster.lease_requests();
    first.await_that("both have asked for it often", || cluster.lease_requests() > before + 40);
    assert!(runs(&places[0]) && !runs(&places[1]), "the first one keeps it");
    first.kill();
    second.await_that("the second one takes over", || runs(&places[1]));
    second.terminate().succeeded();
}

#[test]
fn a_lease_is_released_at_a_stop_and_taken_at_once() {
    // Longer than this test waits for anything.
    let two = Two::new(
        "leader_leaseduration: 1h\n  leader_renewdeadline: 30m\n  leader_retryperiod: 50ms",
    );
    let [first, mut second] = two.start();
    first.terminate().succeeded();
    second.await_that("the second one takes over", || runs(&two.places[1]));
    second.terminate().succeeded();
}
