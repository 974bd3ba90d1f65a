//! `sanitizers` and `sanitize_options`.

use crate::sanitize::Sanitizer;
use skidder_config::{Group, Key, OneOf, Part, Parts, Section, settings};
use skidder_processors::compile_pattern;

/// A kind of repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    NewLines,
    SingleQuotes,
    ReplaceAll,
}

settings! {
    /// `spec` of `replace_all`.
    static SPEC =
        Group::new("input.azure-eventhub.sanitizers.spec", "What `replace_all` replaces.").inline();

    PATTERN: String = Key::new("pattern")
        .default("")
        .noun("a regular expression")
        .about("of `replace_all`: what is replaced");
    REPLACEMENT: String = Key::new("replacement")
        .default("")
        .about("of `replace_all`: by what; `$1` is the first group of the expression");
}

settings! {
    /// A repair.
    static REPAIR = Group::new("input.azure-eventhub.sanitizers", "Repairs of messages that are no JSON.");

    TYPE: OneOf<Kind> = Key::one_of("type", &[
            ("new_lines", Kind::NewLines),
            ("single_quotes", Kind::SingleQuotes),
            ("replace_all", Kind::ReplaceAll),
        ])
        .required()
        .about("`new_lines` removes them; `single_quotes` makes double ones of them outside of texts; `replace_all`");
    OF: Part = Key::part("spec", &SPEC).about("of `replace_all`");
}

settings! {
    /// Repairs.
    pub(super) static REPAIRS = Group::new("input.azure-eventhub.repairs", "Repairs of messages that are no JSON.");

    SANITIZERS: Parts = Key::parts("sanitizers", &REPAIR)
        .default_words("none")
        .about("repairs of messages that are no JSON, one after the other; other messages are left alone");
    OPTIONS: Vec<String> = Key::new("sanitize_options")
        .default_words("none")
        .noun("a list of `NEW_LINES` and `SINGLE_QUOTES`")
        .about("the old way to name the first two `sanitizers`; they come behind those");
}

/// `None`, and the problems are reported, if something is wrong.
pub(super) fn read(section: &Section<'_>) -> Option<Vec<Sanitizer>> {
    let given = section.parts(&SANITIZERS);
    let count = given.len();
    let mut all: Vec<Sanitizer> = given.into_iter().filter_map(read_one).collect();
    let is_whole = all.len() == count;
    for option in section.get(&OPTIONS).optional().unwrap_or_default() {
        match &*option {
            "NEW_LINES" => all.push(Sanitizer::NewLines),
            "SINGLE_QUOTES" => all.push(Sanitizer::SingleQuotes),
            other => {
                let message = format!(
                    "`{}` has `{other}`, which does nothing",
                    section.path_of(OPTIONS.name())
                );
                section.warning(
                    OPTIONS.name(),
                    message,
                    "it may have `NEW_LINES` and `SINGLE_QUOTES`",
                );
            }
        }
    }
    is_whole.then_some(all)
}

fn read_one(section: Section<'_>) -> Option<Sanitizer> {
    let kind = section.get(&TYPE).optional();
    let has_spec = section.has(OF.name());
    let spec = section.part(&OF);
    let (pattern, replacement) = (spec.get(&PATTERN).value(), spec.get(&REPLACEMENT).value());
    let sanitizer = match kind {
        Some(Kind::NewLines) => Some(Sanitizer::NewLines),
        Some(Kind::SingleQuotes) => Some(Sanitizer::SingleQuotes),
        Some(Kind::ReplaceAll) if !has_spec || pattern.is_empty() => {
            let hint = "as in `{type: replace_all, spec: {pattern: '\\[x\\]', replacement: ''}}`";
            section.missing(OF.name(), "has no `pattern`", hint);
            None
        }
        Some(Kind::ReplaceAll) => match compile_pattern(&pattern) {
            Ok(pattern) => Some(Sanitizer::ReplaceAll(pattern, replacement)),
            Err(error) => {
                let hint = "the syntax is that of RE2; `\\(` is the character";
                spec.problem(PATTERN.name(), error.to_string(), hint);
                None
            }
        },
        None => {
            section.missing(
                TYPE.name(),
                "is not set",
                "`new_lines`, `single_quotes` or `replace_all`",
            );
            None
        }
    };
    spec.finish();
    section.finish();
    sanitizer
}
