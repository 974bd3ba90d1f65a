//! Whatever changes in a source, it is found by what it has now.

use super::*;
use crate::FileIdentity;
use crate::testing::settings;
use skidder_os::{FileKind, Timestamp};

const LONG: [u8; 2000] = [b'x'; 2000];

fn file(path: &str, inode: u64, size: u64) -> SourceFile {
    let metadata = Metadata {
        kind: FileKind::Regular,
        size,
        modified: Timestamp(0),
        device: 1,
        inode,
        links: 1,
        mode: 0,
        uid: 0,
        gid: 0,
    };
    SourceFile { path: Arc::from(Path::new(path)), metadata, compressed: false }
}

fn identity(head: &[u8]) -> Identity {
    Identity::new(Fingerprint::of(head), head, settings().fingerprint.length)
}

/// Sources with one that begins with `head`, in `/a` with the inode 1.
fn with_one(head: &[u8]) -> (Sources, SourceId) {
    let mut sources = Sources::new(Arc::default(), &settings());
    let id = sources.next_id();
    assert!(sources.claim_key("key", id));
    let source = Source::new(identity(head), Arc::from("key"), file("/a", 1, 9), false);
    sources.add(id, source);
    (sources, id)
}

#[test]
fn a_source_is_found_by_its_inode_and_its_hash_until_it_is_removed() {
    let (mut sources, id) = with_one(b"head");
    let hash = Fingerprint::of(b"head").hash;
    assert_eq!(sources.index().with_inode((1, 1)), [id]);
    assert_eq!(sources.index().with_hash(&hash), [id]);
    let other = sources.next_id();
    assert!(!sources.claim_key("key", other));
    sources.remove(id).unwrap();
    assert!(sources.index().with_inode((1, 1)).is_empty());
    assert!(sources.index().with_hash(&hash).is_empty());
    assert!(sources.claim_key("key", other), "its key is free");
}

#[test]
fn a_source_that_has_grown_is_found_by_its_new_fingerprint_and_key() {
    let (mut sources, id) = with_one(b"head");
    sources.displace(id);
    let grown = (identity(&LONG[..1024]), Some(Arc::from("longer")));
    let relocation = sources.relocate(id, file("/a.1", 1, 1024), Some(grown)).unwrap();
    assert_eq!(relocation.from.as_deref(), Some(Path::new("/a")));
    assert!(!relocation.rewritten && relocation.changed && relocation.unpublished);
    assert!(sources.index().with_hash(&Fingerprint::of(b"head").hash).is_empty());
    assert_eq!(sources.index().with_hash(&Fingerprint::of(&LONG[..1024]).hash), [id]);
    assert!(!sources.is_displaced(id) && &*sources.get(id).unwrap().key == "longer");
    let other = sources.next_id();
    assert!(sources.claim_key("key", other), "the old key is free");
}

#[test]
fn a_source_that_did_not_change_needs_no_publishing_but_after_a_new_name() {
    let (mut sources, id) = with_one(b"head");
    let same = sources.relocate(id, file("/a", 1, 9), None).unwrap();
    assert!(same.from.is_none() && !same.changed && !same.unpublished);
    sources.rename(id, Arc::from(Path::new("/b")));
    assert!(sources.relocate(id, file("/b", 1, 9), None).unwrap().unpublished);
    assert!(!sources.relocate(id, file("/b", 1, 9), None).unwrap().unpublished);
}

#[test]
fn a_former_source_has_neither_its_key_nor_its_place() {
    let (mut sources, id) = with_one(b"head");
    sources.make_former(id, Arc::from("key.former.0"));
    sources.clear_inode(id);
    assert!(sources.is_displaced(id) && sources.has_displaced());
    assert!(sources.is_former_key("key.former.0") && !sources.is_former_key("key"));
    assert!(sources.index().with_inode((1, 1)).is_empty());
    assert_eq!(sources.index().with_inode((0, 0)), [id]);
    assert_eq!(sources.take_displaced(), [id]);
    assert!(sources.take_displaced().is_empty());
}

#[test]
fn a_source_is_missing_from_the_first_time_on_until_it_is_found() {
    let (mut sources, id) = with_one(b"head");
    let (first, later) =
        (Monotonic::default(), Monotonic::default() + std::time::Duration::from_secs(5));
    assert!(!sources.set_missing(id, first), "it has its place");
    sources.displace(id);
    assert!(sources.set_missing(id, first) && !sources.set_missing(id, later));
    assert_eq!(sources.get(id).unwrap().missing_since, Some(first));
    sources.extend_missing(id, later);
    assert_eq!(sources.get(id).unwrap().missing_since, Some(later));
    sources.relocate(id, file("/a", 1, 9), None).unwrap();
    assert_eq!(sources.get(id).unwrap().missing_since, None);
}

#[test]
fn only_sources_that_are_identified_by_name_are_found_by_key() {
    let mut by_name = settings();
    by_name.identity = FileIdentity::Native;
    for (settings, expected) in [(settings(), false), (by_name, true)] {
        let mut sources = Sources::new(Arc::default(), &settings);
        let id = sources.next_id();
        let source = Source::new(identity(b"head"), Arc::from("key"), file("/a", 1, 9), false);
        sources.add(id, source);
        assert_eq!(sources.with_key("key").is_some(), expected);
        let meta = sources.meta(sources.get(id).unwrap(), Arc::from(Path::new("/a")));
        assert_eq!(meta.fingerprint_len.is_none(), expected, "a short fingerprint is saved");
        sources.remove(id);
        assert_eq!(sources.with_key("key"), None);
    }
}
