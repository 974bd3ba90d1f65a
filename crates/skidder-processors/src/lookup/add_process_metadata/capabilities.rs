//! The capabilities of a process.

use skidder_os::capability_name;

/// The names of the bits that are set in a hexadecimal number; a bit without a name is its number.
pub(super) fn names_of(digits: &str) -> Vec<String> {
    let bits = u64::from_str_radix(digits, 16).unwrap_or(0);
    let name = |bit: usize| capability_name(bit).map_or_else(|| bit.to_string(), str::to_owned);
    (0..64).filter(|bit| bits >> bit & 1 == 1).map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_have_names() {
        assert_eq!(names_of("0000000000000021"), ["CAP_CHOWN", "CAP_KILL"]);
        assert_eq!(names_of("0000030000000000"), ["CAP_CHECKPOINT_RESTORE", "41"]);
        assert!(names_of("0000000000000000").is_empty() && names_of("x").is_empty());
        assert_eq!(names_of("000001ffffffffff").len(), 41);
    }
}
