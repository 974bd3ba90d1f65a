//! Outputs in crates of their own: from the name in `output.<name>` to a constructor.

use skidder_config::Section;
use skidder_output_elasticsearch::Setup;
use skidder_outputs::{Built, Context, Other};
use std::sync::Arc;

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
