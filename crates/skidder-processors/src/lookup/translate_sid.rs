//! `translate_sid`: names of Windows security identifiers, which only Windows can look up. Everywhere else
//! the start fails with an error, as in Filebeat, whose other builds do not know the processor.

use crate::fields::pairs::{optional_path, required_path};
use crate::plan::Processor;
use skidder_config::Section;
use std::sync::Arc;

/// Reads the settings, so that mistakes in them are reported as well, and refuses.
pub(crate) fn refuse(settings: &Section<'_>) -> Option<Arc<dyn Processor>> {
    required_path(settings, "field");
    let targets = ["account_name_target", "account_type_target", "domain_target"];
    let given = targets.iter().filter(|key| optional_path(settings, key).is_some()).count();
    if given == 0 && !targets.iter().any(|key| settings.has(key)) {
        let message = format!("`{}` has no target", settings.path());
        let hint = "set `account_name_target`, `account_type_target` or `domain_target`";
        settings.problem("", message, hint);
    }
    settings.bool("ignore_missing").or(false);
    settings.bool("ignore_failure").or(false);
    let message =
        format!("`{}`: security identifiers can only be looked up on Windows", settings.path());
    let hint = "remove the processor here; the identifier stays in its field";
    settings.problem("", message, hint);
    None
}
