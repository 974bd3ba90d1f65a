//! Tests of the keystore's file.

use super::*;
use skidder_os::{OpenMode, write_all_at};
use skidder_testkit::{SimClock, SimFs};

/// Made by Filebeat's own package (`keystore` of elastic/elastic-agent-libs 0.18.0) with three secrets.
const OF_FILEBEAT: &[u8] = include_bytes!("../tests/data/filebeat.keystore");

const RULES: Rules = Rules { strict: true, user_id: 0 };

fn at() -> &'static Path {
    Path::new("/data/filebeat.keystore")
}

fn world(bytes: &[u8], mode: u32) -> SimFs {
    let fs = SimFs::new(&SimClock::new());
    fs.create_dir_all(Path::new("/data"), 0o700).unwrap();
    let file = fs.open_write(at(), OpenMode::New, mode).unwrap();
    write_all_at(&*file, bytes, 0).unwrap();
    fs
}

fn shown(keystore: Keystore) -> Vec<(String, String)> {
    let secrets = keystore.into_secrets().into_iter();
    secrets.map(|(name, secret)| (name, secret.reveal().to_owned())).collect()
}

fn refused(bytes: &[u8]) -> String {
    Keystore::read(&world(bytes, 0o600), at(), RULES).unwrap_err()
}

#[test]
fn a_keystore_of_filebeat_is_read_as_it_is() {
    let keystore = Keystore::read(&world(OF_FILEBEAT, 0o600), at(), RULES).unwrap().unwrap();
    let pairs = [("EMPTY", ""), ("ES_PWD", "changeme, <really> & \"truly\""), ("TOKEN", "grün")];
    assert_eq!(shown(keystore), pairs.map(|(name, secret)| (name.to_owned(), secret.to_owned())));
}

#[test]
fn what_is_written_is_read_again_and_shows_nothing() {
    let fs = SimFs::new(&SimClock::new());
    assert!(Keystore::read(&fs, at(), RULES).unwrap().is_none());
    let mut keystore = Keystore::default();
    keystore.set("PW", Secret::new("open sesame"));
    keystore.set("gone", Secret::new("x"));
    assert!(keystore.remove("gone") && !keystore.remove("gone"));
    keystore.write(&fs, at()).unwrap();
    assert_eq!(fs.metadata(at()).unwrap().mode & 0o777, 0o600);
    let first = read_to_end(&*fs.open(at()).unwrap(), 1 << 20).unwrap();
    assert!(first.starts_with(b"v1"));
    keystore.write(&fs, at()).unwrap();
    let second = read_to_end(&*fs.open(at()).unwrap(), 1 << 20).unwrap();
    assert_ne!(first, second, "salt and nonce are new each time");
    let again = Keystore::read(&fs, at(), RULES).unwrap().unwrap();
    assert!(!format!("{again:?}").contains("sesame"));
    assert_eq!(shown(again), [("PW".to_owned(), "open sesame".to_owned())]);
}

#[test]
fn damage_is_told_and_nothing_is_made_of_it() {
    assert!(refused(b"").contains("does not begin with `v1`"));
    assert!(refused(b"v2AAAA").contains("the only version that is known"));
    assert!(refused(b"v1").contains("too short"));
    assert!(refused(b"v1not base64").contains("no base64"));
    for at in (2..OF_FILEBEAT.len() - 2).step_by(7) {
        let mut bytes = OF_FILEBEAT.to_vec();
        bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
        assert!(refused(&bytes).contains("damaged"), "byte {at}");
        let cut = refused(&OF_FILEBEAT[..at]);
        assert!(cut.contains("damaged"), "cut at {at}: {cut}");
    }
}

#[test]
fn others_must_not_be_able_to_use_it() {
    let fs = world(OF_FILEBEAT, 0o640);
    let error = Keystore::read(&fs, at(), RULES).unwrap_err();
    assert!(error.contains("mode 0640") && error.contains("chmod 600"), "{error}");
    let lenient = Rules { strict: false, ..RULES };
    assert!(Keystore::read(&fs, at(), lenient).unwrap().is_some());
    let mut metadata = world(OF_FILEBEAT, 0o600).metadata(at()).unwrap();
    metadata.uid = 7;
    assert!(check_permissions(at(), metadata, 7).is_ok());
    assert!(check_permissions(at(), metadata, 8).unwrap_err().contains("belongs to user 7"));
}
