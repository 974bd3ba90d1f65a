//! `true`, `false` and `null`.

use super::Scan;
use crate::json::{JsonError, Problem};

impl Scan<'_> {
    #[inline(always)]
    pub(super) fn word(&mut self, word: &[u8]) -> Result<(), JsonError> {
        if self.bytes[self.at..self.end].starts_with(word) {
            self.at += word.len();
            return Ok(());
        }
        self.no_word(word)
    }

    #[cold]
    fn no_word(&mut self, word: &[u8]) -> Result<(), JsonError> {
        let rest = &self.bytes[self.at..self.end];
        let same = rest.iter().zip(word).take_while(|(is, should)| is == should).count();
        if same == rest.len() {
            self.at = self.end;
        }
        self.fail(Problem::Value)
    }
}
