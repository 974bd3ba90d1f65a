//! What the ids of an object's events begin with: as in Filebeat, a part of a hash of the object's time, bucket and name.

use skidder_aws::{digest, time_text};
use skidder_os::Timestamp;

/// Digits of the hash.
const HASH_DIGITS: usize = 10;

/// The beginning of the ids of an object's events. `modified` is when the object was put.
pub(crate) fn beginning(modified: Option<Timestamp>, arn: &str, key: &str) -> String {
    let time = go_time(modified);
    let mut hash = digest([time.as_bytes(), arn.as_bytes(), key.as_bytes()]);
    hash.truncate(HASH_DIGITS);
    hash
}

/// As Filebeat's language writes a time of whole seconds.
fn go_time(time: Option<Timestamp>) -> String {
    let Some(time) = time else { return "0001-01-01 00:00:00 +0000 UTC".to_owned() };
    // As `20150830T123600Z`.
    let text = time_text(time);
    let part = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
    let (year, month, day) = (part(0, 4), part(4, 6), part(6, 8));
    let (hour, minute, second) = (part(9, 11), part(11, 13), part(13, 15));
    format!("{year}-{month}-{day} {hour}:{minute}:{second} +0000 UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_begins_with_a_hash_of_time_bucket_and_name() {
        let arn = "arn:aws:s3:::logs";
        let found = beginning(Some(Timestamp(1_440_938_160_000_000_000)), arn, "a/b.log");
        let hash = digest([
            &b"2015-08-30 12:36:00 +0000 UTC"[..],
            &b"arn:aws:s3:::logs"[..],
            &b"a/b.log"[..],
        ]);
        assert_eq!(found, hash[..10]);
    }

    #[test]
    fn an_object_without_a_time_has_that_of_the_beginning() {
        assert_eq!(go_time(None), "0001-01-01 00:00:00 +0000 UTC");
        assert_eq!(go_time(Some(Timestamp(0))), "1970-01-01 00:00:00 +0000 UTC");
    }
}
