//! Which values of a configuration are secret, by its declarations.

use super::{By, Declared, Group, Kinds};
use crate::mask::is_address;
use crate::node::{Content, Node};

/// Marks the values in `root`, a map or a list of maps with the settings of `group`, that are declared as secret. An
/// address is left out: its password and its query are masked by themselves. Of a setting without a declaration of what
/// is in it, such as the inputs of a template, what has the dotted name of a secret is marked: `hmac.key`.
pub(crate) fn mark(root: &mut Node, group: &'static Group) {
    let groups = group.reachable();
    let declared = groups.iter().flat_map(|group| group.own());
    let secrets = declared.filter(|declared| is_secret(**declared));
    let names = secrets.map(|declared| declared.spec().name).filter(|name| name.contains('.'));
    let names = names.collect();
    Marker { groups, names }.mark(root, group);
}

/// Whether nothing of the setting is shown.
fn is_secret(declared: &dyn Declared) -> bool {
    let spec = declared.spec();
    spec.is_secret && !spec.is_path_or_pem && !is_address(spec.name)
}

struct Marker {
    /// All that there are.
    groups: Vec<&'static Group>,
    /// Dotted names of secrets, relative to the map that they are in.
    names: Vec<&'static str>,
}

impl Marker {
    /// Marks the secrets of a map, or of each map of a list.
    fn mark(&self, node: &mut Node, group: &'static Group) {
        match &mut node.content {
            Content::List(list) => list.iter_mut().for_each(|item| self.mark(item, group)),
            Content::Map(_) => self.mark_map(node, group),
            _ => {}
        }
    }

    fn mark_map(&self, node: &mut Node, group: &'static Group) {
        for declared in group.declared() {
            let spec = declared.spec();
            for name in [spec.name, spec.alias].into_iter().filter(|name| !name.is_empty()) {
                if let Some(value) = value_at(node, name) {
                    self.mark_value(value, declared);
                }
            }
        }
        for kinds in group.all().into_iter().filter_map(|group| group.kinds) {
            self.mark_kinds(node, kinds);
        }
    }

    fn mark_kinds(&self, node: &mut Node, kinds: Kinds) {
        match kinds.by {
            By::Tag { key, default } => {
                let tag = value_at(node, key).and_then(|value| value.text.clone());
                let tag = tag.as_deref().unwrap_or(default);
                let of_kind = (kinds.list)().into_iter().find(|(name, _)| *name == tag);
                let of_kind = of_kind.map(|(_, group)| group);
                for group in kinds.every.iter().copied().chain(of_kind) {
                    self.mark(node, group);
                }
            }
            By::Name => {
                for (name, of_kind) in (kinds.list)() {
                    let Some(value) = value_at(node, name) else { continue };
                    for group in kinds.every.iter().copied().chain([of_kind]) {
                        self.mark(value, group);
                    }
                }
            }
        }
    }

    /// Marks the value of a setting, or what is secret in it.
    fn mark_value(&self, value: &mut Node, declared: &'static dyn Declared) {
        let named = || {
            let id = declared.inner_id()?;
            self.groups.iter().find(|group| group.id == id).copied()
        };
        if is_secret(declared) {
            hide(value);
        } else if let Some(group) = declared.inner().map(|inner| inner.group).or_else(named) {
            self.mark(value, group);
        } else if declared.takes_names() {
            self.mark_names(value);
        }
    }

    /// Marks what has the dotted name of a secret, anywhere in a value without a declaration.
    fn mark_names(&self, node: &mut Node) {
        match &mut node.content {
            Content::List(list) => list.iter_mut().for_each(|item| self.mark_names(item)),
            Content::Map(map) => {
                for entry in map.iter_mut() {
                    self.mark_names(&mut entry.value);
                }
                for name in &self.names {
                    if let Some(value) = value_at(node, name) {
                        hide(value);
                    }
                }
            }
            _ => {}
        }
    }
}

/// The value at a dotted name.
fn value_at<'a>(node: &'a mut Node, name: &str) -> Option<&'a mut Node> {
    let mut node = node;
    for level in name.split('.') {
        let Content::Map(map) = &mut node.content else { return None };
        node = &mut map.get_mut(level)?.value;
    }
    Some(node)
}

/// Marks every text and number in `node`, so that the names of a map are still shown.
fn hide(node: &mut Node) {
    match &mut node.content {
        Content::List(list) => list.iter_mut().for_each(hide),
        Content::Map(map) => map.iter_mut().for_each(|entry| hide(&mut entry.value)),
        Content::Null => {}
        _ => node.secret = true,
    }
}

#[cfg(test)]
mod tests {
    use crate::{Any, Group, Key, Kinds, NamedParts, Part, Parts, Secret, Settings, settings};

    mod input {
        use super::*;

        settings! {
            pub(super) static INPUT = Group::new("secrets.input", "An input.");

            KEY: Secret = Key::new("hmac.key");
            HEADER: String = Key::new("hmac.header");
            PROXY_URL: Secret = Key::new("proxy_url");
            THEN: NamedParts = Key::named_parts("then", "secrets.input");
        }
    }

    mod encryption {
        use super::*;

        settings! {
            pub(super) static SSL = Group::new("secrets.ssl", "Encryption.");

            KEY: Secret = Key::<Secret>::new("key").path_or_pem();
        }
    }

    mod every {
        use super::*;

        fn kinds() -> Vec<(&'static str, &'static Group)> {
            vec![("signed", &input::INPUT)]
        }

        pub(super) static INPUTS: Group =
            Group::new("secrets.inputs", "By type.").kinds(Kinds::by_tag("type", "plain", kinds));
    }

    settings! {
        static ROOT = Group::new("secrets.root", "Everything.");

        INPUTS: Parts = Key::parts("inputs", &every::INPUTS);
        TEMPLATES: Any = Key::new("templates");
        SSL: Part = Key::part("ssl", &encryption::SSL);
        ID: Secret = Key::new("id").alias("identity");
    }

    /// The configuration as it is exported.
    fn exported(text: &str) -> String {
        Settings::parse("x", text).unwrap().export_yaml_without(&ROOT, &[], &[])
    }

    #[test]
    fn what_is_declared_as_secret_is_masked_whatever_its_name() {
        for (text, secrets) in [
            ("inputs: [{type: signed, hmac: {key: GEHEIM, header: X-Sign}}]", 1),
            ("inputs: {type: signed, hmac.key: GEHEIM, then: [{hmac.key: GEHEIM}]}", 2),
            ("inputs: [{type: plain, hmac.key: shown}]", 0),
            ("templates: [{config: [{type: x, hmac.key: GEHEIM}]}]", 1),
            ("identity: GEHEIM", 1),
            ("id: [GEHEIM, {a: GEHEIM}]", 2),
            ("ssl.key: /etc/key.pem", 0),
            ("ssl.key: '-----BEGIN PRIVATE KEY----- GEHEIM'", 1),
            ("inputs: [{type: signed, proxy_url: 'http://u:GEHEIM@h/'}]", 1),
            ("id: ", 0),
        ] {
            let yaml = exported(text);
            assert!(!yaml.contains("GEHEIM"), "{text}: {yaml}");
            assert_eq!(yaml.matches("xxxxx").count(), secrets, "{text}: {yaml}");
        }
    }
}
