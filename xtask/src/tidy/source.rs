//! As much of Rust's syntax as counting lines needs: comments, strings, braces, functions, tests.

/// A function and its length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) lines: usize,
}

/// Files that hold nothing but tests, benchmarks and examples.
pub(super) fn is_test_file(path: &str) -> bool {
    path.ends_with("/tests.rs")
        || ["tests", "benches", "examples", "fuzz"]
            .iter()
            .any(|folder| path.split('/').rev().skip(1).any(|part| part == *folder))
}

/// The same text with comments and the insides of strings and characters as spaces. Newlines stay.
pub(super) fn blank_comments_and_strings(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = match bytes[at] {
            b'/' if bytes[at..].starts_with(b"//") => line_end(bytes, at),
            b'/' if bytes[at..].starts_with(b"/*") => comment_end(bytes, at),
            b'"' => string_end(bytes, at),
            b'r' if !in_word(bytes, at) => raw_string_end(bytes, at).unwrap_or(at),
            b'\'' => character_end(bytes, at).unwrap_or(at),
            _ => at,
        };
        if end == at {
            at += 1;
            continue;
        }
        for byte in &mut out[at..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = end;
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Whether the byte at `at` continues a name; the `b` of a byte string does not count.
fn in_word(bytes: &[u8], at: usize) -> bool {
    let before = bytes[..at].last().copied();
    match before {
        Some(b'b') => in_word(bytes, at - 1),
        Some(byte) => byte.is_ascii_alphanumeric() || byte == b'_',
        None => false,
    }
}

fn line_end(bytes: &[u8], start: usize) -> usize {
    bytes[start..].iter().position(|&byte| byte == b'\n').map_or(bytes.len(), |at| start + at)
}

/// Block comments nest.
fn comment_end(bytes: &[u8], start: usize) -> usize {
    let mut depth = 0;
    let mut at = start;
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    bytes.len()
}

fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// `r"..."`, `r#"..."#`; `None` when it is a name like `r#type` or just an `r`.
fn raw_string_end(bytes: &[u8], start: usize) -> Option<usize> {
    let hashes = bytes[start + 1..].iter().take_while(|&&byte| byte == b'#').count();
    let open = start + 1 + hashes;
    if bytes.get(open) != Some(&b'"') {
        return None;
    }
    let mut close = vec![b'"'];
    close.resize(hashes + 1, b'#');
    let length = bytes[open + 1..].windows(close.len()).position(|window| window == close);
    Some(length.map_or(bytes.len(), |length| open + 1 + length + close.len()))
}

/// `'x'` or `'\n'`; `None` for a lifetime.
fn character_end(bytes: &[u8], start: usize) -> Option<usize> {
    if bytes.get(start + 1) == Some(&b'\\') {
        // The escaped character itself may be a quote.
        let rest = bytes.get(start + 3..)?;
        return rest.iter().position(|&byte| byte == b'\'').map(|at| start + 3 + at + 1);
    }
    let text = std::str::from_utf8(bytes.get(start + 1..(start + 6).min(bytes.len()))?);
    let valid = match &text {
        Ok(text) => text,
        Err(error) => {
            std::str::from_utf8(&bytes[start + 1..start + 1 + error.valid_up_to()]).ok()?
        }
    };
    let first = valid.chars().next()?.len_utf8();
    (bytes.get(start + 1 + first) == Some(&b'\'')).then_some(start + first + 2)
}

/// The part before the tests at the end of a file. `code` is blanked.
pub(super) fn without_tests(code: &str) -> &str {
    let mut at = 0;
    let mut lines = code.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        let tests = line.trim() == "#[cfg(test)]"
            && lines.peek().is_some_and(|next| {
                let next = next.trim();
                next.starts_with("mod tests") && next.ends_with('{')
            });
        if tests {
            return &code[..at];
        }
        at += line.len();
    }
    code
}

/// All functions with a body, also nested ones and methods. `code` is blanked.
pub(super) fn functions(code: &str) -> Vec<Function> {
    let bytes = code.as_bytes();
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        if in_word(bytes, at) || at > 0 && bytes[at - 1] == b'b' {
            continue;
        }
        let name: String = code[at + 3..]
            .chars()
            .take_while(|character| character.is_alphanumeric() || *character == '_')
            .collect();
        if name.is_empty() {
            continue;
        }
        if let Some(end) = body_end(bytes, at) {
            let lines = code[at..end].matches('\n').count() + 1;
            found.push(Function { name, lines });
        }
    }
    found
}

/// Just behind the brace that closes the body; `None` for a declaration. A `;` inside the brackets of
/// an array type in the signature ends nothing.
fn body_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut braces = 0_usize;
    let mut brackets = 0_usize;
    for (index, byte) in bytes.iter().enumerate().skip(start) {
        match byte {
            b'[' | b'(' => brackets += 1,
            b']' | b')' => brackets = brackets.saturating_sub(1),
            b';' if braces == 0 && brackets == 0 => return None,
            b'{' => braces += 1,
            b'}' => {
                braces = braces.saturating_sub(1);
                if braces == 0 {
                    return Some(index + 1);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_strings_and_characters_are_blanked_and_lifetimes_stay() {
        for (text, expected) in [
            ("a // b\nc", "a     \nc"),
            ("a /* { /* } */ */ b", "a                 b"),
            ("x(\"{\\\"\", '{')", "x(     ,    )"),
            ("x('\\'', '\\u{7b}')", "x(    ,         )"),
            ("r#\"}\"# r#type", "       r#type"),
            ("br\"}\" for\"\"", "b     for  "),
            ("&'a str, 'é'", "&'a str,     "),
        ] {
            assert_eq!(blank_comments_and_strings(text), expected, "{text}");
        }
    }

    #[test]
    fn functions_have_their_lines_and_declarations_have_none() {
        let code =
            "trait T { fn a(&self);\n fn b(x: [u8; 3]) -> u8 {\n if x {\n }\n }\n}\nfn c() {}\n";
        let found: Vec<_> =
            functions(code).into_iter().map(|function| (function.name, function.lines)).collect();
        assert_eq!(found, [("b".to_owned(), 4), ("c".to_owned(), 1)]);
    }

    #[test]
    fn tests_at_the_end_do_not_count() {
        let code = "fn a() {}\n#[cfg(test)]\nmod tests {\n fn b() {}\n}\n";
        assert_eq!(without_tests(code), "fn a() {}\n");
        let outside = "fn a() {}\n#[cfg(test)]\nmod tests;\n";
        assert_eq!(without_tests(outside), outside);
    }

    #[test]
    fn files_of_tests_are_known_by_their_place() {
        assert!(is_test_file("crates/x/tests/a.rs"));
        assert!(is_test_file("crates/x/src/read/tests.rs"));
        assert!(!is_test_file("crates/x/src/tests_of_disks.rs"));
    }
}
