//! From a parsed expression to steps.

use super::leaf::Leaf;
use super::{Class, Step, Steps};
use memchr::memmem::Finder;
use regex_automata::dfa::{StartKind, dense};
use regex_automata::nfa::thompson;
use regex_automata::util::look::Look;
use regex_syntax::hir::{self, Hir, HirKind};
use std::collections::HashMap;

/// Bytes of the automaton of one part; one that needs more is left to the search.
const LEAF_BYTES_MAX: usize = 512 << 10;

/// Bytes of all automata of a processor; then expressions have no steps any more.
const LEAVES_BYTES_MAX: usize = 16 << 20;

/// Automata of parts, shared by the patterns of a processor.
#[derive(Debug, Default)]
pub(in super::super) struct Leaves {
    made: HashMap<String, Option<Leaf>>,
    bytes: usize,
}

impl Leaves {
    fn get(&mut self, part: &Hir) -> Option<Leaf> {
        let text = part.to_string();
        if let Some(made) = self.made.get(&text) {
            return made.clone();
        }
        let made = if self.bytes < LEAVES_BYTES_MAX { compile(part) } else { None };
        self.bytes += made.as_ref().map_or(0, Leaf::bytes);
        self.made.insert(text, made.clone());
        made
    }
}

fn compile(part: &Hir) -> Option<Leaf> {
    let config = thompson::Config::new()
        .utf8(false)
        .which_captures(thompson::WhichCaptures::None)
        .nfa_size_limit(Some(LEAF_BYTES_MAX));
    let nfa = thompson::Compiler::new().configure(config).build_from_hir(part).ok()?;
    let config = dense::Config::new()
        .start_kind(StartKind::Anchored)
        .dfa_size_limit(Some(LEAF_BYTES_MAX))
        .determinize_size_limit(Some(LEAF_BYTES_MAX));
    Leaf::new(&dense::Builder::new().configure(config).build_from_nfa(&nfa).ok()?)
}

/// A part of an expression, flattened.
enum Part<'a> {
    Slot(usize),
    Hir(&'a Hir),
}

impl Steps {
    /// The steps of an expression. `None` if one of its parts has groups and is repeated or optional in a way that
    /// steps do not know, or if it needs too much memory.
    pub(in super::super) fn new(expression: &Hir, leaves: &mut Leaves) -> Option<Self> {
        let mut parts = Vec::new();
        flatten(expression, &mut parts);
        let mut steps = Vec::new();
        let mut at = 0;
        while let Some(part) = parts.get(at) {
            at += 1;
            match part {
                Part::Slot(slot) => steps.push(Step::Slot(*slot)),
                Part::Hir(part) => match lazy_class(part) {
                    Some(class) => steps.push(until(class, &parts[at..])?),
                    None => steps.push(step(part, &parts[at..], leaves)?),
                },
            }
        }
        Some(Self(steps.into()))
    }
}

fn flatten<'a>(part: &'a Hir, parts: &mut Vec<Part<'a>>) {
    match part.kind() {
        HirKind::Empty => {}
        HirKind::Concat(inner) if has_groups(part) || is_plain(inner) => {
            for part in inner {
                flatten(part, parts);
            }
        }
        HirKind::Capture(group) => {
            parts.push(Part::Slot(2 * group.index as usize));
            flatten(&group.sub, parts);
            parts.push(Part::Slot(2 * group.index as usize + 1));
        }
        _ => parts.push(Part::Hir(part)),
    }
}

fn has_groups(part: &Hir) -> bool {
    part.properties().explicit_captures_len() > 0
}

/// Whether the first way of each part is the one that the next part needs: texts and boundaries, and only the last
/// of the others takes as much as it can.
fn is_plain(parts: &[Hir]) -> bool {
    let is_last = |at: usize| {
        parts[at + 1..].iter().all(|part| matches!(part.kind(), HirKind::Look(_) | HirKind::Empty))
    };
    parts.iter().enumerate().all(|(at, part)| match part.kind() {
        HirKind::Literal(_) | HirKind::Look(_) | HirKind::Class(_) => true,
        HirKind::Repetition(repetition) => {
            let is_class = repetition.greedy && class_of(&repetition.sub).is_some();
            is_class && (repetition.max.is_some() || is_last(at))
        }
        _ => false,
    })
}

