//! Times by layouts. The results are those of Go's documentation and tests (`src/time/format_test.go`).

use super::*;
use proptest::prelude::*;
use skidder_event::{Precision, TimeText};

/// 2026-11-21T20:52:57Z.
const NOW: i64 = 1_795_294_377_000_000_000;

/// A zone; those with a name by their rules, as not every machine has a database of zones.
fn zone(name: &str) -> TimeZone {
    let rules = match name {
        "Europe/Berlin" => "CET-1CEST,M3.5.0,M10.5.0/3",
        "Europe/London" => "GMT0BST,M3.5.0/1,M10.5.0",
        "America/Los_Angeles" => "PST8PDT,M3.2.0,M11.1.0",
        offset => return crate::syslog::timezone(offset).unwrap(),
    };
    TimeZone::posix(rules).unwrap()
}

fn parse(layout: &str, text: &str, timezone: &str) -> Result<String, GoTimeError> {
    let time = Layout::new(layout).parse(text.as_bytes(), &zone(timezone), || NOW)?;
    let mut out = TimeText::new(Precision::Nanosecond);
    let text = std::str::from_utf8(out.format(time)).unwrap();
    Ok(text.trim_end_matches('Z').trim_end_matches('0').trim_end_matches('.').to_owned())
}

#[test]
fn the_layouts_of_go_are_read() {
    let cases = [
        ("Mon Jan _2 15:04:05 2006", "Thu Feb  4 21:00:57 2010", "2010-02-04T21:00:57"),
        ("Mon Jan _2 15:04:05 MST 2006", "Thu Feb  4 21:00:57 PST 2010", "2010-02-04T21:00:57"),
        ("Mon Jan 02 15:04:05 -0700 2006", "Thu Feb 04 21:00:57 -0800 2010", "2010-02-05T05:00:57"),
        ("02 Jan 06 15:04 MST", "04 Feb 10 21:00 UTC", "2010-02-04T21:00:00"),
        (
            "Monday, 02-Jan-06 15:04:05 MST",
            "Thursday, 04-Feb-10 21:00:57 GMT",
            "2010-02-04T21:00:57",
        ),
        ("Mon, 02 Jan 2006 15:04:05 MST", "Thu, 04 Feb 2010 21:00:57 GMT-8", "2010-02-05T05:00:57"),
        (
            "Mon, 02 Jan 2006 15:04:05 -0700",
            "Thu, 04 Feb 2010 21:00:57 -0800",
            "2010-02-05T05:00:57",
        ),
        ("2006-01-02T15:04:05Z07:00", "2010-02-04T21:00:57-08:00", "2010-02-05T05:00:57"),
        ("2006-01-02T15:04:05Z07:00", "2010-02-04T21:00:57Z", "2010-02-04T21:00:57"),
        (
            "2006-01-02T15:04:05.999999999Z07:00",
            "2010-02-04T21:00:57.0123456789-08:00",
            "2010-02-05T05:00:57.012345678",
        ),
        ("2006-01-02 15:04:05", "2010-02-04 21:00:57", "2010-02-04T21:00:57"),
        (
            "2006-01-02 15:04:05.000000000",
            "2010-02-04 21:00:57.012345678",
            "2010-02-04T21:00:57.012345678",
        ),
        ("2006-01-02 15:04:05.999999999", "2010-02-04 21:00:57", "2010-02-04T21:00:57"),
        ("2006-01-02 15:04:05,000", "2010-02-04 21:00:57,012", "2010-02-04T21:00:57.012"),
        ("2006-01-02 15:04:05,000", "2010-02-04 21:00:57.012", "2010-02-04T21:00:57.012"),
        ("2006-01-02 15:04:05", "2010-02-04 21:00:57,5", "2010-02-04T21:00:57.5"),
        ("2006-01-02 15:04:05.00 MST", "2010-02-04 21:00:57.01 UTC", "2010-02-04T21:00:57.01"),
        ("Jan _2 2006 15:04:05.000", "Feb  4 2010 21:00:57.012", "2010-02-04T21:00:57.012"),
        ("Jan _2 15:04:05 2006", "feb 04 21:00:57 2010", "2010-02-04T21:00:57"),
        ("January 2 2006", "FEBRUARY 4 2010", "2010-02-04T00:00:00"),
        ("Mon Jan 2 2006 (MST)", "Thu Feb 4 2010 (CEST)", "2010-02-04T00:00:00"),
        ("Mon Jan 2 2006 (MST)", "Mon Feb 4 2010 (WITA)", "2010-02-04T00:00:00"),
        ("2006-01-02 3:04:05PM", "2010-02-04 12:00:57AM", "2010-02-04T00:00:57"),
        ("2006-01-02 03:04pm", "2010-02-04 12:30pm", "2010-02-04T12:30:00"),
        ("2006-01-02 3PM", "2010-02-04 9PM", "2010-02-04T21:00:00"),
        ("2006 002 15", "2010 035 21", "2010-02-04T21:00:00"),
        ("2006 __2", "2010  35", "2010-02-04T00:00:00"),
        ("2006 __2", "2012 366", "2012-12-31T00:00:00"),
        ("2006-002", "2012-060", "2012-02-29T00:00:00"),
        ("2006-01-02-002", "2010-02-04-035", "2010-02-04T00:00:00"),
        ("_2006_01", "_2010_02", "2010-02-01T00:00:00"),
        ("06/1/2", "69/2/4", "1969-02-04T00:00:00"),
        ("06/1/2", "68/12/31", "2068-12-31T00:00:00"),
        ("2006-01-02T15:04:05-07", "2010-02-04T21:00:57+02", "2010-02-04T19:00:57"),
        ("2006-01-02T15:04:05Z0700", "2010-02-04T21:00:57+0530", "2010-02-04T15:30:57"),
        ("2006-01-02T15:04:05-07:00:00", "2010-02-04T21:00:57+01:00:30", "2010-02-04T20:00:27"),
        ("2006-01-02T15:04:05-070000", "2010-02-04T21:00:57-010030", "2010-02-04T22:01:27"),
        ("2006-01-02T15:04:05Z07", "2010-02-04T21:00:57Z", "2010-02-04T21:00:57"),
        ("02/Jan/2006:15:04:05 -0700", "21/Nov/2026:20:52:57 +0100", "2026-11-21T19:52:57"),
        ("2006-01-02  15:04", "2010-02-04 21:00", "2010-02-04T21:00:00"),
        ("2006-01-02 15:04", "2010-02-04    21:00", "2010-02-04T21:00:00"),
    ];
    for (layout, text, expected) in cases {
        let expected = expected.trim_end_matches('0').to_owned();
        let found = parse(layout, text, "UTC").map(|time| time.trim_end_matches('0').to_owned());
        assert_eq!(found, Ok(expected), "{layout}: {text}");
    }
}

