//! The report of a migration: for people, and for programs.

use super::differences::{differences, written};
use super::place::Theirs;
use super::stops;
use crate::plain::plain;
use crate::registry::import::Imported;
use serde_json::{Value, json};
use skidder_config::{Node, Problem, Subject};

/// A migration, or a dry run of one.
pub(super) struct Report<'a> {
    pub(super) theirs: &'a Theirs,
    /// All that is wrong with the configuration, unknown and unsupported settings among it.
    pub(super) problems: &'a [Problem],
    pub(super) lenient: bool,
    /// Number of inputs, if the configuration can be read.
    pub(super) inputs: Option<usize>,
    /// The registry, if there is one.
    pub(super) registry: Option<&'a Imported>,
    pub(super) dry_run: bool,
}

/// One line about a setting.
struct Remark {
    kind: Kind,
    text: String,
    hints: Vec<String>,
}

/// What a remark means for the move.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Different,
    NoEffect,
    InTheWay,
}

impl Kind {
    fn mark(self) -> char {
        match self {
            Self::Different => '~',
            Self::NoEffect => '-',
            Self::InTheWay => '!',
        }
    }
}

impl Report<'_> {
    fn remarks(&self) -> (usize, Vec<Remark>) {
        let name = self.theirs.configuration.display().to_string();
        let written = written(self.theirs.settings.node(), &name);
        let mut remarks: Vec<Remark> = differences(&written)
            .into_iter()
            .map(|(setting, node, what)| Remark {
                kind: Kind::Different,
                text: format!("{}`{}`: {what}", place(node), setting.trim_start_matches("*.")),
                hints: Vec::new(),
            })
            .collect();
        remarks.extend(self.problems.iter().map(|problem| self.remark(problem)));
        (written.len(), remarks)
    }

    fn remark(&self, problem: &Problem) -> Remark {
        let kind = if stops(problem, self.lenient) {
            Kind::InTheWay
        } else if matches!(problem.subject, Subject::Mistake | Subject::Missing) {
            Kind::Different
        } else {
            Kind::NoEffect
        };
        let place = problem.position.as_ref().map(|at| format!("{at}: ")).unwrap_or_default();
        Remark { kind, text: format!("{place}{}", problem.message), hints: problem.hints.clone() }
    }

    /// For people.
    pub(super) fn as_text(&self) -> String {
        let theirs = self.theirs;
        let (settings, remarks) = self.remarks();
        let count = |kind| remarks.iter().filter(|remark| remark.kind == kind).count();
        let mut text = format!(
            "Filebeat   {}, data in {}\n",
            theirs.configuration.display(),
            theirs.data.display()
        );
        text.push_str(&format!(
            "settings   {settings}: {} behave differently (~), {} without effect (-), {} in the way (!), the \
             others as they are\n",
            count(Kind::Different),
            count(Kind::NoEffect),
            count(Kind::InTheWay)
        ));
        for remark in &remarks {
            text.push_str(&format!("  {} {}\n", remark.kind.mark(), remark.text));
            for hint in &remark.hints {
                text.push_str(&format!("    {hint}\n"));
            }
        }
        if let Some(inputs) = self.inputs {
            text.push_str(&format!("inputs     {inputs}\n"));
        }
        if let Some(keystore) = &theirs.keystore {
            text.push_str(&format!("keystore   {}, as it is\n", keystore.display()));
        }
        match self.registry {
            Some(imported) => {
                text.push_str(&format!("registry   {}\n", imported.summary()));
                for problem in &imported.problems {
                    text.push_str(&format!("  ! {}\n", plain(problem)));
                }
                for line in imported.as_table().lines() {
                    text.push_str(&format!("  {line}\n"));
                }
            }
            None if self.inputs.is_none() => {
                text.push_str("registry   can be told when the configuration can be read\n");
            }
            None => text.push_str(&format!(
                "registry   none in {}: files are read from the start\n",
                theirs.data.display()
            )),
        }
        text
    }

    /// For programs.
    pub(super) fn as_json(&self) -> Value {
        let (settings, remarks) = self.remarks();
        let of = |kind| -> Vec<Value> {
            let wanted = remarks.iter().filter(|remark| remark.kind == kind);
            wanted.map(|remark| json!({"what": remark.text, "hints": remark.hints})).collect()
        };
        json!({
            "configuration": self.theirs.configuration.display().to_string(),
            "data": self.theirs.data.display().to_string(),
            "keystore": self.theirs.keystore.as_ref().map(|path| path.display().to_string()),
            "settings": settings,
            "different": of(Kind::Different),
            "no_effect": of(Kind::NoEffect),
            "in_the_way": of(Kind::InTheWay),
            "inputs": self.inputs,
            "registry": self.registry.map(|imported| imported.as_json(self.dry_run)),
            "dry_run": self.dry_run,
        })
    }
}

fn place(node: Option<&Node>) -> String {
    node.map(|node| format!("{}: ", node.position())).unwrap_or_default()
}
