//! Which settings were read with a value: what tests use, observed while they run.
//!
//! A debug build appends each such setting once to a file of its process in the directory that the variable
//! [`VARIABLE`] names. A release build has none of this.

use super::Spec;

/// Names the directory of the files.
pub const VARIABLE: &str = "SKIDDER_SETTINGS_SEEN";

/// Name of the file in it that lists all settings, one in a line.
pub const DECLARED: &str = "declared";

/// How a setting stands in a file: the group and the name.
pub fn line(group: &str, name: &str) -> String {
    format!("{group} {name}\n")
}

/// Records that a setting has a value.
#[cfg(debug_assertions)]
pub(super) fn record(spec: &Spec) {
    use std::collections::BTreeSet;
    use std::fs::OpenOptions;
    use std::io::Write as _;
    use std::path::Path;
    use std::sync::Mutex;

    static SEEN: Mutex<BTreeSet<(&str, &str)>> = Mutex::new(BTreeSet::new());
    let Some(folder) = std::env::var_os(VARIABLE) else { return };
    let Some(group) = spec.group else { return };
    let is_new = SEEN.lock().is_ok_and(|mut seen| seen.insert((group.id, spec.name)));
    if !is_new {
        return;
    }
    let path = Path::new(&folder).join(format!("{}.txt", std::process::id()));
    let file = OpenOptions::new().create(true).append(true).open(path);
    let written = file.and_then(|mut file| file.write_all(line(group.id, spec.name).as_bytes()));
    debug_assert!(
        written.is_ok(),
        "cannot write to the folder that `{VARIABLE}` names: {written:?}"
    );
}

#[cfg(not(debug_assertions))]
pub(super) fn record(_: &Spec) {}
