//! The folder with saved objects: which files are in it, and the objects in a file.

use serde_json::Value;
use skidder_os::{FileKind, Fs, read_to_end};
use std::io;
use std::path::{Path, PathBuf};

/// Largest file that is read.
const FILE_BYTES_MAX: usize = 64 << 20;

/// The folder itself, or the one in it that has the highest number as its name (`kibana/7`).
pub(crate) fn of_version(fs: &dyn Fs, directory: &Path) -> io::Result<PathBuf> {
    let mut best: Option<u64> = None;
    let mut is_here = false;
    fs.read_dir(directory, &mut |entry| {
        let name = entry.name.to_string_lossy();
        is_here |= name == "dashboard" || name == "index-pattern";
        best = best.max(name.parse().ok());
    })?;
    Ok(match best {
        Some(best) if !is_here => directory.join(best.to_string()),
        _ => directory.to_owned(),
    })
}

/// The files with objects of a kind, in the order of their names; `None` if there is no folder for it.
pub(crate) fn files(fs: &dyn Fs, directory: &Path, kind: &str) -> io::Result<Option<Vec<PathBuf>>> {
    let folder = directory.join(kind);
    if !fs.metadata(&folder).is_ok_and(|metadata| metadata.kind == FileKind::Directory) {
        return Ok(None);
    }
    let mut files = Vec::new();
    fs.read_dir(&folder, &mut |entry| {
        let path = folder.join(entry.name);
        if path.extension().is_some_and(|end| end == "json" || end == "ndjson") {
            files.push(path);
        }
    })?;
    files.sort();
    Ok(Some(files))
}

/// The objects in a file: one for `.json`, one a line for `.ndjson`. The error ends the sentence "`FILE`: …".
pub(crate) fn objects(fs: &dyn Fs, path: &Path) -> Result<Vec<Value>, String> {
    let bytes = fs.open(path).and_then(|file| read_to_end(&*file, FILE_BYTES_MAX));
    let bytes = bytes.map_err(|error| format!("it cannot be read: {error}"))?;
    let text = String::from_utf8(bytes).map_err(|_| "it is not in UTF-8".to_owned())?;
    let mut objects = Vec::new();
    if path.extension().is_some_and(|end| end == "ndjson") {
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let object = serde_json::from_str(line);
            objects.push(object.map_err(|error| format!("line {}: {error}", number + 1))?);
        }
        // An export ends with a line that counts its objects.
        objects.retain(|object: &Value| object.get("exportedCount").is_none());
    } else {
        objects.push(serde_json::from_str(&text).map_err(|error| format!("no JSON: {error}"))?);
    }
    if objects.iter().any(|object| !object.is_object()) {
        return Err("expected JSON objects".to_owned());
    }
    Ok(objects)
}
