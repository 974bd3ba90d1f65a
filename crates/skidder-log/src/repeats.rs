//! Repeated lines: the first are written, then one from time to time with the number of those held back.
//!
//! Two lines are the same if they come from one place of the source and are equal in every field.
//! Lines that differ are held back only in a flood, and so are lines about actions (level info).
//! Lines for debugging never are. Every line that is held back is counted in a line that is
//! written.

use crate::line::Line;
use skidder_os::Monotonic;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;
use tracing::Level;
use tracing::callsite::Identifier;

/// Equal warnings or errors that are written before they are held back.
const SAME_MAX: u64 = 5;
/// Lines of one place of the source that are written before they are held back.
const FLOOD_MAX: u64 = 500;
/// The time in which they are counted.
const WINDOW: Duration = Duration::from_secs(10);
/// How often repeated lines are written.
const REPORT_EVERY: Duration = Duration::from_mins(1);
/// Different lines that are remembered; further ones are written.
const KNOWN_MAX: usize = 4096;

/// Recent lines.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    known: HashMap<(Identifier, Option<u64>), Window>,
    /// The earliest end of a window in which lines were held back.
    due: Option<Monotonic>,
}

#[derive(Debug)]
struct Window {
    end: Monotonic,
    seen: u64,
    held: u64,
    /// The last line that was held back.
    last: Option<Line>,
}

impl Repeats {
    /// Returns the line if it should be written now, else keeps it.
    pub(crate) fn pass(&mut self, place: Identifier, line: Line, now: Monotonic) -> Option<Line> {
        // Lines for debugging are never held back.
        if line.level >= Level::DEBUG {
            return Some(line);
        }
        // Actions are logged each time, unless it is a flood.
        let most = if line.level == Level::INFO { FLOOD_MAX } else { SAME_MAX };
        let mut hasher = DefaultHasher::new();
        line.message.hash(&mut hasher);
        for (name, value) in &line.fields {
            name.hash(&mut hasher);
            value.to_string().hash(&mut hasher);
        }
        let same = self.look((place.clone(), Some(hasher.finish())), most, line, now)?;
        self.look((place, None), FLOOD_MAX, same, now)
    }

    fn look(
        &mut self,
        key: (Identifier, Option<u64>),
        most: u64,
        line: Line,
        now: Monotonic,
    ) -> Option<Line> {
        // Places are as many as the program has: each is counted.
        if key.1.is_some() && !self.known.contains_key(&key) && self.known.len() >= KNOWN_MAX {
            self.known.retain(|_, window| window.held > 0 || window.end > now);
            if self.known.len() >= KNOWN_MAX {
                return Some(line);
            }
        }
        let fresh = || Window { end: now + WINDOW, seen: 0, held: 0, last: None };
        let window = self.known.entry(key).or_insert_with(fresh);
        if window.held == 0 && window.end <= now {
            *window = fresh();
        }
        window.seen += 1;
        if window.seen <= most {
            return Some(line);
        }
        window.held += 1;
        window.last = Some(line);
        let end = window.end;
        self.due = Some(self.due.map_or(end, |due| due.min(end)));
        None
    }

    /// When to report the lines that were held back.
    pub(crate) fn due(&self) -> Option<Monotonic> {
        self.due
    }

    /// The last of the lines that were held back, each with the number of them; of windows that
    /// have ended, or of all.
    pub(crate) fn take(&mut self, now: Monotonic, all: bool) -> Vec<Line> {
        let mut due = Vec::new();
        self.due = None;
        for window in self.known.values_mut().filter(|window| window.held > 0) {
            if all || window.end <= now {
                let held = std::mem::take(&mut window.held);
                due.extend(window.last.take().map(|line| line.with("log.held_back", held)));
                // Repeated lines are written from time to time.
                window.end = now + REPORT_EVERY;
            } else {
                self.due = Some(self.due.map_or(window.end, |due| due.min(window.end)));
            }
        }
        due.sort_by_key(|line| line.time);
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skidder_os::Timestamp;
    use tracing::callsite::{Callsite, DefaultCallsite};
    use tracing::field::FieldSet;
    use tracing::metadata::{Kind, Metadata};

    macro_rules! place {
        () => {{
            static META: Metadata<'static> = Metadata::new(
                "x",
                "x",
                Level::INFO,
                None,
                None,
                None,
                FieldSet::new(&[], Identifier(&SITE)),
                Kind::EVENT,
            );
            static SITE: DefaultCallsite = DefaultCallsite::new(&META);
            let site: &'static dyn Callsite = &SITE;
            Identifier(site)
        }};
    }

