//! Columns of text for people.

use crate::plain::plain;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::IsTerminal as _;

/// A table: columns as wide as they must be, the last one as it is. Each row is a line, whatever is in its cells.
pub(crate) fn table<const N: usize>(head: [&str; N], rows: &[[String; N]]) -> String {
    let mut widths = head.map(str::len);
    let rows: Vec<[Cow<'_, str>; N]> =
        rows.iter().map(|row| row.each_ref().map(|cell| plain(cell))).collect();
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    let head = head.map(plain);
    line(&mut text, &head.each_ref().map(|cell| &**cell), &widths);
    for row in &rows {
        line(&mut text, &row.each_ref().map(|cell| &**cell), &widths);
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

/// Characters of a path in a table: on a terminal what leaves room for the rest, else all.
pub(crate) fn path_width() -> usize {
    let columns = std::io::stdout()
        .is_terminal()
        .then(|| rustix::termios::tcgetwinsize(std::io::stdout()).ok());
    let columns = columns.flatten().map_or(usize::MAX, |size| usize::from(size.ws_col));
    columns.saturating_sub(90).max(40)
}

/// A path without its beginning, if it is too long: files differ at the end.
pub(crate) fn shortened(path: &str, width: usize) -> String {
    let length = path.chars().count();
    if length <= width {
        return path.to_owned();
    }
    let end: String = path.chars().skip(length - width + 1).collect();
    format!("…{end}")
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

    #[test]
    fn a_long_path_keeps_its_end() {
        assert_eq!(shortened("/var/log/a.log", 14), "/var/log/a.log");
        assert_eq!(shortened("/var/log/ä.log", 6), "…ä.log");
    }
}
