//! The events that a program can reach: the one that is being processed, and those that it makes itself.
//!
//! A runtime calls functions of ours that own what they use, but the event is only lent for one
//! call of `process`. So its place is kept for the thread while the program runs. A user takes it
//! out meanwhile, so that it is never borrowed twice.

use skidder_event::{Base, Batch, EventMut, Map, Path, Provenance, Row, SourceId, Text};
use std::cell::{Cell, RefCell};
use std::ptr::NonNull;
use std::sync::Arc;

/// Names an event for the program. 0 is the one that is being processed.
pub(crate) type EventId = u32;

/// Most events that one call of `process` or `test` may make.
const MADE_MAX: usize = 1000;

thread_local! {
    static LENT: Cell<Option<NonNull<EventMut<'static>>>> = const { Cell::new(None) };
    static CANCELLED: Cell<bool> = const { Cell::new(false) };
    static MADE: RefCell<Vec<Option<Made>>> = const { RefCell::new(Vec::new()) };
}

/// An event that a program made.
struct Made {
    batch: Batch,
    base: Arc<Base>,
    cancelled: bool,
}

/// Ends the loan, also when the program's functions panic.
struct Loan;

impl Drop for Loan {
    fn drop(&mut self) {
        LENT.set(None);
        CANCELLED.set(false);
        MADE.with_borrow_mut(Vec::clear);
    }
}

/// Runs `program` while it can reach `event`, and the events it makes. Returns whether it cancelled it.
pub(crate) fn lend<R>(event: &mut EventMut<'_>, program: impl FnOnce() -> R) -> (R, bool) {
    let loan = Loan;
    LENT.set(Some(NonNull::from(event).cast()));
    let result = program();
    let cancelled = CANCELLED.get();
    drop(loan);
    (result, cancelled)
}

/// Runs `program` without an event to process; it can reach those it makes.
pub(crate) fn without<R>(program: impl FnOnce() -> R) -> R {
    let loan = Loan;
    let result = program();
    drop(loan);
    result
}

/// Puts the event back where it was lent.
struct PutBack(NonNull<EventMut<'static>>);

impl Drop for PutBack {
    fn drop(&mut self) {
        LENT.set(Some(self.0));
    }
}

/// Works on an event. Fails if there is none of this name, or if it is in use.
#[expect(unsafe_code, reason = "the other half of `lend`")]
pub(crate) fn with<R>(
    id: EventId,
    work: impl FnOnce(&mut EventMut<'_>) -> R,
) -> Result<R, &'static str> {
    const GONE: &str = "the event is not there any more";
    if id == 0 {
        let mut lent = PutBack(LENT.take().ok_or(GONE)?);
        // SAFETY: `lend` put it there from an exclusive reference that lives until its `Loan` has
        // taken it away, on this thread (the cell is the thread's own). It was taken out of the
        // cell above, so that no other reference is made until `PutBack` returns it, after `work`.
        // The lifetime is shortened to that of this call.
        return Ok(work(unsafe { lent.0.as_mut() }));
    }
    let place = id as usize - 1;
    let made = MADE.with_borrow_mut(|made| made.get_mut(place).and_then(Option::take));
    let mut made = made.ok_or(GONE)?;
    let base = Arc::clone(&made.base);
    let result = work(&mut made.batch.event_mut(0, &base));
    MADE.with_borrow_mut(|all| {
        if let Some(slot) = all.get_mut(place) {
            *slot = Some(made);
        }
    });
    Ok(result)
}

/// Makes an event of fields.
pub(crate) fn make(fields: &Map) -> Result<EventId, String> {
    let base = Arc::new(Base::new(&Map::new(), &Map::new()));
    let provenance = Provenance::new(SourceId(0), 0..0);
    let mut batch = Batch::new(Vec::new(), true, Arc::clone(&base), provenance);
    batch.push(Row::new(0, 0, Text::default(), 0));
    let mut event = batch.event_mut(0, &base);
    for own in ["message", "log.offset"] {
        event.delete(&Path::parse(own).expect("a constant that is a path"));
    }
    event.merge(fields);
    MADE.with_borrow_mut(|made| {
        if made.len() >= MADE_MAX {
            return Err(format!("more than {MADE_MAX} events were made"));
        }
        made.push(Some(Made { batch, base, cancelled: false }));
        Ok(made.len() as EventId)
    })
}

/// Marks an event as cancelled.
pub(crate) fn cancel(id: EventId) {
    if id == 0 {
        CANCELLED.set(true);
    } else {
        MADE.with_borrow_mut(|made| {
            if let Some(Some(event)) = made.get_mut(id as usize - 1) {
                event.cancelled = true;
            }
        });
    }
}

/// Whether an event is to go no further.
pub(crate) fn is_cancelled(id: EventId) -> bool {
    if id == 0 {
        return CANCELLED.get();
    }
    MADE.with_borrow(|made| match made.get(id as usize - 1) {
        Some(Some(event)) => event.cancelled,
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_lent_for_one_call_and_to_one_at_a_time() {
        let id = without(|| {
            let id = make(&Map::new()).unwrap();
            let twice = with(id, |_| with(id, |_| ()).is_err());
            assert_eq!(twice, Ok(true));
            assert_eq!(with(0, |_| ()), Err("the event is not there any more"));
            let lent = with(id, |event| lend(event, || with(0, |_| with(0, |_| ()).is_err())).0);
            assert_eq!(lent, Ok(Ok(true)));
            id
        });
        assert!(with(id, |_| ()).is_err());
        assert!(with(0, |_| ()).is_err());
    }
}
