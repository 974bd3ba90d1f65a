//! Outputs in crates of their own: from the name in `output.<name>` to a constructor.

use skidder_config::{Group, Key, Part, Section, settings};
use skidder_output_elasticsearch::{ELASTICSEARCH, Setup};
use skidder_output_otlp::OTLP;
use skidder_output_s3::S3;
use skidder_outputs::{Built, Context, Other};
use std::sync::Arc;

settings! {
    /// The outputs of crates of their own, by their names.
    pub(crate) static OTHER_OUTPUTS = Group::new("outputs.other", "More outputs, of which one is enabled.").common();

    OF_ELASTICSEARCH: Part = Key::part("elasticsearch", &ELASTICSEARCH).about(ELASTICSEARCH.about);
    OF_OTLP: Part = Key::part("otlp", &OTLP).about(OTLP.about);
    OF_S3: Part = Key::part("s3", &S3).about(S3.about);
    OF_KAFKA: Part = Key::part("kafka", KAFKA).about(KAFKA.about);
}

#[cfg(feature = "kafka")]
static KAFKA: &Group = &skidder_output_kafka::KAFKA;

/// Any settings: they are read by a program with the feature.
#[cfg(not(feature = "kafka"))]
static KAFKA: &Group = &Group::new("output.kafka", "This program was built without Kafka.").open();

/// The outputs. `setup` is what servers of Elasticsearch should have before events come.
pub(super) fn others(setup: Arc<Setup>) -> Vec<Other> {
    vec![
        (
            "elasticsearch",
            Box::new(move |section, context, _| {
                skidder_output_elasticsearch::build(section, context, Some(Arc::clone(&setup)))
            }),
        ),
        ("otlp", Box::new(|section, context, _| skidder_output_otlp::build(section, context))),
        ("s3", Box::new(|section, context, _| skidder_output_s3::build(section, context))),
        ("kafka", Box::new(|section, context, _| kafka(section, context))),
    ]
}

#[cfg(feature = "kafka")]
fn kafka(section: &Section<'_>, context: &Context) -> Option<Built> {
    skidder_output_kafka::build(section, context)
}

/// Reports that the output is not here.
#[cfg(not(feature = "kafka"))]
fn kafka(section: &Section<'_>, _: &Context) -> Option<Built> {
    for key in section.keys() {
        section.accept(key);
    }
    let message = format!("`{}`: this program was built without Kafka", section.path());
    section.problem("", message, "use one with the cargo feature `kafka`");
    None
}