#[test]
fn texts_that_are_no_times_say_where() {
    let mismatch = Problem::Mismatch;
    let cases = [
        ("Mon Jan _2 15:04:05 2006", "Thu Feb 4 21:00:57 @2010", 19, mismatch),
        ("Mon Jan _2 15:04:05 2006", "Thu Feb 4 21:00:57.xx 2010", 18, mismatch),
        ("2006-01-02 15:04:05", "2010-02-04 24:00:57", 11, Problem::Range("hour")),
        ("2006-01-02 15:04:05", "2010-02-04 21:60:57", 14, Problem::Range("minute")),
        ("2006-01-02 15:04:05", "2010-13-04 21:00:57", 5, Problem::Range("month")),
        ("2006-01-02", "2010-02-30", 10, Problem::Range("day")),
        ("2006-01-02", "2010-02-00", 10, Problem::Range("day")),
        ("2006-01-02", "2010-2-04", 5, mismatch),
        ("2006-01-02", "2010-02-04 ", 10, Problem::Extra),
        ("2006-01-02 15:04:05.000", "2010-02-04 21:00:57.01", 19, mismatch),
        ("2006-01-02 15:04:05.00", "2010-02-04 21:00:57.011", 22, Problem::Extra),
        ("2006 002", "2010 366", 8, Problem::Range("day-of-year")),
        ("2006 002", "2010 35", 5, mismatch),
        ("2006-01-02-002", "2010-03-04-035", 14, Problem::Range("month of the day-of-year")),
        ("2006-01-02-002", "2010-02-05-035", 14, Problem::Range("day of the day-of-year")),
        ("3PM", "13PM", 0, Problem::Range("hour")),
        ("3PM", "1pm", 1, mismatch),
        ("15:04 MST", "21:00 Pst", 6, mismatch),
        ("15:04 MST", "21:00 ABCD", 6, mismatch),
        ("15:04 -0700", "21:00 +2500", 6, Problem::Range("time zone offset hour")),
        ("15:04 -07:00", "21:00 +0100", 6, mismatch),
        ("15:04 Z07:00:00", "21:00 Z", 6, mismatch),
        ("2006-01-02", "1500-01-01", 10, Problem::Range("year")),
        ("2006", "", 0, mismatch),
    ];
    for (layout, text, offset, problem) in cases {
        assert_eq!(
            parse(layout, text, "UTC"),
            Err(GoTimeError { offset, problem }),
            "{layout}: {text}"
        );
    }
}

