//! Several ways to the same end, tried one after the other and in parallel.

use std::time::Duration;
use tokio::task::JoinSet;

/// The result of the first attempt that succeeds. Each has `pause` for itself before the next one begins in parallel
/// (RFC 8305 in its simplest form): one that swallows packets does not hide those behind it. The others end with it.
///
/// Must be called within a runtime.
///
/// # Errors
///
/// That of the attempt that failed last; `none` if there was nothing to try.
///
/// # Panics
///
/// If an attempt panics.
pub async fn first_of<C, T, E, A>(
    candidates: impl IntoIterator<Item = C>,
    pause: Duration,
    none: E,
    attempt: impl Fn(C) -> A,
) -> Result<T, E>
where
    T: Send + 'static,
    E: Send + 'static,
    A: Future<Output = Result<T, E>> + Send + 'static,
{
    let mut rest = candidates.into_iter();
    let mut attempts = JoinSet::new();
    let mut last = none;
    loop {
        let next = rest.next();
        let has_more = next.is_some();
        if let Some(next) = next {
            attempts.spawn(attempt(next));
        }
        let paused = async {
            if has_more {
                tokio::time::sleep(pause).await;
            } else {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = paused => {}
            ended = attempts.join_next() => match ended {
                Some(Ok(Ok(reached))) => return Ok(reached),
                Some(Ok(Err(error))) => last = error,
                Some(Err(error)) if error.is_panic() => {
                    std::panic::resume_unwind(error.into_panic())
                }
                Some(Err(_)) => {}
                None => return Err(last),
            },
        }
    }
}
