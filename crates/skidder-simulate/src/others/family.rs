//! A log and its rotated files: whose they are, and in which manner they are rotated.

use crate::lines;
use crate::records::Dialect;
use crate::scenario::Habits;
use crate::themes::{Special, Themes};
use skidder_testkit::Random;
use std::path::{Path, PathBuf};

/// Which program rotates a log, and how its rotated files are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// `logrotate`: `.1`, `.2` and so on; all names move.
    Numbered,
    /// `logrotate` with `dateext`: each rotated file keeps its name.
    Dated,
    /// The kubelet: `0.log.20260101-000000`, compressed at the next rotation, by way of a `.tmp`.
    Kubelet,
}

/// When `logrotate` compresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compresses {
    Never,
    /// As part of the rotation.
    AtOnce,
    /// `delaycompress`: with the next rotation.
    Later,
    /// Now and then.
    Sometimes,
}

/// The names of one log and its rotated files.
pub(super) struct Family {
    pub(super) base: String,
    /// The link by which a log is found, if it is found by one.
    pub(super) link: Option<PathBuf>,
    pub(super) manner: Manner,
    pub(super) compresses: Compresses,
    /// `copytruncate` instead of renaming.
    pub(super) copies: bool,
    /// An empty new file at once.
    pub(super) creates: bool,
    /// How often it is written, relative to the others.
    pub(super) pace: u64,
    /// Every content of it begins with these lines, more than a fingerprint covers.
    pub(super) header: Vec<u8>,
    pub(super) dialect: Dialect,
    /// The file is copied and will be truncated.
    pub(super) truncating: bool,
}

impl Family {
    /// Whether a path is one of its files.
    pub(super) fn owns(&self, path: &Path) -> bool {
        path.as_os_str().as_encoded_bytes().starts_with(self.base.as_bytes())
    }
}

/// Some families of a run.
pub(super) fn some(habits: &Habits, themes: &Themes, random: &mut Random) -> Vec<Family> {
    let bases = [
        ("/logs/a/app.log", false),
        ("/logs/a/web.log", false),
        ("/logs/a/db.log", false),
        ("/logs/b/x/y/deep.log", false),
        ("/logs/pods/ns_one_1111/app/0.log", true),
        ("/logs/pods/ns_two_2222/app/0.log", true),
    ];
    let mut families = Vec::new();
    for (base, pod) in bases {
        if !families.is_empty() && random.one_in(3) {
            continue;
        }
        let manner = match random.below(3) {
            _ if pod => Manner::Kubelet,
            0 => Manner::Dated,
            _ => Manner::Numbered,
        };
        let compresses = match random.below(4) {
            _ if !habits.compression => Compresses::Never,
            0 => Compresses::Never,
            1 => Compresses::AtOnce,
            2 => Compresses::Later,
            _ => Compresses::Sometimes,
        };
        let dialect = themes.dialects[match base {
            _ if pod => 2,
            _ if base.starts_with("/logs/a") => 0,
            _ => 1,
        }];
        let link = pod && themes.special == Special::Containers;
        let headed = dialect == Dialect::Plain && !pod && habits.headers && random.one_in(2);
        families.push(Family {
            base: base.to_owned(),
            link: link.then(|| PathBuf::from(format!("/logs/containers/{}.log", families.len()))),
            manner,
            compresses,
            copies: !pod && habits.copytruncate && random.one_in(3),
            creates: random.one_in(3),
            pace: 1 + random.below(6) * random.below(6),
            header: if headed { lines::header(random) } else { Vec::new() },
            dialect,
            truncating: false,
        });
    }
    families
}
