//! Scripts that read messages of a queue of SQS: which objects they name. `aws-s3` has it as
//! `sqs.notification_parsing_script`.

use crate::session::{Program, Purpose, ScriptError, Session};
use crate::sources;
use skidder_config::{Any, Group, Key, Section, settings};
use skidder_processors::Context;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

settings! {
    /// Settings of such a script.
    pub static NOTIFICATION_SCRIPT = Group::new(
        "input.aws-s3.notification_parsing_script",
        "A program in JavaScript that reads messages of a queue.",
    )
    .include(&[&sources::SOURCES]);

    PARAMS: Any = Key::new("params")
        .default_words("none")
        .about("the argument of the program's function `register(params)`, which is called at the start");
    TIMEOUT: Duration = Key::new("timeout")
        .default_words("none")
        .about("how long `parse` may take for one message; then the program is stopped, and the message fails");
    MAX_CACHED_SESSIONS: usize = Key::new("max_cached_sessions")
        .default(4)
        .about("how many runtimes with the program loaded are kept");
}

/// An object that a message names. Texts are empty if the script sets none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScriptedObject {
    /// `SetAWSRegion`.
    pub region: String,
    /// `SetProvider`.
    pub provider: String,
    /// `SetS3BucketName`.
    pub bucket: String,
    /// `SetS3BucketARN`.
    pub arn: String,
    /// `SetS3ObjectKey`.
    pub key: String,
}

/// A script that reads messages, loaded.
pub struct NotificationScript {
    program: Program,
    /// Idle sessions.
    sessions: Mutex<Vec<Session>>,
    sessions_max: usize,
}

impl std::fmt::Debug for NotificationScript {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "script of {}", self.program.name)
    }
}

impl NotificationScript {
    /// Reads all settings. The program is loaded once to see that it can be; the section reports mistakes.
    pub fn read(settings: &Section<'_>, context: &Context) -> Option<Self> {
        let params = settings.get(&PARAMS).optional();
        let timeout = settings.get(&TIMEOUT).optional().filter(|timeout| !timeout.is_zero());
        let sessions_max = settings.get(&MAX_CACHED_SESSIONS).value();
        let (key, name, text) = sources::read(settings, &*context.fs)?;
        let params = params.filter(|params| match params {
            skidder_config::Value::Map(map) => !map.is_empty(),
            _ => true,
        });
        // Interrupted for itself: an input may end before the program does.
        let context = Context { interrupt: std::sync::Arc::default(), ..context.clone() };
        let purpose = Purpose::Notifications;
        let program = Program { purpose, name, text, params, timeout, context };
        match Session::load(&program) {
            Ok(session) => {
                let sessions = if sessions_max > 0 { vec![session] } else { Vec::new() };
                Some(Self { program, sessions: Mutex::new(sessions), sessions_max })
            }
            Err(ScriptError { message, .. }) => {
                let path = settings.path_of(key);
                settings.problem(key, format!("`{path}` cannot be loaded: {message}"), "");
                None
            }
        }
    }

    /// The objects that a message names; it may take its time.
    ///
    /// # Errors
    /// What the script throws, or why it was stopped: for people.
    pub fn parse(&self, message: &str) -> Result<Vec<ScriptedObject>, String> {
        let kept = self.sessions.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let session = match kept {
            Some(session) => session,
            None => Session::load(&self.program).map_err(|error| error.message)?,
        };
        let parsed = session.parse(message);
        if !parsed.as_ref().is_err_and(|error| error.stopped) {
            let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
            if sessions.len() < self.sessions_max {
                sessions.push(session);
            }
        }
        let json = parsed.map_err(|error| error.message)?;
        let objects: Vec<[String; 5]> =
            serde_json::from_str(&json).map_err(|error| error.to_string())?;
        let object = |[region, provider, bucket, arn, key]: [String; 5]| ScriptedObject {
            region,
            provider,
            bucket,
            arn,
            key,
        };
        Ok(objects.into_iter().map(object).collect())
    }

