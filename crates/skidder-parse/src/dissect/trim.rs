//! Taking characters off the ends of a span (`trim_values`, `trim_chars`).

use std::ops::Range;

/// Characters, and the ends they are taken from.
#[derive(Clone, Debug)]
pub struct Trimmer {
    ascii: u128,
    others: Box<[char]>,
    left: bool,
    right: bool,
}

impl Trimmer {
    /// Removes any of `characters` from the configured ends.
    pub fn new(characters: &str, left: bool, right: bool) -> Self {
        let ascii =
            characters.bytes().filter(u8::is_ascii).fold(0, |set: u128, byte| set | 1 << byte);
        let others = characters.chars().filter(|letter| !letter.is_ascii()).collect();
        Self { ascii, others, left, right }
    }

    /// The part of `span` that is left.
    pub fn trim(&self, text: &[u8], mut span: Range<usize>) -> Range<usize> {
        while self.left && !span.is_empty() {
            let len = self.taken(&text[span.clone()], false);
            if len == 0 {
                break;
            }
            span.start += len;
        }
        while self.right && !span.is_empty() {
            let len = self.taken(&text[span.clone()], true);
            if len == 0 {
                break;
            }
            span.end -= len;
        }
        span
    }

    /// Length of the character at an end of `text`, which is not empty, if it goes; 0 if it stays.
    fn taken(&self, text: &[u8], at_end: bool) -> usize {
        let byte = if at_end { text[text.len() - 1] } else { text[0] };
        if byte.is_ascii() {
            return usize::from(self.ascii >> byte & 1 == 1);
        }
        let mut encoded = [0; 4];
        let goes = |letter: &&char| {
            let letter = letter.encode_utf8(&mut encoded).as_bytes();
            if at_end { text.ends_with(letter) } else { text.starts_with(letter) }
        };
        self.others.iter().find(goes).map_or(0, |letter| letter.len_utf8())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_characters_asked_for_go_and_only_at_the_ends_asked_for() {
        let cases = [
            (" \t", true, true, " \ta b\t ", "a b"),
            (" \t", true, false, " \ta b\t ", "a b\t "),
            (" \t", false, true, " \ta b\t ", " \ta b"),
            (" ", true, true, "   ", ""),
            ("é ", true, true, "é ûé", "û"),
            ("é", true, true, "aé", "a"),
            ("x", true, true, "û", "û"),
            ("", true, true, " a ", " a "),
        ];
        for (characters, left, right, text, expected) in cases {
            let trimmer = Trimmer::new(characters, left, right);
            let span = trimmer.trim(text.as_bytes(), 0..text.len());
            assert_eq!(&text[span], expected, "{text}");
        }
    }
}