fn step(part: &Hir, behind: &[Part<'_>], leaves: &mut Leaves) -> Option<Step> {
    let has_groups = has_groups(part);
    match part.kind() {
        HirKind::Literal(literal) => return Some(Step::Literal(literal.0.clone())),
        HirKind::Look(look) => return look_of(*look).map(Step::Look),
        HirKind::Class(class) => {
            return Some(Step::Run { class: Class::new(class), least: 1, most: 1 });
        }
        HirKind::Repetition(repetition) if repetition.greedy => {
            if let Some(class) = class_of(&repetition.sub) {
                if let Some(HirKind::Literal(next)) = next_of(behind).map(Hir::kind)
                    && repetition.max.is_none()
                    && class.may_begin(next.0[0])
                {
                    let (least, text) = (repetition.min as usize, next.0.clone());
                    return Some(Step::UntilLast { class, least, text });
                }
                let most = repetition.max.map_or(usize::MAX, |most| most as usize);
                return Some(Step::Run { class, least: repetition.min as usize, most });
            }
            if has_groups && (repetition.min, repetition.max) == (0, Some(1)) {
                let some = Steps::new(&repetition.sub, leaves)?;
                return Some(Step::Choice([some, Steps([].into())].into()));
            }
        }
        HirKind::Alternation(parts) if has_groups => {
            let all: Option<Vec<Steps>> =
                parts.iter().map(|part| Steps::new(part, leaves)).collect();
            return Some(Step::Choice(all?.into()));
        }
        _ => {}
    }
    if has_groups { None } else { leaves.get(part).map(Step::Leaf) }
}

fn class_of(part: &Hir) -> Option<Class> {
    match part.kind() {
        HirKind::Class(class) => Some(Class::new(class)),
        HirKind::Literal(literal) if literal.0.len() == 1 => Some(Class::of_byte(literal.0[0])),
        _ => None,
    }
}

/// `.*?` and the like.
fn lazy_class(part: &Hir) -> Option<Class> {
    match part.kind() {
        HirKind::Repetition(hir::Repetition { min: 0, max: None, greedy: false, sub }) => {
            class_of(sub)
        }
        _ => None,
    }
}

fn next_of<'a>(behind: &[Part<'a>]) -> Option<&'a Hir> {
    behind.iter().find_map(|part| match part {
        Part::Slot(_) => None,
        Part::Hir(part) => Some(*part),
    })
}

/// As few letters of a class as lead to the parts behind.
fn until(class: Class, behind: &[Part<'_>]) -> Option<Step> {
    let Some(next) = next_of(behind) else {
        // Nothing at all is the fewest, and the first way.
        return Some(Step::Literal([].into()));
    };
    match next.kind() {
        HirKind::Literal(literal) => {
            Some(Step::UntilText { class, text: Box::new(Finder::new(&literal.0).into_owned()) })
        }
        HirKind::Class(stop) => Some(Step::UntilClass { class, stop: Class::new(stop) }),
        HirKind::Repetition(repetition) if repetition.min == 1 && repetition.greedy => {
            Some(Step::UntilClass { class, stop: class_of(&repetition.sub)? })
        }
        _ => None,
    }
}

fn look_of(look: hir::Look) -> Option<Look> {
    Some(match look {
        hir::Look::Start => Look::Start,
        hir::Look::End => Look::End,
        hir::Look::StartLF => Look::StartLF,
        hir::Look::EndLF => Look::EndLF,
        hir::Look::WordAscii => Look::WordAscii,
        hir::Look::WordAsciiNegate => Look::WordAsciiNegate,
        _ => return None,
    })
}
