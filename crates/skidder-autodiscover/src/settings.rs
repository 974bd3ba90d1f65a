//! The settings of `filebeat.autodiscover`.

use skidder_config::{Group, Key, Kinds, Parts, settings};

settings! {
    /// `filebeat.autodiscover`.
    pub static AUTODISCOVER = Group::new("filebeat.autodiscover", "Inputs for containers and pods, as they come and go.");

    pub(crate) PROVIDERS: Parts =
        Key::parts("providers", &provider::PROVIDER).about("where containers are found, each with its rules");
}

pub(crate) mod nomad;

pub(crate) mod provider {
    use super::{Group, Kinds};
    use crate::settings::{common, docker, jolokia, kubernetes, nomad};
    use skidder_config::{Key, settings};

    /// An item of `providers`.
    pub(crate) static PROVIDER: Group =
        Group::new("autodiscover.provider", "Where containers are found.")
            .kinds(Kinds::by_tag("type", "", kinds).with(&[&OF_TYPE, &common::COMMON]));

    fn kinds() -> Vec<(&'static str, &'static Group)> {
        vec![
            ("docker", &docker::DOCKER),
            ("kubernetes", &kubernetes::KUBERNETES),
            ("nomad", &nomad::NOMAD),
            ("jolokia", &jolokia::JOLOKIA),
        ]
    }

    settings! {
        /// The kind of a provider.
        pub(crate) static OF_TYPE = Group::new("autodiscover.type", "The kind of a provider.");

        pub(crate) TYPE: String =
            Key::new("type").required().about("`docker`, `kubernetes`, `nomad` or `jolokia`");
    }
}

pub(crate) mod common {
    use skidder_config::{Any, Group, Key, Part, Parts, settings};
    use skidder_processors::CONDITION;
    use std::time::Duration;

    settings! {
        /// What every provider has.
        pub(crate) static COMMON = Group::new("autodiscover.common", "What every provider has.").without_effect(&[
                ("enabled", "leave a provider out to turn it off"),
            ])
            .unsupported(&[
            ("builders.*", "use `hints`, which is the only builder of Filebeat"),
        ]);

        pub(crate) TEMPLATES: Parts = Key::parts("templates", &TEMPLATE).default_words("none").about(
            "inputs for the containers that meet a condition; all templates that match apply. Where none gives an \
             input, hints are used",
        );
        pub(crate) HINTS: Part = Key::part("hints", &HINTS_GROUP).about("inputs that labels or annotations of a container describe");
        pub(crate) APPENDERS: Parts = Key::parts("appenders", &APPENDER)
            .default_words("none")
            .about("settings that are added to the inputs of containers that meet a condition");
        pub(crate) PREFIX: String = Key::new("prefix")
            .default("co.elastic")
            .about("how the names of hints begin: `co.elastic.logs/enabled`");
        pub(crate) CLEANUP_TIMEOUT: Duration = Key::new("cleanup_timeout")
            .default(Duration::from_mins(1))
            .default_words("`1m`; `0s` for `jolokia`")
            .about("how long inputs of a container run on after it has ended, so that its last lines are read");
    }

    settings! {
        /// An item of `templates`.
        static TEMPLATE = Group::new("autodiscover.template", "Inputs for the containers that meet a condition.");

        pub(crate) CONDITION_OF: Part = Key::part("condition", &CONDITION).default_words("every container").about(
            "on the facts of a container: `docker.container.*`, `kubernetes.*`, `nomad.*`, `container.*`, `host`, `port`",
        );
        pub(crate) CONFIG: Any = Key::new("config").about(
            "a list of inputs. `${data.FIELD}` stands for a fact of the container, `${data.FIELD:default}` has a \
             default; an input with one that is missing does not run",
        );
    }

    settings! {
        /// `hints`.
        static HINTS_GROUP = Group::new("autodiscover.hints", "Inputs that labels or annotations describe.");

        pub(crate) ENABLED: bool = Key::new("enabled")
            .default(true)
            .default_words("`true`, if `hints` is there")
            .about("hints are looked at");
        pub(crate) KEY: String =
            Key::new("key").default("logs").about("the word behind the prefix: `co.elastic.logs/…`");
        pub(crate) DEFAULT_CONFIG: Any = Key::new("default_config").map().default_words("a `filestream` input").about(
            "the input that hints add to. With `enabled: false`, only containers with the hint `enabled: true` are \
             read; alone, it keeps the built-in input",
        );
        pub(crate) ALLOWS: bool = Key::new("input_allow_list.enabled").default(false).ours().about(
            "hints are limited: to the types of `input_allow_list.types`, to files below the folders of \
             `default_config`, and to processors other than `script`",
        );
        pub(crate) ALLOWED_TYPES: Vec<String> = Key::<Vec<String>>::new("input_allow_list.types")
            .default(&["filestream", "container", "log"])
            .ours()
            .about("types that the hint `raw` may have");
    }

