//! How file and console write an event as a line: JSON, or a format string of the user's.

use crate::context::Context;
use skidder_config::Section;
use skidder_event::{Batch, Encoder, Format, FormatError};

/// `codec` of an output.
#[derive(Clone, Debug, PartialEq)]
pub enum CodecConfig {
    /// `codec.json`: the document with `@metadata`.
    Json {
        /// Indented, over several lines.
        pretty: bool,
    },
    /// `codec.format.string`.
    Format(Format),
}

impl Default for CodecConfig {
    fn default() -> Self {
        Self::Json { pretty: false }
    }
}

impl CodecConfig {
    /// Reads `codec`; `pretty` is what `codec.json.pretty` is when it is not set.
    pub(crate) fn read(section: &Section<'_>, pretty: bool) -> Self {
        let codec = section.section("codec");
        let json = codec.has("json");
        if codec.bool("json.escape_html").or(false) {
            let message = "`escape_html: true` is not supported: `<`, `>` and `&` stay as they are";
            codec.problem("json.escape_html", message, "remove it; every JSON reader takes both");
        }
        let pretty = codec.bool("json.pretty").or(pretty);
        codec.accept("json");
        let parse = |text: String| Format::parse(&text).map_err(|error| error.to_string());
        let format = codec.string("format.string").named("a format string").try_map(parse);
        if format.is_set() && json {
            codec.problem("format", "`json` and `format` are both set; expected one", "");
        }
        match format.optional() {
            Some(format) => Self::Format(format),
            None => Self::Json { pretty },
        }
    }
}

/// Writes events as text. One for each worker.
#[derive(Debug)]
pub(crate) enum Codec {
    Json { encoder: Encoder, pretty: bool, scratch: Vec<u8> },
    Format(Format),
}

impl Codec {
    pub(crate) fn new(config: &CodecConfig, context: &Context) -> Self {
        match config {
            CodecConfig::Json { pretty } => Self::Json {
                encoder: Encoder::with_metadata(context.precision, &context.beat, &context.version),
                pretty: *pretty,
                scratch: Vec::new(),
            },
            CodecConfig::Format(format) => {
                let mut format = format.clone();
                context.bind(&mut format);
                Self::Format(format)
            }
        }
    }

    /// Appends one event and a line feed. Nothing is appended when the event has no text.
    pub(crate) fn write(
        &mut self,
        out: &mut Vec<u8>,
        batch: &Batch,
        row: usize,
    ) -> Result<(), FormatError> {
        match self {
            Self::Json { encoder, pretty: false, .. } => encoder.write(out, batch, row),
            Self::Json { encoder, pretty: true, scratch } => {
                scratch.clear();
                encoder.write(scratch, batch, row);
                indent(out, scratch);
            }
            Self::Format(format) => {
                let before = out.len();
                if let Err(error) = format.write(out, batch.event(row)) {
                    out.truncate(before);
                    return Err(error);
                }
            }
        }
        out.push(b'\n');
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
