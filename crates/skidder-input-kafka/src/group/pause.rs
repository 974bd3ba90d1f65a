//! How long a member waits before it tries again.

use super::SessionError;
use crate::settings::Settings;
use skidder_kafka::connection::AskError;
use std::time::Duration;

/// The pauses of the settings.
pub(super) struct Pauses {
    /// Between the first tries to join.
    join: Duration,
    /// So many of them.
    joins: u32,
    /// Behind these, and while no broker can be reached.
    connect: Duration,
}

impl Pauses {
    pub(super) fn of(settings: &Settings) -> Self {
        Self {
            join: settings.rebalance_backoff,
            joins: settings.rebalance_retries,
            connect: settings.connect_backoff,
        }
    }

    /// The pause after so many failures in a row, of which this is the last.
    pub(super) fn after(&self, error: &SessionError, failures: u32) -> Duration {
        // The broker is there, and will have a coordinator soon: a question costs it nothing.
        if let SessionError::Ask(AskError::Code(code)) = error
            && code.lacks_coordinator()
        {
            return self.join;
        }
        let is_refused = !matches!(error, SessionError::Connect { .. });
        if is_refused && failures <= self.joins.max(1) {
            return self.join;
        }
        let beyond = failures.saturating_sub(if is_refused { self.joins } else { 1 });
        self.connect * (1 << beyond.min(3))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skidder_kafka::codes::Code;

    #[test]
    fn a_coordinator_that_starts_is_asked_again_at_one_pace_and_others_are_not() {
        let second = Duration::from_secs;
        let pauses = Pauses { join: second(2), joins: 4, connect: second(30) };
        let of = |code: i16, failures| {
            pauses.after(&SessionError::Ask(AskError::Code(Code(code))), failures)
        };
        for code in [14, 15, 16] {
            assert_eq!(
                [1, 4, 5, 1000].map(|failures| of(code, failures)),
                [second(2); 4],
                "{code}"
            );
        }
        // Not authorized.
        let waits = [1, 4, 5, 6, 9].map(|failures| of(30, failures));
        assert_eq!(waits, [second(2), second(2), second(60), second(120), second(240)]);
        let away = SessionError::Connect { host: "a".to_owned(), error: AskError::Ended };
        let waits = [1, 2, 9].map(|failures| pauses.after(&away, failures));
        assert_eq!(waits, [second(30), second(60), second(240)]);
    }
}
