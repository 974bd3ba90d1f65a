//! Timestamps in text: RFC 3339, with the exact nanoseconds.
//!
//! Accepts what Go's `time.Parse(time.RFC3339, …)` accepts in its strict form, and a zone without colon
//! (`+0200`), as Filebeat does for `@timestamp`. Decimals behind the ninth are cut off.

/// Nanoseconds since 1970-01-01 UTC of `2026-11-21T20:52:57.123456789+01:00`; `None` if the text is not
/// exactly such a timestamp, or outside the years 1678 to 2261.
pub fn rfc3339(text: &[u8]) -> Option<i64> {
    TimeReader::default().rfc3339(text)
}

/// Bytes of a date and a time of day, `2026-11-21T20:52:57`.
const SECONDS_BYTES: usize = 19;

/// Reads timestamps of lines that follow each other: of one in the same second as the one before,
/// only what is behind the seconds. One for each source or thread.
#[derive(Debug)]
pub struct TimeReader {
    /// The last date and time of day.
    text: [u8; SECONDS_BYTES],
    /// What it says: seconds since 1970-01-01 as if in UTC.
    seconds: i64,
}

impl Default for TimeReader {
    fn default() -> Self {
        Self { text: *b"1970-01-01T00:00:00", seconds: 0 }
    }
}

impl TimeReader {
    /// As [`rfc3339`].
    #[inline]
    pub fn rfc3339(&mut self, text: &[u8]) -> Option<i64> {
        let (head, rest) = text.split_first_chunk()?;
        if *head != self.text {
            self.seconds = date_and_time(head)?;
            self.text = *head;
        }
        let (nanoseconds, rest) = fraction(rest)?;
        let offset = if rest == b"Z" { 0 } else { zone(rest)? };
        (self.seconds - offset).checked_mul(1_000_000_000)?.checked_add(nanoseconds)
    }
}

/// Nanoseconds since 1970-01-01 UTC of a date in Elasticsearch's default format,
/// `strict_date_optional_time||epoch_millis`: of `2026`, `2026-11-21`, `2026-11-21T20:52`, any of them with
/// a time of day also with a zone, or of milliseconds since 1970-01-01. Without a zone it is UTC.
pub fn optional_time_or_millis(text: &[u8]) -> Option<i64> {
    optional_time(text).or_else(|| epoch_millis(text))
}

fn optional_time(text: &[u8]) -> Option<i64> {
    let (year, rest) = text.split_first_chunk::<4>()?;
    let (month, rest) = part(rest, b'-')?;
    let (day, rest) = month.map_or(Some((None, rest)), |_| part(rest, b'-'))?;
    let days = days_of(digits(year)?, month.unwrap_or(1), day.unwrap_or(1))?;
    let (seconds, nanoseconds) = match rest {
        [] => (0, 0),
        [b'T', time @ ..] if day.is_some() => time_of_day(time)?,
        _ => return None,
    };
    (days * 86_400 + seconds).checked_mul(1_000_000_000)?.checked_add(nanoseconds)
}

/// Seconds and nanoseconds of `20`, `20:52`, `20:52:57` or `20:52:57.123`, each also with a zone; of nothing, zero.
fn time_of_day(text: &[u8]) -> Option<(i64, i64)> {
    if text.is_empty() {
        return Some((0, 0));
    }
    let (hour, rest) = text.split_first_chunk::<2>()?;
    let hour = digits(hour)?;
    let (minute, rest) = part(rest, b':')?;
    let (second, rest) = minute.map_or(Some((None, rest)), |_| part(rest, b':'))?;
    let (nanoseconds, zone) = second.map_or(Some((0, rest)), |_| fraction(rest))?;
    let (minute, second) = (minute.unwrap_or(0), second.unwrap_or(0));
    if hour > 23 || minute > 59 || second > 59 || rest.len() - zone.len() > 10 {
        return None;
    }
    let offset = match *zone {
        [] => 0,
        [sign, h1, h2] => self::zone(&[sign, h1, h2, b'0', b'0'])?,
        _ => self::zone(zone)?,
    };
    Some((hour * 3600 + minute * 60 + second - offset, nanoseconds))
}

/// Two digits behind a mark, if the mark is there, and what follows. `None` if something else is behind it.
fn part(text: &[u8], mark: u8) -> Option<(Option<i64>, &[u8])> {
    let Some(rest) = text.strip_prefix(&[mark]) else { return Some((None, text)) };
    let (two, rest) = rest.split_first_chunk::<2>()?;
    Some((Some(digits(two)?), rest))
}

/// Of milliseconds, with up to six decimals.
fn epoch_millis(text: &[u8]) -> Option<i64> {
    let (sign, text) = text.strip_prefix(b"-").map_or((1, text), |text| (-1, text));
    let dot = text.iter().position(|&byte| byte == b'.');
    let (whole, decimals) = dot.map_or((text, None), |at| (&text[..at], Some(&text[at + 1..])));
    if !(1..=16).contains(&whole.len()) || decimals.is_some_and(|it| !(1..=6).contains(&it.len())) {
        return None;
    }
    let decimals = decimals.unwrap_or_default();
    let below = digits(decimals)? * 10_i64.pow(6 - decimals.len() as u32);
    digits(whole)?.checked_mul(1_000_000)?.checked_add(below)?.checked_mul(sign)
}

