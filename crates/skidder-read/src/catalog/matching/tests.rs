//! Decisions from a table of facts: no file is read here.

use super::*;
use crate::catalog::places::Duplicate;
use crate::catalog::sources::{Identity, SourceFile};
use crate::fingerprint::Head;
use crate::scan::Found;
use crate::testing::settings;
use skidder_os::{FileKind, Metadata, Timestamp};
use std::cell::OnceCell;
use std::collections::HashMap;
use std::time::Duration;

/// Usual length of a fingerprint.
const USUAL: u32 = 1024;

/// Facts with one answer for all questions about the bytes of files.
struct Table {
    settings: FingerprintSettings,
    sources: Sources,
    places: Places,
    readers: HashMap<SourceId, ReaderLook>,
    now: Monotonic,
    is_reaction: bool,
    /// Whether files have the bytes before the cursor of any reader.
    fits: bool,
    /// What is shown instead of paths.
    shown: HashMap<&'static str, &'static str>,
    saved_print_len: Option<u32>,
}

impl Facts for Table {
    fn fingerprints(&self) -> &FingerprintSettings {
        &self.settings
    }

    fn sources(&self) -> &Sources {
        &self.sources
    }

    fn places(&self) -> &Places {
        &self.places
    }

    fn now(&self) -> Monotonic {
        self.now
    }

    fn is_reaction(&self) -> bool {
        self.is_reaction
    }

    fn reader(&self, id: SourceId) -> Option<ReaderLook> {
        self.readers.get(&id).cloned()
    }

    fn shown(&self, path: &Path) -> Option<Arc<Path>> {
        self.shown.get(path.to_str()?).map(|shown| Arc::from(Path::new(shown)))
    }

    fn print_of(&self, candidate: &Candidate, len: u32) -> Option<Fingerprint> {
        candidate.head.print_of_first(len)
    }

    fn print_like(&self, candidate: &Candidate, like: &Fingerprint) -> Option<Fingerprint> {
        let print = candidate.head.print_of_first(like.len)?;
        Some(Fingerprint { whole: like.whole, ..print })
    }

    fn plain_fits(&self, candidate: &Candidate, reader: &ReaderLook) -> bool {
        self.fits && candidate.found.metadata.size >= reader.offset
    }

    fn compressed_fits(&self, _: &Candidate, _: bool, _: u64, _: Option<Tail>) -> Option<bool> {
        Some(self.fits)
    }

    fn is_as_read(&self, _: &Source, _: &ReaderLook) -> bool {
        self.fits
    }

    fn saved_print_len(&self, _: &Candidate) -> Option<u32> {
        self.saved_print_len
    }
}

fn table() -> Matcher<Table> {
    let settings = settings();
    Matcher(Table {
        sources: Sources::new(Arc::default(), &settings),
        settings: settings.fingerprint,
        places: Places::default(),
        readers: HashMap::new(),
        now: Monotonic::default() + Duration::from_hours(1),
        is_reaction: false,
        fits: true,
        shown: HashMap::new(),
        saved_print_len: None,
    })
}

fn metadata(inode: u64, size: u64) -> Metadata {
    let (kind, modified) = (FileKind::Regular, Timestamp(0));
    Metadata { kind, size, modified, device: 1, inode, links: 1, mode: 0, uid: 0, gid: 0 }
}

/// The beginning of a log: at least as long as a fingerprint if `lines` says so.
fn text(name: &str, lines: usize) -> Vec<u8> {
    format!("a line of {name}, and some more\n").repeat(lines).into_bytes()
}

impl Matcher<Table> {
    /// Adds a source with this content, of which `offset` bytes were read.
    fn source(&mut self, path: &str, inode: u64, bytes: &[u8], offset: u64) -> SourceId {
        let id = self.0.sources.next_id();
        let head = &bytes[..bytes.len().min(USUAL as usize)];
        let path = Arc::from(Path::new(path));
        let metadata = metadata(inode, bytes.len() as u64);
        let file = SourceFile { path, metadata, compressed: false };
        let identity = Identity::new(Fingerprint::of(head), head, USUAL);
        let key = Arc::from(format!("key {}", id.0));
        self.0.sources.add(id, Source::new(identity, key, file, false));
        self.0.readers.insert(id, ReaderLook { offset, ..ReaderLook::default() });
        id
    }

