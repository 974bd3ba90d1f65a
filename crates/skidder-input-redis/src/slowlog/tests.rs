//! The account of what is new in a slow log.

use super::*;

fn entry(id: i64, time: i64) -> Entry {
    Entry { id, time, ..Entry::default() }
}

fn run(run: &str, id: i64, time: i64) -> Run {
    Run { of: run.to_owned(), id, time }
}

fn new(known: Option<&Run>, log: &[(i64, i64)], length: i64) -> (Vec<i64>, u64) {
    let mut scan = Scan::default();
    // The newest is first in an answer.
    let all = log.iter().rev().map(|(id, time)| entry(*id, *time)).collect();
    scan.take_new(all, known, length);
    (scan.entries.iter().map(|entry| entry.id).collect(), scan.lost)
}

#[test]
fn what_is_behind_the_last_entry_of_the_run_is_new_and_gaps_are_counted() {
    let log = [(3, 10), (4, 10), (5, 12)];
    assert_eq!(new(None, &log, 3), (vec![3, 4, 5], 0));
    assert_eq!(new(None, &log, ENTRIES_MAX + 7), (vec![3, 4, 5], 7), "beyond what is read");
    assert_eq!(new(Some(&run("a", 3, 10)), &log, 3), (vec![4, 5], 0));
    assert_eq!(new(Some(&run("a", 2, 10)), &log, 3), (vec![3, 4, 5], 0));
    assert_eq!(new(Some(&run("a", 0, 10)), &log, 3), (vec![3, 4, 5], 2), "1 and 2 are gone");
    assert_eq!(new(Some(&run("a", 5, 12)), &log, 3), (vec![], 0));
}

#[test]
fn without_the_id_of_a_run_a_restart_is_known_by_numbers_and_times() {
    let log = [(0, 20), (1, 21), (2, 22)];
    let known = |id, time| run(UNKNOWN_RUN, id, time);
    assert_eq!(new(Some(&known(7, 15)), &log, 3), (vec![0, 1, 2], 0), "numbers begin anew");
    assert_eq!(new(Some(&known(1, 15)), &log, 3), (vec![0, 1, 2], 0), "all are later");
    assert_eq!(new(Some(&known(1, 21)), &log, 3), (vec![2], 0), "the same run");
    assert_eq!(new(Some(&known(2, 22)), &log, 3), (vec![], 0));
}

#[test]
fn a_cursor_keeps_the_runs_that_were_seen_last() {
    let mut runs = Runs::default();
    assert_eq!(Runs::parse(&runs.cursor()), Some(runs.clone()));
    for number in 0..10 {
        runs.set(run(&format!("r{number}"), number, number));
    }
    runs.set(run("r5", 50, 60));
    let parsed = Runs::parse(&runs.cursor()).expect("a cursor");
    assert_eq!(parsed, runs);
    assert_eq!(parsed.0.len(), RUNS_MAX);
    assert_eq!(
        (parsed.0[0].clone(), parsed.get("r9")),
        (run("r5", 50, 60), Some(&run("r9", 9, 9)))
    );
    assert_eq!(parsed.get("r1"), None);
    for wrong in ["x", "a 1", "a 1 2 3", "a x 2", "a 1 2,b"] {
        assert_eq!(Runs::parse(wrong), None, "{wrong}");
    }
}

#[test]
fn entries_of_old_and_new_servers_are_read() {
    let value = |text: &str| Reply::Value(text.as_bytes().to_vec());
    let numbers = [13, 1_309_448_128, 30].map(Reply::Number);
    let arguments = Reply::List(vec![value("get"), value("k")]);
    let old = [&numbers[..], std::slice::from_ref(&arguments)].concat();
    let new = [&old[..], &[value("1.2.3.4:5"), value("me")]].concat();
    let read = |items: &[Reply]| Entry::read(Reply::List(items.to_vec()));
    let mut expected = Entry {
        id: 13,
        time: 1_309_448_128,
        duration: 30,
        arguments: vec![b"get".to_vec(), b"k".to_vec()],
        ..Entry::default()
    };
    assert_eq!(read(&old), Some(expected.clone()));
    expected.client_address = b"1.2.3.4:5".to_vec();
    expected.client_name = b"me".to_vec();
    assert_eq!(read(&new), Some(expected));
    for length in 0..4 {
        assert_eq!(read(&old[..length]), None);
    }
    assert_eq!(Entry::read(Reply::Null), None);
    assert_eq!(read(&[&numbers[..], &[value("get")]].concat()), None);
}