    fn line(level: Level, n: u64) -> Line {
        Line::own(level, Timestamp(0), "it fails").with("n", n)
    }

    fn at(second: u64) -> Monotonic {
        Monotonic(Duration::from_secs(second))
    }

    fn held(lines: &[Line]) -> Vec<u64> {
        lines.iter().map(|line| line.fields["log.held_back"].as_u64().unwrap()).collect()
    }

    #[test]
    fn the_same_line_is_written_some_times_and_then_counted() {
        let mut repeats = Repeats::default();
        let place = place!();
        let mut written = 0;
        for n in 0..100 {
            let passed = repeats.pass(place.clone(), line(Level::WARN, 1), at(n / 20));
            written += u64::from(passed.is_some());
        }
        assert_eq!(written, SAME_MAX);
        assert_eq!(repeats.due(), Some(at(10)));
        assert!(repeats.take(at(9), false).is_empty());
        assert_eq!(repeats.due(), Some(at(10)), "it is not forgotten");
        assert_eq!(held(&repeats.take(at(10), false)), [95]);
        // It goes on: written once a minute.
        for second in 11..70 {
            assert!(repeats.pass(place.clone(), line(Level::WARN, 1), at(second)).is_none());
        }
        assert_eq!(held(&repeats.take(at(70), false)), [59]);
        assert_eq!(repeats.due(), None);
        // It has ended, and begins again.
        assert!(repeats.pass(place, line(Level::WARN, 1), at(131)).is_some());
    }

    #[test]
    fn lines_that_differ_are_written_up_to_a_flood() {
        let mut repeats = Repeats::default();
        let (one, other) = (place!(), place!());
        let pass = |repeats: &mut Repeats, level, n| {
            repeats.pass(one.clone(), line(level, n), at(0)).is_some()
        };
        assert!((0..FLOOD_MAX).all(|n| pass(&mut repeats, Level::ERROR, n)));
        assert!((0..30).all(|n| !pass(&mut repeats, Level::ERROR, FLOOD_MAX + n)));
        assert!((0..1000).all(|_| pass(&mut repeats, Level::DEBUG, 0)));
        assert!(repeats.pass(other, line(Level::ERROR, 0), at(0)).is_some());
        let due = repeats.take(at(0), true);
        assert_eq!(held(&due), [30]);
        assert_eq!(due[0].fields["n"], FLOOD_MAX + 29, "the last one is shown");
    }

    #[test]
    fn a_flood_of_one_place_opens_no_gate_for_another_one() {
        let mut repeats = Repeats::default();
        let (one, other) = (place!(), place!());
        for n in 0..2 * KNOWN_MAX as u64 {
            repeats.pass(one.clone(), line(Level::WARN, n), at(0));
        }
        let pass = |n: &u64| repeats.pass(other.clone(), line(Level::WARN, *n), at(0)).is_some();
        assert_eq!((0..2 * FLOOD_MAX).filter(pass).count() as u64, FLOOD_MAX);
    }

    #[test]
    fn every_line_is_written_or_counted() {
        let mut repeats = Repeats::default();
        let place = place!();
        let (mut random, mut written, mut counted) = (1_u64, 0, 0);
        const LINES: u64 = 20_000;
        for step in 0..LINES {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let now = Monotonic(Duration::from_millis(step * 7));
            let passed = repeats.pass(place.clone(), line(Level::WARN, (random >> 60) % 9), now);
            written += u64::from(passed.is_some());
            if repeats.due().is_some_and(|due| due <= now) {
                let due = repeats.take(now, false);
                counted += held(&due).iter().sum::<u64>();
            }
        }
        counted += held(&repeats.take(at(0), true)).iter().sum::<u64>();
        assert_eq!(written + counted, LINES);
        assert!(written < 100, "{written}");
    }

    #[test]
    fn with_very_many_different_lines_memory_is_bounded_and_none_is_lost() {
        let mut repeats = Repeats::default();
        let place = place!();
        let mut written = 0;
        for n in 0..KNOWN_MAX as u64 * 2 {
            let passed = repeats.pass(place.clone(), line(Level::INFO, n), at(0));
            written += u64::from(passed.is_some());
        }
        assert!(repeats.known.len() <= KNOWN_MAX);
        let held: u64 = held(&repeats.take(at(0), true)).iter().sum();
        assert_eq!(written + held, KNOWN_MAX as u64 * 2);
    }
}
