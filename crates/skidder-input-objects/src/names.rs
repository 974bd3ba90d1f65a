//! The names of objects in the registry.

use ring::digest::{Context, SHA256};
use std::fmt::Write as _;

/// Bytes of the name of an object that stand in the registry; of a longer one a hash follows.
const KEY_BYTES_MAX: usize = 1024;

/// The name of an object in the registry: no other content has it. `version` is what tells this content from others under the
/// same name; it has no `@`.
pub fn registry_name(bucket: &str, key: &str, version: &str) -> String {
    let key = shortened(key);
    format!("{bucket}/{key}@{version}")
}

/// What the names of objects of a bucket begin with in the registry whose own names begin with `prefix`.
pub fn registry_prefix(bucket: &str, prefix: &str) -> String {
    format!("{bucket}/{}", &prefix[..prefix.floor_char_boundary(KEY_BYTES_MAX)])
}

/// The name of an object, or its beginning and a hash.
fn shortened(key: &str) -> String {
    if key.len() <= KEY_BYTES_MAX {
        return key.to_owned();
    }
    let beginning = &key[..key.floor_char_boundary(KEY_BYTES_MAX)];
    format!("{beginning}#{}", digest([key.as_bytes()]))
}

/// The SHA-256 of the pieces as one, in 64 hexadecimal digits.
pub fn digest<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut context = Context::new(&SHA256);
    for piece in pieces {
        context.update(piece);
    }
    let digest = context.finish();
    digest.as_ref().iter().fold(String::with_capacity(64), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a text takes everything");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_bounded_and_begin_with_their_prefix() {
        assert_eq!(registry_name("logs", "a/b", "0123"), "logs/a/b@0123");
        let (one, other) = ("ä".repeat(2000) + "1", "ä".repeat(2000) + "2");
        let name = |key: &str| registry_name("logs", key, "e");
        assert_ne!(name(&one), name(&other));
        assert!(name(&one).len() < 1200 && name(&one).starts_with("logs/ää"));
        assert!(name(&one).starts_with(&registry_prefix("logs", &one)));
        assert_eq!(registry_prefix("logs", "a/"), "logs/a/");
    }

    #[test]
    fn a_digest_is_of_all_pieces() {
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest([&b"a"[..], b"", b"bc"]), expected);
    }
}
