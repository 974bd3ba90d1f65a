//! Bounds on what comes from outside.

/// Objects of one kind and provider that are known; further ones get no inputs, which is logged.
pub const OBJECTS_MAX: usize = 20_000;

/// Bytes of the names and values of all hints of one container; a container with more gets no input from hints.
pub const HINT_BYTES_MAX: usize = 64 << 10;

/// Inputs that the hints of one container can make: numbered sets, or items of `raw`.
pub const HINT_INPUTS_MAX: usize = 32;

/// Levels that a key of the hint `raw` can have.
pub const RAW_LEVELS_MAX: usize = 20;

/// Jolokia agents of a provider that are known at a time; further ones get no inputs, which is logged.
pub const JOLOKIA_AGENTS_MAX: usize = 1_000;

/// Bytes of an answer of a Jolokia agent; longer ones are ignored. Agents send at most 8,972.
pub const JOLOKIA_ANSWER_BYTES_MAX: usize = 9_000;

/// Answers to one query on one interface that are looked at; for the rest of the probe nothing is received.
pub const JOLOKIA_ANSWERS_MAX: usize = 4_000;

/// Ports of one container that have events of their own; further ones are ignored, which the explanation says.
pub const PORTS_MAX: usize = 64;
