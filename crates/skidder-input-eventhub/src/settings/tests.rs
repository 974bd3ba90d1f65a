//! Settings as Filebeat has them, and mistakes.

use super::*;
use skidder_config::{Problems, Settings as Yaml};
use skidder_os::RealFs;

const KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
const STRING: &str = "connection_string: 'Endpoint=sb://n.servicebus.windows.net/;SharedAccessKeyName=a;SharedAccessKey=b'";

/// The input of these settings, and the problems.
fn read_text(text: &str) -> (Option<EventHub>, String) {
    let problems = Problems::new();
    let yaml = Yaml::parse("x", &format!("{{{text}}}")).expect("YAML");
    let section = yaml.root(&problems);
    section.declared_by(&AZURE_EVENTHUB_INPUT);
    let fs: Arc<dyn Fs> = Arc::new(RealFs);
    let input = read(&section, &fs, |_| None);
    section.finish();
    (input, problems.to_string())
}

fn settings(text: &str) -> Arc<Settings> {
    let text = format!(
        "eventhub: my_hub, {STRING}, storage_account: logs, storage_account_key: '{KEY}', {text}"
    );
    let (input, problems) = read_text(&text);
    assert_eq!(problems, "");
    input.expect("no problem").settings
}

#[test]
fn defaults_are_those_of_filebeat() {
    let settings = settings("");
    assert_eq!(settings.names.prefix(), "n.servicebus.windows.net/my_hub/$Default");
    assert_eq!(settings.route.host.to_string(), "n.servicebus.windows.net:5671");
    assert!(settings.route.tls.is_some() && settings.route.proxy.is_none());
    assert_eq!(settings.blobs.container, "filebeat-my-hub");
    assert_eq!(settings.blobs.target.url(), "https://logs.blob.core.windows.net");
    assert_eq!((settings.credit, settings.messages_max), (100, 100));
    assert_eq!(settings.update_interval, Duration::from_secs(10));
    assert_eq!(settings.strategy, Strategy::Balanced);
    assert!(settings.migrates && !settings.from_latest && settings.sanitizers.is_empty());
    let debug = format!("{settings:?}");
    assert!(!debug.contains("Eby8"), "{debug}");
}

#[test]
fn each_setting_is_read() {
    let settings = settings(
        "consumer_group: logs, storage_account_container: my_logs, migrate_checkpoint: false, \
         processor_update_interval: 1s, processor_strategy: greedy, processor_start_position: latest, \
         partition_receive_count: 1000, transport: amqp, auth_type: connection_string, processor_version: v2, \
         authority_host: 'https://login.microsoftonline.us', proxy_url: 'socks5://proxy', \
         sanitizers: [{type: new_lines}, {type: replace_all, spec: {pattern: 'a(b)', replacement: '$1'}}], \
         sanitize_options: [NEW_LINES, SINGLE_QUOTES]",
    );
    assert_eq!(settings.names.group, "logs");
    assert_eq!(settings.blobs.container, "my-logs");
    assert_eq!(settings.blobs.target.url(), "https://logs.blob.core.usgovcloudapi.net");
    assert_eq!((settings.credit, settings.messages_max), (300, 1000));
    assert_eq!((settings.update_interval, settings.strategy), (SECOND, Strategy::Greedy));
    assert!(!settings.migrates && settings.from_latest);
    assert_eq!(settings.sanitizers.len(), 4);
    assert!(settings.route.proxy.is_some());
}

#[test]
fn tokens_of_entra_id_are_for_both_servers() {
    let place = "eventhub: h, eventhub_namespace: n.servicebus.windows.net, storage_account: logs";
    for way in [
        "auth_type: client_secret, tenant_id: t, client_id: c, client_secret: s",
        "auth_type: managed_identity, managed_identity_client_id: m",
        "auth_type: managed_identity",
    ] {
        let (input, problems) = read_text(&format!("{place}, {way}"));
        assert_eq!(problems, "", "{way}");
        let settings = input.expect("no problem").settings;
        assert!(matches!(settings.login, Login::Entra(_)), "{way}");
        assert_eq!(settings.blobs.target.url(), "https://logs.blob.core.windows.net");
    }
}

#[test]
fn a_websocket_goes_where_https_goes() {
    let settings = settings("transport: websocket");
    assert!(settings.is_websocket);
    assert_eq!(settings.route.host.to_string(), "n.servicebus.windows.net:443");
}

