//! Reading the settings of an `aws-s3` input: its own, and how lines of objects become events, as in `filestream`.

use super::{aws_script, parsers};
use regex::bytes::Regex;
use skidder_config::{Group, Key, Parts, Section, settings};
use skidder_input::Input;
use skidder_input_aws::{AWS_S3_INPUT, AWS_S3_OBJECT, Selector};
use skidder_inputs::Context;
use skidder_processors::compile_pattern;
use skidder_read::FilestreamSettings;
use skidder_read::scan::ScanSettings;

settings! {
    /// Objects that are read alike.
    static SELECTOR = Group::new("input.aws-s3.file_selectors", "Objects that are read alike.")
        .include(&[&AWS_S3_OBJECT, &parsers::TEXT, &parsers::PARSING]);

    REGEX: String = Key::new("regex")
        .required()
        .noun("a regular expression")
        .about("finds the names of the objects; the first that does counts");
}

settings! {
    /// How some objects are read.
    static SELECTORS = Group::new("input.aws-s3.selectors", "How some objects are read.");

    FILE_SELECTORS: Parts = Key::parts("file_selectors", &SELECTOR).default_words("all").about(
        "which objects are read, and how: their settings stand here then, instead of beside it. Others are not read",
    );
}

/// Settings of `aws-s3`.
pub(crate) static AWS_S3: Group =
    Group::new("input.aws-s3", "Objects of buckets, by a queue or by listings.").include(&[
        &AWS_S3_INPUT,
        &aws_script::SCRIPTED,
        &SELECTORS,
        &AWS_S3_OBJECT,
        &parsers::TEXT,
        &parsers::PARSING,
        &skidder_inputs::EVERY_INPUT,
    ]);

/// Settings of how objects are read, which have no effect beside `file_selectors`.
const OF_OBJECTS: [&str; 9] = [
    "buffer_size",
    "content_type",
    "decoding",
    "encoding",
    "expand_event_list_from_field",
    "include_s3_metadata",
    "line_terminator",
    "max_bytes",
    "parsers",
];

/// Reads one input; the section reports mistakes.
pub(crate) fn read(section: &Section<'_>, context: &Context) -> Option<Box<dyn Input>> {
    section.declared_by(&AWS_S3);
    let keep_null = skidder_inputs::read_common(section);
    let all = read_selector(section, None, keep_null);
    let given = section.parts(&FILE_SELECTORS);
    let selectors: Vec<Selector> = if given.is_empty() {
        vec![all]
    } else {
        for name in OF_OBJECTS.iter().filter(|name| section.has(name)) {
            let message = format!("`{name}` has no effect beside `file_selectors`");
            section.warning(name, message, "set it in each of them");
        }
        given.into_iter().filter_map(|given| read_given(given, keep_null)).collect()
    };
    let folder = context.data.as_deref();
    let selectors = selectors.into_iter().map(|selector| selector.keeping_in(folder)).collect();
    let variable = |name: &str| std::env::var(name).ok();
    let script = aws_script::read(section, context);
    let input = skidder_input_aws::read(section, &context.fs, selectors, variable)?;
    let Some(script) = script.ok()? else { return Some(Box::new(input)) };
    if !input.reads_queue() {
        let message = "`sqs.notification_parsing_script` has no effect: this input reads a bucket";
        section.warning("sqs.notification_parsing_script", message, "leave it out");
    }
    Some(Box::new(input.with_script(script)))
}

/// One of `file_selectors`.
fn read_given(section: Section<'_>, keep_null: bool) -> Option<Selector> {
    let pattern = section.get(&REGEX).required();
    let regex = match compile_pattern(&pattern) {
        Ok(regex) => Some(regex),
        Err(error) => {
            let hint = "the syntax is that of RE2; `\\(` is the character";
            section.problem(REGEX.name(), error.to_string(), hint);
            None
        }
    };
    let selector = read_selector(&section, regex, keep_null);
    section.finish();
    // One without its pattern would select all.
    selector.has_regex().then_some(selector)
}

