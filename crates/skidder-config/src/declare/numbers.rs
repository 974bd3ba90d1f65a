//! Kinds with bounds: numbers, durations, sizes.

use super::kind::{Kind, Readable, Size};
use super::schema::{VARIABLE, text_like};
use super::{Key, Spec};
use crate::section::Section;
use crate::setting::{Bounded, Setting};
use crate::units::{self, SignedDuration};
use serde_json::{Value as Json, json};
use std::ops::Bound;
use std::time::Duration;

/// A whole number in quotes: decimal, or with one of Go's prefixes.
const WHOLE: &str = r"^\s*[-+]?(0[xX][0-9a-fA-F_]+|(0[bBoO])?[0-9_]+(\.0*)?([eE]\+?[0-9]+)?)\s*$";
const NUMBER: &str = r"^\s*[-+.]?[0-9_]*\.?[0-9_]*([eE][-+]?[0-9]+)?\s*$";
/// A duration in quotes: seconds, or numbers with units. Of the negative ones only zero is allowed.
const DURATION: &str = r"^\s*(\+?(([0-9]+\.?[0-9]*|\.[0-9]+)|(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)|-((0+\.?0*|\.0+)|((0+\.?0*|\.0+)(ns|us|µs|μs|ms|s|m|h))+))\s*$";
const SIGNED_DURATION: &str = r"^\s*[-+]?(([0-9]+\.?[0-9]*|\.[0-9]+)|(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)\s*$";
const SIZE: &str = r"^\s*[0-9.,]+\s*([kKmMgGtTpP]?[iI]?[bB]?)\s*$";

/// Checks the declared noun and bounds.
fn bounded<'a, T: Bounded + Copy>(
    spec: &Spec,
    low: Option<T>,
    high: Option<T>,
    setting: Setting<'a, T>,
) -> Setting<'a, T> {
    let setting = named(spec, setting);
    if low.is_none() && high.is_none() {
        return setting;
    }
    let bound = |bound: Option<T>| bound.map_or(Bound::Unbounded, Bound::Included);
    setting.range((bound(low), bound(high)))
}

/// Describes the expected value in the words of the declaration.
pub(super) fn named<'a, T>(spec: &Spec, setting: Setting<'a, T>) -> Setting<'a, T> {
    if spec.noun.is_empty() { setting } else { setting.named(spec.noun) }
}

/// The schema of a number, whose text may be in quotes or a variable.
fn number(kind: &str, pattern: &str, low: Option<Json>, high: Option<Json>) -> Json {
    let mut schema = json!({"type": [kind, "string", "null"]});
    schema["pattern"] = json!(format!("{pattern}|{VARIABLE}"));
    if let Some(low) = low {
        schema["minimum"] = low;
    }
    if let Some(high) = high {
        schema["maximum"] = high;
    }
    schema
}

macro_rules! numbers {
    ($($number:ident, $least:expr, $most:expr, $json:expr, $pattern:expr;)*) => {$(
        impl Kind for $number {
            type Const = $number;
            type Extra = ();

            fn show(_: &Key<Self>, value: $number) -> String {
                value.to_string()
            }

            fn json(_: &Key<Self>, value: $number) -> Json {
                json!(value)
            }

            fn schema(key: &Key<Self>) -> Json {
                let low = key.low.map(|low| json!(low)).or($least);
                let high = key.high.map(|high| json!(high)).or($most);
                number($json, $pattern, low, high)
            }
        }

        impl Readable for $number {
            type Value = $number;

            fn read<'a>(key: &Key<Self>, section: &Section<'a>, name: &str) -> Setting<'a, $number> {
                bounded(&key.spec, key.low, key.high, section.$number(name))
            }

            fn value(_: &Key<Self>, value: $number) -> $number {
                value
            }
        }
    )*};
}

numbers! {
    u16, Some(json!(0)), Some(json!(u16::MAX)), "integer", WHOLE;
    u32, Some(json!(0)), Some(json!(u32::MAX)), "integer", WHOLE;
    u64, Some(json!(0)), Some(json!(u64::MAX)), "integer", WHOLE;
    usize, Some(json!(0)), Some(json!(usize::MAX)), "integer", WHOLE;
    i64, Some(json!(i64::MIN)), Some(json!(i64::MAX)), "integer", WHOLE;
    f64, None, None, "number", NUMBER;
}

impl Kind for Duration {
    type Const = Duration;
    type Extra = ();

    fn show(_: &Key<Self>, value: Duration) -> String {
        units::show_duration(value)
    }

    fn json(_: &Key<Self>, value: Duration) -> Json {
        json!(units::show_duration(value))
    }

    fn schema(key: &Key<Self>) -> Json {
        let seconds = |bound: Duration| json!(bound.as_secs_f64());
        let low = key.low.map_or(json!(0), seconds);
        number("number", DURATION, Some(low), key.high.map(seconds))
    }
}

impl Readable for Duration {
    type Value = Duration;

    fn read<'a>(key: &Key<Self>, section: &Section<'a>, name: &str) -> Setting<'a, Duration> {
        bounded(&key.spec, key.low, key.high, section.duration(name))
    }

    fn value(_: &Key<Self>, value: Duration) -> Duration {
        value
    }
}

impl Kind for SignedDuration {
    type Const = SignedDuration;
    type Extra = ();

