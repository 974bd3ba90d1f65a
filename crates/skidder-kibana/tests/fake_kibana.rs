//! Dashboards against a Kibana of our own, which keeps requests and answers as it was asked to.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

use skidder_config::{Problems, Settings};
use skidder_kibana::{Dashboards, OutputLogin};
use skidder_os::{Fs, RealFs};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

const STATUS: &str = r#"{"version":{"number":"9.1.0"}}"#;
const GOOD: &str = r#"{"success":true,"successCount":1}"#;

/// Answers each request with the next answer; the last one stays.
struct FakeKibana {
    address: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl FakeKibana {
    fn start(answers: &[(u16, &str)]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let answers: Vec<_> = answers.iter().map(|(s, b)| (*s, (*b).to_owned())).collect();
        let kept = Arc::clone(&requests);
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let (status, body) = &answers[number.min(answers.len() - 1)];
                serve(stream.unwrap(), *status, body, &kept);
            }
        });
        Self { address, requests }
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

fn serve(mut stream: TcpStream, status: u16, body: &str, kept: &Mutex<Vec<String>>) {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, rest)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if rest.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                kept.lock().unwrap().push(text);
                break;
            }
        }
        let count = stream.read(&mut piece).unwrap();
        assert!(count > 0, "the request ends early");
        bytes.extend_from_slice(&piece[..count]);
    }
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status} X\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
    .unwrap();
}

/// `setup` of a configuration, with `HOST` as the address of Kibana.
fn read(text: &str, home: &Path, login: &OutputLogin) -> (Dashboards, String) {
    let problems = Problems::new();
    let settings = Settings::parse("x", text).unwrap();
    let root = settings.root(&problems);
    let setup = root.section("setup");
    let read = Dashboards::read(
        setup.section("dashboards"),
        setup.section("kibana"),
        login,
        home,
        "node1",
    );
    setup.finish();
    root.finish();
    (read, problems.to_string())
}

fn load(text: &str, home: &Path) -> Result<usize, String> {
    let (dashboards, problems) = read(text, home, &OutputLogin::default());
    assert_eq!(problems, "");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let fs: Arc<dyn Fs> = Arc::new(RealFs);
    runtime.block_on(dashboards.load(&fs, &mut |_| {})).map_err(|error| error.to_string())
}

fn write(home: &Path, name: &str, text: &str) {
    let path = home.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

const DASHBOARD: &str = r#"{"id":"d","type":"dashboard","attributes":{"title":"on CHANGEME_HOSTNAME, OLD","optionsJSON":{"a":1}},
 "references":[{"type":"search","id":"s"},{"type":"index-pattern","id":"filebeat-*"}]}"#;
const SEARCH: &str = r#"{"id":"s","type":"search","attributes":{"kibanaSavedObjectMeta":{"searchSourceJSON":"{\"index\":\"filebeat-*\"}"}}}"#;

fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), "kibana/7/dashboard/d.json", DASHBOARD);
    write(home.path(), "kibana/7/search/s.json", SEARCH);
    home
}

