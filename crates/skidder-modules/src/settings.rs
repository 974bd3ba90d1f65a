//! The settings of a module and of a fileset.

use skidder_config::{Any, Group, Key, settings};

settings! {
    /// A module: an item of `filebeat.modules`, or of a file in `modules.d`. All other names are filesets.
    pub static MODULE = Group::new("filebeat.modules", "A module; every other name in it is a fileset.");

    pub(crate) NAME: String = Key::new("module").required().about("the name of the module's folder");
    pub(crate) ENABLED: bool =
        Key::new("enabled").default(true).about("`false`: nothing of the module is looked at");
    pub(crate) PATH: Any = Key::new("path").about("no effect");
}

mod of_fileset {
    use super::*;

    settings! {
        /// A fileset of a module.
        pub static FILESET = Group::new("filebeat.modules.fileset", "A fileset of a module.");

        pub(crate) FILESET_ENABLED: bool = Key::new("enabled").default(true).about(
            "whether the fileset runs. A fileset that the module has and that is not named here does not run",
        );
        pub(crate) VAR: Any = Key::new("var").map().default_words("`{}`").about(
            "values of the variables that the manifest of the fileset declares: `var.paths: [/var/log/x.log]`",
        );
        pub(crate) INPUT: Any = Key::new("input").map().default_words("`{}`").about(
            "settings laid over those of the fileset's input: `processors` are added, `paths` replace, items of other \
             lists replace those at their place",
        );
    }
}

pub use of_fileset::FILESET;
pub(crate) use of_fileset::{FILESET_ENABLED, INPUT, VAR};

settings! {
    /// What modules set in the inputs that they make.
    pub static MODULE_SETTINGS = Group::new("input.module", "Which module made an input.");

    /// The module of an input.
    pub MODULE_NAME: String = Key::new("_module_name").about(
        "set by [modules](modules.md): `event.module`, the default of `service.type`, and the first part of \
         `event.dataset`",
    );
    /// The fileset of an input.
    pub FILESET_NAME: String = Key::new("_fileset_name")
        .about("set by [modules](modules.md): `fileset.name`, and the second part of `event.dataset`");
}
