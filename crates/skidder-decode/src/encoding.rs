//! Text encodings: from the bytes of a line to UTF-8, and from a character to the bytes that stand for it.
//!
//! The names are Filebeat's (`libbeat/reader/readfile/encoding`): its own list first, then the
//! labels of the WHATWG Encoding Standard. `encoding_rs` decodes what it knows; what it lacks is in
//! `tables`. Lines are decoded one by one, without their terminator, and each begins in the
//! encoding's first state: escape sequences of ISO-2022-JP and HZ-GB-2312 that are still open at
//! the end of a line, against their standards, end there.
//!
//! Promises: decoding never fails; what is no character becomes U+FFFD. `plain` changes nothing.

mod hz;
mod tables;

use encoding_rs as rs;
use tables::{Upper, Whole};

/// Bytes of a file that [`Encoding::of_file`] looks at.
pub const BOM_BYTES: usize = 2;

/// An encoding by its name, as configured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Encoding(Configured);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Configured {
    /// The same for every file.
    Fixed(Kind),
    /// UTF-16 in the byte order of each file's byte order mark; without one in this order.
    Utf16Bom(Option<Endian>),
}

impl Default for Configured {
    fn default() -> Self {
        Self::Fixed(Kind::Plain)
    }
}

/// The encoding of one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileEncoding {
    kind: Kind,
    bom_bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Endian {
    Big,
    Little,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    /// Whatever it is, it is left alone.
    #[default]
    Plain,
    Utf8,
    Utf16(Endian),
    /// ASCII, C1 controls, Latin-1: each byte is its code point.
    Latin1,
    Upper(&'static Upper),
    Whole(&'static Whole),
    HzGb2312,
    /// Anything else that is ASCII below 0x80, outside of escape sequences.
    Library(&'static rs::Encoding),
}

/// Why the encoding of a file is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BomError {
    /// The file is too short to decide: try again when it has grown.
    #[error("the file is too short for a byte order mark")]
    TooShort,
    /// The file does not begin as the encoding requires: it cannot be read with it.
    #[error("the file has no byte order mark, which `encoding: utf-16-bom` asks for")]
    Missing,
}

const LITTLE_BOM: [u8; BOM_BYTES] = [0xff, 0xfe];
const BIG_BOM: [u8; BOM_BYTES] = [0xfe, 0xff];
const REPLACEMENT: &str = "\u{fffd}";

/// Filebeat's names, those of its reference configuration, and what they mean.
const NAMES: &[(&str, Configured)] = &[
    ("plain", Configured::Fixed(Kind::Plain)),
    ("nop", Configured::Fixed(Kind::Plain)),
    ("utf-8", Configured::Fixed(Kind::Utf8)),
    ("utf8", Configured::Fixed(Kind::Utf8)),
    ("unicode-1-1-utf-8", Configured::Fixed(Kind::Utf8)),
    ("utf-16-bom", Configured::Utf16Bom(None)),
    ("utf-16be-bom", Configured::Utf16Bom(Some(Endian::Big))),
    ("utf-16le-bom", Configured::Utf16Bom(Some(Endian::Little))),
    ("utf-16be", Configured::Fixed(Kind::Utf16(Endian::Big))),
    ("utf-16le", Configured::Fixed(Kind::Utf16(Endian::Little))),
    ("big5", library(rs::BIG5)),
    ("gbk", library(rs::GBK)),
    ("gb18030", library(rs::GB18030)),
    ("hz-gb-2312", Configured::Fixed(Kind::HzGb2312)),
    ("euc-kr", library(rs::EUC_KR)),
    ("euc-jp", library(rs::EUC_JP)),
    ("iso-2022-jp", library(rs::ISO_2022_JP)),
    ("shift-jis", library(rs::SHIFT_JIS)),
    ("iso8859-1", Configured::Fixed(Kind::Latin1)),
    ("iso8859-2", library(rs::ISO_8859_2)),
    ("iso8859-3", library(rs::ISO_8859_3)),
    ("iso8859-4", library(rs::ISO_8859_4)),
    ("iso8859-5", library(rs::ISO_8859_5)),
    ("iso8859-6", library(rs::ISO_8859_6)),
    ("iso8859-6e", library(rs::ISO_8859_6)),
    ("iso8859-6i", library(rs::ISO_8859_6)),
    ("iso8859-7", library(rs::ISO_8859_7)),
    ("iso8859-8", library(rs::ISO_8859_8)),
    ("iso8859-8e", library(rs::ISO_8859_8)),
    ("iso8859-8i", library(rs::ISO_8859_8_I)),
    ("iso8859-9", upper(&tables::ISO_8859_9)),
    ("iso8859-10", library(rs::ISO_8859_10)),
    ("iso8859-13", library(rs::ISO_8859_13)),
    ("iso8859-14", library(rs::ISO_8859_14)),
    ("iso8859-15", library(rs::ISO_8859_15)),
    ("iso8859-16", library(rs::ISO_8859_16)),
    ("cp437", upper(&tables::CP437)),
    ("cp850", upper(&tables::CP850)),
    ("cp852", upper(&tables::CP852)),
    ("cp855", upper(&tables::CP855)),
    ("cp858", upper(&tables::CP858)),
    ("cp860", upper(&tables::CP860)),
    ("cp862", upper(&tables::CP862)),
    ("cp863", upper(&tables::CP863)),
    ("cp865", upper(&tables::CP865)),
    ("cp866", library(rs::IBM866)),
    ("ebcdic-037", whole(&tables::EBCDIC_037)),
    // Filebeat's name for code page 1140.
    ("ebcdic-1040", whole(&tables::EBCDIC_1140)),
    ("ebcdic-1047", whole(&tables::EBCDIC_1047)),
    ("koi8r", library(rs::KOI8_R)),
    ("koi8u", library(rs::KOI8_U)),
    ("macintosh", library(rs::MACINTOSH)),
    ("macintosh-cyrillic", library(rs::X_MAC_CYRILLIC)),
    ("windows1250", library(rs::WINDOWS_1250)),
    ("windows1251", library(rs::WINDOWS_1251)),
    ("windows1252", library(rs::WINDOWS_1252)),
    ("windows1253", library(rs::WINDOWS_1253)),
    ("windows1254", library(rs::WINDOWS_1254)),
    ("windows1255", library(rs::WINDOWS_1255)),
    ("windows1256", library(rs::WINDOWS_1256)),
    ("windows1257", library(rs::WINDOWS_1257)),
    ("windows1258", library(rs::WINDOWS_1258)),
    ("windows874", library(rs::WINDOWS_874)),
];

const fn library(encoding: &'static rs::Encoding) -> Configured {
    Configured::Fixed(Kind::Library(encoding))
}

const fn upper(table: &'static Upper) -> Configured {
    Configured::Fixed(Kind::Upper(table))
}

const fn whole(table: &'static Whole) -> Configured {
    Configured::Fixed(Kind::Whole(table))
}

impl Encoding {
    /// `plain`: bytes stay as they are. What an empty name means.
    pub const PLAIN: Self = Self(Configured::Fixed(Kind::Plain));

    /// The encoding of this name, whatever its case: Filebeat's names, then the labels of the
    /// WHATWG Encoding Standard (where `iso-8859-1` is windows-1252). Those that the standard only
    /// knows in order to decode nothing of them (`iso-2022-kr`) are not accepted.
    pub fn find(name: &str) -> Option<Self> {
        let name = name.trim();
        if name.is_empty() {
            return Some(Self::PLAIN);
        }
        if let Some((_, found)) = NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
            return Some(Self(*found));
        }
        let found = rs::Encoding::for_label_no_replacement(name.as_bytes())?;
        let kind = match found {
            found if found == rs::UTF_8 => Kind::Utf8,
            found if found == rs::UTF_16BE => Kind::Utf16(Endian::Big),
            found if found == rs::UTF_16LE => Kind::Utf16(Endian::Little),
            other => Kind::Library(other),
        };
        Some(Self(Configured::Fixed(kind)))
    }

    /// Filebeat's names, for messages; the labels that [`Encoding::find`] takes as well are not among them.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.iter().map(|(name, _)| *name)
    }

    /// Whether bytes stay as they are.
    pub fn is_plain(&self) -> bool {
        *self == Self::PLAIN
    }

    /// The encoding of every file, if it does not depend on how a file begins.
    pub fn fixed(&self) -> Option<FileEncoding> {
        match self.0 {
            Configured::Fixed(kind) => Some(FileEncoding { kind, bom_bytes: 0 }),
            Configured::Utf16Bom(_) => None,
        }
    }

    /// The encoding of a file that begins with `head`: its first [`BOM_BYTES`] decompressed bytes
    /// or more, fewer only if it has no more.
    pub fn of_file(&self, head: &[u8]) -> Result<FileEncoding, BomError> {
        let fallback = match self.0 {
            Configured::Fixed(kind) => return Ok(FileEncoding { kind, bom_bytes: 0 }),
            Configured::Utf16Bom(fallback) => fallback,
        };
        let bom = head.first_chunk::<BOM_BYTES>().ok_or(BomError::TooShort)?;
        let (endian, bom_bytes) = match (*bom, fallback) {
            (LITTLE_BOM, _) => (Endian::Little, BOM_BYTES),
            (BIG_BOM, _) => (Endian::Big, BOM_BYTES),
            (_, Some(endian)) => (endian, 0),
            (_, None) => return Err(BomError::Missing),
        };
        Ok(FileEncoding { kind: Kind::Utf16(endian), bom_bytes })
    }
}

