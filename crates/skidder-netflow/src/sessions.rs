//! The templates of all exporters, within bounds.

use crate::protocol::Protocol;
use crate::template::{TEMPLATES_OF_EXPORTER_MAX, Template};
use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Exporters whose templates are kept.
pub const SESSIONS_MAX: usize = 16_384;

/// Bytes of all templates.
pub const TEMPLATE_BYTES_MAX: usize = 64 << 20;

/// An exporter that has sent something for so long is not forgotten to make room for another one.
pub const KEEP_ACTIVE: Duration = Duration::from_mins(1);

/// Exporters that are forgotten at once to make room.
const FORGOTTEN_AT_ONCE: usize = SESSIONS_MAX / 64;

/// A difference of sequence numbers that lost or doubled packets explain.
const SEQUENCE_DISTANCE: u32 = 1000;

/// A source of an exporter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SessionKey {
    pub(crate) protocol: Protocol,
    /// Nothing if exporters share their templates.
    pub(crate) from: Option<SocketAddr>,
    /// The number of the source, or of the observation domain.
    pub(crate) source: u32,
}

/// A template, and when it was used last.
#[derive(Debug)]
struct Kept {
    template: Arc<Template>,
    used: Duration,
}

/// What is known of a source.
#[derive(Debug)]
struct Session {
    templates: HashMap<u16, Kept, RandomState>,
    /// Nothing before the first packet of this run.
    sequence: Option<u32>,
    used: Duration,
}

/// The sources of all exporters. Times are those of a monotonic clock.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    all: HashMap<SessionKey, Session, RandomState>,
    bytes: usize,
    /// Until then no exporter can be forgotten to make room.
    full_until: Duration,
    /// Templates differ from what [`Sessions::is_changed`] said last.
    is_changed: bool,
}

impl Sessions {
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn templates(&self) -> usize {
        self.all.values().map(|session| session.templates.len()).sum()
    }

    /// Takes note of a packet. Returns how many templates were forgotten if the exporter has begun anew.
    pub(crate) fn note(
        &mut self,
        key: SessionKey,
        sequence: Option<u32>,
        now: Duration,
    ) -> Option<usize> {
        let session = self.all.get_mut(&key)?;
        session.used = now;
        let sequence = sequence?;
        let before = session.sequence.replace(sequence)?;
        if !is_new_beginning(before, sequence) {
            return None;
        }
        let forgotten = session.templates.len();
        self.bytes -= bytes_of(session);
        session.templates.clear();
        self.is_changed |= forgotten > 0;
        Some(forgotten)
    }

    /// The template of a set.
    pub(crate) fn get(&mut self, key: SessionKey, id: u16, now: Duration) -> Option<Arc<Template>> {
        let kept = self.all.get_mut(&key)?.templates.get_mut(&id)?;
        kept.used = now;
        Some(Arc::clone(&kept.template))
    }

    /// Keeps a template; returns whether there was room.
    pub(crate) fn put(
        &mut self,
        key: SessionKey,
        template: Arc<Template>,
        sequence: Option<u32>,
        now: Duration,
    ) -> bool {
        let bytes = template.bytes();
        let before = self.all.get(&key).and_then(|session| session.templates.get(&template.id));
        if let Some(before) = before {
            let is_same = before.template.is_same(&template);
            self.bytes -= before.template.bytes();
            self.is_changed |= !is_same;
        } else {
            if !self.make_room(key, now) {
                return false;
            }
            self.is_changed = true;
        }
        while self.bytes + bytes > TEMPLATE_BYTES_MAX {
            if !self.forget_oldest(key, now) {
                // The one that it would have replaced is out of date.
                self.remove(key, template.id);
                return false;
            }
        }
        self.bytes += bytes;
        let session = self.all.entry(key).or_insert_with(|| Session {
            templates: HashMap::default(),
            sequence,
            used: now,
        });
        session.templates.insert(template.id, Kept { template, used: now });
        true
    }

    /// Forgets a template whose bytes do not count any more.
    fn remove(&mut self, key: SessionKey, id: u16) {
        if let Some(session) = self.all.get_mut(&key) {
            session.templates.remove(&id);
        }
    }