    settings! {
        /// An item of `appenders`.
        static APPENDER = Group::new("autodiscover.appender", "Settings that are added to made inputs.");

        pub(crate) APPENDER_TYPE: String = Key::new("type").required().about("`config`, the only one");
        pub(crate) APPENDER_CONDITION: Part = Key::part("condition", &CONDITION)
            .default_words("every container")
            .about("as in `templates`");
        pub(crate) APPENDED: Any = Key::new("config").map().about(
            "settings of an input, laid upon every input of the container: maps are merged, lists item by item, \
             anything else is replaced",
        );
    }
}

pub(crate) mod docker {
    use skidder_config::{Group, Key, Part, settings};

    settings! {
        /// The provider `docker`.
        pub(crate) static DOCKER = Group::new("autodiscover.docker", "Containers of Docker.");

        pub(crate) HOST: String = Key::new("host")
            .default("unix:///var/run/docker.sock")
            .about("where Docker listens: `unix://`, `tcp://`, `http://` or `https://`");
        pub(crate) SSL: Part = Key::part("ssl", &OWN_SSL).about(
            "[TLS](outputs.md#ssl), as in outputs; `certificate_authority` is one more of the authorities",
        );
        pub(crate) DEDOT: bool = Key::new("labels.dedot").default(true).about(
            "dots in names of labels become `_` in events; conditions and variables always see levels",
        );
    }

    settings! {
        /// `ssl` of Docker.
        static OWN_SSL = Group::new("autodiscover.ssl", "TLS of Docker.").include(&[&skidder_tls::SSL]);

        pub(crate) CERTIFICATE_AUTHORITY: String =
            Key::new("certificate_authority").about("one more of `certificate_authorities`");
    }
}

pub(crate) mod jolokia {
    use crate::jolokia::{GRACE_PERIOD as GRACE, INTERVAL as PAUSE, PROBE_TIMEOUT as PROBE};
    use skidder_config::{Group, Key, Parts, settings};
    use std::time::Duration;

    /// A duration that is 0 would mean a query without a pause.
    const SHORTEST: Duration = Duration::from_millis(1);
    const LONGEST: Duration = Duration::from_hours(24);

    settings! {
        /// The provider `jolokia`.
        pub(crate) static JOLOKIA = Group::new("autodiscover.jolokia", "JVMs with an agent of Jolokia, found by multicast.")
            .without_effect(&[
                ("hints.*", "agents of Jolokia have no labels; write `templates`"),
                ("prefix", "agents of Jolokia have no labels; write `templates`"),
            ]);

        pub(crate) INTERFACES: Parts = Key::parts("interfaces", &INTERFACE)
            .default_words("`name: any`")
            .about("network interfaces on which agents are searched");
    }

    settings! {
        /// An item of `interfaces`.
        static INTERFACE = Group::new("autodiscover.jolokia.interface", "Network interfaces on which agents are searched.");

        pub(crate) NAME: String = Key::new("name").required().about(
            "the name of an interface, the beginning of names with `*` behind it, or `any`; those without an IPv4 \
             address are left out",
        );
        pub(crate) INTERVAL: Duration = Key::new("interval")
            .default(PAUSE)
            .range(SHORTEST, LONGEST)
            .about("the pause between two queries");
        pub(crate) PROBE_TIMEOUT: Duration = Key::new("probe_timeout")
            .default(PROBE)
            .range(SHORTEST, LONGEST)
            .about("how long answers to a query are received; not longer than `interval`");
        pub(crate) GRACE_PERIOD: Duration = Key::new("grace_period")
            .default(GRACE)
            .range(SHORTEST, LONGEST)
            .about("an agent that has not answered for this long is gone; longer than `interval`");
    }
}

pub(crate) mod kubernetes {
    use crate::provider::{Resource, Scope};
    use skidder_config::{Group, Key, OneOf, Part, settings};
    use std::time::Duration;

