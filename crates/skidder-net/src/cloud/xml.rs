//! Answers in XML, read element by element.

use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesRef, BytesStart, Event};

/// Why a document cannot be read. Ends a sentence that begins with "the answer".
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum XmlError {
    /// Its syntax is wrong.
    #[error("is no XML")]
    Syntax,
    /// Its outermost element has another name.
    #[error("is another document")]
    Other,
    /// `&name;` with a name that XML does not have.
    #[error("has an unknown entity")]
    Entity,
    /// It stops before its last element does.
    #[error("ends early")]
    Cut,
}

/// Why an answer is no page of a listing. The sentence begins with "the listing".
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListingError {
    /// It is no document that is read.
    #[error("the listing {0}")]
    Xml(#[from] XmlError),
    /// Something is missing in it, or wrong.
    #[error("the listing {0}")]
    Content(&'static str),
}

/// An element whose end was read.
#[derive(Clone, Copy, Debug)]
pub struct Ended<'a> {
    /// The names of the elements around it, from the outside, and its own.
    pub path: &'a [&'a str],
    /// Its text; empty if it has elements of its own.
    pub text: &'a str,
    /// `Encoded="true"`: its text is percent-encoded, because XML cannot have some of its characters.
    pub is_encoded: bool,
}

/// Calls `each` with every element when it ends, so that the innermost come first. `root` is the name that the outermost one
/// must have; `None` for any. A document that is cut short is an error, and never a shorter document.
///
/// # Errors
///
/// The document cannot be read, or the first error of `each`.
pub fn walk<E: From<XmlError>>(
    answer: &[u8],
    root: Option<&str>,
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
                enter(&mut path, &tag, root)?;
                text.clear();
                is_encoded = has_mark(&tag);
            }
            Event::Empty(tag) => {
                enter(&mut path, &tag, root)?;
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

fn enter(path: &mut Vec<String>, tag: &BytesStart<'_>, root: Option<&str>) -> Result<(), XmlError> {
    let name = tag.local_name().as_ref().to_owned();
    if path.is_empty() && root.is_some_and(|root| root != name) {
        return Err(XmlError::Other);
    }
    path.push(name);
    Ok(())
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

/// The text of the first element with this name, wherever it is, also in a document that is not whole; `None` if there is
/// none, or no text in it, or the answer is no XML.
pub fn text_of(answer: &[u8], element: &str) -> Option<String> {
    let mut reader = Reader::from_reader(answer);
    let mut inside = false;
    let mut found = String::new();
    loop {
        match reader.read_event().ok()? {
            Event::Start(tag) => inside = tag.local_name().as_ref() == element,
            Event::Text(text) if inside => found.push_str(&text),
            Event::GeneralRef(name) if inside => push_reference(&mut found, &name)?,
            Event::End(_) if inside => return Some(found).filter(|found| !found.is_empty()),
            Event::Eof => return None,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_text_of_a_name_is_found_whole() {
        let error = "<?xml version=\"1.0\"?>\n<Error><Code>NoSuchBucket</Code><Message>It &amp; &#97;ll \
             of it</Message><BucketName/><Inner><Region>eu-west-1</Region></Inner></Error>";
        let text = |element| text_of(error.as_bytes(), element);
        assert_eq!(text("Code").as_deref(), Some("NoSuchBucket"));
        assert_eq!(text("Message").as_deref(), Some("It & all of it"));
        assert_eq!(text("Region").as_deref(), Some("eu-west-1"));
        assert_eq!((text("BucketName"), text("Endpoint")), (None, None));
        for nonsense in ["", "<html>", "<Error><Code>cut", "\u{fffd}\0<<"] {
            assert_eq!(text_of(nonsense.as_bytes(), "Code"), None, "{nonsense}");
        }
    }

    #[test]
    fn elements_end_from_the_inside() {
        let mut seen = Vec::new();
        let text = "<a><b Encoded=\"true\">x%00</b><c/><d> <e><![CDATA[<&]]></e> </d></a>";
        walk::<XmlError>(text.as_bytes(), Some("a"), |ended| {
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
        for other in ["<b><a></a>", "<b/>"] {
            let error = walk::<XmlError>(other.as_bytes(), Some("a"), |_| Ok(())).unwrap_err();
            assert_eq!(error, XmlError::Other, "{other}");
        }
    }
}
