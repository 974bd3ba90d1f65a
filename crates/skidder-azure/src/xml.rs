//! Documents in XML, read element by element.

use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesRef, BytesStart, Event};

/// Why a document cannot be read. Ends a sentence that begins with "the answer".
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum XmlError {
    /// Its syntax is wrong.
    #[error("is no XML")]
    Syntax,
    /// `&name;` with a name that XML does not have.
    #[error("has an unknown entity")]
    Entity,
    /// It stops before its last element does.
    #[error("ends early")]
    Cut,
}

/// An element whose end was read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended<'a> {
    /// The names of the elements around it, from the outside, and its own.
    pub(crate) path: &'a [&'a str],
    /// Its text; empty if it has elements of its own.
    pub(crate) text: &'a str,
    /// `Encoded="true"`: its text is percent-encoded, because XML cannot have some of its characters.
    pub(crate) is_encoded: bool,
}

/// Calls `each` with every element when it ends, so that the innermost come first. A document that is cut short is an
/// error, and never a shorter document.
pub(crate) fn walk<E: From<XmlError>>(
    answer: &[u8],
    mut each: impl FnMut(Ended<'_>) -> Result<(), E>,
) -> Result<(), E> {
    // Azure begins its documents with a mark of the byte order.
    let answer = answer.strip_prefix(b"\xef\xbb\xbf").unwrap_or(answer);
    let mut reader = Reader::from_reader(answer);
    let mut path: Vec<String> = Vec::new();
    let mut text = String::new();
    let mut is_encoded = false;
    loop {
        match reader.read_event().map_err(|_| XmlError::Syntax)? {
            Event::Start(tag) => {
                path.push(tag.local_name().as_ref().to_owned());
                text.clear();
                is_encoded = has_mark(&tag);
            }
            Event::Empty(tag) => {
                path.push(tag.local_name().as_ref().to_owned());
                end(&path, "", false, &mut each)?;
                path.pop();
                text.clear();
            }
            Event::Text(piece) => text.push_str(&piece),
            Event::CData(piece) => text.push_str(&piece),
            Event::GeneralRef(name) => {
                push_reference(&mut text, &name).ok_or(XmlError::Entity)?;
            }
            Event::End(_) => {
                end(&path, &text, is_encoded, &mut each)?;
                path.pop();
                text.clear();
                is_encoded = false;
                if path.is_empty() {
                    return Ok(());
                }
            }
            Event::Eof => return Err(XmlError::Cut.into()),
            _ => {}
        }
    }
}

fn end<E>(
    path: &[String],
    text: &str,
    is_encoded: bool,
    each: &mut impl FnMut(Ended<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let names: Vec<&str> = path.iter().map(String::as_str).collect();
    each(Ended { path: &names, text, is_encoded })
}

fn has_mark(tag: &BytesStart<'_>) -> bool {
    let mark = tag.try_get_attribute("Encoded").ok().flatten();
    mark.is_some_and(|mark| mark.value.eq_ignore_ascii_case("true"))
}

/// Appends the character that `&amp;`, `&#34;` and their like stand for; nothing if there is none.
fn push_reference(out: &mut String, name: &BytesRef<'_>) -> Option<()> {
    match name.resolve_char_ref().ok()? {
        Some(character) => out.push(character),
        None => out.push_str(resolve_predefined_entity(name)?),
    }
    Some(())
}

/// The text of an element directly below the root, as `Code` in `<Error>`; `None` if there is none, or no text in it, or
/// the document is not whole.
pub(crate) fn text_of(answer: &[u8], element: &str) -> Option<String> {
    let mut found = None;
    let read = walk::<XmlError>(answer, |ended| {
        if let [_, name] = ended.path
            && *name == element
            && found.is_none()
        {
            found = Some(ended.text.to_owned());
        }
        Ok(())
    });
    read.ok()?;
    found.filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_texts_of_an_error_are_found_whole() {
        let error = "\u{feff}<?xml version=\"1.0\"?>\n<Error><Code>BlobNotFound</Code><Message>It &amp; &#97;ll of it\n\
             RequestId:1</Message><Reason/><Inner><Region>x</Region></Inner></Error>";
        let text = |element| text_of(error.as_bytes(), element);
        assert_eq!(text("Code").as_deref(), Some("BlobNotFound"));
        assert_eq!(text("Message").as_deref(), Some("It & all of it\nRequestId:1"));
        assert_eq!((text("Reason"), text("Region"), text("Missing")), (None, None, None));
        for nonsense in ["", "<html>", "<Error><Code>cut", "\u{fffd}\0<<", "<a><b>&x;</b></a>"] {
            assert_eq!(text_of(nonsense.as_bytes(), "Code"), None, "{nonsense}");
        }
    }

    #[test]
    fn elements_end_from_the_inside() {
        let mut seen = Vec::new();
        let text = "<a><b Encoded=\"true\">x%00</b><c/><d> <e><![CDATA[<&]]></e> </d></a>";
        walk::<XmlError>(text.as_bytes(), |ended| {
            seen.push(format!("{} {:?} {}", ended.path.join("/"), ended.text, ended.is_encoded));
            Ok(())
        })
        .unwrap();
        let expected = [
            "a/b \"x%00\" true",
            "a/c \"\" false",
            "a/d/e \"<&\" false",
            "a/d \" \" false",
            "a \"\" false",
        ];
        assert_eq!(seen, expected);
    }
}
