//! The token that opens the page.
//!
//! The page shows events, and the loopback is open to every user of the machine. So a viewer has to prove read access
//! to the data directory: a token is kept there, for its owner only. It outlives a restart, so that an open page goes
//! on; without the file the next start makes another.

use ring::rand::{SecureRandom as _, SystemRandom};
use skidder_config::Secret;
use skidder_observe::{Endpoint, HttpConfig};
use skidder_os::{FileKind, Fs, OpenMode, read_to_end, write_all_at};
use std::fmt::Write as _;
use std::io;
use std::path::Path;

/// Name of the file with the token, in the data directory.
pub(crate) const TOKEN_FILE: &str = "page.token";
/// Random bytes of a token; it is written in hexadecimal digits.
const TOKEN_BYTES: usize = 32;
/// The owner alone may read it.
const FILE_MODE: u32 = 0o600;

/// The token of the data directory, where events need one: without `http.auth`, on a port. It is made if there is none that can
/// be trusted. If it cannot be written, events are not shown, and the reason is logged.
pub(crate) fn token(fs: &dyn Fs, data: &Path, http: &HttpConfig) -> Option<Secret> {
    if !asks_for_token(http) {
        return None;
    }
    let path = data.join(TOKEN_FILE);
    let owner = rustix::process::geteuid().as_raw();
    match read(fs, &path, Some(owner)).map_or_else(|_| make(fs, &path), Ok) {
        Ok(token) => Some(token),
        Err(error) => {
            tracing::warn!(
                path = %path.display(), %error,
                "the token that opens the page cannot be written: events are not shown there; mend that, or set `http.auth.token`"
            );
            None
        }
    }
}

/// The kept token, if this user may read it.
pub(crate) fn kept_token(fs: &dyn Fs, data: &Path) -> Option<Secret> {
    read(fs, &data.join(TOKEN_FILE), None).ok()
}

/// Whether the page requires it.
pub(crate) fn asks_for_token(http: &HttpConfig) -> bool {
    http.enabled && !http.auth.is_set() && matches!(http.endpoint, Endpoint::Tcp { .. })
}

/// The token in a file, if only its owner can have read or written it. With `owner`, the file must be theirs.
pub(crate) fn read(fs: &dyn Fs, path: &Path, owner: Option<u32>) -> io::Result<Secret> {
    let file = fs.open(path)?;
    let metadata = file.metadata()?;
    let wrong = |what: &str| Err(io::Error::new(io::ErrorKind::InvalidData, what.to_owned()));
    let is_owned = owner.is_none_or(|owner| owner == metadata.uid);
    if metadata.kind != FileKind::Regular || metadata.mode & 0o077 != 0 || !is_owned {
        return wrong("others than its owner may have read it");
    }
    let text = String::from_utf8_lossy(&read_to_end(&*file, 2 * TOKEN_BYTES + 1)?).into_owned();
    let token = text.trim_end();
    if token.len() != 2 * TOKEN_BYTES || !token.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return wrong("it is no token");
    }
    Ok(Secret::new(token))
}

/// Makes another.
fn make(fs: &dyn Fs, path: &Path) -> io::Result<Secret> {
    let mut bytes = [0; TOKEN_BYTES];
    SystemRandom::new().fill(&mut bytes).map_err(|_| io::Error::other("no random bytes"))?;
    let mut token = String::new();
    for byte in bytes {
        write!(token, "{byte:02x}").expect("a string takes everything");
    }
    write_new(fs, path, format!("{token}\n").as_bytes())?;
    Ok(Secret::new(token))
}

/// Creates a file anew: an existing file or link of another user is removed first.
pub(crate) fn write_new(fs: &dyn Fs, path: &Path, bytes: &[u8]) -> io::Result<()> {
    match fs.remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = fs.open_write(path, OpenMode::New, FILE_MODE)?;
    write_all_at(&*file, bytes, 0)?;
    file.sync()
}

#[cfg(test)]
mod tests {
    use super::*;
    use skidder_os::RealFs;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn a_token_is_kept_and_one_that_others_may_have_read_is_made_anew() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join(TOKEN_FILE);
        let http = HttpConfig { enabled: true, ..HttpConfig::default() };
        let look = || token(&RealFs, place.path(), &http).unwrap().reveal().to_owned();
        let first = look();
        assert_eq!((first.len(), mode(&path)), (64, 0o600));
        assert_eq!(look(), first, "it outlives a restart");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let second = look();
        assert!(second != first && mode(&path) == 0o600, "others may know the first one");
        std::fs::write(&path, "x").unwrap();
        let third = look();
        assert!(third != second && third.len() == 64);
        // A link at its place is replaced; its target stays.
        let other = place.path().join("other");
        std::fs::write(&other, "kept").unwrap();
        std::fs::remove_file(&path).unwrap();
        symlink(&other, &path).unwrap();
        assert!(look() != third && !path.is_symlink());
        assert_eq!(std::fs::read_to_string(other).unwrap(), "kept");
    }

    #[test]
    fn no_token_is_made_where_nobody_is_asked_for_it() {
        let place = tempfile::tempdir().unwrap();
        let on = HttpConfig { enabled: true, ..HttpConfig::default() };
        let off = HttpConfig::default();
        let socket = HttpConfig { endpoint: Endpoint::Unix("/s".into()), ..on.clone() };
        let mut set = on;
        set.auth.token = Some(Secret::new("long-enough"));
        for http in [off, socket, set] {
            assert!(token(&RealFs, place.path(), &http).is_none());
        }
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
    }
}
