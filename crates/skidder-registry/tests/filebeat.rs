//! Filebeat's registry: golden stores written from the description of the format, and back again.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

use skidder_os::{RealFs, Timestamp};
use skidder_registry::filebeat::{
    FilebeatEntry, FilebeatRegistry, LoadError, Owner, WriteError, find, fingerprint_key, load,
    write,
};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn cases() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/filebeat");
    let mut cases: Vec<PathBuf> =
        std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    cases
}

fn rendered(registry: &FilebeatRegistry) -> String {
    let mut text = format!("newest {}\n", registry.newest);
    for entry in &registry.entries {
        let FilebeatEntry { key, owner, identity, stream, source, offset, eof, updated, ttl } =
            entry;
        writeln!(
            text,
            "{key}\n  {owner:?} {identity:?} {stream}\n  {} at {offset:?}",
            source.display()
        )
        .unwrap();
        writeln!(text, "  eof {eof}, updated {:?}, ttl {ttl}", updated.map(|time| time.0)).unwrap();
    }
    for problem in &registry.problems {
        writeln!(text, "problem: {problem}").unwrap();
    }
    text
}

#[test]
fn each_golden_store_reads_as_expected() {
    for case in cases() {
        let registry = load(&RealFs, &case).unwrap();
        let text = rendered(&registry);
        let expected = case.join("expected.txt");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&expected, &text).unwrap();
        }
        assert_eq!(text, std::fs::read_to_string(&expected).unwrap(), "{}", case.display());
    }
}

#[test]
fn each_golden_store_is_the_same_after_it_was_written_and_read() {
    for case in cases() {
        let registry = load(&RealFs, &case).unwrap();
        // Entries of inputs that read no files are not ours to write.
        let mut entries = registry.entries;
        entries.retain(|entry| entry.owner != Owner::Other);
        let directory = tempfile::tempdir().unwrap();
        let store = directory.path().join("registry/filebeat");
        write(&RealFs, &store, &entries, false).unwrap();
        let again = load(&RealFs, &find(&RealFs, directory.path()).unwrap()).unwrap();
        assert_eq!(again.problems, Vec::<String>::new());
        for entry in &mut entries {
            // What is not known is written as the beginning.
            entry.offset = entry.offset.or(Some(0));
            entry.updated = entry.updated.or(Some(Timestamp(0)));
        }
        assert_eq!(entries, again.entries, "{}", case.display());
    }
}

/// The key of the file `line one` as Filebeat 9.5 writes it: elastic/beats pull request 50566.
#[test]
fn the_key_of_a_short_file_is_the_one_that_filebeat_makes() {
    let expected = "ff3364a0ccaf15d5d5a9b0471ce71dc937e4bf71d8cc5cecb9f2adaf2d8bf97b";
    assert_eq!(fingerprint_key(b"line one\n"), expected);
}

#[test]
fn a_store_is_found_from_the_data_path_its_registry_or_itself() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path();
    assert!(find(&RealFs, data).is_err());
    // The data path has a `meta.json` of its own.
    std::fs::write(data.join("meta.json"), r#"{"uuid":"x","first_start":"y"}"#).unwrap();
    assert!(find(&RealFs, data).unwrap_err().to_string().starts_with("there is no registry"));
    let store = data.join("registry/filebeat");
    write(&RealFs, &store, &[], false).unwrap();
    for from in [data, &data.join("registry"), &store] {
        assert_eq!(find(&RealFs, from).unwrap(), store);
    }
}

#[test]
fn a_store_of_an_older_layout_is_refused_with_the_way_out() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("meta.json"), r#"{"version":"0"}"#).unwrap();
    std::fs::write(directory.path().join("data.json"), "[]").unwrap();
    let error = load(&RealFs, directory.path()).unwrap_err();
    assert!(matches!(&error, LoadError::Version { version, .. } if version == "0"), "{error}");
    assert!(error.to_string().contains("start Filebeat 7.17 once"), "{error}");
}

