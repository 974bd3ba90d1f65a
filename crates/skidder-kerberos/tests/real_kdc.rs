//! Logging in at a real KDC of MIT Kerberos (`tests/servers/kerberos.sh`), with keys and with a password, and the
//! errors of wrong logins. One test logs in, as there is one configuration of Kerberos in a process.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

use skidder_config::{Problems, Secret};
use skidder_kerberos::{Acceptor, Auth, Login, Settings};
use skidder_testkit::servers::Server;
use std::path::Path;

fn settings(folder: &Path, auth: Auth) -> Settings {
    Settings {
        auth,
        config: folder.join("krb5.conf"),
        username: "shipper".to_owned(),
        realm: "EXAMPLE.TEST".to_owned(),
        service: None,
    }
}

/// The result of a login with these settings at `host`.
fn refused(settings: &Settings, host: &str) -> String {
    Login::new(settings).unwrap().header(host).unwrap_err().to_string()
}

#[test]
fn a_build_with_kerberos_has_no_objection_to_its_settings() {
    let problems = Problems::new();
    let text = "kerberos: {auth_type: keytab, keytab: /k, config_path: /c, username: u, realm: R}";
    let yaml = skidder_config::Settings::parse("filebeat.yml", text).unwrap();
    let root = yaml.root(&problems);
    assert_eq!(Settings::read(&root).unwrap().principal(), "u@R");
    root.finish();
    assert_eq!(problems.to_string(), "");
}

#[test]
fn a_server_knows_who_sent_each_request() {
    let kdc = Server::kerberos().unwrap();
    let folder = kdc.folder();
    let by_keys = settings(folder, Auth::Keytab(folder.join("shipper.keytab")));
    let by_password = settings(folder, Auth::Password(Secret::new("secret")));
    let logins: Vec<_> = [&by_keys, &by_password]
        .into_iter()
        .map(|settings| Login::new(settings).unwrap())
        .collect();
    let server = Acceptor::new().unwrap();
    for login in &logins {
        for _ in 0..3 {
            let header = login.header("LocalHost").unwrap();
            assert_eq!(server.accept(&header).unwrap(), "shipper@EXAMPLE.TEST");
            assert!(server.accept(&header).is_err(), "a token is of one request only");
        }
    }

    let wrong = settings(folder, Auth::Password(Secret::new("guess")));
    let said = refused(&wrong, "localhost");
    assert!(said.contains("does not let `shipper@EXAMPLE.TEST` in with its password"), "{said}");
    let no_keys = settings(folder, Auth::Keytab(folder.join("no.keytab")));
    let said = refused(&no_keys, "localhost");
    assert!(said.contains("no.keytab"), "{said}");
    let said = refused(&by_keys, "other.host");
    assert!(said.contains("no ticket for `HTTP/other.host@EXAMPLE.TEST`"), "{said}");
    assert!(said.contains("not found in Kerberos database"), "{said}");
    let named = Settings { service: Some("HTTP/localhost".to_owned()), ..by_keys.clone() };
    assert!(server.accept(&Login::new(&named).unwrap().header("other.host").unwrap()).is_ok());
    let elsewhere = Settings { config: "/etc/krb5.conf".into(), ..by_keys.clone() };
    let said = Login::new(&elsewhere).unwrap_err().to_string();
    assert!(said.contains("there can be one in a process"), "{said}");

    // Tickets that are there go on; a user without one waits for the realm.
    kdc.stop().unwrap();
    assert!(server.accept(&logins[0].header("localhost").unwrap()).is_ok());
    let late = Login::new(&by_keys).unwrap();
    let said = late.header("localhost").unwrap_err().to_string();
    assert!(said.contains("Cannot contact any KDC"), "{said}");
    kdc.start_again().unwrap();
    assert!(server.accept(&late.header("localhost").unwrap()).is_ok());
}
