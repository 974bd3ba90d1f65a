//! Times as the headers and listings of Azure have them (RFC 9110, section 5.6.7).

use jiff::Timestamp as Moment;
use skidder_os::Timestamp;

/// A time as `Sun, 30 Aug 2015 12:36:00 GMT`, whole seconds.
pub(crate) fn http_time(time: Timestamp) -> String {
    let moment = Moment::from_nanosecond(i128::from(time.0)).unwrap_or_default();
    moment.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

/// The time of such a text; `None` if it is not one.
pub fn http_time_of(text: &str) -> Option<Timestamp> {
    let moment = jiff::fmt::rfc2822::parse(text.trim()).ok()?.timestamp();
    i64::try_from(moment.as_nanosecond()).ok().map(Timestamp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_without_a_fraction_and_read() {
        let text = "Sun, 30 Aug 2015 12:36:00 GMT";
        assert_eq!(http_time(Timestamp(1_440_938_160_999_999_999)), text);
        assert_eq!(http_time_of(text), Some(Timestamp(1_440_938_160_000_000_000)));
        for wrong in ["", "2015-08-30", "soon"] {
            assert_eq!(http_time_of(wrong), None, "{wrong}");
        }
    }
}
