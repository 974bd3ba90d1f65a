//! Answers in XML, of which one or two texts are needed.

use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesRef, Event};

/// The text of the first element with this name, wherever it is; nothing if there is none, or no
/// text in it, or the answer is no XML.
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

/// Appends the character that `&amp;`, `&#34;` and their like stand for; nothing if there is none.
pub(crate) fn push_reference(out: &mut String, name: &BytesRef<'_>) -> Option<()> {
    match name.resolve_char_ref().ok()? {
        Some(character) => out.push(character),
        None => out.push_str(resolve_predefined_entity(name)?),
    }
    Some(())
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
}