#[test]
fn a_folder_goes_through_the_api_with_login_space_and_replacements() {
    let home = home();
    let pattern =
        r#"{"id":"filebeat-*","type":"index-pattern","attributes":{"title":"filebeat-*"}}"#;
    write(home.path(), "kibana/7/index-pattern/filebeat.json", pattern);
    let kibana = FakeKibana::start(&[(200, STATUS), (200, GOOD)]);
    let text = format!(
        "setup: {{kibana: {{host: '{}', path: /base, space.id: team a, api_key: 'id:key', headers: {{X-Own: 7}}}}, \
         dashboards: {{index: mine-*, string_replacements: {{OLD: new}}}}}}",
        kibana.address
    );
    assert_eq!(load(&text, home.path()).unwrap(), 2);
    let requests = kibana.requests();
    assert_eq!(requests.len(), 3);
    assert!(
        requests[0].starts_with("GET /base/s/team%20a/api/status HTTP/1.1\r\n"),
        "{requests:?}"
    );
    for request in &requests {
        for header in ["kbn-xsrf: 1", "authorization: ApiKey aWQ6a2V5", "x-own: 7"] {
            assert!(request.contains(&format!("\r\n{header}\r\n")), "no {header}: {request}");
        }
    }
    for request in &requests[1..] {
        let line = "POST /base/s/team%20a/api/saved_objects/_import?overwrite=true HTTP/1.1\r\n";
        assert!(request.starts_with(line), "{request}");
        let boundary =
            request.split("content-type: multipart/form-data; boundary=").nth(1).unwrap();
        let boundary = boundary.split("\r\n").next().unwrap();
        let body = request.split_once("\r\n\r\n").unwrap().1;
        assert!(body.starts_with(&format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; "
        )));
        assert!(body.ends_with(&format!("\r\n--{boundary}--\r\n")), "{body}");
    }
    assert!(requests[1].contains("filename=\"filebeat.ndjson\""), "{}", requests[1]);
    assert!(
        requests[1].contains(r#""attributes":{"title":"mine-*"},"id":"mine-*""#),
        "{}",
        requests[1]
    );
    let lines: Vec<&str> = requests[2].lines().filter(|line| line.starts_with('{')).collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].contains(r#"{\"index\":\"mine-*\"}"#), "{}", lines[0]);
    assert!(lines[1].contains(r#""title":"on node1, new""#), "{}", lines[1]);
    assert!(lines[1].contains(r#""optionsJSON":"{\"a\":1}""#), "{}", lines[1]);
    assert!(lines[1].contains(r#""id":"mine-*""#), "{}", lines[1]);
}

#[test]
fn errors_name_file_and_object_and_other_files_are_loaded() {
    let home = home();
    write(
        home.path(),
        "kibana/7/dashboard/a.ndjson",
        "{\"type\":\"dashboard\",\"id\":\"a\"}\n{\"exportedCount\":1}\n",
    );
    write(home.path(), "kibana/7/dashboard/e.json", "{");
    let refused = r#"{"success":false,"errors":[{"id":"a","type":"dashboard","error":{"type":"missing_references","references":[{"type":"search","id":"x"}]}}]}"#;
    let kibana = FakeKibana::start(&[(200, STATUS), (200, refused), (200, GOOD)]);
    let error = load(&format!("setup.kibana.host: '{}'", kibana.address), home.path()).unwrap_err();
    assert!(error.starts_with("1 files are loaded, 2 are not"), "{error}");
    assert!(error.contains("a.ndjson`: "), "{error}");
    assert!(error.contains("dashboard `a`: missing_references, needs search `x`"), "{error}");
    assert!(error.contains("e.json`: no JSON"), "{error}");
    assert!(!kibana.requests()[1].contains("exportedCount"));
}

#[test]
fn a_missing_reference_old_versions_and_refusals_say_what_to_do() {
    let home = home();
    std::fs::remove_file(home.path().join("kibana/7/search/s.json")).unwrap();
    let with = |answers: &[(u16, &str)]| {
        let kibana = FakeKibana::start(answers);
        let text = format!("setup.kibana.host: '{}'", kibana.address);
        load(&text, home.path()).unwrap_err()
    };
    let error = with(&[(200, STATUS), (200, GOOD)]);
    assert!(error.contains("d.json`: it needs search `s`: it cannot be read"), "{error}");
    let error = with(&[(200, r#"{"version":{"number":"7.13.4"}}"#)]);
    assert!(error.contains("Kibana has version 7.13.4; dashboards need 7.14"), "{error}");
    assert!(with(&[(200, "<html>")]).contains("does not answer as Kibana does"));
    assert!(with(&[(401, "no")]).contains("401: no; see `setup.kibana.username`"));
    std::fs::remove_dir_all(home.path().join("kibana")).unwrap();
    let error = load("setup.kibana.host: 'localhost:1'", home.path()).unwrap_err();
    assert!(error.contains("copy the folder `kibana` of a Filebeat"), "{error}");
}

#[test]
fn a_kibana_that_is_not_ready_is_asked_again_as_often_as_configured() {
    let home = home();
    let busy = (503, "{\"message\":\"not ready\"}");
    let text = |kibana: &FakeKibana, maximum: u32| {
        format!(
            "setup: {{kibana.host: '{}', dashboards.retry: {{enabled: true, interval: 1ms, maximum: {maximum}}}}}",
            kibana.address
        )
    };
    let kibana = FakeKibana::start(&[busy, busy, (200, STATUS), (200, GOOD)]);
    assert_eq!(load(&text(&kibana, 2), home.path()).unwrap(), 1);
    let kibana = FakeKibana::start(&[busy]);
    let error = load(&text(&kibana, 2), home.path()).unwrap_err();
    assert!(error.contains("503: not ready"), "{error}");
    assert_eq!(kibana.requests().len(), 3);
}

#[test]
fn parts_can_be_left_out() {
    let home = home();
    write(home.path(), "kibana/7/index-pattern/p.json", r#"{"type":"index-pattern","id":"p"}"#);
    for (only, file) in [("only_index", "p.ndjson"), ("only_dashboards", "d.ndjson")] {
        let kibana = FakeKibana::start(&[(200, STATUS), (200, GOOD)]);
        let host = &kibana.address;
        let text = format!(
            "setup: {{kibana.host: '{host}', dashboards: {{directory: kibana, {only}: true}}}}"
        );
        assert_eq!(load(&text, home.path()).unwrap(), 1);
        assert!(kibana.requests()[1].contains(file), "{only}");
    }
}

#[test]
fn credentials_come_from_the_output_unless_kibana_has_its_own() {
    let home = home();
    let login = OutputLogin {
        username: Some("u".into()),
        password: Some(skidder_config::Secret::new("p")),
        api_key: None,
    };
    let sent = |more: &str, login: &OutputLogin| {
        let kibana = FakeKibana::start(&[(500, "")]);
        let text = format!("setup: {{kibana: {{host: '{}'{more}}}}}", kibana.address);
        let (dashboards, problems) = read(&text, home.path(), login);
        assert_eq!(problems, "");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let fs: Arc<dyn Fs> = Arc::new(RealFs);
        runtime.block_on(dashboards.load(&fs, &mut |_| {})).unwrap_err();
        let request = kibana.requests().remove(0);
        let line = request.lines().find_map(|line| line.strip_prefix("authorization: "));
        line.map(str::to_owned)
    };
    assert_eq!(sent("", &login).as_deref(), Some("Basic dTpw"));
    assert_eq!(sent(", username: a, password: b", &login).as_deref(), Some("Basic YTpi"));
    assert_eq!(sent(", service_token: t", &login).as_deref(), Some("Bearer t"));
    assert_eq!(sent("", &OutputLogin::default()), None);
}

#[test]
fn mistakes_and_what_is_not_supported_are_reported() {
    for (text, said) in [
        ("setup.dashboards.url: http://x/a.zip", "download and unpack"),
        ("setup.dashboards.file: a.zip", "unpack the archive"),
        ("setup.dashboards.always_kibana: true", "has no effect"),
        ("setup.dashboards: {only_index: true, only_dashboards: true}", "nothing is left"),
        ("setup.kibana: {username: a, api_key: 'b:c'}", "more than one is set"),
        ("setup.kibana.host: 'ftp://x'", "neither `http` nor `https`"),
        ("setup.kibana.hots: x", "did you mean `host`"),
    ] {
        let problems = read(text, Path::new("/"), &OutputLogin::default()).1;
        assert!(problems.contains(said), "{text}: {problems}");
    }
}

#[test]
fn a_kibana_is_turned_off_or_reached_as_protocol_and_timeout_say() {
    let home = home();
    let off = load("setup.kibana.enabled: false", home.path()).unwrap_err();
    assert!(off.contains("setup.kibana.enabled"), "{off}");
    // It takes the connection and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    for protocol in ["http", "https"] {
        let text =
            format!("setup.kibana: {{timeout: 50ms, protocol: {protocol}, host: '{address}'}}");
        let error = load(&text, home.path()).unwrap_err();
        assert!(error.contains(&format!("{protocol}://{address}: ")), "{error}");
        assert!(error.contains("0.05 s"), "{error}");
    }
}
