//! Which paths a scan has seen, and what is remembered of them.

use super::*;
use std::io;
use std::path::PathBuf;

fn metadata(inode: u64, size: u64) -> Metadata {
    Metadata {
        kind: FileKind::Regular,
        size,
        modified: Timestamp(7),
        device: 1,
        inode,
        links: 1,
        mode: 0o600,
        uid: 0,
        gid: 0,
    }
}

/// Three paths with sources, as the last scan saw them; the next scan has begun.
fn three() -> Places {
    let mut places = Places::default();
    places.begin_scan();
    for (number, path) in ["/a/1", "/a/2", "/b/3"].iter().enumerate() {
        let content = Content::Source(SourceId(number as u64));
        places.put(Arc::from(Path::new(path)), &metadata(number as u64, 10), content, false);
    }
    places.begin_scan();
    places
}

fn paths(removed: Vec<(Arc<Path>, Place)>) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = removed.iter().map(|(path, _)| path.to_path_buf()).collect();
    paths.sort();
    paths
}

#[test]
fn only_another_inode_size_or_time_is_a_change() {
    let mut places = three();
    let path = Path::new("/a/2");
    assert!(places.is_unchanged(path, &metadata(1, 10)));
    for changed in [metadata(1, 11), metadata(2, 10)] {
        assert!(!places.is_unchanged(path, &changed) && places.has_changed(path, &changed));
    }
    assert!(!places.is_unchanged(Path::new("/a/4"), &metadata(4, 10)));
    let touched = Metadata { modified: Timestamp(8), ..metadata(1, 10) };
    let place = places.get(path).unwrap();
    assert!(place.is_touched(&touched) && !place.is_touched(&metadata(1, 10)));
    assert!(places.recheck(path) && !places.is_unchanged(path, &metadata(1, 10)));
    assert!(!places.recheck(Path::new("/a/4")));
}

#[test]
fn paths_that_a_scan_did_not_find_are_removed_unless_it_could_not_look() {
    let mut places = three();
    places.is_unchanged(Path::new("/a/1"), &metadata(0, 10));
    assert_eq!(paths(places.remove_vanished()), [PathBuf::from("/a/2"), PathBuf::from("/b/3")]);
    assert_eq!(places.len(), 1);

    let mut places = three();
    let problem = ScanProblem { path: "/b".into(), error: io::ErrorKind::PermissionDenied.into() };
    places.keep_unseen(&[problem]);
    places.keep(Path::new("/a/2"));
    assert_eq!(paths(places.remove_vanished()), [PathBuf::from("/a/1")]);

    let mut places = three();
    let gone = places.remove_unless(|path| path.starts_with("/a"));
    assert_eq!(paths(gone), [PathBuf::from("/b/3")]);
}

#[test]
fn duplicates_are_counted_and_rechecked_with_their_source() {
    let mut places = three();
    assert!(!places.may_have_duplicates());
    let (one, other) = (SourceId(0), SourceId(1));
    places.make_duplicate(Path::new("/b/3"), Duplicate::silent(one));
    let seen = metadata(9, 10);
    let duplicate = Content::Duplicate(Box::new(Duplicate::of(other)));
    places.put(Arc::from(Path::new("/b/4")), &seen, duplicate, false);
    assert_eq!((places.duplicates_max(), places.count_duplicates()), (2, (2, 0)));
    assert_eq!(places.get(Path::new("/b/4")).unwrap().duplicate_of(&seen), Some(other));
    // It has to be compared first.
    assert_eq!(places.get(Path::new("/b/3")).unwrap().duplicate_of(&metadata(2, 10)), None);
    places.recheck_duplicates_of(other);
    assert!(places.get(Path::new("/b/4")).unwrap().recheck);
    places.remove(Path::new("/b/3"));
    places.remove(Path::new("/b/4"));
    assert_eq!((places.count_duplicates(), places.may_have_duplicates()), ((0, 0), false));
}