#[test]
fn a_store_that_is_there_is_replaced_only_when_asked_for_and_then_by_a_newer_checkpoint() {
    let directory = tempfile::tempdir().unwrap();
    let store = directory.path();
    for name in ["meta.json", "500.json", "log.json", "active.dat"] {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/filebeat/8.x-native");
        std::fs::copy(from.join(name), store.join(name)).unwrap();
    }
    let before = load(&RealFs, store).unwrap();
    let one = vec![before.entries[0].clone()];
    let refused = write(&RealFs, store, &one, false).unwrap_err();
    assert!(matches!(refused, WriteError::Exists { .. }), "{refused}");
    assert_eq!(load(&RealFs, store).unwrap(), before);
    write(&RealFs, store, &one, true).unwrap();
    let after = load(&RealFs, store).unwrap();
    assert_eq!((after.entries.len(), after.newest), (1, before.newest + 1));
    let mut names: Vec<_> = std::fs::read_dir(store)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["504.json", "active.dat", "log.json", "meta.json"]);
    assert_eq!(std::fs::read_to_string(store.join("log.json")).unwrap(), "");
}

#[test]
fn a_log_cut_at_every_byte_reads_up_to_the_cut_and_never_invents_anything() {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/filebeat/7.17-log");
    let log = std::fs::read(from.join("log.json")).unwrap();
    let whole = load(&RealFs, &from).unwrap();
    let directory = tempfile::tempdir().unwrap();
    for cut in (0..log.len()).step_by(3) {
        std::fs::write(directory.path().join("log.json"), &log[..cut]).unwrap();
        let part = load(&RealFs, directory.path()).unwrap();
        for entry in &part.entries {
            let known = whole.entries.iter().any(|known| known.key == entry.key);
            assert!(known || entry.key.contains("::16-"), "{entry:?}");
            assert!([Some(0), Some(5912), Some(3), Some(44), Some(7)].contains(&entry.offset));
        }
        assert!(part.newest <= whole.newest);
    }
}

#[test]
fn an_element_of_a_checkpoint_that_is_no_entry_costs_none_of_the_others() {
    let good =
        r#"{"_key":"filestream::a::native::7-8","cursor":{"offset":9},"meta":{"source":"/x"}}"#;
    let cases = [
        (format!("[{good},[]]"), "element 2 is no entry"),
        (format!("[null,{good}]"), "element 1 is no entry"),
        (format!("[\n{good},\n[],\n3\n]"), "2 elements are no entries, the first is element 2"),
        (format!("[{good},{{\"_key\":7}}]"), "has no key"),
        (format!("[{good},{{\"_key\""), "is damaged"),
        (format!("[{good} {good}]"), "is damaged"),
        (format!("[{{\"_key\": x}},\n{good}\n]"), "is damaged"),
        (good.to_owned(), "is damaged"),
        (format!("[{good}] and more"), "is damaged"),
    ];
    for (text, problem) in cases {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("meta.json"), r#"{"version":"1"}"#).unwrap();
        std::fs::write(directory.path().join("3.json"), &text).unwrap();
        let registry = load(&RealFs, directory.path()).unwrap();
        assert_eq!(registry.entries.len(), 1, "{text}: {registry:?}");
        assert_eq!(registry.entries[0].offset, Some(9), "{text}");
        assert!(registry.is_damaged, "{text}");
        assert!(registry.problems.iter().any(|found| found.contains(problem)), "{registry:?}");
    }
}

#[test]
fn a_store_is_damaged_unless_only_its_last_operation_is_cut_off() {
    for case in cases() {
        let registry = load(&RealFs, &case).unwrap();
        let name = case.file_name().unwrap().to_str().unwrap();
        let is_damaged = name.starts_with("damaged-") || name == "missing-checkpoint";
        assert_eq!(registry.is_damaged, is_damaged, "{name}: {:?}", registry.problems);
    }
}
