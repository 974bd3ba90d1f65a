//! Which crate may know which: the arrows of the event's way point one way.

use serde_json::Value;

/// Each crate and our crates that it may depend on. A crate that is not here is an offence,
/// so that a new one has to think about its place.
const ALLOWED: &[(&str, &[&str])] = &[
    ("skidder-event", &[]),
    ("skidder-os", &[]),
    ("skidder-encode", &[]),
    ("skidder-netflow", &[]),
    ("skidder-profile", &[]),
    ("skidder-config", &["skidder-event", "skidder-os"]),
    ("skidder-log", &["skidder-os", "skidder-config"]),
    ("skidder-tls", &["skidder-os", "skidder-config"]),
    ("skidder-kerberos", &["skidder-config"]),
    ("skidder-net", &["skidder-os", "skidder-config", "skidder-tls", "skidder-kerberos"]),
    ("skidder-aws", &["skidder-os", "skidder-config"]),
    (
        "skidder-amazon",
        &["skidder-os", "skidder-config", "skidder-tls", "skidder-net", "skidder-aws"],
    ),
    ("skidder-azure", &["skidder-os", "skidder-config", "skidder-tls", "skidder-net"]),
    ("skidder-grpc", &["skidder-net"]),
    ("skidder-google", &["skidder-os", "skidder-config", "skidder-tls", "skidder-net"]),
    ("skidder-kibana", &["skidder-os", "skidder-config", "skidder-tls", "skidder-net"]),
    ("skidder-decode", &["skidder-os"]),
    ("skidder-journal", &["skidder-os"]),
    ("skidder-registry", &["skidder-os"]),
    ("skidder-parse", &["skidder-event"]),
    ("skidder-table", &["skidder-parse"]),
    ("skidder-modules", &["skidder-os", "skidder-config"]),
    ("skidder-processors", &["skidder-event", "skidder-config", "skidder-os", "skidder-parse"]),
    (
        "skidder-lookups",
        &[
            "skidder-event",
            "skidder-os",
            "skidder-config",
            "skidder-tls",
            "skidder-net",
            "skidder-aws",
            "skidder-processors",
        ],
    ),
    ("skidder-script", &["skidder-event", "skidder-os", "skidder-config", "skidder-processors"]),
    (
        "skidder-autodiscover",
        &["skidder-event", "skidder-os", "skidder-config", "skidder-tls", "skidder-processors"],
    ),
    (
        "skidder-read",
        &[
            "skidder-event",
            "skidder-os",
            "skidder-config",
            "skidder-decode",
            "skidder-registry",
            "skidder-parse",
            "skidder-processors",
        ],
    ),
    ("skidder-pipeline", &["skidder-event", "skidder-os", "skidder-registry"]),
    ("skidder-input", &["skidder-event", "skidder-os", "skidder-registry", "skidder-pipeline"]),
    (
        "skidder-input-file",
        &["skidder-event", "skidder-os", "skidder-registry", "skidder-read", "skidder-pipeline"],
    ),
    (
        "skidder-input-objects",
        &[
            "skidder-event",
            "skidder-os",
            "skidder-config",
            "skidder-net",
            "skidder-registry",
            "skidder-table",
            "skidder-read",
            "skidder-pipeline",
            "skidder-input",
            "skidder-input-file",
        ],
    ),
    (
        "skidder-inputs",
        &[
            "skidder-event",
            "skidder-os",
            "skidder-config",
            "skidder-decode",
            "skidder-journal",
            "skidder-netflow",
            "skidder-parse",
            "skidder-processors",
            "skidder-tls",
            "skidder-net",
            "skidder-read",
            "skidder-pipeline",
            "skidder-input",
        ],
    ),
    ("skidder-redis", &["skidder-os", "skidder-config", "skidder-tls", "skidder-net"]),
    (
        "skidder-outputs",
        &[
            "skidder-event",
            "skidder-os",
            "skidder-config",
            "skidder-encode",
            "skidder-tls",
            "skidder-net",
            "skidder-redis",
            "skidder-processors",
            "skidder-pipeline",
        ],
    ),
    (
        "skidder-output-elasticsearch",
        &[
            "skidder-event",
            "skidder-os",
            "skidder-config",
            "skidder-encode",
            "skidder-tls",
            "skidder-kerberos",
            "skidder-net",
            "skidder-kibana",
            "skidder-pipeline",
            "skidder-outputs",
        ],
    ),
    (
        "skidder-output-otlp",
        &[
            "skidder-event",
            "skidder-os",
            "skidder-config",
            "skidder-encode",
            "skidder-tls",
            "skidder-net",
            "skidder-grpc",
            "skidder-pipeline",
            "skidder-outputs",
        ],
    ),
    (
        "skidder-output-s3",
        &[
            "skidder-event",
            "skidder-os",
            "skidder-config",
            "skidder-tls",
            "skidder-net",
            "skidder-aws",
            "skidder-amazon",
            "skidder-pipeline",
            "skidder-outputs",
        ],
    ),
    ("skidder-kafka", &["skidder-os", "skidder-config", "skidder-tls", "skidder-net"]),
    (
        "skidder-input-redis",
        &[
            "skidder-event",
            "skidder-os",
            "skidder-config",
            "skidder-redis",
            "skidder-tls",
            "skidder-net",
            "skidder-registry",
            "skidder-pipeline",
            "skidder-input",
        ],
    ),
    ("skidder-amqp", &["skidder-net"]),
    (
        "skidder-input-eventhub",
        &[
            "skidder-event",
            "skidder-os",
            "skidder-config",
            "skidder-tls",
            "skidder-net",
            "skidder-amqp",
            "skidder-azure",
            "skidder-processors",
            "skidder-pipeline",
            "skidder-input",
        ],
    ),
    (
        "skidder-input-pubsub",
        &[
            "skidder-event",
            "skidder-os",
            "skidder-config",
            "skidder-tls",
            "skidder-net",
            "skidder-grpc",
            "skidder-google",
            "skidder-pipeline",
            "skidder-input",
        ],
    ),
    (
        "skidder-input-aws",
        &[
            "skidder-event",
            "skidder-os",
            "skidder-config",
            "skidder-tls",
            "skidder-net",
            "skidder-aws",
            "skidder-amazon",
            "skidder-registry",
            "skidder-read",
            "skidder-input",
            "skidder-input-objects",
        ],
    ),
    (
        "skidder-input-azure",
        &[
            "skidder-event",
            "skidder-os",
            "skidder-config",
            "skidder-tls",
            "skidder-net",
            "skidder-azure",
            "skidder-registry",
            "skidder-read",
            "skidder-pipeline",
            "skidder-input",
            "skidder-input-file",
            "skidder-input-objects",
        ],
    ),
    (
        "skidder-input-gcs",
        &[
            "skidder-event",
            "skidder-os",
            "skidder-config",
            "skidder-tls",
            "skidder-net",
            "skidder-google",
            "skidder-parse",
            "skidder-read",
            "skidder-input",
            "skidder-input-objects",
        ],
    ),
    (
        "skidder-input-kafka",
        &[
            "skidder-event",
            "skidder-os",
            "skidder-config",
            "skidder-kafka",
            "skidder-parse",
            "skidder-tls",
            "skidder-registry",
            "skidder-pipeline",
            "skidder-input",
        ],
    ),
    (
        "skidder-output-kafka",
        &[
            "skidder-kafka",
            "skidder-event",
            "skidder-os",
            "skidder-config",
            "skidder-tls",
            "skidder-net",
            "skidder-processors",
            "skidder-pipeline",
            "skidder-outputs",
        ],
    ),
    (
        "skidder-observe",
        &[
            "skidder-event",
            "skidder-os",
            "skidder-config",
            "skidder-log",
            "skidder-tls",
            "skidder-net",
            "skidder-decode",
            "skidder-read",
            "skidder-pipeline",
            "skidder-input",
            "skidder-input-file",
            "skidder-profile",
        ],
    ),
    (
        "skidder",
        &[
            "skidder-event",
            "skidder-os",
            "skidder-config",
            "skidder-log",
            "skidder-decode",
            "skidder-registry",
            "skidder-parse",
            "skidder-processors",
            "skidder-modules",
            "skidder-kibana",
            "skidder-net",
            "skidder-tls",
            "skidder-autodiscover",
            "skidder-lookups",
            "skidder-script",
            "skidder-read",
            "skidder-pipeline",
            "skidder-input",
            "skidder-input-file",
            "skidder-inputs",
            "skidder-outputs",
            "skidder-output-elasticsearch",
            "skidder-output-otlp",
            "skidder-output-s3",
            "skidder-output-kafka",
            "skidder-input-aws",
            "skidder-input-azure",
            "skidder-input-eventhub",
            "skidder-input-gcs",
            "skidder-input-kafka",
            "skidder-input-pubsub",
            "skidder-input-redis",
            "skidder-profile",
            "skidder-observe",
        ],
    ),
    // From outside: they run the program and are never part of it.
    ("skidder-testkit", &["skidder-os"]),
    (
        "skidder-contract",
        &["skidder-event", "skidder-os", "skidder-registry", "skidder-pipeline", "skidder-input"],
    ),
    // Numbered lines, for the benchmark and the first run.
    ("skidder-workload", &[]),
    // And the benchmark, which runs the handling of answers by itself too.
    (
        "skidder-bench",
        &[
            "skidder-event",
            "skidder-os",
            "skidder-config",
            "skidder-processors",
            "skidder-pipeline",
            "skidder-outputs",
            "skidder-output-elasticsearch",
            "skidder-contract",
            "skidder-net",
            "skidder-workload",
        ],
    ),
    (
        "skidder-golden",
        &["skidder-event", "skidder-os", "skidder-config", "skidder-processors", "skidder-testkit"],
    ),
    // From inside, without the program: all parts in a simulated world.
    (
        "skidder-simulate",
        &[
            "skidder-event",
            "skidder-os",
            "skidder-decode",
            "skidder-registry",
            "skidder-parse",
            "skidder-read",
            "skidder-pipeline",
            "skidder-input-file",
            "skidder-testkit",
        ],
    ),
    ("xtask", &["skidder-os", "skidder-workload"]),
];
/// What the tests of every crate may use, besides the crates before it in the list.
const FOR_TESTS: [&str; 3] = ["skidder-testkit", "skidder-golden", "skidder-contract"];

