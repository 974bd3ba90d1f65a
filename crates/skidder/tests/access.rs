//! What other users of the machine get: numbers, and nothing of events or of our own data.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::Place;
use common::lines::lines;
use common::program::{Program, command};
use common::server::{Act, BulkServer};
use std::ffi::OsStr;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The endpoint's address in the log of the program, without `http://`.
fn address(program: &Program) -> String {
    let line = program.await_log("serving metrics over HTTP");
    let line: serde_json::Value = serde_json::from_str(&line).unwrap();
    line["address"].as_str().unwrap().strip_prefix("http://").unwrap().to_owned()
}

fn ask(address: &str, path: &str, headers: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let request =
        format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{headers}connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    // A profile is no text.
    String::from_utf8_lossy(&answer).into_owned()
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap()
}

/// A port that was free a moment ago.
fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn events_are_shown_to_who_may_read_the_data_directory_and_page_prints_how() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    let port = free_port();
    place.configure(&format!(
        "{}http: {{enabled: true, port: {port}, pprof.enabled: true}}\n",
        place.configuration()
    ));
    place.write("app.log", &lines("a secret", 0..50));
    let ended = place.run(&["page"]);
    assert_eq!(ended.code(), Some(1), "nothing runs: {}", ended.log);
    let program = place.start(&[]);
    let address = address(&program);
    common::program::patiently("all is delivered", || (server.count() == 50).then_some(()));

    let path = place.data().join("page.token");
    let token = std::fs::read_to_string(&path).unwrap().trim_end().to_owned();
    assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    let bearer = format!("authorization: Bearer {token}\r\n");
    for shown in ["/ui/search?q=secret", "/ui/tail?viewer=a", "/ui/letters", "/debug/pprof/heap"] {
        let refused = ask(&address, shown, "");
        assert_eq!(status(&refused), "401", "{shown}: {refused}");
        assert!(!refused.contains("a secret") && !refused.contains(&token), "{refused}");
        assert_eq!(status(&ask(&address, shown, &bearer)), "200", "{shown}");
    }
    assert!(ask(&address, "/ui/search?q=secret", &bearer).contains("a secret"));
    for open in ["/", "/stats", "/metrics", "/inputs/", "/files", "/lag", "/ui/live"] {
        assert_eq!(status(&ask(&address, open, "")), "200", "{open}");
    }
    let ended = place.run(&["page"]);
    assert_eq!(ended.out, format!("http://localhost:{port}/ui/#token={token}\n"), "{}", ended.log);
    assert!(!program.log().contains(&token), "a token in the log");
    program.terminate().succeeded();
    let program = place.start(&[]);
    self::address(&program);
    assert_eq!(std::fs::read_to_string(&path).unwrap().trim_end(), token, "an open page goes on");
    program.terminate().succeeded();
}

/// An authority, and two certificates of it: of the endpoint, and of a client.
struct Certificates {
    directory: tempfile::TempDir,
}

impl Certificates {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut params = rcgen::CertificateParams::new(Vec::<String>::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        // With one name for all, curl would call the others self-signed.
        params.distinguished_name.push(rcgen::DnType::CommonName, "Tests");
        let key = rcgen::KeyPair::generate().unwrap();
        let authority = rcgen::CertifiedIssuer::self_signed(params, key).unwrap();
        std::fs::write(directory.path().join("ca.pem"), authority.pem()).unwrap();
        for name in ["localhost", "operator"] {
            let params = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap();
            let key = rcgen::KeyPair::generate().unwrap();
            let signed = params.signed_by(&key, &authority).unwrap();
            std::fs::write(directory.path().join(format!("{name}.pem")), signed.pem()).unwrap();
            let path = directory.path().join(format!("{name}.key"));
            std::fs::write(path, key.serialize_pem()).unwrap();
        }
        Self { directory }
    }

    fn path(&self, name: &str) -> String {
        self.directory.path().join(name).display().to_string()
    }
}

