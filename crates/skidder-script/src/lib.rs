//! The processor `script`: programs in JavaScript that work on events, as in Filebeat.
//!
//! Programs run on QuickJS (`rquickjs`), which understands all that was written for Filebeat's
//! ES5.1 and more. A *session* is one runtime with the program loaded; a thread takes one for each
//! event and puts it back, so that there are as many as threads that need one at the same time, and
//! at most `max_cached_sessions` are kept. What a program does to an event it does to the event
//! itself (`current.rs`); a program that fails, or runs out of its time or memory, has done
//! nothing.
//!
//! Scripts that read notifications of `aws-s3` run in the same way (`notifications.rs`).

mod convert;
mod current;
mod native;
mod notifications;
mod processor;
mod session;
mod sources;

pub use notifications::{NOTIFICATION_SCRIPT, NotificationScript, ScriptedObject};

use skidder_processors::{Kind, shared};

/// Those that a configuration can name; for [`skidder_processors::Context::with`].
pub const KINDS: &[Kind] = &[("script", &processor::SCRIPT, |settings, context| {
    shared(processor::Script::read(settings, context))
})];