    /// Room for one more template of this source.
    fn make_room(&mut self, key: SessionKey, now: Duration) -> bool {
        match self.all.get_mut(&key) {
            Some(session) if session.templates.len() >= TEMPLATES_OF_EXPORTER_MAX => {
                let oldest = session.templates.iter().min_by_key(|(_, kept)| kept.used);
                let oldest = oldest.filter(|(_, kept)| now.saturating_sub(kept.used) > KEEP_ACTIVE);
                let Some(id) = oldest.map(|(id, _)| *id) else { return false };
                if let Some(kept) = session.templates.remove(&id) {
                    self.bytes -= kept.template.bytes();
                }
                true
            }
            Some(_) => true,
            None => self.all.len() < SESSIONS_MAX || self.forget_oldest(key, now),
        }
    }

    /// Forgets the sources that have sent nothing for the longest time, if that is long enough: some at once, since all of
    /// them are looked at. Returns whether there were any.
    fn forget_oldest(&mut self, but: SessionKey, now: Duration) -> bool {
        if now < self.full_until {
            return false;
        }
        let others = self.all.iter().filter(|(key, _)| **key != but);
        let mut oldest: Vec<_> = others.map(|(key, session)| (session.used, *key)).collect();
        if oldest.len() > FORGOTTEN_AT_ONCE {
            oldest.select_nth_unstable(FORGOTTEN_AT_ONCE);
            oldest.truncate(FORGOTTEN_AT_ONCE);
        }
        let Some((first, _)) = oldest.iter().min().copied() else { return false };
        if now.saturating_sub(first) <= KEEP_ACTIVE {
            // A flood of new sources does not look through all of them each time.
            self.full_until = first + KEEP_ACTIVE;
            return false;
        }
        for (used, key) in oldest {
            if now.saturating_sub(used) > KEEP_ACTIVE {
                self.forget(key);
            }
        }
        true
    }

    fn forget(&mut self, key: SessionKey) {
        if let Some(session) = self.all.remove(&key) {
            self.bytes -= bytes_of(&session);
            self.is_changed = true;
        }
    }

    /// Forgets what was not used for so long; returns how many templates.
    pub(crate) fn expire(&mut self, age: Duration, now: Duration) -> usize {
        let mut forgotten = 0;
        let Self { all, bytes, is_changed, .. } = self;
        let is_old = |used: Duration| now.saturating_sub(used) >= age;
        all.retain(|_, session| {
            session.templates.retain(|_, kept| {
                let stays = !is_old(kept.used);
                if !stays {
                    *bytes -= kept.template.bytes();
                    forgotten += 1;
                }
                stays
            });
            !is_old(session.used) || !session.templates.is_empty()
        });
        *is_changed |= forgotten > 0;
        forgotten
    }

    /// Whether templates have changed since the last call.
    pub(crate) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.is_changed)
    }

    /// All templates, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&SessionKey, &Template)> {
        self.all.iter().flat_map(|(key, session)| {
            session.templates.values().map(move |kept| (key, &*kept.template))
        })
    }
}

fn bytes_of(session: &Session) -> usize {
    session.templates.values().map(|kept| kept.template.bytes()).sum()
}

