//! Which rotated files beside the target of a link must be read.

use super::{LinkScan, RotatedFiles};
use crate::scan::Found;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rotated files beside the target of a link.
#[derive(Default)]
pub(super) struct Classified {
    /// To be read.
    pub(super) wanted: Vec<Found>,
    /// Nothing was read of them.
    pub(super) unknown: Vec<Found>,
    /// Whether one of them certainly was read before.
    pub(super) passed_known: bool,
    /// Of the wanted ones, those to which nothing but the first look leads.
    pub(super) first_looks: Vec<PathBuf>,
    /// Why one of them, which is in `unknown`, could not be looked at.
    pub(super) failed: Option<io::Error>,
}

impl RotatedFiles {
    /// Separates rotated files that were read before, at least in part, from the others.
    pub(super) fn classify(
        &self,
        scan: &mut LinkScan<'_>,
        siblings: Vec<Found>,
        link: &Arc<Path>,
        is_retry: bool,
        is_unseen: &dyn Fn(&Found) -> bool,
    ) -> Classified {
        let mut classified = Classified::default();
        let Classified { wanted, unknown, passed_known, first_looks, failed } = &mut classified;
        // Older than a known file. If an older one is known too, nothing of these was read before the program
        // ended.
        let mut skipped = Vec::new();
        // From the newest to the oldest.
        for sibling in siblings.into_iter().rev() {
            if scan.files.followed.has(&sibling.path) {
                *passed_known = true;
                wanted.append(&mut skipped);
                continue;
            }
            match self.is_known(scan, &sibling, link) {
                Ok(Some(is_certain)) => {
                    *passed_known |= is_certain;
                    if is_certain {
                        wanted.append(&mut skipped);
                    }
                    wanted.push(sibling);
                }
                Ok(None) if *passed_known && !is_retry => {
                    // The file before it may be gone.
                    let is_after = self.is_after_saved(&sibling.path);
                    if is_after { wanted.push(sibling) } else { skipped.push(sibling) }
                }
                Ok(None) => unknown.push(sibling),
                Err(error) => {
                    *failed = Some(error);
                    unknown.push(sibling);
                }
            }
        }
        for sibling in skipped.into_iter().filter(|sibling| is_unseen(sibling)) {
            first_looks.push(sibling.path.clone());
            wanted.push(sibling);
        }
        classified
    }
}
