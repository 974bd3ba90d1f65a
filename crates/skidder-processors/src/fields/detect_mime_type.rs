//! `detect_mime_type`: the kind of content of a field, by its first bytes.
//!
//! As in Filebeat: first the signatures of binary formats, then the rules by which browsers sniff
//! (`sniff.rs`), and a text that is JSON or XML as a whole is distinguished from other texts.

mod sniff;

use crate::fields::pairs::required_path;
use crate::plan::{Constants, Failure, Footprint, Outcome, Processor, rehearse};
use quick_xml::Reader;
use quick_xml::events::Event;
use skidder_config::{Group, Key, Section, settings};
use skidder_event::{EventMut, Path, ValueRef};

settings! {
    /// Settings of `detect_mime_type`.
    pub(crate) static DETECT_MIME_TYPE = Group::new("processor.detect_mime_type", "Adds the MIME type of what a field holds, by its first bytes; a text \
                               that is JSON or XML as a whole is known as such.");

    FIELD: String = Key::new("field")
        .required()
        .about("the field to look at");
    TARGET: String = Key::new("target")
        .required()
        .about("where the type goes");
}

/// Bytes inspected for a signature; office documents need about 8 KiB.
const HEADER_BYTES_MAX: usize = 8192;

/// Adds the MIME type of what a field holds.
#[derive(Clone, Debug)]
pub(crate) struct DetectMimeType {
    field: Path,
    target: Path,
}

impl DetectMimeType {
    /// `field`, `target`.
    pub(crate) fn read(settings: &Section<'_>) -> Option<Self> {
        let (field, target) = (required_path(settings, &FIELD), required_path(settings, &TARGET));
        Some(Self { field: field?, target: target? })
    }
}

/// The MIME type of some bytes, if they look like anything.
fn detect(content: &[u8]) -> Option<&'static str> {
    let header = &content[..content.len().min(HEADER_BYTES_MAX)];
    let known = infer::get(header).filter(|kind| kind.matcher_type() != infer::MatcherType::Text);
    if let Some(kind) = known {
        return Some(kind.mime_type());
    }
    let kind = sniff::sniff(header)?;
    if !kind.starts_with("text/plain") {
        return Some(kind);
    }
    if serde_json::from_slice::<serde::de::IgnoredAny>(content).is_ok() {
        return Some("application/json");
    }
    Some(if is_xml(content) { "text/xml" } else { kind })
}

/// Whether there is a whole element; text before and after it does not matter.
fn is_xml(content: &[u8]) -> bool {
    if !content.contains(&b'<') {
        return false;
    }
    let mut reader = Reader::from_reader(content);
    let mut depth = 0_usize;
    loop {
        match reader.read_event() {
            Ok(Event::Start(start)) if start.attributes().all(|attribute| attribute.is_ok()) => {
                depth += 1;
            }
            Ok(Event::Empty(start)) if start.attributes().all(|attribute| attribute.is_ok()) => {
                if depth == 0 {
                    return true;
                }
            }
            Ok(Event::End(_)) if depth == 1 => return true,
            Ok(Event::End(_)) => depth = depth.saturating_sub(1),
            Ok(Event::GeneralRef(name)) => {
                let name = name.into_inner();
                let known = quick_xml::escape::resolve_predefined_entity(&name);
                if !name.starts_with('#') && known.is_none() {
                    return false;
                }
            }
            Ok(Event::Start(_) | Event::Empty(_) | Event::Eof) | Err(_) => return false,
            Ok(_) => {}
        }
    }
}

impl Processor for DetectMimeType {
    fn name(&self) -> &'static str {
        "detect_mime_type"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        let kind = match event.as_ref().get(&self.field) {
            Some(ValueRef::Str(content)) if !content.is_empty() => detect(content),
            _ => None,
        };
        if let Some(kind) = kind {
            event
                .put_text(&self.target, kind.as_bytes())
                .map_err(|error| Failure::unnoted(error.to_string()))?;
        }
        Ok(Outcome::Done)
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        let (reads, writes) = (vec![self.field.clone()], vec![self.target.clone()]);
        Footprint { reads, writes, ..Footprint::default() }
    }

    fn fold(&self, constants: &mut Constants) -> bool {
        rehearse(self, constants, &[&self.target])
    }

    fn describe(&self) -> String {
        format!("detect_mime_type of {} to {}", self.field, self.target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_known_by_its_first_bytes() {
        let cases: [(&[u8], Option<&str>); 22] = [
            (b"<html>Test</html>", Some("text/html; charset=utf-8")),
            (b"  <!DOCTYPE html >", Some("text/html; charset=utf-8")),
            (b"MZ\x90\0\x03\0\0\0\x04\0\0\0\xff\xff", Some("application/vnd.microsoft.portable-executable")),
            (
                b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x03\0\x01\0\0\0\xf0\xdc\x01\0\x34\0\0\0\x80\xa3\x18\0\
                \0\0\0\0\x34\0\x20\0\x08\0\x28\0\x1e\0\x1d\0\x01\0\0\0",
                Some("application/x-executable"),
            ),
            (b"\xcf\xfa\xed\xfe\x07\0\0\x01\x03\0\0\0\x02\0\0\0\x10\0\0\0", Some("application/x-mach-binary")),
            (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02X", Some("image/png")),
            (b"\x1f\x8b\x08\0\0\0\0\0", Some("application/gzip")),
            (b"%PDF-1.7", Some("application/pdf")),
            (b"%!PS-Adobe-3.0", Some("application/postscript")),
            (b"{}", Some("application/json")),
            (b" [1, {\"a\": null}] \n", Some("application/json")),
            (b"17", Some("application/json")),
            (b"{} x", Some("text/plain; charset=utf-8")),
            (b"<test></test>", Some("text/xml")),
            (b"see <b><i a=\"1\"/>&amp;&#65;</b>", Some("text/xml")),
            (b"see <b>&nbsp;</b>", Some("text/plain; charset=utf-8")),
            (b"see <b></i></b>", Some("text/plain; charset=utf-8")),
            (b"see <c>", Some("text/plain; charset=utf-8")),
            (b"<?xml version=\"1.0\"?><a/>", Some("text/xml; charset=utf-8")),
            (b"Hello world!", Some("text/plain; charset=utf-8")),
            (b"\xff\xfea\0", Some("text/plain; charset=utf-16le")),
            (b"\x01\x02\x03 nothing", None),
        ];
        for (content, kind) in cases {
            assert_eq!(detect(content), kind, "{}", String::from_utf8_lossy(content));
        }
    }
}
