//! Automata of parts without groups: those of `regex-automata`, in tables that stay in the first cache.
//!
//! A part is short (a number, an address, a time), so that what a general search does before its first byte costs
//! more than the bytes. These tables have only the states that can be reached, in two bytes each where that is enough,
//! and one start for most parts.

use regex_automata::Anchored;
use regex_automata::dfa::{Automaton, dense};
use regex_automata::util::primitives::StateID;
use regex_automata::util::start;
use std::sync::Arc;

/// An automaton that matches from a place on.
#[derive(Clone, Debug)]
pub(super) struct Leaf(Arc<Inner>);

/// A state is the place of its row in the table: 0 leads nowhere, those up to `last_match` say that the text before the
/// last byte matches.
#[derive(Debug)]
struct Inner {
    /// Where in a row a byte is; the end of the text is at 0.
    columns: [u8; 256],
    table: Table,
    last_match: usize,
    starts: Starts,
}

#[derive(Debug)]
enum Table {
    Small(Box<[u16]>),
    Large(Box<[usize]>),
}

/// The first state.
#[derive(Debug)]
enum Starts {
    One(usize),
    /// By the byte before, behind that at the beginning of the text.
    ByByte(Box<[usize; 257]>),
}

/// The end of the text, as a byte.
const END: usize = 256;

impl Leaf {
    /// The automaton in tables of its own. `None` if it has states or columns that these do not know.
    pub(super) fn new(dfa: &dense::DFA<Vec<u32>>) -> Option<Self> {
        let mut starts = Vec::new();
        for before in (0..END).map(|byte| u8::try_from(byte).ok()).chain([None]) {
            let config = start::Config::new().anchored(Anchored::Yes).look_behind(before);
            starts.push(dfa.start_state(&config).ok()?);
        }
        // The first state of these automata leads nowhere.
        if !dfa.is_dead_state(StateID::ZERO) {
            return None;
        }
        let mut states = reachable(dfa, &starts);
        if states.iter().any(|state| dfa.is_quit_state(*state)) {
            return None;
        }
        states.sort_by_key(|state| (!dfa.is_dead_state(*state), !dfa.is_match_state(*state)));
        let matches = states.iter().filter(|state| dfa.is_match_state(**state)).count();
        let (columns, heads) = columns_of(dfa, &states)?;
        let width = heads.len();
        let row_of = |state: StateID| state.as_usize() >> dfa.stride2();
        let mut places = vec![0; states.iter().map(|state| row_of(*state) + 1).max().unwrap_or(0)];
        for (at, state) in states.iter().enumerate() {
            places[row_of(*state)] = at * width;
        }
        let rows = states.iter().flat_map(|state| heads.iter().map(|head| (*state, *head)));
        let table: Vec<usize> =
            rows.map(|(state, head)| places[row_of(next_of(dfa, state, head))]).collect();
        let small: Result<Box<[u16]>, _> = table.iter().map(|next| u16::try_from(*next)).collect();
        let table = match small {
            Ok(small) => Table::Small(small),
            Err(_) => Table::Large(table.into()),
        };
        let starts: Vec<usize> = starts.iter().map(|state| places[row_of(*state)]).collect();
        Some(Self(Arc::new(Inner {
            columns,
            table,
            last_match: matches * width,
            starts: match starts[..] {
                [one, ref others @ ..] if others.iter().all(|other| *other == one) => {
                    Starts::One(one)
                }
                _ => Starts::ByByte(Box::new(starts.try_into().ok()?)),
            },
        })))
    }

    /// Bytes in memory.
    pub(super) fn bytes(&self) -> usize {
        let table = match &self.0.table {
            Table::Small(table) => size_of_val(&**table),
            Table::Large(table) => size_of_val(&**table),
        };
        let starts = match &self.0.starts {
            Starts::One(_) => 0,
            Starts::ByByte(starts) => size_of_val(&**starts),
        };
        size_of::<Inner>() + table + starts
    }

    /// The end of what matches from `at` on, which it prefers.
    pub(super) fn end(&self, text: &[u8], at: usize) -> Option<usize> {
        let inner = &*self.0;
        let start = match &inner.starts {
            Starts::One(start) => *start,
            Starts::ByByte(starts) => {
                starts[at.checked_sub(1).map_or(END, |before| usize::from(text[before]))]
            }
        };
        match &inner.table {
            Table::Small(table) => inner.walk(table, start, text, at),
            Table::Large(table) => inner.walk(table, start, text, at),
        }
    }
}

