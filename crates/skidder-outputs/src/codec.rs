//! How an event becomes bytes in the outputs that let users choose (`codec`): JSON, or a format string.
//!
//! The document has `@metadata`, as in Filebeat's `libbeat/outputs/codec/json`.

use crate::context::Context;
use skidder_config::{Group, Key, Part, Section, settings};
use skidder_event::{Batch, Encoder, Format, FormatError};

mod keys {
    use super::*;

    settings! {
        /// Settings of `codec`.
        pub static CODEC = Group::new("codec", "How an event becomes bytes.");

        pub(super) PRETTY: bool = Key::new("json.pretty").default(false).about("indented, over several lines");
        pub(super) ESCAPE_HTML: bool = Key::new("json.escape_html")
            .default(false)
            .about("`<`, `>` and `&` as `\\u003c`, `\\u003e`, `\\u0026`");
        pub(super) FORMAT: String = Key::new("format.string").noun("a format string").about(
            "a format string instead of JSON; an event that misses one of its fields goes to the dead letters",
        );
    }
}

settings! {
    /// `codec` in an output.
    pub static WITH_CODEC = Group::new("with_codec", "An output with a codec.");

    SECTION: Part = Key::part("codec", &keys::CODEC).default_words("JSON").about("[below](#codec)");
}

pub use keys::CODEC;

/// `codec` of an output.
#[derive(Clone, Debug, PartialEq)]
pub enum CodecConfig {
    /// `codec.json`: the document with `@metadata`.
    Json {
        /// Indented, over several lines.
        pretty: bool,
        /// `<`, `>` and `&` are escaped.
        escape_html: bool,
    },
    /// `codec.format.string`.
    Format(Format),
}

impl Default for CodecConfig {
    fn default() -> Self {
        Self::Json { pretty: false, escape_html: false }
    }
}

impl CodecConfig {
    /// Reads `codec` of an output's section; `pretty` is what `codec.json.pretty` is when it is not set.
    /// Reports mistakes to the section's problems.
    pub fn read(section: &Section<'_>, pretty: bool) -> Self {
        let codec = section.part(&SECTION);
        let json = codec.has("json");
        let escape_html = codec.get(&keys::ESCAPE_HTML).value();
        let pretty = codec.get(&keys::PRETTY).or(pretty);
        if codec.keys().contains(&"format") && !codec.has(keys::FORMAT.name()) {
            let hint = "give a format string like `'%{[message]}'`";
            codec.missing(keys::FORMAT.name(), "is missing", hint);
        }
        let parse = |text: String| Format::parse(&text).map_err(|error| error.to_string());
        let format = codec.get(&keys::FORMAT).try_map(parse);
        if format.is_set() && json {
            codec.problem("format", "`json` and `format` are both set; expected one", "");
        }
        match format.optional() {
            Some(format) => Self::Format(format),
            None => Self::Json { pretty, escape_html },
        }
    }
}

/// Writes events as configured by [`CodecConfig`]. One for each worker; holds no event.
#[derive(Debug)]
pub struct Codec(Writer);

#[derive(Debug)]
enum Writer {
    Json(Encoder),
    Pretty(Encoder, Vec<u8>),
    Format(Format),
}

impl Codec {
    /// `beat` is the value of `@metadata.beat`: the name of the beat, or `index` where the output has one.
    pub fn new(config: &CodecConfig, context: &Context, beat: &str) -> Self {
        Self(match config {
            CodecConfig::Json { pretty, escape_html } => {
                let encoder = Encoder::with_metadata(context.precision, beat, &context.version)
                    .escaping_html(*escape_html);
                if *pretty { Writer::Pretty(encoder, Vec::new()) } else { Writer::Json(encoder) }
            }
            CodecConfig::Format(format) => {
                let mut format = format.clone();
                context.bind(&mut format);
                Writer::Format(format)
            }
        })
    }

