//! Timestamps in text: RFC 3339, with the exact nanoseconds.
//!
//! Accepts what Go's `time.Parse(time.RFC3339, …)` accepts in its strict form, and a zone without colon
//! (`+0200`), as Filebeat does for `@timestamp`. Decimals behind the ninth are cut off.

/// Nanoseconds since 1970-01-01 UTC of `2026-11-21T20:52:57.123456789+01:00`; nothing if the text is not
/// exactly such a timestamp, or outside the years 1678 to 2261.
pub fn rfc3339(text: &[u8]) -> Option<i64> {
    let (seconds, rest) = date_and_time(text)?;
    let (nanoseconds, rest) = fraction(rest)?;
    let offset = zone(rest)?;
    (seconds - offset).checked_mul(1_000_000_000)?.checked_add(nanoseconds)
}

/// Seconds since 1970-01-01 of `2026-11-21T20:52:57` as if in UTC, and what follows.
fn date_and_time(text: &[u8]) -> Option<(i64, &[u8])> {
    let (head, rest) = text.split_first_chunk::<19>()?;
    let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if marks.iter().any(|&(at, mark)| head[at] != mark) {
        return None;
    }
    let pair = |at: usize| digits(&head[at..at + 2]);
    let (year, month, day) = (pair(0)? * 100 + pair(2)?, pair(5)?, pair(8)?);
    let (hour, minute, second) = (pair(11)?, pair(14)?, pair(17)?);
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let days = days_of(year, month, day)?;
    Some((days * 86_400 + hour * 3600 + minute * 60 + second, rest))
}

/// Decimals of a second in nanoseconds, and what follows.
fn fraction(text: &[u8]) -> Option<(i64, &[u8])> {
    let Some((b'.' | b',', rest)) = text.split_first() else { return Some((0, text)) };
    let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if count == 0 {
        return None;
    }
    let (decimals, behind) = rest.split_at(count);
    let kept = &decimals[..count.min(9)];
    let nanoseconds = digits(kept)? * 10_i64.pow(9 - kept.len() as u32);
    Some((nanoseconds, behind))
}

/// Seconds east of UTC of `Z`, `+02:00` or `+0200`.
fn zone(text: &[u8]) -> Option<i64> {
    let (sign, hours, minutes) = match *text {
        [b'Z'] => return Some(0),
        [sign, h1, h2, b':', m1, m2] | [sign, h1, h2, m1, m2] => (sign, [h1, h2], [m1, m2]),
        _ => return None,
    };
    let (hours, minutes) = (digits(&hours)?, digits(&minutes)?);
    if hours > 24 || minutes > 59 {
        return None;
    }
    let seconds = hours * 3600 + minutes * 60;
    match sign {
        b'+' => Some(seconds),
        b'-' => Some(-seconds),
        _ => None,
    }
}

/// A number of digits and nothing else.
pub(crate) fn digits(text: &[u8]) -> Option<i64> {
    text.iter().try_fold(0_i64, |number, byte| {
        let digit = byte.wrapping_sub(b'0');
        (digit < 10).then(|| number * 10 + i64::from(digit))
    })
}

/// Days from 1970-01-01 to a date of the Gregorian calendar, which is checked.
pub(crate) fn days_of(year: i64, month: i64, day: i64) -> Option<i64> {
    const LENGTHS: [i64; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = LENGTHS.get(usize::try_from(month - 1).ok()?)? + i64::from(leap && month == 2);
    if day < 1 || day > length {
        return None;
    }
    // Years that begin in March end with the leap day.
    let year = if month <= 2 { year - 1 } else { year };
    let month_of_year = (month + 9) % 12;
    let day_of_year = (153 * month_of_year + 2) / 5 + day - 1;
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Some(era * 146_097 + day_of_era - 719_468)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use skidder_event::{Precision, TimeText};

    #[test]
    fn timestamps_are_read_to_the_nanosecond() {
        let cases = [
            ("1970-01-01T00:00:00Z", 0),
            ("2026-11-21T20:52:57.123456789Z", 1_795_294_377_123_456_789),
            ("2026-11-21T21:52:57.123456789+01:00", 1_795_294_377_123_456_789),
            ("2026-11-21T15:22:57.1-0530", 1_795_294_377_100_000_000),
            ("2026-11-21T20:52:57,12Z", 1_795_294_377_120_000_000),
            ("2026-11-21T20:52:57.1234567891234Z", 1_795_294_377_123_456_789),
            ("2024-02-29T00:00:00Z", 1_709_164_800_000_000_000),
            ("1969-12-31T23:59:59.999999999Z", -1),
        ];
        for (text, expected) in cases {
            assert_eq!(rfc3339(text.as_bytes()), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_timestamp_is_refused() {
        for text in [
            "",
            "2026-11-21",
            "2026-11-21 20:52:57Z",
            "2026-11-21T20:52:57",
            "2026-11-21T20:52:57.Z",
            "2026-11-21T20:52:57z",
            "2026-11-21T24:52:57Z",
            "2026-11-21T20:60:57Z",
            "2026-11-21T20:52:60Z",
            "2026-13-21T20:52:57Z",
            "2026-00-21T20:52:57Z",
            "2025-02-29T20:52:57Z",
            "2026-11-21T20:52:57+25:00",
            "2026-11-21T20:52:57+01:60",
            "2026-11-21T20:52:57Z ",
            "x026-11-21T20:52:57Z",
            "9999-11-21T20:52:57Z",
        ] {
            assert_eq!(rfc3339(text.as_bytes()), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_the_encoder_writes_is_read_back(time in any::<i64>()) {
            let mut text = TimeText::new(Precision::Nanosecond);
            prop_assert_eq!(rfc3339(text.format(time)), Some(time));
        }

        #[test]
        fn no_bytes_make_it_panic(text in proptest::collection::vec(any::<u8>(), 0..40)) {
            rfc3339(&text);
        }
    }
}
