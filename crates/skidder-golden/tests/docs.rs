//! `docs/processors.md` agrees with the golden files.

use anyhow::{Context as _, Result};
use skidder_golden::{Cost, GoldenFile, page, read_folder_for_page};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The golden files of all crates.
fn files() -> Result<Vec<GoldenFile>> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(repository().join("crates"))? {
        let folder = entry?.path().join("golden");
        if folder.is_dir() {
            all.extend(read_folder_for_page(&folder)?);
        }
    }
    Ok(all)
}

/// What `cargo bench --bench cost` of the crates with processors wrote.
fn costs() -> Result<BTreeMap<String, Cost>> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(repository().join("benches/results/processors"))? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let text = std::fs::read_to_string(&path)?;
        let json: serde_json::Value =
            serde_json::from_str(&text).with_context(|| path.display().to_string())?;
        for (name, cost) in json.as_object().context("costs are an object")? {
            let number = |key: &str| cost[key].as_f64().with_context(|| format!("{name} {key}"));
            let (nanoseconds, allocations) = (number("nanoseconds")?, number("allocations")?);
            all.insert(name.clone(), Cost { nanoseconds, allocations });
        }
    }
    Ok(all)
}

#[test]
fn the_page_of_the_processors_is_written_from_their_golden_files() -> Result<()> {
    let path = repository().join("docs/processors.md");
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    let page = page(&files()?, &costs()?, &before)?;
    if std::env::var_os("SKIDDER_UPDATE").is_some() {
        std::fs::write(&path, &page)?;
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        there == page,
        "docs/processors.md is not what the golden files say; write it with \
         `SKIDDER_UPDATE=1 cargo test -p skidder-golden`"
    );
    Ok(())
}