    /// Stops what runs, and what is run from now on.
    pub fn stop(&self) {
        self.program.context.interrupt.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skidder_config::{Problems, Settings};
    use skidder_os::{RealFs, SystemClock};
    use std::sync::Arc;

    fn read(settings: &str) -> Result<NotificationScript, String> {
        let problems = Problems::new();
        let yaml = Settings::parse("x", settings).expect("YAML");
        let section = yaml.root(&problems);
        section.declared_by(&NOTIFICATION_SCRIPT);
        let context = Context::new(Arc::new(RealFs), Arc::new(SystemClock::new()));
        let script = NotificationScript::read(&section, &context);
        section.finish();
        script.ok_or_else(|| problems.to_string())
    }

    fn script(body: &str, more: &str) -> Result<NotificationScript, String> {
        read(&format!("{{source: 'function parse(n) {{ {body} }}', {more}}}"))
    }

    #[test]
    fn a_script_says_which_objects_a_message_names() {
        let body = "return JSON.parse(n).files.map(function (f) { var e = new S3EventV2(); e.SetS3BucketName(f.b); \
                    e.SetS3ObjectKey(f.k); e.SetAWSRegion(\"r\"); e.SetProvider(\"p\"); e.SetEventName(\"n\"); \
                    e.SetEventSource(\"s\"); e.SetS3BucketARN(\"a\"); return e; });";
        let script = script(body, "").expect("it can be loaded");
        let object = |key: &str| ScriptedObject {
            region: "r".to_owned(),
            provider: "p".to_owned(),
            bucket: "logs".to_owned(),
            arn: "a".to_owned(),
            key: key.to_owned(),
        };
        let message = r#"{"files": [{"b": "logs", "k": "a b%20"}, {"b": "logs", "k": "ü"}]}"#;
        assert_eq!(script.parse(message), Ok(vec![object("a b%20"), object("ü")]));
        assert_eq!(script.parse(r#"{"files": []}"#), Ok(Vec::new()));
        assert!(script.parse("no JSON").is_err_and(|error| error.contains("SyntaxError")));
        assert_eq!(script.parse(message).map(|all| all.len()), Ok(2), "it is as good as before");
    }

    #[test]
    fn parameters_are_registered_and_nothing_returned_is_no_object() {
        let text = "{source: 'var p; function register(given) { p = given.bucket; } function parse(n) { if (n === \"x\") \
                    return; var e = new S3EventV2(); e.SetS3BucketName(p); return [e]; }', params: {bucket: b}}";
        let script = read(text).expect("it can be loaded");
        assert_eq!(script.parse("x"), Ok(Vec::new()));
        assert_eq!(script.parse("y").map(|all| all[0].bucket.clone()), Ok("b".to_owned()));
    }

    #[test]
    fn what_is_wrong_with_a_script_is_said_at_the_start_or_with_the_message() {
        for (text, expected) in [
            ("{source: 'var x = 1;'}", "parse function not found"),
            ("{source: 'var parse = 1;'}", "parse is not a function"),
            ("{source: 'function parse('}", "cannot be loaded"),
            ("{source: 'function parse() {}', params: {a: 1}}", "no register function"),
            ("{source: 'function parse() {} function test() { throw new Error(\"no\"); }'}", "no"),
            ("{timeout: 1s}", "has no script"),
            ("{source: 'x', file: y.js}", "more than one script"),
        ] {
            let error = read(text).expect_err(text);
            assert!(error.contains(expected), "{text}: {error}");
        }
        for (body, expected) in [
            ("return 1;", "no list of S3EventV2"),
            ("return [{}];", "no S3EventV2"),
            ("new XMLDecoder(n);", "XMLDecoder is not supported"),
            ("new S3EventV2(1);", "takes no arguments"),
        ] {
            let error = script(body, "").expect("it can be loaded").parse("n").expect_err(body);
            assert!(error.contains(expected), "{body}: {error}");
        }
    }

    #[test]
    fn a_script_that_takes_too_long_is_stopped() {
        let body = "while (n === \"slow\") {} return [];";
        let endless = script(body, "timeout: 50ms").expect("it can be loaded");
        assert_eq!(endless.parse("slow"), Err("javascript parser execution timeout".to_owned()));
        assert_eq!(endless.parse("quick"), Ok(Vec::new()));
        let endless = Arc::new(script(body, "").expect("it can be loaded"));
        let runs = Arc::clone(&endless);
        let run = std::thread::spawn(move || runs.parse("slow"));
        endless.stop();
        assert!(run.join().expect("no panic").is_err());
    }
}