    /// The same, for a source whose file is not in its place any more.
    fn displaced(&mut self, path: &str, inode: u64, bytes: &[u8], offset: u64) -> SourceId {
        let id = self.source(path, inode, bytes, offset);
        self.0.sources.displace(id);
        id
    }

    fn reader(&mut self, id: SourceId) -> &mut ReaderLook {
        self.0.readers.get_mut(&id).unwrap()
    }
}

fn file(path: &str, inode: u64, bytes: &[u8]) -> Candidate {
    let found = Found { path: path.into(), metadata: metadata(inode, bytes.len() as u64) };
    let bytes = bytes[..bytes.len().min(USUAL as usize)].to_vec();
    let head = Head { bytes, compressed: false, growing: false, print: OnceCell::new() };
    Candidate::new(found, Arc::from(Path::new(path)), head)
}

fn compressed(candidate: Candidate) -> Candidate {
    Candidate { head: Head { compressed: true, ..candidate.head }, ..candidate }
}

#[test]
fn a_file_with_the_inode_and_the_content_of_a_source_is_that_source() {
    let (mut matcher, log) = (table(), text("a", 100));
    let id = matcher.displaced("/l/a", 1, &log, 500);
    assert_eq!(matcher.in_place(&file("/l/a", 1, &log)), Some(Decision::Keep(id)));
    let touched = Candidate { touched: true, ..file("/l/a", 1, &log) };
    assert_eq!(matcher.in_place(&touched), Some(Decision::Restart(id)));
    let renamed = file("/l/a.1", 1, &log);
    assert_eq!(matcher.in_place(&renamed), None);
    assert_eq!(matcher.renamed(&renamed), Some(Decision::Keep(id)));
    // Other content, another inode, a compressed copy with its inode.
    assert_eq!(matcher.renamed(&file("/l/a", 1, &text("b", 100))), None);
    assert_eq!(matcher.renamed(&file("/l/a", 2, &log)), None);
    assert_eq!(matcher.renamed(&compressed(file("/l/a.gz", 1, &log))), None);
    matcher.0.fits = false;
    assert_eq!(matcher.renamed(&renamed), None, "other bytes before the cursor");
}

#[test]
fn a_copy_continues_a_source_that_lost_its_place_when_its_reader_has_finished() {
    let (mut matcher, log) = (table(), text("a", 100));
    let id = matcher.displaced("/l/a", 1, &log, 500);
    let copy = file("/l/a.1", 2, &log);
    assert_eq!(matcher.moved(&copy), Some(Decision::Continue(id)));
    assert_eq!(matcher.moved(&compressed(copy)), Some(Decision::Continue(id)));
    let copy = file("/l/a.1", 2, &log);
    matcher.reader(id).open = true;
    assert_eq!(matcher.moved(&copy), Some(Decision::Wait(id)), "not missed by a scan yet");
    let now = matcher.0.now;
    matcher.0.sources.set_missing(id, now);
    assert_eq!(matcher.moved(&copy), Some(Decision::Continue(id)), "it sleeps");
    matcher.reader(id).state = ReaderState::Reading;
    assert_eq!(matcher.moved(&copy), Some(Decision::Wait(id)));
    matcher.reader(id).open = false;
    matcher.0.fits = false;
    assert_eq!(matcher.moved(&copy), None);
}

#[test]
fn a_copy_is_compared_first_while_another_source_begins_with_the_same_bytes() {
    let (mut matcher, log) = (table(), text("a", 100));
    matcher.displaced("/l/a", 1, &log, 500);
    let other = matcher.source("/l/b", 3, &log, 500);
    let copy = file("/l/a.1", 2, &log);
    assert_eq!(matcher.moved(&copy), None);
    assert_eq!(matcher.last(&copy), LastDecision::Compare(vec![other]));
}

