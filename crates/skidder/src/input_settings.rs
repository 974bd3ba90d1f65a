//! Settings that every input has.

use crate::processors::PROCESSOR;
use skidder_config::{Any, Group, Key, Part, Parts, settings};
use skidder_modules::MODULE_SETTINGS;
use skidder_processors::CONDITION;

mod events {
    use super::*;

    settings! {
        /// Fields and tags added to events: at the root for those of all inputs, in an input for its own.
        pub(crate) static EVENTS = Group::new("events", "What is added to events.");

        pub(crate) TAGS: Vec<String> = Key::<Vec<String>>::new("tags")
            .default(&[])
            .about("go to `tags` of every event: those at the root first, then those of the input");
        pub(crate) FIELDS: Any = Key::new("fields").map().default_words("`{}`").about(
            "go under `fields`; those of the input win. Empty values are left out",
        );
        pub(crate) FIELDS_UNDER_ROOT: bool = Key::new("fields_under_root")
            .default(false)
            .about("`fields` go to the root of the event instead, over what is there");
        pub(crate) PROCESSORS: Parts = Key::parts("processors", &PROCESSOR).default_words("`[]`").about(
            "[processors](processors.md): those of the input run first, then `agent.*`, `ecs.version` and \
             `host.name` are added, then those at the root run",
        );
    }
}

pub(crate) use events::{EVENTS, FIELDS, FIELDS_UNDER_ROOT, PROCESSORS, TAGS};

settings! {
    /// What every input has.
    pub(crate) static EVERY_INPUT = Group::new("input.*", "What every input has.")
        .include(&[&EVENTS, &MODULE_SETTINGS])
        // Options of the `log` input in another one: Filebeat ignores them, and so do we.
        // `skidder migrate` writes the modern form.
        .of_others(&[
        ("json.*", "of a `log` input; a `filestream` input has `parsers: [{ndjson: {…}}]`"),
        ("include_files", "a `filestream` input has `prospector.scanner.include_files`"),
        ("multiline.*", "of a `log` input; a `filestream` input has `parsers: [{multiline: {…}}]`"),
        ("scan_frequency", "of a `log` input; a `filestream` input has `prospector.scanner.check_interval`"),
        ("exclude_files", "of a `log` input; a `filestream` input has `prospector.scanner.exclude_files`"),
        ("symlinks", "of a `log` input; a `filestream` input has `prospector.scanner.symlinks`"),
        ("recursive_glob.*", "of a `log` input; a `filestream` input has `prospector.scanner.recursive_glob`"),
        ("tail_files", "of a `log` input; a `filestream` input has `ignore_inactive: since_first_start`"),
        ("harvester_buffer_size", "of a `log` input; a `filestream` input has `buffer_size`"),
        ("max_bytes", "of a `log` input; a `filestream` input has `message_max_bytes`"),
        ("backoff_factor", "of a `log` input; a `filestream` input doubles the pause"),
        ("max_backoff", "of a `log` input; a `filestream` input has `backoff.max`"),
        ("close_inactive", "of a `log` input; a `filestream` input has `close.on_state_change.inactive`"),
        ("close_renamed", "of a `log` input; a `filestream` input has `close.on_state_change.renamed`"),
        ("close_removed", "of a `log` input; a `filestream` input has `close.on_state_change.removed`"),
        ("close_eof", "of a `log` input; a `filestream` input has `close.reader.on_eof`"),
        ("close_timeout", "of a `log` input; a `filestream` input has `close.reader.after_interval`"),
        ("allow_deprecated_use", "it is for `log` and `container` inputs"),
        ("ignore_decoding_error", "it belongs below `ndjson` in `parsers`"),
        ("stream", "it is for `container` inputs; the parser `container` has it too"),
        ("format", "it is for `container` inputs; the parser `container` has it too"),
        ])
        .without_effect(&[
        ("force_close_files", "it went with Filebeat 5: see `close`"),
        ("close_older", "it went with Filebeat 5: see `close`"),
        ("document_type", "it went with Filebeat 6: use `fields` or `tags`"),
        ("input_type", "it went with Filebeat 6: use `type`"),
        ]);

    pub(crate) TYPE: String = Key::new("type")
        .default("log")
        .about("what the input reads: `filestream`, `tcp`, … An input without a type is a deprecated `log` input");
    pub(crate) ID: String = Key::new("id").default("").default_words("empty").about(
        "names the input in metrics and messages. Of a `filestream` input it is a part of every key in the registry: \
         changing it reads all files again, unless `take_over` names the old one. Two with one id are an error; none \
         is a warning. An input that gets an id goes on with the files that it had without",
    );
    pub(crate) ENABLED: bool =
        Key::new("enabled").default(true).about("`false`: nothing of the input is looked at");
    pub(crate) PIPELINE: String = Key::new("pipeline").about("`@metadata.pipeline`");
    pub(crate) INDEX: String = Key::new("index").about(
        "`@metadata.raw_index`; may hold `%{[agent.version]}`, `%{[agent.name]}` and the date of the event, \
         `%{+yyyy.MM.dd}`. *Cost*: with a date, one text an event; without, none",
    );
    pub(crate) DISABLE_HOST: bool =
        Key::new("publisher_pipeline.disable_host").default(false).about("no `host.name`");
    pub(crate) SERVICE_TYPE: String = Key::new("service.type").about("the field of that name");
    pub(crate) OUTPUTS: Any = Key::new("outputs").default_words("all").ours().about(
        "with [several outputs](settings.md#several-outputs-outputs-ours): the ids of those that the input feeds, each \
         perhaps with a condition: `[main, {id: archive, when.equals.kind: audit}]`. What a condition leaves out is \
         dropped for this output, counted as `not_for_output`. *Cost*: files are read once for each output; a \
         condition is looked at for each event",
    );
}

/// An item of [`OUTPUTS`] that is a map.
pub(crate) mod feed {
    use super::*;

    settings! {
        /// An output, and for which events.
        pub(crate) static FEED = Group::new("input.outputs", "An output that the input feeds.");

        pub(crate) ID: String = Key::new("id").required().about("the id of the output");
        pub(crate) WHEN: Part = Key::part("when", &CONDITION).about("for which events");
    }
}
