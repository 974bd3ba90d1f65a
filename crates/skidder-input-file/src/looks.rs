//! Asking the scanner what its files are doing.
//!
//! The catalogs belong to the scanner's thread, so that no other thread holds them up. A question waits until
//! the scan under way is over; the thread is woken for it, and answers with one page.

use skidder_read::{FilePage, FileQuery};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// Questions that wait at once; more are refused.
const QUESTIONS_MAX: usize = 64;

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// Ask again later: the scan takes longer, or too many ask.
    #[error("the scanner is busy; try again")]
    Busy,
    /// Do not ask again: the program ends.
    #[error("the scanner has ended")]
    Ended,
    /// Ask for an input that there is.
    #[error("there is no input number {0}")]
    NoInput(usize),
}

/// A question with the way back.
pub(crate) struct Question {
    pub(crate) input: usize,
    pub(crate) query: FileQuery,
    answer: SyncSender<Result<FilePage, AskError>>,
}

impl Question {
    pub(crate) fn answer(&self, page: Result<FilePage, AskError>) {
        // The caller may have given up.
        drop(self.answer.try_send(page));
    }
}

/// The pending questions about files.
#[derive(Default)]
pub struct Looks {
    state: Mutex<State>,
    /// Whether there is a question: read without the lock.
    pending: AtomicBool,
    wake: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

#[derive(Default)]
struct State {
    questions: Vec<Question>,
    ended: bool,
}

impl std::fmt::Debug for Looks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Looks").finish_non_exhaustive()
    }
}

impl Looks {
    /// Asks for some of the files of an input, by its number in the configuration; waits at most `limit`.
    pub fn page(
        &self,
        input: usize,
        query: FileQuery,
        limit: Duration,
    ) -> Result<FilePage, AskError> {
        let (send, receive): (_, Receiver<Result<FilePage, AskError>>) = sync_channel(1);
        {
            let mut state = self.lock();
            if state.ended {
                return Err(AskError::Ended);
            }
            if state.questions.len() >= QUESTIONS_MAX {
                return Err(AskError::Busy);
            }
            state.questions.push(Question { input, query, answer: send });
            self.pending.store(true, Ordering::Release);
        }
        if let Some(wake) = self.wake.get() {
            wake();
        }
        receive.recv_timeout(limit).unwrap_or(Err(AskError::Busy))
    }

    /// Sets the function that wakes the scanner.
    pub(crate) fn set_wake(&self, wake: impl Fn() + Send + Sync + 'static) {
        // There is one scanner.
        drop(self.wake.set(Box::new(wake)));
    }

    /// Whether a question waits for its answer.
    pub(crate) fn is_pending(&self) -> bool {
        self.pending.load(Ordering::Acquire)
    }

    /// Takes the pending questions.
    pub(crate) fn take(&self) -> Vec<Question> {
        let mut state = self.lock();
        self.pending.store(false, Ordering::Release);
        std::mem::take(&mut state.questions)
    }

    /// No more answers.
    pub(crate) fn end(&self) {
        self.lock().ended = true;
        for question in self.take() {
            question.answer(Err(AskError::Ended));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn who_asks_is_answered_or_told_that_nobody_will() {
        let looks = Arc::new(Looks::default());
        let scanner = Arc::clone(&looks);
        looks.set_wake(move || {
            for question in scanner.take() {
                let known = question.input == 0;
                let answer = known.then(FilePage::default);
                question.answer(answer.ok_or(AskError::NoInput(question.input)));
            }
        });
        let ask = |input| looks.page(input, FileQuery::default(), Duration::from_mins(1));
        assert!(ask(0).is_ok());
        assert_eq!(ask(3).err(), Some(AskError::NoInput(3)));
        looks.end();
        assert_eq!(ask(0).err(), Some(AskError::Ended));
    }

    #[test]
    fn who_asks_a_busy_scanner_does_not_wait_for_ever() {
        let looks = Looks::default();
        let answer = looks.page(0, FileQuery::default(), Duration::ZERO);
        assert_eq!(answer.err(), Some(AskError::Busy));
        assert!(looks.is_pending());
    }
}
