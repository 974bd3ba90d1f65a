//! From the section `output.elasticsearch` to an output.

use crate::setup::Setup;
use crate::{Elasticsearch, read};
use skidder_config::Section;
use skidder_outputs::{Built, Context};
use std::sync::Arc;

/// Reads the section. Mistakes go to its problems; `None` means that there is at least one. `setup` is what servers
/// should have before events come.
pub fn build(section: &Section<'_>, context: &Context, setup: Option<Arc<Setup>>) -> Option<Built> {
    let (config, queue) = read(section);
    let mut config = config?;
    let loads = setup.as_ref().is_some_and(|setup| setup.loads_pipelines);
    let pipelines = setup.as_ref().and_then(|setup| setup.pipelines.0.clone());
    config.setup = setup.filter(|setup| is_template_for(section, setup));
    match Elasticsearch::new(config, context.clone()) {
        Ok(output) => {
            let output = output.with_pipelines(pipelines, loads);
            Some(Built { output: Box::new(output.clone()), tuning: Ok(Box::new(output)), queue })
        }
        Err(error) => {
            error.report(section);
            None
        }
    }
}

/// Whether `setup.template` is for the index of the output. Filebeat refuses to start if it is not.
fn is_template_for(section: &Section<'_>, setup: &Setup) -> bool {
    let is_other =
        section.has("index") && setup.template.as_ref().is_some_and(|template| !template.is_named);
    if is_other {
        let message = "no index template is loaded: it is not for this `index`";
        let hint = "set `setup.template.name` and `setup.template.pattern`, or `setup.template.enabled: false`";
        section.warning("index", message, hint);
    }
    !is_other
}
