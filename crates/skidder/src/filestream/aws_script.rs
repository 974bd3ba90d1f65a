//! `sqs.notification_parsing_script` of `aws-s3`: a script that reads the messages of a queue.

#[cfg(not(feature = "script"))]
use skidder_config::Group;
use skidder_config::Section;
use skidder_input_aws::ParseNotifications;
use skidder_inputs::Context;
use std::sync::Arc;

#[cfg(feature = "script")]
mod with {
    use skidder_config::{Group, Key, Part, settings};
    use skidder_input_aws::{NamedObject, ParseNotifications};
    use skidder_script::{NOTIFICATION_SCRIPT, NotificationScript, ScriptedObject};

    settings! {
        /// The script.
        pub(in crate::filestream) static SCRIPTED = Group::new("input.aws-s3.script", "A script that reads messages.");

        pub(super) SCRIPT: Part = Key::part("sqs.notification_parsing_script", &NOTIFICATION_SCRIPT)
            .about("a program in JavaScript that says which objects a message names, instead of the formats of Amazon");
    }

    /// The script, for the input.
    #[derive(Debug)]
    pub(super) struct Script(pub(super) NotificationScript);

    impl ParseNotifications for Script {
        fn parse(&self, message: &str) -> Result<Vec<NamedObject>, String> {
            let named = |object: ScriptedObject| {
                let ScriptedObject { region, provider, bucket, arn, key } = object;
                NamedObject { region, provider, bucket, arn, key }
            };
            Ok(self.0.parse(message)?.into_iter().map(named).collect())
        }

        fn stop(&self) {
            self.0.stop();
        }
    }
}

/// Settings of the script.
#[cfg(feature = "script")]
pub(super) use with::SCRIPTED;

/// The same in a program without scripts.
#[cfg(not(feature = "script"))]
pub(super) static SCRIPTED: Group =
    Group::new("input.aws-s3.script", "Not here: this program was built without scripts.")
        .unsupported(&[(
            "sqs.notification_parsing_script.*",
            "this program was built without scripts; use one with the cargo feature `script`",
        )]);

/// The script, if the settings have one. If it cannot be loaded, the problems are reported.
#[cfg(feature = "script")]
pub(super) fn read(
    section: &Section<'_>,
    context: &Context,
) -> Result<Option<Arc<dyn ParseNotifications>>, ()> {
    let Some(settings) = section.optional_part(&with::SCRIPT) else { return Ok(None) };
    let processing =
        skidder_processors::Context::new(Arc::clone(&context.fs), Arc::clone(&context.clock));
    let script = skidder_script::NotificationScript::read(&settings, &processing);
    settings.finish();
    Ok(Some(Arc::new(with::Script(script.ok_or(())?))))
}

/// There is none here.
#[cfg(not(feature = "script"))]
pub(super) fn read(
    _: &Section<'_>,
    _: &Context,
) -> Result<Option<Arc<dyn ParseNotifications>>, ()> {
    Ok(None)
}