    settings! {
        /// The provider `kubernetes`.
        pub(crate) static KUBERNETES = Group::new("autodiscover.kubernetes", "Pods, services or nodes of Kubernetes.")
            .include(&[&SELECTION])
            .without_effect(&[
                ("in_cluster", "without `kube_config`, the service account of the pod is used"),
                ("include_pod_uid", "events always have it"),
                ("include_creator_metadata", "events always have it"),
            ]);

        pub(crate) NODE: String = Key::new("node")
            .default_words("`NODE_NAME`, the node of the pod that skidder runs in, or the name of the host")
            .about("the node whose pods are followed");
        pub(crate) NODE_BEFORE: String = Key::new("host")
            .default_words("`node`")
            .about("of an older Filebeat, where it named the node: has no effect, with a warning if it is another one");
        pub(crate) RESOURCE: OneOf<Resource> = Key::one_of(
            "resource",
            &[("pod", Resource::Pod), ("node", Resource::Node), ("service", Resource::Service)],
        )
        .default("pod")
        .about("what is followed: `pod`, `node` or `service`");
        pub(crate) SCOPE: OneOf<Scope> = Key::one_of("scope", &[("node", Scope::Node), ("cluster", Scope::Cluster)])
            .default_words("`node`; `cluster` for services")
            .about("whether one node is followed, or all");
        pub(crate) NAMESPACE: String =
            Key::new("namespace").default_words("all").about("only objects of this namespace");
        pub(crate) KUBE_CONFIG: String = Key::new("kube_config")
            .default_words("that of a pod in the cluster")
            .about("a kubeconfig file; its current context is used");
        pub(crate) USE_KUBEADM: bool = Key::new("use_kubeadm")
            .default(true)
            .about("the name of the cluster is taken from what kubeadm has written down");
        pub(crate) QPS: f64 = Key::new("kube_client_options.qps")
            .default(5.0)
            .range(0.1, 1000.0)
            .about("requests to the API a second");
        pub(crate) BURST: u32 =
            Key::new("kube_client_options.burst").default(10).range(1, 10_000).about("requests at once");
        pub(crate) SYNC_PERIOD: Duration = Key::new("sync_period")
            .default(Duration::from_mins(10))
            .about("how long listing all objects may take");
        pub(crate) ADD_RESOURCE_METADATA: Part =
            Key::part("add_resource_metadata", &RESOURCES).about("what is around a pod");
        pub(crate) LABELS_DEDOT: bool = Key::new("labels.dedot")
            .default(true)
            .about("dots in names of labels become `_` in events; conditions and variables always see levels");
        pub(crate) ANNOTATIONS_DEDOT: bool =
            Key::new("annotations.dedot").default(true).about("the same for annotations");
        pub(crate) UNIQUE: bool = Key::new("unique").default(false).about(
            "only the instance that holds a lease runs the templates, once in the cluster; needs `scope: cluster`. \
             Templates see `unique: \"true\"` and no pods",
        );
        pub(crate) LEASE: String =
            Key::new("leader_lease").default("filebeat-cluster-leader").about("the name of the lease");
        pub(crate) LEASE_DURATION: Duration = Key::new("leader_leaseduration")
            .default(Duration::from_secs(15))
            .about("how long a lease holds without renewal");
        pub(crate) RENEW_DEADLINE: Duration = Key::new("leader_renewdeadline")
            .default(Duration::from_secs(10))
            .about("how long the holder tries to renew it");
        pub(crate) RETRY_PERIOD: Duration = Key::new("leader_retryperiod")
            .default(Duration::from_secs(2))
            .about("the pause between two attempts");
    }

    settings! {
        /// `add_resource_metadata`.
        static RESOURCES = Group::new("autodiscover.resources", "What is around a pod.").inline();

        pub(crate) NAMESPACES: Part = Key::part("namespace", &AROUND)
            .default_words("`enabled: true`")
            .about("`namespace_uid`, `namespace_labels`, `namespace_annotations`; annotations of a namespace are \
                    hints for its pods");
        pub(crate) NODES: Part = Key::part("node", &AROUND)
            .default_words("`enabled: true`")
            .about("`node.name`, `.uid`, `.hostname`, `.labels`, `.annotations`");
        pub(crate) DEPLOYMENT: bool =
            Key::new("deployment").default(false).about("the deployment above a replica set is looked up");
        pub(crate) CRONJOB: bool = Key::new("cronjob").default(false).about("the cron job above a job is looked up");
    }

    settings! {
        /// The objects around a pod.
        static AROUND = Group::new("autodiscover.around", "What is around a pod.")
            .include(&[&SELECTION, &AROUND_DEDOT]);

        pub(crate) ENABLED: bool = Key::new("enabled").default(true).about("whether it is looked at");
    }

    settings! {
        /// Dots in names around a pod.
        static AROUND_DEDOT = Group::new("autodiscover.dedot", "Dots in names.");

        pub(crate) AROUND_LABELS_DEDOT: bool =
            Key::new("labels.dedot").default(true).about("dots in names of labels become `_` in events");
        pub(crate) AROUND_ANNOTATIONS_DEDOT: bool =
            Key::new("annotations.dedot").default(true).about("the same for annotations");
    }

    settings! {
        /// Which labels and annotations events carry.
        static SELECTION = Group::new("autodiscover.selection", "Which labels and annotations events carry.");

        pub(crate) INCLUDE_LABELS: Vec<String> =
            Key::new("include_labels").default_words("all").about("labels that events carry");
        pub(crate) EXCLUDE_LABELS: Vec<String> =
            Key::new("exclude_labels").default_words("none").about("labels that events do not carry");
        pub(crate) INCLUDE_ANNOTATIONS: Vec<String> =
            Key::new("include_annotations").default_words("none").about("annotations that events carry");
        pub(crate) REGEX_INCLUDE: bool = Key::new("use_regex_include")
            .default(false)
            .about("`include_labels` and `include_annotations` are regular expressions");
        pub(crate) REGEX_EXCLUDE: bool =
            Key::new("use_regex_exclude").default(false).about("`exclude_labels` are regular expressions");
    }
}
