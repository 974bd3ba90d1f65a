//! The grammar of `${...}`: text in, pieces out. Replacing them is [`crate::vars`]' work.
//!
//! `${name}`, `${name:default}`, `${name:+alternative}`, `${name:?message}`; names and defaults may
//! hold further variables. `$$` is a `$` and `$}` a `}`, any other `$` is itself. The same as
//! go-ucfg's lexer (<https://github.com/elastic/go-ucfg/blob/main/variables.go>).

/// Variables inside variables; more is an error.
const DEPTH_MAX: usize = 20;

/// A part of a text.
#[derive(Debug, PartialEq)]
pub(crate) enum Piece {
    Text(String),
    Variable(Variable),
}

/// `${name<operator>rest}`.
#[derive(Debug, PartialEq)]
pub(crate) struct Variable {
    pub(crate) name: Vec<Piece>,
    pub(crate) operator: Operator,
    pub(crate) rest: Vec<Piece>,
}

/// What happens if the variable is or is not set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Operator {
    /// `${name}`: not set is an error.
    Plain,
    /// `${name:rest}`: not set or empty means `rest`.
    Default,
    /// `${name:+rest}`: `rest` if set, else empty.
    Alternative,
    /// `${name:?rest}`: not set is an error with the message `rest`.
    Message,
}

/// Splits `text` into pieces. The error is a part of a sentence.
pub(crate) fn parse(text: &str) -> Result<Vec<Piece>, String> {
    let mut scanner = Scanner { rest: text };
    scanner.pieces(0, false)
}

struct Scanner<'a> {
    rest: &'a str,
}

impl Scanner<'_> {
    /// Pieces up to the end of the text (`depth` 0), or to `}` or (in a name) `:`, which are left.
    fn pieces(&mut self, depth: usize, is_name: bool) -> Result<Vec<Piece>, String> {
        let mut pieces = Vec::new();
        let mut text = String::new();
        loop {
            let mut characters = self.rest.chars();
            let Some(next) = characters.next() else { break };
            let second = characters.next();
            match (next, second) {
                ('}', _) if depth > 0 => break,
                (':', _) if is_name => break,
                ('$', Some('{')) => {
                    if !text.is_empty() {
                        pieces.push(Piece::Text(std::mem::take(&mut text)));
                    }
                    self.rest = &self.rest[2..];
                    pieces.push(Piece::Variable(self.variable(depth + 1)?));
                }
                ('$', Some(escaped @ ('$' | '}'))) => {
                    text.push(escaped);
                    self.rest = &self.rest[2..];
                }
                (other, _) => {
                    text.push(other);
                    self.rest = &self.rest[other.len_utf8()..];
                }
            }
        }
        if !text.is_empty() {
            pieces.push(Piece::Text(text));
        }
        Ok(pieces)
    }

    /// A variable whose `${` is behind us.
    fn variable(&mut self, depth: usize) -> Result<Variable, String> {
        if depth > DEPTH_MAX {
            return Err(format!("has variables nested more than {DEPTH_MAX} levels deep"));
        }
        let name = self.pieces(depth, true)?;
        if name.is_empty() {
            return Err("has a variable without a name".to_owned());
        }
        let mut operator = Operator::Plain;
        let mut rest = Vec::new();
        if let Some(after) = self.rest.strip_prefix(':') {
            (operator, self.rest) = match after.chars().next() {
                Some('+') => (Operator::Alternative, &after[1..]),
                Some('?') => (Operator::Message, &after[1..]),
                _ => (Operator::Default, after),
            };
            rest = self.pieces(depth, false)?;
        }
        let Some(after) = self.rest.strip_prefix('}') else {
            return Err("has a `${` without its `}`".to_owned());
        };
        self.rest = after;
        Ok(Variable { name, operator, rest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(pieces: &[Piece]) -> String {
        let show = |piece: &Piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Variable(variable) => {
                let (name, rest) = (shown(&variable.name), shown(&variable.rest));
                format!("<{name}|{:?}|{rest}>", variable.operator)
            }
        };
        pieces.iter().map(show).collect()
    }

    #[test]
    fn templates_split_into_pieces() {
        let table = [
            ("plain", "plain"),
            ("${a}", "<a|Plain|>"),
            ("x${a}y${b}", "x<a|Plain|>y<b|Plain|>"),
            ("${a:b}", "<a|Default|b>"),
            ("${a:}", "<a|Default|>"),
            ("${a:b:c:?d}", "<a|Default|b:c:?d>"),
            ("${a:?say so}", "<a|Message|say so>"),
            ("${a:+b}", "<a|Alternative|b>"),
            ("${a:${b:c}}", "<a|Default|<b|Default|c>>"),
            ("${${a}.b}", "<<a|Plain|>.b|Plain|>"),
            ("$${a}", "${a}"),
            ("a$", "a$"),
            ("^a$|b", "^a$|b"),
            ("$$", "$"),
            ("${a:{k: v$}}", "<a|Default|{k: v}>"),
            ("}", "}"),
            ("a: b", "a: b"),
        ];
        for (text, expected) in table {
            assert_eq!(shown(&parse(text).unwrap()), expected, "{text}");
        }
        for text in ["${", "${a", "${a:", "${}", "${:x}", &"${".repeat(1000)] {
            parse(text).unwrap_err();
        }
    }
}