#[test]
fn a_compressed_copy_that_is_reported_before_the_plain_one_waits_for_the_scan() {
    let (mut matcher, log) = (table(), text("a", 100));
    let id = matcher.displaced("/l/a", 1, &log, 500);
    let path = Arc::from(Path::new("/l/a.1"));
    let duplicate = Content::Duplicate(Box::new(Duplicate::of(id)));
    matcher.0.places.put(path, &metadata(2, 9), duplicate, false);
    let copy = compressed(file("/l/a.1.gz", 4, &log));
    assert_eq!(matcher.moved(&copy), Some(Decision::Continue(id)));
    matcher.0.is_reaction = true;
    assert_eq!(matcher.moved(&copy), Some(Decision::Wait(id)));
}

#[test]
fn a_file_that_was_rewritten_replaces_the_source_that_had_its_name_or_its_inode() {
    let (mut matcher, log) = (table(), text("a", 100));
    let id = matcher.displaced("/l/a", 1, &log, 5000);
    for (path, inode, expected) in [
        ("/l/a", 1, Some(Decision::Replace(id))),
        ("/l/a", 2, Some(Decision::Replace(id))),
        ("/l/b", 1, Some(Decision::Replace(id))),
        ("/l/b", 2, None),
    ] {
        assert_eq!(matcher.rewritten(&file(path, inode, &log)), expected, "{path} {inode}");
    }
    matcher.0.sources.make_former(id, Arc::from("key.former.0"));
    assert_eq!(matcher.rewritten(&file("/l/a", 1, &log)), None, "it was rewritten before");
}

#[test]
fn another_name_of_a_file_is_held_back_and_its_own_is_kept() {
    let (mut matcher, log) = (table(), text("a", 100));
    let id = matcher.source("/l/a", 1, &log, 500);
    let last = |path: &str| matcher.last(&file(path, 1, &log));
    assert_eq!(last("/l/b"), LastDecision::Decided(Decision::Hold(id)));
    assert_eq!(last("/l/a"), LastDecision::Decided(Decision::Keep(id)));
    assert_eq!(matcher.moved(&file("/l/b", 1, &log)), None);
}

#[test]
fn a_file_that_begins_like_no_source_is_new_and_one_whose_source_is_gone_replaces_it() {
    let (mut matcher, log) = (table(), text("a", 100));
    let new = file("/l/b", 2, &log);
    assert_eq!(matcher.last(&new), LastDecision::Decided(Decision::New));
    assert_eq!(matcher.after_comparisons(&new), Decision::New);
    let id = matcher.displaced("/l/a", 1, &log, 5000);
    assert_eq!(matcher.last(&new), LastDecision::Decided(Decision::Replace(id)));
    assert_eq!(matcher.after_comparisons(&new), Decision::New, "its name and inode are others");
    let copy = file("/l/b", 2, &text("a", 200));
    assert_eq!(matcher.after_comparisons(&copy), Decision::Continue(id));
}

#[test]
fn a_short_beginning_proves_nothing_without_the_inode_the_name_or_a_comparison() {
    let (mut matcher, line) = (table(), text("a", 1));
    let id = matcher.displaced("/l/a", 1, &line, line.len() as u64);
    let plausible = |path: &str, inode| matcher.is_plausible(&file(path, inode, &line), id);
    assert!(plausible("/l/b", 1) && plausible("/l/a", 2) && plausible("/l/a.1", 2));
    assert!(!plausible("/l/b", 2));
    let compared = Candidate { duplicate_of: Some(id), ..file("/l/b", 2, &line) };
    assert!(matcher.is_plausible(&compared, id));
    assert!(!matcher.is_certain(id));
    // More was read than the fingerprint covers.
    matcher.reader(id).offset = line.len() as u64 + PROOF_BYTES;
    assert!(matcher.is_plausible(&file("/l/b", 2, &text("a", 20)), id));
}