    fn show(_: &Key<Self>, value: SignedDuration) -> String {
        value.to_string()
    }

    fn json(_: &Key<Self>, value: SignedDuration) -> Json {
        json!(value.to_string())
    }

    fn schema(_: &Key<Self>) -> Json {
        number("number", SIGNED_DURATION, None, None)
    }
}

impl Readable for SignedDuration {
    type Value = SignedDuration;

    fn read<'a>(key: &Key<Self>, section: &Section<'a>, name: &str) -> Setting<'a, Self> {
        named(&key.spec, section.signed_duration(name))
    }

    fn value(_: &Key<Self>, value: SignedDuration) -> SignedDuration {
        value
    }
}

impl Kind for Size {
    type Const = u64;
    type Extra = ();

    fn show(_: &Key<Self>, bytes: u64) -> String {
        // KiB last: 10 GB are a whole number of them.
        let units = [
            (1_u64 << 30, "GiB"),
            (1 << 20, "MiB"),
            (1_000_000_000, "GB"),
            (1_000_000, "MB"),
            (1 << 10, "KiB"),
        ];
        match units.iter().find(|(unit, _)| bytes >= *unit && bytes.is_multiple_of(*unit)) {
            Some((unit, name)) => format!("{}{name}", bytes / unit),
            None => bytes.to_string(),
        }
    }

    fn json(key: &Key<Self>, bytes: u64) -> Json {
        json!(Self::show(key, bytes))
    }

    fn schema(key: &Key<Self>) -> Json {
        let low = key.low.unwrap_or(0);
        // A fraction of a byte is cut off.
        number("number", SIZE, Some(json!(low)), key.high.map(|high| json!(high)))
    }
}

impl Readable for Size {
    type Value = u64;

    fn read<'a>(key: &Key<Self>, section: &Section<'a>, name: &str) -> Setting<'a, u64> {
        bounded(&key.spec, key.low, key.high, section.size(name))
    }

    fn value(_: &Key<Self>, bytes: u64) -> u64 {
        bytes
    }
}

impl Kind for super::Permissions {
    type Const = u32;
    type Extra = ();

    fn show(_: &Key<Self>, bits: u32) -> String {
        format!("0{bits:o}")
    }

    fn json(key: &Key<Self>, bits: u32) -> Json {
        json!(Self::show(key, bits))
    }

    fn schema(_: &Key<Self>) -> Json {
        let mut schema = text_like("^(0o)?[0-7]+$");
        schema["type"] = json!(["string", "integer", "null"]);
        schema["minimum"] = json!(0);
        // Whether a reader of YAML takes `0777` for 777 or for 511.
        schema["maximum"] = json!(777);
        schema
    }
}

impl Readable for super::Permissions {
    type Value = u32;

    fn read<'a>(key: &Key<Self>, section: &Section<'a>, name: &str) -> Setting<'a, u32> {
        named(&key.spec, section.permissions(name))
    }

    fn value(_: &Key<Self>, bits: u32) -> u32 {
        bits
    }
}

impl Kind for bool {
    type Const = bool;
    type Extra = ();

    fn show(_: &Key<Self>, value: bool) -> String {
        value.to_string()
    }

    fn json(_: &Key<Self>, value: bool) -> Json {
        json!(value)
    }

    fn schema(_: &Key<Self>) -> Json {
        let words = r"^\s*([yY]|yes|Yes|YES|true|True|TRUE|on|On|ON|[nN]|no|No|NO|false|False|FALSE|off|Off|OFF)\s*$";
        json!({"type": ["boolean", "string", "null"], "pattern": format!("{words}|{VARIABLE}")})
    }
}

impl Readable for bool {
    type Value = bool;

    fn read<'a>(key: &Key<Self>, section: &Section<'a>, name: &str) -> Setting<'a, bool> {
        // Not in the words of the declaration: every boolean is `true` or `false`.
        debug_assert_eq!(key.spec.noun, "", "a noun of a boolean is never shown");
        section.bool(name)
    }

    fn value(_: &Key<Self>, value: bool) -> bool {
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use regex::Regex;

    fn fits(pattern: &str, text: &str) -> bool {
        Regex::new(pattern).unwrap().is_match(text)
    }

    proptest! {
        #[test]
        fn the_schema_s_pattern_of_a_duration_is_what_is_read(
            text in "[ ]?[-+]?([0-9]{0,2}[.]?[0-9]{0,2}(s|m|h|ms|us|µs|ns|d|x|e)?){0,3}[ ]?|0x1|[.]nan|[.]",
        ) {
            // A pattern does not count years.
            let is_too_long = |error: &String| error.contains("at most 292 years");
            prop_assume!(!units::parse_signed_duration(&text).as_ref().is_err_and(is_too_long));
            // And it does not round: `-.1ns` is read as zero.
            let is_nothing = text.trim().starts_with('-') && text.contains(|digit| ('1'..='9').contains(&digit));
            prop_assume!(!(is_nothing && units::parse_duration(&text).is_ok()));
            prop_assert_eq!(fits(DURATION, &text), units::parse_duration(&text).is_ok());
            prop_assert_eq!(fits(SIGNED_DURATION, &text), units::parse_signed_duration(&text).is_ok());
        }
    }
}
