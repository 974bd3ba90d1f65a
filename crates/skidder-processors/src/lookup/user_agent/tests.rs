//! Long texts, results that are remembered, expressions that are needed.

use super::*;
use crate::kinds::Context;
use crate::lookup::lookup_files;
use crate::lookup::user_agent::read::USER_AGENT;
use skidder_config::{Problems, Settings};
use skidder_os::Timestamp;
use skidder_testkit::{SimClock, SimFs};

fn context() -> Context {
    let clock = SimClock::starting_at(Timestamp(1_795_294_377_123_000_000));
    let fs = SimFs::new(&clock);
    lookup_files::write_lookup_files(&fs);
    Context::new(Arc::new(fs), Arc::new(clock))
}

fn read(context: &Context, settings: &str) -> Result<UserAgent, String> {
    let settings = Settings::parse("test.yml", settings).unwrap();
    let problems = Problems::new();
    let root = settings.root(&problems);
    root.declared_by(&USER_AGENT);
    let read = UserAgent::read(&root, context);
    drop(root);
    read.ok_or_else(|| problems.to_string())
}

#[test]
fn only_the_beginning_of_a_long_text_is_looked_at() {
    let agent = read(&context(), "regex_file: /etc/regexes.yaml").unwrap();
    for (before, name) in
        [(0, "Firefox"), (TEXT_BYTES_MAX - 12, "Firefox"), (TEXT_BYTES_MAX, "Other")]
    {
        let text = format!("{}Firefox/81.0{}", ".".repeat(before), ";".repeat(1 << 20));
        assert_eq!(
            agent.found(text.as_bytes()).get(Fact::Name),
            Some(name),
            "behind {before} bytes"
        );
    }
    // The limit is inside a letter, and the text is no UTF-8.
    let mut text = b"Firefox/81.0".to_vec();
    text.resize(TEXT_BYTES_MAX - 1, 0xff);
    text.extend("ä".repeat(9).as_bytes());
    assert_eq!(agent.found(&text).get(Fact::Version), Some("81.0"));
}

#[test]
fn a_text_that_comes_again_has_the_same_result() {
    let agent = read(&context(), "regex_file: /etc/regexes.yaml").unwrap();
    let one = agent.found(b"curl/8.5.0");
    assert_eq!(one.get(Fact::Version), Some("8.5.0"));
    assert!(Arc::ptr_eq(&one, &agent.found(b"curl/8.5.0")));
    assert_eq!(agent.found(b"curl/8.5.1").get(Fact::Version), Some("8.5.1"));
}

#[test]
fn expressions_are_compiled_once_and_only_those_that_are_needed() {
    let context = context();
    let one = read(&context, "regex_file: /etc/regexes.yaml").unwrap();
    let other = read(&context, "{regex_file: /etc/regexes.yaml, field: a}").unwrap();
    assert!(Arc::ptr_eq(&one.expressions, &other.expressions));
    for (properties, program, system, device) in [
        ("[name]", true, false, false),
        ("[version, os.full]", true, true, false),
        ("[os]", false, true, false),
        ("[device]", false, false, true),
        ("[original]", false, false, false),
    ] {
        let settings = format!("{{regex_file: /etc/regexes.yaml, properties: {properties}}}");
        let some = read(&context, &settings).unwrap().expressions;
        let built = (some.program.is_some(), some.system.is_some(), some.device.is_some());
        assert_eq!(built, (program, system, device), "{properties}");
    }
}

#[test]
fn versions_end_at_the_first_part_that_is_missing() {
    let version = |parts| joined(parts).map(String::from);
    assert_eq!(version([Some("1"), Some("2"), Some("3"), Some("4")]).as_deref(), Some("1.2.3.4"));
    assert_eq!(version([Some("1"), None, Some("3"), None]).as_deref(), Some("1"));
    assert_eq!(version([Some("1"), Some(""), Some("3"), None]).as_deref(), Some("1"));
    assert_eq!(version([None, Some("2"), None, None]), None);
}