#[test]
fn a_time_without_a_zone_is_of_the_one_given_and_an_abbreviation_is_looked_up_there() {
    let layout = "2006-01-02 15:04:05 MST";
    let cases = [
        ("2006-01-02 15:04:05", "2026-07-01 12:00:00", "Europe/Berlin", "2026-07-01T10:00:00"),
        ("2006-01-02 15:04:05", "2026-01-01 12:00:00", "Europe/Berlin", "2026-01-01T11:00:00"),
        ("2006-01-02 15:04:05", "2026-07-01 12:00:00", "+0530", "2026-07-01T06:30:00"),
        // The hour that there is not, and the one that there is twice.
        ("2006-01-02 15:04:05", "2026-03-29 02:30:00", "Europe/Berlin", "2026-03-29T01:30:00"),
        ("2006-01-02 15:04:05", "2026-10-25 02:30:00", "Europe/Berlin", "2026-10-25T01:30:00"),
        ("2006-01-02 15:04:05", "2026-03-29 01:30:00", "Europe/London", "2026-03-29T01:30:00"),
        (layout, "2026-07-01 12:00:00 CEST", "Europe/Berlin", "2026-07-01T10:00:00"),
        (layout, "2026-07-01 12:00:00 CET", "Europe/Berlin", "2026-07-01T11:00:00"),
        (layout, "2026-07-01 12:00:00 PDT", "America/Los_Angeles", "2026-07-01T19:00:00"),
        (layout, "2026-07-01 12:00:00 PDT", "Europe/Berlin", "2026-07-01T12:00:00"),
        (layout, "2026-07-01 12:00:00 GMT+3", "Europe/Berlin", "2026-07-01T09:00:00"),
        (layout, "2026-07-01 12:00:00 UTC", "Europe/Berlin", "2026-07-01T12:00:00"),
        (layout, "2026-07-01 12:00:00 +03", "Europe/Berlin", "2026-07-01T12:00:00"),
    ];
    for (layout, text, timezone, expected) in cases {
        let found = parse(layout, text, timezone).map(|time| time.trim_end_matches('0').to_owned());
        assert_eq!(found, Ok(expected.trim_end_matches('0').to_owned()), "{text} in {timezone}");
    }
}

#[test]
fn a_time_without_a_year_is_of_this_year_where_it_is_from() {
    let new_year = 1_798_761_600_000_000_000 - 1_800_000_000_000;
    let at = |text: &str, layout: &str, timezone: &str, now: i64| {
        let time = Layout::new(layout).parse(text.as_bytes(), &zone(timezone), || now).unwrap();
        TimeText::new(Precision::Millisecond).format(time)[..16].to_vec()
    };
    let stamp = "Jan _2 15:04:05";
    assert_eq!(at("Nov 21 20:52:57", stamp, "UTC", NOW), b"2026-11-21T20:52");
    assert_eq!(at("Jul  1 12:00:00", stamp, "Europe/Berlin", NOW), b"2026-07-01T10:00");
    // Half an hour before the new year in London it has begun in Berlin.
    assert_eq!(at("Jan  1 00:30:00", stamp, "Europe/Berlin", new_year), b"2026-12-31T23:30");
    assert_eq!(
        at("Jan  1 00:30:00 +0100", "Jan _2 15:04:05 -0700", "UTC", new_year),
        b"2026-12-31T23:30"
    );
    assert_eq!(
        at("Jan  1 00:30:00 UTC", "Jan _2 15:04:05 MST", "Europe/Berlin", new_year),
        b"2026-01-01T00:30"
    );
    assert_eq!(at("Feb 29 12:00:00", stamp, "UTC", NOW), b"2026-03-01T12:00");
    assert_eq!(at("12:30", "15:04", "UTC", NOW), b"2026-01-01T12:30");
}

#[test]
fn a_layout_knows_whether_it_reads_anything() {
    assert!(Layout::new("hello").is_constant());
    assert!(!Layout::new("yyyy-01").is_constant());
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(time in any::<i64>()) {
        let mut text = TimeText::new(Precision::Nanosecond);
        let text = text.format(time);
        for layout in ["2006-01-02T15:04:05.999999999Z07:00", "2006-01-02T15:04:05Z07:00", "2006-1-2T15:4:5.000000000Z07"] {
            prop_assert_eq!(Layout::new(layout).parse(text, &TimeZone::UTC, || NOW), Ok(time));
        }
    }

    #[test]
    fn days_of_the_year_are_days(days in -100_000_i64..100_000) {
        let time = days * 86_400_000_000_000;
        let parts = skidder_event::DateParts::utc(time);
        let text = format!("{:04} {:3} {:02}", parts.year, parts.day_of_year, parts.month);
        prop_assert_eq!(Layout::new("2006 __2 01").parse(text.as_bytes(), &TimeZone::UTC, || NOW), Ok(time));
    }

    #[test]
    fn no_text_and_no_layout_make_it_panic(
        layout in "([0-9_.,:+ -]|Jan|January|Mon|Monday|MST|PM|pm|Z07:00|-07|é){0,12}",
        text in "([0-9_.,:+ -]|Jan|January|Mon|Monday|CEST|GMT|PM|pm|Z|é){0,12}",
    ) {
        let parsed = Layout::new(&layout).parse(text.as_bytes(), &zone("Europe/Berlin"), || NOW);
        prop_assert!(parsed.is_ok() || parsed.is_err_and(|error| error.offset <= text.len()));
    }
}
