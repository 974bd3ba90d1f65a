//! `fingerprint`: a hash of some fields, as text.
//!
//! Hashed is `|name|value|name|value|…|` in the order of the names, with values as Go writes them, so that
//! the result is Filebeat's for the same fields.

use crate::fields::pairs::{path_at, required_paths};
use crate::go_value::write_scalar;
use crate::plan::{Constants, ERROR_MESSAGE, Failure, Footprint, Outcome, Processor, rehearse};
use data_encoding::{BASE32, BASE64, Encoding, HEXLOWER};
use md5::Md5;
use sha1::Sha1;
use sha2::digest::Digest;
use sha2::{Sha256, Sha384, Sha512};
use skidder_config::{Group, Key, Section, settings};
use skidder_event::{EventMut, EventRef, Path};
use std::hash::Hasher;
use twox_hash::XxHash64;

settings! {
    /// Settings of `fingerprint`.
    pub(crate) static FINGERPRINT = Group::new("processor.fingerprint", "Hashes some fields, and writes the hash as text into a field.");

    FIELDS: Vec<String> = Key::new("fields")
        .required()
        .about("the fields to hash; sorted, each counts once. Hashed is `|name|value|name|value|`");
    TARGET_FIELD: String = Key::new("target_field")
        .default(Fingerprint::TARGET)
        .about("where the text goes; `@metadata._id` makes it the id of the document");
    METHOD: String = Key::new("method")
        .default("sha256")
        .about("`md5`, `sha1`, `sha256`, `sha384`, `sha512` or `xxhash` (64 bits)");
    ENCODING: String = Key::new("encoding")
        .default("hex")
        .about("`hex`, `base32` or `base64`");
    IGNORE_MISSING: bool = Key::new("ignore_missing")
        .default(false)
        .about("a field that is not there is left out; otherwise it is a failure");
}

/// Longest text: the 64 bytes of SHA-512 in hexadecimal.
const TEXT_BYTES_MAX: usize = 128;

/// A hash function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    Md5,
    Sha1,
    Sha256,
    Sha384,
    Sha512,
    /// 64 bits, without a seed, most significant byte first.
    XxHash,
}

fn method_of(text: &str) -> Result<Method, String> {
    Ok(match text.to_ascii_lowercase().as_str() {
        "md5" => Method::Md5,
        "sha1" => Method::Sha1,
        "sha256" => Method::Sha256,
        "sha384" => Method::Sha384,
        "sha512" => Method::Sha512,
        "xxhash" => Method::XxHash,
        _ => {
            let all = "`md5`, `sha1`, `sha256`, `sha384`, `sha512` or `xxhash`";
            return Err(format!("expected {all}"));
        }
    })
}

fn encoding_of(text: &str) -> Result<Encoding, String> {
    Ok(match text.to_ascii_lowercase().as_str() {
        "hex" => HEXLOWER,
        "base32" => BASE32,
        "base64" => BASE64,
        _ => return Err("expected `hex`, `base32` or `base64`".to_owned()),
    })
}

/// Hashes fields of every event.
#[derive(Clone, Debug)]
pub(crate) struct Fingerprint {
    /// In byte order, each once.
    fields: Vec<Path>,
    target: Path,
    method: Method,
    encoding: Encoding,
    ignore_missing: bool,
}

impl Fingerprint {
    /// Default target field of the hash.
    const TARGET: &'static str = "fingerprint";

    /// `fields`, `target_field`, `method`, `encoding`, `ignore_missing`.
    pub(crate) fn read(settings: &Section<'_>) -> Option<Self> {
        let fields = required_paths(settings, &FIELDS);
        let target = path_at(settings, &TARGET_FIELD);
        let method = settings.get(&METHOD).try_map(|text| method_of(&text));
        let method = method.value();
        let encoding = settings.get(&ENCODING).try_map(|text| encoding_of(&text));
        let encoding = encoding.value();
        let ignore_missing = settings.get(&IGNORE_MISSING).value();
        let mut fields = fields?;
        fields.sort_by(|one, other| one.as_str().cmp(other.as_str()));
        fields.dedup();
        Some(Self { fields, target: target?, method, encoding, ignore_missing })
    }

    /// The hash as text in `out`, or why there is none.
    fn text<'a>(
        &self,
        event: EventRef<'_>,
        out: &'a mut [u8; TEXT_BYTES_MAX],
    ) -> Result<&'a [u8], String> {
        match self.method {
            Method::Md5 => self.digest::<Md5>(event, out),
            Method::Sha1 => self.digest::<Sha1>(event, out),
            Method::Sha256 => self.digest::<Sha256>(event, out),
            Method::Sha384 => self.digest::<Sha384>(event, out),
            Method::Sha512 => self.digest::<Sha512>(event, out),
            Method::XxHash => {
                let mut hash = XxHash64::with_seed(0);
                self.feed(event, &mut |piece| hash.write(piece))?;
                Ok(self.encode(&hash.finish().to_be_bytes(), out))
            }
        }
    }

    fn digest<'a, D: Digest>(
        &self,
        event: EventRef<'_>,
        out: &'a mut [u8; TEXT_BYTES_MAX],
    ) -> Result<&'a [u8], String> {
        let mut hash = D::new();
        self.feed(event, &mut |piece| hash.update(piece))?;
        Ok(self.encode(&hash.finalize(), out))
    }

    fn feed(&self, event: EventRef<'_>, sink: &mut dyn FnMut(&[u8])) -> Result<(), String> {
        for field in &self.fields {
            let Some(value) = event.get(field) else {
                if self.ignore_missing {
                    continue;
                }
                return Err(format!("failed to find field [{field}] in event: key not found"));
            };
            sink(b"|");
            sink(field.as_str().as_bytes());
            sink(b"|");
            if !write_scalar(value, sink) {
                return Err(format!("cannot compute fingerprint using non-scalar field [{field}]"));
            }
        }
        sink(b"|");
        Ok(())
    }

    fn encode<'a>(&self, hash: &[u8], out: &'a mut [u8; TEXT_BYTES_MAX]) -> &'a [u8] {
        let text = &mut out[..self.encoding.encode_len(hash.len())];
        self.encoding.encode_mut(hash, text);
        text
    }
}

impl Processor for Fingerprint {
    fn name(&self) -> &'static str {
        "fingerprint"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        let failed =
            |reason: String| Failure::new(format!("failed to compute fingerprint: {reason}"));
        let mut buffer = [0_u8; TEXT_BYTES_MAX];
        let text = self.text(event.as_ref(), &mut buffer).map_err(failed)?;
        event.put_text(&self.target, text).map_err(|error| failed(error.to_string()))?;
        Ok(Outcome::Done)
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        let writes = vec![self.target.clone(), ERROR_MESSAGE.clone()];
        Footprint { reads: self.fields.clone(), writes, ..Footprint::default() }
    }

    fn fold(&self, constants: &mut Constants) -> bool {
        rehearse(self, constants, &[&self.target])
    }

    fn describe(&self) -> String {
        let names: Vec<_> = self.fields.iter().map(Path::as_str).collect();
        format!("fingerprint of {} to {}", names.join(", "), self.target)
    }
}
