//! The file of a keystore, in Filebeat's format: names and secrets, encrypted.
//!
//! As `keystore/file_keystore.go` of elastic/beats has it: `v1`, and behind it in base64: a salt of 64 bytes, a nonce of 12,
//! and what AES-256-GCM makes of the JSON object `{KEY: {"value": BASE64}}`. The key is derived from the salt and an empty
//! password (PBKDF2, HMAC-SHA-512, 10,000 rounds), so what keeps the secrets is that only their owner may read the file.

use crate::cli::Global;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::pbkdf2::{PBKDF2_HMAC_SHA512, derive};
use ring::rand::{SecureRandom as _, SystemRandom};
use serde_json::{Map, Value, json};
use skidder_config::Secret;
use skidder_os::{Fs, Metadata, read_to_end};
use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroU32;
use std::path::Path;

/// How a file begins that we can read.
const VERSION: &[u8] = b"v1";

const SALT_BYTES: usize = 64;
const KEY_BYTES: usize = 32;
const ROUNDS: NonZeroU32 = NonZeroU32::new(10_000).expect("more than none");

/// Largest file; a larger one is refused.
const FILE_BYTES_MAX: usize = 16 << 20;

/// Permissions of the file: of its owner only.
const PERMISSIONS: u32 = 0o600;

/// Required owner and mode of a keystore.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// Whether to check permissions and owner (`strict.perms`).
    pub(crate) strict: bool,
    /// The user that, besides root, may own it.
    pub(crate) user_id: u32,
}

/// Names and secrets.
#[derive(Debug, Default)]
pub(crate) struct Keystore {
    secrets: BTreeMap<String, Secret>,
}

impl Keystore {
    /// Reads the keystore in a file; `None` if there is none. The error contains no secret.
    pub(crate) fn read(fs: &dyn Fs, path: &Path, rules: Rules) -> Result<Option<Self>, String> {
        let file = match fs.open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.to_string()),
        };
        let metadata = file.metadata().map_err(|error| error.to_string())?;
        if rules.strict {
            check_permissions(path, metadata, rules.user_id)?;
        }
        let bytes = read_to_end(&*file, FILE_BYTES_MAX).map_err(|error| error.to_string())?;
        Self::decrypt(&bytes).map(Some)
    }

    /// Writes the file, replacing the one that is there; the secrets are on the disk then.
    pub(crate) fn write(&self, fs: &dyn Fs, path: &Path) -> io::Result<()> {
        let bytes = self.encrypt()?;
        let directory = path.parent().filter(|above| !above.as_os_str().is_empty());
        let directory = directory.unwrap_or(Path::new("."));
        fs.create_dir_all(directory, skidder_os::PRIVATE_DIRECTORY)?;
        skidder_os::replace_file(fs, path, &bytes, PERMISSIONS).map(drop)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.secrets.contains_key(name)
    }

    pub(crate) fn set(&mut self, name: &str, secret: Secret) {
        self.secrets.insert(name.to_owned(), secret);
    }

    /// Removes a secret; returns whether it was there.
    pub(crate) fn remove(&mut self, name: &str) -> bool {
        self.secrets.remove(name).is_some()
    }

    /// The names, sorted.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.secrets.keys().map(String::as_str)
    }

    /// All of it.
    pub(crate) fn into_secrets(self) -> BTreeMap<String, Secret> {
        self.secrets
    }

    fn decrypt(bytes: &[u8]) -> Result<Self, String> {
        let Some(text) = bytes.strip_prefix(VERSION) else {
            return Err("it does not begin with `v1`, the only version that is known".to_owned());
        };
        let damaged = |what: &str| format!("it is damaged: {what}");
        let data = STANDARD.decode(text.trim_ascii_end());
        let data = data.map_err(|_| damaged("behind `v1` is no base64"))?;
        let (salt, rest) =
            data.split_first_chunk::<SALT_BYTES>().ok_or_else(|| damaged("it is too short"))?;
        let (nonce, sealed) =
            rest.split_first_chunk::<NONCE_LEN>().ok_or_else(|| damaged("it is too short"))?;
        let mut sealed = sealed.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let plain = key_of(salt)
            .open_in_place(nonce, Aad::empty(), &mut sealed)
            .map_err(|_| damaged("what is in it was changed, or cut off"))?;
        Self::parse(plain).ok_or_else(|| damaged("what is in it is no list of secrets"))
    }

    fn parse(plain: &[u8]) -> Option<Self> {
        let all: Map<String, Value> = serde_json::from_slice(plain).ok()?;
        let mut secrets = BTreeMap::new();
        for (name, entry) in all {
            let bytes = match &entry["value"] {
                // What Go makes of no bytes.
                Value::Null => Vec::new(),
                value => STANDARD.decode(value.as_str()?).ok()?,
            };
            secrets.insert(name, Secret::new(String::from_utf8(bytes).ok()?));
        }
        Some(Self { secrets })
    }

    fn encrypt(&self) -> io::Result<Vec<u8>> {
        let entry = |(name, secret): (&String, &Secret)| {
            (name.clone(), json!({"value": STANDARD.encode(secret.reveal())}))
        };
        let all: Map<String, Value> = self.secrets.iter().map(entry).collect();
        let mut sealed = Value::Object(all).to_string().into_bytes();
        let (mut salt, mut nonce) = ([0; SALT_BYTES], [0; NONCE_LEN]);
        let random = SystemRandom::new();
        let filled = random.fill(&mut salt).and_then(|()| random.fill(&mut nonce));
        filled.map_err(|_| io::Error::other("the system gives no random bytes"))?;
        key_of(&salt)
            .seal_in_place_append_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::empty(),
                &mut sealed,
            )
            .map_err(|_| io::Error::other("the secrets are too long to be encrypted"))?;
        let data = STANDARD.encode([&salt[..], &nonce, &sealed].concat());
        Ok([VERSION, data.as_bytes()].concat())
    }
}

