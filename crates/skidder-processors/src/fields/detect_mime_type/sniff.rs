//! The kind of content by the rules of <https://mimesniff.spec.whatwg.org/>, in the order of Go's
//! `net/http`, which Filebeat uses.

/// Bytes that are inspected.
const SNIFF_BYTES_MAX: usize = 512;

const HTML: &str = "text/html; charset=utf-8";

/// Beginnings of HTML in capital letters; a blank or `>` must follow.
const TAGS: [&[u8]; 17] = [
    b"<!DOCTYPE HTML",
    b"<HTML",
    b"<HEAD",
    b"<SCRIPT",
    b"<IFRAME",
    b"<H1",
    b"<DIV",
    b"<FONT",
    b"<TABLE",
    b"<A",
    b"<STYLE",
    b"<TITLE",
    b"<B",
    b"<BODY",
    b"<BR",
    b"<P",
    b"<!--",
];

/// How a format begins: `?` in the mask is any byte, everything else is compared.
struct Signature {
    bytes: &'static [u8],
    any: &'static [bool],
    kind: &'static str,
}

const fn exact(bytes: &'static [u8], kind: &'static str) -> Signature {
    Signature { bytes, any: &[], kind }
}

/// Four bytes, four that do not matter, and more.
const fn riff(bytes: &'static [u8], kind: &'static str) -> Signature {
    Signature { bytes, any: &[false, false, false, false, true, true, true, true], kind }
}

const SIGNATURES: [Signature; 33] = [
    exact(b"%PDF-", "application/pdf"),
    exact(b"%!PS-Adobe-", "application/postscript"),
    Signature {
        bytes: b"\xfe\xff\0\0",
        any: &[false, false, true, true],
        kind: "text/plain; charset=utf-16be",
    },
    Signature {
        bytes: b"\xff\xfe\0\0",
        any: &[false, false, true, true],
        kind: "text/plain; charset=utf-16le",
    },
    Signature {
        bytes: b"\xef\xbb\xbf\0",
        any: &[false, false, false, true],
        kind: "text/plain; charset=utf-8",
    },
    exact(b"\0\0\x01\0", "image/x-icon"),
    exact(b"\0\0\x02\0", "image/x-icon"),
    exact(b"BM", "image/bmp"),
    exact(b"GIF87a", "image/gif"),
    exact(b"GIF89a", "image/gif"),
    riff(b"RIFF\0\0\0\0WEBPVP", "image/webp"),
    exact(b"\x89PNG\r\n\x1a\n", "image/png"),
    exact(b"\xff\xd8\xff", "image/jpeg"),
    riff(b"FORM\0\0\0\0AIFF", "audio/aiff"),
    exact(b"ID3", "audio/mpeg"),
    exact(b"OggS\0", "application/ogg"),
    exact(b"MThd\0\0\0\x06", "audio/midi"),
    riff(b"RIFF\0\0\0\0AVI ", "video/avi"),
    riff(b"RIFF\0\0\0\0WAVE", "audio/wave"),
    exact(b"\x1a\x45\xdf\xa3", "video/webm"),
    exact(b"\0\x01\0\0", "font/ttf"),
    exact(b"OTTO", "font/otf"),
    exact(b"ttcf", "font/collection"),
    exact(b"wOFF", "font/woff"),
    exact(b"wOF2", "font/woff2"),
    exact(b"\x1f\x8b\x08", "application/x-gzip"),
    exact(b"PK\x03\x04", "application/zip"),
    exact(b"Rar!\x1a\x07\0", "application/x-rar-compressed"),
    exact(b"Rar!\x1a\x07\x01\0", "application/x-rar-compressed"),
    exact(b"\0asm", "application/wasm"),
    exact(b"\0\0\0\x0cftypmp4", "video/mp4"),
    exact(b"\0\0\0\x14ftypmp4", "video/mp4"),
    exact(b"\0\0\0\x18ftypmp4", "video/mp4"),
];

impl Signature {
    fn matches(&self, content: &[u8]) -> bool {
        content.len() >= self.bytes.len()
            && self.bytes.iter().zip(content).enumerate().all(|(at, (wanted, byte))| {
                self.any.get(at).copied().unwrap_or(false) || wanted == byte
            })
    }
}

/// The kind of content, `text/plain; charset=utf-8` if there is no byte in it that texts have not; nothing
/// for other bytes.
pub(super) fn sniff(content: &[u8]) -> Option<&'static str> {
    let content = &content[..content.len().min(SNIFF_BYTES_MAX)];
    let is_blank = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\x0c' | b'\r' | b' ');
    let blanks = content.iter().take_while(|byte| is_blank(byte)).count();
    let text = &content[blanks..];
    if TAGS.iter().any(|tag| begins_with_tag(text, tag)) {
        return Some(HTML);
    }
    if text.starts_with(b"<?xml") {
        return Some("text/xml; charset=utf-8");
    }
    if let Some(signature) = SIGNATURES.iter().find(|signature| signature.matches(content)) {
        return Some(signature.kind);
    }
    let is_binary = |byte: &u8| matches!(byte, 0..=0x08 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f);
    (!text.iter().any(is_binary)).then_some("text/plain; charset=utf-8")
}

fn begins_with_tag(text: &[u8], tag: &[u8]) -> bool {
    text.len() > tag.len()
        && text[..tag.len()].eq_ignore_ascii_case(tag)
        && matches!(text[tag.len()], b' ' | b'>')
}