#[test]
fn an_emulator_is_reached_without_tls() {
    let (input, problems) = read_text(
        "eventhub: h, connection_string: 'Endpoint=sb://localhost;SharedAccessKeyName=a;SharedAccessKey=b;\
         UseDevelopmentEmulator=true', storage_account_connection_string: 'UseDevelopmentStorage=true'",
    );
    assert_eq!(problems, "");
    let settings = input.expect("no problem").settings;
    assert_eq!(settings.route.host.to_string(), "localhost:5672");
    assert!(settings.route.tls.is_none());
    assert_eq!(settings.blobs.target.url(), "http://127.0.0.1:10000/devstoreaccount1");
}

#[test]
fn what_differs_is_said() {
    let usual = format!(
        "eventhub: h11, {STRING}, storage_account_connection_string: 'AccountName=logs;AccountKey={KEY}'"
    );
    for (text, expected) in [
        ("processor_version: v1", "there is no processor v1"),
        ("processor_update_interval: 5m", "renewed every 30 s"),
        ("partition_receive_timeout: 5s", "messages are sent on as they come"),
        ("resource_manager_endpoint: 'https://management.azure.com/'", "`authority_host`"),
        ("storage_account_key: abc", "no effect beside `storage_account_connection_string`"),
        ("sanitize_options: [OTHER]", "has `OTHER`, which does nothing"),
    ] {
        let (input, problems) = read_text(&format!("{usual}, {text}"));
        assert!(
            input.is_some() && problems.contains("warning: ") && problems.contains(expected),
            "{text}: {problems}"
        );
    }
}

#[test]
fn mistakes_name_the_setting() {
    let storage = format!("storage_account: logs, storage_account_key: '{KEY}'");
    for (text, expected) in [
        (format!("{STRING}, {storage}"), "`eventhub`"),
        (format!("eventhub: 'a b', {STRING}, {storage}"), "1 to 256 letters"),
        (format!("eventhub: hub, {storage}"), "`connection_string` is not set"),
        (format!("eventhub: hub, {STRING}"), "`storage_account_connection_string` is not set"),
        (
            format!("eventhub: hub, {STRING}, storage_account: logs, storage_account_key: x"),
            "`storage_account_key`",
        ),
        (
            format!("eventhub: hub, {STRING}, storage_account: A, storage_account_key: '{KEY}'"),
            "3 to 24 lower-case",
        ),
        (format!("eventhub: hub, connection_string: SECRET, {storage}"), "without `=`"),
        (
            format!(
                "eventhub: hub, connection_string: 'Endpoint=sb://n;EntityPath=other;SharedAccessKeyName=a;SharedAccessKey=b', {storage}"
            ),
            "is of the event hub `other`",
        ),
        ("eventhub: hub, auth_type: client_secret".to_owned(), "`tenant_id` is not set"),
        (
            "eventhub: hub, auth_type: managed_identity".to_owned(),
            "`eventhub_namespace` is not set",
        ),
        (
            format!("eventhub: hub, {STRING}, {storage}, storage_account_container: a--b"),
            "single `-`",
        ),
        (
            format!("eventhub: hub, {STRING}, {storage}, sanitizers: [{{type: replace_all}}]"),
            "has no `pattern`",
        ),
        (
            format!(
                "eventhub: hub, {STRING}, {storage}, sanitizers: [{{type: replace_all, spec: {{pattern: '('}}}}]"
            ),
            "unclosed group",
        ),
        (
            format!("eventhub: hub, {STRING}, {storage}, sanitizers: [{{spec: {{pattern: a}}}}]"),
            "type",
        ),
        (format!("eventhub: hub, {STRING}, {storage}, processor_start_position: now"), "earliest"),
        (
            format!("eventhub: hub, {STRING}, {storage}, partition_receive_count: 0"),
            "partition_receive_count",
        ),
        (format!("eventhub: hub, {STRING}, {storage}, ssl.enabled: false"), "needs TLS"),
    ] {
        let (input, problems) = read_text(&text);
        assert!(input.is_none() || problems.contains("error: "), "{text}");
        assert!(problems.contains(expected) && !problems.contains("SECRET"), "{text}: {problems}");
    }
}
