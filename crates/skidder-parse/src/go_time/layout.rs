//! A layout taken apart (`nextStdChunk` of Go's `src/time/format.go`).

/// A part of a layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// Text that stands for itself.
    Text(Box<[u8]>),
    /// `2006`
    LongYear,
    /// `06`
    Year,
    /// `January`
    LongMonth,
    /// `Jan`
    Month,
    /// `01`, or with one digit `1`
    NumericMonth { fixed: bool },
    /// `Monday`
    LongWeekDay,
    /// `Mon`
    WeekDay,
    /// `02`, `2` or `_2`
    Day { fixed: bool, padded: bool },
    /// `002` or `__2`
    DayOfYear { fixed: bool },
    /// `15`
    Hour,
    /// `03`, or with one digit `3`
    Hour12 { fixed: bool },
    /// `04`, or with one digit `4`
    Minute { fixed: bool },
    /// `05`, or with one digit `5`; `fraction`: the next thing that is read is a fraction
    Second { fixed: bool, fraction: bool },
    /// `.000`: exactly this many digits
    Fraction(usize),
    /// `.999`: any number of digits, or nothing
    AnyFraction,
    /// `PM`, or `pm` if `lower`
    HalfDay { lower: bool },
    /// `-07:00`, `-0700`, `-07`, `-070000`, `-07:00:00`, and with `Z` in front
    Offset { zulu: bool, colon: bool, parts: u8 },
    /// `MST`
    Abbreviation,
}

pub(super) fn compile(source: &str) -> Box<[Item]> {
    let mut items: Vec<Item> = Vec::new();
    let (mut text, mut at) = (0, 0);
    let bytes = source.as_bytes();
    while at < bytes.len() {
        let Some((len, item)) = element(bytes, at) else {
            at += 1;
            continue;
        };
        if text < at {
            items.push(Item::Text(bytes[text..at].into()));
        }
        if matches!(item, Item::Fraction(_) | Item::AnyFraction) {
            let last = items.iter_mut().rfind(|item| !matches!(item, Item::Text(_)));
            if let Some(Item::Second { fraction, .. }) = last {
                *fraction = true;
            }
        }
        items.push(item);
        at += len;
        text = at;
    }
    if text < bytes.len() {
        items.push(Item::Text(bytes[text..].into()));
    }
    items.into()
}

/// The element that begins at `at`, and its length.
fn element(layout: &[u8], at: usize) -> Option<(usize, Item)> {
    let rest = &layout[at..];
    let lower_at = |at: usize| rest.get(at).is_some_and(u8::is_ascii_lowercase);
    Some(match rest {
        [b'J', ..] if rest.starts_with(b"January") => (7, Item::LongMonth),
        [b'J', b'a', b'n', ..] if !lower_at(3) => (3, Item::Month),
        [b'M', ..] if rest.starts_with(b"Monday") => (6, Item::LongWeekDay),
        [b'M', b'o', b'n', ..] if !lower_at(3) => (3, Item::WeekDay),
        [b'M', b'S', b'T', ..] => (3, Item::Abbreviation),
        [b'0', b'1', ..] => (2, Item::NumericMonth { fixed: true }),
        [b'0', b'2', ..] => (2, Item::Day { fixed: true, padded: false }),
        [b'0', b'3', ..] => (2, Item::Hour12 { fixed: true }),
        [b'0', b'4', ..] => (2, Item::Minute { fixed: true }),
        [b'0', b'5', ..] => (2, Item::Second { fixed: true, fraction: false }),
        [b'0', b'6', ..] => (2, Item::Year),
        [b'0', b'0', b'2', ..] => (3, Item::DayOfYear { fixed: true }),
        [b'1', b'5', ..] => (2, Item::Hour),
        [b'1', ..] => (1, Item::NumericMonth { fixed: false }),
        [b'2', b'0', b'0', b'6', ..] => (4, Item::LongYear),
        [b'2', ..] => (1, Item::Day { fixed: false, padded: false }),
        // This is a `_` and a year.
        [b'_', b'2', b'0', b'0', b'6', ..] => return None,
        [b'_', b'2', ..] => (2, Item::Day { fixed: false, padded: true }),
        [b'_', b'_', b'2', ..] => (3, Item::DayOfYear { fixed: false }),
        [b'3', ..] => (1, Item::Hour12 { fixed: false }),
        [b'4', ..] => (1, Item::Minute { fixed: false }),
        [b'5', ..] => (1, Item::Second { fixed: false, fraction: false }),
        [b'P', b'M', ..] => (2, Item::HalfDay { lower: false }),
        [b'p', b'm', ..] => (2, Item::HalfDay { lower: true }),
        [b'-' | b'Z', ..] => return offset(rest),
        [b'.' | b',', ..] => return fraction(rest),
        _ => return None,
    })
}

fn offset(rest: &[u8]) -> Option<(usize, Item)> {
    let forms: [(&[u8], bool, u8); 5] = [
        (b"070000", false, 3),
        (b"07:00:00", true, 3),
        (b"0700", false, 2),
        (b"07:00", true, 2),
        (b"07", false, 1),
    ];
    let (form, colon, parts) = forms.into_iter().find(|(form, ..)| rest[1..].starts_with(form))?;
    Some((form.len() + 1, Item::Offset { zulu: rest[0] == b'Z', colon, parts }))
}

fn fraction(rest: &[u8]) -> Option<(usize, Item)> {
    let digit = *rest.get(1).filter(|byte| matches!(byte, b'0' | b'9'))?;
    let count = rest[1..].iter().take_while(|byte| **byte == digit).count();
    if rest.get(1 + count).is_some_and(u8::is_ascii_digit) {
        return None;
    }
    let item = if digit == b'0' { Item::Fraction(count) } else { Item::AnyFraction };
    Some((1 + count, item))
}
