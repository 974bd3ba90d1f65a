//! Credentials and tokens that end: kept, and replaced before that.

use skidder_os::{Clock, Timestamp};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// What ends soon and could not be replaced, or was issued so, is used for so many nanoseconds before the next try.
const RETRY_NS: i64 = 10_000_000_000;

/// Credentials of type `T`, which all workers share; none at first.
#[derive(Debug)]
pub struct Temporary<T>(Mutex<Option<Given<T>>>);

#[derive(Debug)]
struct Given<T> {
    value: T,
    /// When it ends.
    until: Timestamp,
    /// No request for another one before this time.
    next_try: Timestamp,
}

impl<T> Default for Temporary<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone + PartialEq> Temporary<T> {
    /// Those that hold now. Those that end within `margin` are replaced by what `request` gives, with its end; if that fails,
    /// `warn` gets the error, and they are used as long as they hold. `request` gets the time.
    ///
    /// # Errors
    ///
    /// There are none, and the request failed.
    pub async fn get<E, R>(
        &self,
        clock: &Arc<dyn Clock>,
        margin: Duration,
        request: impl FnOnce(Timestamp) -> R,
        warn: impl FnOnce(E),
    ) -> Result<T, E>
    where
        R: Future<Output = Result<(T, Timestamp), E>>,
    {
        let mut given = self.0.lock().await;
        let now = clock.wall();
        if let Some(Given { value, until, next_try }) = &*given
            && now < *until
            && (now < until.earlier_by(margin) || now < *next_try)
        {
            return Ok(value.clone());
        }
        let next_try = Timestamp(now.0.saturating_add(RETRY_NS));
        match (request(now).await, &mut *given) {
            (Ok((value, until)), _) => {
                *given = Some(Given { value: value.clone(), until, next_try });
                Ok(value)
            }
            (Err(error), Some(given)) if now < given.until => {
                warn(error);
                given.next_try = next_try;
                Ok(given.value.clone())
            }
            (Err(error), _) => Err(error),
        }
    }

    /// The server does not accept them any more: others are requested next time.
    pub async fn forget(&self) {
        *self.0.lock().await = None;
    }

    /// The same, unless there are others by now.
    pub async fn forget_this(&self, value: &T) {
        let mut given = self.0.lock().await;
        if given.as_ref().is_some_and(|given| given.value == *value) {
            *given = None;
        }
    }
}
