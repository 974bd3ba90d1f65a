//! Settings as Filebeat has them, and mistakes.

use super::*;
use skidder_config::{Problems, Settings as Yaml};
use skidder_os::RealFs;

const NAMES: &str = "project_id: p, topic: t, subscription.name: sub";
const LOGIN: &str =
    "credentials_json: {type: authorized_user, client_id: a, client_secret: b, refresh_token: c}";

/// The input of these settings, and the problems.
fn read_in(text: &str, variables: &[(&str, &str)]) -> (Option<PubSub>, String) {
    let problems = Problems::new();
    let yaml = Yaml::parse("x", &format!("{{{text}}}")).expect("YAML");
    let section = yaml.root(&problems);
    section.declared_by(&GCP_PUBSUB_INPUT);
    let fs: Arc<dyn Fs> = Arc::new(RealFs);
    let variable = |name: &str| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    let input = read(&section, &fs, variable);
    section.finish();
    (input, problems.to_string())
}

fn settings(text: &str) -> Arc<Settings> {
    let login = if text.contains("alternative_host") { "subscription.create: true" } else { LOGIN };
    let (input, problems) = read_in(&format!("{NAMES}, {login}, {text}"), &[]);
    assert_eq!(problems, "");
    input.expect("no problem").settings
}

#[test]
fn defaults_are_those_of_filebeat() {
    let settings = settings("");
    let Names { topic, subscription, is_created, .. } = &settings.names;
    assert_eq!(topic, "projects/p/topics/t");
    assert_eq!((subscription.as_str(), *is_created), ("projects/p/subscriptions/sub", true));
    assert_eq!((settings.streams, settings.messages_max), (1, Some(1600)));
    assert_eq!(settings.origin.authority, SERVER);
    assert!(settings.origin.https && settings.route.tls.is_some());
    assert!(settings.route.http2);
}

#[test]
fn numbers_mean_what_googles_client_makes_of_them() {
    let most = |number: i64| {
        settings(&format!("subscription.max_outstanding_messages: {number}")).messages_max
    };
    assert_eq!((most(5), most(0), most(-1)), (Some(5), Some(1000), None));
    let nested = "subscription: {num_goroutines: 4, create: false}";
    let (input, _) = read_in(&format!("{NAMES}, {LOGIN}, {nested}"), &[]);
    let settings = input.expect("both forms").settings;
    assert_eq!((settings.streams, settings.names.is_created), (4, false));
}

#[test]
fn the_server_is_googles_another_way_to_it_or_an_emulator() {
    let origin = |settings: &Settings| (settings.origin.authority.clone(), settings.origin.https);
    let endpoint = settings("api_endpoint: pubsub.p.googleapis.com");
    assert_eq!(origin(&endpoint), ("pubsub.p.googleapis.com:443".to_owned(), true));
    let emulator = settings("alternative_host: 'localhost:8085'");
    assert_eq!(origin(&emulator), ("localhost:8085".to_owned(), false));
    let variables = [(EMULATOR, "127.0.0.1:8085"), ("HTTPS_PROXY", "http://proxy:3128")];
    let (input, problems) = read_in(NAMES, &variables);
    let settings = input.expect("a warning only").settings;
    assert_eq!(origin(&settings), ("127.0.0.1:8085".to_owned(), false));
    assert!(problems.contains("PUBSUB_EMULATOR_HOST is set"), "{problems}");
    let (input, _) = read_in(&format!("{NAMES}, {LOGIN}"), &variables[1..]);
    assert!(input.expect("no problem").settings.route.proxy.is_some());
    let text = format!("{NAMES}, {LOGIN}, alternative_host: 'localhost:8085'");
    let (input, problems) = read_in(&text, &[]);
    assert!(input.is_some() && problems.contains("without TLS and credentials"), "{problems}");
}

#[test]
fn mistakes_are_found_with_a_remedy() {
    let table = [
        ("topic: t, subscription.name: s".to_owned(), "`project_id` is missing"),
        ("project_id: p, topic: t".to_owned(), "`subscription.name` is missing"),
        (
            "project_id: p, topic: 'projects/p/topics/t', subscription.name: s".to_owned(),
            "without `projects/",
        ),
        ("project_id: 'a b', topic: t, subscription.name: s".to_owned(), "a name has"),
        (format!("{NAMES}, subscription.num_goroutines: 0"), "a number of streams"),
        (format!("{NAMES}, subscription.max_outstanding_messages: -2"), "a number of messages"),
        (format!("{NAMES}, alternative_host: 'h:1', proxy_url: 'http://p:1'"), "are both set"),
        (format!("{NAMES}, alternative_host: 'h:x'"), "its port is no number"),
        (format!("{NAMES}, ssl.enabled: false"), "`ssl.enabled` is false"),
    ];
    for (text, expected) in table {
        let (_, problems) = read_in(&format!("{LOGIN}, {text}"), &[]);
        assert!(problems.contains("error: ") && problems.contains(expected), "{text}: {problems}");
    }
    for (login, expected) in [
        ("credentials_json: {type: authorized_user}", "error: x:1:"),
        ("credentials_json: '{\"a\":'", "error: x:1:"),
        ("credentials_file: /none/key.json", "cannot read `/none/key.json`"),
    ] {
        let (input, problems) = read_in(&format!("{NAMES}, {login}"), &[]);
        assert!(input.is_none() && problems.contains(expected), "{login}: {problems}");
    }
    let variables = [("GOOGLE_APPLICATION_CREDENTIALS", "/none/other.json")];
    let (input, problems) = read_in(NAMES, &variables);
    assert!(input.is_none() && problems.contains("/none/other.json"), "{problems}");
    let (input, problems) = read_in(NAMES, &[(EMULATOR, ":x")]);
    assert!(input.is_none() && problems.contains("is no `host:port`"), "{problems}");
    let text =
        format!("{NAMES}, alternative_host: 'h:1', proxy_url: 'http://p:1', proxy_disable: true");
    assert!(read_in(&text, &[]).0.is_some(), "as in Filebeat");
}