/// The key that belongs to a salt.
fn key_of(salt: &[u8]) -> LessSafeKey {
    let mut key = [0; KEY_BYTES];
    derive(PBKDF2_HMAC_SHA512, ROUNDS, salt, b"", &mut key);
    LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &key).expect("as long as such a key is"))
}

fn check_permissions(path: &Path, metadata: Metadata, user_id: u32) -> Result<(), String> {
    let (path, uid) = (path.display(), metadata.uid);
    let or_off = "or turn the check off with `--strict.perms=false`";
    if uid != 0 && uid != user_id {
        return Err(format!(
            "it belongs to user {uid}; it must belong to root or to the user that runs skidder ({user_id}): \
             run `chown root {path}`, {or_off}"
        ));
    }
    let mode = metadata.mode & 0o777;
    if mode != PERMISSIONS {
        return Err(format!(
            "others than its owner may use it (mode {mode:04o}, must be 0600): run `chmod 600 {path}`, {or_off}"
        ));
    }
    Ok(())
}

/// The secrets in the keystore at `path`; none if there is no such file. The error is for the user.
pub(crate) fn open(
    fs: &dyn Fs,
    path: &Path,
    global: &Global,
) -> Result<BTreeMap<String, Secret>, String> {
    let found = Keystore::read(fs, path, rules(global))?;
    Ok(found.map(Keystore::into_secrets).unwrap_or_default())
}

/// The rules of the command line.
pub(crate) fn rules(global: &Global) -> Rules {
    let turned_off = std::env::var("BEAT_STRICT_PERMS").is_ok_and(|value| value == "false");
    Rules {
        strict: global.strict_permissions && !turned_off,
        user_id: rustix::process::geteuid().as_raw(),
    }
}

#[cfg(test)]
#[path = "secrets_tests.rs"]
mod tests;