impl FileEncoding {
    /// Bytes at the beginning of the file that are a byte order mark and no text: 0 or [`BOM_BYTES`].
    pub fn bom_bytes(&self) -> usize {
        self.bom_bytes
    }

    /// Whether bytes stay as they are, so that decoding can be left out.
    pub fn is_plain(&self) -> bool {
        self.kind == Kind::Plain
    }

    /// Bytes of a code unit: characters begin at multiples of it.
    pub fn unit_bytes(&self) -> usize {
        if matches!(self.kind, Kind::Utf16(_)) { 2 } else { 1 }
    }

    /// Whether a character may have four bytes of which some are ASCII digits: then a sequence of
    /// bytes is only a character if it stands where one begins.
    pub(crate) fn is_gb18030(&self) -> bool {
        self.kind == Kind::Library(rs::GB18030)
    }

    /// The bytes of a character; `None` if the encoding has no such character. In `plain` they are
    /// those of UTF-8.
    pub fn encode(&self, character: char) -> Option<Vec<u8>> {
        let mut utf8 = [0; 4];
        let text: &str = character.encode_utf8(&mut utf8);
        let code = u32::from(character);
        match self.kind {
            Kind::Plain | Kind::Utf8 => Some(text.as_bytes().to_vec()),
            Kind::Utf16(endian) => {
                let mut units = [0; 2];
                let units = character.encode_utf16(&mut units);
                Some(units.iter().flat_map(|&unit| endian.bytes(unit)).collect())
            }
            Kind::Latin1 => u8::try_from(code).ok().map(|byte| vec![byte]),
            Kind::Upper(_) | Kind::HzGb2312 if character.is_ascii() => Some(vec![code as u8]),
            Kind::HzGb2312 => None,
            Kind::Upper(table) => {
                let at = table.iter().position(|&unit| u32::from(unit) == code)?;
                Some(vec![0x80 + at as u8])
            }
            Kind::Whole(table) => {
                let at = table.iter().position(|&unit| u32::from(unit) == code)?;
                Some(vec![at as u8])
            }
            Kind::Library(encoding) => {
                let (bytes, _, unmappable) = encoding.encode(text);
                (!unmappable).then(|| bytes.into_owned())
            }
        }
    }

