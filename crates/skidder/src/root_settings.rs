//! The settings at the root, and those of `filebeat` other than the inputs.

use crate::config_files::{AT_FILEBEAT, OLDER};
use skidder_config::{Any, Group, Key, OneOf, PLACES, Part, settings};
use skidder_event::Precision;
use std::path::PathBuf;
use std::time::Duration;

/// Default of `filebeat.shutdown_timeout`. Filebeat waits for nothing by default and repeats what was in
/// flight; a healthy output needs milliseconds.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

const OWN_REGISTRY: &str = "the registry is skidder's own";

settings! {
    /// Settings directly at the root.
    pub(crate) static ROOT = Group::new("root", "Settings of the whole program.")
        .include(&[&PLACES])
        .deprecated(&[("max_start_delay", "skidder starts at once")])
        .without_effect(&[
            ("seccomp.*", "skidder leaves system calls to the service manager"),
            ("xpack.*", "use `monitoring`"),
            ("spool_size", "it went with Filebeat 6: `queue.mem.events`"),
            ("idle_timeout", "it went with Filebeat 6: `queue.mem.flush.timeout`"),
            ("registry_file", "the registry is a folder since Filebeat 7, `filebeat.registry.path`"),
            ("shipper.*", "it went with Filebeat 5: `name` and `tags`"),
            ("geoip.*", "it went with Filebeat 5: an ingest pipeline finds places"),
            ("bulk_queue_size", "it went with Filebeat 5: `queue.mem.events`"),
            ("queue_size", "it went with Filebeat 5: `queue.mem.events`"),
            ("ignore_outgoing", "it is a setting of Packetbeat"),
            ("refresh_topology_freq", "it went with Filebeat 5"),
            ("topology_expire", "it went with Filebeat 5"),
            ("apm-server.*", "it is for the APM server"),
            ("metricbeat.*", "it is for Metricbeat"),
        ]);

    pub(crate) NAME: String =
        Key::new("name").default_words("the host's name").about("`agent.name` and `host.name`");
    pub(crate) PRECISION: OneOf<Precision> = Key::one_of(
        "timestamp.precision",
        &[
            ("millisecond", Precision::Millisecond),
            ("microsecond", Precision::Microsecond),
            ("nanosecond", Precision::Nanosecond),
        ],
    )
    .default("millisecond")
    .about("of `@timestamp`: `millisecond`, `microsecond`, `nanosecond`");
    pub(crate) MAX_PROCS: usize = Key::new("max_procs")
        .default(0)
        .default_words("cores")
        .about("threads that read, decode, split and process. 0 = default");
    pub(crate) INSTRUMENTATION: Any = Key::new("instrumentation").map().about("refused if it is `enabled`");
    pub(crate) MANAGEMENT: Any = Key::new("management").map().about("refused if it is `enabled`");
    pub(crate) FQDN: Any =
        Key::new("features.fqdn").about("refused if it is `enabled`: `name` names the host");
}

pub(crate) mod registry {
    use super::*;

    settings! {
        /// `filebeat.registry`.
        pub(crate) static REGISTRY = Group::new("filebeat.registry", "What is remembered of files.")
            .inline()
            .unsupported(&[
                ("backend", OWN_REGISTRY),
                ("otel_file_storage.*", OWN_REGISTRY),
                ("migrate_file", OWN_REGISTRY),
            ])
            .deprecated(&[("file_permissions", "registry files are only for their owner (0600)")]);

        pub(crate) PATH: PathBuf = Key::new("path")
            .default("registry")
            .about("folder of the registry, relative to `path.data`; `filebeat` is appended");
        pub(crate) FLUSH: Duration = Key::new("flush").default(Duration::from_secs(1)).about(
            "how long after it moved a cursor is saved. Shorter: fewer lines twice after a crash, more syncs. Less \
             than 10 ms counts as 10 ms",
        );
    }
}

settings! {
    /// Settings in `filebeat` other than the inputs.
    pub(crate) static BESIDE_INPUTS = Group::new("filebeat.own", "Registry, files with inputs, the stop.")
        .include(&[&AT_FILEBEAT])
        .unsupported(&[
            ("prospectors", OLDER),
            ("registry_file", OLDER),
            ("spool_size", OLDER),
            ("idle_timeout", OLDER),
            ("config_dir", OLDER),
        ])
        .without_effect(&[
            ("publish_async", "requests are sent while others are made, always"),
        ]);

    pub(crate) IN_REGISTRY: Part =
        Key::part("registry", &registry::REGISTRY).about("what is remembered of files");
    pub(crate) MODULES: Any = Key::new("modules").default_words("`[]`").about(
        "a list of [modules](modules.md), each with its filesets: `- {module: nginx, access.enabled: true}`",
    );
    pub(crate) MODULES_PATH: PathBuf = Key::new("modules_path")
        .ours()
        .about(
            "folder of your own [modules](modules.md), which win over those in the other folders; relative to \
             `path.home`",
        );
    pub(crate) OVERWRITE: bool = Key::new("overwrite_pipelines").default(false).about(
        "ingest pipelines of modules replace those that the server has at the start and at a reload",
    );
    pub(crate) AUTODISCOVER: Part = Key::part("autodiscover", &skidder_autodiscover::AUTODISCOVER)
        .about("[inputs for containers and pods](hints.md), as they come and go");
    pub(crate) SHUTDOWN: Duration = Key::new("shutdown_timeout")
        .default(SHUTDOWN_TIMEOUT)
        .differs("Filebeat: 0")
        .about("longest wait for verdicts at a stop ([0006](decisions/0006-shutdown-timeout.md))");
}
