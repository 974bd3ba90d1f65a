//! The processors that a configuration can name: those of every crate.

use skidder_config::{Group, Kinds};
use skidder_processors::{CHOICE, EVERY_PROCESSOR, Kind, own_kinds};

/// Those of other crates.
pub(crate) const OTHERS: [&[Kind]; 2] = [skidder_lookups::KINDS, SCRIPT];

#[cfg(feature = "script")]
const SCRIPT: &[Kind] = skidder_script::KINDS;

/// Says that the processor is not here.
#[cfg(not(feature = "script"))]
const SCRIPT: &[Kind] = &[("script", &NO_SCRIPT, |settings, _| {
    for key in settings.keys() {
        settings.accept(key);
    }
    let message = format!("`{}`: this program was built without scripts", settings.path());
    settings.problem("", message, "use one with the cargo feature `script`");
    None
})];

/// Settings of `script` in a program without it.
#[cfg(not(feature = "script"))]
static NO_SCRIPT: Group =
    Group::new("processor.script", "Not here: this program was built without scripts.").open();

/// An item of `processors`, `then` or `else`.
pub(crate) static PROCESSOR: Group =
    Group::new("processor", "A processor, by its name, or `if` with `then` and `else`.")
        .include(&[&CHOICE])
        .kinds(Kinds::by_name(kinds).with(&[&EVERY_PROCESSOR]));

fn kinds() -> Vec<(&'static str, &'static Group)> {
    let others = OTHERS.iter().copied().flatten();
    own_kinds().chain(others).map(|(name, group, _)| (*name, *group)).collect()
}
