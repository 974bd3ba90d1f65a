//! Entries of a stream, as the server answers with them.

use skidder_redis::Reply;

/// Milliseconds of 2000-01-01: ids that are lower are no times.
const FIRST_TIME: i64 = 946_684_800_000;
/// Milliseconds of 2200-01-01.
const LAST_TIME: i64 = 7_258_118_400_000;

const MILLISECOND: i64 = 1_000_000;

/// Milliseconds, and a counter within them.
pub(crate) type Number = (u64, u64);

/// The numbers of an id.
pub(crate) fn number(id: &str) -> Option<Number> {
    let (time, counter) = id.split_once('-')?;
    Some((time.parse().ok()?, counter.parse().ok()?))
}

/// Whether an id is a time, as the server makes them.
pub(crate) fn is_time(number: Number) -> bool {
    milliseconds(number).is_some()
}

/// Milliseconds since 1970, if they can be meant by an id.
fn milliseconds(number: Number) -> Option<i64> {
    i64::try_from(number.0).ok().filter(|time| (FIRST_TIME..=LAST_TIME).contains(time))
}

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) id: String,
    /// The two numbers of the id.
    pub(crate) number: Number,
    /// Its fields in their order; `None`: it was deleted.
    pub(crate) fields: Option<Vec<(Vec<u8>, Vec<u8>)>>,
}

impl Entry {
    /// The time of an id that the server made, in nanoseconds since 1970; else `now`.
    pub(crate) fn time(&self, now: i64) -> i64 {
        milliseconds(self.number).map_or(now, |time| time * MILLISECOND)
    }
}

fn text(reply: Reply) -> Option<Vec<u8>> {
    match reply {
        Reply::Value(text) => Some(text),
        _ => None,
    }
}

/// A list of entries. `None`: it is none.
pub(crate) fn entries(reply: Reply) -> Option<Vec<Entry>> {
    let Reply::List(items) = reply else { return None };
    // Servers before Redis 7 have nothing in place of an entry that was deleted.
    items.into_iter().filter(|item| *item != Reply::Null).map(entry).collect()
}

fn entry(reply: Reply) -> Option<Entry> {
    let Reply::List(items) = reply else { return None };
    let mut items = items.into_iter();
    let id = String::from_utf8(text(items.next()?)?).ok()?;
    let fields = match items.next()? {
        Reply::Null => None,
        Reply::List(values) => {
            let mut fields = Vec::with_capacity(values.len() / 2);
            let mut values = values.into_iter();
            while let Some(name) = values.next() {
                fields.push((text(name)?, text(values.next()?)?));
            }
            Some(fields)
        }
        _ => return None,
    };
    let number = number(&id)?;
    Some(Entry { id, number, fields })
}

/// The entries of an answer to `XREADGROUP` with one stream.
pub(crate) fn entries_of_group(reply: Reply) -> Option<Vec<Entry>> {
    match reply {
        Reply::Null => Some(Vec::new()),
        Reply::List(streams) => {
            let Some(Reply::List(stream)) = streams.into_iter().next() else { return None };
            entries(stream.into_iter().nth(1)?)
        }
        _ => None,
    }
}

/// The answer to `XAUTOCLAIM`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Claimed {
    /// Where to go on; `0-0`: this was all.
    pub(crate) next: String,
    pub(crate) entries: Vec<Entry>,
    /// So many were deleted, and are forgotten by the group.
    pub(crate) deleted: usize,
}

/// Reads the answer to `XAUTOCLAIM`.
pub(crate) fn claimed(reply: Reply) -> Option<Claimed> {
    let Reply::List(items) = reply else { return None };
    let mut items = items.into_iter();
    let next = String::from_utf8(text(items.next()?)?).ok()?;
    let entries = entries(items.next()?)?;
    let deleted = match items.next() {
        Some(Reply::List(deleted)) => deleted.len(),
        _ => 0,
    };
    Some(Claimed { next, entries, deleted })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Reply {
        Reply::Value(text.as_bytes().to_vec())
    }

    fn answer() -> Reply {
        Reply::List(vec![
            Reply::List(vec![
                value("1-0"),
                Reply::List(vec![value("a"), value("b"), value("a"), value("c")]),
            ]),
            Reply::List(vec![value("2-0"), Reply::Null]),
            Reply::Null,
        ])
    }

    #[test]
    fn entries_are_read_with_their_fields_in_order() {
        let expected = [
            Entry {
                id: "1-0".to_owned(),
                number: (1, 0),
                fields: Some(vec![(b"a".to_vec(), b"b".to_vec()), (b"a".to_vec(), b"c".to_vec())]),
            },
            Entry { id: "2-0".to_owned(), number: (2, 0), fields: None },
        ];
        assert_eq!(entries(answer()).expect("entries"), expected);
        let stream = Reply::List(vec![Reply::List(vec![value("key"), answer()])]);
        assert_eq!(entries_of_group(stream).expect("entries"), expected);
        assert_eq!(entries_of_group(Reply::Null), Some(Vec::new()));
        let deleted = Reply::List(vec![value("3-0")]);
        let found = claimed(Reply::List(vec![value("0-0"), answer(), deleted])).expect("entries");
        assert_eq!((&*found.next, found.entries.len(), found.deleted), ("0-0", 2, 1));
        // Before Redis 7.
        let found = claimed(Reply::List(vec![value("5-0"), answer()])).expect("entries");
        assert_eq!((&*found.next, found.entries.len(), found.deleted), ("5-0", 2, 0));
    }

    #[test]
    fn what_is_no_answer_is_none() {
        let odd = Reply::List(vec![Reply::List(vec![value("1-0"), Reply::List(vec![value("a")])])]);
        let unnumbered = Reply::List(vec![Reply::List(vec![value("1-x"), Reply::Null])]);
        for wrong in [Reply::Number(1), value("x"), odd, unnumbered, Reply::List(vec![value("x")])]
        {
            assert_eq!(entries(wrong.clone()), None, "{wrong:?}");
            assert_eq!(claimed(wrong.clone()), None, "{wrong:?}");
            assert_eq!(entries_of_group(wrong.clone()), None, "{wrong:?}");
        }
        assert_eq!(entries_of_group(Reply::List(Vec::new())), None);
    }

    #[test]
    fn the_time_is_that_of_the_id_if_the_server_made_it() {
        let time = |id: &str| {
            let number = number(id).expect("two numbers");
            Entry { id: id.to_owned(), number, fields: None }.time(7)
        };
        assert_eq!(time("1700000000123-4"), 1_700_000_000_123_000_000);
        for id in ["1-0", "0-5", "99999999999999-0", "18446744073709551615-18446744073709551615"] {
            assert_eq!(time(id), 7, "{id}");
        }
    }
}
