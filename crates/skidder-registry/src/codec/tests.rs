//! Values as bytes and back.

use super::*;

fn file() -> FileEntry {
    FileEntry {
        cursor: Cursor {
            offset: 0x0123_4567_89ab_cdef,
            generation: 7,
            eof: true,
            tail: Some(Tail { len: 64, crc: 0xdead_beef }),
        },
        meta: Meta {
            source: Arc::from(Path::new(OsStr::from_bytes(b"/var/log/caf\xe9.log"))),
            identifier_name: "fingerprint".into(),
            fingerprint_len: Some(512),
            device: 1,
            inode: 2,
        },
        updated: Timestamp(-1),
        ttl: Some(Duration::new(3, 4)),
    }
}

fn entry() -> Entry {
    Entry::File(file())
}

fn source() -> Entry {
    Entry::Source(SourceEntry {
        cursor: SourceCursor { version: 3, text: "s=1;i=2".into() },
        about: SourceAbout { input: "journald".into(), name: "/run/log/journal".into() },
        updated: Timestamp(5),
    })
}

#[test]
fn every_field_comes_back_with_and_without_options() {
    let bare = FileEntry { cursor: Cursor::default(), meta: Meta::default(), ttl: None, ..file() };
    let empty = Entry::Source(SourceEntry {
        cursor: SourceCursor::default(),
        about: SourceAbout::default(),
        updated: Timestamp(0),
    });
    for entry in [entry(), Entry::File(bare), source(), empty] {
        assert_eq!(decode_entry("k", &encode_entry("k", &entry)), Ok(entry));
    }
    assert_eq!(decode_checkpoint("k", &encode_checkpoint("k", b"")), Ok(&b""[..]));
}

#[test]
fn every_flipped_bit_and_every_cut_is_noticed() {
    each_damage(&encode_entry("key", &entry()));
    each_damage(&encode_entry("key", &source()));
}

fn each_damage(good: &[u8]) {
    for bit in 0..good.len() * 8 {
        let mut bad = good.to_vec();
        bad[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(decode_entry("key", &bad), Err(DecodeError::Checksum));
    }
    for length in 0..good.len() {
        assert_eq!(decode_entry("key", &good[..length]), Err(DecodeError::Checksum));
    }
}

#[test]
fn a_value_belongs_to_its_key_alone() {
    assert_eq!(decode_entry("other", &encode_entry("key", &entry())), Err(DecodeError::Checksum));
    let checkpoint = encode_checkpoint("key", b"state");
    assert_eq!(decode_checkpoint("other", &checkpoint), Err(DecodeError::Checksum));
}

#[test]
fn newer_versions_are_named_and_nonsense_with_a_good_checksum_is_malformed() {
    assert_eq!(decode_entry("k", &seal("k", vec![3, 0, 0])), Err(DecodeError::Newer(3)));
    assert_eq!(decode_entry("k", &seal("k", vec![2, 0, 0])), Err(DecodeError::Malformed));
    assert_eq!(decode_entry("k", &seal("k", vec![0])), Err(DecodeError::Malformed));
    assert_eq!(decode_entry("k", &seal("k", vec![])), Err(DecodeError::Malformed));
    assert_eq!(decode_entry("k", &seal("k", vec![1, 0x80])), Err(DecodeError::Malformed));
    for entry in [entry(), source()] {
        let mut long = encode_entry("k", &entry);
        long.truncate(long.len() - CRC_BYTES);
        long.push(0);
        assert_eq!(decode_entry("k", &seal("k", long)), Err(DecodeError::Malformed));
    }
}

#[test]
fn version_1_which_knew_only_files_is_read() {
    let mut old = encode_file(&file());
    // It had no byte for the kind.
    old.drain(..2);
    old.insert(0, 1);
    assert_eq!(decode_entry("k", &seal("k", old)), Ok(entry()));
}
