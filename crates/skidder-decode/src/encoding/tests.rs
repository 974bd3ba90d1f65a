//! Every name, every kind of encoding, and what is no character.

use super::*;

fn file_encoding(name: &str) -> FileEncoding {
    Encoding::find(name).unwrap().fixed().unwrap()
}

fn decoded(name: &str, line: &[u8]) -> String {
    let mut out = b"before ".to_vec();
    file_encoding(name).decode_line(line, &mut out);
    String::from_utf8(out).unwrap().strip_prefix("before ").unwrap().to_owned()
}

#[test]
fn every_name_of_filebeat_is_known_in_any_case() {
    for name in Encoding::names() {
        assert!(Encoding::find(name).is_some(), "{name}");
        assert_eq!(Encoding::find(&name.to_uppercase()), Encoding::find(name), "{name}");
    }
    assert_eq!(Encoding::names().count(), 63);
    assert_eq!(Encoding::find(""), Some(Encoding::PLAIN));
    assert!(Encoding::find("").unwrap().is_plain());
}

#[test]
fn labels_of_the_whatwg_standard_are_known_and_unknown_names_are_not() {
    assert_eq!(Encoding::find("utf-16"), Encoding::find("utf-16le"));
    assert_eq!(Encoding::find("iso-8859-1"), Encoding::find("windows1252"));
    assert_ne!(Encoding::find("iso8859-1"), Encoding::find("windows1252"));
    assert_eq!(Encoding::find("x-sjis"), Encoding::find("shift-jis"));
    for name in ["utf-7", "iso-2022-kr", "replacement", "iso8859-12", "ebcdic", "plain text"] {
        assert_eq!(Encoding::find(name), None, "{name}");
    }
}

#[test]
fn text_in_every_kind_of_encoding_becomes_utf_8() {
    let cases: &[(&str, &[u8], &str)] = &[
        ("utf-8", "zażółć".as_bytes(), "zażółć"),
        ("utf-16le", b"a\0\xac\x20", "a€"),
        ("utf-16be", b"\0a\x20\xac\xd8\x3d\xde\x00", "a€😀"),
        ("iso8859-1", b"caf\xe9 \x85", "café \u{85}"),
        ("windows1252", b"caf\xe9 \x85", "café …"),
        ("iso8859-9", b"\xfd\xfe\xd0\x9f", "ışĞ\u{9f}"),
        ("iso8859-15", b"\xa4", "€"),
        ("cp437", b"\x80\x81\xdb~", "Çü█~"),
        ("cp850", b"\xd5\x9b", "ıø"),
        ("cp858", b"\xd5", "€"),
        ("cp866", b"\x8f\xe0\xa8", "При"),
        ("koi8r", b"\xf0\xd2\xc9", "При"),
        ("macintosh", b"\x8e", "é"),
        ("ebcdic-037", b"\xc8\x85\x93\x93\x96\x6b\x40\xe6", "Hello, W"),
        ("ebcdic-1047", b"\xad\xbd\xbb", "[]¨"),
        ("ebcdic-1040", b"\x9f", "€"),
        ("gbk", b"\xc4\xe3\xba\xc3", "你好"),
        ("gb18030", b"\xc4\xe3\x81\x30\x81\x30", "你\u{80}"),
        ("hz-gb-2312", b"a ~{<:Ky2;~} b~~", "a 己所不 b~"),
        ("big5", b"\xa7\x41\xa6\x6e", "你好"),
        ("euc-kr", b"\xc7\xd1", "한"),
        ("euc-jp", b"\xc6\xfc\xcb\xdc", "日本"),
        ("shift-jis", b"\x93\xfa\x96\x7b\x5c", "日本\\"),
        ("iso-2022-jp", b"a\x1b$BF|K\\\x1b(Bb", "a日本b"),
    ];
    for (name, bytes, expected) in cases {
        assert_eq!(decoded(name, bytes), *expected, "{name}");
    }
}

#[test]
fn an_escape_sequence_left_open_ends_with_its_line() {
    assert_eq!(decoded("iso-2022-jp", b"a\x1b$BF|K\\"), "a日本");
    assert_eq!(decoded("iso-2022-jp", b"F|K\\"), "F|K\\");
    assert_eq!(decoded("hz-gb-2312", b"~{<:"), "己");
    assert_eq!(decoded("hz-gb-2312", b"<:~"), "<:");
}

#[test]
fn what_is_no_character_is_replaced_but_not_in_plain() {
    assert_eq!(decoded("utf-8", b"a\xe2\x82 b\xff"), "a\u{fffd}\u{fffd} b\u{fffd}");
    assert_eq!(decoded("utf-16le", b"a\0\x3d\xd8b\0x"), "a\u{fffd}b\u{fffd}");
    assert_eq!(decoded("hz-gb-2312", b"\x80~x~{\x01~}"), "\u{fffd}\u{fffd}x\u{fffd}");
    let mut out = Vec::new();
    FileEncoding::default().decode_line(b"\xff\xfe\0", &mut out);
    assert_eq!(out, b"\xff\xfe\0");
}

#[test]
fn a_byte_order_mark_decides_where_it_is_asked_for() {
    let required = Encoding::find("utf-16-bom").unwrap();
    assert_eq!(required.fixed(), None);
    assert_eq!(required.of_file(b"\xff"), Err(BomError::TooShort));
    assert_eq!(required.of_file(b"a\0"), Err(BomError::Missing));
    for (name, without) in [("utf-16be-bom", "utf-16be"), ("utf-16le-bom", "utf-16le")] {
        let optional = Encoding::find(name).unwrap();
        assert_eq!(optional.of_file(b""), Err(BomError::TooShort));
        assert_eq!(optional.of_file(b"a\0"), Ok(file_encoding(without)));
        for (head, decided) in [(b"\xff\xfea", "utf-16le"), (b"\xfe\xff\0", "utf-16be")] {
            let of_file = optional.of_file(head).unwrap();
            assert_eq!(of_file.bom_bytes(), 2);
            assert_eq!(of_file.kind, file_encoding(decided).kind);
        }
    }
    // With the other encodings it is a character like any other.
    assert_eq!(file_encoding("utf-16le").bom_bytes(), 0);
    assert_eq!(decoded("utf-16le", b"\xff\xfe"), "\u{feff}");
}

#[test]
fn every_character_that_can_be_encoded_decodes_to_itself() {
    let characters = "\0\t\n\x0b\x0c\r aZ~\u{85}é€ж█日你한\u{2028}\u{2029}";
    for name in Encoding::names() {
        let Some(encoding) = Encoding::find(name).unwrap().fixed() else { continue };
        for character in characters.chars() {
            let Some(bytes) = encoding.encode(character) else {
                assert!(!character.is_ascii(), "{name} cannot encode {character:?}");
                continue;
            };
            // An escape character of HZ stands for itself only when doubled, and terminators are none.
            if name == "hz-gb-2312" && character == '~' {
                continue;
            }
            let mut out = Vec::new();
            encoding.decode_line(&bytes, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), character.to_string(), "{name}");
        }
    }
}
