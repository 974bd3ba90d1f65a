//! The workers of an output that has several: which host each one uses, and their common end.

use std::sync::Arc;
use tokio::task::JoinSet;

/// The hosts of each worker: with `loadbalance` so many workers for each host, otherwise one that has all of them and
/// uses one at a time.
pub fn share_out<T>(hosts: &[Arc<T>], workers_each: usize, loadbalance: bool) -> Vec<Vec<Arc<T>>> {
    if !loadbalance {
        return vec![hosts.to_vec()];
    }
    let each = |_| hosts.iter().map(|host| vec![Arc::clone(host)]);
    (0..workers_each.max(1)).flat_map(each).collect()
}

/// Waits until all tasks have ended. A panic of one of them goes on here.
pub async fn run_all(mut tasks: JoinSet<()>) {
    while let Some(ended) = tasks.join_next().await {
        if let Err(error) = ended
            && error.is_panic()
        {
            std::panic::resume_unwind(error.into_panic());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_host_has_its_workers_or_one_has_all() {
        let hosts = [Arc::new('a'), Arc::new('b')];
        let shared = |workers, loadbalance| -> Vec<String> {
            let shared = share_out(&hosts, workers, loadbalance);
            shared.iter().map(|hosts| hosts.iter().map(|host| **host).collect()).collect()
        };
        assert_eq!(shared(2, true), ["a", "b", "a", "b"]);
        assert_eq!(shared(0, true), ["a", "b"]);
        assert_eq!(shared(9, false), ["ab"]);
    }

    #[tokio::test]
    #[should_panic(expected = "a mistake")]
    async fn a_panic_of_a_worker_is_one_of_the_output() {
        let mut tasks = JoinSet::new();
        tasks.spawn(async { panic!("a mistake") });
        run_all(tasks).await;
    }
}