/// Seconds since 1970-01-01 of `2026-11-21T20:52:57` as if in UTC.
fn date_and_time(head: &[u8; SECONDS_BYTES]) -> Option<i64> {
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
    Some(days * 86_400 + hour * 3600 + minute * 60 + second)
}

/// Decimals of a second in nanoseconds, and what follows.
#[inline]
fn fraction(text: &[u8]) -> Option<(i64, &[u8])> {
    let Some((b'.' | b',', rest)) = text.split_first() else { return Some((0, text)) };
    // Container runtimes write all nine.
    if let Some((nine, behind)) = rest.split_first_chunk()
        && !behind.first().is_some_and(u8::is_ascii_digit)
        && let Some(nanoseconds) = nine_digits(nine)
    {
        return Some((nanoseconds, behind));
    }
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

/// A number of nine digits and nothing else, eight of them at once.
#[inline]
fn nine_digits(text: &[u8; 9]) -> Option<i64> {
    let &[eight @ .., last] = text;
    // The first digit lowest; a byte that is no digit is at least ten then, or at least 0x10.
    let values = u64::from_le_bytes(eight) ^ 0x3030_3030_3030_3030;
    if (values | values.wrapping_add(0x0606_0606_0606_0606)) & 0xf0f0_f0f0_f0f0_f0f0 != 0 {
        return None;
    }
    // Digits become numbers of two, of four, of eight digits.
    let pairs = values.wrapping_mul(10).wrapping_add(values >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = pairs.wrapping_mul(100).wrapping_add(pairs >> 16) & 0x0000_ffff_0000_ffff;
    let eight = fours.wrapping_mul(10_000).wrapping_add(fours >> 32) & 0xffff_ffff;
    let last = last.wrapping_sub(b'0');
    (last < 10).then(|| eight as i64 * 10 + i64::from(last))
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

    #[test]
    fn dates_of_elasticsearch_may_lack_their_end() {
        let midnight = 1_795_219_200_000_000_000;
        for (text, expected) in [
            ("2026-11-21", midnight),
            ("2026-11-21T", midnight),
            ("2026-11-01", midnight - 20 * 86_400_000_000_000),
            ("2026-11", midnight - 20 * 86_400_000_000_000),
            ("1970", 0),
            ("1970-01-01T01", 3_600_000_000_000),
            ("1970-01-01T00:01", 60_000_000_000),
            ("1970-01-01T00:01Z", 60_000_000_000),
            ("1970-01-01T02+01", 3_600_000_000_000),
            ("1970-01-01T00:00:01.123456789", 1_123_456_789),
            ("1970-01-01T00:00:01,5+0100", -3_598_500_000_000),
            ("0", 0),
            ("1700000000123", 1_700_000_000_123_000_000),
            ("-1.5", -1_500_000),
            ("12345", 12_345_000_000),
        ] {
            assert_eq!(optional_time_or_millis(text.as_bytes()), Some(expected), "{text}");
        }
        for text in [
            "",
            "bad",
            "T",
            "-",
            ".",
            "1.",
            "1.1234567",
            "1e3",
            "12345678901234567",
            "99999999999999",
            "2026-1-2",
            "2026-11-",
            "2026-13",
            "2026-02-30",
            "2026T03",
            "2026-11T03",
            "2026-11-21 03",
            "2026-11-21Z",
            "2026-11-21T3",
            "2026-11-21T24",
            "2026-11-21T03:",
            "2026-11-21T03:60",
            "2026-11-21T03:04:05.",
            "2026-11-21T03:04:05.1234567891",
            "2026-11-21T03:04.5",
            "2026-11-21T03:04:05+",
            "2026-11-21T03:04:05+1",
            "9999-11-21",
        ] {
            assert_eq!(optional_time_or_millis(text.as_bytes()), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_the_encoder_writes_is_read_back(time in any::<i64>()) {
            let mut text = TimeText::new(Precision::Nanosecond);
            prop_assert_eq!(rfc3339(text.format(time)), Some(time));
        }

        #[test]
        fn what_was_read_before_changes_nothing(
            texts in proptest::collection::vec(
                // Few seconds, and now and then a byte that does not belong there.
                "202[56]-0[12]-28T2[34]:59:5[0-9][.,]?[0-9]{0,12}(Z|[+]0[01]:00|x)?", 1..20)
        ) {
            let mut reader = TimeReader::default();
            for text in &texts {
                prop_assert_eq!(reader.rfc3339(text.as_bytes()), rfc3339(text.as_bytes()), "{}", text);
            }
        }

        #[test]
        fn nine_digits_at_once_are_what_they_are_one_by_one(
            text in prop_oneof!["[0-9]{9}", "[/-:]{9}", "[0-9]{4}[ -~][0-9]{4}"]
        ) {
            let text: [u8; 9] = text.into_bytes().try_into().unwrap();
            prop_assert_eq!(nine_digits(&text), digits(&text));
        }

        #[test]
        fn any_nine_bytes_are_nine_digits_or_not(text in any::<[u8; 9]>()) {
            prop_assert_eq!(nine_digits(&text), digits(&text));
        }

        #[test]
        fn no_bytes_make_it_panic(text in proptest::collection::vec(any::<u8>(), 0..40)) {
            rfc3339(&text);
            optional_time_or_millis(&text);
        }
    }
}