fn read_selector(section: &Section<'_>, regex: Option<Regex>, keep_null: bool) -> Selector {
    let mut reading = FilestreamSettings::new("", ScanSettings::default());
    reading.keep_null = keep_null;
    parsers::read_of_objects(section, &mut reading);
    Selector::read(section, regex, reading)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filestream::testing;

    const PLACE: &str =
        "bucket_arn: 'arn:aws:s3:::logs', access_key_id: id, secret_access_key: secret";

    fn read_text(text: &str) -> (bool, String) {
        let (input, problems) = testing::read_text(&format!("{{{PLACE}, {text}}}"), read);
        (input.is_some_and(|input| input.kind() == "aws-s3"), problems)
    }

    #[test]
    fn objects_are_read_as_files_are() {
        let (is_read, problems) = read_text(
            "keep_null: true, max_bytes: 1MiB, buffer_size: 64KiB, encoding: gbk, line_terminator: line_feed, \
             parsers: [{multiline: {pattern: '^ ', match: after}}, {ndjson: {target: ''}}]",
        );
        assert!(is_read, "{problems}");
        assert_eq!(problems, "");
        for (text, expected) in [
            ("parsers: [{multiline: {pattern: '(', match: after}}]", "unclosed group"),
            ("paths: [/a]", "paths"),
            ("encoding: none", "encoding"),
        ] {
            let (_, problems) = read_text(text);
            assert!(
                problems.contains("error: ") && problems.contains(expected),
                "{text}: {problems}"
            );
        }
    }

    #[cfg(feature = "script")]
    #[test]
    fn a_script_reads_messages_and_its_mistakes_are_said_at_the_start() {
        const QUEUE: &str = "queue_url: 'https://sqs.eu-central-1.amazonaws.com/1/logs', access_key_id: id, \
                             secret_access_key: secret";
        let read_text = |place: &str, script: &str| {
            let text = format!("{{{place}, sqs.notification_parsing_script: {{{script}}}}}");
            let (input, problems) = testing::read_text(&text, read);
            (input.is_some(), problems)
        };
        let script =
            "source: 'function parse(n) { return []; }', timeout: 1s, max_cached_sessions: 2";
        assert_eq!(read_text(QUEUE, script), (true, String::new()));
        let (is_read, problems) = read_text(PLACE, script);
        assert!(
            is_read && problems.contains("has no effect: this input reads a bucket"),
            "{problems}"
        );
        for (script, expected) in [
            ("source: 'var a;'", "parse function not found"),
            ("timeout: 1s", "has no script"),
            ("source: 'function parse() {}', tag: a", "tag"),
        ] {
            let (_, problems) = read_text(QUEUE, script);
            assert!(
                problems.contains("error: ") && problems.contains(expected),
                "{script}: {problems}"
            );
        }
    }

    #[test]
    fn selectors_have_settings_of_their_own() {
        let (is_read, problems) = read_text(
            "file_selectors: [{regex: '\\.gz$', include_s3_metadata: [etag], max_bytes: 1KiB}, \
             {regex: '/csv/', encoding: gbk, content_type: text/csv}]",
        );
        assert!(is_read, "{problems}");
        assert_eq!(problems, "");
        let (is_read, problems) = read_text("encoding: gbk, file_selectors: [{regex: a}]");
        assert!(is_read && problems.contains("`encoding` has no effect beside"), "{problems}");
        for (text, expected) in [
            ("file_selectors: [{encoding: gbk}]", "`file_selectors[0].regex` is missing"),
            ("file_selectors: [{regex: '('}]", "unclosed group"),
            ("file_selectors: [{regex: a, queue_url: b}]", "queue_url"),
        ] {
            let (is_read, problems) = read_text(text);
            assert!(!is_read || problems.contains("error: "), "{text}");
            assert!(problems.contains(expected), "{text}: {problems}");
        }
    }
}