impl Inner {
    #[inline]
    fn walk<N>(&self, table: &[N], start: usize, text: &[u8], mut at: usize) -> Option<usize>
    where
        N: Copy + Into<usize>,
    {
        let next =
            |state: usize, column: u8| -> usize { table[state + usize::from(column)].into() };
        let (mut state, mut end) = (start, None);
        for byte in &text[at..] {
            state = next(state, self.columns[usize::from(*byte)]);
            if state <= self.last_match {
                if state == 0 {
                    return end;
                }
                end = Some(at);
            }
            at += 1;
        }
        state = next(state, 0);
        if state != 0 && state <= self.last_match { Some(at) } else { end }
    }
}

fn next_of(dfa: &dense::DFA<Vec<u32>>, state: StateID, byte: usize) -> StateID {
    match u8::try_from(byte) {
        Ok(byte) => dfa.next_state(state, byte),
        Err(_) => dfa.next_eoi_state(state),
    }
}

/// All states that a text leads to, and the one that leads nowhere.
fn reachable(dfa: &dense::DFA<Vec<u32>>, starts: &[StateID]) -> Vec<StateID> {
    let mut is_known: Vec<bool> = Vec::new();
    let mut states = Vec::new();
    let mut add = |state: StateID, states: &mut Vec<StateID>| {
        let at = state.as_usize() >> dfa.stride2();
        if is_known.len() <= at {
            is_known.resize(at + 1, false);
        }
        if !std::mem::replace(&mut is_known[at], true) {
            states.push(state);
        }
    };
    add(StateID::ZERO, &mut states);
    for start in starts {
        add(*start, &mut states);
    }
    let mut looked_at = 0;
    while let Some(state) = states.get(looked_at).copied() {
        looked_at += 1;
        for byte in 0..=END {
            add(next_of(dfa, state, byte), &mut states);
        }
    }
    states
}

/// The column of each byte, and the first byte of each column: those that no state tells apart have one. The end of the
/// text has the first one.
fn columns_of(dfa: &dense::DFA<Vec<u32>>, states: &[StateID]) -> Option<([u8; 256], Vec<usize>)> {
    let mut heads = vec![END];
    let mut columns = [0; 256];
    for (byte, its_column) in columns.iter_mut().enumerate() {
        let is_same = |head: &usize| {
            states.iter().all(|state| next_of(dfa, *state, byte) == next_of(dfa, *state, *head))
        };
        let column = heads.iter().position(is_same).unwrap_or_else(|| {
            heads.push(byte);
            heads.len() - 1
        });
        *its_column = u8::try_from(column).ok()?;
    }
    Some((columns, heads))
}

#[cfg(test)]
mod tests {
    use super::*;
    use regex_automata::Input;
    use regex_automata::nfa::thompson;
    use regex_automata::util::syntax;
    use skidder_testkit::Random;

    /// An automaton with the start that steps need.
    fn dfa_of(expression: &str) -> dense::DFA<Vec<u32>> {
        dense::Builder::new()
            .configure(dense::Config::new().start_kind(regex_automata::dfa::StartKind::Anchored))
            .syntax(syntax::Config::new().utf8(false))
            .thompson(thompson::Config::new().utf8(false))
            .build(expression)
            .unwrap()
    }

    #[test]
    fn it_ends_where_the_automaton_of_the_library_does() {
        let mut random = Random::new(7);
        for expression in [
            "a*",
            "(?:ab|a)(?:c|bcd)?",
            "(?s-u:.)*",
            r"(?-u:\b)[ab]+(?-u:\b)",
            r"(?m:^)a|b(?m:$)",
            "a|ä|[^ab]{2}",
            "(?:25[0-5]|2[0-4][0-9]|1?[0-9]{1,2})(?:[.]1)?",
            "[0-9a-f]{1,4}(?::[0-9a-f]{0,4}){2,7}",
        ] {
            let dfa = dfa_of(expression);
            let leaf = Leaf::new(&dfa).unwrap();
            for _ in 0..3000 {
                let letters = ["a", "b", "c", "d", "ä", "\n", " ", "1", "25", ".", ":"];
                let text: String =
                    (0..random.below(12)).map(|_| letters[random.below(11) as usize]).collect();
                for at in 0..=text.len() {
                    let input = Input::new(&text).range(at..).anchored(Anchored::Yes);
                    let expected = dfa.try_search_fwd(&input).unwrap().map(|end| end.offset());
                    assert_eq!(
                        leaf.end(text.as_bytes(), at),
                        expected,
                        "{expression} {text:?} {at}"
                    );
                }
            }
        }
    }

    #[test]
    fn large_automata_have_tables_too() {
        let leaf = Leaf::new(&dfa_of("(?:abcdefgh){1000}")).unwrap();
        assert!(matches!(leaf.0.table, Table::Large(_)), "{}", leaf.bytes());
        let text = "abcdefgh".repeat(1000);
        assert_eq!(leaf.end(text.as_bytes(), 0), Some(8000));
        assert_eq!(leaf.end(text.as_bytes(), 8), None);
    }
}
