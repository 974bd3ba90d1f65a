//! A digest of an input's configuration, to detect changes.

use ring::digest::{Context, Digest, SHA256};
use skidder_config::{Node, Settings};

/// Settings at the root that every input has a part in.
const COMMON: [&str; 5] = ["name", "tags", "fields", "fields_under_root", "processors"];

/// What an input was configured to be: those with the same print are the same. A hash, because secrets are in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InputPrint {
    hash: [u8; 32],
    shares_keys: bool,
}

impl InputPrint {
    /// Whether other inputs have the same keys, which takes all of them to know.
    pub(crate) fn note(&mut self, shares_keys: bool) {
        self.shares_keys = shares_keys;
    }
}

/// Makes prints.
#[derive(Clone)]
pub(crate) struct Prints(Context);

impl Prints {
    /// Of inputs of this configuration.
    pub(crate) fn of(settings: &Settings) -> Self {
        let mut context = Context::new(&SHA256);
        let root = settings.node().as_map();
        for key in COMMON {
            update(
                &mut context,
                key,
                root.and_then(|root| root.get(key)).map(|entry| &entry.value),
            );
        }
        Self(context)
    }

    /// Of the input with these settings.
    pub(crate) fn of_input(&self, node: &Node) -> InputPrint {
        let mut context = self.0.clone();
        update(&mut context, "input", Some(node));
        let digest: Digest = context.finish();
        let mut hash = [0; 32];
        hash.copy_from_slice(digest.as_ref());
        InputPrint { hash, shares_keys: false }
    }
}

/// Places and comments do not matter, and the order of keys does not.
fn update(context: &mut Context, key: &str, node: Option<&Node>) {
    context.update(format!("{key} {:?}\n", node.map(Node::to_value)).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn print(text: &str) -> InputPrint {
        let settings = Settings::parse("a.yml", text).unwrap();
        let inputs = settings.node().as_map().unwrap().get("inputs").unwrap();
        Prints::of(&settings).of_input(&inputs.value.as_list().unwrap()[0])
    }

    #[test]
    fn an_input_is_what_its_settings_say_wherever_they_stand() {
        let one = print("inputs:\n- {id: a, paths: [/x]}\n");
        assert_eq!(one, print("# a word\nmax_procs: 3\ninputs: [{paths: [/x], id: a}, {id: b}]"));
        for other in [
            "inputs: [{id: a, paths: [/y]}]",
            "inputs: [{id: a, paths: [/x], tags: [t]}]",
            "{tags: [t], inputs: [{id: a, paths: [/x]}]}",
            "{processors: [{drop_event: ~}], inputs: [{id: a, paths: [/x]}]}",
        ] {
            assert_ne!(one, print(other), "{other}");
        }
        let mut sharing = one;
        sharing.note(true);
        assert_ne!(one, sharing);
    }
}
