//! The short way to a match from a place on: each part of a pattern where the part before it ends.
//!
//! A search prefers, of all ways to match, the first in the order in which a backtracking engine tries them.
//! Steps follow only that order's first way: each part takes what it prefers by itself. If that leads to the end,
//! it is the match that the search would find, as no way comes before it. If a part does not fit, an earlier one
//! may have taken too much or too little: then nothing is known, and the search decides.

mod classes;
mod leaf;
mod plan;

use super::engine::Slots;
use classes::Class;
use leaf::Leaf;
use memchr::memmem::Finder;
pub(super) use plan::Leaves;
use regex_automata::util::look::{Look, LookMatcher};
use regex_automata::util::primitives::NonMaxUsize;

/// The parts of a pattern, in their order.
#[derive(Clone, Debug)]
pub(super) struct Steps(Box<[Step]>);

#[derive(Clone, Debug)]
enum Step {
    /// A boundary of a group: its slot.
    Slot(usize),
    Look(Look),
    Literal(Box<[u8]>),
    /// As many letters of a class as there are, within bounds.
    Run {
        class: Class,
        least: usize,
        most: usize,
    },
    /// As many letters of a class as there are before a text that begins with one of them.
    UntilLast {
        class: Class,
        least: usize,
        text: Box<[u8]>,
    },
    /// As few letters of a class as possible up to a text.
    UntilText {
        class: Class,
        text: Box<Finder<'static>>,
    },
    /// As few letters of a class as possible up to one of another class.
    UntilClass {
        class: Class,
        stop: Class,
    },
    /// Anything without groups.
    Leaf(Leaf),
    /// The first that fits.
    Choice(Box<[Steps]>),
}

/// Where a part led to.
enum Way {
    /// It fits up to here.
    End(usize),
    /// It does not fit in any way.
    No,
    /// The first way does not fit; there may be others.
    Unknown,
}

impl Steps {
    /// Whether the first way fits, from `at` on. Fills the slots of its groups.
    pub(super) fn run(&self, text: &[u8], at: usize, slots: &mut Slots) -> bool {
        matches!(self.walk(text, at, slots), Way::End(_))
    }

    /// Empties the slots of its groups.
    fn forget(&self, slots: &mut Slots) {
        for step in &self.0 {
            match step {
                Step::Slot(slot) => slots[*slot] = None,
                Step::Choice(choice) => choice.iter().for_each(|steps| steps.forget(slots)),
                _ => {}
            }
        }
    }

    fn walk(&self, text: &[u8], mut at: usize, slots: &mut Slots) -> Way {
        // Whether there is no other way to come to this part.
        let mut only = true;
        for step in &self.0 {
            let end = match step {
                Step::Slot(slot) => {
                    slots[*slot] = NonMaxUsize::new(at);
                    continue;
                }
                Step::Look(look) => LookMatcher::new().matches(*look, text, at).then_some(at),
                Step::Literal(literal) => {
                    begins(&text[at..], literal).then_some(at + literal.len())
                }
                Step::Choice(choice) => match choose(choice, text, at, slots) {
                    Way::End(end) => Some(end),
                    Way::No => None,
                    Way::Unknown => return Way::Unknown,
                },
                Step::Run { class, least, most } => class.run(text, at, *least, *most),
                Step::UntilLast { class, least, text: stop } => {
                    class.until_last(text, at, *least, stop)
                }
                Step::UntilText { class, text: stop } => {
                    let found = stop.find(&text[at..]).map(|found| at + found);
                    found.filter(|end| class.covers(text, at, *end))
                }
                Step::UntilClass { class, stop } => class.until(text, at, stop),
                Step::Leaf(leaf) => leaf.end(text, at),
            };
            match end {
                Some(end) => at = end,
                None if only => return Way::No,
                None => return Way::Unknown,
            }
            only &= matches!(step, Step::Look(_) | Step::Literal(_));
        }
        Way::End(at)
    }
}

/// Whether a text begins with a literal: most are a byte or two, for which a call costs more than to compare them.
#[inline]
fn begins(text: &[u8], literal: &[u8]) -> bool {
    match *literal {
        [] => true,
        [one] => text.first() == Some(&one),
        [one, two] => text.first_chunk() == Some(&[one, two]),
        [one, two, three] => text.first_chunk() == Some(&[one, two, three]),
        _ => text.starts_with(literal),
    }
}

fn choose(choice: &[Steps], text: &[u8], at: usize, slots: &mut Slots) -> Way {
    for steps in choice {
        match steps.walk(text, at, slots) {
            // Fields found before the mismatch are no part of the match.
            Way::No => steps.forget(slots),
            way => return way,
        }
    }
    Way::No
}
