//! Columns of text for people.

use std::fmt::Write as _;

/// A table: columns as wide as they must be, the last one as it is.
pub(crate) fn table<const N: usize>(head: [&str; N], rows: &[[String; N]]) -> String {
    let mut widths = head.map(str::len);
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    line(&mut text, &head, &widths);
    for row in rows {
        line(&mut text, &row.each_ref().map(String::as_str), &widths);
    }
    text
}

fn line<const N: usize>(text: &mut String, cells: &[&str; N], widths: &[usize; N]) {
    for (at, (cell, width)) in cells.iter().zip(widths).enumerate() {
        let (cell, width) = (*cell, if at + 1 == N { 0 } else { *width });
        write!(text, "{cell:width$}").expect("writing to a string cannot fail");
        text.push_str(if at + 1 == N { "\n" } else { "  " });
    }
}

/// The beginning of a long hash; anything else as it is.
pub(crate) fn short(value: &str) -> String {
    let is_hash = value.len() >= 64 && value.as_bytes()[..64].iter().all(u8::is_ascii_hexdigit);
    if is_hash { format!("{}…{}", &value[..12], &value[64..]) } else { value.to_owned() }
}

/// Nothing is shown as a dash.
pub(crate) fn or_dash<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_they_must_be_and_hashes_are_short() {
        let rows = [["a".to_owned(), "12345".to_owned()], ["längste".to_owned(), String::new()]];
        assert_eq!(table(["NAME", "X"], &rows), "NAME     X\na        12345\nlängste  \n");
        assert_eq!(short(&format!("{}-stdout", "ab".repeat(32))), "abababababab…-stdout");
        assert_eq!(short("1041043-66305"), "1041043-66305");
    }
}
