//! How often the API server gets a request: `kube_client_options`.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Limits the number of requests (`kube_client_options`).
pub struct RequestLimit {
    every: Duration,
    burst: f64,
    slots: Mutex<(f64, tokio::time::Instant)>,
}

impl RequestLimit {
    /// So many requests a second, and so many at once. Must be made in a runtime of tokio.
    pub fn new(qps: f64, burst: u32) -> Self {
        let burst = f64::from(burst);
        let slots = Mutex::new((burst, tokio::time::Instant::now()));
        Self { every: Duration::from_secs_f64(1.0 / qps), burst, slots }
    }

    /// Waits for the next request's turn.
    pub(super) async fn wait(&self) {
        let pause = {
            let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
            let (left, at) = &mut *slots;
            let now = tokio::time::Instant::now();
            *left = (*left + now.duration_since(*at).as_secs_f64() / self.every.as_secs_f64())
                .min(self.burst);
            *at = now;
            *left -= 1.0;
            if *left >= 0.0 { None } else { Some(self.every.mul_f64(-*left)) }
        };
        if let Some(pause) = pause {
            tokio::time::sleep(pause).await;
        }
    }
}

impl std::fmt::Debug for RequestLimit {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("RequestLimit").field("every", &self.every).finish_non_exhaustive()
    }
}
