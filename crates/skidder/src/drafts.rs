//! Mistakes in the inputs that autodiscover will make, found at the start instead of when a container comes.

use crate::idle::IDLE;
use crate::input_reader::InputReader;
use crate::modules::ModuleRenderer;
use skidder_autodiscover::{Autodiscover, Draft};
use skidder_config::{Problem, Problems, Severity};

/// Reports what is wrong with templates, `hints.default_config` and appenders, as far as it does not depend on the
/// container.
pub(crate) fn check(
    discovery: Option<&Autodiscover>,
    reader: Option<&InputReader>,
    renderer: Option<&ModuleRenderer>,
    problems: &Problems,
) {
    let (Some(discovery), Some(reader)) = (discovery, reader) else { return };
    let is_lenient = problems.unknown_severity() == Severity::Warning;
    let look = |draft: &Draft| {
        let found = Problems::new();
        found.set_lenient(is_lenient);
        found.set_idle(IDLE);
        if draft.is_module {
            render(draft, renderer, &found);
        } else {
            reader.try_out(&draft.item(&found));
        }
        draft.sure(found.sorted())
    };
    for draft in discovery.drafts().iter().filter(|draft| draft.is_readable) {
        problems.extend(look(draft));
    }
    for drafts in discovery.appended_drafts() {
        let readable = drafts.iter().filter(|draft| draft.is_readable && !draft.is_module);
        let in_all = readable.map(look).reduce(|one, other| {
            one.into_iter().filter(|problem| other.contains(problem)).collect()
        });
        problems.extend(in_all.unwrap_or_default());
    }
}

/// Finds mistakes in the settings of a module.
fn render(draft: &Draft, renderer: Option<&ModuleRenderer>, found: &Problems) {
    if let Some(renderer) = renderer {
        renderer.render(&draft.list(), found);
        return;
    }
    let item = draft.item(found);
    let message = format!("`{}` names a module, and there is no folder of modules", item.path());
    let hint = "set `filebeat.modules_path` to the folder `module` of a Filebeat; without it, the input does not run";
    found.push(Problem::warning(item.node().position().clone(), message).hint(hint));
}
