//! Names of topics.

/// Longest name of a topic, in bytes (Kafka's `Topic.java`).
pub const NAME_BYTES_MAX: usize = 249;

/// Kafka's own rule, so that a wrong name fails here and is not tried for ever.
pub fn is_name(name: &[u8]) -> bool {
    let is_legal = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
    let is_dots = name == b"." || name == b"..";
    (1..=NAME_BYTES_MAX).contains(&name.len()) && name.iter().all(is_legal) && !is_dots
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_kafka_takes() {
        for name in ["a", "A.b_c-9", "...", &"x".repeat(249)] {
            assert!(is_name(name.as_bytes()), "{name}");
        }
        for name in ["", ".", "..", "a b", "a/b", "é", "logs-*", &"x".repeat(250)] {
            assert!(!is_name(name.as_bytes()), "{name}");
        }
    }
}