/// Compares the dependencies in the output of `cargo metadata` with the list.
pub(super) fn check(metadata: &Value, offences: &mut Vec<String>) {
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = package["name"].as_str().unwrap_or_default();
        let Some(position) = place_of(name) else {
            offences.push(format!("{name}: has no place among the arrows in xtask/src/tidy"));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let to = dependency["name"].as_str().unwrap_or_default();
            let Some(to_position) = place_of(to) else { continue };
            let for_tests = dependency["kind"].as_str() == Some("dev");
            let points_back = if for_tests {
                to_position >= position && !FOR_TESTS.contains(&to)
            } else {
                !ALLOWED[position].1.contains(&to)
            };
            if points_back {
                offences.push(format!("{name}: may not depend on {to}"));
            }
        }
    }
}

fn place_of(name: &str) -> Option<usize> {
    ALLOWED.iter().position(|(known, _)| *known == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn offences(name: &str, to: &str, kind: Option<&str>) -> usize {
        let dependency = json!({ "name": to, "kind": kind });
        let metadata = json!({ "packages": [{ "name": name, "dependencies": [dependency] }] });
        let mut offences = Vec::new();
        check(&metadata, &mut offences);
        offences.len()
    }

    #[test]
    fn arrows_that_point_back_are_offences() {
        assert_eq!(offences("skidder-outputs", "skidder-event", None), 0);
        assert_eq!(offences("skidder-outputs", "serde", None), 0);
        assert_eq!(offences("skidder-event", "skidder-os", None), 1);
        assert_eq!(offences("skidder-read", "skidder-outputs", None), 1);
        assert_eq!(offences("skidder-new", "serde", None), 1);
    }

    #[test]
    fn the_testkit_is_for_tests() {
        assert_eq!(offences("skidder-read", "skidder-testkit", Some("dev")), 0);
        assert_eq!(offences("skidder-read", "skidder-testkit", None), 1);
        assert_eq!(offences("skidder-outputs", "skidder-registry", Some("dev")), 0);
        assert_eq!(offences("skidder-registry", "skidder-outputs", Some("dev")), 1);
    }

    #[test]
    fn the_list_itself_has_no_circle() {
        for (position, (name, allowed)) in ALLOWED.iter().enumerate() {
            for to in *allowed {
                let other = ALLOWED.iter().position(|(known, _)| known == to);
                assert!(other.is_some_and(|other| other < position), "{name} -> {to}");
            }
        }
    }
}