#[test]
fn commands_curl_and_the_page_reach_an_endpoint_with_tls_and_certificates_of_clients() {
    let server = BulkServer::start();
    let (place, files, port) = (Place::new(&server), Certificates::new(), free_port());
    let text = place.configuration();
    let configure = |key: &str| {
        place.configure(&format!(
            "{text}http: {{enabled: true, port: {port}, ssl: {{certificate: {}, key: {}, \
             certificate_authorities: [{}]}}}}\n",
            files.path("localhost.pem"),
            files.path(key),
            files.path("ca.pem"),
        ));
    };
    configure("missing.key");
    let ended = place.run(&["test", "config"]);
    assert!(ended.code() == Some(1) && ended.log.contains("missing.key"), "{}", ended.log);
    configure("localhost.key");
    place.write("app.log", &lines("line", 0..50));
    let program = place.start(&[]);
    let line = program.await_log("serving metrics over HTTP");
    assert!(line.contains(&format!("https://127.0.0.1:{port}")), "{line}");
    common::program::patiently("all is delivered", || (server.count() == 50).then_some(()));
    let ended = place.run(&["status", "--seconds", "0.1"]).succeeded();
    assert!(ended.out.contains("delivered 50 "), "{}", ended.out);
    let ended = place.run(&["files"]).succeeded();
    assert!(ended.out.contains("app.log"), "{}", ended.out);
    let ended = place.run(&["page", "--print"]).succeeded();
    let url = format!("https://localhost:{port}/ui/#token=");
    assert!(ended.out.starts_with(&url), "{}", ended.out);
    let curl = |shown: &[&str]| {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--cacert", &files.path("ca.pem")]);
        curl.args(shown).arg(format!("https://localhost:{port}/stats")).output().unwrap()
    };
    let (certificate, key) = (files.path("operator.pem"), files.path("operator.key"));
    let answer = curl(&["--cert", &certificate, "--key", &key]);
    assert!(answer.status.success(), "{}", String::from_utf8_lossy(&answer.stderr));
    let stats: serde_json::Value = serde_json::from_slice(&answer.stdout).unwrap();
    assert!(stats["skidder"].is_object(), "{stats}");
    let answer = curl(&[]);
    assert!(!answer.status.success() && answer.stdout.is_empty(), "without a certificate");
    program.await_log("the client needs a certificate of one of the authorities");
    program.terminate().succeeded();
}

fn directories(below: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(below).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            found.extend(directories(&path));
            found.push(path);
        }
    }
    found
}

#[test]
fn directories_of_our_data_are_for_the_owner_alone_whatever_the_umask() {
    let server = BulkServer::scripted(|_| Act::Items(|_| 400));
    let place = Place::with_outputs(&[("one", &server), ("two", &server)]);
    let text = place
        .configuration()
        .replace("compression: auto", "compression: auto\n  pin.enabled: true");
    place.configure(
        &format!("{text}queue.disk: {{max_size: 10MB}}\n").replace("queue.mem: {", "unused: {"),
    );
    let text = place.configuration();
    let text: Vec<&str> = text.lines().filter(|line| !line.starts_with("unused")).collect();
    place.configure(&format!("{}\n", text.join("\n")));
    place.write("app.log", &lines("line", 0..50));
    let program = command([OsStr::new("-e"), OsStr::new("--once"), OsStr::new("-c")]);
    let mut free = Command::new("sh");
    free.args(["-c", "umask 0; exec \"$@\"", "sh"]).arg(program.get_program());
    free.args(program.get_args()).arg(place.path().join("filebeat.yml"));
    free.arg("--path.data").arg(place.data()).current_dir(place.path());
    let ended = Program::run(&mut free);
    let made = directories(&place.data());
    assert!(made.len() > 3, "{made:?} {}", ended.log);
    for path in made.iter().chain([&place.data()]) {
        let mode = std::fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!(mode, 0o700, "{}: {mode:o}", path.display());
    }
}
