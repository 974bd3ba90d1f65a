//! Where the reading of a container's log is: how to ask the engine for what follows, and what of its answer was read.
//!
//! The API has no positions, only times, and several messages can have the same time. It answers `since` with all messages
//! from the first one that is not older, in the order of the log. Times can go back there, since each stream notes its own
//! before it waits for the other. So a place is the highest time so far, and how many messages were read since the first
//! one that had it: those with that time, and those with an earlier one, apart from each other, because engines before
//! version 22 leave out each message that is older than `since`.

use std::fmt::Write as _;

/// The version of the text of a cursor.
pub(super) const VERSION: u32 = 1;

/// Behind the last message that was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// The highest time so far, in nanoseconds since 1970; `None` before the first message.
    time: Option<i64>,
    /// Messages with this time.
    equal: u64,
    /// Messages behind the first of these that have an earlier time.
    earlier: u64,
}

impl Place {
    /// A message was read.
    pub(super) fn pass(&mut self, time: i64) {
        match self.time {
            Some(highest) if time < highest => self.earlier += 1,
            Some(highest) if time == highest => self.equal += 1,
            _ => *self = Self { time: Some(time), equal: 1, earlier: 0 },
        }
    }

    /// The parameter `since` of a request; `None` to read from the start.
    pub(super) fn since(&self) -> Option<String> {
        self.time.map(since)
    }

    /// What an answer to that request has once more.
    pub(super) fn known(&self) -> Known {
        Known(*self)
    }

    /// The text of a cursor, with the number of bytes before it.
    pub(super) fn cursor(&self, offset: u64) -> String {
        let mut text = offset.to_string();
        if let Some(time) = self.time {
            // Writing to a text cannot fail.
            write!(text, " {time} {} {}", self.equal, self.earlier).expect("a text has room");
        }
        text
    }

    /// Reads that text; `None` if it is none.
    pub(super) fn parse(text: &str) -> Option<(u64, Self)> {
        let mut parts = text.split(' ');
        let offset = parts.next()?.parse().ok()?;
        let Some(time) = parts.next() else { return Some((offset, Self::default())) };
        let time = Some(time.parse().ok()?);
        let (equal, earlier) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        parts.next().is_none().then_some((offset, Self { time, equal, earlier }))
    }
}

/// Messages that an answer has, and that were read before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known(Place);

impl Known {
    /// Whether the next message of the answer, with this time, was read before.
    pub(super) fn has(&mut self, time: i64) -> bool {
        let Some(highest) = self.0.time else { return false };
        let left = match time.cmp(&highest) {
            std::cmp::Ordering::Less => &mut self.0.earlier,
            std::cmp::Ordering::Equal => &mut self.0.equal,
            std::cmp::Ordering::Greater => {
                // Whatever was read stands before the first later message.
                self.0 = Place::default();
                return false;
            }
        };
        let is_known = *left > 0;
        *left = left.saturating_sub(1);
        is_known
    }
}

/// A time as the parameter `since`: seconds with nine digits behind the point.
pub(super) fn since(time: i64) -> String {
    let (seconds, nanoseconds) = (time.div_euclid(1_000_000_000), time.rem_euclid(1_000_000_000));
    format!("{seconds}.{nanoseconds:09}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an engine answers to `since`: with `each`, every message that is older is left out.
    fn answer(log: &[(i64, usize)], since: Option<i64>, each: bool) -> Vec<(i64, usize)> {
        let Some(since) = since else { return log.to_vec() };
        let first = log.iter().position(|(time, _)| *time >= since).unwrap_or(log.len());
        let rest = log[first..].iter().copied();
        rest.filter(|(time, _)| !each || *time >= since).collect()
    }

    #[test]
    fn wherever_the_reading_breaks_off_each_message_is_read_once() {
        // Times that are equal, and that go back.
        let times = [5, 5, 7, 6, 7, 7, 9, 8, 8, 9, 10, 9, 11];
        let log: Vec<(i64, usize)> = times.into_iter().zip(0..).collect();
        for each in [false, true] {
            for first in 0..=log.len() {
                for second in first..=log.len() {
                    let mut place = Place::default();
                    let mut read = Vec::new();
                    for end in [first, second, log.len()] {
                        let saved = place.cursor(3);
                        let (offset, saved) = Place::parse(&saved).unwrap();
                        assert_eq!((offset, saved), (3, place));
                        let mut known = saved.known();
                        for (time, number) in answer(&log[..end], saved.time, each) {
                            if !known.has(time) {
                                place.pass(time);
                                read.push(number);
                            }
                        }
                    }
                    let expected: Vec<usize> = (0..log.len()).collect();
                    // An engine that leaves out older messages never sends those that come late.
                    let is_late = |number: &usize| {
                        [first, second].iter().any(|end| {
                            number >= end
                                && log[..*end].iter().any(|(time, _)| *time > log[*number].0)
                        })
                    };
                    let expected: Vec<usize> =
                        expected.into_iter().filter(|number| !each || !is_late(number)).collect();
                    assert_eq!(read, expected, "{each} {first} {second}");
                }
            }
        }
    }

    #[test]
    fn a_cursor_is_read_as_it_was_written() {
        assert_eq!(Place::parse("12"), Some((12, Place::default())));
        let place = Place { time: Some(-1), equal: 2, earlier: 3 };
        assert_eq!(Place::parse(&place.cursor(7)), Some((7, place)));
        assert_eq!(place.since().as_deref(), Some("-1.999999999"));
        assert_eq!(since(1_700_000_000_000_000_012), "1700000000.000000012");
        for wrong in ["", "x", "1 2", "1 2 3", "1 2 3 4 5", "1 2 3 x"] {
            assert_eq!(Place::parse(wrong), None, "{wrong}");
        }
    }
}
