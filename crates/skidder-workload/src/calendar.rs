//! The clock of the generated lines, with its two renderings kept ready for the current second.

/// 2026-03-01 00:00 UTC, when every workload begins.
const DAY_FIRST: u64 = 20_513;
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// A time that only goes forward, and its text.
#[derive(Debug)]
pub(super) struct Calendar {
    second: u64,
    micros: u64,
    /// `01/Mar/2026:00:00:00 +0000`
    clf: String,
    /// `2026-03-01T00:00:00`
    iso: String,
}

impl Calendar {
    pub(super) fn new() -> Self {
        let mut calendar =
            Self { second: DAY_FIRST * 86_400, micros: 0, clf: String::new(), iso: String::new() };
        calendar.render();
        calendar
    }

    pub(super) fn advance_micros(&mut self, micros: u64) {
        self.micros += micros;
        if self.micros >= 1_000_000 {
            self.second += self.micros / 1_000_000;
            self.micros %= 1_000_000;
            self.render();
        }
    }

    /// Microseconds within the second.
    pub(super) fn micros(&self) -> u64 {
        self.micros
    }

    /// As in Apache's combined format.
    pub(super) fn clf(&self) -> &[u8] {
        self.clf.as_bytes()
    }

    /// RFC 3339 without fraction and zone.
    pub(super) fn iso_seconds(&self) -> &[u8] {
        self.iso.as_bytes()
    }

    fn render(&mut self) {
        let (year, month, day) = civil(self.second / 86_400);
        let (hour, minute, second) =
            (self.second / 3_600 % 24, self.second / 60 % 60, self.second % 60);
        let name = MONTHS[month as usize - 1];
        self.clf = format!("{day:02}/{name}/{year}:{hour:02}:{minute:02}:{second:02} +0000");
        self.iso = format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
    }
}

/// Year, month and day of a day counted from 1970-01-01, in the Gregorian calendar
/// (Hinnant, "chrono-compatible low-level date algorithms": `civil_from_days`).
pub fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let of_era = shifted % 146_097;
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_shifted + 2) / 5 + 1;
    let month = if month_shifted < 10 { month_shifted + 3 } else { month_shifted - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_days_have_their_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(DAY_FIRST), (2026, 3, 1));
    }

    #[test]
    fn a_full_second_changes_the_text() {
        let mut calendar = Calendar::new();
        calendar.advance_micros(61_500_000);
        assert_eq!(calendar.clf(), b"01/Mar/2026:00:01:01 +0000");
        assert_eq!(calendar.iso_seconds(), b"2026-03-01T00:01:01");
        assert_eq!(calendar.micros(), 500_000);
    }
}