/// Whether an exporter that had counted to `before` has begun to count anew. What it has counted ahead was lost on the way.
pub(crate) fn is_new_beginning(before: u32, sequence: u32) -> bool {
    let back = before.wrapping_sub(sequence);
    (SEQUENCE_DISTANCE..=u32::MAX / 2).contains(&back)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::Fields;
    use crate::template::Column;

    fn key(number: u32) -> SessionKey {
        let from = SocketAddr::from(([192, 0, 2, 1], 1));
        SessionKey { protocol: Protocol::V9, from: Some(from), source: number }
    }

    fn template(id: u16, columns: usize) -> Arc<Template> {
        let column = Column { enterprise: 0, id: 8, length: 4 };
        let columns = vec![column; columns].into();
        Arc::new(Template::new(id, None, columns, &Fields::known()))
    }

    #[test]
    fn a_sequence_number_far_back_is_a_new_beginning_and_one_ahead_is_not() {
        for (before, sequence, expected) in [
            (5000, 0, true),
            (5000, 4000, true),
            (5000, 4001, false),
            (5000, 5001, false),
            (5000, 1_000_000, false),
            (u32::MAX, 3, false),
            (3, u32::MAX, false),
            (500, u32::MAX - 600, true),
        ] {
            assert_eq!(is_new_beginning(before, sequence), expected, "{before} {sequence}");
        }
    }

    #[test]
    fn exporters_that_are_active_are_not_forgotten_for_new_ones() {
        let mut sessions = Sessions::default();
        let at = Duration::from_secs;
        for number in 0..SESSIONS_MAX as u32 {
            assert!(sessions.put(key(number), template(256, 1), None, at(0)));
        }
        let next = key(SESSIONS_MAX as u32);
        assert!(!sessions.put(next, template(256, 1), None, at(60)));
        assert!(sessions.get(key(7), 256, at(61)).is_some());
        assert_eq!(sessions.note(key(7), None, at(61)), None);
        assert!(sessions.put(next, template(256, 1), None, at(61)));
        assert_eq!(sessions.len(), SESSIONS_MAX - FORGOTTEN_AT_ONCE + 1);
        for number in 0..SESSIONS_MAX as u32 {
            sessions.put(key(100_000 + number), template(256, 1), None, at(62));
        }
        assert!(sessions.get(key(7), 256, at(62)).is_some(), "it has sent something");
        assert_eq!(sessions.len(), SESSIONS_MAX);
    }

    #[test]
    fn the_bytes_of_all_templates_are_bounded() {
        let mut sessions = Sessions::default();
        let (mut refused, now) = (0, Duration::from_secs(5));
        for number in 0..200 {
            for id in 256..280 {
                refused += u32::from(!sessions.put(key(number), template(id, 1000), None, now));
            }
        }
        assert!(refused > 0);
        assert!(sessions.bytes <= TEMPLATE_BYTES_MAX);
        let sum: usize = sessions.all.values().map(bytes_of).sum();
        assert_eq!(sum, sessions.bytes);
        let forgotten = sessions.expire(Duration::from_mins(1), Duration::from_secs(65));
        assert_eq!(forgotten, 200 * 24 - refused as usize);
        assert_eq!((sessions.bytes, sessions.len()), (0, 0));
    }

    #[test]
    fn templates_of_one_exporter_are_bounded_and_the_oldest_goes_when_it_is_idle() {
        let mut sessions = Sessions::default();
        let at = Duration::from_secs;
        let last = FIRST + TEMPLATES_OF_EXPORTER_MAX as u16;
        const FIRST: u16 = 256;
        for id in FIRST..last {
            assert!(sessions.put(key(1), template(id, 1), None, at(u64::from(id))));
        }
        assert!(sessions.put(key(1), template(last, 1), None, at(2000)));
        assert!(sessions.get(key(1), FIRST, at(2000)).is_none());
        for id in FIRST + 1..last {
            assert!(sessions.get(key(1), id, at(2000)).is_some());
        }
        assert!(!sessions.put(key(1), template(last + 1, 1), None, at(2001)));
        assert_eq!(sessions.templates(), TEMPLATES_OF_EXPORTER_MAX);
    }

    #[test]
    fn only_other_templates_are_a_change() {
        let mut sessions = Sessions::default();
        let now = Duration::from_secs(5);
        assert!(sessions.put(key(1), template(256, 1), None, now));
        assert!(sessions.take_changed());
        assert!(sessions.put(key(1), template(256, 1), None, now));
        assert!(!sessions.take_changed());
        assert!(sessions.put(key(1), template(256, 2), None, now));
        assert!(sessions.take_changed());
        assert_eq!(sessions.expire(Duration::from_secs(9), Duration::from_secs(13)), 0);
        assert!(!sessions.take_changed());
        assert_eq!(sessions.expire(Duration::from_secs(9), Duration::from_secs(14)), 1);
        assert!(sessions.take_changed());
    }
}
