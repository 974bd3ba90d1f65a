//! `translate_sid`: names of Windows security identifiers, which only Windows can look up. Everywhere else
//! the start fails with an error, as in Filebeat, whose other builds do not know the processor.

use crate::fields::pairs::{optional_path, required_path};
use crate::plan::Processor;
use skidder_config::{Group, Key, Section, settings};
use std::sync::Arc;

settings! {
    /// Settings of `translate_sid`.
    pub(crate) static TRANSLATE_SID = Group::new("processor.translate_sid", "Looks up the name of a Windows security identifier.");

    FIELD: String = Key::new("field")
        .required()
        .about("the field with the identifier");
    ACCOUNT_NAME_TARGET: String = Key::new("account_name_target")
        .about("where the name of the account goes");
    ACCOUNT_TYPE_TARGET: String = Key::new("account_type_target")
        .about("where its type goes");
    DOMAIN_TARGET: String = Key::new("domain_target")
        .about("where its domain goes");
    IGNORE_MISSING: bool = Key::new("ignore_missing")
        .default(false)
        .about("a missing `field` is not a failure");
    IGNORE_FAILURE: bool = Key::new("ignore_failure")
        .default(false)
        .about("nothing is a failure");
}

/// Reads the settings, so that mistakes in them are reported as well, and refuses.
pub(crate) fn refuse(settings: &Section<'_>) -> Option<Arc<dyn Processor>> {
    required_path(settings, &FIELD);
    let targets = [&ACCOUNT_NAME_TARGET, &ACCOUNT_TYPE_TARGET, &DOMAIN_TARGET];
    let given = targets.iter().filter(|key| optional_path(settings, key).is_some()).count();
    if given == 0 && !targets.iter().any(|key| settings.has_key(key)) {
        let message = format!("`{}` has no target", settings.path());
        let hint = "set `account_name_target`, `account_type_target` or `domain_target`";
        settings.problem("", message, hint);
    }
    settings.get(&IGNORE_MISSING).value();
    settings.get(&IGNORE_FAILURE).value();
    let message =
        format!("`{}`: security identifiers can only be looked up on Windows", settings.path());
    let hint = "remove the processor here; the identifier stays in its field";
    settings.problem("", message, hint);
    None
}