#[test]
fn a_rotated_file_of_a_link_has_the_name_of_the_link() {
    let (mut matcher, line) = (table(), text("a", 1));
    let id = matcher.displaced("/l/link", 1, &line, line.len() as u64);
    let rotated = file("/pods/0.log.1", 2, &line);
    assert!(!matcher.is_plausible(&rotated, id));
    matcher.0.shown.insert("/pods/0.log.1", "/l/link");
    assert!(matcher.is_plausible(&rotated, id));
}

#[test]
fn a_former_source_is_found_in_a_copy_only_if_more_was_read_than_both_begin_with() {
    let (mut matcher, log) = (table(), text("a", 100));
    let id = matcher.displaced("/l/a", 1, &log, 500);
    matcher.0.sources.make_former(id, Arc::from("key.former.0"));
    matcher.0.sources.clear_inode(id);
    let copy = file("/l/a.1", 2, &log);
    assert_eq!(matcher.moved(&copy), None);
    matcher.reader(id).offset = u64::from(USUAL) + 1;
    assert_eq!(matcher.moved(&copy), Some(Decision::Continue(id)));
    assert_eq!(matcher.moved(&file("/l/a", 2, &log)), None, "this is what took its place");
}

#[test]
fn a_file_prefers_the_entry_of_the_registry_to_a_source_with_a_shorter_fingerprint() {
    let (mut matcher, line) = (table(), text("a", 1));
    let id = matcher.displaced("/l/a", 1, &line, 0);
    let grown = file("/l/b", 2, &text("a", 3));
    assert_eq!(matcher.sources_like(&grown), [id]);
    matcher.0.saved_print_len = Some(line.len() as u32 + 1);
    assert!(matcher.sources_like(&grown).is_empty());
}

#[test]
fn sources_like_a_file_come_with_the_longest_fingerprint_first_and_its_path_before_others() {
    let (mut matcher, log) = (table(), text("a", 100));
    let short = matcher.source("/l/c", 1, &log[..40], 0);
    let other = matcher.source("/l/b", 2, &log, 0);
    let own = matcher.source("/l/a", 3, &log, 0);
    matcher.source("/l/d", 4, &text("d", 100), 0);
    assert_eq!(matcher.sources_like(&file("/l/a", 9, &log)), [own, other, short]);
}

#[test]
fn by_name_the_size_and_the_bytes_before_the_cursor_decide() {
    let (mut matcher, log) = (table(), text("a", 100));
    let id = matcher.source("/l/a", 1, &log, 500);
    assert_eq!(matcher.named(&file("/l/b", 1, &log), id), Decision::Hold(id));
    matcher.0.sources.displace(id);
    assert_eq!(matcher.named(&file("/l/a", 1, &log), id), Decision::Keep(id));
    assert_eq!(matcher.named(&file("/l/a", 2, &log), id), Decision::Continue(id));
    assert_eq!(matcher.named(&file("/l/a", 1, &log[..100]), id), Decision::Restart(id));
    matcher.reader(id).open = true;
    assert_eq!(matcher.named(&file("/l/a", 2, &log), id), Decision::Wait(id));
    assert_eq!(matcher.named(&file("/l/a", 1, &log), id), Decision::Keep(id));
}

#[test]
fn a_source_that_differs_within_the_bytes_of_its_fingerprint_has_changed() {
    let (mut matcher, log) = (table(), text("a", 100));
    let id = matcher.source("/l/a", 1, &log, 2000);
    assert!(matcher.has_changed(id, 10) && matcher.has_changed(id, u64::from(USUAL) - 1));
    assert!(!matcher.has_changed(id, u64::from(USUAL)));
    matcher.reader(id).in_turn = true;
    assert!(!matcher.has_changed(id, 1999) && matcher.has_changed(id, 2000));
    matcher.reader(id).in_turn = false;
    matcher.0.fits = false;
    assert!(matcher.has_changed(id, 1500));
}
