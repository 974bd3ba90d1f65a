//! The patterns that come with skidder.
//!
//! Names and meanings are the usual ones of grok. The expressions are written for an engine without
//! look-around: a boundary is `\b`, and what must not follow is left to the pattern that follows. Two names
//! in `%{IP:clientip|source.address}` are the one of old and the one of ECS; either may be missing, and
//! then nothing is kept. A type comes with the second name and belongs to it alone.

mod applications;
mod basics;
mod network;
mod servers;
mod times;

use std::sync::LazyLock;

/// A name and its pattern.
type Pattern = (&'static str, &'static str);

const LISTS: [&[Pattern]; 5] = [
    basics::PATTERNS,
    network::PATTERNS,
    times::PATTERNS,
    servers::PATTERNS,
    applications::PATTERNS,
];

/// What takes the place of a pattern if the names of ECS are wanted and more than a name differs.
const ECS: &[Pattern] = servers::ECS;

static IPV6: LazyLock<String> = LazyLock::new(network::ipv6);

/// The pattern of this name.
pub(super) fn find(name: &str, ecs: bool) -> Option<&'static str> {
    if name == "IPV6" {
        return Some(&IPV6);
    }
    let found = |list: &[Pattern]| list.iter().find(|(own, _)| *own == name).map(|(_, text)| *text);
    let special = if ecs { found(ECS) } else { None };
    special.or_else(|| LISTS.iter().find_map(|list| found(list)))
}

/// All names.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    LISTS.into_iter().flatten().map(|(name, _)| *name).chain(["IPV6"])
}