    /// Appends a line as UTF-8 to `out`: a whole one, without its terminator (and without the byte
    /// order mark, see [`FileEncoding::bom_bytes`]). What is no character becomes U+FFFD, except
    /// with `plain`.
    pub fn decode_line(&self, line: &[u8], out: &mut Vec<u8>) {
        match self.kind {
            Kind::Plain => out.extend_from_slice(line),
            Kind::Utf8 => replace_invalid(line, out),
            Kind::Utf16(Endian::Big) => decode(rs::UTF_16BE, line, out),
            Kind::Utf16(Endian::Little) => decode(rs::UTF_16LE, line, out),
            Kind::Latin1 => push_all(line, out, u16::from),
            Kind::Upper(table) => push_all(line, out, |byte| match byte.checked_sub(0x80) {
                Some(at) => table[usize::from(at)],
                None => u16::from(byte),
            }),
            Kind::Whole(table) => push_all(line, out, |byte| table[usize::from(byte)]),
            Kind::HzGb2312 => hz::decode(line, out),
            Kind::Library(encoding) => decode(encoding, line, out),
        }
    }
}

impl Endian {
    fn bytes(self, unit: u16) -> [u8; 2] {
        match self {
            Self::Big => unit.to_be_bytes(),
            Self::Little => unit.to_le_bytes(),
        }
    }
}

/// Each byte that belongs to no character becomes one U+FFFD, as in Go.
fn replace_invalid(line: &[u8], out: &mut Vec<u8>) {
    for chunk in line.utf8_chunks() {
        out.extend_from_slice(chunk.valid().as_bytes());
        for _ in chunk.invalid() {
            out.extend_from_slice(REPLACEMENT.as_bytes());
        }
    }
}

/// One character for each byte.
fn push_all(line: &[u8], out: &mut Vec<u8>, unit_of: impl Fn(u8) -> u16) {
    out.reserve(line.len());
    for &byte in line {
        let character = char::from_u32(u32::from(unit_of(byte))).unwrap_or('\u{fffd}');
        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    }
}

fn decode(encoding: &'static rs::Encoding, line: &[u8], out: &mut Vec<u8>) {
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let mut read = 0;
    loop {
        let rest = &line[read..];
        let room = decoder.max_utf8_buffer_length(rest.len()).unwrap_or(rest.len()).max(16);
        let start = out.len();
        out.resize(start + room, 0);
        let (result, taken, written, _) = decoder.decode_to_utf8(rest, &mut out[start..], true);
        out.truncate(start + written);
        read += taken;
        match result {
            rs::CoderResult::InputEmpty => return,
            rs::CoderResult::OutputFull => {}
        }
    }
}

#[cfg(test)]
mod tests;