    /// Appends one event, without a line feed. An event without a text (a field of the format string is missing)
    /// appends nothing: it can never be sent.
    #[inline]
    pub fn write(
        &mut self,
        out: &mut Vec<u8>,
        batch: &Batch,
        row: usize,
    ) -> Result<(), FormatError> {
        match &mut self.0 {
            Writer::Json(encoder) => encoder.write(out, batch, row),
            Writer::Pretty(encoder, scratch) => {
                scratch.clear();
                encoder.write(scratch, batch, row);
                indent(out, scratch);
            }
            Writer::Format(format) => {
                let before = out.len();
                if let Err(error) = format.write(out, batch.event(row)) {
                    out.truncate(before);
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}

/// Appends `json`, which has no spaces between its parts, indented by two spaces a level.
fn indent(out: &mut Vec<u8>, json: &[u8]) {
    let mut depth = 0_usize;
    let mut at = 0;
    let line = |out: &mut Vec<u8>, depth: usize| {
        out.push(b'\n');
        out.extend(std::iter::repeat_n(b' ', 2 * depth));
    };
    while let Some(&byte) = json.get(at) {
        at += 1;
        match byte {
            b'"' => {
                let end = at + string_length(&json[at..]);
                out.push(byte);
                out.extend_from_slice(&json[at..end]);
                at = end;
            }
            b'{' | b'[' => {
                out.push(byte);
                if json.get(at).is_some_and(|next| matches!(next, b'}' | b']')) {
                    out.push(json[at]);
                    at += 1;
                } else {
                    depth += 1;
                    line(out, depth);
                }
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                line(out, depth);
                out.push(byte);
            }
            b',' => {
                out.push(byte);
                line(out, depth);
            }
            b':' => out.extend_from_slice(b": "),
            _ => out.push(byte),
        }
    }
}

/// Bytes of a JSON string behind its opening quote, with the closing one.
fn string_length(text: &[u8]) -> usize {
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{batch_with, context};
    use skidder_config::{Problems, Settings};
    use skidder_event::Map;

    /// The line under these settings, and the reported problems.
    fn written(settings: &str, line: &str) -> (String, String) {
        let problems = Problems::new();
        let settings = Settings::parse("x", settings).unwrap();
        let root = settings.root(&problems);
        let config = CodecConfig::read(&root, false);
        root.finish();
        let mut metadata = Map::new();
        metadata.insert("pipeline", "p");
        let batch = batch_with(&[line], &Map::new(), &metadata);
        let mut out = b"before ".to_vec();
        let result = Codec::new(&config, &context(), "mybeat").write(&mut out, &batch, 0);
        let text = String::from_utf8(out).unwrap();
        match result {
            Ok(()) => (text, problems.to_string()),
            Err(error) => (format!("{text}{error}"), problems.to_string()),
        }
    }

    #[test]
    fn the_document_has_metadata_and_html_only_if_it_may() {
        let document = |message: &str| {
            format!(
                "before {{\"@timestamp\":\"2026-01-02T03:04:05.000Z\",\
                 \"@metadata\":{{\"beat\":\"mybeat\",\"type\":\"_doc\",\"version\":\"9.5.0\",\"pipeline\":\"p\"}},\
                 \"log\":{{\"offset\":0}},\"message\":\"{message}\"}}"
            )
        };
        for plain in ["{}", "codec.json: {}", "codec.json.escape_html: false"] {
            assert_eq!(written(plain, "<&>"), (document("<&>"), String::new()), "{plain}");
        }
        let (text, problems) = written("codec.json.escape_html: true", "<&>");
        assert_eq!((text, problems), (document("\\u003c\\u0026\\u003e"), String::new()));
        let (text, _) = written("codec.json: {pretty: true, escape_html: true}", "<");
        assert!(text.contains("\n  \"message\": \"\\u003c\"\n}"), "{text}");
    }

    #[test]
    fn a_format_string_makes_a_line_or_says_what_is_missing() {
        let (text, problems) =
            written("codec.format.string: '%{[agent.name]} %{[message]}'", "<x>");
        assert_eq!((text.as_str(), problems.as_str()), ("before here <x>", ""));
        let (text, _) = written("codec.format.string: 'x %{[nothing]}'", "a");
        assert!(text.starts_with("before ") && text.contains("nothing"), "{text}");
        assert!(!text.contains("x "), "{text}");
        let (_, problems) = written("codec: {json.pretty: true, format.string: x}", "a");
        assert!(problems.contains("expected one"), "{problems}");
        let (_, problems) = written("codec.format.string: '%{[x'", "a");
        assert!(problems.contains("no closing"), "{problems}");
    }

    #[test]
    fn pretty_json_is_indented_and_texts_are_left_alone() {
        let table = [
            ("{}", "{}"),
            ("{\"a\":1}", "{\n  \"a\": 1\n}"),
            (
                "{\"a\":[],\"b\":{\"c\":[1,2]}}",
                "{\n  \"a\": [],\n  \"b\": {\n    \"c\": [\n      1,\n      2\n    ]\n  }\n}",
            ),
            ("{\"a\":\"x,{}[]:\\\"y\\\\\"}", "{\n  \"a\": \"x,{}[]:\\\"y\\\\\"\n}"),
        ];
        for (json, expected) in table {
            let mut out = Vec::new();
            indent(&mut out, json.as_bytes());
            assert_eq!(String::from_utf8_lossy(&out), expected);
        }
    }
}
