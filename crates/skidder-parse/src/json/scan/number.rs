//! Numbers: where they end, and those that may not fit.

use super::Scan;
use crate::json::{JsonError, Problem};
use skidder_event::{Cell, Text};

impl Scan<'_> {
    #[inline(always)]
    pub(super) fn digits(&mut self) -> usize {
        let from = self.at;
        while self.at < self.end && self.bytes[self.at].is_ascii_digit() {
            self.at += 1;
        }
        self.at - from
    }

    /// Reads a number and says whether it is small enough to be kept as it is without another look.
    #[inline(always)]
    pub(super) fn number(&mut self) -> Result<bool, JsonError> {
        let is_negative = self.bytes[self.at] == b'-';
        self.at += usize::from(is_negative);
        let leading_zero = self.at < self.end && self.bytes[self.at] == b'0';
        let digits = self.digits();
        if digits == 0 || (leading_zero && digits > 1) {
            return self.fail(Problem::Number);
        }
        if self.at < self.end && matches!(self.bytes[self.at], b'.' | b'e' | b'E') {
            return self.fraction(digits);
        }
        // All of 19 digits fit into 64 bits without a sign.
        Ok(digits <= 18 + usize::from(!is_negative))
    }

    fn fraction(&mut self, digits: usize) -> Result<bool, JsonError> {
        if self.bytes[self.at] == b'.' {
            self.at += 1;
            if self.digits() == 0 {
                return self.fail(Problem::Number);
            }
        }
        if self.at < self.end && matches!(self.bytes[self.at], b'e' | b'E') {
            self.at += 1;
            if self.at < self.end && matches!(self.bytes[self.at], b'+' | b'-') {
                self.at += 1;
            }
            if self.digits() == 0 {
                return self.fail(Problem::Number);
            }
            return Ok(false);
        }
        Ok(digits < 300)
    }
}

/// A number that may not fit.
#[cold]
pub(super) fn large(bytes: &[u8], text: Text) -> Cell {
    let digits = std::str::from_utf8(bytes).unwrap_or_default();
    let integer = bytes.iter().all(|byte| byte.is_ascii_digit() || *byte == b'-');
    if integer && (digits.parse::<i64>().is_ok() || digits.parse::<u64>().is_ok()) {
        return Cell::Number(text);
    }
    match digits.parse::<f64>() {
        Ok(number) if number.is_finite() && !integer => Cell::Number(text),
        Ok(number) if number.is_finite() => Cell::Float(number),
        _ => Cell::Str(text),
    }
}
