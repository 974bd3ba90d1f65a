//! The file of a cache: a JSON object a line, as Filebeat's
//! (`libbeat/processors/cache/file_store.go`), so that either can go on with the other's:
//!
//! ```json
//! {"key":"one","val":{"any":"value"},"expires":"2026-11-21T20:52:57.123456789Z"}
//! ```

use crate::json_value::value_of_json;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use skidder_event::Value;
use skidder_os::{Fs, OpenMode, Timestamp, read_to_end, write_all_at};
use std::io;
use std::path::{Path, PathBuf};

/// Largest file that is read; beyond it the start fails.
const FILE_BYTES_MAX: usize = 1 << 30;

/// Only the program's own user may read cached values.
const FILE_PERMISSIONS: u32 = 0o600;
const DIRECTORY_PERMISSIONS: u32 = 0o700;

#[derive(Serialize, Deserialize)]
struct Line<'a> {
    key: std::borrow::Cow<'a, str>,
    val: Json,
    #[serde(with = "rfc3339")]
    expires: jiff::Timestamp,
}

/// A time as text.
mod rfc3339 {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use std::borrow::Cow;

    pub(super) fn serialize<S: Serializer>(
        time: &jiff::Timestamp,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_str(time)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<jiff::Timestamp, D::Error> {
        Cow::<str>::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

/// Key, value, and when it expires.
type Read = (String, Value, Timestamp);

/// All entries of a file; none if it is missing. Stops at the first that cannot be read, and reports that.
pub(super) fn read(fs: &dyn Fs, path: &Path) -> io::Result<Vec<Read>> {
    let file = match fs.open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(named(path, &error)),
    };
    let bytes = read_to_end(&*file, FILE_BYTES_MAX).map_err(|error| named(path, &error))?;
    let mut entries = Vec::new();
    let mut lines = serde_json::Deserializer::from_slice(&bytes).into_iter::<Line<'_>>();
    loop {
        let offset = lines.byte_offset();
        match lines.next() {
            None => return Ok(entries),
            Some(Ok(line)) => {
                let expires = i64::try_from(line.expires.as_nanosecond()).unwrap_or(i64::MAX);
                entries.push((line.key.into_owned(), value_of_json(line.val), Timestamp(expires)));
            }
            Some(Err(error)) => {
                let path = path.display();
                tracing::error!(%path, offset, %error, "an entry of a cache cannot be read; it and the rest are left out");
                return Ok(entries);
            }
        }
    }
}

/// Writes a file beside and puts it in the place of the old one, so that a crash leaves either. No entries
/// means no file.
pub(super) fn write<'a>(
    fs: &dyn Fs,
    path: &Path,
    entries: impl Iterator<Item = (&'a str, &'a Value, Timestamp)>,
) -> io::Result<()> {
    let mut bytes = Vec::new();
    for (key, value, expires) in entries {
        let expires = jiff::Timestamp::from_nanosecond(i128::from(expires.0))
            .expect("an i64 of nanoseconds is within the years of jiff");
        serde_json::to_writer(&mut bytes, &Line { key: key.into(), val: json_of(value), expires })?;
        bytes.push(b'\n');
    }
    let directory = path.parent().unwrap_or(Path::new("."));
    if bytes.is_empty() {
        return match fs.remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(named(path, &error)),
            _ => Ok(()),
        };
    }
    fs.create_dir_all(directory, DIRECTORY_PERMISSIONS)
        .map_err(|error| named(directory, &error))?;
    let mut beside = path.as_os_str().to_owned();
    beside.push(".tmp");
    let beside = PathBuf::from(beside);
    let written = fs.open_write(&beside, OpenMode::Truncate, FILE_PERMISSIONS).and_then(|file| {
        write_all_at(&*file, &bytes, 0)?;
        file.sync()
    });
    written.map_err(|error| named(&beside, &error))?;
    fs.rename(&beside, path).map_err(|error| named(path, &error))?;
    fs.sync_dir(directory).map_err(|error| named(directory, &error))
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

fn json_of(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(truth) => (*truth).into(),
        Value::Int(number) => (*number).into(),
        Value::UInt(number) => (*number).into(),
        Value::Float(number) => (*number).into(),
        Value::Str(text) => (&**text).into(),
        Value::Time(time) => jiff::Timestamp::from_nanosecond(i128::from(*time))
            .map_or(Json::Null, |time| time.to_string().into()),
        Value::List(items) => items.iter().map(json_of).collect(),
        Value::Map(map) => {
            Json::Object(map.iter().map(|(key, value)| (key.to_owned(), json_of(value))).collect())
        }
    }
}
