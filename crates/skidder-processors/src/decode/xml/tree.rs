//! XML as a tree of elements, as the two processors of XML see it.
//!
//! Namespaces do not count (`a:b` is `b`), nor do comments, instructions, the document type and the
//! declared encoding. The depth is bounded. Several documents one after the other have several
//! roots.

use quick_xml::Reader;
use quick_xml::errors::{Error, IllFormedError};
use quick_xml::escape::{resolve_predefined_entity, unescape};
use quick_xml::events::{BytesRef, BytesStart, Event};
use std::borrow::Cow;

/// Elements inside each other. More are refused, so that no text can exhaust the stack.
pub(super) const DEPTH_MAX: usize = 256;

/// One element.
#[derive(Debug, Default)]
pub(super) struct Element<'t> {
    /// Its name, without a namespace.
    pub(super) name: Cow<'t, str>,
    /// Names and values, without namespaces, in the order of the text.
    pub(super) attributes: Vec<(String, String)>,
    /// The elements inside.
    pub(super) children: Vec<Element<'t>>,
    /// All text directly inside, unchanged.
    pub(super) text: Cow<'t, str>,
}

impl<'t> Element<'t> {
    /// The first element of this name inside.
    pub(super) fn child(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.name == name)
    }

    /// The value of an attribute; empty if it is not there.
    pub(super) fn attribute(&self, name: &str) -> &str {
        let found = self.attributes.iter().rev().find(|(key, _)| key == name);
        found.map_or("", |(_, value)| value)
    }

    fn add_text(&mut self, text: Cow<'t, str>) {
        if self.text.is_empty() {
            self.text = text;
        } else {
            self.text.to_mut().push_str(&text);
        }
    }
}

/// An error in a text.
#[derive(Debug, thiserror::Error)]
pub(super) enum XmlError {
    /// It is no XML from here on.
    #[error("XML syntax error on line {line}: {problem}")]
    Syntax {
        /// Counted from 1.
        line: usize,
        /// In words.
        problem: String,
    },
    /// There is no element in it.
    #[error("there is no XML element in it")]
    Nothing,
    /// It is not UTF-8.
    #[error("invalid UTF-8")]
    Encoding,
}

/// The root elements of a text; at least one.
pub(super) fn parse(text: &[u8]) -> Result<Vec<Element<'_>>, XmlError> {
    let text = std::str::from_utf8(text).map_err(|_| XmlError::Encoding)?;
    let mut reader = Reader::from_str(text);
    reader.config_mut().expand_empty_elements = true;
    // The document, and the elements that are open.
    let mut open = vec![Element::default()];
    loop {
        let read = reader.read_event().map_err(|error| in_words(&error));
        let taken = read.and_then(|event| take(event, &mut open));
        match taken {
            Ok(true) => {}
            Ok(false) => break,
            Err(problem) => {
                let read = usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX);
                let before = &text.as_bytes()[..read.min(text.len())];
                let line = 1 + memchr::memchr_iter(b'\n', before).count();
                return Err(XmlError::Syntax { line, problem });
            }
        }
    }
    let roots = open.pop().map(|document| document.children).unwrap_or_default();
    if roots.is_empty() { Err(XmlError::Nothing) } else { Ok(roots) }
}

/// Takes the next piece; `false` at the end of the text.
fn take<'t>(event: Event<'t>, open: &mut Vec<Element<'t>>) -> Result<bool, String> {
    let depth = open.len();
    let Some(inside) = open.last_mut() else { return Ok(false) };
    match event {
        Event::Start(start) | Event::Empty(start) => {
            if depth > DEPTH_MAX {
                return Err(format!("more than {DEPTH_MAX} elements inside each other"));
            }
            open.push(element(&start)?);
        }
        Event::End(_) => {
            if let Some(closed) = open.pop()
                && let Some(around) = open.last_mut()
            {
                around.children.push(closed);
            }
        }
        Event::Text(text) => inside.add_text(with_line_feeds(text.into_inner())),
        Event::CData(text) => inside.add_text(with_line_feeds(text.into_inner())),
        Event::GeneralRef(reference) => inside.add_text(resolve(&reference)?),
        Event::Eof if depth > 1 => return Err("unexpected EOF".to_owned()),
        Event::Eof => return Ok(false),
        Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
    }
    Ok(true)
}

