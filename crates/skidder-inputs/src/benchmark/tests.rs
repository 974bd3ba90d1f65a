//! Settings of `benchmark`.

use super::*;

#[test]
fn there_is_an_input_of_this_type() {
    assert!(crate::KINDS.iter().any(|(name, _)| *name == KIND));
}
