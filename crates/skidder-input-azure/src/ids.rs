//! What the ids of a blob's events begin with.
//!
//! As in Filebeat, that is a part of a hash of the container and the blob's name. An append blob keeps its bytes when it
//! grows, so its events have these ids. Any other blob can be replaced by another content, whose events would be taken for
//! those of the former one: there the time of the blob is hashed, too.

use skidder_input_objects::digest;
use skidder_os::Timestamp;

/// Digits of the hash.
const HASH_DIGITS: usize = 10;
/// The kind of blobs whose bytes never change.
const APPENDED: &str = "AppendBlob";

/// The beginning of the ids of a blob's events. `kind` is that of Azure, `modified` when it was changed last.
pub(crate) fn beginning(
    kind: &str,
    modified: Option<Timestamp>,
    container: &str,
    blob: &str,
) -> String {
    let (container, blob) = (container.as_bytes(), blob.as_bytes());
    let mut hash = match modified.filter(|_| kind != APPENDED) {
        // Whole seconds, as the server has them.
        Some(time) => digest([(time.0 / 1_000_000_000).to_string().as_bytes(), container, blob]),
        None => digest([container, blob]),
    };
    hash.truncate(HASH_DIGITS);
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_append_blob_has_the_ids_of_filebeat_and_others_have_their_time() {
        let time = Some(Timestamp(1_440_938_160_000_000_000));
        let later = Some(Timestamp(1_440_938_161_000_000_000));
        let of = |kind, time| beginning(kind, time, "logs", "a/b.log");
        let filebeat = &digest([&b"logsa/b.log"[..]])[..10];
        assert_eq!(of("AppendBlob", time), filebeat);
        assert_eq!(of("AppendBlob", later), filebeat);
        assert_eq!(of("BlockBlob", None), filebeat);
        assert_eq!(of("BlockBlob", time), digest([&b"1440938160logsa/b.log"[..]])[..10]);
        assert_ne!(of("BlockBlob", time), of("BlockBlob", later));
    }
}