fn element<'t>(start: &BytesStart<'t>) -> Result<Element<'t>, String> {
    let mut attributes = Vec::new();
    let mut list = start.attributes();
    for attribute in list.with_checks(false) {
        let attribute = attribute.map_err(|error| error.to_string())?;
        let value = unescape(&attribute.value).map_err(|error| error.to_string())?;
        attributes.push((attribute.key.local_name().as_ref().to_owned(), value.into_owned()));
    }
    let name = Cow::Owned(start.local_name().as_ref().to_owned());
    Ok(Element { name, attributes, ..Element::default() })
}

/// Line ends of Windows are line feeds, as for every reader of XML.
fn with_line_feeds(text: Cow<'_, str>) -> Cow<'_, str> {
    if text.contains('\r') {
        Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n"))
    } else {
        text
    }
}

/// The character of `&…;`.
fn resolve<'t>(reference: &BytesRef<'t>) -> Result<Cow<'t, str>, String> {
    if let Some(character) = reference.resolve_char_ref().map_err(|error| in_words(&error))? {
        return Ok(Cow::Owned(character.to_string()));
    }
    let name: &str = reference;
    match resolve_predefined_entity(name) {
        Some(text) => Ok(Cow::Borrowed(text)),
        None => Err(format!("invalid character entity &{name};")),
    }
}

/// The problem in the words that Filebeat has for it, where it has.
fn in_words(error: &Error) -> String {
    match error {
        Error::IllFormed(IllFormedError::MismatchedEndTag { expected, found }) => {
            format!("element <{expected}> closed by </{found}>")
        }
        Error::IllFormed(IllFormedError::UnmatchedEndTag(found)) => {
            format!("unexpected end element </{found}>")
        }
        Error::Syntax(_) => format!("unexpected EOF ({error})"),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[<>/ab:=&;!? x#0-9'\"\\[\\]\n-]{0,80}") {
            drop(parse(text.as_bytes()));
        }

        #[test]
        fn what_was_escaped_is_read_back(text in "[ -~\n]{0,40}") {
            let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;");
            let xml = format!("<a b=\"{escaped}\">{escaped}</a>");
            let roots = parse(xml.as_bytes()).map_err(|error| TestCaseError::fail(error.to_string()))?;
            prop_assert_eq!(&*roots[0].text, &text);
            prop_assert_eq!(roots[0].attribute("b"), &text);
        }
    }

    #[test]
    fn elements_have_attributes_children_and_text() {
        let text = "<?xml version='1.0' encoding='UTF-16'?><!-- c --><a x='1 &amp; 2' n:y=\"3\">\r\n<n:b>t&lt;&#65;<![CDATA[<c>]]></n:b><e/></a>";
        let roots = parse(text.as_bytes()).unwrap();
        let root = &roots[0];
        assert_eq!((&*root.name, root.attribute("x"), root.attribute("y")), ("a", "1 & 2", "3"));
        assert_eq!((&*root.text, root.attribute("z")), ("\n", ""));
        assert_eq!(root.child("b").unwrap().text, "t<A<c>");
        assert!(root.child("e").unwrap().text.is_empty());
        assert!(root.child("c").is_none());
    }

    #[test]
    fn what_is_no_xml_says_where() {
        let error = |text: &str| parse(text.as_bytes()).unwrap_err().to_string();
        assert_eq!(
            error("<a>\n<b>\n</c>"),
            "XML syntax error on line 3: element <b> closed by </c>"
        );
        assert_eq!(error("<a>\n<b/>\n"), "XML syntax error on line 3: unexpected EOF");
        assert_eq!(error("</a>"), "XML syntax error on line 1: unexpected end element </a>");
        assert_eq!(error("<a>&b;</a>"), "XML syntax error on line 1: invalid character entity &b;");
        assert!(error("<a b=c/>").starts_with("XML syntax error on line 1: "));
        assert!(error("<a").starts_with("XML syntax error on line 1: unexpected EOF"));
        assert!(error("<a>&#0;</a>").starts_with("XML syntax error on line 1: "));
        assert_eq!(error("hello"), "there is no XML element in it");
        assert_eq!(parse(b"<a>\xff</a>").unwrap_err().to_string(), "invalid UTF-8");
    }

    #[test]
    fn the_depth_is_bounded() {
        let nested = |depth| "<a>".repeat(depth) + &"</a>".repeat(depth);
        assert!(parse(nested(DEPTH_MAX).as_bytes()).is_ok());
        let error = parse(nested(DEPTH_MAX + 1).as_bytes()).unwrap_err().to_string();
        assert!(error.ends_with("more than 256 elements inside each other"), "{error}");
        assert!(parse("<a>".repeat(1_000_000).as_bytes()).is_err());
    }
}
