//! The settings of `setup`.

use super::Enabled;
use skidder_config::{Any, Group, Key, OneOf, Part, settings};
use skidder_kibana::{DASHBOARDS, KIBANA};
use std::path::PathBuf;

/// Name and pattern of the template.
pub(super) const NAME: &str = "filebeat-%{[agent.version]}";

const NO_ALIAS: &str = "data streams have neither; `output.elasticsearch.index` names the stream";

const WORDS: &[(&str, Enabled)] =
    &[("true", Enabled::Yes), ("false", Enabled::No), ("auto", Enabled::Auto)];

pub(super) mod json {
    use super::*;

    settings! {
        /// `setup.template.json`.
        pub(crate) static JSON = Group::new("setup.template.json", "A template of your own.")
            .inline()
            .deprecated(&[("data_stream", "the first event makes the data stream")]);

        pub(crate) ENABLED: bool =
            Key::new("enabled").default(false).about("the template in `path`, as it is");
        pub(crate) PATH: PathBuf = Key::new("path").about("its file");
        pub(crate) NAME: String = Key::new("name").about("its name");
    }
}

pub(super) mod template {
    use super::*;

    settings! {
        /// `setup.template`.
        pub(crate) static TEMPLATE =
            Group::new("setup.template", "The index template, with a data stream.")
                .inline()
                .without_effect(&[("versions.*", "it went with Filebeat 7")]);

        pub(crate) ENABLED: bool =
            Key::new("enabled").default(true).about("an index template with a data stream");
        pub(crate) NAME: String =
            Key::new("name").default_words("`filebeat-%{[agent.version]}`").noun("a name").about(
                "only `agent.name` (`filebeat`) and `agent.version` vary in it. Needed, with `pattern`, for another \
                 `output.elasticsearch.index`: without them nothing is set up, with a warning",
            );
        pub(crate) PATTERN: String = Key::new("pattern")
            .default_words("`filebeat-%{[agent.version]}`")
            .noun("a name")
            .about("of the data streams that it is for");
        pub(crate) OVERWRITE: bool =
            Key::new("overwrite").default(false).about("also over one that is there");
        pub(crate) PRIORITY: u32 =
            Key::new("priority").default(super::super::read::PRIORITY).about("over other templates");
        pub(crate) TYPE: OneOf<()> =
            Key::one_of("type", &[("index", ())]).default("index").about("nothing else");
        pub(crate) FIELDS: PathBuf = Key::new("fields").about(
            "a `fields.yml` instead of our fields; relative to `path.config`, like all files here",
        );
        pub(crate) APPEND_FIELDS: Any =
            Key::new("append_fields").about("more fields, in the form of a `fields.yml`");
        pub(crate) INDEX: Any = Key::new("settings.index").about("put over ours");
        pub(crate) SOURCE: Any = Key::new("settings._source").about("put over ours");
        pub(crate) OWN: Part = Key::part("json", &json::JSON).about("a template of your own");
    }
}

pub(super) mod ilm {
    use super::*;

    settings! {
        /// `setup.ilm`.
        pub(crate) static ILM = Group::new("setup.ilm", "A lifecycle policy.")
            .inline()
            .deprecated(&[("rollover_alias", NO_ALIAS), ("pattern", NO_ALIAS)]);

        pub(crate) ENABLED: OneOf<Enabled> = Key::one_of("enabled", WORDS).default("auto").about(
            "a lifecycle policy, where the server has them; `true`: a server without is an error",
        );
        pub(crate) POLICY_NAME: String =
            Key::new("policy_name").default("filebeat").noun("a name").about("its name");
        pub(crate) CHECK_EXISTS: bool = Key::new("check_exists").default(true).about(
            "`false`: the policy is not looked for, and only put there with `overwrite`",
        );
        pub(crate) POLICY_FILE: PathBuf = Key::new("policy_file").about(
            "JSON; without, a new index comes after 50 GB or 30 days, and nothing is deleted",
        );
        pub(crate) OVERWRITE: bool =
            Key::new("overwrite").default(false).about("also over one that is there");
    }
}

pub(super) mod dsl {
    use super::*;

    // The lifecycle is a part of the template, and goes where that goes.
    settings! {
        /// `setup.dsl`.
        pub(crate) static DSL = Group::new("setup.dsl", "The lifecycle in the template.")
            .inline()
            .deprecated(&[
                ("data_stream_pattern", "see `setup.template`"),
                ("check_exists", "see `setup.template`"),
            ]);

        pub(crate) ENABLED: OneOf<Enabled> = Key::one_of("enabled", WORDS).default("auto").about(
            "Elasticsearch Serverless has no policies: the lifecycle is a part of the template",
        );
        pub(crate) POLICY_FILE: PathBuf =
            Key::new("policy_file").about("JSON; without, seven days are kept");
        pub(crate) OVERWRITE: bool =
            Key::new("overwrite").default(false).about("as `setup.template.overwrite`");
    }
}

settings! {
    /// `setup`.
    pub static SETUP = Group::new("setup", "What should exist in Elasticsearch before the first event.")
        .without_effect(&[("xpack.*", "what is set up is loaded with the rights of the output")]);

    pub(super) IN_TEMPLATE: Part = Key::part("template", &template::TEMPLATE).about("the index template");
    pub(super) IN_ILM: Part = Key::part("ilm", &ilm::ILM).about("a lifecycle policy");
    pub(super) IN_DSL: Part = Key::part("dsl", &dsl::DSL).about("the lifecycle in the template");
    pub(super) PIPELINES_ENABLED: bool = Key::new("pipelines.enabled").default(true).about(
        "ingest pipelines of [modules](modules.md) are loaded at the first connection; `false`: only by \
         `skidder setup --pipelines`",
    );
    /// `setup.dashboards`, which the program reads.
    pub SETUP_DASHBOARDS: Part = Key::part("dashboards", &DASHBOARDS).about("dashboards for Kibana");
    /// `setup.kibana`, which the program reads.
    pub SETUP_KIBANA: Part = Key::part("kibana", &KIBANA).about("the Kibana that gets the dashboards");
}
