//! Numbers for people.

/// A time in milliseconds, in its two largest units.
pub(crate) fn span(milliseconds: u64) -> String {
    let seconds = milliseconds / 1000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match () {
        () if milliseconds < 1000 => format!("{milliseconds} ms"),
        () if minutes == 0 => format!("{seconds} s"),
        () if hours == 0 => format!("{minutes} m {} s", seconds % 60),
        () if days == 0 => format!("{hours} h {} m", minutes % 60),
        () => format!("{days} d {} h", hours % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_their_two_largest_units() {
        let spans = [999, 59_999, 61_000, 3_661_000, 90_000_000].map(span);
        assert_eq!(spans, ["999 ms", "59 s", "1 m 1 s", "1 h 1 m", "1 d 1 h"]);
    }
}
